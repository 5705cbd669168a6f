//! Parses sizes and durations as people write them: `512MB`, `1GiB`, `30s`, `7d`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A number of bytes. Parses `4096`, `64KB`, `512MB`, `1.5GiB`; decimal and binary units differ
/// (`KB` = 1,000, `KiB` = 1,024), and case does not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub usize);

/// A duration. Parses `250ms`, `30s`, `10m`, `24h`, `7d`, `2w`; a bare number is in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

/// Why a text is not a size or a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not {what}: {reason}")]
pub struct UnitError {
    text: String,
    what: &'static str,
    reason: &'static str,
}

const BYTE_UNITS: [(&str, f64); 14] = [
    ("", 1.0),
    ("b", 1.0),
    ("k", 1e3),
    ("kb", 1e3),
    ("kib", 1024.0),
    ("m", 1e6),
    ("mb", 1e6),
    ("mib", 1_048_576.0),
    ("g", 1e9),
    ("gb", 1e9),
    ("gib", 1_073_741_824.0),
    ("t", 1e12),
    ("tb", 1e12),
    ("tib", 1_099_511_627_776.0),
];

const SPAN_UNITS: [(&str, f64); 9] = [
    ("", 1.0),
    ("ns", 1e-9),
    ("us", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3600.0),
    ("d", 86400.0),
    ("w", 604_800.0),
];

/// A number and a unit, multiplied.
fn measure(text: &str, what: &'static str, units: &[(&str, f64)]) -> Result<f64, UnitError> {
    let fail = |reason| UnitError {
        text: text.to_owned(),
        what,
        reason,
    };
    let trimmed = text.trim();
    let end = trimmed
        .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')
        .unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(end);
    let number: f64 = number
        .replace('_', "")
        .parse()
        .map_err(|_| fail("it does not begin with a number"))?;
    let unit = unit.trim().to_ascii_lowercase();
    let factor = units
        .iter()
        .find(|(name, _)| *name == unit)
        .map(|(_, factor)| *factor);
    Ok(number * factor.ok_or_else(|| fail("its unit is unknown"))?)
}

impl FromStr for ByteSize {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        const WHAT: &str = "a size such as 512MB or 1GiB";
        let bytes = measure(text, WHAT, &BYTE_UNITS)?;
        if bytes >= usize::MAX as f64 {
            let text = text.to_owned();
            return Err(UnitError {
                text,
                what: WHAT,
                reason: "it is too large",
            });
        }
        Ok(Self(bytes as usize))
    }
}

impl FromStr for Span {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        const WHAT: &str = "a span of time such as 250ms, 30s or 7d";
        let seconds = measure(text, WHAT, &SPAN_UNITS)?;
        Duration::try_from_secs_f64(seconds)
            .map(Self)
            .map_err(|_| UnitError {
                text: text.to_owned(),
                what: WHAT,
                reason: "it is too long",
            })
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0;
        let exact = [
            ("GiB", 1 << 30),
            ("GB", 1_000_000_000),
            ("MiB", 1 << 20),
            ("MB", 1_000_000),
            ("KiB", 1 << 10),
        ];
        for (unit, size) in exact {
            if bytes >= size && bytes.is_multiple_of(size) {
                return write!(f, "{}{unit}", bytes / size);
            }
        }
        for (unit, size) in [("GB", 1e9), ("MB", 1e6), ("KB", 1e3)] {
            if bytes as f64 >= size {
                let text = format!("{:.1}", bytes as f64 / size);
                return write!(f, "{}{unit}", text.trim_end_matches(".0"));
            }
        }
        write!(f, "{bytes}B")
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.0.as_millis();
        for (unit, size) in [
            ("d", 86_400_000),
            ("h", 3_600_000),
            ("m", 60_000),
            ("s", 1000),
        ] {
            if ms >= size && ms.is_multiple_of(size) {
                return write!(f, "{}{unit}", ms / size);
            }
        }
        write!(f, "{ms}ms")
    }
}

/// The values that a configuration file may have for a size or a duration.
#[derive(Deserialize)]
#[serde(untagged)]
enum TextOrNumber {
    Number(u64),
    Text(String),
}

fn from_config<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: FromStr<Err = UnitError>,
    D: Deserializer<'de>,
{
    let text = match TextOrNumber::deserialize(deserializer)? {
        TextOrNumber::Number(number) => number.to_string(),
        TextOrNumber::Text(text) => text,
    };
    text.parse().map_err(serde::de::Error::custom)
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_config(deserializer)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_config(deserializer)
    }
}

impl Serialize for ByteSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_decimal_and_binary_units() {
        let bytes = |text: &str| text.parse::<ByteSize>().map(|size| size.0);
        assert_eq!(bytes("4096"), Ok(4096));
        assert_eq!(bytes("512MB"), Ok(512_000_000));
        assert_eq!(bytes("1.5 GiB"), Ok(1_610_612_736));
        assert_eq!(bytes("64k"), Ok(64_000));
        for wrong in ["", "MB", "12parsecs", "-1MB", "99999999999TB", "1..2MB"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn spans_are_read_and_written_back() {
        for text in ["250ms", "30s", "10m", "24h", "7d"] {
            let span: Span = text.parse().unwrap();
            assert_eq!(span.to_string().parse::<Span>(), Ok(span), "{text}");
        }
        assert_eq!("90".parse::<Span>().unwrap().0, Duration::from_secs(90));
        assert!("1e400s".parse::<Span>().is_err());
        assert!("5 fortnights".parse::<Span>().is_err());
    }

    #[test]
    fn sizes_read_well() {
        assert_eq!(ByteSize(1 << 30).to_string(), "1GiB");
        assert_eq!(ByteSize(512_000_000).to_string(), "512MB");
        assert_eq!(ByteSize(12).to_string(), "12B");
    }
}
