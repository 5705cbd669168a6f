//! Rows of IoTDB as batches: a database is a table, the path of a device is its tag, and measurements
//! are fields.

use hashbrown::HashMap;
use marigram_iotdb::{
    DEVICE_TAG, IotDbFault, IotDbType, IotDbValue, StatusCode, TreeLiteral, day_to_ms, ms_to_ns,
};
use marigram_model::{BatchBuilder, FieldType, FieldValueRef, TagValueRef, WriteBatch};

/// The type of the field that holds a timeseries of a type.
pub fn field_type(kind: IotDbType) -> FieldType {
    match kind {
        IotDbType::Boolean => FieldType::Bool,
        IotDbType::Int32 => FieldType::I32,
        IotDbType::Int64 => FieldType::I64,
        IotDbType::Float => FieldType::F32,
        IotDbType::Double => FieldType::F64,
        IotDbType::Text | IotDbType::String => FieldType::String,
        // A day is the time at which it begins: there is no type for days.
        IotDbType::Timestamp | IotDbType::Date => FieldType::Timestamp,
        IotDbType::Blob => FieldType::Bytes,
    }
}

/// The type of the timeseries that a field is.
pub fn iotdb_type(kind: FieldType) -> IotDbType {
    match kind {
        FieldType::Bool => IotDbType::Boolean,
        FieldType::I32 => IotDbType::Int32,
        FieldType::I64 | FieldType::U64 => IotDbType::Int64,
        FieldType::F32 => IotDbType::Float,
        FieldType::F64 => IotDbType::Double,
        FieldType::String => IotDbType::Text,
        FieldType::Bytes => IotDbType::Blob,
        FieldType::Timestamp => IotDbType::Timestamp,
    }
}

/// Rows of one table.
#[derive(Clone, Debug)]
pub struct TreeBatch {
    /// The rows.
    pub batch: WriteBatch,
    /// The number of the part of the request from which each row is.
    pub parts: Vec<usize>,
}

/// A device whose rows are added.
#[derive(Clone, Copy, Debug)]
pub struct TreeDevice {
    table: usize,
    slot: u32,
}

/// Rows that become one batch for each table.
#[derive(Default)]
pub struct TreeBatches {
    tables: Vec<TableInWork>,
    by_name: HashMap<String, usize>,
}

struct TableInWork {
    builder: BatchBuilder,
    slots: HashMap<String, u32>,
    parts: Vec<usize>,
}

impl TreeBatches {
    /// A device of a table.
    pub fn device(&mut self, table: &str, device: &str) -> TreeDevice {
        let place = match self.by_name.get(table) {
            Some(place) => *place,
            None => {
                self.tables.push(TableInWork {
                    builder: BatchBuilder::new(table),
                    slots: HashMap::new(),
                    parts: Vec::new(),
                });
                self.by_name.insert(table.to_owned(), self.tables.len() - 1);
                self.tables.len() - 1
            }
        };
        let work = &mut self.tables[place];
        let slot = match work.slots.get(device) {
            Some(slot) => *slot,
            None => {
                let tag = [(DEVICE_TAG, TagValueRef::String(device))];
                let slot = work.builder.slot(tag);
                work.slots.insert(device.to_owned(), slot);
                slot
            }
        };
        TreeDevice { table: place, slot }
    }

    /// The place of a measurement of a type among the columns of a device's table.
    ///
    /// # Errors
    /// If a measurement cannot have that name.
    pub fn measurement(
        &mut self,
        device: TreeDevice,
        name: &str,
        kind: FieldType,
    ) -> Result<usize, IotDbFault> {
        if name == DEVICE_TAG || name == "time" {
            return Err(IotDbFault::new(
                StatusCode::METADATA,
                format!("a measurement cannot be called {name} here: a column of its table is"),
            ));
        }
        let builder = &mut self.tables[device.table].builder;
        Ok(builder.field_place(name, kind))
    }

    /// Begins a row, of a part of the request.
    ///
    /// # Errors
    /// If the time is out of range.
    pub fn row(&mut self, device: TreeDevice, time_ms: i64, part: usize) -> Result<(), IotDbFault> {
        let Some(time_ns) = ms_to_ns(time_ms) else {
            return Err(IotDbFault::parameter(format!(
                "the time {time_ms} is beyond the years 1677 to 2262"
            )));
        };
        let work = &mut self.tables[device.table];
        work.builder.row(device.slot, time_ns);
        work.parts.push(part);
        Ok(())
    }

    /// Sets a value of the row that was begun last.
    pub fn value(&mut self, device: TreeDevice, place: usize, value: FieldValueRef<'_>) {
        self.tables[device.table].builder.field_at(place, value);
    }

    /// The batches.
    pub fn finish(self) -> Vec<TreeBatch> {
        let works = self.tables.into_iter();
        let batches = works.map(|work| TreeBatch {
            batch: work.builder.finish(),
            parts: work.parts,
        });
        batches.filter(|batch| !batch.parts.is_empty()).collect()
    }
}

/// A value that carries its type, as its field holds it.
///
/// # Errors
/// If it is a time or a day that cannot be stored.
pub fn typed_value(value: IotDbValue<'_>) -> Result<FieldValueRef<'_>, IotDbFault> {
    Ok(match value {
        IotDbValue::Boolean(value) => FieldValueRef::Bool(value),
        IotDbValue::Int32(value) => FieldValueRef::I32(value),
        IotDbValue::Int64(value) => FieldValueRef::I64(value),
        IotDbValue::Float(value) => FieldValueRef::F32(value),
        IotDbValue::Double(value) => FieldValueRef::F64(value),
        IotDbValue::Text(value) => FieldValueRef::String(value),
        IotDbValue::Timestamp(ms) => timestamp(ms)?,
        IotDbValue::Date(day) => {
            let ms = day_to_ms(day);
            let ms = ms.ok_or_else(|| IotDbFault::parameter(format!("{day} is no day")))?;
            timestamp(ms)?
        }
        IotDbValue::Blob(value) => FieldValueRef::Bytes(value),
    })
}

fn timestamp(ms: i64) -> Result<FieldValueRef<'static>, IotDbFault> {
    let ns = ms_to_ns(ms);
    ns.map(FieldValueRef::Timestamp).ok_or_else(|| {
        IotDbFault::parameter(format!("the time {ms} is beyond the years 1677 to 2262"))
    })
}

/// A value without a type, as the field of its measurement holds it; as the type that fits it if the
/// measurement is new. `None` for null.
///
/// # Errors
/// If the field cannot hold it.
pub fn untyped_value(
    literal: &TreeLiteral,
    kind: Option<FieldType>,
) -> Result<Option<FieldValueRef<'_>>, IotDbFault> {
    let value = match (literal, kind) {
        (TreeLiteral::Null, _) => return Ok(None),
        (TreeLiteral::Boolean(value), None | Some(FieldType::Bool)) => FieldValueRef::Bool(*value),
        (TreeLiteral::Integer(value), None | Some(FieldType::F64)) => {
            FieldValueRef::F64(*value as f64)
        }
        (TreeLiteral::Integer(value), Some(FieldType::F32)) => FieldValueRef::F32(*value as f32),
        (TreeLiteral::Integer(value), Some(FieldType::I64)) => FieldValueRef::I64(*value),
        (TreeLiteral::Integer(value), Some(FieldType::I32)) => match i32::try_from(*value) {
            Ok(value) => FieldValueRef::I32(value),
            Err(_) => return Err(mismatch(literal, FieldType::I32)),
        },
        (TreeLiteral::Integer(value), Some(FieldType::U64)) => match u64::try_from(*value) {
            Ok(value) => FieldValueRef::U64(value),
            Err(_) => return Err(mismatch(literal, FieldType::U64)),
        },
        (TreeLiteral::Integer(ms) | TreeLiteral::Time(ms), Some(FieldType::Timestamp))
        | (TreeLiteral::Time(ms), None) => timestamp(*ms)?,
        (TreeLiteral::Time(ms), Some(FieldType::I64)) => FieldValueRef::I64(*ms),
        (TreeLiteral::Float(value), None | Some(FieldType::F64)) => FieldValueRef::F64(*value),
        (TreeLiteral::Float(value), Some(FieldType::F32)) => FieldValueRef::F32(*value as f32),
        (TreeLiteral::Text(value), None | Some(FieldType::String)) => FieldValueRef::String(value),
        (TreeLiteral::Text(value), Some(FieldType::Bytes)) => {
            FieldValueRef::Bytes(value.as_bytes())
        }
        (TreeLiteral::Bytes(value), None | Some(FieldType::Bytes)) => FieldValueRef::Bytes(value),
        (_, Some(kind)) => return Err(mismatch(literal, kind)),
    };
    Ok(Some(value))
}

/// A value as a field of another type holds it; `None` if it cannot without a loss.
pub fn widened(value: FieldValueRef<'_>, kind: FieldType) -> Option<FieldValueRef<'_>> {
    Some(match (value, kind) {
        (value, kind) if value.field_type() == kind => value,
        (FieldValueRef::I32(value), FieldType::I64) => FieldValueRef::I64(i64::from(value)),
        (FieldValueRef::I32(value), FieldType::F32) => FieldValueRef::F32(value as f32),
        (FieldValueRef::I32(value), FieldType::F64) => FieldValueRef::F64(f64::from(value)),
        (FieldValueRef::I64(value), FieldType::F64) => FieldValueRef::F64(value as f64),
        (FieldValueRef::F32(value), FieldType::F64) => FieldValueRef::F64(f64::from(value)),
        (FieldValueRef::I64(ms), FieldType::Timestamp) => timestamp(ms).ok()?,
        _ => return None,
    })
}

fn mismatch(literal: &TreeLiteral, kind: FieldType) -> IotDbFault {
    let shown: String = format!("{literal:?}").chars().take(100).collect();
    IotDbFault::new(
        StatusCode::TYPE_MISMATCH,
        format!(
            "data type is not consistent: the registered type {} cannot hold {shown}",
            iotdb_type(kind)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_a_table_and_a_device_a_slot() {
        let mut batches = TreeBatches::default();
        let devices = [
            ("root.a", "root.a.d1", 1),
            ("root.b", "root.b.d", 2),
            ("root.a", "root.a.d2", 3),
            ("root.a", "root.a.d1", 4),
        ];
        for (part, (table, device, time)) in devices.into_iter().enumerate() {
            let device = batches.device(table, device);
            let place = batches
                .measurement(device, "s", FieldType::I32)
                .expect("a field");
            batches.row(device, time, part).expect("a row");
            batches.value(device, place, FieldValueRef::I32(7));
        }
        let done = batches.finish();
        assert_eq!(done.len(), 2);
        let first = &done[0];
        assert_eq!(first.batch.check(), Ok(()));
        assert_eq!(
            (first.batch.table.as_str(), first.batch.slot_count),
            ("root.a", 2)
        );
        assert_eq!(first.batch.slots, [0, 1, 0]);
        assert_eq!(&first.batch.times[..], [1_000_000, 3_000_000, 4_000_000]);
        assert_eq!(first.parts, [0, 2, 3]);
    }

    #[test]
    fn times_and_names_are_checked() {
        let mut batches = TreeBatches::default();
        let device = batches.device("root.a", "root.a.d");
        assert!(
            batches
                .measurement(device, "device", FieldType::I32)
                .is_err()
        );
        assert!(batches.row(device, i64::MAX, 0).is_err());
        assert!(batches.finish().is_empty());
    }

    #[test]
    fn values_without_types_take_those_of_their_fields() {
        let value = |literal: &TreeLiteral, kind| {
            let value = untyped_value(literal, kind).ok().flatten();
            value.map(|value| (value.field_type(), format!("{value:?}")))
        };
        let kind = |literal, kind| value(literal, kind).map(|(kind, _)| kind);
        let one = TreeLiteral::Integer(1);
        assert_eq!(kind(&one, None), Some(FieldType::F64));
        for wanted in [
            FieldType::I32,
            FieldType::I64,
            FieldType::U64,
            FieldType::F32,
            FieldType::Timestamp,
        ] {
            assert_eq!(kind(&one, Some(wanted)), Some(wanted));
        }
        assert_eq!(kind(&one, Some(FieldType::Bool)), None);
        assert_eq!(
            kind(&TreeLiteral::Integer(1 << 40), Some(FieldType::I32)),
            None
        );
        assert_eq!(kind(&TreeLiteral::Float(1.5), Some(FieldType::I64)), None);
        assert_eq!(
            kind(&TreeLiteral::Text("a".to_owned()), None),
            Some(FieldType::String)
        );
        assert!(matches!(untyped_value(&TreeLiteral::Null, None), Ok(None)));
    }
}
