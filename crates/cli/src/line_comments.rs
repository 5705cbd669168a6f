//! Comments in line protocol that carry what its lines cannot: bytes, NaN, infinities, and line
//! breaks in tags. Other programs skip the comments; Marigram reads them back.

use anyhow::Result;
use arrow::array::{Array, ArrayRef};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::DataType;
use marigram_model::{
    BatchBuilder, FieldType, FieldValue, FieldValueRef, TagType, TagValueRef, WriteBatch,
};
use marigram_tabular::layout::ColumnLayout;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// The prefix of such a comment, before its JSON.
pub(crate) const BEYOND: &str = "#marigram-row ";

/// A row, or part of one.
#[derive(Serialize, Deserialize)]
struct CommentRow {
    table: String,
    time: i64,
    tags: Vec<(String, CommentTag)>,
    fields: Vec<(String, CommentValue)>,
}

#[derive(Serialize, Deserialize)]
enum CommentTag {
    Text(String),
    Number(i64),
    Truth(bool),
}

#[derive(Serialize, Deserialize)]
enum CommentValue {
    Bool(bool),
    I32(i32),
    I64(i64),
    U64(u64),
    /// The bits: no decimal notation preserves those of a NaN.
    F32(u32),
    F64(u64),
    Text(String),
    Bytes(Vec<u8>),
    Time(i64),
}

/// Whether line protocol cannot hold a value so that it reads back unchanged.
pub(crate) fn is_beyond(value: &FieldValue) -> bool {
    match value {
        FieldValue::Bytes(_) => true,
        FieldValue::F32(number) => !number.is_finite(),
        FieldValue::F64(number) => !number.is_finite(),
        // The text must not look like one of our comments.
        FieldValue::String(text) => text.contains("#marigram") || text.contains('\r'),
        _ => false,
    }
}

/// Appends a comment with these fields of a row.
///
/// # Errors
/// Never: JSON can hold all of them.
pub(crate) fn put(
    batch: &WriteBatch,
    row: usize,
    fields: &[(&str, FieldValue)],
    out: &mut String,
) -> Result<()> {
    let slot = batch.slots[row] as usize;
    let tags = batch.tags.iter().filter_map(|tag| {
        let value = match tag.value(slot)? {
            TagValueRef::String(text) => CommentTag::Text(text.to_owned()),
            TagValueRef::I64(number) => CommentTag::Number(number),
            TagValueRef::Bool(truth) => CommentTag::Truth(truth),
        };
        Some((tag.name.clone(), value))
    });
    let fields = fields.iter().map(|(name, value)| {
        let value = match value {
            FieldValue::Bool(v) => CommentValue::Bool(*v),
            FieldValue::I32(v) => CommentValue::I32(*v),
            FieldValue::I64(v) => CommentValue::I64(*v),
            FieldValue::U64(v) => CommentValue::U64(*v),
            FieldValue::F32(v) => CommentValue::F32(v.to_bits()),
            FieldValue::F64(v) => CommentValue::F64(v.to_bits()),
            FieldValue::String(v) => CommentValue::Text(v.clone()),
            FieldValue::Bytes(v) => CommentValue::Bytes(v.clone()),
            FieldValue::Timestamp(v) => CommentValue::Time(*v),
        };
        ((*name).to_owned(), value)
    });
    let row = CommentRow {
        table: batch.table.clone(),
        time: batch.times[row],
        tags: tags.collect(),
        fields: fields.collect(),
    };
    out.push_str(BEYOND);
    out.push_str(&serde_json::to_string(&row)?);
    out.push('\n');
    Ok(())
}

/// Rows that were read from comments.
#[derive(Default)]
pub(crate) struct CommentRows {
    /// The rows.
    pub batches: Vec<WriteBatch>,
    /// For each batch, the line of each row, from 1.
    pub lines: Vec<Vec<u64>>,
    /// Comments that are not rows, and why.
    pub bad: Vec<(u64, String)>,
}

/// The rows in the comments of `block`, which follows `lines_before` lines.
pub(crate) fn read(block: &[u8], lines_before: u64) -> CommentRows {
    let mut parsed = CommentRows::default();
    let mut builders: Vec<(BatchBuilder, String, Vec<u64>)> = Vec::new();
    for (at, line) in block.split(|byte| *byte == b'\n').enumerate() {
        let Some(json) = line.strip_prefix(BEYOND.as_bytes()) else {
            continue;
        };
        let number = lines_before + at as u64 + 1;
        let row: CommentRow = match serde_json::from_slice(json) {
            Ok(row) => row,
            Err(error) => {
                parsed
                    .bad
                    .push((number, format!("the comment is not a row: {error}")));
                continue;
            }
        };
        let place = builders
            .iter()
            .position(|(_, table, _)| *table == row.table);
        let place = place.unwrap_or_else(|| {
            let builder = BatchBuilder::new(row.table.clone());
            builders.push((builder, row.table.clone(), Vec::new()));
            builders.len() - 1
        });
        let (builder, _, lines) = &mut builders[place];
        let tags = row.tags.iter().map(|(name, value)| {
            let value = match value {
                CommentTag::Text(text) => TagValueRef::String(text),
                CommentTag::Number(number) => TagValueRef::I64(*number),
                CommentTag::Truth(truth) => TagValueRef::Bool(*truth),
            };
            (name.as_str(), value)
        });
        let slot = builder.slot(tags);
        builder.row(slot, row.time);
        for (name, value) in &row.fields {
            let value = match value {
                CommentValue::Bool(v) => FieldValueRef::Bool(*v),
                CommentValue::I32(v) => FieldValueRef::I32(*v),
                CommentValue::I64(v) => FieldValueRef::I64(*v),
                CommentValue::U64(v) => FieldValueRef::U64(*v),
                CommentValue::F32(v) => FieldValueRef::F32(f32::from_bits(*v)),
                CommentValue::F64(v) => FieldValueRef::F64(f64::from_bits(*v)),
                CommentValue::Text(v) => FieldValueRef::String(v),
                CommentValue::Bytes(v) => FieldValueRef::Bytes(v),
                CommentValue::Time(v) => FieldValueRef::Timestamp(*v),
            };
            builder.field(name, value);
        }
        lines.push(number);
    }
    for (builder, _, lines) in builders {
        parsed.batches.push(builder.finish());
        parsed.lines.push(lines);
    }
    parsed
}

/// The types of a table's columns, some of which line protocol cannot express.
pub(crate) struct ColumnTypes {
    table: String,
    tags: HashMap<String, TagType>,
    fields: HashMap<String, FieldType>,
}

impl ColumnTypes {
    /// The types from a layout.
    pub(crate) fn from_layout(layout: &ColumnLayout) -> Result<Self> {
        Ok(Self {
            table: layout.table.clone(),
            tags: layout.tag_types()?.into_iter().collect(),
            fields: layout.field_types()?.into_iter().collect(),
        })
    }

    /// Converts the columns of a batch to their types if every value of the column converts
    /// exactly.
    pub(crate) fn apply(&self, batch: &mut WriteBatch) {
        if batch.table != self.table {
            return;
        }
        for tag in &mut batch.tags {
            if let Some(kind) = self.tags.get(&tag.name) {
                retype(&mut tag.values, &kind.data_type());
            }
        }
        for field in &mut batch.fields {
            if let Some(kind) = self.fields.get(&field.name) {
                retype(&mut field.values, &kind.data_type());
            }
        }
    }
}

fn retype(values: &mut ArrayRef, kind: &DataType) {
    if values.data_type() == kind {
        return;
    }
    let options = CastOptions {
        safe: true,
        ..CastOptions::default()
    };
    let cast = |values: &ArrayRef, kind: &DataType| cast_with_options(values, kind, &options).ok();
    let there = cast(values, kind).filter(|there| there.null_count() == values.null_count());
    let back = there
        .as_ref()
        .and_then(|there| cast(there, values.data_type()));
    if let (Some(there), Some(back)) = (there, back)
        && back.as_ref() == values.as_ref()
    {
        *values = there;
    }
}
