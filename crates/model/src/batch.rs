//! A columnar batch of rows to write to one table, before series have ids.
//!
//! A batch contains each distinct tag set once, as a *slot*. `slots[row]` is the slot of a row. So
//! a series is looked up once per batch rather than once per row.

use crate::schema::Limits;
use crate::tags::TagValueRef;
use crate::types::{FieldType, TagType};
use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, StringArray};
use arrow_buffer::ScalarBuffer;
use arrow_schema::DataType;

/// A tag column of a batch, with one value per slot.
#[derive(Clone, Debug)]
pub struct BatchTag {
    /// Name.
    pub name: String,
    /// One value per slot, of an Arrow type of [`TagType::data_type`]; null if the slot has none.
    pub values: ArrayRef,
}

/// A field column of a batch, with one value per row.
#[derive(Clone, Debug)]
pub struct BatchField {
    /// Name. If rows of a batch disagree about a field's type, the name occurs once for each type;
    /// the table's schema decides which type is right.
    pub name: String,
    /// One value per row, of an Arrow type of [`FieldType::data_type`]; null if the row has no
    /// value.
    pub values: ArrayRef,
}

/// Rows to write to one table.
#[derive(Clone, Debug)]
pub struct WriteBatch {
    /// Table.
    pub table: String,
    /// Tag columns, with one value per slot.
    pub tags: Vec<BatchTag>,
    /// Number of slots.
    pub slot_count: usize,
    /// Slot of each row.
    pub slots: Vec<u32>,
    /// Time of each row, ns.
    pub times: ScalarBuffer<i64>,
    /// Field columns, with one value per row.
    pub fields: Vec<BatchField>,
}

/// Why a batch is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BatchError {
    /// A column's length is not the number of rows (or slots, for a tag).
    #[error("column '{column}' has {len} values where {expected} are expected")]
    Length {
        /// The column.
        column: String,
        /// Its length.
        len: usize,
        /// The length it should have.
        expected: usize,
    },
    /// No tag or field can have the column's Arrow type.
    #[error("column '{column}' has the type {found}, which no {kind} can have")]
    Type {
        /// The column.
        column: String,
        /// "tag" or "field".
        kind: &'static str,
        /// Its Arrow type.
        found: String,
    },
    /// A row refers to a slot that does not exist.
    #[error("row {row} names slot {slot} of {count}")]
    Slot {
        /// The row, from 0.
        row: usize,
        /// The slot that it refers to.
        slot: u32,
        /// Number of slots.
        count: usize,
    },
    /// A required column is missing or occurs twice.
    #[error("{0}")]
    Column(String),
}

impl WriteBatch {
    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// Memory that the batch holds, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let tags = self
            .tags
            .iter()
            .map(|tag| tag.values.get_array_memory_size());
        let fields = self
            .fields
            .iter()
            .map(|field| field.values.get_array_memory_size());
        tags.chain(fields).sum::<usize>() + self.times.len() * 12
    }

    /// Checks that lengths, types and slots are consistent. The engine checks names and values
    /// against [`Limits`], and refuses single rows.
    ///
    /// # Errors
    /// The first inconsistency.
    pub fn check(&self) -> Result<(), BatchError> {
        let rows = self.times.len();
        let length = |column: &str, len, expected| {
            if len == expected {
                return Ok(());
            }
            Err(BatchError::Length {
                column: column.to_owned(),
                len,
                expected,
            })
        };
        length("slot of each row", self.slots.len(), rows)?;
        for tag in &self.tags {
            length(&tag.name, tag.values.len(), self.slot_count)?;
            if tag_type(tag.values.data_type()).is_none() {
                return Err(wrong_type(&tag.name, "tag", tag.values.data_type()));
            }
        }
        for field in &self.fields {
            length(&field.name, field.values.len(), rows)?;
            if FieldType::from_arrow(field.values.data_type()).is_none() {
                return Err(wrong_type(&field.name, "field", field.values.data_type()));
            }
        }
        let bad = self
            .slots
            .iter()
            .position(|slot| *slot as usize >= self.slot_count);
        match bad {
            Some(row) => Err(BatchError::Slot {
                row,
                slot: self.slots[row],
                count: self.slot_count,
            }),
            None => Ok(()),
        }
    }
}

impl BatchTag {
    /// The type of the tag's values.
    ///
    /// # Panics
    /// If the batch was not checked.
    #[must_use]
    pub fn kind(&self) -> TagType {
        tag_type(self.values.data_type()).expect("the batch was checked")
    }

    /// The value of `slot`; `None` if it is null.
    ///
    /// # Panics
    /// If the batch was not checked, or there is no such slot.
    #[must_use]
    pub fn value(&self, slot: usize) -> Option<TagValueRef<'_>> {
        if self.values.is_null(slot) {
            return None;
        }
        let any = self.values.as_any();
        if let Some(text) = any.downcast_ref::<StringArray>() {
            return Some(TagValueRef::String(text.value(slot)));
        }
        if let Some(numbers) = any.downcast_ref::<Int64Array>() {
            return Some(TagValueRef::I64(numbers.value(slot)));
        }
        let truths = any
            .downcast_ref::<BooleanArray>()
            .expect("the batch was checked");
        Some(TagValueRef::Bool(truths.value(slot)))
    }

    /// What is wrong with the value of `slot`, if anything: it is an empty text, or exceeds
    /// [`Limits::TAG_BYTES_MAX`].
    #[must_use]
    pub fn fault(&self, slot: usize) -> Option<String> {
        let Some(TagValueRef::String(text)) = self.value(slot) else {
            return None;
        };
        let (name, max) = (&self.name, Limits::TAG_BYTES_MAX);
        if text.is_empty() {
            return Some(format!(
                "tag '{name}' has an empty value; leave the tag out instead"
            ));
        }
        (text.len() > max).then(|| {
            format!(
                "the value of tag '{name}' has {} bytes; at most {max}",
                text.len()
            )
        })
    }
}

impl BatchField {
    /// The type of the field's values.
    ///
    /// # Panics
    /// If the batch was not checked.
    #[must_use]
    pub fn kind(&self) -> FieldType {
        FieldType::from_arrow(self.values.data_type()).expect("the batch was checked")
    }
}

fn tag_type(data_type: &DataType) -> Option<TagType> {
    [TagType::String, TagType::I64, TagType::Bool]
        .into_iter()
        .find(|kind| kind.data_type() == *data_type)
}

fn wrong_type(column: &str, kind: &'static str, found: &DataType) -> BatchError {
    BatchError::Type {
        column: column.to_owned(),
        kind,
        found: found.to_string(),
    }
}
