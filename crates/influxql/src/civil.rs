//! The calendar: converts dates and times of day to nanoseconds and back, in the forms that
//! conditions use.
//!
//! It is the Gregorian calendar without leap seconds, years 0 to 9999, as in Go. This module knows
//! no time zones; it converts a local time as if it were UTC.

use crate::duration::SECOND;
use std::fmt::Write;

/// Seconds of a day.
const DAY_SECONDS: i64 = 86_400;

/// Days from the first of March of year 0 to the Unix epoch.
const EPOCH_DAYS: i64 = 719_468;

/// Days from the first of January of year 1, Go's time zero, to the Unix epoch.
const GO_ZERO_DAYS: i128 = 719_162;

/// A time parsed from text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CivilTime {
    /// Seconds since the epoch, the local time read as UTC.
    pub(crate) local_seconds: i64,
    /// Nanoseconds of the second.
    pub(crate) nanos: i32,
    /// The offset from UTC in seconds, if the text states it.
    pub(crate) offset_seconds: Option<i32>,
}

/// Whether `text` begins like a date, so that it may denote a time: the ten characters
/// `2000-01-01`, possibly followed by more on the line.
pub(crate) fn looks_like_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    let date = bytes.len() >= 10
        && bytes[..10]
            .iter()
            .enumerate()
            .all(|(index, b)| match index {
                4 | 7 => *b == b'-',
                _ => b.is_ascii_digit(),
            });
    date && bytes.get(10) != Some(&b'\n')
}

/// Parses `2000-01-01`, `2000-01-01 00:00:00[.9]` or RFC 3339's form.
pub(crate) fn parse_time(text: &str) -> Option<CivilTime> {
    let mut rest = Digits(text);
    let (year, month, day) = (rest.fixed(4)?, rest.after('-', 2)?, rest.after('-', 2)?);
    if !(1..=12).contains(&month) || day < 1 || day > days_in_month(year, month) {
        return None;
    }
    let date_seconds = days_from_civil(year, month, day) * DAY_SECONDS;
    if rest.0.is_empty() {
        return Some(CivilTime {
            local_seconds: date_seconds,
            nanos: 0,
            offset_seconds: None,
        });
    }
    let rfc3339 = match rest.0.chars().next()? {
        'T' => true,
        ' ' => false,
        _ => return None,
    };
    // Go accepts any number of blanks, an hour with one digit, and decimals after a comma.
    rest.0 = if rfc3339 {
        &rest.0[1..]
    } else {
        rest.0.trim_start_matches(' ')
    };
    let hour = rest.one_or_two()?;
    let (minute, second) = (rest.after(':', 2)?, rest.after(':', 2)?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let nanos = rest.fraction()?;
    let offset_seconds = if rfc3339 { Some(rest.offset()?) } else { None };
    rest.0.is_empty().then_some(CivilTime {
        local_seconds: date_seconds + i64::from(hour * 3_600 + minute * 60 + second),
        nanos,
        offset_seconds,
    })
}

/// A cursor over a text of digits.
struct Digits<'a>(&'a str);

impl Digits<'_> {
    /// Exactly `len` digits.
    fn fixed(&mut self, len: usize) -> Option<i32> {
        let digits = self.0.get(..len)?;
        if !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        self.0 = &self.0[len..];
        digits.parse().ok()
    }

    /// `mark`, then exactly `len` digits.
    fn after(&mut self, mark: char, len: usize) -> Option<i32> {
        self.0 = self.0.strip_prefix(mark)?;
        self.fixed(len)
    }

    fn one_or_two(&mut self) -> Option<i32> {
        let digits = self.0.bytes().take(2).take_while(u8::is_ascii_digit);
        match digits.count() {
            0 => None,
            len => self.fixed(len),
        }
    }

    /// The nanoseconds of `.123`, if that is next; digits after the ninth are ignored.
    fn fraction(&mut self) -> Option<i32> {
        let Some(rest) = self.0.strip_prefix(['.', ',']) else {
            return Some(0);
        };
        let len = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, behind) = rest.split_at(len);
        self.0 = behind;
        let digits = digits.get(..9).unwrap_or(digits);
        let value: i32 = digits.parse().ok()?;
        Some(value * 10_i32.pow(9 - digits.len() as u32))
    }

    /// `Z` or `+hh:mm`.
    fn offset(&mut self) -> Option<i32> {
        if let Some(rest) = self.0.strip_prefix('Z') {
            self.0 = rest;
            return Some(0);
        }
        let sign = if self.0.starts_with('-') { -1 } else { 1 };
        self.0 = self.0.strip_prefix(['+', '-'])?;
        let (hours, minutes) = (self.fixed(2)?, self.after(':', 2)?);
        (hours <= 24 && minutes <= 60).then_some(sign * (hours * 3_600 + minutes * 60))
    }
}

fn days_in_month(year: i32, month: i32) -> i32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since the epoch. Here years begin in March, so that the leap day is their last.
fn days_from_civil(year: i32, month: i32, day: i32) -> i64 {
    let year = i64::from(year) - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * i64::from((month + 9) % 12) + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - EPOCH_DAYS
}

/// Year, month and day of a number of days since the epoch.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + EPOCH_DAYS;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Date and time of day of a number of seconds, without an offset.
fn date_time(seconds: i64) -> String {
    let (year, month, day) = civil_from_days(seconds.div_euclid(DAY_SECONDS));
    let of_day = seconds.rem_euclid(DAY_SECONDS);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

/// A moment in UTC, with the decimals that it needs.
pub(crate) fn rfc3339_nano(unix_ns: i128) -> String {
    let second = i128::from(SECOND);
    let mut text = date_time(clamp_seconds(unix_ns.div_euclid(second)));
    let nanos = unix_ns.rem_euclid(second);
    if nanos > 0 {
        let decimals = format!("{nanos:09}");
        text.push('.');
        text.push_str(decimals.trim_end_matches('0'));
    }
    text.push('Z');
    text
}

/// A moment at an offset from UTC, to the second.
pub(crate) fn rfc3339(unix_ns: i128, offset_seconds: i32) -> String {
    let seconds = clamp_seconds(unix_ns.div_euclid(i128::from(SECOND)));
    let mut text = date_time(seconds + i64::from(offset_seconds));
    if offset_seconds == 0 {
        text.push('Z');
    } else {
        let sign = if offset_seconds < 0 { '-' } else { '+' };
        let minutes = offset_seconds.unsigned_abs() / 60;
        // Writing to a string cannot fail.
        let _ = write!(text, "{sign}{:02}:{:02}", minutes / 60, minutes % 60);
    }
    text
}

/// Limits sums of durations to what a calendar with about four digits for the year can show.
fn clamp_seconds(seconds: i128) -> i64 {
    let limit = 1 << 48;
    seconds.clamp(-limit, limit) as i64
}

/// The distance of a moment from the preceding multiple of `interval_ns`, counted from Go's time
/// zero: the first of January of year 1. 0 for an interval that is not positive.
pub(crate) fn since_go_multiple(unix_ns: i128, interval_ns: i64) -> i64 {
    if interval_ns <= 0 {
        return 0;
    }
    let since_zero = unix_ns + GO_ZERO_DAYS * i128::from(DAY_SECONDS) * i128::from(SECOND);
    since_zero.rem_euclid(i128::from(interval_ns)) as i64
}

#[cfg(test)]
mod tests {
    use super::{looks_like_time, parse_time, rfc3339, rfc3339_nano, since_go_multiple};
    use crate::duration::{DAY, SECOND};

    fn utc_ns(text: &str) -> Option<i128> {
        let time = parse_time(text)?;
        let seconds = time.local_seconds - i64::from(time.offset_seconds.unwrap_or(0));
        Some(i128::from(seconds) * i128::from(SECOND) + i128::from(time.nanos))
    }

    #[test]
    fn times_are_read_and_printed() {
        for (text, printed) in [
            ("1970-01-01", "1970-01-01T00:00:00Z"),
            ("2000-02-29", "2000-02-29T00:00:00Z"),
            ("0001-01-01", "0001-01-01T00:00:00Z"),
            (
                "9999-12-31 23:59:59.999999999",
                "9999-12-31T23:59:59.999999999Z",
            ),
            (
                "2015-08-18T00:00:00.000000100Z",
                "2015-08-18T00:00:00.0000001Z",
            ),
            ("2015-08-18T01:30:00+01:30", "2015-08-18T00:00:00Z"),
            ("1969-12-31 23:59:59.5", "1969-12-31T23:59:59.5Z"),
            ("2015-08-18   1:02:03,5", "2015-08-18T01:02:03.5Z"),
        ] {
            assert_eq!(rfc3339_nano(utc_ns(text).expect(text)), printed, "{text}");
        }
        for text in [
            "2015-13-01",
            "2015-02-29",
            "2015-01-32",
            "2015-01-01T00:00:00",
            "2015-01-01 24:00:00",
            "2015-01-01 00:00",
            "2015-01-01 00:00:00.",
            "2015-01-01 00:00:00Z",
            "2015-01-01x",
        ] {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }

    #[test]
    fn looks_are_enough_to_mean_a_time() {
        for text in ["2015-01-01", "2015-99-99", "2015-01-01 what"] {
            assert!(looks_like_time(text), "{text}");
        }
        for text in ["", "2015-1-1", "cpu", "2015-01-0x", "2015-01-01\n"] {
            assert!(!looks_like_time(text), "{text}");
        }
    }

    #[test]
    fn offsets_are_printed_and_multiples_counted_from_year_one() {
        assert_eq!(rfc3339(0, -19_800), "1969-12-31T18:30:00-05:30");
        assert_eq!(rfc3339(0, 0), "1970-01-01T00:00:00Z");
        assert_eq!(since_go_multiple(0, DAY), 0);
        assert_eq!(since_go_multiple(0, 7 * DAY), 3 * DAY);
        assert_eq!(since_go_multiple(-1, DAY), DAY - 1);
        assert_eq!(since_go_multiple(5, 0), 0);
    }
}
