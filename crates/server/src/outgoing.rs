//! How much of an answer is produced at once.
//!
//! Rows become bytes in parts, each only after the client took the previous ones. So a client that
//! does not read makes the server hold little, however wide its rows are. These bytes count against
//! the client, in the memory for requests.

use arrow::array::{Array, AsArray};
use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;

/// Approximate bytes of rows in one part of an answer.
pub(crate) const PART_BYTES: usize = 512 << 10;

/// The number of rows at the start of `batch` that take about `bytes_max` bytes; at least one if
/// the batch is not empty.
pub(crate) fn rows_within(batch: &RecordBatch, bytes_max: usize) -> usize {
    let rows = batch.num_rows();
    // Overestimates a slice of a larger batch, but costs no time.
    let most: usize = batch
        .columns()
        .iter()
        .map(|column| bytes_at_most(column))
        .sum();
    if most <= bytes_max {
        return rows;
    }
    let row_bytes: usize = batch
        .columns()
        .iter()
        .map(|column| value_bytes(column))
        .sum();
    (bytes_max / row_bytes.max(1)).max(1).min(rows)
}

/// The first part of a batch, and what is left of it.
pub(crate) fn next_part(batch: RecordBatch) -> (RecordBatch, Option<RecordBatch>) {
    let rows = rows_within(&batch, PART_BYTES);
    if rows == batch.num_rows() {
        return (batch, None);
    }
    let rest = batch.slice(rows, batch.num_rows() - rows);
    (batch.slice(0, rows), Some(rest))
}

/// Upper bound of the bytes of a column's values; counts a dictionary value in every row.
fn bytes_at_most(column: &dyn Array) -> usize {
    if matches!(column.data_type(), DataType::Dictionary(..)) {
        return value_bytes(column).saturating_mul(column.len());
    }
    column.get_array_memory_size()
}

/// Average bytes of a column's values.
fn value_bytes(column: &dyn Array) -> usize {
    if let DataType::Dictionary(..) = column.data_type() {
        let values = column.as_any_dictionary().values();
        return values.get_array_memory_size().div_ceil(values.len().max(1));
    }
    let bytes = column.to_data().get_slice_memory_size().unwrap_or(0);
    bytes.div_ceil(column.len().max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, DictionaryArray, Int64Array, StringArray};
    use arrow::datatypes::Int32Type;
    use std::sync::Arc;

    fn batch(column: ArrayRef) -> RecordBatch {
        RecordBatch::try_from_iter([("c", column)]).unwrap()
    }

    #[test]
    fn wide_rows_go_out_one_by_one_and_narrow_ones_together() {
        let numbers = batch(Arc::new(Int64Array::from_iter_values(0..8192)));
        assert_eq!(rows_within(&numbers, PART_BYTES), 8192);
        assert_eq!(rows_within(&numbers, 8 << 10), 1024);
        assert_eq!(rows_within(&numbers, 1), 1);
        let texts = StringArray::from_iter_values((0..64).map(|_| "x".repeat(1 << 20)));
        let texts = batch(Arc::new(texts));
        assert_eq!(rows_within(&texts, PART_BYTES), 1);
        assert_eq!(rows_within(&texts, 8 << 20), 7);
        // A slice counts with its own size.
        let few = numbers.slice(100, 10);
        assert_eq!(rows_within(&few, 100), 10);
        assert_eq!(rows_within(&numbers.slice(0, 0), 1), 0);
        let long = "y".repeat(10_000);
        let tags: DictionaryArray<Int32Type> = (0..1000).map(|_| long.as_str()).collect();
        let tags = rows_within(&batch(Arc::new(tags)), PART_BYTES);
        assert!((20..=60).contains(&tags), "{tags}");
    }
}
