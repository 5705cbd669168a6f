//! The batches of a database's devices, as rows are added.
//!
//! Invariant: the memory of the batches is in proportion to the values. Rows that share no fields do not
//! share a batch, in which every row has every field.

use super::cast::TreeValue;
use super::catalog::{DeviceDatabase, DeviceFields};
use super::field_choice::{FieldChoice, FieldTarget};
use super::left_out::LeftOut;
use marigram_iotdb::{DEVICE_TAG, DEVICES_TABLE, IotDbType, IotDbValue, TreePath, ms_to_ns};
use marigram_model::{BatchBuilder, FieldType, FieldValueRef, TagValueRef, WriteBatch};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// Cells of a batch beyond which most of them must have values.
const CELLS_FREE: usize = 64 << 10;
const CELLS_PER_VALUE: usize = 8;

/// Rows of one database.
pub(super) struct DatabaseRows {
    /// The database.
    pub(super) database: DeviceDatabase,
    /// The batches, and for each of their rows the part of the request that it belongs to.
    pub(super) batches: Vec<(WriteBatch, Vec<usize>)>,
}

/// A device, and where its rows go.
pub(super) struct DevicePlace {
    /// Its path, and the text of that.
    pub(super) path: TreePath,
    pub(super) text: String,
    /// The place of its database.
    pub(super) database: usize,
}

/// A database whose batches are being built.
pub(super) struct OpenDatabase {
    pub(super) database: DeviceDatabase,
    pub(super) fields: Arc<DeviceFields>,
    batch: OpenBatch,
    done: Vec<(WriteBatch, Vec<usize>)>,
    /// Where values of a measurement go, by the type in which they come; the same for all devices.
    pub(super) shared_targets: HashMap<String, Vec<(IotDbType, Rc<FieldChoice>)>>,
    /// The same for one device, where that decides.
    pub(super) own_targets: HashMap<(String, String, IotDbType), Rc<FieldChoice>>,
}

struct OpenBatch {
    builder: BatchBuilder,
    slots: HashMap<String, u32>,
    parts: Vec<usize>,
    columns: usize,
    values: usize,
}

impl OpenDatabase {
    /// No rows yet.
    pub(super) fn new(database: DeviceDatabase, fields: Arc<DeviceFields>) -> Self {
        Self {
            database,
            fields,
            batch: OpenBatch::new(),
            done: Vec::new(),
            shared_targets: HashMap::new(),
            own_targets: HashMap::new(),
        }
    }

    /// Where values of a measurement go, if that is known, and the same for all devices.
    pub(super) fn shared_target(
        &self,
        measurement: &str,
        kind: IotDbType,
    ) -> Option<Rc<FieldChoice>> {
        let mut known = self.shared_targets.get(measurement)?.iter();
        let found = known.find(|(found, _)| *found == kind);
        found.map(|(_, choice)| Rc::clone(choice))
    }

    /// Adds a row with these values; those of times out of range are left out.
    pub(super) fn add_row(
        &mut self,
        part: usize,
        place: &DevicePlace,
        time_ns: i64,
        cells: &[(Rc<FieldChoice>, TreeValue<'_>)],
        left_out: &mut LeftOut,
    ) {
        let batch = &mut self.batch;
        let mut has_row = false;
        for (choice, value) in cells {
            let FieldChoice::Into(target) = &**choice else {
                continue;
            };
            let Some(value) = field_value(value.value()) else {
                left_out.note(&place.text, &target.field, "its time is out of range");
                continue;
            };
            if !has_row {
                has_row = true;
                batch.begin_row(part, place, time_ns);
            }
            batch.add(target, value);
        }
        if batch.is_sparse() {
            self.end_batch();
        }
    }

    /// The rows.
    pub(super) fn finish(mut self) -> DatabaseRows {
        self.end_batch();
        DatabaseRows {
            database: self.database,
            batches: self.done,
        }
    }

    fn end_batch(&mut self) {
        let batch = std::mem::replace(&mut self.batch, OpenBatch::new());
        if !batch.builder.is_empty() {
            self.done.push((batch.builder.finish(), batch.parts));
        }
    }
}

impl OpenBatch {
    fn new() -> Self {
        Self {
            builder: BatchBuilder::new(DEVICES_TABLE),
            slots: HashMap::new(),
            parts: Vec::new(),
            columns: 0,
            values: 0,
        }
    }

    fn begin_row(&mut self, part: usize, place: &DevicePlace, time_ns: i64) {
        let known = self.slots.get(&place.text).copied();
        let slot = known.unwrap_or_else(|| {
            let tag = (DEVICE_TAG, TagValueRef::String(&place.text));
            let slot = self.builder.slot([tag]);
            self.slots.insert(place.text.clone(), slot);
            slot
        });
        self.builder.row(slot, time_ns);
        self.parts.push(part);
    }

    fn add(&mut self, target: &FieldTarget, value: FieldValueRef<'_>) {
        let column = self
            .builder
            .field_place(&target.field, field_type(target.kind));
        self.columns = self.columns.max(column + 1);
        self.values += 1;
        self.builder.field_at(column, value);
    }

    /// Whether most cells are empty, and they are many.
    fn is_sparse(&self) -> bool {
        let cells = self.columns.saturating_mul(self.builder.len());
        cells > CELLS_FREE + self.values.saturating_mul(CELLS_PER_VALUE)
    }
}

fn field_type(kind: IotDbType) -> FieldType {
    match kind {
        IotDbType::Boolean => FieldType::Bool,
        IotDbType::Int32 | IotDbType::Date => FieldType::I32,
        IotDbType::Int64 => FieldType::I64,
        IotDbType::Float => FieldType::F32,
        IotDbType::Double => FieldType::F64,
        IotDbType::Text | IotDbType::String => FieldType::String,
        IotDbType::Timestamp => FieldType::Timestamp,
        IotDbType::Blob => FieldType::Bytes,
    }
}

/// A value as a field has it; `None` if its time is out of range.
fn field_value(value: IotDbValue<'_>) -> Option<FieldValueRef<'_>> {
    Some(match value {
        IotDbValue::Boolean(value) => FieldValueRef::Bool(value),
        IotDbValue::Int32(value) | IotDbValue::Date(value) => FieldValueRef::I32(value),
        IotDbValue::Int64(value) => FieldValueRef::I64(value),
        IotDbValue::Float(value) => FieldValueRef::F32(value),
        IotDbValue::Double(value) => FieldValueRef::F64(value),
        IotDbValue::Text(value) => FieldValueRef::String(value),
        IotDbValue::Timestamp(value) => FieldValueRef::Timestamp(ms_to_ns(value)?),
        IotDbValue::Blob(value) => FieldValueRef::Bytes(value),
    })
}
