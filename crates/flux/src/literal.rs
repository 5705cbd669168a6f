//! Durations and times.

/// A duration: months, which have no fixed length, and nanoseconds. Both have the same sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct FluxDuration {
    /// Months.
    pub months: i64,
    /// Nanoseconds.
    pub ns: i64,
}

const SECOND_NS: i64 = 1_000_000_000;
const DAY_NS: i64 = 86_400 * SECOND_NS;

impl FluxDuration {
    /// A duration without months.
    pub const fn from_ns(ns: i64) -> Self {
        Self { months: 0, ns }
    }

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
            let (months, ns) = match unit {
                "y" => (12, 0),
                "mo" => (1, 0),
                "w" => (0, 7 * DAY_NS),
                "d" => (0, DAY_NS),
                "h" => (0, 3600 * SECOND_NS),
                "m" => (0, 60 * SECOND_NS),
                "s" => (0, SECOND_NS),
                "ms" => (0, 1_000_000),
                "us" | "µs" | "μs" => (0, 1000),
                "ns" => (0, 1),
                _ => return None,
            };
            total.months = total.months.checked_add(number.checked_mul(months)?)?;
            total.ns = total.ns.checked_add(number.checked_mul(ns)?)?;
            rest = behind;
        }
        Some(total)
    }

    /// The same duration in the other direction.
    #[must_use]
    pub const fn negated(self) -> Self {
        Self {
            months: self.months.saturating_neg(),
            ns: self.ns.saturating_neg(),
        }
    }

    /// Whether it is no time at all.
    pub const fn is_zero(self) -> bool {
        self.months == 0 && self.ns == 0
    }

    /// Whether it goes back in time.
    pub const fn is_negative(self) -> bool {
        self.months < 0 || self.ns < 0
    }

    /// The time that is this much after `time_ns`, within what nanoseconds of 64 bits can tell.
    pub fn after(self, time_ns: i64) -> i64 {
        let mut time = i128::from(time_ns);
        if self.months != 0 {
            let (days, in_day) = (time_ns.div_euclid(DAY_NS), time_ns.rem_euclid(DAY_NS));
            let (year, month, day) = civil_from_days(days);
            let months = (year * 12 + month - 1).saturating_add(self.months);
            let months = months.clamp(-120_000, 120_000);
            let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
            let day = day.min(days_in_month(year, month));
            let days = days_from_civil(year, month, day);
            time = i128::from(days) * i128::from(DAY_NS) + i128::from(in_day);
        }
        time += i128::from(self.ns);
        i64::try_from(time).unwrap_or(if time < 0 { i64::MIN } else { i64::MAX })
    }
}

impl std::fmt::Display for FluxDuration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_zero() {
            return f.write_str("0ns");
        }
        if self.is_negative() {
            f.write_str("-")?;
        }
        let mut months = self.months.unsigned_abs();
        let mut ns = self.ns.unsigned_abs();
        for (size, unit) in [(12, "y"), (1, "mo")] {
            if months >= size {
                write!(f, "{}{unit}", months / size)?;
                months %= size;
            }
        }
        let units: [(i64, &str); 8] = [
            (7 * DAY_NS, "w"),
            (DAY_NS, "d"),
            (3600 * SECOND_NS, "h"),
            (60 * SECOND_NS, "m"),
            (SECOND_NS, "s"),
            (1_000_000, "ms"),
            (1000, "us"),
            (1, "ns"),
        ];
        for (size, unit) in units {
            let size = size.unsigned_abs();
            if ns >= size {
                write!(f, "{}{unit}", ns / size)?;
                ns %= size;
            }
        }
        Ok(())
    }
}

fn is_leap(year: i64) -> bool {
    (year % 4 == 0 && year % 100 != 0) || year % 400 == 0
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a date. Years are counted from March, so that the leap day is the last.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Year, month and day of a number of days from 1970-01-01.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

/// Reads a time as RFC 3339 writes it, or a date, which is midnight in UTC: nanoseconds since the
/// Unix epoch. `None` if it is none, or cannot be told in 64 bits.
pub fn parse_time(text: &str) -> Option<i64> {
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = text.get(from..to)?;
        digits
            .bytes()
            .all(|byte| byte.is_ascii_digit())
            .then_some(())?;
        digits.parse().ok()
    };
    let mark = |at: usize, char: u8| (text.as_bytes().get(at) == Some(&char)).then_some(());
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    mark(4, b'-')?;
    mark(7, b'-')?;
    if !(1..=12).contains(&month) || !(1..=days_in_month(year, month)).contains(&day) {
        return None;
    }
    let mut ns = i128::from(days_from_civil(year, month, day)) * i128::from(DAY_NS);
    if text.len() > 10 {
        if !matches!(text.as_bytes().get(10), Some(b'T' | b't')) {
            return None;
        }
        let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
        mark(13, b':')?;
        mark(16, b':')?;
        if hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        let seconds = hour * 3600 + minute * 60 + second;
        ns += i128::from(seconds) * i128::from(SECOND_NS);
        let mut at = 19;
        if mark(at, b'.').is_some() {
            let rest = text.get(at + 1..)?;
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            if !(1..=18).contains(&digits) {
                return None;
            }
            let fraction: i128 = rest.get(..digits)?.parse().ok()?;
            ns += fraction * 1_000_000_000 / 10_i128.pow(digits as u32);
            at += 1 + digits;
        }
        match text.get(at..)? {
            "Z" | "z" => {}
            zone => {
                let sign: i128 = match zone.as_bytes().first()? {
                    b'+' => 1,
                    b'-' => -1,
                    _ => return None,
                };
                mark(at + 3, b':')?;
                let (hours, minutes) = (number(at + 1, at + 3)?, number(at + 4, at + 6)?);
                if zone.len() != 6 || hours > 23 || minutes > 59 {
                    return None;
                }
                let offset = i128::from(hours * 3600 + minutes * 60);
                ns -= sign * offset * i128::from(SECOND_NS);
            }
        }
    }
    i64::try_from(ns).ok()
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
            "x",
        ] {
            assert_eq!(parse_time(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn durations_are_read_shown_and_added() {
        let hour = FluxDuration::parse("1h30m").unwrap();
        assert_eq!(
            (hour.ns, hour.to_string()),
            (5400 * SECOND_NS, "1h30m".to_owned())
        );
        let month = FluxDuration::parse("1y1mo").unwrap();
        assert_eq!((month.months, month.to_string()), (13, "1y1mo".to_owned()));
        let january = parse_time("2024-01-31T05:00:00Z").unwrap();
        let after = FluxDuration { months: 1, ns: 0 }.after(january);
        assert_eq!(after, parse_time("2024-02-29T05:00:00Z").unwrap());
        assert_eq!(FluxDuration::parse("1x"), None);
        assert_eq!(FluxDuration::parse("999999999999999999y"), None);
        assert_eq!(FluxDuration::from_ns(i64::MAX).after(i64::MAX), i64::MAX);
    }
}
