//! The parameters of a plan: their types, and the types of PostgreSQL that some texts are.

use crate::error::{SqlError, SqlResult};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan};
use marigram_service::PG_TYPE_KEY;
use std::collections::HashMap;
use std::sync::Arc;

/// What a plan says of `$1…$n`, in order.
pub(super) struct PlanParameters {
    /// Their types; `None` where the plan leaves a type open.
    pub(super) planned: Vec<Option<DataType>>,
    /// The types that some of them have for PostgreSQL, where they are texts here.
    pub(super) pg_types: Vec<Option<String>>,
}

impl PlanParameters {
    /// Those of a plan.
    ///
    /// # Errors
    /// If a parameter would have several types, or has no number.
    pub(super) fn of_plan(plan: &LogicalPlan) -> SqlResult<Self> {
        let mut fields = parameter_fields(plan)?;
        for name in limits_of(plan)? {
            let limit = Field::new(&name, DataType::Int64, true);
            fields.insert(name, Some(Arc::new(limit)));
        }
        let fields = in_order(fields)?.into_iter();
        let (planned, pg_types) = fields.map(type_of_parameter).unzip();
        Ok(Self { planned, pg_types })
    }
}

/// What the plan knows of its parameters. One that stands beside several columns has the mark of the first.
///
/// # Errors
/// If a parameter would have several types.
fn parameter_fields(plan: &LogicalPlan) -> SqlResult<HashMap<String, Option<FieldRef>>> {
    let mut fields: HashMap<String, Option<FieldRef>> = HashMap::new();
    let mut has_conflict = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Expr::Placeholder(placeholder) = expr {
                    let known = fields.entry(placeholder.id.clone()).or_default();
                    match (known.as_ref(), &placeholder.field) {
                        (Some(known), Some(field)) => {
                            has_conflict |= known.data_type() != field.data_type();
                        }
                        (None, Some(field)) => *known = Some(Arc::clone(field)),
                        // Where one place leaves the type open, all do.
                        (_, None) => *known = None,
                    }
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    if has_conflict {
        // DataFusion has the words for it.
        plan.get_parameter_types()?;
    }
    Ok(fields)
}

/// The type of a parameter, and its mark of another type of PostgreSQL.
fn type_of_parameter(field: Option<FieldRef>) -> (Option<DataType>, Option<String>) {
    let Some(field) = field else {
        return (None, None);
    };
    let mark = field.metadata().get(PG_TYPE_KEY).cloned();
    (Some(field.data_type().clone()), mark)
}

/// The fields of `$1…$n` in order.
fn in_order(named: HashMap<String, Option<FieldRef>>) -> SqlResult<Vec<Option<FieldRef>>> {
    let mut types = Vec::new();
    for (name, kind) in named {
        let number: Option<usize> = name
            .strip_prefix('$')
            .and_then(|digits| digits.parse().ok());
        let place = number
            .and_then(|number| number.checked_sub(1))
            .filter(|place| *place < 65_535);
        let Some(place) = place else {
            let message = format!("parameter '{name}' has no number; write $1, $2, …");
            return Err(SqlError::named("42P02", &name, message));
        };
        if types.len() <= place {
            types.resize(place + 1, None);
        }
        types[place] = kind;
    }
    Ok(types)
}

/// Parameters in LIMIT or OFFSET, for which a plan has no type.
fn limits_of(plan: &LogicalPlan) -> SqlResult<Vec<String>> {
    let mut names = Vec::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Limit(limit) = node {
            for part in [&limit.skip, &limit.fetch].into_iter().flatten() {
                part.apply(|expr| {
                    if let Expr::Placeholder(placeholder) = expr {
                        names.push(placeholder.id.clone());
                    }
                    Ok(TreeNodeRecursion::Continue)
                })?;
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(names)
}
