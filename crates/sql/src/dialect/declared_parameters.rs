//! Parameters that the client declares as intervals become casts, as if the statement had `$1::interval`:
//! beside a time, the planner would take them for times.
//!
//! Drivers declare the types of all values that they send; psycopg sends a `timedelta` as an interval.
//! Other declared types are the business of [`parameter_types`](crate::planning::parameter_types).

use crate::dialect::ast_walk::walk_mut;
use datafusion::arrow::datatypes::DataType;
use datafusion::sql::sqlparser::ast::{self, CastKind, Expr, Statement, Value, VisitorMut};
use std::ops::ControlFlow;

/// Casts the parameters of a statement; `named` are the types of `$1…$n`, or Null.
pub(crate) fn cast_intervals(statement: &mut Statement, named: &[DataType]) {
    let is_interval = |kind: &DataType| matches!(kind, DataType::Interval(_));
    if named.iter().any(is_interval) {
        let _ = walk_mut(statement, &mut DeclaredIntervals { named });
    }
}

struct DeclaredIntervals<'a> {
    named: &'a [DataType],
}

impl VisitorMut for DeclaredIntervals<'_> {
    type Break = ();

    // Afterwards, so that what stands within the cast is not visited again.
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.is_interval(expr) {
            let inner = std::mem::replace(expr, Expr::value(Value::Null));
            *expr = Expr::Cast {
                kind: CastKind::DoubleColon,
                expr: Box::new(inner),
                data_type: ast::DataType::Interval {
                    fields: None,
                    precision: None,
                },
                array: false,
                format: None,
            };
        }
        ControlFlow::Continue(())
    }
}

impl DeclaredIntervals<'_> {
    fn is_interval(&self, expr: &Expr) -> bool {
        let Expr::Value(value) = expr else {
            return false;
        };
        let Value::Placeholder(id) = &value.value else {
            return false;
        };
        let number = id.strip_prefix('$').and_then(|digits| digits.parse().ok());
        let kind = number.and_then(|number: usize| self.named.get(number.checked_sub(1)?));
        matches!(kind, Some(DataType::Interval(_)))
    }
}
