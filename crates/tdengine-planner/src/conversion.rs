//! Conversions of values between types.

use crate::taos_value::{Val, arrow_type};
use arrow::datatypes::DataType;
use marigram_tdengine::{TaosType, TimeSetting, push_time};

/// A value in the Arrow type of another type, where a comparison or CASE needs it.
pub(crate) fn converted(value: &Val, kind: TaosType) -> Val {
    if value.is_null() {
        return Val::Null;
    }
    match arrow_type(kind) {
        DataType::Boolean => value.truth().map_or(Val::Null, Val::Bool),
        DataType::Float64 => value.number().map_or(Val::Null, Val::Float),
        DataType::Int64 => value.integer().map_or(Val::Null, Val::Int),
        DataType::UInt64 => match value {
            Val::UInt(_) => value.clone(),
            _ => {
                let number = value.integer().and_then(|value| u64::try_from(value).ok());
                number.map_or(Val::Null, Val::UInt)
            }
        },
        DataType::Timestamp(..) => value.integer().map_or(Val::Null, Val::Time),
        DataType::Utf8 => value.shown().map_or(Val::Null, Val::of_text),
        DataType::Binary => match value {
            Val::Text(text) => Val::Bytes(text.as_bytes().into()),
            other => other.clone(),
        },
        _ => Val::Null,
    }
}

/// The number at the beginning of a text; zero if there is none.
fn leading_number(text: &str) -> f64 {
    let text = text.trim_start();
    let mut best = 0.0;
    let limit = text.len().min(64);
    for end in 1..=limit {
        if let Some(part) = text.get(..end)
            && let Ok(number) = part.parse::<f64>()
            && part.bytes().any(|byte| byte.is_ascii_digit())
        {
            best = number;
        }
    }
    best
}

/// The integer at the beginning of a text; zero if there is none.
fn leading_integer(text: &str) -> i128 {
    let text = text.trim_start();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = digits
        .bytes()
        .take_while(u8::is_ascii_digit)
        .count()
        .min(30);
    let number: i128 = digits
        .get(..end)
        .and_then(|digits| digits.parse().ok())
        .unwrap_or(0);
    if negative { -number } else { number }
}

/// CAST.
pub(crate) fn cast_value(value: &Val, kind: TaosType, setting: &TimeSetting) -> Val {
    if value.is_null() {
        return Val::Null;
    }
    let whole = |value: &Val| match value {
        Val::Text(text) => leading_integer(text),
        Val::Float(number) => *number as i128,
        Val::UInt(number) => i128::from(*number),
        Val::Time(ns) => i128::from(setting.precision.ticks(*ns)),
        other => i128::from(other.integer().unwrap_or(0)),
    };
    if kind == TaosType::UBigInt {
        return Val::UInt(whole(value) as u64);
    }
    if kind.is_integer() {
        return Val::Int(wrapped(whole(value), kind));
    }
    match kind {
        TaosType::Bool => match value {
            Val::Text(text) => match value.truth() {
                Some(truth) if text.parse::<f64>().is_err() => Val::Bool(truth),
                _ => Val::Bool(leading_number(text) != 0.0),
            },
            other => other.truth().map_or(Val::Null, Val::Bool),
        },
        TaosType::Float | TaosType::Double => {
            let number = match value {
                Val::Text(text) => leading_number(text),
                Val::Time(ns) => setting.precision.ticks(*ns) as f64,
                other => other.number().unwrap_or(0.0),
            };
            if kind == TaosType::Float {
                Val::Float(f64::from(number as f32))
            } else {
                Val::Float(number)
            }
        }
        TaosType::Timestamp => match value {
            Val::Time(_) => value.clone(),
            Val::Text(text) => match text.trim().parse::<i64>() {
                Ok(ticks) => setting.ticks_ns(ticks).map_or(Val::Null, Val::Time),
                Err(_) => setting.text_ns(text).map_or(Val::Null, Val::Time),
            },
            other => {
                let ticks = i64::try_from(whole(other)).ok();
                let ns = ticks.and_then(|ticks| setting.ticks_ns(ticks).ok());
                ns.map_or(Val::Null, Val::Time)
            }
        },
        TaosType::VarBinary(length) => {
            let mut bytes = match value {
                Val::Bytes(bytes) => bytes.to_vec(),
                other => other.shown().unwrap_or_default().into_bytes(),
            };
            bytes.truncate(usize::try_from(length).unwrap_or(usize::MAX));
            Val::Bytes(bytes.into())
        }
        TaosType::VarChar(length) | TaosType::NChar(length) => {
            let text = match value {
                Val::Time(ns) => {
                    let mut out = String::new();
                    push_time(*ns, setting.precision, &setting.zone, &mut out);
                    out.replace('T', " ").trim_end_matches('Z').to_owned()
                }
                other => other.shown().unwrap_or_default(),
            };
            Val::of_text(cut(&text, length, matches!(kind, TaosType::NChar(_))))
        }
        _ => value.clone(),
    }
}

/// A text of at most so many bytes, or characters.
fn cut(text: &str, length: u32, counts_characters: bool) -> &str {
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if counts_characters {
        let end = text
            .char_indices()
            .nth(length)
            .map_or(text.len(), |(at, _)| at);
        return &text[..end];
    }
    let mut end = length.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// An integer as one of fewer bits.
fn wrapped(number: i128, kind: TaosType) -> i64 {
    match kind {
        TaosType::TinyInt => i64::from(number as i8),
        TaosType::SmallInt => i64::from(number as i16),
        TaosType::Int => i64::from(number as i32),
        TaosType::UTinyInt => i64::from(number as u8),
        TaosType::USmallInt => i64::from(number as u16),
        TaosType::UInt => i64::from(number as u32),
        _ => number as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn casts_follow_c() {
        let setting = TimeSetting::default();
        let cast = |value: Val, kind| cast_value(&value, kind, &setting);
        assert_eq!(cast(Val::of_text("12abc"), TaosType::Int), Val::Int(12));
        assert_eq!(
            cast(Val::of_text("1.5e1x"), TaosType::Double),
            Val::Float(15.0)
        );
        assert_eq!(cast(Val::Int(300), TaosType::UTinyInt), Val::Int(44));
        assert_eq!(cast(Val::Float(-1.9), TaosType::BigInt), Val::Int(-1));
        assert_eq!(cast(Val::Int(5), TaosType::Timestamp), Val::Time(5_000_000));
        assert_eq!(
            cast(Val::of_text("日本語"), TaosType::NChar(2)),
            Val::of_text("日本")
        );
        assert_eq!(
            cast(Val::of_text("日本語"), TaosType::VarChar(4)),
            Val::of_text("日")
        );
    }
}
