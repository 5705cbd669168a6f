//! Times of queries: `1h-ago`, `now`, numbers of seconds or milliseconds, `2013/01/01-00:00:00`.

use crate::error::QueryFault;
use crate::interval::parse_interval_ms;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;

/// Numbers of at most this many digits are seconds.
const SECOND_DIGITS: usize = 10;
const DIGITS_MAX: usize = 13;

/// The zone of an IANA name; UTC if there is none.
pub(crate) fn zone(name: Option<&str>) -> Result<TimeZone, QueryFault> {
    match name.filter(|name| !name.is_empty()) {
        None => Ok(TimeZone::UTC),
        Some(name) => TimeZone::get(name).map_err(|_| {
            let shown: String = name.chars().take(50).collect();
            QueryFault::new(format!("Invalid timezone: {shown}"))
                .with_details("Give a name of the IANA database, such as Europe/Berlin")
        }),
    }
}

/// The milliseconds since 1970 of a time.
pub(crate) fn parse_time(text: &str, now_ms: i64, zone: &TimeZone) -> Result<i64, QueryFault> {
    let text = text.trim();
    let shown: String = text.chars().take(50).collect();
    let invalid = |message: String| {
        QueryFault::new(message)
            .with_details("Times are 1h-ago, 1356998400, 1356998400000 or 2013/01/01-00:00:00")
    };
    if text.eq_ignore_ascii_case("now") {
        return Ok(now_ms);
    }
    let before = text.len().checked_sub("-ago".len());
    if let Some((interval, ago)) = before.and_then(|at| text.split_at_checked(at))
        && ago.eq_ignore_ascii_case("-ago")
    {
        return Ok(now_ms.saturating_sub(parse_interval_ms(interval)?).max(0));
    }
    if text.contains(['/', ':']) {
        return absolute(text, zone)
            .ok_or_else(|| invalid(format!("Invalid absolute date: {shown}")));
    }
    number_ms(text).ok_or_else(|| invalid(format!("Invalid time: {shown}{}", reason(text))))
}

/// Why a text is no number of seconds or milliseconds, in OpenTSDB's words.
fn reason(text: &str) -> String {
    if text.contains('.') {
        return ". Millisecond timestamps must be in the format <seconds>.<ms> where the \
                milliseconds are limited to 3 digits"
            .to_owned();
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    match digits.chars().find(|ch| !ch.is_ascii_digit()) {
        Some(bad) => format!(
            ". Invalid character '{bad}' in {}",
            text.chars().take(50).collect::<String>()
        ),
        None if text.starts_with('-') => ". Negative timestamps are not supported.".to_owned(),
        None => String::new(),
    }
}

fn number_ms(text: &str) -> Option<i64> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some((seconds, rest)) = text.split_once('.') {
        if !is_number(seconds)
            || !is_number(rest)
            || rest.len() > 3
            || seconds.len() > SECOND_DIGITS
        {
            return None;
        }
        let seconds: i64 = seconds.parse().ok()?;
        let milliseconds: i64 = format!("{rest:0<3}").parse().ok()?;
        return Some(seconds * 1000 + milliseconds);
    }
    let milliseconds = text.strip_suffix("ms");
    let digits = milliseconds.unwrap_or(text);
    if !is_number(digits) || digits.len() > DIGITS_MAX {
        return None;
    }
    let number: i64 = digits.parse().ok()?;
    Some(if milliseconds.is_none() && digits.len() <= SECOND_DIGITS {
        number * 1000
    } else {
        number
    })
}

/// `yyyy/MM/dd`, then perhaps `-HH:mm` or `-HH:mm:ss`, or the same behind a space.
fn absolute(text: &str, zone: &TimeZone) -> Option<i64> {
    let (date, time) = match text.split_once(['-', ' ']) {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let mut parts = date.split('/');
    let year: i16 = parts.next()?.parse().ok()?;
    let month: i8 = parts.next()?.parse().ok()?;
    let day: i8 = parts.next()?.parse().ok()?;
    if parts.next().is_some() {
        return None;
    }
    let date = Date::new(year, month, day).ok()?;
    let time = match time {
        None => Time::midnight(),
        Some(time) => {
            let mut parts = time.split(':');
            let hour: i8 = parts.next()?.parse().ok()?;
            let minute: i8 = parts.next()?.parse().ok()?;
            let second: i8 = match parts.next() {
                Some(second) => second.parse().ok()?,
                None => 0,
            };
            if parts.next().is_some() {
                return None;
            }
            Time::new(hour, minute, second, 0).ok()?
        }
    };
    let zoned = DateTime::from_parts(date, time)
        .to_zoned(zone.clone())
        .ok()?;
    let ms = zoned.timestamp().as_millisecond();
    (ms >= 0).then_some(ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: i64 = 1_400_000_000_000;

    fn time(text: &str) -> Result<i64, String> {
        parse_time(text, NOW, &TimeZone::UTC).map_err(|fault| fault.message)
    }

    #[test]
    fn times_are_relative_numbers_or_dates() {
        for (text, ms) in [
            ("now", NOW),
            ("1h-ago", NOW - 3_600_000),
            ("30s-AGO", NOW - 30_000),
            ("100y-ago", 0),
            ("1356998400", 1_356_998_400_000),
            ("1356998400123", 1_356_998_400_123),
            ("1356998400.5", 1_356_998_400_500),
            ("1356998400123ms", 1_356_998_400_123),
            ("5000ms", 5000),
            ("0", 0),
            ("2013/01/01", 1_356_998_400_000),
            ("2013/01/01-00:00", 1_356_998_400_000),
            ("2013/01/01 00:00:01", 1_356_998_401_000),
        ] {
            assert_eq!(time(text), Ok(ms), "{text}");
        }
        let berlin = zone(Some("Europe/Berlin")).unwrap();
        let midnight = parse_time("2013/01/01-00:00:00", NOW, &berlin);
        assert_eq!(midnight, Ok(1_356_998_400_000 - 3_600_000));
        for wrong in [
            "",
            "x",
            "-1",
            "12345678901234",
            "2013/13/01",
            "2013/1",
            "1q-ago",
            "1.2345",
            "ä-ago",
            "2013/01/01-7",
        ] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
        assert!(zone(Some("Nowhere/At_all")).is_err());
        // In the words of OpenTSDB 2.4.1.
        for (wrong, expected) in [
            ("x", "Invalid time: x. Invalid character 'x' in x"),
            ("12h", "Invalid time: 12h. Invalid character 'h' in 12h"),
            (
                "-5",
                "Invalid time: -5. Negative timestamps are not supported.",
            ),
            (
                "1356998400.2555",
                "Invalid time: 1356998400.2555. Millisecond timestamps must be in the format \
                 <seconds>.<ms> where the milliseconds are limited to 3 digits",
            ),
            ("2013/1", "Invalid absolute date: 2013/1"),
            ("13:00", "Invalid absolute date: 13:00"),
            ("1q-ago", "Invalid duration (suffix): 1q"),
        ] {
            assert_eq!(time(wrong), Err(expected.to_owned()));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_time_or_none(text in ".{0,30}", digits in "[0-9/:. -]{0,25}") {
            let _ = time(&text);
            let _ = time(&digits);
        }
    }
}
