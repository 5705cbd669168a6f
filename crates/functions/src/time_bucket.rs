//! `time_bucket(width, time [, origin] [, offset] [, zone])`, with the last three in any order: a
//! timestamp is the origin, an interval is the offset, and a text is whichever it can be read as. The
//! buckets of dates are dates, and those of whole numbers are whole numbers.

use super::bucket::TimeBuckets;
use crate::duration::{CalendarInterval, parse_interval};
use crate::time_zones::find_zone;
use arrow::array::{Array, ArrayRef, AsArray, Date32Array, Int64Array, TimestampNanosecondArray};
use arrow::compute::kernels::cast_utils::string_to_timestamp_nanos;
use arrow::datatypes::{
    DataType, Date32Type, Int64Type, IntervalMonthDayNano, IntervalUnit, TimeUnit,
};
use chrono_tz::Tz;
use datafusion::common::cast::as_timestamp_nanosecond_array;
use datafusion::common::{DataFusionError, Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use marigram_model::DAY_NS;
use std::sync::Arc;

const USAGE: &str = "a width and a time, and where its buckets begin: \
                     time_bucket(width, time [, origin] [, offset] [, zone])";

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct TimeBucket {
    signature: Signature,
}

impl TimeBucket {
    /// The function.
    pub(crate) fn new() -> Self {
        Self {
            signature: Signature::user_defined(Volatility::Immutable),
        }
    }
}

fn is_text(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    )
}

fn nanoseconds(zone: Option<Arc<str>>) -> DataType {
    DataType::Timestamp(TimeUnit::Nanosecond, zone)
}

impl ScalarUDFImpl for TimeBucket {
    fn name(&self) -> &'static str {
        "time_bucket"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [width, time, places @ ..] = types else {
            return plan_err!("time_bucket takes {USAGE}");
        };
        if places.len() > 3 {
            return plan_err!("time_bucket takes {USAGE}");
        }
        if width.is_integer() && time.is_integer() {
            return integers(places);
        }
        let width = match width {
            DataType::Interval(_) | DataType::Duration(_) | DataType::Null => {
                DataType::Interval(IntervalUnit::MonthDayNano)
            }
            text if is_text(text) => DataType::Utf8,
            other => {
                return plan_err!(
                    "time_bucket: the width has the type {other}; write INTERVAL '10 minutes' or '10m'"
                );
            }
        };
        let time = match time {
            DataType::Timestamp(_, zone) => nanoseconds(zone.clone()),
            DataType::Date32 | DataType::Date64 => DataType::Date32,
            DataType::Null => nanoseconds(None),
            text if is_text(text) => nanoseconds(None),
            other => {
                return plan_err!("time_bucket: the time has the type {other}, not a timestamp");
            }
        };
        let mut coerced = vec![width, time.clone()];
        for place in places {
            coerced.push(match place {
                // A moment stays one; the origin of moments is one, in the session's zone.
                DataType::Timestamp(_, zone @ Some(_)) => nanoseconds(zone.clone()),
                DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => match &time {
                    zoned @ DataType::Timestamp(_, Some(_)) => zoned.clone(),
                    _ => nanoseconds(None),
                },
                DataType::Interval(_) | DataType::Duration(_) => {
                    DataType::Interval(IntervalUnit::MonthDayNano)
                }
                text if is_text(text) => DataType::Utf8,
                other => {
                    return plan_err!(
                        "time_bucket: an argument has the type {other}; after the time there may \
                         be an origin (a timestamp), an offset (an interval) and a time zone (text)"
                    );
                }
            });
        }
        Ok(coerced)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types.get(1) {
            Some(time @ (DataType::Timestamp(..) | DataType::Date32 | DataType::Int64)) => {
                Ok(time.clone())
            }
            _ => Ok(nanoseconds(None)),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(width) = scalar(&args.args[0], "the width")? else {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from(
                args.return_type(),
            )?));
        };
        let mut places = Vec::new();
        for place in &args.args[2..] {
            let Some(place) = scalar(place, "the origin, offset or time zone")? else {
                return Ok(ColumnarValue::Scalar(ScalarValue::try_from(
                    args.return_type(),
                )?));
            };
            places.push(place);
        }
        if let ScalarValue::Int64(Some(width)) = width {
            return whole_numbers(&args.args[1], width, places.first());
        }
        let mut buckets = buckets(&width, &places)?;
        let mut floor = |time: i64| {
            buckets
                .floor(time)
                .map_err(|reason| DataFusionError::Execution(format!("time_bucket: {reason}")))
        };
        match &args.args[1] {
            ColumnarValue::Scalar(ScalarValue::TimestampNanosecond(time, zone)) => {
                let start = time.map(&mut floor).transpose()?;
                Ok(ColumnarValue::Scalar(ScalarValue::TimestampNanosecond(
                    start,
                    zone.clone(),
                )))
            }
            ColumnarValue::Scalar(ScalarValue::Date32(date)) => {
                let date = date.map(|date| floor_date(date, &mut floor)).transpose()?;
                Ok(ColumnarValue::Scalar(ScalarValue::Date32(date)))
            }
            ColumnarValue::Scalar(other) => exec_err!("time_bucket: {other} is not a time"),
            ColumnarValue::Array(dates) if *dates.data_type() == DataType::Date32 => {
                let dates = dates.as_primitive::<Date32Type>();
                let floored = dates
                    .iter()
                    .map(|date| date.map(|date| floor_date(date, &mut floor)).transpose());
                let floored: Date32Array = floored.collect::<Result<_>>()?;
                Ok(ColumnarValue::Array(Arc::new(floored)))
            }
            ColumnarValue::Array(times) => {
                let times = as_timestamp_nanosecond_array(times)?;
                Ok(ColumnarValue::Array(floor_all(times, floor)?))
            }
        }
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        let others = inputs.iter().enumerate().filter(|(at, _)| *at != 1);
        let fixed = others.map(|(_, input)| input.sort_properties);
        if inputs.len() > 1 && fixed.into_iter().all(|p| p == SortProperties::Singleton) {
            return Ok(inputs[1].sort_properties);
        }
        Ok(SortProperties::Unordered)
    }
}

/// The arguments of buckets of whole numbers, which may have an offset.
fn integers(places: &[DataType]) -> Result<Vec<DataType>> {
    if places.len() > 1 || !places.iter().all(DataType::is_integer) {
        return plan_err!(
            "time_bucket of whole numbers takes a width, a number, and an offset: \
             time_bucket(width, number [, offset])"
        );
    }
    Ok(vec![DataType::Int64; 2 + places.len()])
}

/// The first numbers of buckets of whole numbers.
fn whole_numbers(
    numbers: &ColumnarValue,
    width: i64,
    offset: Option<&ScalarValue>,
) -> Result<ColumnarValue> {
    if width <= 0 {
        return exec_err!("time_bucket: the width must be positive, not {width}");
    }
    let offset = match offset {
        Some(ScalarValue::Int64(Some(offset))) => offset.rem_euclid(width),
        _ => 0,
    };
    let floor = |number: i64| {
        let shifted = number.checked_sub(offset);
        let floored = shifted.and_then(|shifted| shifted.checked_sub(shifted.rem_euclid(width)));
        match floored.and_then(|floored| floored.checked_add(offset)) {
            Some(start) => Ok(start),
            None => exec_err!("time_bucket: the bucket of {number} begins before all numbers"),
        }
    };
    match numbers {
        ColumnarValue::Scalar(ScalarValue::Int64(number)) => {
            let start = number.map(floor).transpose()?;
            Ok(ColumnarValue::Scalar(ScalarValue::Int64(start)))
        }
        ColumnarValue::Scalar(other) => exec_err!("time_bucket: {other} is not a whole number"),
        ColumnarValue::Array(numbers) => {
            let numbers = numbers.as_primitive::<Int64Type>().iter();
            let starts = numbers.map(|number| number.map(floor).transpose());
            let starts: Int64Array = starts.collect::<Result<_>>()?;
            Ok(ColumnarValue::Array(Arc::new(starts)))
        }
    }
}

/// The day on which the bucket of a day begins.
fn floor_date(date: i32, floor: &mut impl FnMut(i64) -> Result<i64>) -> Result<i32> {
    let Some(ns) = i64::from(date).checked_mul(DAY_NS) else {
        return exec_err!("time_bucket: the date is out of range");
    };
    // The days of times that fit into 64 bits of ns fit into 32 bits.
    Ok(floor(ns)?.div_euclid(DAY_NS) as i32)
}

fn floor_all(
    times: &TimestampNanosecondArray,
    mut floor: impl FnMut(i64) -> Result<i64>,
) -> Result<ArrayRef> {
    let mut starts = Vec::with_capacity(times.len());
    for (row, time) in times.values().iter().enumerate() {
        // The slot of a null does not hold a time.
        starts.push(if times.is_null(row) { 0 } else { floor(*time)? });
    }
    let starts = TimestampNanosecondArray::new(starts.into(), times.nulls().cloned());
    Ok(Arc::new(starts.with_data_type(times.data_type().clone())))
}

/// An argument that is the same for all rows; `None` if it is null.
fn scalar(argument: &ColumnarValue, what: &str) -> Result<Option<ScalarValue>> {
    let value = match argument {
        ColumnarValue::Scalar(value) => value.clone(),
        ColumnarValue::Array(array) if array.len() == 1 => ScalarValue::try_from_array(array, 0)?,
        ColumnarValue::Array(array) => {
            let first = array.slice(0, array.len().min(1));
            let same = (1..array.len()).all(|row| {
                array.slice(row, 1).to_data() == first.to_data()
                    || text_at(array, row).is_some_and(|text| text_at(array, 0) == Some(text))
            });
            if !same || array.is_empty() {
                return exec_err!("time_bucket: {what} must be the same for all rows");
            }
            ScalarValue::try_from_array(array, 0)?
        }
    };
    Ok((!value.is_null()).then_some(value))
}

fn text_at(array: &ArrayRef, row: usize) -> Option<&str> {
    let texts = array.as_string_opt::<i32>()?;
    texts.is_valid(row).then(|| texts.value(row))
}

/// The buckets defined by a width, and by an origin, an offset and a zone in any order.
///
/// # Errors
/// If an argument is null or cannot be read.
pub fn buckets(width: &ScalarValue, places: &[ScalarValue]) -> Result<TimeBuckets> {
    let wrong = |reason: String| DataFusionError::Execution(format!("time_bucket: {reason}"));
    let width = match width {
        ScalarValue::IntervalMonthDayNano(Some(value)) => interval(*value),
        ScalarValue::Utf8(Some(text)) => parse_interval(text).map_err(wrong)?,
        other => return exec_err!("time_bucket: {other} is not a width"),
    };
    let (mut origin, mut offset, mut zone) = (None, None, None);
    for place in places {
        let twice = match BucketAnchor::from_scalar(place)? {
            BucketAnchor::Origin(time) => origin.replace(time).map(|_| "origins"),
            BucketAnchor::Offset(interval) => offset.replace(interval).map(|_| "offsets"),
            BucketAnchor::Zone(tz) => zone.replace(tz).map(|_| "time zones"),
        };
        if let Some(twice) = twice {
            return exec_err!("time_bucket: there are two {twice}");
        }
    }
    let buckets = TimeBuckets::new(width, origin, zone).map_err(wrong)?;
    match offset {
        Some(offset) => buckets.with_offset(offset).map_err(wrong),
        None => Ok(buckets),
    }
}

fn interval(value: IntervalMonthDayNano) -> CalendarInterval {
    CalendarInterval {
        months: value.months,
        days: value.days,
        nanos: value.nanoseconds,
    }
}

/// An argument that says where buckets begin.
enum BucketAnchor {
    Origin(i64),
    Offset(CalendarInterval),
    Zone(Tz),
}

impl BucketAnchor {
    fn from_scalar(value: &ScalarValue) -> Result<Self> {
        match value {
            ScalarValue::TimestampNanosecond(Some(origin), _) => Ok(Self::Origin(*origin)),
            ScalarValue::IntervalMonthDayNano(Some(value)) => Ok(Self::Offset(interval(*value))),
            ScalarValue::Utf8(Some(text)) => Self::from_text(text),
            other => exec_err!("time_bucket: {other} is not an origin, offset or time zone"),
        }
    }

    fn from_text(text: &str) -> Result<Self> {
        if let Some(zone) = find_zone(text) {
            return Ok(Self::Zone(zone));
        }
        if text.starts_with(|c: char| c.is_ascii_digit())
            && let Ok(origin) = string_to_timestamp_nanos(text)
        {
            return Ok(Self::Origin(origin));
        }
        if let Ok(offset) = parse_interval(text) {
            return Ok(Self::Offset(offset));
        }
        let zones = chrono_tz::TZ_VARIANTS.iter().map(|zone| zone.name());
        let hint = marigram_model::nearest(text, zones);
        let hint = hint
            .map(|near| format!("; did you mean '{near}'?"))
            .unwrap_or_default();
        let text = text.escape_debug();
        exec_err!(
            "time_bucket: '{text}' is neither a time zone nor a timestamp nor an interval{hint}"
        )
    }
}
