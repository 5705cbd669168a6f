//! Numbers of fixed length, and offsets of time zones.

use jiff::tz::{Offset, TimeZone};

/// The digits at the begin of a text, and what follows.
pub(super) fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|char: char| !char.is_ascii_digit());
    text.split_at(end.unwrap_or(text.len()))
}

/// A number of `len.0` to `len.1` digits.
pub(super) fn number(text: &str, len: (usize, usize)) -> Option<(i64, &str)> {
    let (digits, rest) = digits(text);
    let fits = (len.0..=len.1).contains(&digits.len());
    Some((fits.then(|| digits.parse().ok()).flatten()?, rest))
}

/// `Z`, or `+08:00`.
pub(super) fn zone_offset(text: &str) -> Option<(TimeZone, &str)> {
    if let Some(rest) = text.strip_prefix(['Z', 'z']) {
        return Some((TimeZone::UTC, rest));
    }
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, rest) = number(&text[1..], (1, 2))?;
    let (minutes, rest) = number(rest.strip_prefix(':')?, (2, 2))?;
    let seconds = i32::try_from(sign * (hours * 3600 + minutes * 60)).ok()?;
    let offset = Offset::from_seconds(seconds).ok()?;
    Some((TimeZone::fixed(offset), rest))
}
