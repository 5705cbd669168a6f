//! Builds a batch row by row, for row-oriented protocols and for tests.

use crate::batch::{BatchField, BatchTag, WriteBatch};
use crate::tags::TagValueRef;
use crate::types::{FieldType, FieldValue, TagType};
use arrow_array::builder::{
    ArrayBuilder, BinaryBuilder, BooleanBuilder, Float32Builder, Float64Builder, Int32Builder,
    Int64Builder, StringBuilder, TimestampNanosecondBuilder, UInt64Builder,
};
use arrow_buffer::ScalarBuffer;
use std::collections::HashMap;

/// Builds a [`WriteBatch`] row by row.
///
/// To build a row, call [`slot`](Self::slot) for its tag set, then [`row`](Self::row), then
/// [`field`](Self::field) once for each value. Columns are created when they are first named. A
/// value whose type differs from its column's creates a second column with that name.
#[derive(Debug)]
pub struct BatchBuilder {
    table: String,
    tags: Vec<TagBuilder>,
    slot_count: usize,
    slots: Vec<u32>,
    times: Vec<i64>,
    fields: Vec<FieldBuilder>,
    field_places: HashMap<String, Vec<usize>>,
}

#[derive(Debug)]
struct TagBuilder {
    name: String,
    values: BuilderValues,
}

#[derive(Debug)]
struct FieldBuilder {
    name: String,
    values: BuilderValues,
}

/// A column under construction, by type.
#[derive(Debug)]
enum BuilderValues {
    Bool(BooleanBuilder),
    I32(Int32Builder),
    I64(Int64Builder),
    U64(UInt64Builder),
    F32(Float32Builder),
    F64(Float64Builder),
    String(StringBuilder),
    Bytes(BinaryBuilder),
    Timestamp(TimestampNanosecondBuilder),
}

/// One value of a field, borrowed.
#[derive(Clone, Copy, Debug)]
pub enum FieldValueRef<'a> {
    /// Truth value.
    Bool(bool),
    /// 32-bit integer.
    I32(i32),
    /// 64-bit integer.
    I64(i64),
    /// 64-bit unsigned integer.
    U64(u64),
    /// 32-bit float.
    F32(f32),
    /// 64-bit float.
    F64(f64),
    /// Text.
    String(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
    /// Time, ns.
    Timestamp(i64),
}

impl<'a> From<&'a FieldValue> for FieldValueRef<'a> {
    fn from(value: &'a FieldValue) -> Self {
        match value {
            FieldValue::Bool(v) => Self::Bool(*v),
            FieldValue::I32(v) => Self::I32(*v),
            FieldValue::I64(v) => Self::I64(*v),
            FieldValue::U64(v) => Self::U64(*v),
            FieldValue::F32(v) => Self::F32(*v),
            FieldValue::F64(v) => Self::F64(*v),
            FieldValue::String(v) => Self::String(v),
            FieldValue::Bytes(v) => Self::Bytes(v),
            FieldValue::Timestamp(v) => Self::Timestamp(*v),
        }
    }
}

impl FieldValueRef<'_> {
    /// The value's type.
    #[must_use]
    pub fn field_type(self) -> FieldType {
        match self {
            Self::Bool(_) => FieldType::Bool,
            Self::I32(_) => FieldType::I32,
            Self::I64(_) => FieldType::I64,
            Self::U64(_) => FieldType::U64,
            Self::F32(_) => FieldType::F32,
            Self::F64(_) => FieldType::F64,
            Self::String(_) => FieldType::String,
            Self::Bytes(_) => FieldType::Bytes,
            Self::Timestamp(_) => FieldType::Timestamp,
        }
    }
}

impl BuilderValues {
    /// Reserves no memory: a batch may have many columns with few rows.
    fn new(kind: FieldType) -> Self {
        match kind {
            FieldType::Bool => Self::Bool(BooleanBuilder::with_capacity(0)),
            FieldType::I32 => Self::I32(Int32Builder::with_capacity(0)),
            FieldType::I64 => Self::I64(Int64Builder::with_capacity(0)),
            FieldType::U64 => Self::U64(UInt64Builder::with_capacity(0)),
            FieldType::F32 => Self::F32(Float32Builder::with_capacity(0)),
            FieldType::F64 => Self::F64(Float64Builder::with_capacity(0)),
            FieldType::String => Self::String(StringBuilder::with_capacity(0, 0)),
            FieldType::Bytes => Self::Bytes(BinaryBuilder::with_capacity(0, 0)),
            FieldType::Timestamp => Self::Timestamp(TimestampNanosecondBuilder::with_capacity(0)),
        }
    }

    fn builder(&mut self) -> &mut dyn ArrayBuilder {
        match self {
            Self::Bool(b) => b,
            Self::I32(b) => b,
            Self::I64(b) => b,
            Self::U64(b) => b,
            Self::F32(b) => b,
            Self::F64(b) => b,
            Self::String(b) => b,
            Self::Bytes(b) => b,
            Self::Timestamp(b) => b,
        }
    }

    fn kind(&self) -> FieldType {
        match self {
            Self::Bool(_) => FieldType::Bool,
            Self::I32(_) => FieldType::I32,
            Self::I64(_) => FieldType::I64,
            Self::U64(_) => FieldType::U64,
            Self::F32(_) => FieldType::F32,
            Self::F64(_) => FieldType::F64,
            Self::String(_) => FieldType::String,
            Self::Bytes(_) => FieldType::Bytes,
            Self::Timestamp(_) => FieldType::Timestamp,
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Bool(b) => b.len(),
            Self::I32(b) => b.len(),
            Self::I64(b) => b.len(),
            Self::U64(b) => b.len(),
            Self::F32(b) => b.len(),
            Self::F64(b) => b.len(),
            Self::String(b) => b.len(),
            Self::Bytes(b) => b.len(),
            Self::Timestamp(b) => b.len(),
        }
    }

    /// Appends nulls up to `len` values.
    fn pad(&mut self, len: usize) {
        let missing = len.saturating_sub(self.len());
        match self {
            Self::Bool(b) => b.append_nulls(missing),
            Self::I32(b) => b.append_nulls(missing),
            Self::I64(b) => b.append_nulls(missing),
            Self::U64(b) => b.append_nulls(missing),
            Self::F32(b) => b.append_nulls(missing),
            Self::F64(b) => b.append_nulls(missing),
            Self::String(b) => (0..missing).for_each(|_| b.append_null()),
            Self::Bytes(b) => (0..missing).for_each(|_| b.append_null()),
            Self::Timestamp(b) => b.append_nulls(missing),
        }
    }

    /// Appends a value, which must be of the column's type.
    fn push(&mut self, value: FieldValueRef<'_>) {
        match (self, value) {
            (Self::Bool(b), FieldValueRef::Bool(v)) => b.append_value(v),
            (Self::I32(b), FieldValueRef::I32(v)) => b.append_value(v),
            (Self::I64(b), FieldValueRef::I64(v)) => b.append_value(v),
            (Self::U64(b), FieldValueRef::U64(v)) => b.append_value(v),
            (Self::F32(b), FieldValueRef::F32(v)) => b.append_value(v),
            (Self::F64(b), FieldValueRef::F64(v)) => b.append_value(v),
            (Self::String(b), FieldValueRef::String(v)) => b.append_value(v),
            (Self::Bytes(b), FieldValueRef::Bytes(v)) => b.append_value(v),
            (Self::Timestamp(b), FieldValueRef::Timestamp(v)) => b.append_value(v),
            _ => unreachable!("a column takes values of its own type"),
        }
    }
}

impl BatchBuilder {
    /// An empty batch for `table`.
    pub fn new(table: impl Into<String>) -> Self {
        Self {
            table: table.into(),
            tags: Vec::new(),
            slot_count: 0,
            slots: Vec::new(),
            times: Vec::new(),
            fields: Vec::new(),
            field_places: HashMap::new(),
        }
    }

    /// Number of rows so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether there are no rows yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// Adds a slot: a tag set, each tag once. The caller remembers the slot, so that a tag set is
    /// added once per batch (two slots with the same tag set are allowed, but cost time).
    ///
    /// # Panics
    /// At the 2^32nd slot.
    pub fn slot<'a>(&mut self, tags: impl IntoIterator<Item = (&'a str, TagValueRef<'a>)>) -> u32 {
        let slot = self.slot_count;
        for (name, value) in tags {
            let value = match value {
                TagValueRef::String(text) => FieldValueRef::String(text),
                TagValueRef::I64(number) => FieldValueRef::I64(number),
                TagValueRef::Bool(truth) => FieldValueRef::Bool(truth),
            };
            let kind = value.field_type();
            let place = self
                .tags
                .iter()
                .position(|tag| tag.name == name && tag.values.kind() == kind)
                .unwrap_or_else(|| {
                    self.tags.push(TagBuilder {
                        name: name.to_owned(),
                        values: BuilderValues::new(kind),
                    });
                    self.tags.len() - 1
                });
            self.tags[place].values.pad(slot);
            self.tags[place].values.push(value);
        }
        self.slot_count += 1;
        u32::try_from(slot).expect("a batch has fewer than 2^32 slots")
    }

    /// Adds a tag column without values, so that a table created from the batch has it.
    pub fn declare_tag(&mut self, name: &str, kind: TagType) {
        let kind = match kind {
            TagType::String => FieldType::String,
            TagType::I64 => FieldType::I64,
            TagType::Bool => FieldType::Bool,
        };
        if !self.tags.iter().any(|tag| tag.name == name) {
            self.tags.push(TagBuilder {
                name: name.to_owned(),
                values: BuilderValues::new(kind),
            });
        }
    }

    /// Begins a row of `slot` at `time` (ns).
    pub fn row(&mut self, slot: u32, time: i64) {
        debug_assert!((slot as usize) < self.slot_count, "the slot was added");
        self.slots.push(slot);
        self.times.push(time);
    }

    /// Sets a field of the current row. A second value for the same field of the row is ignored.
    ///
    /// # Panics
    /// If no row has begun.
    pub fn field(&mut self, name: &str, value: FieldValueRef<'_>) {
        let place = self.field_place(name, value.field_type());
        self.field_at(place, value);
    }

    /// The index of the field column with this name and type, which is created if missing. Callers
    /// remember it and then use [`field_at`](Self::field_at).
    pub fn field_place(&mut self, name: &str, kind: FieldType) -> usize {
        let places = self.field_places.get(name);
        let place = places
            .and_then(|places| {
                places
                    .iter()
                    .find(|at| self.fields[**at].values.kind() == kind)
            })
            .copied();
        place.unwrap_or_else(|| {
            self.fields.push(FieldBuilder {
                name: name.to_owned(),
                values: BuilderValues::new(kind),
            });
            self.field_places
                .entry(name.to_owned())
                .or_default()
                .push(self.fields.len() - 1);
            self.fields.len() - 1
        })
    }

    /// Sets the field at an index from [`field_place`](Self::field_place) in the current row. The
    /// column must have the value's type. As with [`field`](Self::field), a second value is
    /// ignored.
    ///
    /// # Panics
    /// If no row has begun, there is no such index, or the column has another type.
    pub fn field_at(&mut self, place: usize, value: FieldValueRef<'_>) {
        let row = self.times.len().checked_sub(1).expect("a row was begun");
        let values = &mut self.fields[place].values;
        let len = values.len();
        if len > row {
            return;
        }
        if len < row {
            values.pad(row);
        }
        values.push(value);
    }

    /// Returns the batch.
    #[must_use]
    pub fn finish(self) -> WriteBatch {
        let (rows, slot_count) = (self.times.len(), self.slot_count);
        let tags = self.tags.into_iter().map(|mut tag| {
            tag.values.pad(slot_count);
            BatchTag {
                name: tag.name,
                values: tag.values.builder().finish(),
            }
        });
        let fields = self.fields.into_iter().map(|mut field| {
            field.values.pad(rows);
            BatchField {
                name: field.name,
                values: field.values.builder().finish(),
            }
        });
        WriteBatch {
            table: self.table,
            tags: tags.collect(),
            slot_count,
            slots: self.slots,
            times: ScalarBuffer::from(self.times),
            fields: fields.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::FieldValue;

    #[test]
    fn rows_come_back_as_columns_with_nulls_where_nothing_was_set() {
        let mut builder = BatchBuilder::new("pump");
        let a = builder.slot([("site", TagValueRef::String("north"))]);
        let b = builder.slot([("unit", TagValueRef::I64(7))]);
        builder.row(a, 10);
        builder.field("rpm", FieldValueRef::I64(900));
        builder.row(b, 20);
        builder.field("temp", FieldValueRef::F64(4.5));
        builder.field("rpm", FieldValueRef::F64(1.0));
        let batch = builder.finish();
        assert_eq!(batch.check(), Ok(()));
        assert_eq!(batch.slots, vec![0, 1]);
        assert_eq!(batch.tags[0].value(1), None);
        assert_eq!(batch.tags[1].value(1), Some(TagValueRef::I64(7)));
        let names: Vec<_> = batch
            .fields
            .iter()
            .map(|f| (f.name.as_str(), f.kind()))
            .collect();
        let expected = [
            ("rpm", FieldType::I64),
            ("temp", FieldType::F64),
            ("rpm", FieldType::F64),
        ];
        assert_eq!(names, expected);
        assert_eq!(
            FieldValue::from_array(&batch.fields[0].values, 0),
            Some(FieldValue::I64(900))
        );
        assert_eq!(FieldValue::from_array(&batch.fields[0].values, 1), None);
        assert_eq!(
            FieldValue::from_array(&batch.fields[2].values, 1),
            Some(FieldValue::F64(1.0))
        );
    }

    #[test]
    fn a_batch_that_does_not_fit_together_is_refused() {
        let mut builder = BatchBuilder::new("pump");
        let slot = builder.slot([]);
        builder.row(slot, 1);
        let mut batch = builder.finish();
        assert_eq!(batch.check(), Ok(()));
        batch.slots[0] = 9;
        assert!(batch.check().is_err());
        batch.slots.push(0);
        assert!(batch.check().is_err());
    }
}
