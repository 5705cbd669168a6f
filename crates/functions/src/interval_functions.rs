//! PostgreSQL's functions that make intervals and times: `age`, `make_interval`, `make_timestamp`,
//! `justify_days`, `justify_hours`, `justify_interval`.

use super::arguments::TIME;
use crate::refusal::refused;
use crate::value_casts::as_intervals;
use crate::zoned::zoned_type;
use arrow::array::{Array, ArrayRef, AsArray, IntervalMonthDayNanoArray, TimestampNanosecondArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Float64Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
    TimeUnit, TimestampNanosecondType,
};
use datafusion::common::{DataFusionError, Result, ScalarValue, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};
use jiff::civil::{Date, DateTime};
use std::sync::Arc;

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
const DAY_NS: i64 = 86_400_000_000_000;
/// The days of a month when a month must have a length.
const MONTH_DAYS: i32 = 30;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum IntervalFunction {
    Age,
    MakeInterval,
    MakeTimestamp,
    JustifyDays,
    JustifyHours,
    JustifyInterval,
}

/// See the module documentation.
#[derive(Debug, PartialEq, Eq, Hash)]
struct IntervalUdf {
    function: IntervalFunction,
    signature: Signature,
}

/// The functions.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    use IntervalFunction::{
        Age, JustifyDays, JustifyHours, JustifyInterval, MakeInterval, MakeTimestamp,
    };
    let whole = |count: usize| vec![DataType::Int64; count];
    let with_seconds = |count| {
        let mut types = whole(count);
        types.push(DataType::Float64);
        TypeSignature::Coercible(types.into_iter().map(coercion).collect())
    };
    let makes = (1..=6)
        .map(|count| TypeSignature::Coercible(whole(count).into_iter().map(coercion).collect()));
    let makes = makes.chain([with_seconds(6)]).collect();
    [
        (Age, times()),
        (MakeInterval, TypeSignature::OneOf(makes)),
        (MakeTimestamp, with_seconds(5)),
        (JustifyDays, lengths()),
        (JustifyHours, lengths()),
        (JustifyInterval, lengths()),
    ]
    .into_iter()
    .map(|(function, kind)| {
        ScalarUDF::from(IntervalUdf {
            function,
            signature: Signature::new(kind, Volatility::Immutable),
        })
    })
    .collect()
}

/// Two times, each with or without a zone.
fn times() -> TypeSignature {
    let kinds = [TIME, zoned_type()];
    let pairs = kinds.iter().flat_map(|end| {
        let pair = move |start: &DataType| TypeSignature::Exact(vec![end.clone(), start.clone()]);
        kinds.iter().map(pair)
    });
    TypeSignature::OneOf(pairs.collect())
}

/// An interval, or a difference of times.
fn lengths() -> TypeSignature {
    let units = [
        TimeUnit::Nanosecond,
        TimeUnit::Microsecond,
        TimeUnit::Millisecond,
        TimeUnit::Second,
    ];
    let differences = units.map(DataType::Duration);
    let kinds = [INTERVAL].into_iter().chain(differences);
    TypeSignature::OneOf(kinds.map(|kind| TypeSignature::Exact(vec![kind])).collect())
}

/// Accepts numbers of every type and casts them to this one.
fn coercion(kind: DataType) -> datafusion::logical_expr::Coercion {
    use datafusion::common::types::{NativeType, logical_float64, logical_int64};
    use datafusion::logical_expr::{Coercion, TypeSignatureClass};
    let (desired, native) = match kind {
        DataType::Float64 => (logical_float64(), NativeType::Float64),
        _ => (logical_int64(), NativeType::Int64),
    };
    Coercion::new_implicit(
        TypeSignatureClass::Native(desired),
        vec![TypeSignatureClass::Numeric],
        native,
    )
}

fn out_of_range() -> DataFusionError {
    refused("22008", "interval out of range".to_owned())
}

impl ScalarUDFImpl for IntervalUdf {
    fn name(&self) -> &'static str {
        match self.function {
            IntervalFunction::Age => "age",
            IntervalFunction::MakeInterval => "make_interval",
            IntervalFunction::MakeTimestamp => "make_timestamp",
            IntervalFunction::JustifyDays => "justify_days",
            IntervalFunction::JustifyHours => "justify_hours",
            IntervalFunction::JustifyInterval => "justify_interval",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.function {
            IntervalFunction::MakeTimestamp => TIME,
            _ => INTERVAL,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_one = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Scalar(_));
        let all_one = args.args.iter().all(is_one);
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let out: ArrayRef = match (self.function, &arrays[..]) {
            (IntervalFunction::Age, [end, start]) => {
                let (end, start) = (cast(end, &TIME)?, cast(start, &TIME)?);
                let end = end.as_primitive::<TimestampNanosecondType>().iter();
                let start = start.as_primitive::<TimestampNanosecondType>().iter();
                let ages = end.zip(start).map(|pair| match pair {
                    (Some(end), Some(start)) => age(end, start).map(Some),
                    _ => Ok(None),
                });
                Arc::new(IntervalMonthDayNanoArray::from(
                    ages.collect::<Result<Vec<_>>>()?,
                ))
            }
            (IntervalFunction::MakeInterval, parts) => Arc::new(IntervalMonthDayNanoArray::from(
                rows_of(parts, 6, make_interval)?,
            )),
            (IntervalFunction::MakeTimestamp, parts) => Arc::new(TimestampNanosecondArray::from(
                rows_of(parts, 5, make_timestamp)?,
            )),
            (_, [intervals]) => {
                let intervals = as_intervals(intervals)?;
                let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>().iter();
                let justified = intervals.map(|interval| {
                    let justified = interval.map(|interval| justify(self.function, interval));
                    justified.transpose()
                });
                Arc::new(IntervalMonthDayNanoArray::from(
                    justified.collect::<Result<Vec<_>>>()?,
                ))
            }
            _ => return internal_err!("{}: the wrong number of arguments", self.name()),
        };
        Ok(if all_one {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&out, 0)?)
        } else {
            ColumnarValue::Array(out)
        })
    }
}

/// Makes a value from the numbers of each row: `whole` whole numbers, followed by seconds. The
/// value is null if a number is.
fn rows_of<T>(
    parts: &[ArrayRef],
    whole: usize,
    make: impl Fn(&[i64], f64) -> Result<T>,
) -> Result<Vec<Option<T>>> {
    let (numbers, seconds) = parts.split_at(whole.min(parts.len()));
    let numbers = numbers.iter().map(|part| cast(part, &DataType::Int64));
    let numbers = numbers.collect::<Result<Vec<_>, _>>()?;
    let seconds = seconds.first().map(|part| cast(part, &DataType::Float64));
    let seconds = seconds.transpose()?;
    let rows = numbers.first().map_or(0, Array::len);
    let mut out = Vec::with_capacity(rows);
    let mut given = Vec::with_capacity(whole);
    for row in 0..rows {
        given.clear();
        for part in &numbers {
            let part = part.as_primitive::<Int64Type>();
            if part.is_valid(row) {
                given.push(part.value(row));
            }
        }
        let seconds = match &seconds {
            None => Some(0.0),
            Some(seconds) => {
                let seconds = seconds.as_primitive::<Float64Type>();
                seconds.is_valid(row).then(|| seconds.value(row))
            }
        };
        out.push(match seconds {
            Some(seconds) if given.len() == numbers.len() => Some(make(&given, seconds)?),
            _ => None,
        });
    }
    Ok(out)
}

/// Seconds in nanoseconds, exact to the microsecond as in PostgreSQL.
fn seconds_ns(seconds: f64) -> Option<i64> {
    let us = (seconds * 1e6).round();
    (us.abs() < 9.2e15).then(|| us as i64 * 1000)
}

/// Makes an interval from years, months, weeks, days, hours, minutes and seconds; trailing parts
/// may be missing.
fn make_interval(parts: &[i64], seconds: f64) -> Result<IntervalMonthDayNano> {
    let part = |at: usize| i128::from(parts.get(at).copied().unwrap_or(0));
    let months = part(0) * 12 + part(1);
    let days = part(2) * 7 + part(3);
    let clock = (part(4) * 3600 + part(5) * 60) * 1_000_000_000;
    let nanos = seconds_ns(seconds).map(|ns| clock + i128::from(ns));
    let fits = (
        i32::try_from(months),
        i32::try_from(days),
        nanos.map(i64::try_from),
    );
    match fits {
        (Ok(months), Ok(days), Some(Ok(nanoseconds))) => Ok(IntervalMonthDayNano {
            months,
            days,
            nanoseconds,
        }),
        _ => Err(out_of_range()),
    }
}

/// Makes a time from year, month, day, hour, minute and seconds.
fn make_timestamp(parts: &[i64], seconds: f64) -> Result<i64> {
    let [year, month, day, hour, minute] = *parts else {
        return internal_err!("make_timestamp takes six arguments");
    };
    let wrong = || {
        refused(
            "22008",
            format!(
                "date/time field value out of range: {year}-{month:02}-{day:02} \
                 {hour:02}:{minute:02}:{seconds}"
            ),
        )
    };
    let field = |number: i64| i8::try_from(number).map_err(|_| wrong());
    let year = i16::try_from(year).map_err(|_| wrong())?;
    let date = Date::new(year, field(month)?, field(day)?).map_err(|_| wrong())?;
    let midnight = date.at(field(hour)?, field(minute)?, 0, 0);
    if !(0..24).contains(&hour) || !(0..60).contains(&minute) || !(0.0..=60.0).contains(&seconds) {
        return Err(wrong());
    }
    let zoned = midnight
        .to_zoned(jiff::tz::TimeZone::UTC)
        .map_err(|_| wrong())?;
    let ns = zoned.timestamp().as_nanosecond();
    let seconds = seconds_ns(seconds).ok_or_else(wrong)?;
    i64::try_from(ns + i128::from(seconds)).map_err(|_| wrong())
}

fn civil(ns: i64) -> DateTime {
    let time = jiff::Timestamp::from_nanosecond(i128::from(ns));
    let time = time.unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    time.to_zoned(jiff::tz::TimeZone::UTC).datetime()
}

/// The difference of two times in years, months, days and time, field by field, like PostgreSQL's
/// `timestamp_age`.
fn age(end: i64, start: i64) -> Result<IntervalMonthDayNano> {
    let (one, two) = (civil(end), civil(start));
    let sign = if end < start { -1_i64 } else { 1 };
    let clock = |time: DateTime| {
        let seconds = i64::from(time.hour()) * 3600
            + i64::from(time.minute()) * 60
            + i64::from(time.second());
        seconds * 1_000_000_000 + i64::from(time.subsec_nanosecond())
    };
    let mut nanos = sign * (clock(one) - clock(two));
    let mut days = sign * (i64::from(one.day()) - i64::from(two.day()));
    let mut months = sign * (i64::from(one.month()) - i64::from(two.month()));
    let mut years = sign * (i64::from(one.year()) - i64::from(two.year()));
    if nanos < 0 {
        nanos += DAY_NS;
        days -= 1;
    }
    while days < 0 {
        // Use the days of the earlier time's month.
        let earlier = if sign < 0 { one } else { two };
        days += i64::from(earlier.date().days_in_month());
        months -= 1;
    }
    while months < 0 {
        months += 12;
        years -= 1;
    }
    let all_months = i32::try_from(sign * (years * 12 + months)).map_err(|_| out_of_range())?;
    Ok(IntervalMonthDayNano {
        months: all_months,
        days: i32::try_from(sign * days).map_err(|_| out_of_range())?,
        nanoseconds: sign * nanos,
    })
}

fn justify(
    function: IntervalFunction,
    interval: IntervalMonthDayNano,
) -> Result<IntervalMonthDayNano> {
    let (mut months, mut days, mut nanos) = (
        i64::from(interval.months),
        i64::from(interval.days),
        interval.nanoseconds,
    );
    let hours_to_days = |days: &mut i64, nanos: &mut i64| {
        *days += *nanos / DAY_NS;
        *nanos %= DAY_NS;
        if *days > 0 && *nanos < 0 {
            (*days, *nanos) = (*days - 1, *nanos + DAY_NS);
        } else if *days < 0 && *nanos > 0 {
            (*days, *nanos) = (*days + 1, *nanos - DAY_NS);
        }
    };
    let days_to_months = |months: &mut i64, days: &mut i64| {
        let of_month = i64::from(MONTH_DAYS);
        *months += *days / of_month;
        *days %= of_month;
        if *months > 0 && *days < 0 {
            (*months, *days) = (*months - 1, *days + of_month);
        } else if *months < 0 && *days > 0 {
            (*months, *days) = (*months + 1, *days - of_month);
        }
    };
    match function {
        IntervalFunction::JustifyHours => hours_to_days(&mut days, &mut nanos),
        IntervalFunction::JustifyDays => days_to_months(&mut months, &mut days),
        _ => {
            // Like PostgreSQL's interval_justify_interval, give all parts the same sign.
            days += nanos / DAY_NS;
            nanos %= DAY_NS;
            let of_month = i64::from(MONTH_DAYS);
            months += days / of_month;
            days %= of_month;
            if months > 0 && (days < 0 || (days == 0 && nanos < 0)) {
                (months, days) = (months - 1, days + of_month);
            } else if months < 0 && (days > 0 || (days == 0 && nanos > 0)) {
                (months, days) = (months + 1, days - of_month);
            }
            if days > 0 && nanos < 0 {
                (days, nanos) = (days - 1, nanos + DAY_NS);
            } else if days < 0 && nanos > 0 {
                (days, nanos) = (days + 1, nanos - DAY_NS);
            }
        }
    }
    match (i32::try_from(months), i32::try_from(days)) {
        (Ok(months), Ok(days)) => Ok(IntervalMonthDayNano {
            months,
            days,
            nanoseconds: nanos,
        }),
        _ => Err(out_of_range()),
    }
}
