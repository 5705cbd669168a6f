//! Values in InfluxQL, and the casts between their types.

use marigram_influxql::ast::{Cast, Literal};
use std::cmp::Ordering;
use std::sync::Arc;

/// A value. A missing value is [`Value::Null`].
#[derive(Clone, Debug, PartialEq, Default)]
pub(crate) enum Value {
    /// No value.
    #[default]
    Null,
    /// A 64-bit float.
    Float(f64),
    /// A signed 64-bit integer.
    Integer(i64),
    /// An unsigned 64-bit integer.
    Unsigned(u64),
    /// A boolean.
    Boolean(bool),
    /// Text.
    String(Arc<str>),
}

/// A type of values. The order is InfluxDB's order of preference if sources disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InfluxValueType {
    /// A 64-bit float.
    Float,
    /// A signed 64-bit integer.
    Integer,
    /// An unsigned 64-bit integer.
    Unsigned,
    /// Text.
    String,
    /// A boolean.
    Boolean,
    /// Text of a tag.
    Tag,
}

impl InfluxValueType {
    /// The type as InfluxDB's errors name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Float => "float",
            Self::Integer => "integer",
            Self::Unsigned => "unsigned",
            Self::String => "string",
            Self::Boolean => "boolean",
            Self::Tag => "tag",
        }
    }

    /// The type that `::` names; `None` for `::field`.
    pub const fn of_cast(cast: Cast) -> Option<Self> {
        match cast {
            Cast::Float => Some(Self::Float),
            Cast::Integer => Some(Self::Integer),
            Cast::Unsigned => Some(Self::Unsigned),
            Cast::String => Some(Self::String),
            Cast::Boolean => Some(Self::Boolean),
            Cast::Tag => Some(Self::Tag),
            Cast::Field => None,
        }
    }

    /// Whether it is a number.
    pub const fn is_number(self) -> bool {
        matches!(self, Self::Float | Self::Integer | Self::Unsigned)
    }
}

impl Value {
    /// Whether there is no value.
    pub(crate) const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The number as a float.
    pub(crate) fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Float(value) => Some(*value),
            Self::Integer(value) => Some(*value as f64),
            Self::Unsigned(value) => Some(*value as f64),
            _ => None,
        }
    }

    /// The value cast to another type, if InfluxDB supports the cast; otherwise null.
    #[must_use]
    pub(crate) fn cast(&self, to: InfluxValueType) -> Self {
        match (to, self) {
            (InfluxValueType::Float, Self::Integer(value)) => Self::Float(*value as f64),
            (InfluxValueType::Float, Self::Unsigned(value)) => Self::Float(*value as f64),
            (InfluxValueType::Integer, Self::Float(value)) => Self::Integer(*value as i64),
            (InfluxValueType::Integer, Self::Unsigned(value)) => Self::Integer(*value as i64),
            (InfluxValueType::Unsigned, Self::Float(value)) => Self::Unsigned(*value as u64),
            (InfluxValueType::Unsigned, Self::Integer(value)) => Self::Unsigned(*value as u64),
            (InfluxValueType::Float, Self::Float(_))
            | (InfluxValueType::Integer, Self::Integer(_))
            | (InfluxValueType::Unsigned, Self::Unsigned(_))
            | (InfluxValueType::Boolean, Self::Boolean(_))
            | (InfluxValueType::String | InfluxValueType::Tag, Self::String(_)) => self.clone(),
            _ => Self::Null,
        }
    }

    /// The value cast to another type if possible, otherwise unchanged: this is how fill values are
    /// converted.
    #[must_use]
    pub(crate) fn cast_or_keep(&self, to: Option<InfluxValueType>) -> Self {
        match to.map(|to| self.cast(to)) {
            Some(cast) if !cast.is_null() => cast,
            _ => self.clone(),
        }
    }

    /// The type; `None` for null.
    pub(crate) const fn value_type(&self) -> Option<InfluxValueType> {
        match self {
            Self::Null => None,
            Self::Float(_) => Some(InfluxValueType::Float),
            Self::Integer(_) => Some(InfluxValueType::Integer),
            Self::Unsigned(_) => Some(InfluxValueType::Unsigned),
            Self::Boolean(_) => Some(InfluxValueType::Boolean),
            Self::String(_) => Some(InfluxValueType::String),
        }
    }

    /// The order of two values of one type; values of different types are equal.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Float(a), Self::Float(b)) => a.partial_cmp(b).unwrap_or(Ordering::Equal),
            (Self::Integer(a), Self::Integer(b)) => a.cmp(b),
            (Self::Unsigned(a), Self::Unsigned(b)) => a.cmp(b),
            (Self::Boolean(a), Self::Boolean(b)) => a.cmp(b),
            (Self::String(a), Self::String(b)) => a.cmp(b),
            _ => match (self.as_f64(), other.as_f64()) {
                (Some(a), Some(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
                _ => Ordering::Equal,
            },
        }
    }

    /// The bytes that it holds on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Self::String(text) => text.len() + 16,
            _ => 0,
        }
    }
}

impl From<&Literal> for Value {
    /// Regular expressions, times and durations are not values.
    fn from(literal: &Literal) -> Self {
        match literal {
            Literal::Boolean(value) => Self::Boolean(*value),
            Literal::Integer(value) => Self::Integer(*value),
            Literal::Unsigned(value) => Self::Unsigned(*value),
            Literal::Number(value) => Self::Float(*value),
            Literal::String(text) => Self::String(text.as_str().into()),
            Literal::Duration(ns) => Self::Integer(*ns),
            Literal::Regex(_) | Literal::Time(_) | Literal::Nil => Self::Null,
        }
    }
}
