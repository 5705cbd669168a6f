//! Buckets of time: `1m-avg`, `1h-sum-nan`, `0all-count`, `1dc-max` with the calendar of a zone.
//!
//! A bucket without a calendar begins at a multiple of its length since 1970. With a calendar, seconds
//! to hours count from local midnight, days and months from the new year, weeks from Sunday.

use crate::aggregator::Aggregator;
use crate::error::QueryFault;
use crate::interval::{IntervalUnit, parse_interval};
use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

/// Bytes of the text of a downsampling: an answer may repeat it for each of its series.
const TEXT_BYTES_MAX: usize = 64;

/// What stands for a bucket without points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FillPolicy {
    /// Nothing: series without a point are interpolated.
    #[default]
    None,
    /// NaN.
    Nan,
    /// Nothing for the computation, `null` in the answer.
    Null,
    /// Zero.
    Zero,
}

/// The buckets.
#[derive(Clone, Debug, PartialEq)]
pub enum DownsampleInterval {
    /// One bucket for the range of the query, its end excluded.
    All,
    /// Buckets of this length, ms.
    Fixed(i64),
    /// Buckets of a calendar.
    Calendar(u32, IntervalUnit, TimeZone),
}

/// How a series is downsampled.
#[derive(Clone, Debug, PartialEq)]
pub struct Downsample {
    /// The buckets.
    pub interval: DownsampleInterval,
    /// What a bucket's values become.
    pub aggregator: Aggregator,
    /// What stands for missing buckets.
    pub fill: FillPolicy,
}

impl Downsample {
    /// Reads `interval-function[-fill]`.
    pub(crate) fn parse(
        text: &str,
        is_calendar: bool,
        zone: &TimeZone,
    ) -> Result<Self, QueryFault> {
        let shown: String = text.chars().take(60).collect();
        if text.len() > TEXT_BYTES_MAX {
            return Err(QueryFault::new(format!(
                "Invalid downsampling specifier '{shown}': too long"
            )));
        }
        let parts: Vec<&str> = text.split('-').collect();
        let (interval, function, fill) = match parts.as_slice() {
            [interval, function] => (interval, function, None),
            [interval, function, fill] => (interval, function, Some(*fill)),
            [_] => {
                return Err(QueryFault::new(format!(
                    "Invalid downsampling specifier '{shown}': must provide at least interval and \
                     function"
                ))
                .with_details(
                    "It is interval-function or interval-function-fill, such as 1m-avg",
                ));
            }
            _ => {
                return Err(QueryFault::new(format!(
                    "Invalid downsampling specifier '{shown}': must consist of interval, function, \
                     and optional fill policy"
                )));
            }
        };
        let interval = DownsampleInterval::parse(interval, is_calendar, zone)?;
        let aggregator = Aggregator::from_name(function).ok_or_else(|| {
            QueryFault::new(format!("No such downsampling function: {function:.50}"))
        })?;
        if aggregator == Aggregator::None {
            return Err(QueryFault::new(
                "cannot use the NONE aggregator for downsampling",
            ));
        }
        Ok(Self {
            interval,
            aggregator,
            fill: fill.map_or(Ok(FillPolicy::None), FillPolicy::parse)?,
        })
    }
}

impl FillPolicy {
    fn parse(text: &str) -> Result<Self, QueryFault> {
        match text.to_ascii_lowercase().as_str() {
            "none" => Ok(Self::None),
            "nan" => Ok(Self::Nan),
            "null" => Ok(Self::Null),
            "zero" => Ok(Self::Zero),
            _ => Err(
                QueryFault::new(format!("Unrecognized fill policy: {text:.50}"))
                    .with_details("There are none, nan, null and zero"),
            ),
        }
    }
}

impl DownsampleInterval {
    fn parse(text: &str, is_calendar: bool, zone: &TimeZone) -> Result<Self, QueryFault> {
        let lower = text.to_ascii_lowercase();
        if lower.ends_with("all") {
            return Ok(Self::All);
        }
        let marked = lower.strip_suffix('c');
        let (count, unit) = parse_interval(marked.unwrap_or(&lower))?;
        if is_calendar || marked.is_some() {
            return Ok(Self::Calendar(count, unit, zone.clone()));
        }
        Ok(Self::Fixed(
            i64::from(count).saturating_mul(unit.length_ms()),
        ))
    }

    /// The bucket of a time from 1970 on: its begin, and that of the next one. All of a query is one
    /// bucket, which the caller knows.
    pub fn bucket(&self, time_ms: i64) -> (i64, i64) {
        match self {
            Self::All => (i64::MIN, i64::MAX),
            Self::Fixed(length) => fixed_bucket(time_ms, *length),
            Self::Calendar(count, unit, zone) => {
                // Where the clock goes back over midnight, local time is in no bucket for a while.
                calendar_bucket(time_ms, *count, *unit, zone)
                    .filter(|(begin, end)| *begin <= time_ms && time_ms < *end)
                    .unwrap_or_else(|| {
                        fixed_bucket(time_ms, i64::from(*count).saturating_mul(unit.length_ms()))
                    })
            }
        }
    }

    /// The least length of a bucket, ms, to bound their number.
    pub(crate) fn length_min_ms(&self) -> i64 {
        match self {
            Self::All => i64::MAX,
            Self::Fixed(length) => *length,
            // Days have 23 hours at times, and months 28 days.
            Self::Calendar(count, unit, _) => {
                (i64::from(*count).saturating_mul(unit.length_ms()) / 10 * 9).max(1)
            }
        }
    }
}

fn fixed_bucket(time_ms: i64, length: i64) -> (i64, i64) {
    let begin = time_ms - time_ms.rem_euclid(length);
    (begin, begin.saturating_add(length))
}

fn calendar_bucket(
    time_ms: i64,
    count: u32,
    unit: IntervalUnit,
    zone: &TimeZone,
) -> Option<(i64, i64)> {
    let zoned = Timestamp::from_millisecond(time_ms)
        .ok()?
        .to_zoned(zone.clone());
    let date = zoned.date();
    let midnight = |date: Date| -> Option<i64> {
        let zoned = date.to_zoned(zone.clone()).ok()?;
        Some(zoned.timestamp().as_millisecond())
    };
    let count = i64::from(count);
    match unit {
        IntervalUnit::Millisecond
        | IntervalUnit::Second
        | IntervalUnit::Minute
        | IntervalUnit::Hour => {
            let (begin, end) = (midnight(date)?, midnight(date.tomorrow().ok()?)?);
            let length = count.saturating_mul(unit.length_ms());
            let begin = time_ms - (time_ms - begin) % length;
            Some((begin, begin.saturating_add(length).min(end)))
        }
        IntervalUnit::Day => {
            let new_year = Date::new(date.year(), 1, 1).ok()?;
            let passed = i64::from(date.day_of_year()) - 1;
            let begin = added(
                new_year,
                Span::new().try_days(passed - passed % count).ok()?,
            )?;
            let end = added(begin, Span::new().try_days(count).ok()?)?;
            let next_year = Date::new(date.year() + 1, 1, 1).ok()?;
            Some((midnight(begin)?, midnight(end.min(next_year))?))
        }
        IntervalUnit::Week => {
            // A Sunday before every stored time.
            let first = Date::new(1969, 12, 28).ok()?;
            debug_assert_eq!(first.weekday(), Weekday::Sunday);
            let days = i64::from((date - first).get_days());
            let length = count.saturating_mul(7);
            let begin = added(first, Span::new().try_days(days - days % length).ok()?)?;
            let end = added(begin, Span::new().try_days(length).ok()?)?;
            Some((midnight(begin)?, midnight(end)?))
        }
        IntervalUnit::Month => {
            let passed = i64::from(date.month()) - 1;
            let month = i8::try_from(passed - passed % count + 1).ok()?;
            let begin = Date::new(date.year(), month, 1).ok()?;
            let end = added(begin, Span::new().try_months(count).ok()?)?;
            let next_year = Date::new(date.year() + 1, 1, 1).ok()?;
            Some((midnight(begin)?, midnight(end.min(next_year))?))
        }
        IntervalUnit::Year => {
            let passed = i64::from(date.year()) - 1970;
            let year = i16::try_from(1970 + passed - passed.rem_euclid(count)).ok()?;
            let begin = Date::new(year, 1, 1).ok()?;
            let end = added(begin, Span::new().try_years(count).ok()?)?;
            Some((midnight(begin)?, midnight(end)?))
        }
    }
}

fn added(date: Date, span: Span) -> Option<Date> {
    date.checked_add(span).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Downsample, String> {
        Downsample::parse(text, false, &TimeZone::UTC).map_err(|fault| fault.message)
    }

    fn zoned_time(text: &str, zone: &str) -> i64 {
        let zone = crate::time_text::zone(Some(zone)).unwrap();
        crate::time_text::parse_time(text, 0, &zone).unwrap()
    }

    #[test]
    fn specifiers_have_an_interval_a_function_and_a_fill_policy() {
        let minute = parse("1m-avg").unwrap();
        assert_eq!(minute.interval, DownsampleInterval::Fixed(60_000));
        assert_eq!(
            (minute.aggregator, minute.fill),
            (Aggregator::Avg, FillPolicy::None)
        );
        assert_eq!(
            parse("20000ms-count").unwrap().interval,
            DownsampleInterval::Fixed(20_000)
        );
        assert_eq!(
            parse("0all-last").unwrap().interval,
            DownsampleInterval::All
        );
        assert_eq!(parse("1h-sum-nan").unwrap().fill, FillPolicy::Nan);
        assert_eq!(parse("1h-sum-NULL").unwrap().fill, FillPolicy::Null);
        let day = parse("1dc-p99-zero").unwrap().interval;
        assert_eq!(
            day,
            DownsampleInterval::Calendar(1, IntervalUnit::Day, TimeZone::UTC)
        );
        for wrong in [
            "",
            "1m",
            "1m-what",
            "1m-none",
            "1m-avg-x",
            "1m-avg-nan-x",
            "0m-avg",
            "x-avg",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        // In the words of OpenTSDB 2.4.1.
        for (wrong, expected) in [
            (
                "1m",
                "Invalid downsampling specifier '1m': must provide at least interval and function",
            ),
            (
                "1m-avg-nan-x",
                "Invalid downsampling specifier '1m-avg-nan-x': must consist of interval, function, \
                 and optional fill policy",
            ),
            ("1m-avg-foo", "Unrecognized fill policy: foo"),
            ("1m-what", "No such downsampling function: what"),
            ("1q-what", "Invalid duration (suffix): 1q"),
        ] {
            assert_eq!(parse(wrong), Err(expected.to_owned()));
        }
    }

    #[test]
    fn calendars_follow_their_zone() {
        let berlin = crate::time_text::zone(Some("Europe/Berlin")).unwrap();
        let bucket = |text: &str, time: &str| {
            let interval = Downsample::parse(text, false, &berlin).unwrap().interval;
            interval.bucket(zoned_time(time, "Europe/Berlin"))
        };
        let at = |text: &str| zoned_time(text, "Europe/Berlin");
        // The clock went back on the 27th, so the day has 25 hours.
        let day = bucket("1dc-avg", "2013/10/27-12:00");
        assert_eq!(day, (at("2013/10/27"), at("2013/10/28")));
        assert_eq!(day.1 - day.0, 25 * 3_600_000);
        let week = bucket("1wc-avg", "2013/10/30-12:00");
        assert_eq!(week, (at("2013/10/27"), at("2013/11/03")));
        assert_eq!(
            bucket("1nc-avg", "2013/02/15-12:00"),
            (at("2013/02/01"), at("2013/03/01"))
        );
        assert_eq!(
            bucket("5nc-avg", "2013/12/15-12:00"),
            (at("2013/11/01"), at("2014/01/01"))
        );
        assert_eq!(
            bucket("1yc-avg", "2013/02/15-12:00"),
            (at("2013/01/01"), at("2014/01/01"))
        );
        let hours = bucket("6hc-avg", "2013/02/15-13:00");
        assert_eq!(hours, (at("2013/02/15-12:00"), at("2013/02/15-18:00")));
    }

    proptest! {
        #[test]
        fn a_bucket_holds_its_time_and_meets_the_next(
            time in 0_i64..4_102_444_800_000,
            count in 1_u32..40,
            unit in 0_usize..8,
            zone in 0_usize..3,
        ) {
            let units = ["ms", "s", "m", "h", "d", "w", "n", "y"];
            let zones = ["UTC", "Europe/Berlin", "Asia/Kolkata"];
            let zone = crate::time_text::zone(Some(zones[zone])).unwrap();
            for mark in ["", "c"] {
                let text = format!("{count}{}{mark}-avg", units[unit]);
                let interval = Downsample::parse(&text, false, &zone).unwrap().interval;
                let (begin, end) = interval.bucket(time);
                prop_assert!(begin <= time && time < end, "{} {} {} {}", text, begin, time, end);
                prop_assert_eq!(interval.bucket(begin), (begin, end), "{}", text);
                prop_assert_eq!(interval.bucket(end).0, end, "{}", text);
            }
        }
    }
}
