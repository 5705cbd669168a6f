//! Determines the types of parameters that DataFusion leaves open: those of casts and of
//! `= ANY($1)`, and then those that the client named. An exact number or a float that the client names is
//! one beside an integer, too, from which DataFusion would conclude that the parameter is an integer.

use arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{Between, BinaryExpr, Cast, InList, Placeholder, TryCast};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Operator};
use marigram_functions::compared_with_array;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The type of a parameter that the client named as an exact number, if nothing else tells its type: its value
/// has a type with as many decimal places as it is written with. It is wide enough for each.
pub(crate) const OPEN_NUMBER: DataType = DataType::Decimal256(76, 38);

/// Whether types that a client named count although a statement tells others.
pub(crate) fn counts_always(named: &[DataType]) -> bool {
    let counts = |kind: &DataType| {
        kind.is_floating() || matches!(kind, DataType::Interval(_) | DataType::Decimal128(..))
    };
    named.iter().any(counts)
}

/// The plan with a type for each parameter whose type can be determined. `named` are the types that
/// the client named for `$1…$n`, or Null.
///
/// DataFusion's errors, for plans that cannot be traversed.
pub(crate) fn with_parameter_types(plan: LogicalPlan, named: &[DataType]) -> Result<LogicalPlan> {
    let (mut known, mut open, mut types) = (HashSet::new(), HashSet::new(), HashMap::new());
    let mut numbers = HashMap::new();
    plan.apply_with_subqueries(|node| {
        // The inputs do not matter unless they determine a type.
        let mut schema = None;
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                if let Expr::Placeholder(placeholder) = part {
                    let set = match &placeholder.field {
                        Some(_) => &mut known,
                        None => &mut open,
                    };
                    set.insert(placeholder.id.clone());
                }
                if counts_always(named) {
                    exact_numbers(part, named, &mut numbers);
                }
                let told = told_by(part, || {
                    schema
                        .get_or_insert_with(|| merge_schema(&node.inputs()))
                        .clone()
                });
                if let Some((id, kind)) = told {
                    types.entry(id).or_insert(kind);
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    for id in &open {
        let kind = named_type(id, named);
        let kind = match kind {
            None | Some(DataType::Null) => continue,
            Some(DataType::Decimal128(..)) => OPEN_NUMBER,
            Some(other) => other.clone(),
        };
        types.entry(id.clone()).or_insert(kind);
    }
    types.retain(|id, _| open.contains(id) && !known.contains(id));
    types.extend(numbers);
    if types.is_empty() {
        return Ok(plan);
    }
    let typed = plan.transform_up_with_subqueries(|node| {
        let set = node.map_expressions(|expr| {
            expr.transform(|mut part| {
                if let Expr::Placeholder(placeholder) = &mut part
                    && let Some(kind) = types.get(&placeholder.id)
                {
                    let field = Field::new(&placeholder.id, kind.clone(), true);
                    placeholder.field = Some(Arc::new(field));
                    return Ok(Transformed::yes(part));
                }
                Ok(Transformed::no(part))
            })
        })?;
        if set.transformed {
            return Ok(Transformed::yes(set.data.recompute_schema()?));
        }
        Ok(set)
    })?;
    if typed.transformed {
        // Nodes above read columns whose types were open.
        let anew = |node: LogicalPlan| {
            let anew = node.clone().recompute_schema();
            Ok(Transformed::yes(anew.unwrap_or(node)))
        };
        return Ok(typed.data.transform_up(anew)?.data);
    }
    Ok(typed.data)
}

/// The type that the client named for a parameter.
fn named_type<'a>(id: &str, named: &'a [DataType]) -> Option<&'a DataType> {
    let number: usize = id.strip_prefix('$')?.parse().ok()?;
    named.get(number.checked_sub(1)?)
}

/// Notes the parameters of an expression that are exact numbers or floats for the client, and integers for
/// DataFusion because they stand beside one. In a comparison exact numbers stay exact; arithmetic makes them
/// floats, which need no number of digits.
fn exact_numbers(expr: &Expr, named: &[DataType], numbers: &mut HashMap<String, DataType>) {
    let exact = DataType::Decimal128(38, 18);
    let (operands, kind): (Vec<&Expr>, DataType) = match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let kind = match op {
                Operator::Eq
                | Operator::NotEq
                | Operator::Lt
                | Operator::LtEq
                | Operator::Gt
                | Operator::GtEq => exact,
                Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Divide => {
                    DataType::Float64
                }
                _ => return,
            };
            (vec![left, right], kind)
        }
        Expr::Between(Between {
            expr, low, high, ..
        }) => (vec![expr, low, high], exact),
        Expr::InList(InList { list, .. }) => (list.iter().collect(), exact),
        _ => return,
    };
    for operand in operands {
        let Expr::Placeholder(Placeholder {
            id,
            field: Some(field),
        }) = operand
        else {
            continue;
        };
        let kind = match named_type(id, named) {
            Some(DataType::Decimal128(..)) => &kind,
            Some(named) if named.is_floating() => &DataType::Float64,
            _ => continue,
        };
        if field.data_type().is_integer() {
            numbers.entry(id.clone()).or_insert_with(|| kind.clone());
        }
    }
}

/// The parameter whose type an expression determines, and that type.
fn told_by(expr: &Expr, schema: impl FnOnce() -> DFSchema) -> Option<(String, DataType)> {
    let (parameter, kind) = match expr {
        Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field }) => {
            (open(expr)?, field.data_type().clone())
        }
        Expr::ScalarFunction(call) => {
            let (element, array) = compared_with_array(call)?;
            let parameter = open(array)?;
            let kind = match element.get_type(&schema()).ok()? {
                DataType::Dictionary(_, values) => *values,
                DataType::Null => return None,
                other => other,
            };
            (parameter, DataType::new_list(kind, true))
        }
        _ => return None,
    };
    Some((parameter.to_owned(), kind))
}

/// The parameter that an expression consists of, if its type is open.
fn open(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Placeholder(Placeholder { id, field: None }) => Some(id),
        _ => None,
    }
}
