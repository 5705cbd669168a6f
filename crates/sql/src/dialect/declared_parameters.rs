//! Parameters whose types the client declares become casts where the statement itself does not tell the
//! type: `$1 < $2` of two integers is read as `$1::bigint < $2::bigint`, and not as a comparison of texts.
//!
//! Drivers declare the types of the values that they send. Beside a column, the column's type counts: plans
//! are reused for all values of such a parameter. So a parameter becomes a cast as an operand without a column
//! beside it, as an item of a SELECT, and as a value of a list that is read as a table. An interval
//! becomes one everywhere: beside a time, the planner would take it for a time.
//!
//! Other declared types are the business of [`parameter_types`](crate::planning::parameter_types).

use crate::dialect::ast_walk::{walk, walk_mut};
use datafusion::arrow::datatypes::DataType;
use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, CastKind, Expr, Query, SelectItem, SetExpr, Statement, TimezoneInfo,
    Value, Visitor, VisitorMut,
};
use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;

/// Casts the parameters of a statement; `named` are the types of `$1…$n`, or Null. Returns the numbers of
/// the parameters, from 1, whose types count.
pub(crate) fn cast_declared(statement: &mut Statement, named: &[DataType]) -> BTreeSet<usize> {
    let mut places = ParameterPlaces {
        inserted: match statement {
            Statement::Insert(insert) => insert.source.as_deref().map(address),
            _ => None,
        },
        ..ParameterPlaces::default()
    };
    let _ = walk(statement, &mut places);
    let ParameterPlaces {
        operands,
        beside,
        values,
        ..
    } = places;
    let casts: HashMap<usize, ast::DataType> = named
        .iter()
        .enumerate()
        .filter_map(|(at, kind)| {
            let number = at + 1;
            let counts = match kind {
                DataType::Interval(_) => true,
                // An exact number has as many digits as its value, which a cast would change. Beside anything
                // else, its type follows from that.
                DataType::Decimal128(..) => operands.contains(&number) && !beside.contains(&number),
                _ => operands.contains(&number) || values.contains(&number),
            };
            Some((number, sql_type(kind).filter(|_| counts)?))
        })
        .collect();
    if !casts.is_empty() {
        let _ = walk_mut(statement, &mut DeclaredCasts { casts });
    }
    operands.union(&values).copied().collect()
}

/// Whether a declared type becomes a cast where it counts.
pub(crate) fn is_castable(kind: &DataType) -> bool {
    sql_type(kind).is_some()
}

/// Finds the parameters whose declared types count.
#[derive(Default)]
struct ParameterPlaces {
    /// Those that are operands without a column beside them.
    operands: BTreeSet<usize>,
    /// Those beside something else than parameters and literals.
    beside: BTreeSet<usize>,
    /// Those that are shown or listed as they are.
    values: BTreeSet<usize>,
    /// The query whose rows are inserted, by its address: its lists have the types of columns.
    inserted: Option<usize>,
}

impl Visitor for ParameterPlaces {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let is_inserted = self.inserted == Some(address(query));
        self.read_body(&query.body, is_inserted);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let operands: Vec<&Expr> = match expr {
            Expr::BinaryOp { left, op, right } if counts_beside(op) => vec![left, right],
            Expr::InList { expr, list, .. } => std::iter::once(&**expr).chain(list).collect(),
            Expr::Between {
                expr, low, high, ..
            } => vec![expr, low, high],
            _ => return ControlFlow::Continue(()),
        };
        let is_value = |operand: &&Expr| matches!(without_parentheses(operand), Expr::Value(_));
        let has_column = operands.iter().any(|operand| is_column(operand));
        let has_values_only = operands.iter().all(is_value);
        for number in operands.into_iter().filter_map(parameter) {
            if !has_column {
                self.operands.insert(number);
            }
            if !has_values_only {
                self.beside.insert(number);
            }
        }
        ControlFlow::Continue(())
    }
}

impl ParameterPlaces {
    /// Notes the values of a query's body.
    fn read_body(&mut self, body: &SetExpr, is_inserted: bool) {
        match body {
            SetExpr::Select(select) => {
                let items = select.projection.iter().filter_map(|item| match item {
                    SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
                        parameter(expr)
                    }
                    _ => None,
                });
                self.values.extend(items);
            }
            SetExpr::Values(values) if !is_inserted => {
                let all = values.rows.iter().flat_map(|row| row.iter());
                self.values.extend(all.filter_map(parameter));
            }
            SetExpr::SetOperation { left, right, .. } => {
                self.read_body(left, is_inserted);
                self.read_body(right, is_inserted);
            }
            _ => {}
        }
    }
}

/// Casts parameters wherever they stand: one that is a time beside a column and a moment elsewhere
/// would be two times.
struct DeclaredCasts {
    /// By the parameters' numbers.
    casts: HashMap<usize, ast::DataType>,
}

impl VisitorMut for DeclaredCasts {
    type Break = ();

    // Afterwards, so that what stands within the cast is not visited again.
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let is_plain = matches!(expr, Expr::Value(_));
        let number = parameter(expr).filter(|_| is_plain);
        if let Some(data_type) = number.and_then(|number| self.casts.get(&number)) {
            let inner = std::mem::replace(expr, Expr::value(Value::Null));
            *expr = Expr::Cast {
                kind: CastKind::DoubleColon,
                expr: Box::new(inner),
                data_type: data_type.clone(),
                array: false,
                format: None,
            };
        }
        ControlFlow::Continue(())
    }
}

/// The address of a node, by which a walk knows it again.
fn address<T>(node: &T) -> usize {
    std::ptr::from_ref(node).addr()
}

fn without_parentheses(mut expr: &Expr) -> &Expr {
    while let Expr::Nested(inner) = expr {
        expr = inner;
    }
    expr
}

/// The number of the parameter that an expression consists of.
fn parameter(expr: &Expr) -> Option<usize> {
    let Expr::Value(value) = without_parentheses(expr) else {
        return None;
    };
    let Value::Placeholder(id) = &value.value else {
        return None;
    };
    let number = id.strip_prefix('$')?.parse().ok()?;
    (number > 0).then_some(number)
}

fn is_column(expr: &Expr) -> bool {
    matches!(
        without_parentheses(expr),
        Expr::Identifier(_) | Expr::CompoundIdentifier(_)
    )
}

/// Whether the operands of an operator have types that their values do not show.
fn counts_beside(op: &BinaryOperator) -> bool {
    use BinaryOperator::{
        And, Divide, Eq, Gt, GtEq, Lt, LtEq, Minus, Modulo, Multiply, NotEq, Or, PGExp, Plus,
    };
    matches!(
        op,
        Plus | Minus
            | Multiply
            | Divide
            | Modulo
            | PGExp
            | Eq
            | NotEq
            | Lt
            | LtEq
            | Gt
            | GtEq
            | And
            | Or
    )
}

/// The type as a statement writes it; `None` for types that stay open.
fn sql_type(kind: &DataType) -> Option<ast::DataType> {
    Some(match kind {
        DataType::Boolean => ast::DataType::Boolean,
        DataType::Int16 => ast::DataType::SmallInt(None),
        DataType::Int32 => ast::DataType::Integer(None),
        DataType::Int64 => ast::DataType::BigInt(None),
        DataType::Float32 => ast::DataType::Real,
        // An exact number has any number of digits, before and behind its point.
        DataType::Float64 | DataType::Decimal128(..) => ast::DataType::DoublePrecision,
        DataType::Date32 => ast::DataType::Date,
        DataType::Time64(_) => ast::DataType::Time(None, TimezoneInfo::None),
        DataType::Timestamp(_, None) => ast::DataType::Timestamp(None, TimezoneInfo::None),
        DataType::Timestamp(_, Some(_)) => ast::DataType::Timestamp(None, TimezoneInfo::Tz),
        DataType::Interval(_) => ast::DataType::Interval {
            fields: None,
            precision: None,
        },
        _ => return None,
    })
}
