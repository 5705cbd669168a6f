//! Lengths of time: how statements write them (`1h30m`), and the two ways in which InfluxDB prints
//! them.
//!
//! A duration is an `i64` of nanoseconds everywhere in this crate. InfluxDB's arithmetic wraps; it
//! refuses a sum that became negative, but does not notice one that wrapped completely. This crate
//! behaves the same.

use std::fmt;

/// Nanoseconds of a microsecond.
const MICROSECOND: i64 = 1_000;
/// Nanoseconds of a millisecond.
const MILLISECOND: i64 = 1_000 * MICROSECOND;
/// Nanoseconds of a second.
pub(crate) const SECOND: i64 = 1_000 * MILLISECOND;
/// Nanoseconds of a minute.
const MINUTE: i64 = 60 * SECOND;
/// Nanoseconds of an hour.
const HOUR: i64 = 60 * MINUTE;
/// Nanoseconds of 24 hours.
pub(crate) const DAY: i64 = 24 * HOUR;
/// Nanoseconds of 7 days.
const WEEK: i64 = 7 * DAY;

/// Why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DurationError {
    /// The text is not a sequence of numbers and units.
    #[error("invalid duration")]
    Invalid,
    /// The sum does not fit.
    #[error("overflowed duration {measure}{unit}: choose a smaller duration or INF")]
    Overflowed {
        /// The last number read.
        measure: i64,
        /// The last unit read.
        unit: String,
    },
}

/// The nanoseconds of a duration such as `10m` or `1w2d3h4m5s6ms7u8ns`.
///
/// # Errors
/// If the text is not a duration, or is longer than 292 years.
pub fn parse_duration(text: &str) -> Result<i64, DurationError> {
    if text.len() < 2 {
        return Err(DurationError::Invalid);
    }
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let mut sum_ns = 0_i64;
    let mut last = (0, "");
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, after) = rest.split_at(digits);
        let measure: i64 = number.parse().map_err(|_| DurationError::Invalid)?;
        let (unit, unit_ns) = unit_of(after).ok_or(DurationError::Invalid)?;
        sum_ns = sum_ns.wrapping_add(measure.wrapping_mul(unit_ns));
        last = (measure, unit);
        rest = &after[unit.len()..];
    }
    if sum_ns < 0 && !negative {
        let (measure, unit) = (last.0, last.1.to_owned());
        return Err(DurationError::Overflowed { measure, unit });
    }
    Ok(if negative {
        sum_ns.wrapping_neg()
    } else {
        sum_ns
    })
}

/// The unit at the beginning of `text`, with its nanoseconds.
fn unit_of(text: &str) -> Option<(&str, i64)> {
    const UNITS: [(&str, i64); 9] = [
        ("ns", 1),
        ("ms", MILLISECOND),
        ("u", MICROSECOND),
        ("µ", MICROSECOND),
        ("m", MINUTE),
        ("s", SECOND),
        ("h", HOUR),
        ("d", DAY),
        ("w", WEEK),
    ];
    let found = UNITS.iter().find(|(unit, _)| text.starts_with(unit))?;
    Some((&text[..found.0.len()], found.1))
}

/// Prints a duration as a whole number of the largest unit that divides it: `90m`, `1w`, `0s`.
#[derive(Debug, Clone, Copy)]
pub struct InfluxDuration(pub i64);

impl fmt::Display for InfluxDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(i64, &str); 7] = [
            (WEEK, "w"),
            (DAY, "d"),
            (HOUR, "h"),
            (MINUTE, "m"),
            (SECOND, "s"),
            (MILLISECOND, "ms"),
            (MICROSECOND, "u"),
        ];
        if self.0 == 0 {
            return f.write_str("0s");
        }
        let fits = UNITS.iter().find(|(unit_ns, _)| self.0 % unit_ns == 0);
        let (unit_ns, unit) = fits.copied().unwrap_or((1, "ns"));
        write!(f, "{}{unit}", self.0 / unit_ns)
    }
}

/// Prints a duration as Go does: `1h30m0s`, `1.5s`, `250ms`. InfluxDB uses this form for the
/// durations of `CREATE DATABASE` and of retention policies.
#[derive(Debug, Clone, Copy)]
pub struct GoDuration(pub i64);

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let ns = self.0.unsigned_abs();
        let below_second = [
            (MILLISECOND as u64, "ms"),
            (MICROSECOND as u64, "µs"),
            (1, "ns"),
        ];
        if ns == 0 {
            return f.write_str("0s");
        }
        if ns < SECOND as u64 {
            let fits = below_second.iter().find(|(unit_ns, _)| ns >= *unit_ns);
            let (unit_ns, unit) = fits.copied().unwrap_or((1, "ns"));
            return write!(f, "{sign}{}{unit}", Decimal(ns, unit_ns));
        }
        let (hours, minutes) = (ns / HOUR as u64, ns / MINUTE as u64 % 60);
        f.write_str(sign)?;
        if hours > 0 {
            write!(f, "{hours}h")?;
        }
        if hours > 0 || minutes > 0 {
            write!(f, "{minutes}m")?;
        }
        write!(f, "{}s", Decimal(ns % MINUTE as u64, SECOND as u64))
    }
}

/// A quotient with as many decimals as it needs, at most nine: the divisor is a power of ten.
struct Decimal(u64, u64);

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(dividend, divisor) = *self;
        write!(f, "{}", dividend / divisor)?;
        if dividend % divisor == 0 {
            return Ok(());
        }
        let width = divisor.ilog10() as usize;
        let decimals = format!("{:0width$}", dividend % divisor);
        write!(f, ".{}", decimals.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::{DAY, DurationError, GoDuration, InfluxDuration, SECOND, WEEK, parse_duration};

    #[test]
    fn durations_are_read() {
        for (text, ns) in [
            ("10ns", 10),
            ("3u", 3_000),
            ("3µ", 3_000),
            ("5ms", 5_000_000),
            ("2s", 2 * SECOND),
            ("1h30m", 5_400 * SECOND),
            ("1d", DAY),
            ("2w", 2 * WEEK),
            ("1m1ms", 60_001_000_000),
            ("-1s", -SECOND),
        ] {
            assert_eq!(parse_duration(text), Ok(ns), "{text}");
        }
        for text in [
            "",
            "1",
            "s",
            "1x",
            "1n",
            "1h3",
            "h1",
            "1.5h",
            "99999999999999999999s",
        ] {
            assert_eq!(parse_duration(text), Err(DurationError::Invalid), "{text}");
        }
        let error = parse_duration("10000000000m").expect_err("too long");
        let text = "overflowed duration 10000000000m: choose a smaller duration or INF";
        assert_eq!(error.to_string(), text);
    }

    #[test]
    fn durations_are_printed_in_both_ways() {
        for (ns, influx, go) in [
            (0, "0s", "0s"),
            (1, "1ns", "1ns"),
            (1_500, "1500ns", "1.5µs"),
            (250_000, "250u", "250µs"),
            (250_000_000, "250ms", "250ms"),
            (1_500_000_000, "1500ms", "1.5s"),
            (90 * SECOND, "90s", "1m30s"),
            (5_400 * SECOND, "90m", "1h30m0s"),
            (DAY, "1d", "24h0m0s"),
            (WEEK, "1w", "168h0m0s"),
            (-DAY, "-1d", "-24h0m0s"),
            (3_600_000_000_001, "3600000000001ns", "1h0m0.000000001s"),
        ] {
            assert_eq!(InfluxDuration(ns).to_string(), influx);
            assert_eq!(GoDuration(ns).to_string(), go);
        }
    }
}
