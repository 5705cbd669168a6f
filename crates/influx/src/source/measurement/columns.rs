//! Converts Arrow's arrays to values.

use crate::value::{InfluxValueType, Value};
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, StringArray, UInt64Array,
};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Float64Type, Int64Type, TimeUnit, TimestampNanosecondType, UInt64Type,
};
use arrow::record_batch::RecordBatch;
use datafusion::common::DataFusionError;
use marigram_service::ServiceError;
use marigram_sql::SqlResult;
use std::sync::Arc;

/// Reads the values of one column.
pub(crate) enum ColumnReader {
    /// Floats, in a type.
    Float(Float64Array, Option<InfluxValueType>),
    /// Integers, in a type.
    Integer(Int64Array, Option<InfluxValueType>),
    /// Unsigned integers, in a type.
    Unsigned(UInt64Array, Option<InfluxValueType>),
    /// Booleans.
    Boolean(BooleanArray),
    /// Texts; the replacement of a missing text; the last text.
    Text(StringArray, Value, Option<Arc<str>>),
    /// The same value for every row.
    Same(Value),
}

/// Texts of tags; a missing text is empty.
pub(crate) struct Texts(StringArray);

impl Texts {
    /// Whether any text is missing.
    pub(crate) fn has_missing(&self) -> bool {
        self.0.null_count() > 0
    }

    /// Whether any text is there and empty.
    pub(crate) fn has_empty(&self) -> bool {
        self.0.iter().any(|text| text == Some(""))
    }

    /// The text of a row.
    pub(crate) fn text(&self, row: usize) -> &str {
        if self.0.is_null(row) {
            ""
        } else {
            self.0.value(row)
        }
    }
}

fn array<'a>(batch: &'a RecordBatch, name: &str) -> SqlResult<&'a ArrayRef> {
    batch
        .column_by_name(name)
        .ok_or_else(|| ServiceError::Internal(format!("a scan gave no column {name}")).into())
}

fn cast_to(array: &ArrayRef, kind: &DataType) -> SqlResult<ArrayRef> {
    Ok(cast(array, kind).map_err(DataFusionError::from)?)
}

/// The times of a column, in nanoseconds.
pub(crate) fn times(batch: &RecordBatch, name: &str) -> SqlResult<Int64Array> {
    let times = array(batch, name)?;
    let times = cast_to(times, &DataType::Timestamp(TimeUnit::Nanosecond, None))?;
    let times = times.as_primitive::<TimestampNanosecondType>();
    Ok(times.reinterpret_cast::<Int64Type>())
}

/// The texts of a column.
pub(crate) fn texts(batch: &RecordBatch, name: &str) -> SqlResult<Texts> {
    let texts = cast_to(array(batch, name)?, &DataType::Utf8)?;
    Ok(Texts(texts.as_string::<i32>().clone()))
}

impl ColumnReader {
    /// A reader of a column, which returns `absent` if there is no text.
    pub(crate) fn new(
        batch: &RecordBatch,
        name: &str,
        kind: Option<InfluxValueType>,
        absent: Value,
    ) -> SqlResult<Self> {
        let array = array(batch, name)?;
        Ok(match array.data_type() {
            DataType::Float64 | DataType::Float32 => {
                let array = cast_to(array, &DataType::Float64)?;
                let kind = kind.filter(|kind| *kind != InfluxValueType::Float);
                Self::Float(array.as_primitive::<Float64Type>().clone(), kind)
            }
            DataType::UInt64 => {
                let kind = kind.filter(|kind| *kind != InfluxValueType::Unsigned);
                Self::Unsigned(array.as_primitive::<UInt64Type>().clone(), kind)
            }
            DataType::Boolean => Self::Boolean(array.as_boolean().clone()),
            DataType::Int32 | DataType::Int64 | DataType::Timestamp(..) => {
                let array = cast_to(array, &DataType::Int64)?;
                let kind = kind.filter(|kind| *kind != InfluxValueType::Integer);
                Self::Integer(array.as_primitive::<Int64Type>().clone(), kind)
            }
            _ => {
                let array = cast_to(array, &DataType::Utf8)?;
                Self::Text(array.as_string::<i32>().clone(), absent, None)
            }
        })
    }

    /// The value of a row.
    pub(crate) fn value(&mut self, row: usize) -> Value {
        let cast = |value: Value, kind: &Option<InfluxValueType>| match kind {
            Some(kind) => value.cast(*kind),
            None => value,
        };
        match self {
            Self::Float(array, _) if array.is_null(row) => Value::Null,
            Self::Float(array, kind) => cast(Value::Float(array.value(row)), kind),
            Self::Integer(array, _) if array.is_null(row) => Value::Null,
            Self::Integer(array, kind) => cast(Value::Integer(array.value(row)), kind),
            Self::Unsigned(array, _) if array.is_null(row) => Value::Null,
            Self::Unsigned(array, kind) => cast(Value::Unsigned(array.value(row)), kind),
            Self::Boolean(array) if array.is_null(row) => Value::Null,
            Self::Boolean(array) => Value::Boolean(array.value(row)),
            Self::Text(array, absent, _) if array.is_null(row) => absent.clone(),
            Self::Text(array, _, last) => {
                let text = array.value(row);
                match last {
                    Some(known) if **known == *text => Value::String(Arc::clone(known)),
                    last => Value::String(Arc::clone(last.insert(text.into()))),
                }
            }
            Self::Same(value) => value.clone(),
        }
    }
}
