//! `INTERVAL '1 hour' * 3`, `2.5 * every`, `INTERVAL '1 day' / 4`: an interval by a number; and
//! `DATE '2026-01-01' + INTERVAL '1 hour'`, which is a time.
//!
//! As in PostgreSQL, what is left over of months becomes days of a month of 30, and what is left over of
//! days becomes time. PostgreSQL rounds to microseconds, this to nanoseconds.

use crate::TIME;
use crate::refusal::refused;
use arrow::array::{AsArray, IntervalMonthDayNanoArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Float64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
};
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{
    ColumnarValue, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, cast as cast_expr,
};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use marigram_model::DAY_NS;
use std::sync::{Arc, LazyLock};

/// Days of a month, where a month must have a length.
const MONTH_DAYS: f64 = 30.0;
const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// Plans such products and quotients.
#[derive(Debug)]
pub struct IntervalArithmetic;

impl ExprPlanner for IntervalArithmetic {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        if matches!(expr.op, BinaryOperator::Plus | BinaryOperator::Minus) {
            return Ok(PlannerResult::Original(with_times_of_dates(expr, schema)));
        }
        let is_division = match expr.op {
            BinaryOperator::Multiply => false,
            BinaryOperator::Divide => true,
            _ => return Ok(PlannerResult::Original(expr)),
        };
        let kinds = (expr.left.get_type(schema), expr.right.get_type(schema));
        let (interval, number) = match kinds {
            (Ok(DataType::Interval(_)), Ok(number)) if number.is_numeric() => {
                (expr.left, expr.right)
            }
            (Ok(number), Ok(DataType::Interval(_))) if number.is_numeric() && !is_division => {
                (expr.right, expr.left)
            }
            _ => return Ok(PlannerResult::Original(expr)),
        };
        let function = if is_division { &*QUOTIENT } else { &*PRODUCT };
        Ok(PlannerResult::Planned(
            function.call(vec![interval, number]),
        ))
    }
}

/// A date beside an interval as its midnight: the sum is a time, as in PostgreSQL.
fn with_times_of_dates(mut expr: RawBinaryExpr, schema: &DFSchema) -> RawBinaryExpr {
    let is_date = |kind: &DataType| matches!(kind, DataType::Date32 | DataType::Date64);
    let midnight = |date| cast_expr(date, TIME);
    match (expr.left.get_type(schema), expr.right.get_type(schema)) {
        (Ok(date), Ok(DataType::Interval(_))) if is_date(&date) => expr.left = midnight(expr.left),
        (Ok(DataType::Interval(_)), Ok(date)) if is_date(&date) => {
            expr.right = midnight(expr.right);
        }
        _ => {}
    }
    expr
}

static PRODUCT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| function("interval_product"));
static QUOTIENT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| function("interval_quotient"));

fn function(name: &'static str) -> Arc<ScalarUDF> {
    let signature = Signature::any(2, Volatility::Immutable);
    Arc::new(ScalarUDF::from(ByNumber { name, signature }))
}

/// An interval by a number.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ByNumber {
    name: &'static str,
    signature: Signature,
}

impl ScalarUDFImpl for ByNumber {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(INTERVAL)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_one = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Scalar(_));
        let all_one = args.args.iter().all(is_one);
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [intervals, numbers] = &arrays[..] else {
            return internal_err!("{} takes two arguments", self.name);
        };
        let (intervals, numbers) = (
            cast(intervals, &INTERVAL)?,
            cast(numbers, &DataType::Float64)?,
        );
        let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
        let numbers = numbers.as_primitive::<Float64Type>();
        let is_division = self.name == QUOTIENT.name();
        let mut out = Vec::with_capacity(intervals.len());
        for (interval, number) in intervals.iter().zip(numbers) {
            out.push(match (interval, number) {
                (Some(_), Some(0.0)) if is_division => {
                    return Err(refused("22012", "division by zero"));
                }
                (Some(interval), Some(number)) if is_division => {
                    Some(by(interval, |part| part / number)?)
                }
                (Some(interval), Some(number)) => Some(by(interval, |part| part * number)?),
                _ => None,
            });
        }
        let out = IntervalMonthDayNanoArray::from(out);
        Ok(if all_one {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&out, 0)?)
        } else {
            ColumnarValue::Array(Arc::new(out))
        })
    }
}

/// Each part of an interval by a number, and what is left over of a part as the next smaller one.
fn by(interval: IntervalMonthDayNano, scaled: impl Fn(f64) -> f64) -> Result<IntervalMonthDayNano> {
    let months = scaled(f64::from(interval.months));
    let days = scaled(f64::from(interval.days));
    let from_months = (months - months.trunc()) * MONTH_DAYS;
    // What is a whole day but for rounding is one.
    let from_months = (from_months * 1e6).round() / 1e6;
    let left_of_days = (days - days.trunc()) + (from_months - from_months.trunc());
    let nanos = scaled(interval.nanoseconds as f64) + left_of_days * DAY_NS as f64;
    let all_days = days.trunc() + from_months.trunc();
    let fits = |value: f64, most: f64| value.is_finite() && value.abs() <= most;
    if !fits(months, i32::MAX.into()) || !fits(all_days, i32::MAX.into()) || !fits(nanos, 9.2e18) {
        return Err(refused("22008", "the interval is out of range"));
    }
    Ok(IntervalMonthDayNano {
        months: months.trunc() as i32,
        days: all_days as i32,
        nanoseconds: nanos.round() as i64,
    })
}
