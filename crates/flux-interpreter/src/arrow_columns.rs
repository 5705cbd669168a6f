//! Values of Arrow's arrays as values of Flux.

use crate::value::{FluxKind, FluxValue};
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

/// Reads the values of a field.
pub(crate) enum FieldReader {
    /// Booleans.
    Bool(BooleanArray),
    /// Signed integers.
    Int(Int64Array),
    /// Unsigned integers.
    UInt(UInt64Array),
    /// Floats.
    Float(Float64Array),
    /// Texts, and the last one.
    Text(StringArray, Option<Arc<str>>),
    /// Times.
    Time(Int64Array),
}

fn cast_column(batch: &RecordBatch, name: &str, kind: &DataType) -> SqlResult<ArrayRef> {
    let missing = || ServiceError::Internal(format!("a scan gave no column {name}"));
    let array = batch.column_by_name(name).ok_or_else(missing)?;
    Ok(cast(array, kind).map_err(DataFusionError::from)?)
}

fn nanoseconds(batch: &RecordBatch, name: &str) -> SqlResult<Int64Array> {
    let array = cast_column(
        batch,
        name,
        &DataType::Timestamp(TimeUnit::Nanosecond, None),
    )?;
    let times = array.as_primitive::<TimestampNanosecondType>();
    Ok(times.reinterpret_cast::<Int64Type>())
}

/// The times of a batch, in nanoseconds.
pub(crate) fn times(batch: &RecordBatch) -> SqlResult<Int64Array> {
    nanoseconds(batch, "t")
}

/// The values of a tag.
pub(crate) fn tag_texts(batch: &RecordBatch, place: usize) -> SqlResult<StringArray> {
    let array = cast_column(batch, &format!("k{place}"), &DataType::Utf8)?;
    Ok(array.as_string::<i32>().clone())
}

impl FieldReader {
    /// A reader of a field's column.
    ///
    /// # Errors
    /// If the column cannot be read as values of this type.
    pub(crate) fn new(batch: &RecordBatch, place: usize, kind: FluxKind) -> SqlResult<Self> {
        let name = format!("c{place}");
        let cast = |kind: &DataType| cast_column(batch, &name, kind);
        Ok(match kind {
            FluxKind::Bool => Self::Bool(cast(&DataType::Boolean)?.as_boolean().clone()),
            FluxKind::Int => Self::Int(cast(&DataType::Int64)?.as_primitive::<Int64Type>().clone()),
            FluxKind::UInt => Self::UInt(
                cast(&DataType::UInt64)?
                    .as_primitive::<UInt64Type>()
                    .clone(),
            ),
            FluxKind::Float => Self::Float(
                cast(&DataType::Float64)?
                    .as_primitive::<Float64Type>()
                    .clone(),
            ),
            FluxKind::Text => Self::Text(cast(&DataType::Utf8)?.as_string::<i32>().clone(), None),
            FluxKind::Time => Self::Time(nanoseconds(batch, &name)?),
        })
    }

    /// The value of a row.
    pub(crate) fn value(&mut self, row: usize) -> FluxValue {
        match self {
            Self::Bool(array) if !array.is_null(row) => FluxValue::Bool(array.value(row)),
            Self::Int(array) if !array.is_null(row) => FluxValue::Int(array.value(row)),
            Self::UInt(array) if !array.is_null(row) => FluxValue::UInt(array.value(row)),
            Self::Float(array) if !array.is_null(row) => FluxValue::Float(array.value(row)),
            Self::Time(array) if !array.is_null(row) => FluxValue::Time(array.value(row)),
            Self::Text(array, last) if !array.is_null(row) => {
                let text = array.value(row);
                match last {
                    Some(known) if **known == *text => FluxValue::Text(Arc::clone(known)),
                    last => FluxValue::Text(Arc::clone(last.insert(text.into()))),
                }
            }
            _ => FluxValue::Null,
        }
    }
}
