//! Lengths of time as people write them: `30d`, `1h 30m`, `10 minutes`, `1 month`.
//!
//! Months and years have no fixed length, so a [`CalendarInterval`] keeps months apart from the
//! rest.

use arrow::compute::kernels::cast_utils::parse_interval_month_day_nano;
use marigram_model::DAY_NS;

/// A length of time in months, days and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalendarInterval {
    /// Months; a year has twelve.
    pub months: i32,
    /// Days of 24 hours, or of a zone's calendar if a zone is given.
    pub days: i32,
    /// Nanoseconds.
    pub nanos: i64,
}

impl CalendarInterval {
    /// The interval in nanoseconds, with days of 24 hours; `None` if it has months or does not fit.
    pub fn fixed_ns(self) -> Option<i64> {
        if self.months != 0 {
            return None;
        }
        i64::from(self.days)
            .checked_mul(DAY_NS)?
            .checked_add(self.nanos)
    }
}

/// Reads an interval. Short units are `ns us ms s m h d w mo y`; the long forms are PostgreSQL's.
///
/// # Errors
/// A description of what is wrong with `text`.
pub fn parse_interval(text: &str) -> Result<CalendarInterval, String> {
    if let Some(interval) = parse_short(text) {
        return Ok(interval);
    }
    match parse_interval_month_day_nano(text) {
        Ok(value) => Ok(CalendarInterval {
            months: value.months,
            days: value.days,
            nanos: value.nanoseconds,
        }),
        Err(_) => Err(format!(
            "'{}' is not an interval; write it like '10 minutes', '30d' or '1 month'",
            text.escape_debug()
        )),
    }
}

/// Numbers with short units, with or without spaces: `1h30m`, `30 d`.
fn parse_short(text: &str) -> Option<CalendarInterval> {
    let mut interval = CalendarInterval {
        months: 0,
        days: 0,
        nanos: 0,
    };
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: i64 = rest[..digits].parse().ok()?;
        rest = rest[digits..].trim_start();
        let letters = rest
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(rest.len());
        let unit = &rest[..letters];
        rest = rest[letters..].trim_start();
        let ns_each = match unit {
            "ns" => 1,
            "us" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "d" | "w" => {
                let days = number.checked_mul(if unit == "w" { 7 } else { 1 })?;
                interval.days = interval.days.checked_add(i32::try_from(days).ok()?)?;
                continue;
            }
            "mo" | "y" => {
                let months = number.checked_mul(if unit == "y" { 12 } else { 1 })?;
                interval.months = interval.months.checked_add(i32::try_from(months).ok()?)?;
                continue;
            }
            _ => return None,
        };
        interval.nanos = interval.nanos.checked_add(number.checked_mul(ns_each)?)?;
    }
    Some(interval)
}

/// A unit of QuestDB, in which case matters, in the form that [`parse_interval`] takes.
pub fn questdb_unit(unit: &str) -> Option<&'static str> {
    Some(match unit {
        "n" => "ns",
        "U" => "us",
        "T" => "ms",
        "s" => "s",
        "m" => "m",
        "h" => "h",
        "d" => "d",
        "w" => "w",
        "M" => "mo",
        "y" => "y",
        _ => return None,
    })
}

/// Reads a setting of a table: a positive interval without months.
///
/// # Errors
/// A description of what is wrong with `text`.
pub fn parse_fixed_ns(text: &str) -> Result<i64, String> {
    match parse_fixed_or_zero_ns(text)? {
        0 => Err(format!("'{text}' is not a positive length of time")),
        ns => Ok(ns),
    }
}

/// Reads a setting that may be zero: an interval without months that is not negative.
///
/// # Errors
/// A description of what is wrong with `text`.
pub fn parse_fixed_or_zero_ns(text: &str) -> Result<i64, String> {
    let interval = parse_interval(text)?;
    match interval.fixed_ns() {
        Some(ns) if ns >= 0 => Ok(ns),
        Some(_) => Err(format!("'{text}' is a negative length of time")),
        None => Err(format!(
            "'{text}' has months, which have no fixed length; write days"
        )),
    }
}

/// Writes nanoseconds in the largest short units that represent it exactly: `30d`, `1h 30m`.
pub fn format_ns(mut ns: i64) -> String {
    const UNITS: [(&str, i64); 7] = [
        ("d", DAY_NS),
        ("h", 3_600_000_000_000),
        ("m", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
        ("ns", 1),
    ];
    let mut parts = Vec::new();
    for (unit, width) in UNITS {
        if ns >= width {
            parts.push(format!("{}{unit}", ns / width));
            ns %= width;
        }
    }
    if parts.is_empty() {
        "0s".to_owned()
    } else {
        parts.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_forms_are_read() {
        let interval = |months, days, nanos| {
            Ok(CalendarInterval {
                months,
                days,
                nanos,
            })
        };
        assert_eq!(parse_interval("30d"), interval(0, 30, 0));
        assert_eq!(parse_interval("1h30m"), interval(0, 0, 5_400_000_000_000));
        assert_eq!(
            parse_interval("10 minutes"),
            interval(0, 0, 600_000_000_000)
        );
        assert_eq!(parse_interval("2 y 1 mo"), interval(25, 0, 0));
        assert_eq!(parse_interval("1 month"), interval(1, 0, 0));
        assert!(parse_interval("soon").is_err());
        assert!(parse_interval("").is_err());
        assert!(parse_interval("99999999999999999999d").is_err());
    }

    #[test]
    fn settings_are_fixed_and_positive() {
        assert_eq!(parse_fixed_ns("1w"), Ok(7 * DAY_NS));
        assert!(parse_fixed_ns("1 month").is_err());
        assert!(parse_fixed_ns("0s").is_err());
        assert_eq!(parse_fixed_or_zero_ns("0s"), Ok(0));
        assert_eq!(parse_fixed_or_zero_ns("0 minutes"), Ok(0));
        assert_eq!(parse_fixed_or_zero_ns("5s"), Ok(5_000_000_000));
        assert!(parse_fixed_or_zero_ns("-1 second").is_err());
        assert!(parse_fixed_or_zero_ns("1 month").is_err());
        assert_eq!(format_ns(7 * DAY_NS), "7d");
        assert_eq!(format_ns(5_400_000_000_000), "1h 30m");
    }
}
