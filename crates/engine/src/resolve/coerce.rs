//! Lossless conversions of written values to the type of their column.
//!
//! Integers convert to one another if the value is in range, an i64 becomes a timestamp, text
//! becomes bytes, and an f64 is stored in a column that was declared REAL. An integer for a float
//! column is a conflict, as in InfluxDB: a reader could expect different things of the two.

use arrow_array::builder::{BooleanBuilder, Int64Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int32Type, Int64Type, TimestampNanosecondType,
    UInt64Type,
};
use arrow_array::{Array, ArrayRef, BinaryArray, PrimitiveArray};
use arrow_schema::DataType;
use marigram_model::{FieldType, TagType};
use std::sync::Arc;

/// A converted column.
pub(crate) struct CoercedColumn {
    /// The values in the wanted type.
    pub values: ArrayRef,
    /// Rows whose value does not fit, ascending.
    pub bad: Vec<usize>,
}

/// Field values of type `found` converted to `wanted`; `None` if the types do not convert at all.
pub(crate) fn field(
    values: &ArrayRef,
    found: FieldType,
    wanted: FieldType,
) -> Option<CoercedColumn> {
    if found == wanted {
        return Some(CoercedColumn {
            values: values.clone(),
            bad: Vec::new(),
        });
    }
    let sure = |values: ArrayRef| {
        Some(CoercedColumn {
            values,
            bad: Vec::new(),
        })
    };
    match (found, wanted) {
        (FieldType::I32, _) => from_integer::<Int32Type>(values, wanted),
        (FieldType::I64, FieldType::Timestamp) => sure(Arc::new(
            values
                .as_primitive::<Int64Type>()
                .reinterpret_cast::<TimestampNanosecondType>(),
        )),
        (FieldType::I64, _) => from_integer::<Int64Type>(values, wanted),
        (FieldType::U64, _) => from_integer::<UInt64Type>(values, wanted),
        (FieldType::F32, FieldType::F64) => {
            let floats = values.as_primitive::<Float32Type>();
            sure(Arc::new(floats.unary::<_, Float64Type>(f64::from)))
        }
        (FieldType::F64, FieldType::F32) => {
            Some(convert::<Float64Type, Float32Type>(values, |v| {
                let narrow = v as f32;
                (narrow.is_finite() || !v.is_finite()).then_some(narrow)
            }))
        }
        (FieldType::String, FieldType::Bytes) => sure(Arc::new(BinaryArray::from(
            values.as_string::<i32>().clone(),
        ))),
        _ => None,
    }
}

fn from_integer<T>(values: &ArrayRef, wanted: FieldType) -> Option<CoercedColumn>
where
    T: ArrowPrimitiveType,
    T::Native: Into<i128>,
{
    match wanted {
        FieldType::I32 => Some(convert::<T, Int32Type>(values, |v| {
            i32::try_from(v.into()).ok()
        })),
        FieldType::I64 => Some(convert::<T, Int64Type>(values, |v| {
            i64::try_from(v.into()).ok()
        })),
        FieldType::U64 => Some(convert::<T, UInt64Type>(values, |v| {
            u64::try_from(v.into()).ok()
        })),
        _ => None,
    }
}

/// Converts value by value; values that do not fit become null and are listed.
fn convert<T: ArrowPrimitiveType, W: ArrowPrimitiveType>(
    values: &ArrayRef,
    fit: impl Fn(T::Native) -> Option<W::Native>,
) -> CoercedColumn {
    let mut bad = Vec::new();
    let converted: PrimitiveArray<W> = values
        .as_primitive::<T>()
        .iter()
        .enumerate()
        .map(|(row, value)| {
            let fitted = value.map(&fit);
            if fitted == Some(None) {
                bad.push(row);
            }
            fitted.flatten()
        })
        .collect();
    CoercedColumn {
        values: Arc::new(converted),
        bad,
    }
}

/// Tag values converted to `wanted`, and the slots whose text does not convert; `None` if the types
/// do not convert. So protocols with text tags only can write to tables with typed tags.
pub(crate) fn tag(values: &ArrayRef, wanted: TagType) -> Option<(ArrayRef, Vec<usize>)> {
    if *values.data_type() == wanted.data_type() {
        return Some((values.clone(), Vec::new()));
    }
    if *values.data_type() != DataType::Utf8 {
        return None;
    }
    let texts = values.as_string::<i32>();
    let mut bad = Vec::new();
    let mut note = |slot, bad_text: bool| {
        if bad_text {
            bad.push(slot);
        }
    };
    let values: ArrayRef = match wanted {
        TagType::String => values.clone(),
        TagType::I64 => {
            let mut numbers = Int64Builder::with_capacity(texts.len());
            for (slot, text) in texts.iter().enumerate() {
                // Only the canonical notation, so that two texts never become one series.
                let number =
                    text.and_then(|t| t.parse::<i64>().ok().filter(|n| n.to_string() == t));
                note(slot, text.is_some() && number.is_none());
                numbers.append_option(number);
            }
            Arc::new(numbers.finish())
        }
        TagType::Bool => {
            let mut truths = BooleanBuilder::with_capacity(texts.len());
            for (slot, text) in texts.iter().enumerate() {
                let truth = text.and_then(|text| text.parse::<bool>().ok());
                note(slot, text.is_some() && truth.is_none());
                truths.append_option(truth);
            }
            Arc::new(truths.finish())
        }
    };
    Some((values, bad))
}

/// Rows whose text or bytes are longer than `max`, with their length.
pub(crate) fn long_values(values: &ArrayRef, max: usize) -> Vec<(usize, usize)> {
    let offsets = match values.data_type() {
        DataType::Utf8 => values.as_string::<i32>().offsets().clone(),
        DataType::Binary => values.as_binary::<i32>().offsets().clone(),
        _ => return Vec::new(),
    };
    let total = offsets
        .last()
        .zip(offsets.first())
        .map_or(0, |(end, start)| end - start);
    if total as usize <= max {
        return Vec::new();
    }
    let lens = offsets
        .windows(2)
        .map(|pair| (pair[1] - pair[0]) as usize)
        .enumerate();
    lens.filter(|(row, len)| *len > max && values.is_valid(*row))
        .collect()
}
