//! Times as they stand in files: numbers since the epoch in any unit, RFC 3339, and the date forms
//! that spreadsheets and loggers write. Times without a zone are UTC.

use chrono::{DateTime, NaiveDate, NaiveDateTime};
use std::str::FromStr;

/// Unit of a time that is a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// Seconds.
    S,
    /// Milliseconds.
    Ms,
    /// Microseconds.
    Us,
    /// Nanoseconds.
    Ns,
}

impl Precision {
    /// Nanoseconds of one unit.
    pub fn ns(self) -> i64 {
        match self {
            Self::S => 1_000_000_000,
            Self::Ms => 1_000_000,
            Self::Us => 1_000,
            Self::Ns => 1,
        }
    }

    /// The unit in which `number` is a time between 1973 and 2286 (seconds below 10^10, then
    /// a thousand times as much for each finer unit).
    pub fn guess(number: f64) -> Self {
        match number.abs() {
            n if n < 1e11 => Self::S,
            n if n < 1e14 => Self::Ms,
            n if n < 1e17 => Self::Us,
            _ => Self::Ns,
        }
    }
}

impl FromStr for Precision {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "s" => Ok(Self::S),
            "ms" => Ok(Self::Ms),
            "us" | "u" => Ok(Self::Us),
            "ns" | "n" => Ok(Self::Ns),
            other => Err(format!(
                "'{other}' is not a unit of time: use s, ms, us or ns"
            )),
        }
    }
}

/// How the times of a column are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimeForm {
    /// A whole number or a fraction of this unit since the epoch.
    Number(Precision),
    /// `YYYY-MM-DD` (or with slashes), then optionally a time, a fraction and a zone.
    Iso,
    /// As strftime writes it; `true` if the form has a time of day.
    Pattern(String),
}

/// Date forms that are tried besides ISO's.
const PATTERNS: [&str; 8] = [
    "%d.%m.%Y %H:%M:%S",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y",
    "%m/%d/%Y %H:%M:%S",
    "%m/%d/%Y %H:%M",
    "%m/%d/%Y",
    "%a %b %e %H:%M:%S %Y",
    "%d %b %Y %H:%M:%S",
];

impl TimeForm {
    /// The form in which all of `samples` can be read.
    pub fn of<'a>(samples: impl Iterator<Item = &'a str> + Clone) -> Option<Self> {
        let mut numbers = samples.clone().map(|text| text.trim().parse::<f64>());
        if let Some(Ok(first)) = numbers.next() {
            return numbers
                .all(|n| n.is_ok())
                .then(|| Self::Number(Precision::guess(first)));
        }
        let patterns = PATTERNS
            .iter()
            .map(|pattern| Self::Pattern((*pattern).to_owned()));
        std::iter::once(Self::Iso).chain(patterns).find(|form| {
            let mut any = false;
            samples.clone().all(|text| {
                any = true;
                form.read(text).is_some()
            }) && any
        })
    }

    /// Nanoseconds since the epoch; `None` where the text is no such time, or none that fits.
    pub fn read(&self, text: &str) -> Option<i64> {
        let text = text.trim();
        match self {
            Self::Number(precision) => read_number(text, *precision),
            Self::Iso => read_iso(text),
            Self::Pattern(pattern) => read_pattern(text, pattern),
        }
    }
}

fn read_number(text: &str, precision: Precision) -> Option<i64> {
    if let Ok(whole) = text.parse::<i64>() {
        return whole.checked_mul(precision.ns());
    }
    let number: f64 = text.parse().ok()?;
    let (whole, ns) = (number.floor(), precision.ns());
    if !number.is_finite() || whole.abs() >= 9.2e18 {
        return None;
    }
    let fraction = ((number - whole) * ns as f64).round() as i64;
    (whole as i64).checked_mul(ns)?.checked_add(fraction)
}

fn read_pattern(text: &str, pattern: &str) -> Option<i64> {
    if let Ok(time) = DateTime::parse_from_str(text, pattern) {
        return time.timestamp_nanos_opt();
    }
    if let Ok(time) = NaiveDateTime::parse_from_str(text, pattern) {
        return time.and_utc().timestamp_nanos_opt();
    }
    let date = NaiveDate::parse_from_str(text, pattern).ok()?;
    date.and_hms_opt(0, 0, 0)?.and_utc().timestamp_nanos_opt()
}

/// Digits of `bytes` as a number.
fn digits(bytes: &[u8]) -> Option<i64> {
    bytes.iter().try_fold(0i64, |number, byte| {
        byte.is_ascii_digit()
            .then(|| number * 10 + i64::from(byte - b'0'))
    })
}

/// ISO 8601 as files hold it. Written out, because it is the hot path of an import.
fn read_iso(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let separator = *bytes.get(4)?;
    if !matches!(separator, b'-' | b'/') || *bytes.get(7)? != separator {
        return None;
    }
    let year = i32::try_from(digits(&bytes[..4])?).ok()?;
    let month = u32::try_from(digits(&bytes[5..7])?).ok()?;
    let day = u32::try_from(digits(bytes.get(8..10)?)?).ok()?;
    let date = NaiveDate::from_ymd_opt(year, month, day)?;
    let days = i64::from(date.to_epoch_days());
    let rest = &bytes[10..];
    let (seconds, ns) = if rest.is_empty() {
        (0, 0)
    } else {
        read_clock(rest)?
    };
    let seconds = days.checked_mul(86_400)?.checked_add(seconds)?;
    i64::try_from(i128::from(seconds) * 1_000_000_000 + i128::from(ns)).ok()
}

/// `[T ]HH:MM[:SS[.fraction]][Z|±HH[:]MM]` as seconds of the day (UTC, so perhaps of another day)
/// and ns.
fn read_clock(bytes: &[u8]) -> Option<(i64, i64)> {
    if !matches!(bytes[0], b' ' | b'T' | b't') || *bytes.get(3)? != b':' {
        return None;
    }
    let (hour, minute) = (digits(&bytes[1..3])?, digits(bytes.get(4..6)?)?);
    let mut rest = &bytes[6..];
    let (mut second, mut ns) = (0, 0);
    if rest.first() == Some(&b':') {
        second = digits(rest.get(1..3)?)?;
        rest = &rest[3..];
        if matches!(rest.first(), Some(b'.' | b',')) {
            let len = rest[1..]
                .iter()
                .take_while(|byte| byte.is_ascii_digit())
                .count();
            let kept = len.min(9);
            if len == 0 {
                return None;
            }
            ns = digits(&rest[1..=kept])? * 10i64.pow(9 - kept as u32);
            rest = &rest[1 + len..];
        }
    }
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let offset = read_offset(rest.strip_prefix(b" ").unwrap_or(rest))?;
    Some((hour * 3600 + minute * 60 + second - offset, ns))
}

/// A zone as seconds east of UTC; nothing means UTC.
fn read_offset(bytes: &[u8]) -> Option<i64> {
    match bytes {
        [] | b"Z" | b"z" | b"UTC" => Some(0),
        [sign @ (b'+' | b'-'), rest @ ..] => {
            let (hours, minutes) = match rest.len() {
                2 => (digits(rest)?, 0),
                4 => (digits(&rest[..2])?, digits(&rest[2..])?),
                5 if rest[2] == b':' => (digits(&rest[..2])?, digits(&rest[3..])?),
                _ => return None,
            };
            let seconds = hours * 3600 + minutes * 60;
            (hours < 24 && minutes < 60).then_some(if *sign == b'-' { -seconds } else { seconds })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: i64 = 1_404_216_000_000_000_000; // 2014-07-01T12:00:00Z

    #[test]
    fn iso_times_are_read_with_and_without_zone() {
        for text in [
            "2014-07-01 12:00:00",
            "2014-07-01T12:00:00Z",
            "2014/07/01 12:00",
            "2014-07-01T14:00:00+02:00",
            "2014-07-01T07:30:00.000-0430",
            " 2014-07-01 12:00:00 UTC ",
        ] {
            assert_eq!(TimeForm::Iso.read(text), Some(NOON), "{text}");
        }
        assert_eq!(
            TimeForm::Iso.read("2014-07-01 12:00:00.25"),
            Some(NOON + 250_000_000)
        );
        assert_eq!(TimeForm::Iso.read("1970-01-01"), Some(0));
        assert_eq!(
            TimeForm::Iso.read("1969-12-31T23:59:59.999999999Z"),
            Some(-1)
        );
        for wrong in [
            "2014-13-01",
            "2014-07-01 25:00:00",
            "2014-07-01 12:00:00.",
            "9999-01-01",
            "",
            "x",
        ] {
            assert_eq!(TimeForm::Iso.read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_unit_of_numbers_is_guessed() {
        for (text, precision) in [
            ("1404216000", Precision::S),
            ("1404216000000", Precision::Ms),
            ("1404216000000000", Precision::Us),
            ("1404216000000000000", Precision::Ns),
        ] {
            let form = TimeForm::of(std::iter::once(text)).unwrap();
            assert_eq!(form, TimeForm::Number(precision));
            assert_eq!(form.read(text), Some(NOON));
        }
        assert_eq!(
            TimeForm::Number(Precision::S).read("1.5"),
            Some(1_500_000_000)
        );
        assert_eq!(
            TimeForm::Number(Precision::S).read("9223372036854775807"),
            None
        );
        assert_eq!(TimeForm::Number(Precision::Ns).read("NaN"), None);
    }

    #[test]
    fn the_form_must_fit_all_samples() {
        let german = ["01.07.2014 12:00:00", "13.07.2014 12:00:00"];
        let form = TimeForm::of(german.into_iter()).unwrap();
        assert_eq!(form.read(german[0]), Some(NOON));
        assert_eq!(TimeForm::of(["2014-07-01", "soon"].into_iter()), None);
        assert_eq!(TimeForm::of(std::iter::empty()), None);
    }
}
