//! Reads and writes intervals in PostgreSQL's forms: `3 days 04:05:06`, `P1DT2H`, `1 year 2 mons`.

use arrow::datatypes::IntervalMonthDayNano;
use std::fmt::Write;

const SECOND_NS: i128 = 1_000_000_000;
const DAY_NS: i128 = 86_400 * SECOND_NS;

/// The sums of the parts of an interval.
#[derive(Default)]
struct IntervalParts {
    months: i128,
    days: i128,
    nanos: i128,
}

/// A decimal number: its digits, and how many of them are decimal places.
#[derive(Clone, Copy)]
struct ScaledNumber {
    digits: i128,
    places: u32,
}

impl ScaledNumber {
    fn parse(text: &str) -> Option<Self> {
        let (is_negative, digits) = match text.strip_prefix(['-', '+']) {
            Some(rest) => (text.starts_with('-'), rest),
            None => (false, text),
        };
        let (whole, places) = digits.split_once('.').unwrap_or((digits, ""));
        let all = format!("{whole}{places}");
        if all.is_empty() || all.len() > 24 || !all.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let digits: i128 = all.parse().ok()?;
        Some(Self {
            digits: if is_negative { -digits } else { digits },
            places: u32::try_from(places.len()).ok()?,
        })
    }

    /// Multiplies the number by `factor`: returns the whole part, and the fraction counted in
    /// `parts` per unit.
    fn split(self, factor: i128, parts: i128) -> Option<(i128, i128)> {
        let one = 10_i128.checked_pow(self.places)?;
        let all = self.digits.checked_mul(factor)?;
        let (whole, rest) = (all / one, all % one);
        // Round to a whole number of parts.
        let scaled = rest.checked_mul(parts)?.checked_mul(2)?;
        let rounded = (scaled + one * scaled.signum()) / (2 * one);
        Some((whole, rounded))
    }
}

impl IntervalParts {
    /// Adds a number of units.
    fn add(&mut self, number: ScaledNumber, unit: &str) -> Option<()> {
        let months = |parts: &mut Self, factor| {
            // A fraction of a month becomes days, with a month of 30 days, and their fraction
            // becomes time.
            let (months, days_ns) = number.split(factor, 30 * DAY_NS)?;
            parts.months = parts.months.checked_add(months)?;
            parts.days = parts.days.checked_add(days_ns / DAY_NS)?;
            parts.nanos = parts.nanos.checked_add(days_ns % DAY_NS)?;
            Some(())
        };
        let days = |parts: &mut Self, factor| {
            let (days, nanos) = number.split(factor, DAY_NS)?;
            parts.days = parts.days.checked_add(days)?;
            parts.nanos = parts.nanos.checked_add(nanos)?;
            Some(())
        };
        let nanos = |parts: &mut Self, factor| {
            let (nanos, rest) = number.split(factor, 1)?;
            parts.nanos = parts.nanos.checked_add(nanos)?.checked_add(rest)?;
            Some(())
        };
        match unit {
            "millennium" | "millennia" | "mil" | "mils" => months(self, 12_000),
            "century" | "centuries" | "cent" | "c" => months(self, 1200),
            "decade" | "decades" | "dec" | "decs" => months(self, 120),
            "year" | "years" | "yr" | "yrs" | "y" => months(self, 12),
            "month" | "months" | "mon" | "mons" => months(self, 1),
            "week" | "weeks" | "w" => days(self, 7),
            "day" | "days" | "d" => days(self, 1),
            "hour" | "hours" | "hr" | "hrs" | "h" => nanos(self, 3600 * SECOND_NS),
            "minute" | "minutes" | "min" | "mins" | "m" => nanos(self, 60 * SECOND_NS),
            "second" | "seconds" | "sec" | "secs" | "s" => nanos(self, SECOND_NS),
            "millisecond" | "milliseconds" | "msec" | "msecs" | "ms" => nanos(self, 1_000_000),
            "microsecond" | "microseconds" | "usec" | "usecs" | "us" => nanos(self, 1000),
            "nanosecond" | "nanoseconds" | "ns" => nanos(self, 1),
            _ => None,
        }
    }

    /// Adds numbers with their units behind them: `1h30m`.
    fn add_joined(&mut self, text: &str) -> Option<()> {
        let mut rest = text;
        while !rest.is_empty() {
            let (number, behind) = rest.split_at(rest.find(|c| !is_numeric(c))?);
            let (unit, behind) = behind.split_at(behind.find(is_numeric).unwrap_or(behind.len()));
            self.add(ScaledNumber::parse(number)?, unit)?;
            rest = behind;
        }
        Some(())
    }

    /// Adds `04:05`, `04:05:06.7` or `-01:00`.
    fn add_clock(&mut self, text: &str) -> Option<()> {
        let (sign, digits) = match text.strip_prefix(['-', '+']) {
            Some(rest) => (if text.starts_with('-') { -1 } else { 1 }, rest),
            None => (1, text),
        };
        let mut parts = digits.split(':');
        let hours: i128 = whole(parts.next()?)?;
        let minutes: i128 = whole(parts.next()?)?;
        let seconds = parts.next().unwrap_or("0");
        if parts.next().is_some() || minutes > 59 || seconds.starts_with(['-', '+']) {
            return None;
        }
        let (seconds_ns, rest) = ScaledNumber::parse(seconds)?.split(SECOND_NS, 1)?;
        if seconds_ns >= 60 * SECOND_NS {
            return None;
        }
        let clock = (hours * 3600 + minutes * 60) * SECOND_NS + seconds_ns + rest;
        self.nanos = self.nanos.checked_add(sign * clock)?;
        Some(())
    }

    fn finish(self, is_ago: bool) -> Option<IntervalMonthDayNano> {
        let sign = if is_ago { -1 } else { 1 };
        Some(IntervalMonthDayNano {
            months: i32::try_from(sign * self.months).ok()?,
            days: i32::try_from(sign * self.days).ok()?,
            nanoseconds: i64::try_from(sign * self.nanos).ok()?,
        })
    }
}

fn is_numeric(c: char) -> bool {
    matches!(c, '0'..='9' | '.' | '-' | '+')
}

fn whole(text: &str) -> Option<i128> {
    let is_number = !text.is_empty() && text.len() <= 9 && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

/// Reads an interval in one of PostgreSQL's forms; `None` for other texts.
pub fn parse_postgres_interval(text: &str) -> Option<IntervalMonthDayNano> {
    let lower = text.trim().to_lowercase();
    if let Some(iso) = lower.strip_prefix('p') {
        return iso_interval(iso);
    }
    let (body, is_ago) = match lower.strip_suffix("ago") {
        Some(body) if body.ends_with(char::is_whitespace) => (body.trim_end(), true),
        _ => (lower.as_str(), false),
    };
    let body = body.strip_prefix('@').unwrap_or(body);
    let mut parts = IntervalParts::default();
    let mut words = body.split_whitespace().peekable();
    words.peek()?;
    while let Some(word) = words.next() {
        if word.contains(':') {
            parts.add_clock(word)?;
            continue;
        }
        let end = word.find(|c| !is_numeric(c));
        if end.is_none() && is_year_month(word) {
            let (years, months) = word.rsplit_once('-')?;
            let sign = if years.starts_with('-') { "-" } else { "" };
            parts.add(ScaledNumber::parse(years)?, "year")?;
            parts.add(ScaledNumber::parse(&format!("{sign}{months}"))?, "month")?;
            continue;
        }
        if end.is_some() {
            parts.add_joined(word)?;
            continue;
        }
        let number = ScaledNumber::parse(word)?;
        match words.peek() {
            // `3 04:05:06` means three days and a time.
            Some(next) if next.contains(':') => parts.add(number, "day")?,
            Some(_) => parts.add(number, words.next()?)?,
            None => parts.add(number, "second")?,
        }
    }
    parts.finish(is_ago)
}

/// `1-2`, years and months.
fn is_year_month(word: &str) -> bool {
    let digits = word.strip_prefix(['-', '+']).unwrap_or(word);
    digits.split_once('-').is_some_and(|(years, months)| {
        whole(years).is_some() && whole(months).is_some_and(|months| months < 12)
    })
}

/// Reads the text after the `P` of an ISO 8601 interval: `1Y2M3DT4H5M6.7S`.
fn iso_interval(text: &str) -> Option<IntervalMonthDayNano> {
    let mut parts = IntervalParts::default();
    let (mut rest, mut is_time, mut has_some) = (text, false, false);
    while !rest.is_empty() {
        if let Some(time) = rest.strip_prefix('t').filter(|_| !is_time) {
            (rest, is_time) = (time, true);
            continue;
        }
        let end = rest.find(|c| !is_numeric(c))?;
        let number = ScaledNumber::parse(&rest[..end])?;
        let unit = match (rest[end..].chars().next()?, is_time) {
            ('y', false) => "year",
            ('m', false) => "month",
            ('w', false) => "week",
            ('d', false) => "day",
            ('h', true) => "hour",
            ('m', true) => "minute",
            ('s', true) => "second",
            _ => return None,
        };
        parts.add(number, unit)?;
        rest = &rest[end + 1..];
        has_some = true;
    }
    if has_some { parts.finish(false) } else { None }
}

/// Writes an interval as PostgreSQL does; nanoseconds, which PostgreSQL lacks, only if there are
/// any.
pub fn format_postgres_interval(interval: IntervalMonthDayNano) -> String {
    let mut out = String::new();
    let mut is_before_negative = false;
    for (count, one, many) in [
        (interval.months / 12, "year", "years"),
        (interval.months % 12, "mon", "mons"),
        (interval.days, "day", "days"),
    ] {
        if count == 0 {
            continue;
        }
        let space = if out.is_empty() { "" } else { " " };
        let sign = if is_before_negative && count > 0 {
            "+"
        } else {
            ""
        };
        let word = if count == 1 { one } else { many };
        is_before_negative = count < 0;
        // Writing to a String cannot fail.
        let _ = write!(out, "{space}{sign}{count} {word}");
    }
    let nanos = i128::from(interval.nanoseconds);
    if nanos == 0 && !out.is_empty() {
        return out;
    }
    let sign = match nanos {
        ..0 => "-",
        _ if is_before_negative => "+",
        _ => "",
    };
    let space = if out.is_empty() { "" } else { " " };
    let (seconds, rest) = (nanos.abs() / SECOND_NS, nanos.abs() % SECOND_NS);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let _ = write!(out, "{space}{sign}{hours:02}:{minutes:02}:{seconds:02}");
    if rest > 0 {
        let places = format!("{rest:09}");
        let _ = write!(out, ".{}", places.trim_end_matches('0'));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_and_written_as_postgresql_does() {
        for (text, expected) in [
            ("3 days 04:05:06", "3 days 04:05:06"),
            ("3 days 04:05:06.789", "3 days 04:05:06.789"),
            ("-1 day -02:03:04", "-1 days -02:03:04"),
            ("1 day -02:03", "1 day -02:03:00"),
            ("-1 day 02:03", "-1 days +02:03:00"),
            ("P1DT2H", "1 day 02:00:00"),
            ("p1y2m3dt4h5m6.5s", "1 year 2 mons 3 days 04:05:06.5"),
            ("1 year 2 months", "1 year 2 mons"),
            ("1-2", "1 year 2 mons"),
            ("1.5 days", "1 day 12:00:00"),
            ("1.5 months", "1 mon 15 days"),
            ("1.5 years", "1 year 6 mons"),
            ("2 weeks", "14 days"),
            ("90 minutes", "01:30:00"),
            ("@ 1 hour ago", "-01:00:00"),
            ("1 month ago", "-1 mons"),
            ("5", "00:00:05"),
            ("3 04:05:06", "3 days 04:05:06"),
            ("1h30m", "01:30:00"),
            ("-1h30m", "-00:30:00"),
            ("1d2h3m", "1 day 02:03:00"),
            ("1", "00:00:01"),
            ("1 day 2", "1 day 00:00:02"),
            ("100:00:00", "100:00:00"),
            ("0", "00:00:00"),
            ("-14 months", "-1 years -2 mons"),
        ] {
            let written = parse_postgres_interval(text).map(format_postgres_interval);
            assert_eq!(written.as_deref(), Some(expected), "{text}");
        }
        for wrong in [
            "",
            "soon",
            "P",
            "1 dog",
            "1h30dog",
            "h30m",
            "1é2h",
            "04:60",
            "04:05:06:07",
        ] {
            assert_eq!(parse_postgres_interval(wrong), None, "{wrong}");
        }
    }
}
