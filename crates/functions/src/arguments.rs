//! Checks the arguments of the time-series functions: their types when a statement is planned, and
//! their constants before it runs.

use crate::duration::{CalendarInterval, parse_interval};
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, IntervalUnit, Schema, TimeUnit};
use datafusion::common::{DataFusionError, Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_plan::PhysicalExpr;
use std::sync::Arc;

/// The type of times that the functions take.
pub const TIME: DataType = DataType::Timestamp(TimeUnit::Nanosecond, None);

/// The unit of a length of time if a statement does not name one.
const SECOND_NS: i64 = 1_000_000_000;

/// The type of the values, even if they are dictionary-encoded, as tags are.
pub(crate) fn plain(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => plain(values),
        DataType::RunEndEncoded(_, values) => plain(values.data_type()),
        other => other,
    }
}

/// Accepts a number, as BIGINT, BIGINT UNSIGNED or DOUBLE, whichever holds its values.
pub(crate) fn number(function: &str, data_type: &DataType) -> Result<DataType> {
    match plain(data_type) {
        DataType::UInt64 => Ok(DataType::UInt64),
        whole if whole.is_integer() => Ok(DataType::Int64),
        other if other.is_numeric() || other.is_null() => Ok(DataType::Float64),
        other => plan_err!("{function}: the value has the type {other}, not a number"),
    }
}

/// Accepts a time.
pub(crate) fn time(function: &str, data_type: &DataType) -> Result<DataType> {
    match plain(data_type) {
        DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 | DataType::Null => Ok(TIME),
        other => plan_err!("{function}: the time has the type {other}, not a timestamp"),
    }
}

/// Accepts a length of time.
pub(crate) fn interval(function: &str, data_type: &DataType) -> Result<DataType> {
    match plain(data_type) {
        DataType::Interval(_) | DataType::Duration(_) | DataType::Null => {
            Ok(DataType::Interval(IntervalUnit::MonthDayNano))
        }
        text if text.is_string() => Ok(DataType::Utf8),
        other => plan_err!(
            "{function}: the interval has the type {other}; write INTERVAL '1 minute' or '1m'"
        ),
    }
}

/// Accepts a whole number that is the same for all rows.
pub(crate) fn count(function: &str, what: &str, data_type: &DataType) -> Result<DataType> {
    match plain(data_type) {
        whole if whole.is_integer() || whole.is_null() => Ok(DataType::Int64),
        other => plan_err!("{function}: {what} has the type {other}, not a whole number"),
    }
}

/// Accepts a condition, which is true or false.
pub(crate) fn condition(function: &str, data_type: &DataType) -> Result<DataType> {
    match plain(data_type) {
        DataType::Boolean | DataType::Null => Ok(DataType::Boolean),
        other => plan_err!("{function}: the condition has the type {other}, not BOOLEAN"),
    }
}

/// Accepts values that can be compared: numbers, texts, times, truth values, bytes.
pub(crate) fn comparable(function: &str, data_type: &DataType) -> Result<DataType> {
    match plain(data_type) {
        nested if nested.is_nested() => {
            plan_err!("{function}: values of the type {nested} cannot be compared")
        }
        other => Ok(other.clone()),
    }
}

/// Arguments that must be the same for all rows.
pub(crate) struct ConstantArguments<'a> {
    /// The function whose arguments these are.
    pub function: &'static str,
    /// All arguments.
    pub expressions: &'a [Arc<dyn PhysicalExpr>],
}

impl ConstantArguments<'_> {
    fn get(&self, at: usize, what: &str) -> Result<ScalarValue> {
        let nothing = RecordBatch::new_empty(Arc::new(Schema::empty()));
        // An expression that needs a column cannot be evaluated without one.
        let Ok(ColumnarValue::Scalar(value)) = self.expressions[at].evaluate(&nothing) else {
            return exec_err!("{}: {what} must be the same for all rows", self.function);
        };
        if value.is_null() {
            return exec_err!("{}: {what} must not be null", self.function);
        }
        Ok(value)
    }

    /// A whole number from `least` to `most`.
    pub(crate) fn count(&self, at: usize, what: &str, least: usize, most: usize) -> Result<usize> {
        let function = self.function;
        let ScalarValue::Int64(Some(value)) = self.get(at, what)? else {
            return exec_err!("{function}: {what} is not a whole number");
        };
        match usize::try_from(value) {
            Ok(count) if (least..=most).contains(&count) => Ok(count),
            _ => exec_err!("{function}: {what} must be from {least} to {most}, not {value}"),
        }
    }

    /// A number that is neither infinite nor NaN.
    pub(crate) fn finite(&self, at: usize, what: &str) -> Result<f64> {
        match self.get(at, what)? {
            ScalarValue::Float64(Some(value)) if value.is_finite() => Ok(value),
            other => exec_err!("{}: {what} must be a number, not {other}", self.function),
        }
    }

    /// A word.
    pub(crate) fn word(&self, at: usize, what: &str) -> Result<String> {
        match self.get(at, what)? {
            ScalarValue::Utf8(Some(word)) => Ok(word),
            other => exec_err!("{}: {what} must be a text, not {other}", self.function),
        }
    }

    /// A positive length of time without months, in nanoseconds; one second if it is not given.
    pub(crate) fn interval_ns(&self, at: usize) -> Result<i64> {
        let function = self.function;
        if at >= self.expressions.len() {
            return Ok(SECOND_NS);
        }
        let interval = match self.get(at, "the interval")? {
            ScalarValue::IntervalMonthDayNano(Some(value)) => CalendarInterval {
                months: value.months,
                days: value.days,
                nanos: value.nanoseconds,
            },
            ScalarValue::Utf8(Some(text)) => parse_interval(&text)
                .map_err(|reason| DataFusionError::Execution(format!("{function}: {reason}")))?,
            other => return exec_err!("{function}: {other} is not an interval"),
        };
        match interval.fixed_ns() {
            Some(ns) if ns > 0 => Ok(ns),
            Some(_) => exec_err!("{function}: the interval must be positive"),
            None if interval.months != 0 => exec_err!(
                "{function}: the interval has months, which have no fixed length; write days"
            ),
            None => exec_err!("{function}: the interval does not fit into 64 bits of ns"),
        }
    }
}
