//! The databases of the tree, and what the fields of their tables are.

use crate::statement::TreeRun;
use marigram_access::DatabasePrivileges;
use marigram_engine::Engine;
use marigram_iotdb::{
    DEVICE_TAG, DEVICES_TABLE, IotDbType, PathPattern, TIMESERIES_TABLE, TreePath, database_name,
    database_path, databases_above, measurement_of_field,
};
use marigram_model::{ColumnId, FieldColumn, FieldType, TableSchema, TagType};
use std::sync::Arc;

/// A database of the tree.
#[derive(Clone, Debug)]
pub(crate) struct TreeDatabase {
    /// Its name.
    pub(crate) name: String,
    /// Its path.
    pub(crate) path: TreePath,
    /// The table of its devices, once there is one.
    pub(crate) devices: Option<Arc<TableSchema>>,
    /// The table of timeseries that were created explicitly, once there is one.
    pub(crate) declared: Option<Arc<TableSchema>>,
}

impl TreeDatabase {
    fn load(engine: &Engine, name: String, path: TreePath) -> Self {
        let table = |table: &str| {
            let found = engine.table(&name, table).ok()?;
            // A table that somebody created otherwise keeps no devices.
            let (_, tag) = found.tag(DEVICE_TAG)?;
            let is_plain = found.rollup.is_none() && found.view.is_none();
            (is_plain && tag.kind == TagType::String).then_some(found)
        };
        let (devices, declared) = (table(DEVICES_TABLE), table(TIMESERIES_TABLE));
        Self {
            name,
            path,
            devices,
            declared,
        }
    }
}

/// The databases of the tree whose paths pass a test, in the order of their paths.
fn databases_where(engine: &Engine, test: impl Fn(&TreePath) -> bool) -> Vec<TreeDatabase> {
    let names = engine.databases().into_iter();
    let paths = names.filter_map(|name| database_path(&name).map(|path| (name, path)));
    let mut all: Vec<TreeDatabase> = paths
        .filter(|(_, path)| test(path))
        .map(|(name, path)| TreeDatabase::load(engine, name, path))
        .collect();
    all.sort_by(|a, b| a.path.cmp(&b.path));
    all
}

/// All databases of the tree, in the order of their paths.
pub(crate) fn all_databases(engine: &Engine) -> Vec<TreeDatabase> {
    databases_where(engine, |_| true)
}

/// The databases with devices or timeseries that a pattern may match.
pub(crate) fn touched_databases(engine: &Engine, patterns: &[PathPattern]) -> Vec<TreeDatabase> {
    databases_where(engine, |path| {
        let nodes = path.nodes();
        patterns.iter().any(|pattern| pattern.touches(nodes))
    })
}

/// Those in which the client may read.
pub(crate) fn readable_databases(run: &TreeRun<'_>, patterns: &[PathPattern]) -> Vec<TreeDatabase> {
    let mut all = touched_databases(run.engine(), patterns);
    all.retain(|database| run.may(&database.name, DatabasePrivileges::READ));
    all
}

/// The database to which a device belongs: the one with the longest path.
pub(crate) fn database_of(engine: &Engine, device: &TreePath) -> Option<TreeDatabase> {
    let names = engine.databases();
    let mut above = databases_above(device);
    let path = above.find(|path| names.binary_search(&database_name(path)).is_ok())?;
    Some(TreeDatabase::load(engine, database_name(&path), path))
}

/// A field as a measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MeasurementField {
    /// The field's name.
    pub(crate) field: Arc<str>,
    /// The field's number.
    pub(crate) id: ColumnId,
    /// The measurement.
    pub(crate) measurement: Arc<str>,
    /// The type of its values.
    pub(crate) kind: IotDbType,
}

/// The IoTDB type of a field's values; `None` for one that IoTDB does not have.
pub(crate) fn stored_type(kind: FieldType) -> Option<IotDbType> {
    Some(match kind {
        FieldType::Bool => IotDbType::Boolean,
        FieldType::I32 => IotDbType::Int32,
        FieldType::I64 => IotDbType::Int64,
        FieldType::F32 => IotDbType::Float,
        FieldType::F64 => IotDbType::Double,
        FieldType::String => IotDbType::Text,
        FieldType::Bytes => IotDbType::Blob,
        FieldType::Timestamp => IotDbType::Timestamp,
        FieldType::U64 => return None,
    })
}

/// The type of a field that keeps values of an IoTDB type.
pub(crate) fn field_type(kind: IotDbType) -> FieldType {
    match kind {
        IotDbType::Boolean => FieldType::Bool,
        IotDbType::Int32 | IotDbType::Date => FieldType::I32,
        IotDbType::Int64 => FieldType::I64,
        IotDbType::Float => FieldType::F32,
        IotDbType::Double => FieldType::F64,
        IotDbType::Text | IotDbType::String => FieldType::String,
        IotDbType::Blob => FieldType::Bytes,
        IotDbType::Timestamp => FieldType::Timestamp,
    }
}

/// A field as a measurement; `None` for a type that IoTDB does not have.
pub(crate) fn measurement_field(field: &FieldColumn) -> Option<MeasurementField> {
    let stored = stored_type(field.kind)?;
    let (measurement, kind) = match measurement_of_field(&field.name) {
        (measurement, Some(IotDbType::Date)) if stored == IotDbType::Int32 => {
            (measurement, IotDbType::Date)
        }
        (measurement, Some(kind)) if kind.stored() == stored => (measurement, stored),
        _ => (field.name.as_str(), stored),
    };
    Some(MeasurementField {
        field: field.name.as_str().into(),
        id: field.id,
        measurement: measurement.into(),
        kind,
    })
}

/// The fields of a table as measurements, in the order of the measurements.
pub(crate) fn measurement_fields(table: &TableSchema) -> Vec<MeasurementField> {
    let mut fields: Vec<_> = table.fields.iter().filter_map(measurement_field).collect();
    fields.sort_by(|a, b| a.measurement.cmp(&b.measurement));
    fields
}

/// The type of the field that is called as a measurement, if there is one.
pub(crate) fn plain_type(table: &TableSchema, measurement: &str) -> Option<IotDbType> {
    stored_type(table.field(measurement)?.kind)
}
