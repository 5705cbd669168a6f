//! ALTER TABLE and ALTER STABLE.

use crate::run::catalog::objects::{ChildRecord, StableRecord, field_type, tag_type};
use crate::run::catalog::{KIND_CHILD, KIND_STABLE, TBNAME, TaosTable, put};
use crate::run::{TaosRun, done, fault, fault_about, unsupported};
use crate::sub_table::tag_value;
use marigram_engine::{Engine, TableChange};
use marigram_sql::SqlResult;
use marigram_sql::front_end::StatementRows;
use marigram_tdengine::ast::{TaosAlterTable, TaosColumn, TaosTableChange};
use marigram_tdengine::{TaosCode, TaosType, TaosValue};

/// Sub-tables of one super table whose tags may be set otherwise than they were created.
const RETAGGED_MAX: usize = 10_000;

/// ALTER TABLE.
pub(crate) async fn alter_table(
    run: &TaosRun<'_>,
    alter: &TaosAlterTable,
) -> SqlResult<StatementRows> {
    let database = run.database_of(&alter.name)?.to_owned();
    run.check_define(&database)?;
    let found = run.catalog.table(run, &database, &alter.name.name).await?;
    match (&alter.change, &found) {
        (TaosTableChange::Options, _) => {}
        (TaosTableChange::SetTags(values), TaosTable::Child(stable, child)) => {
            let name = &alter.name.name;
            set_tags(run, &database, (name, stable, child), values).await?;
        }
        (TaosTableChange::SetTags(_), TaosTable::Whole(_)) | (_, TaosTable::Child(..)) => {
            return Err(fault(TaosCode::InvalidAlterTable));
        }
        (change, TaosTable::Whole(stable)) => {
            let mut record = (**stable).clone();
            let change = changed(&mut record, change)?;
            let work = move |engine: &Engine| {
                let name = record.table.name.clone();
                if let Some(change) = change {
                    record.table = engine.alter_table(&database, &name, &change)?;
                }
                put(engine, &database, KIND_STABLE, &[(name, record.text())])
            };
            run.catalog.change(run, work).await?;
        }
    }
    Ok(done("ALTER TABLE", 0))
}

/// Changes a record, and says what changes in the engine.
fn changed(record: &mut StableRecord, change: &TaosTableChange) -> SqlResult<Option<TableChange>> {
    let is_tag = |name: &str| record.tags.iter().any(|tag| tag.name == *name);
    let is_column = |name: &str| record.columns.iter().any(|column| column.name == *name);
    let takes_tags = !record.is_normal;
    match change {
        TaosTableChange::AddColumn(column) => {
            if is_column(&column.name) || record.table.has_column(&column.name) {
                return Err(fault(TaosCode::ColumnExists));
            }
            record.columns.push(column.clone());
            let kind = field_type(column.kind);
            Ok(Some(TableChange::AddField(column.name.clone(), kind)))
        }
        TaosTableChange::DropColumn(name) => {
            if record
                .columns
                .first()
                .is_some_and(|time| time.name == *name)
            {
                return Err(fault(TaosCode::DropTime));
            }
            if !is_column(name) {
                return Err(fault(TaosCode::NoSuchColumn));
            }
            if record.columns.len() <= 2 {
                return Err(fault(TaosCode::InvalidAlterTable));
            }
            record.columns.retain(|column| column.name != *name);
            Ok(Some(TableChange::DropField(name.clone())))
        }
        TaosTableChange::ModifyColumn(column) => {
            longer(&mut record.columns, column, TaosCode::NoSuchColumn)?;
            Ok(None)
        }
        TaosTableChange::RenameColumn(from, to) => {
            if record.table.has_column(to) {
                return Err(fault(TaosCode::ColumnExists));
            }
            rename(&mut record.columns, (from, to), TaosCode::NoSuchColumn)
        }
        TaosTableChange::AddTag(tag) if takes_tags => {
            if is_tag(&tag.name) {
                return Err(fault(TaosCode::TagExists));
            }
            let stored = record.table.tag(&tag.name).map(|(_, stored)| stored.kind);
            if stored.is_some() || tag.name == TBNAME {
                let what = format!("a tag with the name of a dropped one, {}", tag.name);
                return Err(unsupported(&what));
            }
            if record.table.has_column(&tag.name) {
                return Err(fault(TaosCode::ColumnExists));
            }
            record.tags.push(tag.clone());
            let kind = tag_type(tag.kind);
            Ok(Some(TableChange::AddTag(tag.name.clone(), kind)))
        }
        TaosTableChange::DropTag(name) if takes_tags => {
            if !is_tag(name) {
                return Err(fault(TaosCode::NoSuchTag));
            }
            if record.tags.len() <= 1 {
                return Err(fault(TaosCode::InvalidAlterTable));
            }
            record.tags.retain(|tag| tag.name != *name);
            record.dropped.push(name.clone());
            Ok(None)
        }
        TaosTableChange::ModifyTag(tag) if takes_tags => {
            longer(&mut record.tags, tag, TaosCode::NoSuchTag)?;
            Ok(None)
        }
        TaosTableChange::RenameTag(from, to) if takes_tags => {
            if record.table.has_column(to) {
                return Err(fault(TaosCode::TagExists));
            }
            rename(&mut record.tags, (from, to), TaosCode::NoSuchTag)
        }
        _ => Err(fault(TaosCode::InvalidAlterTable)),
    }
}

/// Makes a text longer.
fn longer(columns: &mut [TaosColumn], wanted: &TaosColumn, missing: TaosCode) -> SqlResult<()> {
    let found = columns.iter_mut().find(|column| column.name == wanted.name);
    let Some(found) = found else {
        return Err(fault(missing));
    };
    let is_longer = match (found.kind, wanted.kind) {
        (TaosType::VarChar(old), TaosType::VarChar(new))
        | (TaosType::NChar(old), TaosType::NChar(new))
        | (TaosType::VarBinary(old), TaosType::VarBinary(new))
        | (TaosType::Geometry(old), TaosType::Geometry(new)) => new > old,
        _ => false,
    };
    if !is_longer {
        return Err(fault(TaosCode::InvalidModify));
    }
    found.kind = wanted.kind;
    Ok(())
}

fn rename(
    columns: &mut [TaosColumn],
    (from, to): (&str, &str),
    missing: TaosCode,
) -> SqlResult<Option<TableChange>> {
    let found = columns.iter_mut().find(|column| column.name == from);
    let Some(found) = found else {
        return Err(fault(missing));
    };
    to.clone_into(&mut found.name);
    Ok(Some(TableChange::RenameColumn(
        from.to_owned(),
        to.to_owned(),
    )))
}

/// SET TAG: the rows keep the tags that they were written with, and queries show what was set.
async fn set_tags(
    run: &TaosRun<'_>,
    database: &str,
    (name, stable, child): (&str, &StableRecord, &ChildRecord),
    values: &[(String, TaosValue<'static>)],
) -> SqlResult<()> {
    let precision = run.catalog.precision(run, database).await?;
    let setting = run.setting(precision);
    let mut tags = child.tags.clone().unwrap_or_else(|| child.series.clone());
    tags.resize(stable.table.tags.len().saturating_sub(1), None);
    for (tag_name, value) in values {
        let tag = stable.tags.iter().find(|tag| tag.name == *tag_name);
        let place = stable.ordinal(tag_name);
        let (Some(tag), Some(place)) = (tag, place) else {
            return Err(fault_about(TaosCode::InvalidTagName, tag_name));
        };
        if let Some(slot) = tags.get_mut(place) {
            *slot = tag_value(value, tag, &setting)?;
        }
    }
    let mut record = child.clone();
    record.tags = Some(tags);
    let mut owner = stable.clone();
    let is_new = !owner.retagged.iter().any(|other| other == name);
    if is_new {
        if owner.retagged.len() >= RETAGGED_MAX {
            return Err(unsupported("SET TAG of so many sub-tables"));
        }
        owner.retagged.push(name.to_owned());
    }
    let (database, name) = (database.to_owned(), name.to_owned());
    let work = move |engine: &Engine| {
        put(engine, &database, KIND_CHILD, &[(name, record.text())])?;
        if is_new {
            let stable = owner.table.name.clone();
            put(engine, &database, KIND_STABLE, &[(stable, owner.text())])?;
        }
        Ok(())
    };
    run.catalog.change(run, work).await
}
