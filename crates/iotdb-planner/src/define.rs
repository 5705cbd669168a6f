//! Statements that create and drop databases, create timeseries, and set how long rows are kept.

use crate::series::{DECLARED_FIELDS, find_series_in};
use crate::statement::{TreeRun, done, fault, semantic};
use crate::trees::{TreeDatabase, all_databases, database_of};
use marigram_access::DatabasePrivileges;
use marigram_engine::{TableChange, TableSpec, WriteOptions};
use marigram_iotdb::{
    DEVICE_TAG, DEVICES_TABLE, IotDbFault, IotDbType, MEASUREMENT_TAG, NewTimeseries, PathPattern,
    StatusCode, TIMESERIES_TABLE, TreePath, default_database, ms_to_ns,
};
use marigram_model::{
    BatchBuilder, FieldType, FieldValueRef, TableOptions, TagType, TagValueRef, WriteBatch,
};
use marigram_sql::front_end::StatementRows;
use marigram_sql::{SqlError, SqlResult};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashSet};

/// A timeseries exists already.
const TIMESERIES_EXISTS: StatusCode = StatusCode(503);

/// `CREATE DATABASE`
///
/// # Errors
/// If there is one, or one above or below it.
pub(crate) async fn create_database(
    run: &TreeRun<'_>,
    path: &TreePath,
    ttl_ms: Option<i64>,
) -> SqlResult<StatementRows> {
    if path.nodes().len() < 2 {
        return Err(fault(IotDbFault::path(format!(
            "{path} is not a legal path"
        ))));
    }
    run.check_administrator("creates databases")?;
    for known in all_databases(run.engine()) {
        let message = if known.path == *path {
            format!("{path} has already been created as database")
        } else if path.contains(&known.path) {
            format!("some children of {path} have already been created as database")
        } else if known.path.contains(path) {
            format!("{} has already been created as database", known.path)
        } else {
            continue;
        };
        let code = StatusCode::DATABASE_ALREADY_EXISTS;
        return Err(fault(IotDbFault::new(code, message)));
    }
    let (engine, name) = (run.engine().clone(), path.to_string());
    let ttl_ns = ttl_ms.and_then(ms_to_ns);
    let create = move || {
        engine.create_database(&name, false)?;
        if ttl_ns.is_some() {
            engine.create_table(&name, &devices_spec(ttl_ns), true)?;
        }
        Ok(())
    };
    run.context.commit(create).await?;
    Ok(done("CREATE DATABASE", 0))
}

/// The table of a database's devices.
fn devices_spec(ttl_ns: Option<i64>) -> TableSpec {
    TableSpec {
        name: DEVICES_TABLE.to_owned(),
        tags: vec![(DEVICE_TAG.to_owned(), TagType::String)],
        options: TableOptions {
            ttl_ns,
            ..TableOptions::default()
        },
        ..TableSpec::default()
    }
}

/// The table of a database's timeseries that were created explicitly.
fn timeseries_spec() -> TableSpec {
    let tags = [DEVICE_TAG, MEASUREMENT_TAG].into_iter();
    let fields = DECLARED_FIELDS.into_iter();
    TableSpec {
        name: TIMESERIES_TABLE.to_owned(),
        tags: tags.map(|tag| (tag.to_owned(), TagType::String)).collect(),
        fields: fields
            .map(|field| (field.to_owned(), FieldType::String))
            .collect(),
        ..TableSpec::default()
    }
}

/// `DROP DATABASE`
///
/// # Errors
/// If no database matches.
pub(crate) async fn drop_databases(
    run: &TreeRun<'_>,
    patterns: &[PathPattern],
) -> SqlResult<StatementRows> {
    let mut names = Vec::new();
    for database in all_databases(run.engine()) {
        let is_matched = |pattern: &PathPattern| pattern.matches(database.path.nodes());
        if patterns.iter().any(is_matched) {
            run.check(&database.name, DatabasePrivileges::ALL)?;
            names.push(database.name);
        }
    }
    if names.is_empty() {
        let texts: Vec<String> = patterns.iter().map(ToString::to_string).collect();
        let message = format!("Path [{}] does not exist", texts.join(", "));
        return Err(fault(IotDbFault::new(StatusCode::PATH_NOT_EXIST, message)));
    }
    let engine = run.engine().clone();
    let drop = move || {
        for name in &names {
            engine.drop_database(name, true)?;
        }
        Ok(())
    };
    run.context.commit(drop).await?;
    Ok(done("DROP DATABASE", 0))
}

/// The database of a device, which is created if there is none and the client may do that.
///
/// # Errors
/// If the client may not.
pub(crate) async fn database_for(run: &TreeRun<'_>, device: &TreePath) -> SqlResult<TreeDatabase> {
    if let Some(found) = database_of(run.engine(), device) {
        return Ok(found);
    }
    let path = default_database(device)
        .ok_or_else(|| fault(IotDbFault::path(format!("{device} is not a legal path"))))?;
    run.check(&path.to_string(), DatabasePrivileges::ALL)?;
    let (engine, name) = (run.engine().clone(), path.to_string());
    let create = move || Ok(engine.create_database(&name, true)?);
    run.context.commit(create).await?;
    database_of(run.engine(), device)
        .ok_or_else(|| semantic(format!("database {path} does not exist")))
}

/// `CREATE TIMESERIES`
///
/// # Errors
/// If one of them exists, or has a name that another one has.
pub(crate) async fn create_timeseries(
    run: &TreeRun<'_>,
    series: Vec<NewTimeseries>,
) -> SqlResult<StatementRows> {
    let mut by_database: BTreeMap<String, (TreeDatabase, Vec<NewTimeseries>)> = BTreeMap::new();
    for one in series {
        if one.device.nodes().len() < 2 {
            let path = one.device.child(&one.measurement);
            return Err(fault(IotDbFault::path(format!(
                "{path} is not a legal path"
            ))));
        }
        let database = database_for(run, &one.device).await?;
        run.check(&database.name, DatabasePrivileges::WRITE)?;
        let entry = by_database.entry(database.name.clone());
        entry.or_insert_with(|| (database, Vec::new())).1.push(one);
    }
    for (database, series) in by_database.into_values() {
        check_new(run, &database, &series).await?;
        let batch = declarations(&series);
        let (engine, name) = (run.engine().clone(), database.name);
        let write = move || {
            engine.create_table(&name, &timeseries_spec(), true)?;
            let report = engine.write(&name, &batch, WriteOptions { grow: true })?;
            match report.rejected.first() {
                None => Ok(()),
                Some(rejected) => Err(fault(IotDbFault::new(
                    StatusCode::METADATA,
                    rejected.reason.clone(),
                ))),
            }
        };
        run.context.commit(write).await?;
    }
    Ok(done("CREATE TIMESERIES", 0))
}

/// Refuses timeseries that exist, and names that occur twice.
async fn check_new(
    run: &TreeRun<'_>,
    database: &TreeDatabase,
    series: &[NewTimeseries],
) -> SqlResult<()> {
    let mut names = HashSet::new();
    let mut patterns = Vec::new();
    for one in series {
        for name in [Some(&one.measurement), one.alias.as_ref()]
            .into_iter()
            .flatten()
        {
            let path = one.device.child(name);
            patterns.push(PathPattern::for_path(&path));
            if !names.insert(path.clone()) {
                return Err(semantic(format!(
                    "Measurement under an aligned device is not allowed to have the same measurement \
                     name: {path}"
                )));
            }
        }
    }
    let found = find_series_in(run, vec![database.clone()], &patterns).await?;
    match found.series.first() {
        None => Ok(()),
        Some(known) => Err(fault(IotDbFault::new(
            TIMESERIES_EXISTS,
            format!("Path [{}] already exist", known.path()),
        ))),
    }
}

/// The rows of timeseries that are created.
fn declarations(series: &[NewTimeseries]) -> WriteBatch {
    let mut rows = BatchBuilder::new(TIMESERIES_TABLE);
    for one in series {
        let device = one.device.to_string();
        let slot = rows.slot([
            (DEVICE_TAG, TagValueRef::String(&device)),
            (MEASUREMENT_TAG, TagValueRef::String(&one.measurement)),
        ]);
        rows.row(slot, 0);
        let encoding = one.encoding.as_deref();
        let compressor = one.compressor.as_deref();
        let (tags, attributes) = (pairs(&one.tags), pairs(&one.attributes));
        let values = [
            Some(one.kind.name()),
            Some(encoding.unwrap_or(default_encoding(one.kind))),
            Some(compressor.unwrap_or(DEFAULT_COMPRESSION)),
            one.alias.as_deref(),
            tags.as_deref(),
            attributes.as_deref(),
            Some(if one.is_aligned { "true" } else { "false" }),
        ];
        for (field, value) in DECLARED_FIELDS.iter().zip(values) {
            if let Some(value) = value {
                rows.field(field, FieldValueRef::String(value));
            }
        }
    }
    rows.finish()
}

/// Names and values as JSON, as IoTDB shows them; `None` if there are none.
fn pairs(pairs: &[(String, String)]) -> Option<String> {
    let mut all = Map::new();
    for (name, value) in pairs {
        all.insert(name.clone(), Value::String(value.clone()));
    }
    (!all.is_empty()).then(|| Value::Object(all).to_string())
}

/// The compressor that IoTDB shows where none is named.
pub(crate) const DEFAULT_COMPRESSION: &str = "LZ4";

/// The encoding that IoTDB shows where none is named.
pub(crate) fn default_encoding(kind: IotDbType) -> &'static str {
    match kind {
        IotDbType::Boolean => "RLE",
        IotDbType::Int32 | IotDbType::Int64 | IotDbType::Timestamp | IotDbType::Date => "TS_2DIFF",
        IotDbType::Float | IotDbType::Double => "GORILLA",
        IotDbType::Text | IotDbType::String | IotDbType::Blob => "PLAIN",
    }
}

/// `SET TTL` and `UNSET TTL`
///
/// # Errors
/// If there is no such database.
pub(crate) async fn set_ttl(
    run: &TreeRun<'_>,
    path: &TreePath,
    ttl_ms: Option<i64>,
) -> SqlResult<StatementRows> {
    let mut names = Vec::new();
    for database in all_databases(run.engine()) {
        if path.contains(&database.path) {
            run.check(&database.name, DatabasePrivileges::ALL)?;
            names.push((database.name, database.devices));
        }
    }
    if names.is_empty() {
        let message =
            format!("{path}: a time to live belongs to a database, and there is no such database");
        return Err(fault(IotDbFault::new(
            StatusCode::DATABASE_NOT_EXIST,
            message,
        )));
    }
    let ttl_ns = ttl_ms.and_then(ms_to_ns);
    let engine = run.engine().clone();
    let set = move || {
        for (name, devices) in &names {
            let Some(table) = devices else {
                engine.create_table(name, &devices_spec(ttl_ns), true)?;
                continue;
            };
            let options = TableOptions {
                ttl_ns,
                ..table.options.clone()
            };
            engine.alter_table(name, DEVICES_TABLE, &TableChange::SetOptions(options))?;
        }
        Ok::<_, SqlError>(())
    };
    run.context.commit(set).await?;
    Ok(done("SET TTL", 0))
}
