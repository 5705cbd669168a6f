//! Functions that use the clocks of a time zone.

use crate::TIME;
use crate::refused;
use crate::zoned::{UTC, zoned_type};
use arrow::array::{
    Array, ArrayRef, AsArray, Int32Array, PrimitiveArray, StringArray, TimestampNanosecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, IntervalMonthDayNanoType, IntervalUnit, TimeUnit, TimestampNanosecondType,
};
use datafusion::common::{DataFusionError, Result, ScalarValue, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use marigram_pgtext::{
    TimeTextError, TimeUnit as Unit, ZoneClock, named_zone, session_zone, zone_of_seconds,
};
use std::sync::Arc;

/// `timezone(zone, time)`, for which `AT TIME ZONE` is another notation.
pub const TIMEZONE: &str = "timezone";
/// `date_trunc(unit, time, zone)`.
pub const TRUNC_IN_ZONE: &str = "date_trunc_in_zone";

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

fn unknown(error: &TimeTextError) -> DataFusionError {
    refused("22023", error.to_string())
}

fn out_of_range() -> DataFusionError {
    refused(
        "22008",
        "the time is out of range: times range from the year 1677 to 2262",
    )
}

/// The functions that statements call by name.
pub fn functions() -> [ScalarUDF; 2] {
    [TIMEZONE, TRUNC_IN_ZONE].map(|name| {
        ScalarUDF::from(ExplicitZoneFunction {
            name,
            signature: Signature::user_defined(Volatility::Immutable),
        })
    })
}

/// A function that takes its zone as an argument.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ExplicitZoneFunction {
    name: &'static str,
    signature: Signature,
}

impl ExplicitZoneFunction {
    fn is_trunc(&self) -> bool {
        self.name == TRUNC_IN_ZONE
    }
}

fn is_text(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, value) => value.is_string(),
        other => other.is_string() || *other == DataType::Null,
    }
}

impl ScalarUDFImpl for ExplicitZoneFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let time = |kind: &DataType| match kind {
            DataType::Timestamp(_, None) if !self.is_trunc() => Some(TIME),
            DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => Some(zoned_type()),
            kind if is_text(kind) => Some(zoned_type()),
            _ => None,
        };
        let zone = |kind: &DataType| match kind {
            DataType::Interval(_) if !self.is_trunc() => Some(INTERVAL),
            kind if is_text(kind) => Some(DataType::Utf8),
            _ => None,
        };
        let coerced = match types {
            [first, second] if !self.is_trunc() => {
                zone(first).zip(time(second)).map(|(z, t)| vec![z, t])
            }
            [unit, second, third] if self.is_trunc() && is_text(unit) => time(second)
                .zip(zone(third))
                .map(|(t, z)| vec![DataType::Utf8, t, z]),
            _ => None,
        };
        coerced.ok_or_else(|| {
            let message = if self.is_trunc() {
                "date_trunc takes a unit, a time and a zone, such as \
                 date_trunc('day', t, 'Europe/Berlin')"
            } else {
                "AT TIME ZONE takes a timestamp and a zone, such as t AT TIME ZONE 'Europe/Berlin' \
                 or AT TIME ZONE INTERVAL '2 hours'"
            };
            refused("42883", message)
        })
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(match types {
            [_, DataType::Timestamp(_, None)] => zoned_type(),
            [_, _] => TIME,
            _ => zoned_type(),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_one = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Scalar(_));
        let all_one = args.args.iter().all(is_one);
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let (units, times, zones) = match &arrays[..] {
            [zones, times] => (None, times, zones),
            [units, times, zones] => (Some(units), times, zones),
            _ => return internal_err!("{} takes two arguments or three", self.name),
        };
        let is_zoned = matches!(times.data_type(), DataType::Timestamp(_, Some(_)));
        let values = times.as_primitive::<TimestampNanosecondType>();
        let mut clock: Option<(ZoneKey, ZoneClock)> = None;
        let mut out = Vec::with_capacity(values.len());
        for row in 0..values.len() {
            if values.is_null(row) || zones.is_null(row) {
                out.push(None);
                continue;
            }
            let key = ZoneKey::from_row(zones, row)?;
            let clock = match &mut clock {
                Some((known, clock)) if *known == key => clock,
                other => {
                    let zone = key.zone()?;
                    &mut other.insert((key, ZoneClock::new(zone))).1
                }
            };
            let time = values.value(row);
            let moved = match units {
                Some(units) if units.is_null(row) => {
                    out.push(None);
                    continue;
                }
                Some(units) => clock.truncated(time, unit(units.as_string::<i32>().value(row))?),
                None if is_zoned => clock.local_ns(time),
                None => clock.utc_ns(time),
            };
            out.push(Some(moved.ok_or_else(out_of_range)?));
        }
        let out = TimestampNanosecondArray::from(out);
        let gives_zoned = units.is_some() || !is_zoned;
        let out = out.with_timezone_opt(gives_zoned.then_some(UTC));
        scalar_or_array(&(Arc::new(out) as ArrayRef), all_one)
    }
}

fn scalar_or_array(values: &ArrayRef, is_one: bool) -> Result<ColumnarValue> {
    Ok(if is_one {
        ColumnarValue::Scalar(ScalarValue::try_from_array(values, 0)?)
    } else {
        ColumnarValue::Array(Arc::clone(values))
    })
}

fn unit(name: &str) -> Result<Unit> {
    Unit::named(name).ok_or_else(|| {
        let message = format!(
            "'{name}' is not a unit of time; units are microseconds, milliseconds, second, minute, \
             hour, day, week, month, quarter, year, decade, century and millennium"
        );
        refused("22023", message)
    })
}

/// The zone of a row.
#[derive(PartialEq)]
enum ZoneKey {
    Text(String),
    Seconds(i64),
}

impl ZoneKey {
    fn from_row(zones: &ArrayRef, row: usize) -> Result<Self> {
        if *zones.data_type() != INTERVAL {
            return Ok(Self::Text(zones.as_string::<i32>().value(row).to_owned()));
        }
        let interval = zones.as_primitive::<IntervalMonthDayNanoType>().value(row);
        if interval.months != 0 || interval.days != 0 {
            return Err(refused(
                "22023",
                "an interval that is used as a time zone cannot have months or days",
            ));
        }
        Ok(Self::Seconds(interval.nanoseconds / 1_000_000_000))
    }

    fn zone(&self) -> Result<jiff::tz::TimeZone> {
        match self {
            Self::Text(name) => named_zone(name),
            Self::Seconds(seconds) => zone_of_seconds(*seconds).map(|(_, zone)| zone),
        }
        .map_err(|error| unknown(&error))
    }
}

/// The operations that use the session's clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClockQuestion {
    /// The wall time at a time.
    Shown,
    /// The time at which the clocks show a wall time.
    Meant,
    /// A time as text.
    Text,
    /// The time at which a unit begins: `(unit, time)`.
    Truncated,
    /// A time plus an interval.
    Plus,
    /// A time minus an interval.
    Minus,
    /// The offset from UTC, s.
    Seconds,
    /// The whole hours of the offset.
    Hours,
    /// The remaining minutes of the offset.
    Minutes,
    /// The time with the zone in its type, for functions that read the zone there.
    Labelled,
}

/// A function of the session's zone.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct SessionZoneFunction {
    /// The operation.
    pub asked: ClockQuestion,
    zone: String,
    signature: Signature,
}

/// Creates a call of such a function.
pub fn ask(asked: ClockQuestion, zone: &str, args: Vec<Expr>) -> Expr {
    let function = SessionZoneFunction {
        asked,
        zone: zone.to_owned(),
        signature: Signature::any(args.len(), Volatility::Immutable),
    };
    Arc::new(ScalarUDF::from(function)).call(args)
}

/// Times in ns, whatever their unit and zone.
fn nanoseconds(times: &ArrayRef) -> Result<PrimitiveArray<TimestampNanosecondType>> {
    let times = match times.data_type() {
        DataType::Timestamp(TimeUnit::Nanosecond, _) => Arc::clone(times),
        DataType::Timestamp(_, zone) => cast(
            times,
            &DataType::Timestamp(TimeUnit::Nanosecond, zone.clone()),
        )?,
        _ => cast(times, &TIME)?,
    };
    Ok(times.as_primitive::<TimestampNanosecondType>().clone())
}

/// Maps times to other times, without a zone.
fn moved(
    times: &PrimitiveArray<TimestampNanosecondType>,
    mut to: impl FnMut(i64) -> Option<i64>,
) -> Result<TimestampNanosecondArray> {
    let mut out = Vec::with_capacity(times.len());
    for time in times {
        out.push(match time {
            Some(time) => Some(to(time).ok_or_else(out_of_range)?),
            None => None,
        });
    }
    Ok(TimestampNanosecondArray::from(out))
}

impl ScalarUDFImpl for SessionZoneFunction {
    fn name(&self) -> &'static str {
        match self.asked {
            ClockQuestion::Shown => "shown_in_zone",
            ClockQuestion::Meant => "meant_in_zone",
            ClockQuestion::Text => "text_in_zone",
            ClockQuestion::Truncated => "truncated_in_zone",
            ClockQuestion::Plus => "plus_in_zone",
            ClockQuestion::Minus => "minus_in_zone",
            ClockQuestion::Seconds => "zone_seconds",
            ClockQuestion::Hours => "zone_hours",
            ClockQuestion::Minutes => "zone_minutes",
            ClockQuestion::Labelled => "in_zone",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.asked {
            ClockQuestion::Shown => TIME,
            ClockQuestion::Meant
            | ClockQuestion::Truncated
            | ClockQuestion::Plus
            | ClockQuestion::Minus => zoned_type(),
            ClockQuestion::Text => DataType::Utf8,
            ClockQuestion::Seconds | ClockQuestion::Hours | ClockQuestion::Minutes => {
                DataType::Int32
            }
            ClockQuestion::Labelled => {
                DataType::Timestamp(TimeUnit::Nanosecond, Some(self.zone.as_str().into()))
            }
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_one = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Scalar(_));
        let all_one = args.args.iter().all(is_one);
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let (_, zone) = session_zone(&self.zone).map_err(|error| unknown(&error))?;
        let mut clock = ZoneClock::new(zone);
        let values: ArrayRef = match (self.asked, &arrays[..]) {
            (ClockQuestion::Truncated, [units, times]) => {
                let (units, times) = (cast(units, &DataType::Utf8)?, nanoseconds(times)?);
                let mut out = Vec::with_capacity(times.len());
                for (name, time) in units.as_string::<i32>().iter().zip(times.iter()) {
                    out.push(match (name, time) {
                        (Some(name), Some(time)) => {
                            let begin = clock.truncated(time, unit(name)?);
                            Some(begin.ok_or_else(out_of_range)?)
                        }
                        _ => None,
                    });
                }
                Arc::new(TimestampNanosecondArray::from(out).with_timezone(UTC))
            }
            (ClockQuestion::Plus | ClockQuestion::Minus, [times, intervals]) => {
                let (times, intervals) = (nanoseconds(times)?, cast(intervals, &INTERVAL)?);
                let sign = if self.asked == ClockQuestion::Plus {
                    1
                } else {
                    -1
                };
                let mut out = Vec::with_capacity(times.len());
                let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
                for (time, by) in times.iter().zip(intervals.iter()) {
                    let (Some(time), Some(by)) = (time, by) else {
                        out.push(None);
                        continue;
                    };
                    let moved = by.months.checked_mul(sign).and_then(|months| {
                        let days = by.days.checked_mul(sign)?;
                        let ns = by.nanoseconds.checked_mul(i64::from(sign))?;
                        clock.plus(time, months, days, ns)
                    });
                    out.push(Some(moved.ok_or_else(out_of_range)?));
                }
                Arc::new(TimestampNanosecondArray::from(out).with_timezone(UTC))
            }
            (ClockQuestion::Text, [times]) => {
                let mut out = Vec::with_capacity(times.len());
                for time in &nanoseconds(times)? {
                    out.push(match time {
                        Some(time) => Some(clock.text(time).ok_or_else(out_of_range)?),
                        None => None,
                    });
                }
                Arc::new(StringArray::from(out))
            }
            (ClockQuestion::Seconds | ClockQuestion::Hours | ClockQuestion::Minutes, [times]) => {
                let mut part = |time: i64| {
                    let seconds = (clock.offset_ns(time) / 1_000_000_000) as i32;
                    match self.asked {
                        ClockQuestion::Hours => seconds / 3600,
                        ClockQuestion::Minutes => seconds / 60 % 60,
                        _ => seconds,
                    }
                };
                let times = nanoseconds(times)?;
                let out = times.iter().map(|time| time.map(&mut part));
                Arc::new(out.collect::<Int32Array>())
            }
            (ClockQuestion::Labelled, [times]) => {
                Arc::new(nanoseconds(times)?.with_timezone(self.zone.as_str()))
            }
            (ClockQuestion::Shown, [times]) => {
                Arc::new(moved(&nanoseconds(times)?, |time| clock.local_ns(time))?)
            }
            (ClockQuestion::Meant, [times]) => {
                let out = moved(&nanoseconds(times)?, |time| clock.utc_ns(time))?;
                Arc::new(out.with_timezone(UTC))
            }
            _ => return internal_err!("{} has other arguments", self.name()),
        };
        scalar_or_array(&values, all_one)
    }
}
