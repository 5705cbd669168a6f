//! Rows of a batch as lines of line protocol: for servers and for files.

use marigram_model::{FieldValue, FieldValueRef, WriteBatch};
use marigram_protocol::lines;

/// Appends row `row` of `batch` as a line.
///
/// # Errors
/// Why line protocol cannot hold the row; then nothing is appended.
pub fn put_row(batch: &WriteBatch, row: usize, out: &mut String) -> Result<(), String> {
    let slot = batch.slots[row] as usize;
    let tags = batch
        .tags
        .iter()
        .filter_map(|tag| tag.value(slot).map(|value| (tag.name.as_str(), value)));
    let values: Vec<(&str, FieldValue)> = batch
        .fields
        .iter()
        .filter_map(|field| FieldValue::at(&field.values, row).map(|v| (field.name.as_str(), v)))
        .collect();
    let fields = values.iter().map(|(name, value)| (*name, borrowed(value)));
    lines::encode_row(&batch.table, tags, fields, batch.times[row], out)
        .map_err(|error| error.to_string())
}

fn borrowed(value: &FieldValue) -> FieldValueRef<'_> {
    match value {
        FieldValue::Bool(v) => FieldValueRef::Bool(*v),
        FieldValue::I32(v) => FieldValueRef::I32(*v),
        FieldValue::I64(v) => FieldValueRef::I64(*v),
        FieldValue::U64(v) => FieldValueRef::U64(*v),
        FieldValue::F32(v) => FieldValueRef::F32(*v),
        FieldValue::F64(v) => FieldValueRef::F64(*v),
        FieldValue::String(v) => FieldValueRef::String(v),
        FieldValue::Bytes(v) => FieldValueRef::Bytes(v),
        FieldValue::Timestamp(v) => FieldValueRef::Timestamp(*v),
    }
}
