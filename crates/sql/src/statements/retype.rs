//! `ALTER COLUMN … TYPE`: which types follow which, and the exact conversion of each value.
//!
//! A conversion is exact if the new value denotes what the old one did: a number the same number, a
//! time the same moment, a text that a type reads what it reads there. Anything else would lose
//! something in silence, so the statement refuses it and names the value.

use crate::error::SqlError;
use arrow::array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Float32Array, Float64Array, Int32Array, Int64Array,
    StringArray, TimestampNanosecondArray, UInt64Array,
};
use marigram_engine::{ConvertedColumn, UnfitValue};
use marigram_model::{FieldType, FieldValue};
use marigram_pgtext::{ReferenceClock, TimeText, ZoneClock, double_text, real_text};
use std::fmt::Write as _;
use std::sync::Arc;

/// Bytes of a value that an error shows.
const SHOWN_BYTES_MAX: usize = 60;

/// The types between which a field is changed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldConversion {
    to: FieldType,
    /// Whether times are written with a zone.
    is_zoned: bool,
}

impl FieldConversion {
    /// The conversion between two types; `None` if no value of one is a value of the other. `is_zoned`
    /// says that times of the field are shown with a zone.
    pub(crate) fn between(from: FieldType, to: FieldType, is_zoned: bool) -> Option<Self> {
        use FieldType::{Bytes, String, Timestamp};
        let is_alone = |kind| matches!(kind, Bytes | Timestamp);
        let is_known = match (from, to) {
            (String, _) | (_, String) => true,
            (from, to) => from == to || !(is_alone(from) || is_alone(to)),
        };
        is_known.then_some(Self { to, is_zoned })
    }

    /// Converts values of the first type.
    pub(crate) fn convert(self, values: &ArrayRef) -> ConvertedColumn {
        let mut unfit = Vec::new();
        let converted: Vec<Option<FieldValue>> = (0..values.len())
            .map(|row| {
                let value = FieldValue::from_array(values, row)?;
                let converted = self.converted(value);
                if converted.is_none() {
                    unfit.push(row);
                }
                converted
            })
            .collect();
        ConvertedColumn {
            values: array_of(self.to, converted),
            unfit,
        }
    }

    fn converted(self, value: FieldValue) -> Option<FieldValue> {
        match (value, self.to) {
            (value, to) if value.field_type() == to => Some(value),
            (FieldValue::String(text), to) => read(&text, to),
            (FieldValue::Bytes(bytes), FieldType::String) => {
                let text = String::from_utf8(bytes).ok()?;
                // PostgreSQL's texts cannot hold it.
                (!text.contains('\0')).then_some(FieldValue::String(text))
            }
            (value, FieldType::String) => Some(FieldValue::String(text_of(&value, self.is_zoned)?)),
            (FieldValue::F32(value), FieldType::F64) => Some(FieldValue::F64(f64::from(value))),
            (FieldValue::F64(value), FieldType::F32) => {
                let narrow = value as f32;
                let is_same = f64::from(narrow).to_bits() == value.to_bits() || value.is_nan();
                is_same.then_some(FieldValue::F32(narrow))
            }
            (value, to) => from_integer(integer_of(&value)?, to),
        }
    }
}

/// The integer that a value is; `false` is 0. A negative zero is none: its sign would be lost.
fn integer_of(value: &FieldValue) -> Option<i128> {
    let of_float = |value: f64| {
        let is_whole = value.fract() == 0.0 && value.abs() < 2_f64.powi(126);
        let is_exact = is_whole && (value != 0.0 || value.is_sign_positive());
        is_exact.then_some(value as i128)
    };
    match value {
        FieldValue::Bool(value) => Some(i128::from(*value)),
        FieldValue::I32(value) => Some(i128::from(*value)),
        FieldValue::I64(value) => Some(i128::from(*value)),
        FieldValue::U64(value) => Some(i128::from(*value)),
        FieldValue::F32(value) => of_float(f64::from(*value)),
        FieldValue::F64(value) => of_float(*value),
        FieldValue::String(_) | FieldValue::Bytes(_) | FieldValue::Timestamp(_) => None,
    }
}

/// An integer in a type that holds numbers or truths.
fn from_integer(value: i128, to: FieldType) -> Option<FieldValue> {
    match to {
        FieldType::Bool => match value {
            0 => Some(FieldValue::Bool(false)),
            1 => Some(FieldValue::Bool(true)),
            _ => None,
        },
        FieldType::I32 => i32::try_from(value).ok().map(FieldValue::I32),
        FieldType::I64 => i64::try_from(value).ok().map(FieldValue::I64),
        FieldType::U64 => u64::try_from(value).ok().map(FieldValue::U64),
        FieldType::F32 => {
            let float = value as f32;
            (float as i128 == value).then_some(FieldValue::F32(float))
        }
        FieldType::F64 => {
            let float = value as f64;
            (float as i128 == value).then_some(FieldValue::F64(float))
        }
        FieldType::String | FieldType::Bytes | FieldType::Timestamp => None,
    }
}

/// What a type reads in a text, with spaces around it.
fn read(text: &str, to: FieldType) -> Option<FieldValue> {
    let word = text.trim_matches([' ', '\t', '\n', '\r']);
    match to {
        FieldType::Bytes => Some(FieldValue::Bytes(text.as_bytes().to_vec())),
        FieldType::String => Some(FieldValue::String(text.to_owned())),
        FieldType::Bool => match word.to_ascii_lowercase().as_str() {
            "t" | "true" | "y" | "yes" | "on" | "1" => Some(FieldValue::Bool(true)),
            "f" | "false" | "n" | "no" | "off" | "0" => Some(FieldValue::Bool(false)),
            _ => None,
        },
        FieldType::I32 => word.parse().ok().map(FieldValue::I32),
        FieldType::I64 => word.parse().ok().map(FieldValue::I64),
        FieldType::U64 => word.parse().ok().map(FieldValue::U64),
        FieldType::F32 => {
            let value: f32 = word.parse().ok()?;
            is_written(word, value.is_finite(), &format!("{value:e}"))
                .then_some(FieldValue::F32(value))
        }
        FieldType::F64 => {
            let value: f64 = word.parse().ok()?;
            is_written(word, value.is_finite(), &format!("{value:e}"))
                .then_some(FieldValue::F64(value))
        }
        FieldType::Timestamp => {
            let clock = ReferenceClock {
                now: None,
                zone: marigram_pgtext::zone_of("UTC").ok()?,
            };
            let time = TimeText::parse(word, &clock).ok()?;
            time.utc_ns(&clock).ok().map(FieldValue::Timestamp)
        }
    }
}

/// Whether a text has the digits that a float prints, so that none is lost by rounding.
fn is_written(text: &str, is_finite: bool, printed: &str) -> bool {
    if !is_finite {
        // Words, but no number that is too large.
        return !text.bytes().any(|byte| byte.is_ascii_digit());
    }
    match (decimal(text), decimal(printed)) {
        (Some(text), Some(printed)) => text == printed,
        _ => false,
    }
}

/// Sign, digits without zeros at both ends, and the power of ten of the last digit.
fn decimal(text: &str) -> Option<(bool, String, i64)> {
    let (is_negative, text) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (text, 0),
    };
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{part}");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let kept = digits.trim_end_matches('0');
    let dropped = (digits.len() - kept.len()) as i64;
    let kept = kept.trim_start_matches('0');
    if kept.is_empty() {
        return Some((is_negative, String::new(), 0));
    }
    let power = exponent
        .checked_sub(part.len() as i64)?
        .checked_add(dropped)?;
    Some((is_negative, kept.to_owned(), power))
}

/// A value as PostgreSQL prints it; `None` for a time without a text.
fn text_of(value: &FieldValue, is_zoned: bool) -> Option<String> {
    Some(match value {
        FieldValue::Bool(value) => value.to_string(),
        FieldValue::I32(value) => value.to_string(),
        FieldValue::I64(value) => value.to_string(),
        FieldValue::U64(value) => value.to_string(),
        FieldValue::F32(value) => real_text(*value),
        FieldValue::F64(value) => double_text(*value),
        FieldValue::String(value) => value.clone(),
        FieldValue::Bytes(value) => value.iter().fold("\\x".to_owned(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        }),
        FieldValue::Timestamp(value) => {
            let text = ZoneClock::new(marigram_pgtext::zone_of("UTC").ok()?).text(*value)?;
            if is_zoned {
                text
            } else {
                text.strip_suffix("+00")?.to_owned()
            }
        }
    })
}

/// Values of a type as an array.
fn array_of(kind: FieldType, values: Vec<Option<FieldValue>>) -> ArrayRef {
    macro_rules! collect {
        ($array:ty, $variant:ident) => {{
            let values = values.into_iter().map(|value| match value {
                Some(FieldValue::$variant(value)) => Some(value),
                _ => None,
            });
            Arc::new(values.collect::<$array>())
        }};
    }
    match kind {
        FieldType::Bool => collect!(BooleanArray, Bool),
        FieldType::I32 => collect!(Int32Array, I32),
        FieldType::I64 => collect!(Int64Array, I64),
        FieldType::U64 => collect!(UInt64Array, U64),
        FieldType::F32 => collect!(Float32Array, F32),
        FieldType::F64 => collect!(Float64Array, F64),
        FieldType::String => collect!(StringArray, String),
        FieldType::Bytes => collect!(BinaryArray, Bytes),
        FieldType::Timestamp => collect!(TimestampNanosecondArray, Timestamp),
    }
}

/// A value as an error shows it.
fn shown(value: &FieldValue) -> String {
    let text = text_of(value, false).unwrap_or_default();
    let cut = text.floor_char_boundary(SHOWN_BYTES_MAX);
    let text = if cut < text.len() {
        format!("{}…", &text[..cut])
    } else {
        text
    };
    match value {
        FieldValue::String(_) | FieldValue::Bytes(_) | FieldValue::Timestamp(_) => {
            format!("'{text}'")
        }
        _ => text,
    }
}

/// The error for values that do not convert.
pub(crate) fn unfit_error(
    (table, column): (&str, &str),
    (from, to): (FieldType, FieldType),
    count: u64,
    first: &UnfitValue,
) -> SqlError {
    let time = text_of(&FieldValue::Timestamp(first.time_ns), true);
    let time = time.unwrap_or_else(|| format!("{} ns", first.time_ns));
    let tags: Vec<String> = first
        .tags
        .iter()
        .map(|(name, value)| format!("{name} = {}", shown(value)))
        .collect();
    let series = if tags.is_empty() {
        String::new()
    } else {
        format!(" of the series {}", tags.join(", "))
    };
    let value = shown(&first.value);
    let which = if count == 1 {
        format!("its value {value} at {time}{series} is")
    } else {
        format!("{count} of its values, the earliest {value} at {time}{series}, are")
    };
    let message = format!(
        "column '{column}' of '{table}' stays {from}, because {which} not exactly {to}; nothing was \
         changed"
    );
    let code = if from == FieldType::String {
        "22P02"
    } else {
        "22003"
    };
    SqlError::named(code, column, message)
}

/// The error for types between which nothing converts.
pub(crate) fn no_conversion(
    (table, column): (&str, &str),
    from: FieldType,
    to: FieldType,
) -> SqlError {
    let reason = match (from, to) {
        (FieldType::Timestamp, _) | (_, FieldType::Timestamp) => {
            "a number is a time only in a unit, which the statement does not name"
        }
        _ => "bytes are neither numbers nor truths",
    };
    let message = format!(
        "column '{column}' of '{table}' stays {from}: {reason}; CREATE TABLE … AS SELECT an \
         expression of {column} as {to} and the other columns, then rename both tables"
    );
    SqlError::named("42804", column, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use FieldValue as V;

    fn converted(value: V, to: FieldType) -> Option<V> {
        let from = value.field_type();
        let conversion = FieldConversion::between(from, to, false).unwrap();
        let found = conversion.convert(&value.to_array());
        assert_eq!(found.values.data_type(), &to.data_type());
        let row = FieldValue::from_array(&found.values, 0);
        assert_eq!(found.unfit.is_empty(), row.is_some(), "{value:?}");
        row
    }

    fn text(value: &str) -> V {
        V::String(value.to_owned())
    }

    #[test]
    fn numbers_convert_if_they_stay_the_same_number() {
        use FieldType::{Bool, F32, F64, I32, I64, U64};
        for (value, to, expected) in [
            (V::I32(-7), I64, Some(V::I64(-7))),
            (V::I32(-7), U64, None),
            (V::I64(1 << 31), I32, None),
            (V::I64(i64::MAX), U64, Some(V::U64(i64::MAX as u64))),
            (V::U64(u64::MAX), I64, None),
            (V::I64((1 << 53) + 1), F64, None),
            (V::I64(1 << 53), F64, Some(V::F64(9_007_199_254_740_992.0))),
            (V::I64(i64::MAX), F64, None),
            (V::U64(u64::MAX), F64, None),
            (V::I32(16_777_217), F32, None),
            (V::I32(16_777_216), F32, Some(V::F32(16_777_216.0))),
            (V::F64(7.5), I64, None),
            (V::F64(-7.0), I32, Some(V::I32(-7))),
            (V::F64(-0.0), I64, None),
            (V::F64(0.0), I64, Some(V::I64(0))),
            (V::F64(f64::NAN), I64, None),
            (V::F64(1e300), I64, None),
            (V::F64(0.1), F32, None),
            (V::F64(0.5), F32, Some(V::F32(0.5))),
            (V::F64(f64::INFINITY), F32, Some(V::F32(f32::INFINITY))),
            (V::F64(1e300), F32, None),
            (V::F32(0.1), F64, Some(V::F64(f64::from(0.1_f32)))),
            (V::Bool(true), I32, Some(V::I32(1))),
            (V::Bool(false), F64, Some(V::F64(0.0))),
            (V::I64(1), Bool, Some(V::Bool(true))),
            (V::I64(2), Bool, None),
            (V::F32(0.0), Bool, Some(V::Bool(false))),
        ] {
            assert_eq!(converted(value.clone(), to), expected, "{value:?} to {to}");
        }
        assert!(matches!(converted(V::F64(f64::NAN), F32), Some(V::F32(nan)) if nan.is_nan()));
    }

    #[test]
    fn texts_convert_if_the_type_reads_all_of_them() {
        use FieldType::{Bool, Bytes, F32, F64, I32, I64, Timestamp, U64};
        for (value, to, expected) in [
            (" 007 ", I64, Some(V::I64(7))),
            ("+7", I32, Some(V::I32(7))),
            ("7.0", I64, None),
            ("-1", U64, None),
            ("", I64, None),
            ("0.1", F64, Some(V::F64(0.1))),
            ("1.50e3", F64, Some(V::F64(1500.0))),
            ("0.1", F32, Some(V::F32(0.1))),
            ("0.123456789", F32, None),
            ("0.12345678901234567890", F64, None),
            ("9007199254740993", F64, None),
            ("1e400", F64, None),
            ("1e-400", F64, None),
            ("-0", F64, Some(V::F64(-0.0))),
            ("-Infinity", F64, Some(V::F64(f64::NEG_INFINITY))),
            ("n/a", F64, None),
            ("Yes", Bool, Some(V::Bool(true))),
            ("off", Bool, Some(V::Bool(false))),
            ("2", Bool, None),
            ("é", Bytes, Some(V::Bytes("é".as_bytes().to_vec()))),
            (
                "1970-01-01 00:00:01+01",
                Timestamp,
                Some(V::Timestamp(-3_599_000_000_000)),
            ),
            (
                "1970-01-01 00:00:01.5",
                Timestamp,
                Some(V::Timestamp(1_500_000_000)),
            ),
            ("yesterday", Timestamp, None),
        ] {
            assert_eq!(converted(text(value), to), expected, "{value} to {to}");
        }
    }

    #[test]
    fn texts_are_those_of_postgresql() {
        for (value, expected) in [
            (V::Bool(true), "true"),
            (V::U64(u64::MAX), "18446744073709551615"),
            (V::F64(1.5), "1.5"),
            (V::F64(-0.0), "-0"),
            (V::F64(100.0), "100"),
            (V::F64(1e14), "100000000000000"),
            (V::F64(1e15), "1e+15"),
            (V::F64(-1.25e-5), "-1.25e-05"),
            (V::F64(0.000_123), "0.000123"),
            (V::F64(f64::NEG_INFINITY), "-Infinity"),
            (V::F32(123_456.0), "123456"),
            (V::F32(1_234_567.0), "1.234567e+06"),
            (V::F32(0.1), "0.1"),
            (V::Timestamp(1_500_000_000), "1970-01-01 00:00:01.5"),
            (V::Bytes(b"ab".to_vec()), "ab"),
        ] {
            assert_eq!(
                converted(value.clone(), FieldType::String),
                Some(text(expected))
            );
            // And back, which reads the same.
            assert_eq!(converted(text(expected), value.field_type()), Some(value));
        }
        assert_eq!(converted(V::Bytes(vec![0xff]), FieldType::String), None);
        assert_eq!(converted(V::Bytes(vec![b'a', 0]), FieldType::String), None);
    }

    #[test]
    fn times_and_bytes_are_no_numbers() {
        for kind in [FieldType::I64, FieldType::F64, FieldType::Bool] {
            for alone in [FieldType::Timestamp, FieldType::Bytes] {
                assert!(FieldConversion::between(kind, alone, false).is_none());
                assert!(FieldConversion::between(alone, kind, false).is_none());
            }
        }
        let (time, bytes) = (FieldType::Timestamp, FieldType::Bytes);
        assert!(FieldConversion::between(time, bytes, false).is_none());
    }
}
