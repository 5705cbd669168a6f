//! Values of one type as values of the type that a timeseries has, where IoTDB converts them, too; texts of
//! clients that send no types.

use marigram_iotdb::{IotDbType, IotDbValue, TreeLiteral, day_to_ms};

/// A value that is stored.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TreeValue<'a> {
    /// As it came.
    Borrowed(IotDbValue<'a>),
    /// A text that was made.
    Text(String),
}

impl TreeValue<'_> {
    /// The value.
    pub(super) fn value(&self) -> IotDbValue<'_> {
        match self {
            Self::Borrowed(value) => *value,
            Self::Text(text) => IotDbValue::Text(text),
        }
    }
}

/// The type of a value.
pub(super) fn kind_of(value: IotDbValue<'_>) -> IotDbType {
    match value {
        IotDbValue::Boolean(_) => IotDbType::Boolean,
        IotDbValue::Int32(_) => IotDbType::Int32,
        IotDbValue::Int64(_) => IotDbType::Int64,
        IotDbValue::Float(_) => IotDbType::Float,
        IotDbValue::Double(_) => IotDbType::Double,
        IotDbValue::Text(_) => IotDbType::Text,
        IotDbValue::Timestamp(_) => IotDbType::Timestamp,
        IotDbValue::Date(_) => IotDbType::Date,
        IotDbValue::Blob(_) => IotDbType::Blob,
    }
}

/// Whether values of one type become values of another.
pub(super) fn is_convertible(from: IotDbType, to: IotDbType) -> bool {
    use IotDbType::{Blob, Double, Float, Int32, Int64, Text, Timestamp};
    let (from, to) = (from.stored(), to.stored());
    from == to
        || matches!(
            (from, to),
            (Int32 | Timestamp, Int64)
                | (Int32, Float)
                | (Int32 | Int64 | Float | Timestamp, Double)
                | (Int32 | Int64, Timestamp)
                | (Blob, Text)
                | (Text, Blob)
        )
}

/// A value in another type; `None` if it has none there.
#[allow(
    clippy::cast_precision_loss,
    reason = "IoTDB rounds numbers for floats, too"
)]
pub(super) fn convert(value: IotDbValue<'_>, to: IotDbType) -> Option<IotDbValue<'_>> {
    use IotDbValue::{Blob, Double, Float, Int32, Int64, Text, Timestamp};
    if kind_of(value) == to.stored() {
        return Some(value);
    }
    Some(match (value, to.stored()) {
        (Int32(value), IotDbType::Int64) => Int64(i64::from(value)),
        (Int32(value), IotDbType::Timestamp) => Timestamp(i64::from(value)),
        (Int32(value), IotDbType::Float) => Float(value as f32),
        (Int32(value), IotDbType::Double) => Double(f64::from(value)),
        (Timestamp(value), IotDbType::Int64) => Int64(value),
        (Int64(value), IotDbType::Timestamp) => Timestamp(value),
        (Int64(value) | Timestamp(value), IotDbType::Double) => Double(value as f64),
        (Float(value), IotDbType::Double) => Double(f64::from(value)),
        (Blob(bytes), IotDbType::Text) => Text(std::str::from_utf8(bytes).ok()?),
        (Text(text), IotDbType::Blob) => Blob(text.as_bytes()),
        _ => return None,
    })
}

/// The type that a text gets where its timeseries has none yet.
pub(super) fn inferred_kind(literal: &TreeLiteral) -> Option<IotDbType> {
    Some(match literal {
        TreeLiteral::Null => return None,
        TreeLiteral::Boolean(_) => IotDbType::Boolean,
        TreeLiteral::Integer(_) | TreeLiteral::Float(_) => IotDbType::Double,
        TreeLiteral::Text(_) => IotDbType::Text,
        TreeLiteral::Bytes(_) => IotDbType::Blob,
        TreeLiteral::Time(_) => IotDbType::Timestamp,
    })
}

/// What a text means in a type; `None` if nothing. `literal` is what it means by itself.
pub(super) fn read_text<'a>(
    text: &'a str,
    literal: &TreeLiteral,
    kind: IotDbType,
) -> Option<TreeValue<'a>> {
    let value = match kind.stored() {
        IotDbType::Boolean => match text {
            text if text.eq_ignore_ascii_case("true") || text == "1" => IotDbValue::Boolean(true),
            text if text.eq_ignore_ascii_case("false") || text == "0" => IotDbValue::Boolean(false),
            _ => return None,
        },
        IotDbType::Int32 => IotDbValue::Int32(text.parse().ok()?),
        IotDbType::Int64 => IotDbValue::Int64(text.parse().ok()?),
        IotDbType::Timestamp => IotDbValue::Timestamp(text.parse().ok()?),
        IotDbType::Float => IotDbValue::Float(text.parse().ok()?),
        IotDbType::Double => IotDbValue::Double(text.parse().ok()?),
        IotDbType::Date => {
            let digits = text.replace('-', "");
            let day = digits.parse().ok().filter(|_| digits.len() == 8)?;
            day_to_ms(day)?;
            IotDbValue::Date(day)
        }
        IotDbType::Blob => IotDbValue::Blob(text.as_bytes()),
        IotDbType::Text | IotDbType::String => match literal {
            TreeLiteral::Text(inner) if inner != text => {
                return Some(TreeValue::Text(inner.clone()));
            }
            _ => IotDbValue::Text(text),
        },
    };
    Some(TreeValue::Borrowed(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLES: [IotDbValue<'static>; 9] = [
        IotDbValue::Boolean(true),
        IotDbValue::Int32(7),
        IotDbValue::Int64(8),
        IotDbValue::Float(1.5),
        IotDbValue::Double(2.5),
        IotDbValue::Text("a"),
        IotDbValue::Timestamp(9),
        IotDbValue::Date(20_240_229),
        IotDbValue::Blob(b"b"),
    ];

    #[test]
    fn what_is_convertible_is_converted() {
        for value in SAMPLES {
            for kind in IotDbType::ALL {
                let converted = convert(value, kind);
                let expected = is_convertible(kind_of(value), kind);
                assert_eq!(converted.is_some(), expected, "{value:?} to {kind}");
                if let Some(converted) = converted {
                    assert_eq!(kind_of(converted), kind.stored());
                }
            }
        }
        assert_eq!(convert(IotDbValue::Blob(&[0xff]), IotDbType::Text), None);
    }

    #[test]
    fn texts_mean_values() {
        let read = |text: &'static str, kind| {
            let literal = TreeLiteral::from_text(text);
            read_text(text, &literal, kind)
        };
        for (text, kind, value) in [
            ("TRUE", IotDbType::Boolean, IotDbValue::Boolean(true)),
            ("12", IotDbType::Int32, IotDbValue::Int32(12)),
            ("12", IotDbType::Double, IotDbValue::Double(12.0)),
            ("12", IotDbType::Text, IotDbValue::Text("12")),
            ("2024-02-29", IotDbType::Date, IotDbValue::Date(20_240_229)),
        ] {
            assert_eq!(read(text, kind), Some(TreeValue::Borrowed(value)), "{text}");
        }
        let quoted = read("'a b'", IotDbType::Text);
        assert_eq!(quoted, Some(TreeValue::Text("a b".to_owned())));
        for (text, kind) in [
            ("12.5", IotDbType::Int32),
            ("x", IotDbType::Boolean),
            ("2024-02-30", IotDbType::Date),
            ("99999999999", IotDbType::Int32),
        ] {
            assert_eq!(read(text, kind), None, "{text}");
        }
    }
}
