//! Lossless conversion of Arrow types to the types of tags and fields.

use super::RefusedRows;
use crate::error::{Error, Result};
use arrow::array::{Array, ArrayRef, Datum};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, TimeUnit};
use arrow::util::display::array_value_to_string;
use marigram_model::{FieldType, TagType};

/// The tag type for values of an Arrow type.
pub(super) fn tag_type(name: &str, data_type: &DataType) -> Result<TagType> {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Ok(TagType::String),
        DataType::Boolean => Ok(TagType::Bool),
        DataType::Dictionary(_, values) => tag_type(name, values),
        whole if whole.is_integer() => Ok(TagType::I64),
        other => Err(Error::Arrow(format!(
            "the tag '{name}' has the type {other}; a tag is text, an integer or a boolean"
        ))),
    }
}

/// The field type for values of an Arrow type.
pub(super) fn field_type(name: &str, data_type: &DataType) -> Result<FieldType> {
    Ok(match data_type {
        DataType::Boolean => FieldType::Bool,
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::UInt8 | DataType::UInt16 => {
            FieldType::I32
        }
        DataType::Int64 | DataType::UInt32 => FieldType::I64,
        DataType::UInt64 => FieldType::U64,
        DataType::Float16 | DataType::Float32 => FieldType::F32,
        DataType::Float64
        | DataType::Decimal32(_, _)
        | DataType::Decimal64(_, _)
        | DataType::Decimal128(_, _)
        | DataType::Decimal256(_, _) => FieldType::F64,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => FieldType::String,
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => FieldType::Bytes,
        DataType::Timestamp(_, _) | DataType::Date32 | DataType::Date64 => FieldType::Timestamp,
        DataType::Dictionary(_, values) => field_type(name, values)?,
        other => {
            return Err(Error::Arrow(format!(
                "the column '{name}' has the type {other}, which no field can have"
            )));
        }
    })
}

/// A tag column in the type that [`super::slots`] takes: a text dictionary stays a dictionary.
pub(super) fn tag(
    name: &str,
    values: &ArrayRef,
    kind: Option<TagType>,
    refused: &mut RefusedRows,
) -> Result<ArrayRef> {
    if kind == Some(TagType::I64) && values.data_type().is_floating() {
        // 5.0 is the series 5; a row with a fraction is refused.
        return lossless(name, values, &TagType::I64.data_type(), refused);
    }
    let own = tag_type(name, values.data_type())?;
    let kind = kind.unwrap_or(own);
    if own == TagType::String && kind == TagType::String {
        return match values.data_type() {
            DataType::Utf8 | DataType::Dictionary(_, _) => Ok(values.clone()),
            _ => plain(values, &DataType::Utf8),
        };
    }
    lossless(name, values, &kind.data_type(), refused)
}

/// A field column in its field type's Arrow type.
pub(super) fn field(
    name: &str,
    values: &ArrayRef,
    kind: Option<FieldType>,
    refused: &mut RefusedRows,
) -> Result<ArrayRef> {
    let own = field_type(name, values.data_type())?;
    let kind = kind.unwrap_or(own);
    let number = |kind| !matches!(kind, FieldType::String | FieldType::Bytes | FieldType::Bool);
    let meant = own == kind
        || (number(own) && number(kind))
        || (own == FieldType::String && kind != FieldType::Bytes);
    if !meant {
        for row in (0..values.len()).filter(|row| values.is_valid(*row)) {
            refused.add(row, || {
                format!("column '{name}' is {kind} in the table; this is {own}")
            });
        }
        return Ok(kind.nulls(values.len()));
    }
    let unzoned = without_zone(values.data_type());
    let values = if unzoned == *values.data_type() {
        values
    } else {
        &plain(values, &unzoned)?
    };
    lossless(name, values, &kind.data_type(), refused)
}

/// A timestamp type without its zone (the stored number is UTC either way); other types unchanged.
pub(super) fn without_zone(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Timestamp(unit, _) => DataType::Timestamp(*unit, None),
        other => other.clone(),
    }
}

/// Casts, and refuses the rows whose value changes.
pub(super) fn lossless(
    name: &str,
    values: &ArrayRef,
    to: &DataType,
    refused: &mut RefusedRows,
) -> Result<ArrayRef> {
    let from = values.data_type();
    if from == to {
        return Ok(values.clone());
    }
    let cast = plain(values, to)?;
    if cast.null_count() > values.null_count() {
        for row in (0..cast.len()).filter(|row| cast.is_null(*row) && values.is_valid(*row)) {
            refused.add(row, || {
                let value = array_value_to_string(values, row).unwrap_or_default();
                format!("column '{name}': '{value}' is not {}", describe(to))
            });
        }
    }
    // A float may be between two integers: cast back and compare.
    if from.is_floating() && (to.is_integer() || to.is_temporal()) {
        let back = plain(&plain(&cast, &DataType::Int64)?, from)?;
        let (back, numbers): (&dyn Datum, &ArrayRef) = (&back, values);
        let is_zero = |row: &usize| {
            let text = array_value_to_string(numbers, *row);
            text.is_ok_and(|text| text.parse() == Ok(0.0_f64))
        };
        let differs = arrow::compute::kernels::cmp::neq(back, numbers as &dyn Datum)
            .map_err(|error| Error::Arrow(error.to_string()))?;
        for row in differs
            .values()
            .set_indices()
            .filter(|row| differs.is_valid(*row))
            // The comparison tells the two zeros apart.
            .filter(|row| !is_zero(row))
        {
            refused.add(row, || {
                format!("column '{name}': a fraction is not {}", describe(to))
            });
        }
    }
    if from.is_integer() && to.is_floating() {
        let back = plain(&cast, from)?;
        let differs =
            arrow::compute::kernels::cmp::distinct(&back as &dyn Datum, values as &dyn Datum)
                .map_err(|error| Error::Arrow(error.to_string()))?;
        for row in differs.values().set_indices() {
            refused.add(row, || {
                let value = array_value_to_string(values, row).unwrap_or_default();
                format!("column '{name}': no {} holds {value} exactly", describe(to))
            });
        }
    }
    Ok(cast)
}

/// Casts; values without an equal become null.
pub(super) fn plain(values: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let options = CastOptions {
        safe: true,
        ..CastOptions::default()
    };
    cast_with_options(values, to, &options).map_err(|error| Error::Arrow(error.to_string()))
}

fn describe(to: &DataType) -> String {
    match to {
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            "a time that fits i64 nanoseconds (1677 to 2262)".to_owned()
        }
        DataType::Utf8 => "text".to_owned(),
        other => {
            FieldType::from_arrow(other).map_or_else(|| other.to_string(), |kind| kind.to_string())
        }
    }
}
