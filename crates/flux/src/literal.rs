//! Durations and times.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// A duration: months, which have no fixed length, and nanoseconds. Neither is negative: `-1h` is an
/// operator before a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct FluxDuration {
    /// Months.
    pub months: i64,
    /// Nanoseconds.
    pub ns: i64,
}

const SECOND_NS: i64 = 1_000_000_000;
const DAY_NS: i64 = 86_400 * SECOND_NS;

/// The units from the longest to the shortest: what they are called, their months, their nanoseconds.
const UNITS: [(&str, i64, i64); 10] = [
    ("y", 12, 0),
    ("mo", 1, 0),
    ("w", 0, 7 * DAY_NS),
    ("d", 0, DAY_NS),
    ("h", 0, 3600 * SECOND_NS),
    ("m", 0, 60 * SECOND_NS),
    ("s", 0, SECOND_NS),
    ("ms", 0, 1_000_000),
    ("us", 0, 1000),
    ("ns", 0, 1),
];

impl FluxDuration {
    /// Reads a duration such as `1h30m`; `None` if it is none, or is too long.
    pub fn parse(text: &str) -> Option<Self> {
        let (mut total, mut rest) = (Self::default(), text);
        if rest.is_empty() {
            return None;
        }
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (number, behind) = rest.split_at(digits);
            let number: i64 = number.parse().ok()?;
            let letters = behind.find(|char: char| char.is_ascii_digit());
            let (unit, behind) = behind.split_at(letters.unwrap_or(behind.len()));
            let unit = match unit {
                "µs" | "μs" => "us",
                unit => unit,
            };
            let (_, months, ns) = UNITS.iter().find(|(known, ..)| *known == unit)?;
            total.months = total.months.checked_add(number.checked_mul(*months)?)?;
            total.ns = total.ns.checked_add(number.checked_mul(*ns)?)?;
            rest = behind;
        }
        Some(total)
    }
}

impl std::fmt::Display for FluxDuration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if *self == Self::default() {
            return f.write_str("0ns");
        }
        let (mut months, mut ns) = (self.months, self.ns);
        for (unit, unit_months, unit_ns) in UNITS {
            let (left, size) = match unit_months {
                0 => (&mut ns, unit_ns),
                size => (&mut months, size),
            };
            if *left >= size {
                write!(f, "{}{unit}", *left / size)?;
                *left %= size;
            }
        }
        Ok(())
    }
}

/// Reads a time as RFC 3339 writes it, or a date, which is midnight in UTC: nanoseconds since the
/// Unix epoch. `None` if it is none, or 64 bits cannot hold it.
pub fn parse_time(text: &str) -> Option<i64> {
    let time: Timestamp = match text.len() {
        10 => {
            let date: Date = text.parse().ok()?;
            date.to_zoned(TimeZone::UTC).ok()?.timestamp()
        }
        _ => text.parse().ok()?,
    };
    i64::try_from(time.as_nanosecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        assert_eq!(parse_time("1970-01-01"), Some(0));
        assert_eq!(parse_time("2000-03-01"), Some(951_868_800 * SECOND_NS));
        assert_eq!(parse_time("1970-01-01T00:00:01.5Z"), Some(1_500_000_000));
        assert_eq!(parse_time("1970-01-01T01:00:00+01:00"), Some(0));
        for wrong in [
            "1970-13-01",
            "1970-02-30",
            "1970-01-01T",
            "1970-01-01T00:00:00",
            "1600-01-01T00:00:00Z",
            "x",
        ] {
            assert_eq!(parse_time(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn durations_are_read_and_shown() {
        let hour = FluxDuration::parse("1h30m").unwrap();
        assert_eq!(
            (hour.ns, hour.to_string()),
            (5400 * SECOND_NS, "1h30m".to_owned())
        );
        let month = FluxDuration::parse("1y1mo").unwrap();
        assert_eq!((month.months, month.to_string()), (13, "1y1mo".to_owned()));
        let all = "1y2mo3w4d5h6m7s8ms9us10ns";
        assert_eq!(FluxDuration::parse(all).unwrap().to_string(), all);
        assert_eq!(FluxDuration::parse("1x"), None);
        assert_eq!(FluxDuration::parse("999999999999999999y"), None);
    }
}
