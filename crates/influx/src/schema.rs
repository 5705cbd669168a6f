//! The objects that a statement reads: tables of the engine by their InfluxDB names, and the types
//! of names.

use crate::policies::Policies;
use crate::value::ValueType;
use marigram_engine::Engine;
use marigram_influxql::ast::{Measurement, MeasurementName};
use marigram_influxql::columns::FieldType;
use marigram_model::{FieldType as StoredType, TableSchema};
use marigram_sql::{SqlError, SqlResult};
use regex::Regex;
use std::sync::Arc;

/// A measurement, and the table behind it.
#[derive(Clone, Debug)]
pub struct StoredMeasurement {
    /// The name of the measurement.
    pub name: Arc<str>,
    /// The table.
    pub table: Arc<TableSchema>,
}

/// An error in InfluxDB's words.
pub fn refused(message: impl Into<String>) -> SqlError {
    SqlError::invalid("42000", message)
}

/// The type of a stored field; `None` for fields that InfluxQL cannot show.
pub const fn stored_type(kind: StoredType) -> Option<ValueType> {
    Some(match kind {
        StoredType::Bool => ValueType::Boolean,
        StoredType::I32 | StoredType::I64 | StoredType::Timestamp => ValueType::Integer,
        StoredType::U64 => ValueType::Unsigned,
        StoredType::F32 | StoredType::F64 => ValueType::Float,
        StoredType::String => ValueType::String,
        StoredType::Bytes => return None,
    })
}

/// The type of a field as the parser's crate names it.
pub const fn field_type(kind: ValueType) -> FieldType {
    match kind {
        ValueType::Float => FieldType::Float,
        ValueType::Integer => FieldType::Integer,
        ValueType::Unsigned => FieldType::Unsigned,
        ValueType::String | ValueType::Tag => FieldType::String,
        ValueType::Boolean => FieldType::Boolean,
    }
}

impl StoredMeasurement {
    /// The type of a name: that of a field, or tag.
    pub fn type_of(&self, name: &str) -> Option<ValueType> {
        match self.table.field(name) {
            Some(field) => stored_type(field.kind),
            None => self.table.tag(name).map(|_| ValueType::Tag),
        }
    }

    /// Its fields with their types.
    pub fn fields(&self) -> impl Iterator<Item = (&str, ValueType)> {
        let fields = self.table.fields.iter();
        fields.filter_map(|field| Some((field.name.as_str(), stored_type(field.kind)?)))
    }
}

/// The measurements to which one source of FROM refers, by name. Unknown ones are left out.
///
/// # Errors
/// If the retention policy does not exist.
pub fn stored_measurements(
    engine: &Engine,
    policies: &dyn Policies,
    source: &Measurement,
) -> SqlResult<Vec<StoredMeasurement>> {
    let (database, policy) = (&source.database, &source.retention_policy);
    if !policies.has_policy(engine, database, policy) {
        return Err(refused(format!("retention policy not found: {policy}")));
    }
    let stored = |name: &str| {
        let table = policies.table_name(engine, database, policy, name)?;
        let table = engine.table(database, &table).ok()?;
        let plain = table.view.is_none() && stored_time(&table);
        plain.then(|| StoredMeasurement {
            name: name.into(),
            table,
        })
    };
    match &source.name {
        MeasurementName::Name(name) => Ok(stored(name).into_iter().collect()),
        MeasurementName::Regex(regex) => {
            let regex = Regex::new(&regex.to_rust())
                .map_err(|error| refused(format!("error parsing regexp: {error}")))?;
            let mut names = policies.measurements(engine, database, policy);
            names.retain(|name| regex.is_match(name));
            names.sort();
            Ok(names.iter().filter_map(|name| stored(name)).collect())
        }
    }
}

/// Whether rows have a time that InfluxQL can read.
const fn stored_time(_table: &TableSchema) -> bool {
    true
}
