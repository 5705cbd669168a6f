//! The objects that a statement reads: tables of the engine by their InfluxDB names, and the types
//! of names.

use crate::policies::Policies;
use crate::value::InfluxValueType;
use marigram_engine::Engine;
use marigram_influxql::ast::{Measurement, MeasurementName, RegexSource};
use marigram_influxql::columns::InfluxFieldType;
use marigram_model::{FieldType as StoredType, TableSchema};
use marigram_sql::front_end::ViewTables;
use marigram_sql::{SqlError, SqlResult};
use regex::Regex;
use std::sync::Arc;

/// What follows the name of a tag in the name of the column of a field that is called as the tag.
const TAGGED_FIELD_SUFFIX: &str = "::field";

/// The schema of SQL's tables.
const SQL_SCHEMA: &str = "public";

/// A measurement, and the table behind it.
#[derive(Clone, Debug)]
pub struct StoredMeasurement {
    /// The name of the measurement.
    pub name: Arc<str>,
    /// The table.
    pub table: Arc<TableSchema>,
}

/// An error in InfluxDB's words.
pub(crate) fn refused(message: impl Into<String>) -> SqlError {
    SqlError::invalid("42000", message)
}

/// Compiles a regular expression of InfluxQL.
///
/// # Errors
/// If it is too large when compiled: Go's rules bound a pattern otherwise.
pub(crate) fn compile_regex(source: &RegexSource) -> SqlResult<Regex> {
    Regex::new(&source.to_rust()).map_err(|error| refused(format!("error parsing regexp: {error}")))
}

/// The type of a stored field; `None` for those that InfluxQL cannot show.
pub(crate) const fn stored_type(kind: StoredType) -> Option<InfluxValueType> {
    Some(match kind {
        StoredType::Bool => InfluxValueType::Boolean,
        StoredType::I32 | StoredType::I64 | StoredType::Timestamp => InfluxValueType::Integer,
        StoredType::U64 => InfluxValueType::Unsigned,
        StoredType::F32 | StoredType::F64 => InfluxValueType::Float,
        StoredType::String => InfluxValueType::String,
        StoredType::Bytes => return None,
    })
}

/// The type of a field as the parser's crate names it.
pub(crate) const fn field_type(kind: InfluxValueType) -> InfluxFieldType {
    match kind {
        InfluxValueType::Float => InfluxFieldType::Float,
        InfluxValueType::Integer => InfluxFieldType::Integer,
        InfluxValueType::Unsigned => InfluxFieldType::Unsigned,
        InfluxValueType::String | InfluxValueType::Tag => InfluxFieldType::String,
        InfluxValueType::Boolean => InfluxFieldType::Boolean,
    }
}

impl StoredMeasurement {
    /// What a name is: the type of a field, or a tag.
    pub fn type_of(&self, name: &str) -> Option<InfluxValueType> {
        match self.field_column(name) {
            Some((_, kind)) => stored_type(kind),
            None => self.table.tag(name).map(|_| InfluxValueType::Tag),
        }
    }

    /// The column of a field, and its type. Beside a tag of the same name it is called otherwise.
    pub fn field_column(&self, name: &str) -> Option<(&str, StoredType)> {
        let beside = || {
            self.table.tag(name)?;
            self.table.field(&format!("{name}{TAGGED_FIELD_SUFFIX}"))
        };
        let field = self.table.field(name).or_else(beside)?;
        Some((&field.name, field.kind))
    }

    /// Its fields with their types.
    pub fn fields(&self) -> impl Iterator<Item = (&str, InfluxValueType)> {
        let fields = self.table.fields.iter();
        fields.filter_map(|field| {
            let tag = field.name.strip_suffix(TAGGED_FIELD_SUFFIX);
            let tag = tag.filter(|tag| self.table.tag(tag).is_some());
            Some((tag.unwrap_or(&field.name), stored_type(field.kind)?))
        })
    }
}

/// What is stored, as a statement sees it.
#[derive(Clone, Copy)]
pub(crate) struct StoredCatalog<'a> {
    /// The engine.
    pub engine: &'a Engine,
    /// The retention policies.
    pub policies: &'a dyn Policies,
    /// The materialized views.
    pub views: &'a ViewTables,
}

/// A table that can be read as a measurement, with the columns that it shows. Plain views have no
/// tags, and are none.
pub fn readable_table(
    engine: &Engine,
    views: &ViewTables,
    database: &str,
    table: &str,
) -> Option<Arc<TableSchema>> {
    let table = engine.table(database, table).ok()?;
    match (&table.view, &table.rollup) {
        (Some(_), _) => None,
        (None, Some(_)) => views.get(&table.id).cloned(),
        (None, None) => Some(table),
    }
}

/// The measurements to which one source of FROM refers, by name. Unknown ones are left out.
///
/// # Errors
/// If the retention policy does not exist.
pub(crate) fn stored_measurements(
    catalog: &StoredCatalog<'_>,
    source: &Measurement,
) -> SqlResult<Vec<StoredMeasurement>> {
    let (engine, policies) = (catalog.engine, catalog.policies);
    let (database, mut policy) = (&source.database, &source.retention_policy);
    let default = policies.default_policy(engine, database);
    // Dashboards made for SQL write the schema of a table where InfluxQL has the policy.
    if policy == SQL_SCHEMA && !policies.has_policy(engine, database, policy) {
        policy = default.as_ref().unwrap_or(policy);
    }
    if !policies.has_policy(engine, database, policy) {
        return Err(refused(format!("retention policy not found: {policy}")));
    }
    let stored = |name: &str| {
        let table = policies.table_name(engine, database, policy, name)?;
        let table = readable_table(engine, catalog.views, database, &table)?;
        let name = name.into();
        Some(StoredMeasurement { name, table })
    };
    match &source.name {
        MeasurementName::Name(name) => Ok(stored(name).into_iter().collect()),
        MeasurementName::Regex(regex) => {
            let regex = compile_regex(regex)?;
            let mut names = policies.measurements(engine, database, policy);
            names.retain(|name| regex.is_match(name));
            names.sort();
            Ok(names.iter().filter_map(|name| stored(name)).collect())
        }
    }
}
