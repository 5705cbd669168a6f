//! PostgreSQL's text functions: `to_char`, and the functions to which `SIMILAR TO` and
//! `to_timestamp(text, pattern)` are rewritten.

use crate::arguments::TIME;
use crate::refusal::refused;
use crate::value_casts::as_intervals;
use arrow::array::{
    Array, ArrayRef, AsArray, StringArray, StringBuilder, TimestampNanosecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Float32Type, Float64Type, IntervalMonthDayNanoType, TimeUnit, TimestampNanosecondType,
};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use marigram_pgtext::{
    NumberPattern, PatternInterval, PatternNumber, TimePattern, interval_to_char, session_zone,
    similar_to_regex, time_from_pattern, time_to_char,
};
use std::sync::Arc;

/// The function that `SIMILAR TO` is rewritten to.
pub const SIMILAR_TO_REGEX: &str = "similar_to_regex";

/// The function that `to_timestamp(text, pattern)` and `to_date(text, pattern)` are rewritten to:
/// what the clocks show, or the time in UTC if the text names its zone.
pub const TIME_FROM_PATTERN: &str = "time_from_pattern";

/// The functions.
pub(crate) fn functions() -> [ScalarUDF; 3] {
    [
        ScalarUDF::from(TimeFromPattern {
            signature: Signature::any(2, Volatility::Immutable),
        }),
        ScalarUDF::from(ToChar {
            signature: Signature::any(2, Volatility::Immutable),
        }),
        ScalarUDF::from(SimilarToRegex {
            signature: Signature::any(2, Volatility::Immutable),
        }),
    ]
}

/// Two columns of text or time, with a value for each row.
fn columns(args: &ScalarFunctionArgs) -> Result<[ArrayRef; 2]> {
    let arrays = ColumnarValue::values_to_arrays(&args.args)?;
    match <[ArrayRef; 2]>::try_from(arrays) {
        Ok(arrays) => Ok(arrays),
        Err(_) => internal_err!("the function takes two arguments"),
    }
}

/// A pattern of `to_char`.
enum ToCharPattern {
    Postgres(TimePattern),
    /// A pattern with a `%` before a letter is taken for one of strftime.
    Strftime(String),
}

impl ToCharPattern {
    fn parse(text: &str) -> Self {
        let is_strftime = text
            .as_bytes()
            .windows(2)
            .any(|pair| pair[0] == b'%' && pair[1].is_ascii_alphabetic());
        if is_strftime {
            return Self::Strftime(text.to_owned());
        }
        Self::Postgres(TimePattern::parse(text))
    }
}

/// The values; a single value if all arguments are single values.
fn answer(args: &ScalarFunctionArgs, values: &StringArray) -> Result<ColumnarValue> {
    let is_one = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Scalar(_));
    if args.args.iter().all(is_one) {
        return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(
            values, 0,
        )?));
    }
    Ok(ColumnarValue::Array(Arc::new(values.clone())))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ToChar {
    signature: Signature,
}

impl ScalarUDFImpl for ToChar {
    fn name(&self) -> &'static str {
        "to_char"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [
                DataType::Timestamp(..)
                | DataType::Date32
                | DataType::Date64
                | DataType::Interval(_)
                | DataType::Duration(_)
                | DataType::Null,
                _,
            ] => Ok(DataType::Utf8),
            [number, _] if is_number(number) => Ok(DataType::Utf8),
            [other, _] => Err(refused(
                "42883",
                format!(
                    "to_char takes a time or an interval and a pattern such as 'YYYY-MM-DD HH24:MI', or a \
                     number and a pattern such as 'FM999,990.00', not {other}"
                ),
            )),
            _ => internal_err!("to_char takes two arguments"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [times, patterns] = columns(&args)?;
        if is_number(times.data_type()) {
            return answer(&args, &numbers_to_char(&times, &patterns)?);
        }
        if matches!(
            times.data_type(),
            DataType::Interval(_) | DataType::Duration(_)
        ) {
            return answer(&args, &intervals_to_char(&times, &patterns)?);
        }
        let zone = match times.data_type() {
            DataType::Timestamp(_, zone) => zone.clone(),
            _ => None,
        };
        let patterns = cast(&patterns, &DataType::Utf8)?;
        let patterns = patterns.as_string::<i32>();
        let kind = DataType::Timestamp(TimeUnit::Nanosecond, zone.clone());
        let times = cast(&times, &kind)?;
        let times = times.as_primitive::<TimestampNanosecondType>();
        let has_zone = zone.is_some();
        let zone = match zone {
            Some(name) => {
                session_zone(&name)
                    .map_err(|error| refused("22023", error.to_string()))?
                    .1
            }
            None => TimeZone::UTC,
        };
        let mut out = StringBuilder::with_capacity(times.len(), 24 * times.len());
        let mut last: Option<(&str, ToCharPattern)> = None;
        for row in 0..times.len() {
            // PostgreSQL returns NULL for an empty pattern, too.
            if times.is_null(row) || patterns.is_null(row) || patterns.value(row).is_empty() {
                out.append_null();
                continue;
            }
            let text = patterns.value(row);
            let pattern = match &last {
                Some((known, pattern)) if *known == text => pattern,
                _ => &last.insert((text, ToCharPattern::parse(text))).1,
            };
            let time = Timestamp::from_nanosecond(i128::from(times.value(row)))
                .map_err(|error| refused("22008", error.to_string()))?;
            let time = time.to_zoned(zone.clone());
            out.append_value(match pattern {
                ToCharPattern::Postgres(pattern) => time_to_char(&time, pattern, has_zone),
                ToCharPattern::Strftime(pattern) => jiff::fmt::strtime::format(pattern, &time)
                    .map_err(|error| refused("22007", format!("'{text}': {error}")))?,
            });
        }
        answer(&args, &out.finish())
    }
}

/// Intervals as text, each with its pattern.
fn intervals_to_char(intervals: &ArrayRef, patterns: &ArrayRef) -> Result<StringArray> {
    let intervals = as_intervals(intervals)?;
    let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
    let patterns = cast(patterns, &DataType::Utf8)?;
    let mut out = StringBuilder::new();
    let mut last: Option<(&str, TimePattern)> = None;
    for (interval, text) in intervals.iter().zip(patterns.as_string::<i32>()) {
        let (Some(interval), Some(text)) = (interval, text.filter(|text| !text.is_empty())) else {
            out.append_null();
            continue;
        };
        let pattern = match &last {
            Some((known, pattern)) if *known == text => pattern,
            _ => &last.insert((text, TimePattern::parse(text))).1,
        };
        let parts = PatternInterval {
            months: interval.months,
            days: interval.days,
            nanoseconds: interval.nanoseconds,
        };
        let written = interval_to_char(parts, pattern);
        out.append_value(written.map_err(|error| refused("22007", error.to_string()))?);
    }
    Ok(out.finish())
}

fn is_number(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, value) => value.is_numeric(),
        other => other.is_numeric(),
    }
}

/// Numbers as text, each with its pattern.
fn numbers_to_char(numbers: &ArrayRef, patterns: &ArrayRef) -> Result<StringArray> {
    /// The digits of a `real` and of a `double precision`.
    const FLOAT_DIGITS: usize = 6;
    const DOUBLE_DIGITS: usize = 15;
    let patterns = cast(patterns, &DataType::Utf8)?;
    let patterns = patterns.as_string::<i32>();
    let texts = cast(numbers, &DataType::Utf8)?;
    let texts = texts.as_string::<i32>();
    let (doubles, floats) = (
        numbers.as_primitive_opt::<Float64Type>(),
        numbers.as_primitive_opt::<Float32Type>(),
    );
    let mut out = StringBuilder::with_capacity(numbers.len(), 12 * numbers.len());
    let mut last: Option<(&str, NumberPattern)> = None;
    for row in 0..numbers.len() {
        if texts.is_null(row) || patterns.is_null(row) {
            out.append_null();
            continue;
        }
        let text = patterns.value(row);
        if last.as_ref().is_none_or(|(known, _)| *known != text) {
            let pattern = NumberPattern::parse(text)
                .map_err(|error| refused("42601", format!("'{text}': {error}")))?;
            last = Some((text, pattern));
        }
        let number = match (doubles, floats) {
            (Some(doubles), _) => PatternNumber::Float(doubles.value(row), DOUBLE_DIGITS),
            (_, Some(floats)) => PatternNumber::Float(floats.value(row).into(), FLOAT_DIGITS),
            _ => PatternNumber::Exact(texts.value(row)),
        };
        out.append_option(last.as_ref().map(|(_, pattern)| pattern.format(number)));
    }
    Ok(out.finish())
}

/// See [`TIME_FROM_PATTERN`].
#[derive(Debug, PartialEq, Eq, Hash)]
struct TimeFromPattern {
    signature: Signature,
}

impl ScalarUDFImpl for TimeFromPattern {
    fn name(&self) -> &'static str {
        TIME_FROM_PATTERN
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(TIME)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_one = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Scalar(_));
        let all_one = args.args.iter().all(is_one);
        let [texts, patterns] = columns(&args)?;
        let (texts, patterns) = (
            cast(&texts, &DataType::Utf8)?,
            cast(&patterns, &DataType::Utf8)?,
        );
        let (texts, patterns) = (texts.as_string::<i32>(), patterns.as_string::<i32>());
        let mut out = Vec::with_capacity(texts.len());
        let mut last: Option<(&str, TimePattern)> = None;
        for (text, written) in texts.iter().zip(patterns) {
            let (Some(text), Some(written)) = (text, written) else {
                out.push(None);
                continue;
            };
            let pattern = match &last {
                Some((known, pattern)) if *known == written => pattern,
                _ => &last.insert((written, TimePattern::parse(written))).1,
            };
            let read = time_from_pattern(text, pattern)
                .map_err(|error| refused(error.sqlstate(), error.to_string()))?;
            let out_of_range = || {
                let message = format!("'{text}' is out of range: times go from 1677 to 2262");
                refused("22008", message)
            };
            let utc = read
                .civil
                .to_zoned(TimeZone::UTC)
                .map_err(|_| out_of_range())?;
            let offset_ns = i128::from(read.offset.unwrap_or(0)) * 1_000_000_000;
            let ns = utc.timestamp().as_nanosecond() - offset_ns;
            out.push(Some(i64::try_from(ns).map_err(|_| out_of_range())?));
        }
        let times = TimestampNanosecondArray::from(out);
        if all_one {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(
                &times, 0,
            )?));
        }
        Ok(ColumnarValue::Array(Arc::new(times)))
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct SimilarToRegex {
    signature: Signature,
}

impl ScalarUDFImpl for SimilarToRegex {
    fn name(&self) -> &'static str {
        SIMILAR_TO_REGEX
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [patterns, escapes] = columns(&args)?;
        let patterns = cast(&patterns, &DataType::Utf8)?;
        let escapes = cast(&escapes, &DataType::Utf8)?;
        let (patterns, escapes) = (patterns.as_string::<i32>(), escapes.as_string::<i32>());
        let mut out = StringBuilder::new();
        for row in 0..patterns.len() {
            if patterns.is_null(row) || escapes.is_null(row) {
                out.append_null();
                continue;
            }
            let mut escape = escapes.value(row).chars();
            let (escape, more) = (escape.next(), escape.next());
            if more.is_some() {
                let message = "ESCAPE takes one character, or '' for none".to_owned();
                return Err(refused("22019", message));
            }
            let regex = similar_to_regex(patterns.value(row), escape)
                .map_err(|error| refused("2201B", error.to_string()))?;
            out.append_value(regex);
        }
        answer(&args, &out.finish())
    }
}
