//! Assigns a slot to each distinct tag set of many rows, in order of first appearance.

use crate::error::{Error, Result};
use arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Int64Type};
use hashbrown::HashMap;

type SlotMap<K> = HashMap<K, u32, foldhash::fast::RandomState>;

/// The code of null in every column.
const NULL: u32 = 0;

/// Slots of rows.
#[derive(Debug)]
pub(super) struct RowSlots {
    /// Slot of each row.
    pub of_rows: Vec<u32>,
    /// Number of slots.
    pub count: usize,
    /// Tag columns in the given order, one value per slot, dictionaries resolved.
    pub values: Vec<ArrayRef>,
}

/// Assigns a slot to each distinct tag set in the `rows` rows of `tags`.
pub(super) fn assign(tags: &[ArrayRef], rows: usize) -> Result<RowSlots> {
    let mut of_rows = vec![0; rows];
    let mut first_rows: Vec<u32> = if rows == 0 { Vec::new() } else { vec![0] };
    for tag in tags {
        let codes = codes(tag)?;
        first_rows.clear();
        let mut pairs = SlotMap::<(u32, u32)>::default();
        let mut last = None;
        for (row, (slot, code)) in of_rows.iter_mut().zip(&codes).enumerate() {
            let pair = (*slot, *code);
            *slot = match last {
                Some((seen, slot)) if seen == pair => slot,
                _ => *pairs.entry(pair).or_insert_with(|| {
                    first_rows.push(row as u32);
                    first_rows.len() as u32 - 1
                }),
            };
            last = Some((pair, *slot));
        }
    }
    let count = first_rows.len();
    let first_rows = UInt32Array::from(first_rows);
    let values = tags.iter().map(|tag| {
        let values = take(tag, &first_rows, None).map_err(arrow_error)?;
        match values.data_type() {
            DataType::Dictionary(_, kind) => super::cast::plain(&values, &plain_type(kind)),
            _ => Ok(values),
        }
    });
    Ok(RowSlots {
        of_rows,
        count,
        values: values.collect::<Result<_>>()?,
    })
}

fn plain_type(values: &DataType) -> DataType {
    if values.is_string() {
        DataType::Utf8
    } else {
        values.clone()
    }
}

fn arrow_error(error: arrow::error::ArrowError) -> Error {
    Error::Arrow(error.to_string())
}

/// A number for each row: equal for rows with the same value, and [`NULL`] for null.
fn codes(tag: &ArrayRef) -> Result<Vec<u32>> {
    match tag.data_type() {
        DataType::Utf8 => Ok(codes_of(tag.as_string::<i32>().iter())),
        DataType::Int64 => Ok(codes_of(tag.as_primitive::<Int64Type>().iter())),
        DataType::Boolean => Ok(codes_of(tag.as_boolean().iter())),
        DataType::Dictionary(_, _) => {
            let dictionary = tag.as_any_dictionary();
            let plain = plain_type(dictionary.values().data_type());
            // Two keys may stand for one value, so keys cannot serve as codes.
            let values = codes(&super::cast::plain(dictionary.values(), &plain)?)?;
            if values.is_empty() {
                // All rows are null, and the keys refer to nothing.
                return Ok(vec![NULL; tag.len()]);
            }
            let keys = dictionary.normalized_keys();
            let nulls = dictionary.keys().logical_nulls();
            Ok((0..keys.len())
                .map(|row| match &nulls {
                    Some(nulls) if nulls.is_null(row) => NULL,
                    _ => values.get(keys[row]).copied().unwrap_or(NULL),
                })
                .collect())
        }
        other => Err(Error::Arrow(format!("a tag cannot have the type {other}"))),
    }
}

fn codes_of<T: Copy + Eq + std::hash::Hash>(values: impl Iterator<Item = Option<T>>) -> Vec<u32> {
    let mut seen = SlotMap::<T>::default();
    let mut last: Option<(T, u32)> = None;
    values
        .map(|value| {
            let Some(value) = value else { return NULL };
            if let Some((before, code)) = last
                && before == value
            {
                return code;
            }
            let next = seen.len() as u32 + 1;
            let code = *seen.entry(value).or_insert(next);
            last = Some((value, code));
            code
        })
        .collect()
}
