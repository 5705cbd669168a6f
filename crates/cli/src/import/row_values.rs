//! Hashes of the values of rows, by which rows of the same time and tags are compared.

use arrow::array::{Array, AsArray};
use arrow::datatypes::{
    DataType, Float32Type, Float64Type, Int32Type, Int64Type, TimeUnit, TimestampNanosecondType,
    UInt64Type,
};
use marigram_model::{BatchField, WriteBatch};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// For each row a hash of its values, whatever the order of their columns.
pub fn row_hashes(batch: &WriteBatch) -> Vec<u64> {
    let mut hashes = vec![0u64; batch.len()];
    for field in &batch.fields {
        value_hashes(field, &mut |row, hash| {
            hashes[row] = hashes[row].wrapping_add(hash);
        });
    }
    hashes
}

/// Passes each row that has a value in `field`, and a hash of the value.
pub fn value_hashes(field: &BatchField, take: &mut dyn FnMut(usize, u64)) {
    let values = &field.values;
    let seed = xxh3_64(field.name.as_bytes());
    let mut put = |row: usize, bytes: &[u8]| take(row, xxh3_64_with_seed(bytes, seed));
    let rows = (0..values.len()).filter(|row| values.is_valid(*row));
    macro_rules! numbers {
        ($kind:ty) => {{
            let numbers = values.as_primitive::<$kind>();
            rows.for_each(|row| put(row, &numbers.value(row).to_le_bytes()));
        }};
    }
    match values.data_type() {
        DataType::Boolean => {
            let truths = values.as_boolean();
            rows.for_each(|row| put(row, &[u8::from(truths.value(row))]));
        }
        DataType::Int32 => numbers!(Int32Type),
        DataType::Int64 => numbers!(Int64Type),
        DataType::UInt64 => numbers!(UInt64Type),
        DataType::Float32 => numbers!(Float32Type),
        DataType::Float64 => numbers!(Float64Type),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => numbers!(TimestampNanosecondType),
        DataType::Binary => {
            let bytes = values.as_binary::<i32>();
            rows.for_each(|row| put(row, bytes.value(row)));
        }
        DataType::Utf8 => {
            let texts = values.as_string::<i32>();
            rows.for_each(|row| put(row, texts.value(row).as_bytes()));
        }
        // A batch has no other types. Values that cannot be compared differ.
        _ => rows.for_each(|row| put(row, &(row as u64).to_le_bytes())),
    }
}
