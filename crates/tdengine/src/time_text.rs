//! Times as texts: reads the forms that statements have, and writes the one that answers have.

use crate::duration::TimeShift;
use crate::error::{TaosCode, TaosError, TaosResult};
use crate::precision::TaosPrecision;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp, ToSpan};
use std::fmt::Write as _;

/// Reads a time: `2024-05-01`, `2024-05-01 10:00:00.123`, the same with `T`, and each with `Z`,
/// `+08:00`, `+0800` or `+08` behind. A time without a zone is one of `zone`. `None` if it is none,
/// or beyond 64 bits of nanoseconds.
#[must_use]
pub fn parse_time(text: &str, zone: &TimeZone) -> Option<i64> {
    let text = text.trim();
    let date = text.get(..10)?;
    let [year, month, day] = numbers(date.split('-'), [4, 2, 2])?;
    let (clock, offset) = match text.get(10..)? {
        "" => ("", None),
        rest => {
            let rest = rest.strip_prefix(['T', 't', ' ']).or_else(|| {
                // A zone may follow a date.
                rest.starts_with(['Z', 'z', '+', '-']).then_some(rest)
            })?;
            split_zone(rest.trim_start())?
        }
    };
    let (whole, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let [hour, minute, second] = match whole.split(':').count() {
        _ if whole.is_empty() => [0, 0, 0],
        2 => {
            let [hour, minute] = numbers(whole.split(':'), [2, 2])?;
            [hour, minute, 0]
        }
        _ => numbers(whole.split(':'), [2, 2, 2])?,
    };
    if clock.ends_with('.') || (whole.is_empty() && !fraction.is_empty()) {
        return None;
    }
    let nanosecond = fraction_ns(fraction)?;
    let civil = DateTime::new(
        i16::try_from(year).ok()?,
        i8::try_from(month).ok()?,
        i8::try_from(day).ok()?,
        i8::try_from(hour).ok()?,
        i8::try_from(minute).ok()?,
        i8::try_from(second).ok()?,
        nanosecond,
    )
    .ok()?;
    let time = match offset {
        Some(offset) => offset.to_timestamp(civil).ok()?,
        None => zone.to_timestamp(civil).ok()?,
    };
    i64::try_from(time.as_nanosecond()).ok()
}

/// Splits a zone from the end of a time of day.
fn split_zone(text: &str) -> Option<(&str, Option<Offset>)> {
    if let Some(clock) = text.strip_suffix(['Z', 'z']) {
        return Some((clock.trim_end(), Some(Offset::UTC)));
    }
    let Some(at) = text.rfind(['+', '-']) else {
        return Some((text, None));
    };
    let (clock, zone) = (text.get(..at)?, text.get(at + 1..)?);
    let (hours, minutes) = match zone.len() {
        1 | 2 => (zone, "0"),
        4 => zone.split_at_checked(2)?,
        5 => zone.split_once(':')?,
        _ => return None,
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(hours) || !digits(minutes) {
        return None;
    }
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    if hours > 14 || minutes > 59 {
        return None;
    }
    let seconds = (hours * 60 + minutes) * 60;
    let is_west = text.as_bytes().get(at) == Some(&b'-');
    let seconds = if is_west { -seconds } else { seconds };
    Some((clock.trim_end(), Some(Offset::from_seconds(seconds).ok()?)))
}

/// Numbers of at most so many digits each.
fn numbers<'a, const N: usize>(
    mut parts: impl Iterator<Item = &'a str>,
    digits: [usize; N],
) -> Option<[u16; N]> {
    let mut found = [0; N];
    for (number, digits) in found.iter_mut().zip(digits) {
        let part = parts.next()?;
        let is_number = part.bytes().all(|byte| byte.is_ascii_digit());
        if part.is_empty() || part.len() > digits || !is_number {
            return None;
        }
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(found)
}

fn fraction_ns(text: &str) -> Option<i32> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut ns = 0;
    for place in 0..9 {
        let digit = text.as_bytes().get(place).map_or(0, |byte| byte - b'0');
        ns = ns * 10 + i32::from(digit);
    }
    Some(ns)
}

/// A time that a duration was added to; months are those of the calendar of `zone`.
///
/// # Errors
/// If the result is beyond 64 bits of nanoseconds.
pub fn shift_time(time_ns: i64, shift: TimeShift, zone: &TimeZone) -> TaosResult<i64> {
    let beyond = || TaosError::new(TaosCode::ValueOutOfRange);
    let mut time_ns = time_ns;
    if shift.months != 0 {
        let time = Timestamp::from_nanosecond(time_ns.into()).map_err(|_| beyond())?;
        let months = i32::try_from(shift.months).map_err(|_| beyond())?;
        let span = 0.days().try_months(months).map_err(|_| beyond())?;
        let moved = time.to_zoned(zone.clone()).checked_add(span);
        let moved = moved.map_err(|_| beyond())?.timestamp();
        time_ns = i64::try_from(moved.as_nanosecond()).map_err(|_| beyond())?;
    }
    time_ns.checked_add(shift.ns).ok_or_else(beyond)
}

/// The first moment of the day of a time.
#[must_use]
pub fn start_of_day(time_ns: i64, zone: &TimeZone) -> i64 {
    let time = Timestamp::from_nanosecond(time_ns.into()).ok();
    let day = time.and_then(|time| time.to_zoned(zone.clone()).start_of_day().ok());
    day.and_then(|day| i64::try_from(day.timestamp().as_nanosecond()).ok())
        .unwrap_or(time_ns)
}

/// Writes a time as answers have it: RFC 3339 with the digits of the precision.
pub fn push_time(time_ns: i64, precision: TaosPrecision, zone: &TimeZone, out: &mut String) {
    let second = time_ns.div_euclid(1_000_000_000);
    let time = Timestamp::UNIX_EPOCH.checked_add(SignedDuration::from_secs(second));
    let Ok(time) = time else {
        return;
    };
    let offset = zone.to_offset(time);
    let civil = offset.to_datetime(time);
    let _ = write!(
        out,
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
        civil.year(),
        civil.month(),
        civil.day(),
        civil.hour(),
        civil.minute(),
        civil.second()
    );
    let fraction = format!("{:09}", time_ns.rem_euclid(1_000_000_000));
    let _ = write!(out, ".{}", &fraction[..precision.digits()]);
    let minutes = offset.seconds() / 60;
    if minutes == 0 {
        out.push('Z');
    } else {
        let sign = if minutes < 0 { '-' } else { '+' };
        let minutes = minutes.abs();
        let _ = write!(out, "{sign}{:02}:{:02}", minutes / 60, minutes % 60);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn all_forms_of_a_time_are_read() {
        let utc = TimeZone::UTC;
        let same = [
            "2018-10-03 14:38:05",
            "2018-10-03T14:38:05Z",
            "2018-10-03 14:38:05.000",
            "2018-10-03T22:38:05+08:00",
            "2018-10-03 22:38:05.000+0800",
            "2018-10-03T22:38:05 +08",
        ];
        for text in same {
            let read = parse_time(text, &utc);
            assert_eq!(read, Some(1_538_577_485_000_000_000), "{text}");
        }
        let shanghai = TimeZone::get("Asia/Shanghai").unwrap();
        let day = parse_time("2018-10-03", &shanghai);
        assert_eq!(day, parse_time("2018-10-02 16:00:00", &utc));
        let part = parse_time("2018-10-03 14:38:05.123456789", &utc);
        assert_eq!(part, Some(1_538_577_485_123_456_789));
        assert_eq!(
            parse_time("2018-10-03 14:38", &utc),
            parse_time("2018-10-03 14:38:00", &utc)
        );
        let wrong = [
            "",
            "now",
            "2018-13-03",
            "2018-10-03 25:00:00",
            "2018-10-03 14:38:05.",
            "2018-10-03 14:38:05+99:00",
            "2018-10-03x",
            "9999-10-03 14:38:05",
            "日本語日本語日本語",
        ];
        for text in wrong {
            assert_eq!(parse_time(text, &utc), None, "{text}");
        }
    }

    #[test]
    fn times_are_written_with_their_precision_and_zone() {
        let written = |ns, precision, zone: &TimeZone| {
            let mut out = String::new();
            push_time(ns, precision, zone, &mut out);
            out
        };
        let utc = TimeZone::UTC;
        let ns = 1_538_577_485_000_000_000;
        assert_eq!(
            written(ns, TaosPrecision::Milli, &utc),
            "2018-10-03T14:38:05.000Z"
        );
        let shanghai = TimeZone::get("Asia/Shanghai").unwrap();
        assert_eq!(
            written(ns + 1, TaosPrecision::Nano, &shanghai),
            "2018-10-03T22:38:05.000000001+08:00"
        );
        assert_eq!(
            written(-1, TaosPrecision::Micro, &utc),
            "1969-12-31T23:59:59.999999Z"
        );
    }

    #[test]
    fn months_follow_the_calendar() {
        let utc = TimeZone::UTC;
        let march = parse_time("2024-03-31", &utc).unwrap();
        let month = TimeShift { months: -1, ns: 0 };
        let february = shift_time(march, month, &utc).unwrap();
        assert_eq!(Some(february), parse_time("2024-02-29", &utc));
        let far = TimeShift {
            months: i64::MAX,
            ns: 0,
        };
        assert!(shift_time(march, far, &utc).is_err());
        assert_eq!(start_of_day(march + 7, &utc), march);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(ns in any::<i64>()) {
            let mut out = String::new();
            push_time(ns, TaosPrecision::Nano, &TimeZone::UTC, &mut out);
            prop_assert_eq!(parse_time(&out, &TimeZone::UTC), Some(ns));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            let _ = parse_time(&text, &TimeZone::UTC);
        }
    }
}
