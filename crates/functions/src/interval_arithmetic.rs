//! `INTERVAL '1 hour' * 3`, `2.5 * every`, `INTERVAL '1 day' / 4`: the product or quotient of an
//! interval and a number; and `DATE '2026-01-01' + INTERVAL '1 hour'`, which is a time. Intervals
//! compare by their lengths.
//!
//! As in PostgreSQL, a fraction of a month becomes days, with a month of 30 days, and a fraction of
//! a day becomes time. PostgreSQL rounds to microseconds, Marigram to nanoseconds.

use crate::TIME;
use crate::parse_postgres_interval;
use crate::refusal::refused;
use crate::value_casts::as_intervals;
use arrow::array::{ArrayRef, AsArray, Decimal128Array, IntervalMonthDayNanoArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Float64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
};
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility, binary_expr, cast as cast_expr,
};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use marigram_model::DAY_NS;
use std::sync::{Arc, LazyLock};

/// The days of a month when a month must have a length.
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
            // Each question for a type looks at a whole operand, which may be a long sum.
            let is_plain = |side: &Expr| side.get_type(schema).is_ok_and(|kind| kind.is_numeric());
            if is_plain(&expr.right) && is_plain(&expr.left) {
                return Ok(PlannerResult::Original(expr));
            }
            let expr = with_differences_as_intervals(with_written_interval(expr, schema), schema);
            return Ok(PlannerResult::Original(with_times_of_dates(expr, schema)));
        }
        let is_division = match expr.op {
            BinaryOperator::Multiply => false,
            BinaryOperator::Divide => true,
            _ => return Ok(compared(expr, schema)),
        };
        let kinds = (expr.left.get_type(schema), expr.right.get_type(schema));
        let (interval, number) = match kinds {
            (Ok(DataType::Interval(_) | DataType::Duration(_)), Ok(number))
                if number.is_numeric() =>
            {
                (expr.left, expr.right)
            }
            (Ok(number), Ok(DataType::Interval(_) | DataType::Duration(_)))
                if number.is_numeric() && !is_division =>
            {
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

/// A text takes its type from the other side, as in PostgreSQL: what is added to a time, or compared
/// with an interval, is an interval; what is subtracted from a time, or from which one is, is a time.
pub fn with_written_interval(mut expr: RawBinaryExpr, schema: &DFSchema) -> RawBinaryExpr {
    let is_left = match (&expr.left, &expr.right) {
        (Expr::Literal(ScalarValue::Utf8(Some(_)), _), _) => true,
        (_, Expr::Literal(ScalarValue::Utf8(Some(_)), _)) => false,
        _ => return expr,
    };
    let (text, other) = if is_left {
        (&mut expr.left, &expr.right)
    } else {
        (&mut expr.right, &expr.left)
    };
    let Ok(kind) = other.get_type(schema) else {
        return expr;
    };
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, Minus, NotEq, Plus};
    let is_interval = match (&expr.op, &kind) {
        (Plus, DataType::Timestamp(..))
        | (
            Eq | NotEq | Lt | LtEq | Gt | GtEq | Plus | Minus,
            DataType::Interval(_) | DataType::Duration(_),
        ) => true,
        (Minus, DataType::Timestamp(..) | DataType::Date32) => false,
        _ => return expr,
    };
    if !is_interval {
        *text = cast_expr(text.clone(), kind);
    } else if let Expr::Literal(ScalarValue::Utf8(Some(written)), _) = &*text
        && let Some(interval) = parse_postgres_interval(written)
    {
        *text = Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(interval)), None);
    }
    expr
}

/// Turns differences of times that are added to an interval, to each other, or to a time with a zone, into
/// intervals: days are added to days, of the session's clocks.
fn with_differences_as_intervals(mut expr: RawBinaryExpr, schema: &DFSchema) -> RawBinaryExpr {
    let is_difference = |side: &Expr| matches!(side.get_type(schema), Ok(DataType::Duration(_)));
    let is_length = |side: &Expr| {
        is_difference(side) || matches!(side.get_type(schema), Ok(DataType::Interval(_)))
    };
    let is_zoned =
        |side: &Expr| matches!(side.get_type(schema), Ok(DataType::Timestamp(_, Some(_))));
    let is_sum = |a: &Expr, b: &Expr| is_length(a) && (is_length(b) || is_zoned(b));
    if !is_sum(&expr.left, &expr.right) && !is_sum(&expr.right, &expr.left) {
        return expr;
    }
    for side in [&mut expr.left, &mut expr.right] {
        if is_difference(side) {
            *side = DIFFERENCE.call(vec![std::mem::take(side)]);
        }
    }
    expr
}

static DIFFERENCE: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::from(DifferenceAsInterval {
        signature: Signature::any(1, Volatility::Immutable),
    }))
});

/// The interval that a difference of times is.
#[derive(Debug, PartialEq, Eq, Hash)]
struct DifferenceAsInterval {
    signature: Signature,
}

impl ScalarUDFImpl for DifferenceAsInterval {
    fn name(&self) -> &'static str {
        "difference_as_interval"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(INTERVAL)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(value) = args.args.into_iter().next() else {
            return internal_err!("difference_as_interval takes one argument");
        };
        let is_one = matches!(value, ColumnarValue::Scalar(_));
        let intervals = as_intervals(&value.into_array(1)?)?;
        Ok(if is_one {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&intervals, 0)?)
        } else {
            ColumnarValue::Array(intervals)
        })
    }
}

/// Compares intervals by their lengths, with a day of 24 hours and a month of 30 days.
fn compared(expr: RawBinaryExpr, schema: &DFSchema) -> PlannerResult<RawBinaryExpr> {
    let op = match expr.op {
        BinaryOperator::Eq => Operator::Eq,
        BinaryOperator::NotEq => Operator::NotEq,
        BinaryOperator::Lt => Operator::Lt,
        BinaryOperator::LtEq => Operator::LtEq,
        BinaryOperator::Gt => Operator::Gt,
        BinaryOperator::GtEq => Operator::GtEq,
        _ => return PlannerResult::Original(expr),
    };
    let is_length = |kind: &DataType| matches!(kind, DataType::Interval(_) | DataType::Duration(_));
    let is_interval = |kind: &DataType| matches!(kind, DataType::Interval(_));
    match (expr.left.get_type(schema), expr.right.get_type(schema)) {
        (Ok(left), Ok(right))
            if is_length(&left)
                && is_length(&right)
                && (is_interval(&left) || is_interval(&right)) =>
        {
            let left = LENGTH.call(vec![expr.left]);
            let right = LENGTH.call(vec![expr.right]);
            PlannerResult::Planned(binary_expr(left, op, right))
        }
        _ => PlannerResult::Original(expr),
    }
}

static LENGTH: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::from(IntervalLength {
        signature: Signature::any(1, Volatility::Immutable),
    }))
});

/// The number of digits of the longest interval in nanoseconds.
const LENGTH_DIGITS: u8 = 38;

/// The length of an interval, ns.
#[derive(Debug, PartialEq, Eq, Hash)]
struct IntervalLength {
    signature: Signature,
}

impl ScalarUDFImpl for IntervalLength {
    fn name(&self) -> &'static str {
        "interval_length"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Decimal128(LENGTH_DIGITS, 0))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(value) = args.args.into_iter().next() else {
            return internal_err!("interval_length takes one argument");
        };
        let is_one = matches!(value, ColumnarValue::Scalar(_));
        let lengths = lengths(&value.into_array(1)?)?;
        Ok(if is_one {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&lengths, 0)?)
        } else {
            ColumnarValue::Array(lengths)
        })
    }
}

/// The lengths of intervals, or of differences of times.
///
/// # Errors
/// If the values are neither.
pub fn lengths(intervals: &ArrayRef) -> Result<ArrayRef> {
    let intervals = as_intervals(intervals)?;
    let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
    let lengths: Decimal128Array = intervals.iter().map(|value| value.map(length_ns)).collect();
    Ok(Arc::new(
        lengths.with_precision_and_scale(LENGTH_DIGITS, 0)?,
    ))
}

/// The length of an interval as an expression: a number of nanoseconds.
pub fn length(interval: Expr) -> Expr {
    LENGTH.call(vec![interval])
}

/// The length of an interval, ns.
pub fn length_ns(interval: IntervalMonthDayNano) -> i128 {
    let days = i128::from(interval.months) * 30 + i128::from(interval.days);
    days * i128::from(DAY_NS) + i128::from(interval.nanoseconds)
}

/// Turns a date that is combined with an interval into its midnight: the sum is a time, as in
/// PostgreSQL.
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

/// Multiplies or divides an interval by a number.
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
        let (intervals, numbers) = (as_intervals(intervals)?, cast(numbers, &DataType::Float64)?);
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

/// An interval divided by a number.
///
/// # Errors
/// 22008 if the quotient does not fit.
pub(crate) fn divided(interval: IntervalMonthDayNano, number: f64) -> Result<IntervalMonthDayNano> {
    by(interval, |part| part / number)
}

/// Scales each part of an interval and carries the fraction of a part over to the next smaller
/// part.
fn by(interval: IntervalMonthDayNano, scaled: impl Fn(f64) -> f64) -> Result<IntervalMonthDayNano> {
    let months = scaled(f64::from(interval.months));
    let days = scaled(f64::from(interval.days));
    let from_months = (months - months.trunc()) * MONTH_DAYS;
    // A number that differs from a whole day only by rounding is a whole day.
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

/// Whether the type of an expression is an interval.
pub fn is_interval(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(DataType::Interval(_)))
}

/// Replaces an interval by its length; whether it is one.
pub(crate) fn becomes_length(expr: &mut Expr, schema: &DFSchema) -> bool {
    let is_one = is_interval(expr, schema);
    if is_one {
        *expr = length(std::mem::take(expr));
    }
    is_one
}
