//! Values of rows, as functions compute with them, and their Arrow types.

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryBuilder, BooleanBuilder, Float64Builder, Int64Builder,
    StringBuilder, TimestampNanosecondBuilder, UInt64Builder,
};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Float64Type, Int64Type, TimeUnit, TimestampNanosecondType, UInt64Type,
};
use datafusion::common::ScalarValue;
use marigram_tdengine::TaosType;
use std::cmp::Ordering;
use std::sync::Arc;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Val {
    /// None.
    Null,
    /// Truth value.
    Bool(bool),
    /// Integer.
    Int(i64),
    /// Integer of BIGINT UNSIGNED.
    UInt(u64),
    /// Float.
    Float(f64),
    /// Time, ns.
    Time(i64),
    /// Text.
    Text(Arc<str>),
    /// Bytes.
    Bytes(Arc<[u8]>),
}

/// The Arrow type in which values of a type are computed and answered.
pub(crate) fn arrow_type(kind: TaosType) -> DataType {
    match kind {
        TaosType::Null | TaosType::Bool => DataType::Boolean,
        TaosType::UBigInt => DataType::UInt64,
        TaosType::Float | TaosType::Double => DataType::Float64,
        TaosType::Timestamp => DataType::Timestamp(TimeUnit::Nanosecond, None),
        TaosType::VarBinary(_) | TaosType::Geometry(_) => DataType::Binary,
        TaosType::VarChar(_) | TaosType::NChar(_) | TaosType::Json => DataType::Utf8,
        _ => DataType::Int64,
    }
}

/// The type that is told for values of an Arrow type.
pub(crate) fn taos_type(kind: &DataType) -> TaosType {
    match kind {
        DataType::Boolean => TaosType::Bool,
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::UInt8 | DataType::UInt16 => {
            TaosType::Int
        }
        DataType::Int64 | DataType::UInt32 => TaosType::BigInt,
        DataType::UInt64 => TaosType::UBigInt,
        DataType::Float32 => TaosType::Float,
        DataType::Float64 => TaosType::Double,
        DataType::Timestamp(..) => TaosType::Timestamp,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            TaosType::VarBinary(TEXT_LENGTH)
        }
        _ => TaosType::VarChar(TEXT_LENGTH),
    }
}

/// The length that is told for texts whose length is unknown.
pub(crate) const TEXT_LENGTH: u32 = 16_382;

/// A column of an answer of a stage, read row by row.
pub(crate) struct ValColumn(ArrayRef);

impl ValColumn {
    /// Reads an array of any type.
    pub(crate) fn new(array: &ArrayRef) -> arrow::error::Result<Self> {
        let wanted = arrow_type(taos_type(array.data_type()));
        if *array.data_type() == wanted {
            return Ok(Self(Arc::clone(array)));
        }
        Ok(Self(cast(array, &wanted)?))
    }

    /// The value of a row.
    pub(crate) fn get(&self, row: usize) -> Val {
        let array = &self.0;
        if array.is_null(row) {
            return Val::Null;
        }
        match array.data_type() {
            DataType::Boolean => Val::Bool(array.as_boolean().value(row)),
            DataType::Int64 => Val::Int(array.as_primitive::<Int64Type>().value(row)),
            DataType::UInt64 => Val::UInt(array.as_primitive::<UInt64Type>().value(row)),
            DataType::Float64 => Val::Float(array.as_primitive::<Float64Type>().value(row)),
            DataType::Timestamp(..) => {
                Val::Time(array.as_primitive::<TimestampNanosecondType>().value(row))
            }
            DataType::Utf8 => Val::Text(array.as_string::<i32>().value(row).into()),
            DataType::Binary => Val::Bytes(array.as_binary::<i32>().value(row).into()),
            _ => Val::Null,
        }
    }
}

impl Val {
    /// Whether it is none.
    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// As a float; `None` if it is no number.
    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Self::Bool(value) => Some(f64::from(u8::from(*value))),
            Self::Int(value) | Self::Time(value) => Some(*value as f64),
            Self::UInt(value) => Some(*value as f64),
            Self::Float(value) => Some(*value),
            Self::Text(text) => text.trim().parse().ok(),
            Self::Null | Self::Bytes(_) => None,
        }
    }

    /// As an integer; floats are cut.
    pub(crate) fn integer(&self) -> Option<i64> {
        match self {
            Self::Bool(value) => Some(i64::from(*value)),
            Self::Int(value) | Self::Time(value) => Some(*value),
            Self::UInt(value) => i64::try_from(*value).ok(),
            Self::Float(value) => Some(*value as i64),
            Self::Text(text) => {
                let text = text.trim();
                let whole = text.parse().ok();
                whole.or_else(|| text.parse::<f64>().ok().map(|number| number as i64))
            }
            Self::Null | Self::Bytes(_) => None,
        }
    }

    /// As a truth value.
    pub(crate) fn truth(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            Self::Text(text) if text.eq_ignore_ascii_case("true") => Some(true),
            Self::Text(text) if text.eq_ignore_ascii_case("false") => Some(false),
            Self::Null | Self::Bytes(_) => None,
            _ => self.number().map(|number| number != 0.0),
        }
    }

    /// As text, if it is one.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A text.
    pub(crate) fn of_text(text: impl AsRef<str>) -> Self {
        Self::Text(text.as_ref().into())
    }

    /// A float; one that is none is null.
    pub(crate) fn of_number(number: f64) -> Self {
        if number.is_finite() {
            Self::Float(number)
        } else {
            Self::Null
        }
    }

    /// The order of two values of one type; null comes first.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Null, Self::Null) => Ordering::Equal,
            (Self::Null, _) => Ordering::Less,
            (_, Self::Null) => Ordering::Greater,
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::Int(a), Self::Int(b)) | (Self::Time(a), Self::Time(b)) => a.cmp(b),
            (Self::UInt(a), Self::UInt(b)) => a.cmp(b),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Bytes(a), Self::Bytes(b)) => a.cmp(b),
            _ => {
                let (a, b) = (self.number(), other.number());
                a.partial_cmp(&b).unwrap_or(Ordering::Equal)
            }
        }
    }

    /// Bytes beside the value itself.
    pub(crate) fn held_bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len() + 16,
            Self::Bytes(bytes) => bytes.len() + 16,
            _ => 0,
        }
    }

    /// The value as a constant of a type.
    pub(crate) fn scalar(&self, kind: TaosType) -> ScalarValue {
        match arrow_type(kind) {
            DataType::Boolean => ScalarValue::Boolean(self.truth()),
            DataType::UInt64 => ScalarValue::UInt64(self.unsigned()),
            DataType::Float64 => ScalarValue::Float64(self.number()),
            DataType::Timestamp(..) => ScalarValue::TimestampNanosecond(self.integer(), None),
            DataType::Binary => ScalarValue::Binary(match self {
                Self::Bytes(bytes) => Some(bytes.to_vec()),
                Self::Text(text) => Some(text.as_bytes().to_vec()),
                _ => None,
            }),
            DataType::Utf8 => ScalarValue::Utf8(self.shown()),
            _ => ScalarValue::Int64(self.integer()),
        }
    }

    fn unsigned(&self) -> Option<u64> {
        match self {
            Self::UInt(value) => Some(*value),
            Self::Float(value) => Some(*value as u64),
            Self::Text(text) => text.trim().parse().ok(),
            _ => self.integer().and_then(|value| u64::try_from(value).ok()),
        }
    }

    /// The value as text; `None` for null.
    pub(crate) fn shown(&self) -> Option<String> {
        Some(match self {
            Self::Null => return None,
            Self::Bool(value) => value.to_string(),
            Self::Int(value) | Self::Time(value) => value.to_string(),
            Self::UInt(value) => value.to_string(),
            Self::Float(value) => format!("{value:.6}"),
            Self::Text(text) => text.to_string(),
            Self::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        })
    }
}

/// An array of values of a type.
pub(crate) fn array_of(values: &[Val], kind: TaosType) -> ArrayRef {
    match arrow_type(kind) {
        DataType::Boolean => {
            let mut array = BooleanBuilder::with_capacity(values.len());
            for value in values {
                array.append_option(value.truth());
            }
            Arc::new(array.finish())
        }
        DataType::UInt64 => {
            let mut array = UInt64Builder::with_capacity(values.len());
            for value in values {
                array.append_option(value.unsigned());
            }
            Arc::new(array.finish())
        }
        DataType::Float64 => {
            let mut array = Float64Builder::with_capacity(values.len());
            for value in values {
                array.append_option(value.number());
            }
            Arc::new(array.finish())
        }
        DataType::Timestamp(..) => {
            let mut array = TimestampNanosecondBuilder::with_capacity(values.len());
            for value in values {
                array.append_option(value.integer());
            }
            Arc::new(array.finish())
        }
        DataType::Binary => {
            let mut array = BinaryBuilder::new();
            for value in values {
                match value {
                    Val::Bytes(bytes) => array.append_value(bytes),
                    Val::Text(text) => array.append_value(text.as_bytes()),
                    _ => array.append_null(),
                }
            }
            Arc::new(array.finish())
        }
        DataType::Utf8 => {
            let mut array = StringBuilder::new();
            for value in values {
                match value {
                    Val::Text(text) => array.append_value(text),
                    other => array.append_option(other.shown()),
                }
            }
            Arc::new(array.finish())
        }
        _ => {
            let mut array = Int64Builder::with_capacity(values.len());
            for value in values {
                array.append_option(value.integer());
            }
            Arc::new(array.finish())
        }
    }
}
