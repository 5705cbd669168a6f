//! Comparing a difference of times with an interval.
//!
//! The difference of two times is a duration, counted in nanoseconds. An interval keeps months,
//! days and nanoseconds apart, and intervals compare part by part, so that 25 hours would be less
//! than a day. This module turns an interval that is written in the statement into a duration, with
//! a day of 24 hours and a month of 30 days, as PostgreSQL does.

use crate::interval_arithmetic::with_written_interval;
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use marigram_model::DAY_NS;

/// The days of a month when a month must have a length.
const MONTH_DAYS: i64 = 30;

/// Plans such comparisons.
#[derive(Debug)]
pub struct DurationComparison;

impl ExprPlanner for DurationComparison {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let expr = with_written_interval(expr, schema);
        let op = match expr.op {
            BinaryOperator::Eq => Operator::Eq,
            BinaryOperator::NotEq => Operator::NotEq,
            BinaryOperator::Lt => Operator::Lt,
            BinaryOperator::LtEq => Operator::LtEq,
            BinaryOperator::Gt => Operator::Gt,
            BinaryOperator::GtEq => Operator::GtEq,
            _ => return Ok(PlannerResult::Original(expr)),
        };
        let sides = match (interval_ns(&expr.left), interval_ns(&expr.right)) {
            (None, Some(ns)) => unit_of(&expr.left, schema)
                .and_then(|unit| Some((expr.left.clone(), duration(ns, unit)?))),
            (Some(ns), None) => unit_of(&expr.right, schema)
                .and_then(|unit| Some((duration(ns, unit)?, expr.right.clone()))),
            _ => None,
        };
        Ok(match sides {
            Some((left, right)) => {
                let comparison = BinaryExpr::new(Box::new(left), op, Box::new(right));
                PlannerResult::Planned(Expr::BinaryExpr(comparison))
            }
            None => PlannerResult::Original(expr),
        })
    }
}

/// The unit of the duration that is compared with an interval, if it is one.
fn unit_of(other: &Expr, schema: &DFSchema) -> Option<TimeUnit> {
    match other.get_type(schema).ok()? {
        DataType::Duration(unit) => Some(unit),
        _ => None,
    }
}

/// The length of a literal interval.
fn interval_ns(expr: &Expr) -> Option<i64> {
    let (months, days, nanos) = match expr {
        Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(value)), _) => {
            (value.months, value.days, value.nanoseconds)
        }
        Expr::Literal(ScalarValue::IntervalDayTime(Some(value)), _) => {
            (0, value.days, i64::from(value.milliseconds) * 1_000_000)
        }
        Expr::Literal(ScalarValue::IntervalYearMonth(Some(months)), _) => (*months, 0, 0),
        Expr::Negative(inner) => return interval_ns(inner)?.checked_neg(),
        _ => return None,
    };
    let days = i64::from(months) * MONTH_DAYS + i64::from(days);
    days.checked_mul(DAY_NS)?.checked_add(nanos)
}

/// A duration; `None` if the unit cannot hold it exactly.
fn duration(ns: i64, unit: TimeUnit) -> Option<Expr> {
    let whole = |width: i64| (ns % width == 0).then_some(ns / width);
    let value = match unit {
        TimeUnit::Nanosecond => ScalarValue::DurationNanosecond(Some(ns)),
        TimeUnit::Microsecond => ScalarValue::DurationMicrosecond(Some(whole(1_000)?)),
        TimeUnit::Millisecond => ScalarValue::DurationMillisecond(Some(whole(1_000_000)?)),
        TimeUnit::Second => ScalarValue::DurationSecond(Some(whole(1_000_000_000)?)),
    };
    Some(Expr::Literal(value, None))
}
