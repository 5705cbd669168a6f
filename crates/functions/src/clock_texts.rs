//! Times of day as PostgreSQL reads them: `10:15`, `10:15:30.5`, `101530`, `10:15 PM`.

const MINUTE_NS: i64 = 60_000_000_000;
const DAY_NS: i64 = 24 * 60 * MINUTE_NS;

/// Why a text is no time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClockTextError {
    /// It has another form (SQLSTATE `22007`).
    Form,
    /// There is no such hour, minute or second (`22008`).
    Range,
}

/// Reads a time of day, nanoseconds since midnight. A zone behind it does not matter.
///
/// # Errors
/// If the text is none.
pub(crate) fn parse_clock(text: &str) -> Result<i64, ClockTextError> {
    use ClockTextError::{Form, Range};
    let text = text.trim();
    let text = text.strip_prefix(['T', 't']).unwrap_or(text);
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == ':' || c == '.'))
        .unwrap_or(text.len());
    let (clock, rest) = text.split_at(end);
    let is_afternoon = half_of_day(rest.trim())?;
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let parts: Vec<&str> = if clock.contains(':') {
        clock.split(':').collect()
    } else {
        // Without colons, each part has two digits.
        match clock.len() {
            4 => vec![&clock[..2], &clock[2..]],
            6 => vec![&clock[..2], &clock[2..4], &clock[4..]],
            1 | 2 if is_afternoon.is_some() => vec![clock],
            _ => return Err(Form),
        }
    };
    let number = |part: &&str| part.parse::<i64>().map_err(|_| Form);
    let numbers = parts.iter().map(number).collect::<Result<Vec<_>, _>>()?;
    let (hour, minute, second) = match numbers.as_slice() {
        [hour] => (*hour, 0, 0),
        [hour, minute] if fraction.is_empty() => (*hour, *minute, 0),
        [hour, minute, second] => (*hour, *minute, *second),
        _ => return Err(Form),
    };
    let digits: String = format!("{fraction:0<9}").chars().take(9).collect();
    let nanos: i64 = digits.parse().map_err(|_| Form)?;
    let hour = match is_afternoon {
        None => hour,
        Some(_) if !(0..=12).contains(&hour) => return Err(Range),
        Some(is_afternoon) => hour % 12 + if is_afternoon { 12 } else { 0 },
    };
    if hour > 24 || minute > 59 || second > 60 {
        return Err(Range);
    }
    let ns = (hour * 60 + minute) * MINUTE_NS + second * 1_000_000_000 + nanos;
    if ns >= DAY_NS { Err(Range) } else { Ok(ns) }
}

/// Whether a text behind a time says PM, or else AM; `None` if it is a zone, or nothing.
fn half_of_day(text: &str) -> Result<Option<bool>, ClockTextError> {
    match text.to_ascii_lowercase().as_str() {
        "am" | "a.m." => Ok(Some(false)),
        "pm" | "p.m." => Ok(Some(true)),
        "" | "z" | "utc" | "gmt" => Ok(None),
        zone => {
            let offset = zone.strip_prefix(['+', '-']);
            let is_offset = offset.is_some_and(|offset| {
                !offset.is_empty() && offset.bytes().all(|c| c.is_ascii_digit() || c == b':')
            });
            if is_offset {
                Ok(None)
            } else {
                Err(ClockTextError::Form)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As PostgreSQL 15 reads them.
    #[test]
    fn times_of_day_are_read_in_all_forms() {
        let at = |hour: i64, minute: i64, second: f64| {
            Ok((hour * 60 + minute) * MINUTE_NS + (second * 1e9) as i64)
        };
        for (text, expected) in [
            ("10:15", at(10, 15, 0.0)),
            ("101500", at(10, 15, 0.0)),
            ("1015", at(10, 15, 0.0)),
            ("10:15:30.5", at(10, 15, 30.5)),
            ("10:15 PM", at(22, 15, 0.0)),
            ("12:00 am", at(0, 0, 0.0)),
            ("04:05:06-08", at(4, 5, 6.0)),
            ("T04:05:06Z", at(4, 5, 6.0)),
            ("25:00", Err(ClockTextError::Range)),
            ("10:61", Err(ClockTextError::Range)),
            ("noon", Err(ClockTextError::Form)),
            ("", Err(ClockTextError::Form)),
        ] {
            assert_eq!(parse_clock(text), expected, "{text}");
        }
    }
}
