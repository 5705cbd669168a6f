//! The evaluated arguments of a call.

use crate::dialect::hypertable_settings::{approximate_ns, partition_ns};
use crate::error::{SqlError, SqlResult};
use arrow::datatypes::{DataType, TimeUnit};
use chrono::{DateTime, Months, Utc};
use datafusion::common::ScalarValue;
use marigram_functions::duration::{CalendarInterval, parse_interval};
use marigram_model::DAY_NS;
use marigram_pgtext::{ReferenceClock, TimeText};

/// Nanoseconds of a microsecond, in which TimescaleDB counts intervals as numbers.
const MICROSECOND_NS: i64 = 1_000;
/// Days of a month in lengths of time that keep rows: none is dropped early.
const LONGEST_MONTH_DAYS: i64 = 31;

/// Now, and the zone of times that name none.
#[derive(Debug)]
pub(crate) struct ArgumentClock {
    now_ns: i64,
    reference: ReferenceClock,
}

impl ArgumentClock {
    /// A clock at a time (ns since 1970), with a zone by its name.
    ///
    /// # Errors
    /// If the zone is unknown.
    pub(crate) fn new(now_ns: i64, zone: &str) -> SqlResult<Self> {
        let reference = ReferenceClock::new(now_ns, zone)
            .map_err(|error| SqlError::invalid("22023", error.to_string()))?;
        Ok(Self { now_ns, reference })
    }
}

/// The values of arguments by their names.
#[derive(Debug, Default)]
pub(crate) struct CallArguments(pub Vec<(&'static str, ScalarValue)>);

impl CallArguments {
    /// The value of an argument that is given and not NULL.
    fn get(&self, name: &str) -> Option<&ScalarValue> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found
            .map(|(_, value)| value)
            .filter(|value| !value.is_null())
    }

    /// Whether an argument is given and not NULL.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// A text.
    ///
    /// # Errors
    /// If the argument is something else.
    pub(crate) fn text(&self, name: &str) -> SqlResult<Option<String>> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        match value.try_as_str() {
            Some(text) => Ok(text.map(str::to_owned)),
            None => Err(wrong(name, "a text", value)),
        }
    }

    /// Whether something is to be so; `false` if it is not given.
    ///
    /// # Errors
    /// If the argument is something else.
    pub(crate) fn flag(&self, name: &str) -> SqlResult<Option<bool>> {
        match self.get(name) {
            None => Ok(None),
            Some(ScalarValue::Boolean(flag)) => Ok(*flag),
            Some(value) => match value
                .try_as_str()
                .flatten()
                .map(str::to_lowercase)
                .as_deref()
            {
                Some("t" | "true" | "on" | "yes") => Ok(Some(true)),
                Some("f" | "false" | "off" | "no") => Ok(Some(false)),
                _ => Err(wrong(name, "true or false", value)),
            },
        }
    }

    /// A whole number.
    ///
    /// # Errors
    /// If the argument is something else.
    pub(crate) fn number(&self, name: &str) -> SqlResult<Option<i64>> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        match value.cast_to(&DataType::Int64) {
            Ok(ScalarValue::Int64(number)) if value.data_type().is_integer() => Ok(number),
            _ => Err(wrong(name, "a whole number", value)),
        }
    }

    /// An interval; numbers count microseconds.
    ///
    /// # Errors
    /// If the argument is something else.
    pub(crate) fn interval(&self, name: &str) -> SqlResult<Option<CalendarInterval>> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        interval_of(value)
            .map(Some)
            .ok_or_else(|| wrong(name, "an interval, as in INTERVAL '1 day'", value))
    }

    /// The width of a partition.
    ///
    /// # Errors
    /// If the argument is no positive length of time.
    pub(crate) fn partition_ns(&self, name: &str) -> SqlResult<Option<i64>> {
        let interval = self.interval(name)?;
        interval
            .map(|interval| partition_ns(name, interval))
            .transpose()
    }

    /// A length of time for which rows are kept, with the longest months.
    ///
    /// # Errors
    /// If the argument is no positive length of time.
    pub(crate) fn kept_ns(&self, name: &str) -> SqlResult<Option<i64>> {
        let Some(interval) = self.interval(name)? else {
            return Ok(None);
        };
        if self
            .get(name)
            .is_some_and(|value| value.data_type().is_integer())
        {
            let message =
                format!("{name} is an interval, as in INTERVAL '30 days'; a number has no unit");
            return Err(SqlError::named("22023", name, message));
        }
        let kept = approximate_ns(interval, LONGEST_MONTH_DAYS).filter(|ns| *ns > 0);
        let wrong = || {
            let message = format!("{name}: the interval is not a positive length of time");
            SqlError::named("22023", name, message)
        };
        kept.map(Some).ok_or_else(wrong)
    }

    /// A moment, or an interval before now. Times and texts without a zone have the clock's.
    ///
    /// # Errors
    /// If the argument is neither.
    pub(crate) fn moment(&self, name: &str, clock: &ArgumentClock) -> SqlResult<Option<i64>> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let nanoseconds = DataType::Timestamp(TimeUnit::Nanosecond, None);
        let text = match value.data_type() {
            DataType::Timestamp(_, Some(_)) => {
                if let ScalarValue::TimestampNanosecond(time, _) = value.cast_to(&nanoseconds)? {
                    return Ok(time);
                }
                None
            }
            DataType::Timestamp(_, None) | DataType::Date32 | DataType::Date64 => {
                Some(value.cast_to(&nanoseconds)?.cast_to(&DataType::Utf8)?)
            }
            _ => Some(value.clone()),
        };
        let text = text.as_ref().and_then(|text| text.try_as_str().flatten());
        let reference = &clock.reference;
        if let Some(text) = text
            && let Ok(time) = TimeText::parse(text, reference).and_then(|it| it.utc_ns(reference))
        {
            return Ok(Some(time));
        }
        let is_number = value.data_type().is_integer();
        let interval = interval_of(value).filter(|_| !is_number);
        match interval.and_then(|interval| before(clock.now_ns, interval)) {
            Some(time) => Ok(Some(time)),
            None => Err(wrong(
                name,
                "a time, or an interval before now, as in INTERVAL '3 months'",
                value,
            )),
        }
    }
}

fn wrong(name: &str, expected: &str, found: &ScalarValue) -> SqlError {
    let message = format!("{name} is {expected}, not {found}");
    SqlError::named("22023", name, message)
}

fn interval_of(value: &ScalarValue) -> Option<CalendarInterval> {
    match value {
        ScalarValue::IntervalMonthDayNano(Some(value)) => Some(CalendarInterval {
            months: value.months,
            days: value.days,
            nanos: value.nanoseconds,
        }),
        other if other.data_type().is_integer() => {
            let Ok(ScalarValue::Int64(Some(number))) = other.cast_to(&DataType::Int64) else {
                return None;
            };
            Some(CalendarInterval {
                months: 0,
                days: 0,
                nanos: number.checked_mul(MICROSECOND_NS)?,
            })
        }
        other => parse_interval(other.try_as_str()??).ok(),
    }
}

/// The moment that lies an interval before another one, with months of the calendar.
fn before(now_ns: i64, interval: CalendarInterval) -> Option<i64> {
    let now: DateTime<Utc> = DateTime::from_timestamp_nanos(now_ns);
    let months = Months::new(interval.months.unsigned_abs());
    let moved = if interval.months >= 0 {
        now.checked_sub_months(months)?
    } else {
        now.checked_add_months(months)?
    };
    let rest = i64::from(interval.days)
        .checked_mul(DAY_NS)?
        .checked_add(interval.nanos)?;
    moved.timestamp_nanos_opt()?.checked_sub(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_NS: i64 = DAY_NS / 24;

    fn interval(text: &str) -> ScalarValue {
        ScalarValue::Utf8(Some(text.to_owned()))
    }

    #[test]
    fn moments_are_times_or_lie_before_now() {
        let now_ns = 90 * DAY_NS;
        let arguments = CallArguments(vec![
            ("interval", interval("10 days")),
            ("month", interval("1 month")),
            ("time", interval("1970-01-02")),
            ("date", ScalarValue::Date32(Some(3))),
            ("number", ScalarValue::Int64(Some(1))),
            ("null", ScalarValue::Null),
        ]);
        let clock = ArgumentClock::new(now_ns, "UTC").unwrap();
        let moment = |name| arguments.moment(name, &clock);
        assert_eq!(moment("interval").unwrap(), Some(80 * DAY_NS));
        // From 1 April back to 1 March.
        assert_eq!(moment("month").unwrap(), Some(59 * DAY_NS));
        assert_eq!(moment("time").unwrap(), Some(DAY_NS));
        assert_eq!(moment("date").unwrap(), Some(3 * DAY_NS));
        assert_eq!(moment("null").unwrap(), None);
        assert!(moment("number").is_err());
        let berlin = ArgumentClock::new(now_ns, "Europe/Berlin").unwrap();
        let moment = |name| arguments.moment(name, &berlin).unwrap();
        assert_eq!(moment("time"), Some(23 * HOUR_NS));
        assert_eq!(moment("date"), Some(3 * DAY_NS - HOUR_NS));
        assert_eq!(moment("interval"), Some(80 * DAY_NS));
    }

    #[test]
    fn rows_are_never_kept_for_less_than_a_month() {
        let arguments = CallArguments(vec![
            ("month", interval("1 month")),
            ("zero", interval("0 days")),
            ("number", ScalarValue::Int64(Some(86_400_000_000))),
        ]);
        assert_eq!(arguments.kept_ns("month").unwrap(), Some(31 * DAY_NS));
        assert!(arguments.kept_ns("number").is_err());
        assert!(arguments.kept_ns("zero").is_err());
    }
}
