//! Encodes rows as lines, the inverse of [`parse`](super::parse), for export.

use marigram_model::{FieldValue, FieldValueRef, TagValueRef, WriteBatch};
use std::fmt::Write;

/// Why a row cannot be a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// A name or tag value that the protocol cannot express.
    #[error("{what} '{text}' cannot be written in line protocol: {reason}", text = text.escape_debug())]
    Text {
        /// The kind of text.
        what: &'static str,
        /// The text.
        text: String,
        /// Why not.
        reason: &'static str,
    },
    /// A field's value that the protocol cannot express.
    #[error("field '{field}' cannot be written in line protocol: {reason}")]
    Value {
        /// The field.
        field: String,
        /// Why not.
        reason: &'static str,
    },
    /// A line has at least one field.
    #[error("a row without values cannot be written in line protocol")]
    NoFields,
}

/// Appends a row as a line with its time in ns. Tags are written as text, 32-bit numbers as 64-bit
/// ones, and timestamps as integers, because line protocol has no other types.
///
/// # Errors
/// If line protocol cannot hold the row; nothing is appended then.
pub fn encode_row<'a>(
    table: &str,
    tags: impl IntoIterator<Item = (&'a str, TagValueRef<'a>)>,
    fields: impl IntoIterator<Item = (&'a str, FieldValueRef<'a>)>,
    time_ns: i64,
    out: &mut String,
) -> Result<(), EncodeError> {
    let before = out.len();
    let result = put_row(table, tags, fields, time_ns, out);
    if result.is_err() {
        out.truncate(before);
    }
    result
}

/// Appends every row of a batch.
///
/// # Errors
/// As [`encode_row`], for the first such row; the rows before it are appended.
///
/// # Panics
/// If the batch does not pass [`WriteBatch::check`].
pub fn encode_batch(batch: &WriteBatch, out: &mut String) -> Result<(), EncodeError> {
    for (row, (slot, time)) in batch.slots.iter().zip(batch.times.iter()).enumerate() {
        let tags = batch.tags.iter().filter_map(|tag| {
            tag.value(*slot as usize)
                .map(|value| (tag.name.as_str(), value))
        });
        let values: Vec<(&str, FieldValue)> = batch
            .fields
            .iter()
            .filter_map(|field| {
                FieldValue::from_array(&field.values, row).map(|v| (&*field.name, v))
            })
            .collect();
        let fields = values
            .iter()
            .map(|(name, value)| (*name, FieldValueRef::from(value)));
        encode_row(&batch.table, tags, fields, *time, out)?;
    }
    Ok(())
}

fn put_row<'a>(
    table: &str,
    tags: impl IntoIterator<Item = (&'a str, TagValueRef<'a>)>,
    fields: impl IntoIterator<Item = (&'a str, FieldValueRef<'a>)>,
    time_ns: i64,
    out: &mut String,
) -> Result<(), EncodeError> {
    if table.starts_with('#') {
        return Err(text_error(
            "the table",
            table,
            "a line that begins with # is a comment",
        ));
    }
    put_text("the table", table, &[',', ' '], out)?;
    for (name, value) in tags {
        out.push(',');
        put_text("the tag", name, &[',', ' ', '='], out)?;
        out.push('=');
        match value {
            TagValueRef::String(text) => put_text("the tag value", text, &[',', ' ', '='], out)?,
            TagValueRef::I64(number) => put(out, number),
            TagValueRef::Bool(truth) => put(out, truth),
        }
    }
    let mut separator = ' ';
    for (name, value) in fields {
        out.push(separator);
        separator = ',';
        put_text("the field", name, &[',', ' ', '='], out)?;
        out.push('=');
        put_value(name, value, out)?;
    }
    if separator == ' ' {
        return Err(EncodeError::NoFields);
    }
    out.push(' ');
    put(out, time_ns);
    out.push('\n');
    Ok(())
}

fn put(out: &mut String, value: impl std::fmt::Display) {
    write!(out, "{value}").expect("writing to a String cannot fail");
}

fn text_error(what: &'static str, text: &str, reason: &'static str) -> EncodeError {
    EncodeError::Text {
        what,
        text: text.to_owned(),
        reason,
    }
}

fn put_text(
    what: &'static str,
    text: &str,
    special: &[char],
    out: &mut String,
) -> Result<(), EncodeError> {
    if text.is_empty() {
        return Err(text_error(what, text, "it is empty"));
    }
    if text.contains('\n') {
        return Err(text_error(what, text, "it contains a line break"));
    }
    if text.ends_with('\\') {
        return Err(text_error(what, text, "it ends in a backslash"));
    }
    for char in text.chars() {
        if special.contains(&char) {
            out.push('\\');
        }
        out.push(char);
    }
    Ok(())
}

fn put_value(field: &str, value: FieldValueRef<'_>, out: &mut String) -> Result<(), EncodeError> {
    let unwritable = |reason| {
        Err(EncodeError::Value {
            field: field.to_owned(),
            reason,
        })
    };
    match value {
        FieldValueRef::Bool(truth) => put(out, truth),
        FieldValueRef::I32(number) => put(out, format_args!("{number}i")),
        FieldValueRef::I64(number) | FieldValueRef::Timestamp(number) => {
            put(out, format_args!("{number}i"));
        }
        FieldValueRef::U64(number) => put(out, format_args!("{number}u")),
        FieldValueRef::F32(number) if number.is_finite() => put(out, format_args!("{number:?}")),
        FieldValueRef::F64(number) if number.is_finite() => put(out, format_args!("{number:?}")),
        FieldValueRef::F32(_) | FieldValueRef::F64(_) => {
            return unwritable("it cannot hold NaN and infinity");
        }
        FieldValueRef::String(text) => {
            out.push('"');
            for char in text.chars() {
                if matches!(char, '"' | '\\') {
                    out.push('\\');
                }
                out.push(char);
            }
            out.push('"');
        }
        FieldValueRef::Bytes(_) => return unwritable("it cannot hold bytes"),
    }
    Ok(())
}
