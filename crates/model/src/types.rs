//! The types that a tag and a field may have, and their Arrow types.

use arrow_array::{Array, ArrayRef, BooleanArray, new_null_array};
use arrow_array::{BinaryArray, Float32Array, Float64Array, Int32Array, Int64Array, StringArray};
use arrow_array::{TimestampNanosecondArray, UInt64Array};
use arrow_schema::{DataType, TimeUnit};
use marigram_codec::ValueType;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// Type of a tag column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum TagType {
    /// UTF-8 text.
    String = 1,
    /// 64-bit integer.
    I64 = 2,
    /// Truth value.
    Bool = 3,
}

impl TagType {
    /// The type with this number on disk; `None` for an unknown number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        [Self::String, Self::I64, Self::Bool]
            .into_iter()
            .find(|kind| *kind as u8 == number)
    }

    /// The Arrow type of tag values (of a dictionary's values, for text).
    #[must_use]
    pub fn data_type(self) -> DataType {
        match self {
            Self::String => DataType::Utf8,
            Self::I64 => DataType::Int64,
            Self::Bool => DataType::Boolean,
        }
    }
}

impl fmt::Display for TagType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::String => "STRING",
            Self::I64 => "BIGINT",
            Self::Bool => "BOOLEAN",
        })
    }
}

/// Type of a field column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum FieldType {
    /// Truth value.
    Bool = 1,
    /// 32-bit integer.
    I32 = 2,
    /// 64-bit integer.
    I64 = 3,
    /// 64-bit unsigned integer.
    U64 = 4,
    /// 32-bit float.
    F32 = 5,
    /// 64-bit float.
    F64 = 6,
    /// UTF-8 text.
    String = 7,
    /// Bytes.
    Bytes = 8,
    /// Time, ns since the Unix epoch, UTC.
    Timestamp = 9,
}

impl FieldType {
    /// Every field type, in the order of their numbers.
    pub const ALL: [Self; 9] = [
        Self::Bool,
        Self::I32,
        Self::I64,
        Self::U64,
        Self::F32,
        Self::F64,
        Self::String,
        Self::Bytes,
        Self::Timestamp,
    ];

    /// The type with this number on disk; `None` for an unknown number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }

    /// The Arrow type of the field's arrays, everywhere in Marigram.
    #[must_use]
    pub fn data_type(self) -> DataType {
        match self {
            Self::Bool => DataType::Boolean,
            Self::I32 => DataType::Int32,
            Self::I64 => DataType::Int64,
            Self::U64 => DataType::UInt64,
            Self::F32 => DataType::Float32,
            Self::F64 => DataType::Float64,
            Self::String => DataType::Utf8,
            Self::Bytes => DataType::Binary,
            Self::Timestamp => DataType::Timestamp(TimeUnit::Nanosecond, None),
        }
    }

    /// The type of the field's values as encodings see it.
    #[must_use]
    pub fn value_type(self) -> ValueType {
        match self {
            Self::Bool => ValueType::Bool,
            Self::I32 => ValueType::I32,
            Self::I64 | Self::Timestamp => ValueType::I64,
            Self::U64 => ValueType::U64,
            Self::F32 => ValueType::F32,
            Self::F64 => ValueType::F64,
            Self::String | Self::Bytes => ValueType::Bytes,
        }
    }

    /// The field type whose arrays have this Arrow type.
    #[must_use]
    pub fn from_arrow(data_type: &DataType) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.data_type() == *data_type)
    }

    /// An array of `len` nulls.
    #[must_use]
    pub fn nulls(self, len: usize) -> ArrayRef {
        new_null_array(&self.data_type(), len)
    }
}

impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bool => "BOOLEAN",
            Self::I32 => "INT",
            Self::I64 => "BIGINT",
            Self::U64 => "BIGINT UNSIGNED",
            Self::F32 => "REAL",
            Self::F64 => "DOUBLE",
            Self::String => "STRING",
            Self::Bytes => "BYTES",
            Self::Timestamp => "TIMESTAMP",
        })
    }
}

/// A single value of one field; for edges, tests and statistics, not for bulk work.
///
/// Floats are equal if their bits are, so NaN equals itself and -0.0 differs from 0.0.
#[derive(Clone, Debug)]
pub enum FieldValue {
    /// See [`FieldType::Bool`].
    Bool(bool),
    /// See [`FieldType::I32`].
    I32(i32),
    /// See [`FieldType::I64`].
    I64(i64),
    /// See [`FieldType::U64`].
    U64(u64),
    /// See [`FieldType::F32`].
    F32(f32),
    /// See [`FieldType::F64`].
    F64(f64),
    /// See [`FieldType::String`].
    String(String),
    /// See [`FieldType::Bytes`].
    Bytes(Vec<u8>),
    /// See [`FieldType::Timestamp`].
    Timestamp(i64),
}

impl PartialEq for FieldValue {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::I32(a), Self::I32(b)) => a == b,
            (Self::I64(a), Self::I64(b)) | (Self::Timestamp(a), Self::Timestamp(b)) => a == b,
            (Self::U64(a), Self::U64(b)) => a == b,
            (Self::F32(a), Self::F32(b)) => a.to_bits() == b.to_bits(),
            (Self::F64(a), Self::F64(b)) => a.to_bits() == b.to_bits(),
            (Self::String(a), Self::String(b)) => a == b,
            (Self::Bytes(a), Self::Bytes(b)) => a == b,
            _ => false,
        }
    }
}

impl FieldValue {
    /// The value's type.
    #[must_use]
    pub fn field_type(&self) -> FieldType {
        match self {
            Self::Bool(_) => FieldType::Bool,
            Self::I32(_) => FieldType::I32,
            Self::I64(_) => FieldType::I64,
            Self::U64(_) => FieldType::U64,
            Self::F32(_) => FieldType::F32,
            Self::F64(_) => FieldType::F64,
            Self::String(_) => FieldType::String,
            Self::Bytes(_) => FieldType::Bytes,
            Self::Timestamp(_) => FieldType::Timestamp,
        }
    }

    /// Compares two values of the same type; `None` for different types. Floats are in total order.
    #[must_use]
    pub fn total_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::I32(a), Self::I32(b)) => a.cmp(b),
            (Self::I64(a), Self::I64(b)) | (Self::Timestamp(a), Self::Timestamp(b)) => a.cmp(b),
            (Self::U64(a), Self::U64(b)) => a.cmp(b),
            (Self::F32(a), Self::F32(b)) => a.total_cmp(b),
            (Self::F64(a), Self::F64(b)) => a.total_cmp(b),
            (Self::String(a), Self::String(b)) => a.cmp(b),
            (Self::Bytes(a), Self::Bytes(b)) => a.cmp(b),
            _ => return None,
        })
    }

    /// Row `row` of an array of a field type; `None` if it is null or of another type.
    ///
    /// # Panics
    /// If `row` is not a row of `array`.
    #[must_use]
    pub fn from_array(array: &dyn Array, row: usize) -> Option<Self> {
        if array.is_null(row) {
            return None;
        }
        let any = array.as_any();
        Some(match FieldType::from_arrow(array.data_type())? {
            FieldType::Bool => Self::Bool(any.downcast_ref::<BooleanArray>()?.value(row)),
            FieldType::I32 => Self::I32(any.downcast_ref::<Int32Array>()?.value(row)),
            FieldType::I64 => Self::I64(any.downcast_ref::<Int64Array>()?.value(row)),
            FieldType::U64 => Self::U64(any.downcast_ref::<UInt64Array>()?.value(row)),
            FieldType::F32 => Self::F32(any.downcast_ref::<Float32Array>()?.value(row)),
            FieldType::F64 => Self::F64(any.downcast_ref::<Float64Array>()?.value(row)),
            FieldType::String => Self::String(any.downcast_ref::<StringArray>()?.value(row).into()),
            FieldType::Bytes => Self::Bytes(any.downcast_ref::<BinaryArray>()?.value(row).into()),
            FieldType::Timestamp => {
                Self::Timestamp(any.downcast_ref::<TimestampNanosecondArray>()?.value(row))
            }
        })
    }

    /// An array with only this value.
    #[must_use]
    pub fn to_array(&self) -> ArrayRef {
        match self {
            Self::Bool(v) => Arc::new(BooleanArray::from(vec![*v])),
            Self::I32(v) => Arc::new(Int32Array::from(vec![*v])),
            Self::I64(v) => Arc::new(Int64Array::from(vec![*v])),
            Self::U64(v) => Arc::new(UInt64Array::from(vec![*v])),
            Self::F32(v) => Arc::new(Float32Array::from(vec![*v])),
            Self::F64(v) => Arc::new(Float64Array::from(vec![*v])),
            Self::String(v) => Arc::new(StringArray::from(vec![v.as_str()])),
            Self::Bytes(v) => Arc::new(BinaryArray::from(vec![v.as_slice()])),
            Self::Timestamp(v) => Arc::new(TimestampNanosecondArray::from(vec![*v])),
        }
    }
}
