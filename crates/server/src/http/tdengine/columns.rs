//! The columns of answers: their types, and their values as JSON and as blocks.

use crate::http::error::HttpError;
use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Float64Array, Int64Array, StringArray,
    TimestampNanosecondArray, UInt64Array,
};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Field, Float64Type, Int64Type, Schema, TimeUnit, TimestampNanosecondType, UInt64Type,
};
use arrow::record_batch::RecordBatch;
use marigram_service::ServiceError;
use marigram_tdengine::{
    PRECISION_KEY, RawColumn, RestAnswer, RestColumn, TYPE_KEY, TaosPrecision, TaosResult,
    TaosType, raw_block, type_of_meta,
};
use serde::de::IgnoredAny;

/// Longest text of a column whose type is not known.
const TEXT_BYTES: u32 = 16_374;

/// The columns of an answer.
#[derive(Clone, Debug)]
pub(super) struct TaosColumns {
    pub(super) columns: Vec<RestColumn>,
    pub(super) precision: TaosPrecision,
}

impl TaosColumns {
    /// The columns of a schema.
    pub(super) fn new(schema: &Schema) -> Self {
        let columns = schema.fields().iter().map(|field| RestColumn {
            name: field.name().clone(),
            kind: kind_of(field),
        });
        let precision = schema.metadata().get(PRECISION_KEY);
        let precision = precision.and_then(|name| TaosPrecision::from_name(name));
        Self {
            columns: columns.collect(),
            precision: precision.unwrap_or(TaosPrecision::Milli),
        }
    }

    /// The number by which answers tell the precision.
    pub(super) fn precision_number(&self) -> u8 {
        precision_number(self.precision)
    }
}

/// The number of a precision.
pub(super) fn precision_number(precision: TaosPrecision) -> u8 {
    match precision {
        TaosPrecision::Milli => 0,
        TaosPrecision::Micro => 1,
        TaosPrecision::Nano => 2,
    }
}

/// The type of a column, from its metadata, or else from its Arrow type.
fn kind_of(field: &Field) -> TaosType {
    let known = field.metadata().get(TYPE_KEY);
    if let Some(kind) = known.and_then(|text| type_of_meta(text)) {
        return kind;
    }
    match field.data_type() {
        DataType::Null => TaosType::Null,
        DataType::Boolean => TaosType::Bool,
        DataType::Int8 => TaosType::TinyInt,
        DataType::Int16 => TaosType::SmallInt,
        DataType::Int32 => TaosType::Int,
        DataType::Int64 => TaosType::BigInt,
        DataType::UInt8 => TaosType::UTinyInt,
        DataType::UInt16 => TaosType::USmallInt,
        DataType::UInt32 => TaosType::UInt,
        DataType::UInt64 => TaosType::UBigInt,
        DataType::Float32 => TaosType::Float,
        DataType::Float64 => TaosType::Double,
        DataType::Timestamp(..) => TaosType::Timestamp,
        DataType::Binary | DataType::LargeBinary => TaosType::VarBinary(TEXT_BYTES),
        _ => TaosType::VarChar(TEXT_BYTES),
    }
}

/// The values of a column.
pub(super) enum TaosValues {
    /// NULL alone.
    Null,
    Bool(BooleanArray),
    Signed(Int64Array),
    Unsigned(UInt64Array),
    Float(Float64Array),
    Time(TimestampNanosecondArray),
    Text(StringArray),
    Bytes(BinaryArray),
}

impl TaosValues {
    /// The values of an array, as a type has them.
    ///
    /// # Errors
    /// If the type cannot have them.
    pub(super) fn new(kind: TaosType, array: &ArrayRef) -> Result<Self, ServiceError> {
        let to = |kind: &DataType| -> Result<ArrayRef, ServiceError> {
            cast(array, kind).map_err(|error| {
                ServiceError::Internal(format!("a column has values of another type: {error}"))
            })
        };
        Ok(match kind {
            TaosType::Null => Self::Null,
            TaosType::Bool => Self::Bool(to(&DataType::Boolean)?.as_boolean().clone()),
            TaosType::TinyInt | TaosType::SmallInt | TaosType::Int | TaosType::BigInt => {
                Self::Signed(to(&DataType::Int64)?.as_primitive::<Int64Type>().clone())
            }
            TaosType::UTinyInt | TaosType::USmallInt | TaosType::UInt | TaosType::UBigInt => {
                Self::Unsigned(to(&DataType::UInt64)?.as_primitive::<UInt64Type>().clone())
            }
            TaosType::Float | TaosType::Double => Self::Float(
                to(&DataType::Float64)?
                    .as_primitive::<Float64Type>()
                    .clone(),
            ),
            TaosType::Timestamp => {
                let times = to(&DataType::Timestamp(TimeUnit::Nanosecond, None))?;
                Self::Time(times.as_primitive::<TimestampNanosecondType>().clone())
            }
            TaosType::VarBinary(_) | TaosType::Geometry(_) => {
                Self::Bytes(to(&DataType::Binary)?.as_binary::<i32>().clone())
            }
            TaosType::VarChar(_) | TaosType::NChar(_) | TaosType::Json => {
                Self::Text(to(&DataType::Utf8)?.as_string::<i32>().clone())
            }
        })
    }

    fn is_null(&self, row: usize) -> bool {
        match self {
            Self::Null => true,
            Self::Bool(values) => values.is_null(row),
            Self::Signed(values) => values.is_null(row),
            Self::Unsigned(values) => values.is_null(row),
            Self::Float(values) => values.is_null(row),
            Self::Time(values) => values.is_null(row),
            Self::Text(values) => values.is_null(row),
            Self::Bytes(values) => values.is_null(row),
        }
    }

    /// The text of a row, if it is one.
    pub(super) fn text(&self, row: usize) -> Option<&str> {
        match self {
            Self::Text(values) if row < values.len() && !values.is_null(row) => {
                Some(values.value(row))
            }
            _ => None,
        }
    }

    /// The integer of a row, if it is one.
    pub(super) fn integer(&self, row: usize) -> Option<i64> {
        match self {
            Self::Signed(values) if row < values.len() && !values.is_null(row) => {
                Some(values.value(row))
            }
            _ => None,
        }
    }
}

/// The columns of a batch.
///
/// # Errors
/// If they are not those that were told.
pub(super) fn values_of(
    columns: &TaosColumns,
    batch: &RecordBatch,
) -> Result<Vec<TaosValues>, ServiceError> {
    if columns.columns.len() != batch.num_columns() {
        let message = "an answer has another number of columns than it told";
        return Err(ServiceError::Internal(message.to_owned()));
    }
    let pairs = columns.columns.iter().zip(batch.columns());
    pairs
        .map(|(column, array)| TaosValues::new(column.kind, array))
        .collect()
}

/// Writes the rows of a batch as JSON.
///
/// # Errors
/// As [`values_of`].
pub(super) fn write_rows(
    columns: &TaosColumns,
    batch: &RecordBatch,
    answer: &mut RestAnswer,
    out: &mut String,
) -> Result<(), ServiceError> {
    let values = values_of(columns, batch)?;
    for row in 0..batch.num_rows() {
        answer.begin_row(out);
        for (values, column) in values.iter().zip(&columns.columns) {
            write_value(values, (row, column.kind), answer, out);
        }
        answer.end_row(out);
    }
    Ok(())
}

fn write_value(
    values: &TaosValues,
    (row, kind): (usize, TaosType),
    answer: &mut RestAnswer,
    out: &mut String,
) {
    if values.is_null(row) {
        return answer.null(out);
    }
    match values {
        TaosValues::Null => answer.null(out),
        TaosValues::Bool(values) => answer.bool(values.value(row), out),
        TaosValues::Signed(values) => answer.integer(values.value(row).into(), out),
        TaosValues::Unsigned(values) => answer.integer(values.value(row).into(), out),
        TaosValues::Float(values) => answer.float(values.value(row), out),
        TaosValues::Time(values) => answer.time(values.value(row), out),
        TaosValues::Bytes(values) => answer.bytes(values.value(row), out),
        TaosValues::Text(values) => {
            let text = values.value(row);
            let is_json =
                kind == TaosType::Json && serde_json::from_str::<IgnoredAny>(text).is_ok();
            if is_json {
                answer.json(text, out);
            } else {
                answer.text(text, out);
            }
        }
    }
}

/// The block of a batch.
///
/// # Errors
/// As [`values_of`], and if a value is too long.
pub(super) fn block_of(
    columns: &TaosColumns,
    batch: &RecordBatch,
) -> Result<Vec<u8>, ServiceError> {
    let rows = batch.num_rows();
    let values = values_of(columns, batch)?;
    let mut raw = Vec::with_capacity(values.len());
    for (values, column) in values.iter().zip(&columns.columns) {
        let mut written = RawColumn::new(column.kind, rows);
        for row in 0..rows {
            push_value(values, row, columns.precision, &mut written).map_err(too_long)?;
        }
        raw.push(written);
    }
    raw_block(&raw, rows).map_err(too_long)
}

fn too_long(error: marigram_tdengine::TaosError) -> ServiceError {
    ServiceError::Invalid {
        message: marigram_tdengine::error_text(&error),
        position: None,
        sqlstate: error.code.sqlstate(),
    }
}

fn push_value(
    values: &TaosValues,
    row: usize,
    precision: TaosPrecision,
    out: &mut RawColumn,
) -> TaosResult<()> {
    if values.is_null(row) {
        out.null();
        return Ok(());
    }
    match values {
        TaosValues::Null => out.null(),
        TaosValues::Bool(values) => out.integer(i128::from(values.value(row))),
        TaosValues::Signed(values) => out.integer(values.value(row).into()),
        TaosValues::Unsigned(values) => out.integer(values.value(row).into()),
        TaosValues::Float(values) => out.float(values.value(row)),
        TaosValues::Time(values) => out.integer(precision.ticks(values.value(row)).into()),
        TaosValues::Text(values) => return out.text(values.value(row)),
        TaosValues::Bytes(values) => return out.bytes(values.value(row)),
    }
    Ok(())
}

/// The error of a zone that nobody knows.
pub(super) fn unknown_zone(name: &str) -> HttpError {
    HttpError::bad_request(format!("unknown time zone {name}"))
}
