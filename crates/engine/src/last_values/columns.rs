//! One column of last values: a typed array of slots, written in tight loops.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int32Type, Int64Type, TimestampNanosecondType,
    UInt64Type,
};
use arrow_array::{Array, ArrayRef, BinaryArray, BooleanArray, PrimitiveArray, StringArray};
use arrow_buffer::NullBuffer;
use marigram_model::FieldType;
use std::sync::Arc;

/// A row whose values are written to a slot.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SlotUpdate {
    pub(super) slot: u32,
    pub(super) row: u32,
    /// Whether the row is newer than the slot's (otherwise it has the same time, and nulls keep the
    /// old value).
    pub(super) replaces: bool,
}

#[derive(Debug)]
pub(super) struct LastColumn {
    kind: FieldType,
    valid: Vec<bool>,
    values: SlotValues,
    /// Bytes of texts, which are stored outside of the array.
    text_bytes: usize,
}

#[derive(Debug)]
enum SlotValues {
    Bool(Vec<bool>),
    I32(Vec<i32>),
    /// Also timestamps.
    I64(Vec<i64>),
    U64(Vec<u64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    /// Also strings.
    Bytes(Vec<Box<[u8]>>),
}

impl LastColumn {
    pub(super) fn new(kind: FieldType) -> Self {
        let values = match kind {
            FieldType::Bool => SlotValues::Bool(Vec::new()),
            FieldType::I32 => SlotValues::I32(Vec::new()),
            FieldType::I64 | FieldType::Timestamp => SlotValues::I64(Vec::new()),
            FieldType::U64 => SlotValues::U64(Vec::new()),
            FieldType::F32 => SlotValues::F32(Vec::new()),
            FieldType::F64 => SlotValues::F64(Vec::new()),
            FieldType::String | FieldType::Bytes => SlotValues::Bytes(Vec::new()),
        };
        Self {
            kind,
            valid: Vec::new(),
            values,
            text_bytes: 0,
        }
    }

    pub(super) fn kind(&self) -> FieldType {
        self.kind
    }

    pub(super) fn bytes(&self) -> usize {
        let values = match &self.values {
            SlotValues::Bool(values) => values.capacity(),
            SlotValues::I32(values) => values.capacity() * 4,
            SlotValues::I64(values) => values.capacity() * 8,
            SlotValues::U64(values) => values.capacity() * 8,
            SlotValues::F32(values) => values.capacity() * 4,
            SlotValues::F64(values) => values.capacity() * 8,
            SlotValues::Bytes(values) => values.capacity() * size_of::<Box<[u8]>>(),
        };
        values + self.valid.capacity() + self.text_bytes
    }

    /// Bytes of one slot without its text.
    pub(super) fn slot_bytes(&self) -> usize {
        1 + match &self.values {
            SlotValues::Bool(_) => 1,
            SlotValues::I32(_) | SlotValues::F32(_) => 4,
            SlotValues::I64(_) | SlotValues::U64(_) | SlotValues::F64(_) => 8,
            SlotValues::Bytes(_) => size_of::<Box<[u8]>>(),
        }
    }

    /// Bytes of the text in a slot.
    pub(super) fn text_bytes_at(&self, slot: usize) -> usize {
        match &self.values {
            SlotValues::Bytes(values) => values.get(slot).map_or(0, |text| text.len()),
            _ => 0,
        }
    }

    /// Extends the array to `slots`.
    pub(super) fn resize(&mut self, slots: usize) {
        grow(&mut self.valid, slots, false);
        match &mut self.values {
            SlotValues::Bool(values) => grow(values, slots, false),
            SlotValues::I32(values) => grow(values, slots, 0),
            SlotValues::I64(values) => grow(values, slots, 0),
            SlotValues::U64(values) => grow(values, slots, 0),
            SlotValues::F32(values) => grow(values, slots, 0.0),
            SlotValues::F64(values) => grow(values, slots, 0.0),
            SlotValues::Bytes(values) => grow(values, slots, Box::default()),
        }
    }

    /// Keeps the slots for which `keep` is true.
    pub(super) fn retain(&mut self, keep: &[bool]) {
        retain(&mut self.valid, keep);
        match &mut self.values {
            SlotValues::Bool(values) => retain(values, keep),
            SlotValues::I32(values) => retain(values, keep),
            SlotValues::I64(values) => retain(values, keep),
            SlotValues::U64(values) => retain(values, keep),
            SlotValues::F32(values) => retain(values, keep),
            SlotValues::F64(values) => retain(values, keep),
            SlotValues::Bytes(values) => {
                retain(values, keep);
                self.text_bytes = values.iter().map(|text| text.len()).sum();
            }
        }
    }

    /// Clears the slots of rows that replace others.
    pub(super) fn clear(&mut self, actions: &[SlotUpdate]) {
        for action in actions.iter().filter(|action| action.replaces) {
            self.valid[action.slot as usize] = false;
        }
    }

    /// Writes the values of `array`, whose type must be the column's.
    pub(super) fn store(&mut self, array: &ArrayRef, actions: &[SlotUpdate]) {
        let valid = &mut self.valid;
        match (&mut self.values, self.kind) {
            (SlotValues::Bool(values), _) => {
                let Some(array) = array.as_boolean_opt() else {
                    return;
                };
                scatter(values, valid, array.nulls(), actions, |row| {
                    array.value(row)
                });
            }
            (SlotValues::I32(values), _) => numbers::<Int32Type>(values, valid, array, actions),
            (SlotValues::I64(values), FieldType::Timestamp) => {
                numbers::<TimestampNanosecondType>(values, valid, array, actions);
            }
            (SlotValues::I64(values), _) => numbers::<Int64Type>(values, valid, array, actions),
            (SlotValues::U64(values), _) => numbers::<UInt64Type>(values, valid, array, actions),
            (SlotValues::F32(values), _) => numbers::<Float32Type>(values, valid, array, actions),
            (SlotValues::F64(values), _) => numbers::<Float64Type>(values, valid, array, actions),
            (SlotValues::Bytes(values), kind) => {
                let strings = array.as_string_opt::<i32>();
                let binary = array.as_binary_opt::<i32>();
                let value = |row: usize| -> &[u8] {
                    match (strings, binary) {
                        (Some(array), _) => array.value(row).as_bytes(),
                        (None, Some(array)) => array.value(row),
                        (None, None) => &[],
                    }
                };
                debug_assert_eq!(
                    FieldType::from_arrow(array.data_type()),
                    Some(kind),
                    "a field's type"
                );
                for action in actions {
                    let (slot, row) = (action.slot as usize, action.row as usize);
                    let carried = array.is_valid(row);
                    if carried || action.replaces {
                        let new = if carried { value(row) } else { &[] };
                        self.text_bytes = self.text_bytes + new.len() - values[slot].len();
                        values[slot] = new.into();
                        valid[slot] = carried;
                    }
                }
            }
        }
    }

    /// The values of `slots`.
    pub(super) fn gather(&self, slots: &[u32]) -> ArrayRef {
        let valid: Vec<bool> = slots
            .iter()
            .map(|slot| self.valid[*slot as usize])
            .collect();
        let nulls = valid.contains(&false).then(|| NullBuffer::from(valid));
        match &self.values {
            SlotValues::Bool(values) => {
                let values: Vec<bool> = slots.iter().map(|slot| values[*slot as usize]).collect();
                Arc::new(BooleanArray::new(values.into(), nulls))
            }
            SlotValues::I32(values) => gathered::<Int32Type>(values, slots, nulls),
            SlotValues::I64(values) if self.kind == FieldType::Timestamp => {
                gathered::<TimestampNanosecondType>(values, slots, nulls)
            }
            SlotValues::I64(values) => gathered::<Int64Type>(values, slots, nulls),
            SlotValues::U64(values) => gathered::<UInt64Type>(values, slots, nulls),
            SlotValues::F32(values) => gathered::<Float32Type>(values, slots, nulls),
            SlotValues::F64(values) => gathered::<Float64Type>(values, slots, nulls),
            SlotValues::Bytes(values) => {
                let carried = slots.iter().enumerate().map(|(row, slot)| {
                    let valid = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
                    valid.then(|| &values[*slot as usize][..])
                });
                if self.kind == FieldType::Bytes {
                    return Arc::new(carried.collect::<BinaryArray>());
                }
                let text = |bytes| str::from_utf8(bytes).expect("stored from a text");
                Arc::new(
                    carried
                        .map(|bytes| bytes.map(text))
                        .collect::<StringArray>(),
                )
            }
        }
    }
}

/// Extends a vector to `len`, with capacity for an eighth more: doubling could make the cache
/// exceed its share by as much as it holds.
pub(super) fn grow<T: Clone>(values: &mut Vec<T>, len: usize, value: T) {
    if len > values.capacity() {
        values.reserve_exact(len + len / 8 - values.len());
    }
    if len > values.len() {
        values.resize(len, value);
    }
}

/// Keeps the elements for which `keep` is true, and only the memory that they need.
pub(super) fn retain<T>(values: &mut Vec<T>, keep: &[bool]) {
    let mut kept = keep.iter();
    values.retain(|_| kept.next().is_some_and(|kept| *kept));
    values.shrink_to_fit();
}

fn numbers<T: ArrowPrimitiveType>(
    slots: &mut [T::Native],
    valid: &mut [bool],
    array: &ArrayRef,
    actions: &[SlotUpdate],
) {
    let Some(array) = array.as_primitive_opt::<T>() else {
        return;
    };
    let values = array.values();
    scatter(slots, valid, array.nulls(), actions, |row| values[row]);
}

fn scatter<V>(
    slots: &mut [V],
    valid: &mut [bool],
    nulls: Option<&NullBuffer>,
    actions: &[SlotUpdate],
    value: impl Fn(usize) -> V,
) {
    for action in actions {
        let (slot, row) = (action.slot as usize, action.row as usize);
        let carried = nulls.is_none_or(|nulls| nulls.is_valid(row));
        if carried {
            slots[slot] = value(row);
            valid[slot] = true;
        } else if action.replaces {
            valid[slot] = false;
        }
    }
}

fn gathered<T: ArrowPrimitiveType>(
    values: &[T::Native],
    slots: &[u32],
    nulls: Option<NullBuffer>,
) -> ArrayRef {
    let values: Vec<T::Native> = slots.iter().map(|slot| values[*slot as usize]).collect();
    Arc::new(PrimitiveArray::<T>::new(values.into(), nulls))
}
