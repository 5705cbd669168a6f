//! Texts and numbers of JSON where OpenTSDB takes either, and truth values that may be texts.

use crate::java_number::push_double;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// A text or a number.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scalar {
    /// Text.
    Text(String),
    /// A number without a fraction.
    Integer(i64),
    /// Any other number.
    Float(f64),
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Integer(number) => number.fmt(f),
            Self::Float(number) => {
                let mut text = String::new();
                push_double(*number, &mut text);
                f.write_str(&text)
            }
        }
    }
}

impl Serialize for Scalar {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Integer(number) => serializer.serialize_i64(*number),
            Self::Float(number) => serializer.serialize_f64(*number),
        }
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

impl Visitor<'_> for ScalarVisitor {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a number")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Scalar, E> {
        Ok(Scalar::Text(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Scalar, E> {
        Ok(Scalar::Text(text))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Scalar, E> {
        Ok(Scalar::Integer(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Scalar, E> {
        // What does not fit is refused later, as the text that it is.
        Ok(
            i64::try_from(number)
                .map_or_else(|_| Scalar::Text(number.to_string()), Scalar::Integer),
        )
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Scalar, E> {
        Ok(Scalar::Float(number))
    }

    fn visit_bool<E: Error>(self, truth: bool) -> Result<Scalar, E> {
        Ok(Scalar::Text(truth.to_string()))
    }
}

/// `true`, or a text that says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flag(pub bool);

impl Serialize for Flag {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(self.0)
    }
}

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = Option::<Scalar>::deserialize(deserializer)?;
        Ok(Self(match given {
            None => false,
            Some(Scalar::Text(text)) if text.eq_ignore_ascii_case("true") => true,
            Some(Scalar::Text(text)) if text.is_empty() || text.eq_ignore_ascii_case("false") => {
                false
            }
            Some(Scalar::Text(_)) => {
                return Err(D::Error::custom("only \"true\" or \"false\" recognized"));
            }
            Some(Scalar::Integer(number)) => number != 0,
            Some(Scalar::Float(_)) => return Err(D::Error::custom("a truth value is expected")),
        }))
    }
}
