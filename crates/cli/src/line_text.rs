//! Writes rows of a batch as line protocol, for servers and for files.

use crate::line_comments;
use marigram_model::{FieldValue, FieldValueRef, TagValueRef, WriteBatch};
use marigram_protocol::lines;

/// Appends row `row` of `batch` as a line.
///
/// # Errors
/// Why line protocol cannot hold the row; nothing is appended then.
pub(crate) fn put_row(batch: &WriteBatch, row: usize, out: &mut String) -> Result<(), String> {
    let slot = batch.slots[row] as usize;
    let tags = batch
        .tags
        .iter()
        .filter_map(|tag| tag.value(slot).map(|value| (tag.name.as_str(), value)));
    let values: Vec<(&str, FieldValue)> = batch
        .fields
        .iter()
        .filter_map(|field| {
            FieldValue::from_array(&field.values, row).map(|v| (field.name.as_str(), v))
        })
        .collect();
    let fields = values
        .iter()
        .map(|(name, value)| (*name, FieldValueRef::from(value)));
    lines::encode_row(&batch.table, tags, fields, batch.times[row], out)
        .map_err(|error| error.to_string())
}

/// Appends the whole of row `row` of `batch`: a line, and a comment for the values that a line
/// cannot hold. Returns the number of values in the comment.
///
/// # Errors
/// If the values cannot be written at all.
pub(crate) fn put_whole_row(
    batch: &WriteBatch,
    row: usize,
    out: &mut String,
) -> anyhow::Result<usize> {
    let values = batch.fields.iter().filter_map(|field| {
        FieldValue::from_array(&field.values, row).map(|v| (field.name.as_str(), v))
    });
    // A reader looks for the end of a line before it parses the line. Quotation marks and backslashes in
    // names mislead that search, if a text has a line break.
    let mut names = batch.fields.iter().map(|field| field.name.as_str());
    let slot = batch.slots[row] as usize;
    let misleads = |text: &str| text.contains(['"', '\\']);
    let mut tags = batch.tags.iter();
    let is_misleading = misleads(&batch.table)
        || names.any(misleads)
        || tags.any(|tag| {
            let value = tag.value(slot);
            misleads(&tag.name)
                || matches!(value, Some(TagValueRef::String(text)) if misleads(text))
        });
    let is_broken =
        |value: &FieldValue| matches!(value, FieldValue::String(text) if has_return(text));
    let (mut beyond, plain): (Vec<_>, Vec<_>) = values.partition(|(_, value)| {
        line_comments::is_beyond(value) || (is_misleading && is_broken(value))
    });
    if !plain.is_empty() {
        let tags = batch
            .tags
            .iter()
            .filter_map(|tag| tag.value(slot).map(|value| (tag.name.as_str(), value)));
        let tags: Vec<_> = tags.collect();
        let in_line = !batch.table.contains('\r')
            && !tags
                .iter()
                .any(|(name, value)| has_return(name) || is_odd(value));
        let fields = plain
            .iter()
            .map(|(name, value)| (*name, FieldValueRef::from(value)));
        let is_line =
            in_line && lines::encode_row(&batch.table, tags, fields, batch.times[row], out).is_ok();
        if !is_line {
            beyond.extend(plain);
        }
    }
    if !beyond.is_empty() {
        line_comments::put(batch, row, &beyond, out)?;
    }
    Ok(beyond.len())
}

fn has_return(text: &str) -> bool {
    text.contains(['\r', '\n'])
}

/// Tags whose backslashes would be read as escapes do not go into lines.
fn is_odd(value: &TagValueRef<'_>) -> bool {
    matches!(value, TagValueRef::String(text) if text.contains(['\r', '\n', '\\']))
}
