//! Sub-tables: their tags, and creating them.

use crate::run::catalog::objects::{ChildRecord, StableRecord, tag_type};
use crate::run::catalog::{KIND_CHILD, TaosTable, put};
use crate::run::{TaosRun, done, fault, fault_about, taos};
use marigram_engine::Engine;
use marigram_model::{TagType, TagValue};
use marigram_sql::SqlResult;
use marigram_sql::front_end::StatementRows;
use marigram_tdengine::ast::{TaosColumn, TaosName, TaosSubTable};
use marigram_tdengine::{StoredValue, TaosCode, TaosValue, TimeSetting, stored_value};
use std::sync::Arc;

/// The values of tags as the engine holds them, by ordinal.
///
/// # Errors
/// If they do not fit the tags of the super table.
pub(crate) fn tag_values(
    stable: &StableRecord,
    names: Option<&[String]>,
    values: &[TaosValue<'_>],
    setting: &TimeSetting,
) -> SqlResult<Vec<Option<TagValue>>> {
    let all: Vec<String>;
    let names = match names {
        Some(names) => names,
        None => {
            all = stable.tags.iter().map(|tag| tag.name.clone()).collect();
            &all
        }
    };
    if names.len() != values.len() {
        return Err(fault(TaosCode::TagsNotMatched));
    }
    let mut stored = vec![None; stable.table.tags.len().saturating_sub(1)];
    for (name, value) in names.iter().zip(values) {
        let tag = stable.tags.iter().find(|tag| tag.name == *name);
        let place = stable.ordinal(name);
        let (Some(tag), Some(place)) = (tag, place) else {
            return Err(fault_about(TaosCode::InvalidTagName, name));
        };
        if let Some(slot) = stored.get_mut(place) {
            *slot = tag_value(value, tag, setting)?;
        }
    }
    Ok(stored)
}

/// The value of a tag as the engine holds it.
///
/// # Errors
/// If it does not fit the tag.
pub(crate) fn tag_value(
    value: &TaosValue<'_>,
    tag: &TaosColumn,
    setting: &TimeSetting,
) -> SqlResult<Option<TagValue>> {
    let kept = stored_value(value, tag.kind, (setting, &tag.name)).map_err(taos)?;
    Ok(match kept {
        StoredValue::Null => None,
        StoredValue::Bool(value) => Some(TagValue::Bool(value)),
        StoredValue::Integer(value) => Some(match i64::try_from(value) {
            Ok(number) if tag_type(tag.kind) == TagType::I64 => TagValue::I64(number),
            _ => TagValue::String(value.to_string()),
        }),
        StoredValue::Float(value) => Some(TagValue::String(value.to_string())),
        StoredValue::Text(text) => Some(TagValue::String(text.into_owned())),
        StoredValue::Bytes(bytes) => Some(TagValue::String(
            String::from_utf8_lossy(&bytes).into_owned(),
        )),
        StoredValue::Time(time) => Some(TagValue::I64(time)),
    })
}

/// CREATE TABLE … USING.
pub(crate) async fn create_sub_tables(
    run: &TaosRun<'_>,
    tables: &[TaosSubTable],
) -> SqlResult<StatementRows> {
    for table in tables {
        let database = run.database_of(&table.name)?.to_owned();
        run.check_define(&database)?;
        let name = &table.name.name;
        if run.catalog.find(run, &database, name).await?.is_some() {
            if table.if_not_exists {
                continue;
            }
            return Err(fault(TaosCode::TableExists));
        }
        let stable = super_table(run, &database, &table.stable).await?;
        let precision = run.catalog.precision(run, &database).await?;
        let setting = run.setting(precision);
        let names = table.tag_names.as_deref();
        let series = tag_values(&stable, names, &table.tags, &setting)?;
        create_child(run, &database, (name, &stable), series).await?;
    }
    Ok(done("CREATE TABLE", 0))
}

/// The super table that USING names.
///
/// # Errors
/// If there is none.
pub(crate) async fn super_table(
    run: &TaosRun<'_>,
    database: &str,
    name: &TaosName,
) -> SqlResult<Arc<StableRecord>> {
    if name
        .database
        .as_deref()
        .is_some_and(|other| other != database)
    {
        return Err(fault_about(TaosCode::NotStable, &name.name));
    }
    let found = run.catalog.find(run, database, &name.name).await?;
    match found {
        Some(TaosTable::Whole(stable)) if !stable.is_normal && stable.has_tbname() => Ok(stable),
        Some(_) => Err(fault(TaosCode::NotStable)),
        None => Err(fault_about(TaosCode::NoSuchTable, &name.name)),
    }
}

/// Stores a new sub-table.
///
/// # Errors
/// The engine's.
pub(crate) async fn create_child(
    run: &TaosRun<'_>,
    database: &str,
    (name, stable): (&str, &StableRecord),
    series: Vec<Option<TagValue>>,
) -> SqlResult<Arc<ChildRecord>> {
    let record = ChildRecord {
        stable: stable.table.name.clone(),
        table_id: stable.table.id.0,
        series,
        tags: None,
        created_ns: run.now_ns,
    };
    let rows = [(name.to_owned(), record.text())];
    let of = database.to_owned();
    let work = move |engine: &Engine| put(engine, &of, KIND_CHILD, &rows);
    run.catalog.add(run, work).await?;
    run.catalog.remember_child(database, name, record.clone());
    Ok(Arc::new(record))
}
