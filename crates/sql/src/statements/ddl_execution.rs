//! Executes the statements that define databases and tables.

use crate::dialect::ddl::suited;
use crate::dialect::statement::{
    CodecChange, ColumnKind, OptionChanges, TableAlteration, TableReferenceName,
};
use crate::dialect::types::{field_type, is_zoned, tag_type};
use crate::error::{SqlError, SqlResult};
use datafusion::sql::sqlparser::ast::DataType;
use marigram_engine::{Engine, TableChange, TableSpec};
use marigram_model::{ColumnCodec, ColumnId, FieldType, TableOptions, TableSchema};
use std::sync::Arc;

/// `CREATE TABLE`
///
/// # Errors
/// The engine's errors.
pub fn create_table(
    engine: &Engine,
    database: &str,
    target: &TableReferenceName,
    columns: &[(String, ColumnKind)],
    options: &OptionChanges,
    if_not_exists: bool,
) -> SqlResult<Arc<TableSchema>> {
    let mut spec = TableSpec {
        name: target.table.clone(),
        options: options.apply(&TableOptions::default()),
        ..TableSpec::default()
    };
    for (name, kind) in columns {
        match kind {
            ColumnKind::Time => spec.time_name = Some(name.clone()),
            ColumnKind::ZonedTime => {
                spec.time_name = Some(name.clone());
                spec.options.zoned.push(ColumnId::TIME);
            }
            ColumnKind::Tag(kind) => spec.tags.push((name.clone(), *kind)),
            ColumnKind::Field(_, codec) | ColumnKind::ZonedField(codec) => {
                let field = match kind {
                    ColumnKind::Field(kind, _) => *kind,
                    _ => FieldType::Timestamp,
                };
                spec.fields.push((name.clone(), field));
                if matches!(kind, ColumnKind::ZonedField(_)) {
                    // Fields are numbered from 1 in order.
                    spec.options.zoned.push(ColumnId(spec.fields.len() as u32));
                }
                if *codec != ColumnCodec::default() {
                    spec.codecs.insert(name.clone(), *codec);
                }
            }
        }
    }
    spec.options.zoned.sort_unstable();
    Ok(engine.create_table(database, &spec, if_not_exists)?)
}

/// The notice for a table without tags; `None` for other tables.
pub fn untagged(table: &TableSchema) -> Option<String> {
    if !table.tags.is_empty() {
        return None;
    }
    Some(format!(
        "table '{}' has no TAG column, so that it keeps one row for each time: a row replaces the \
         one with the same time; give the role TAG to columns that distinguish rows with the same time \
         (name TEXT TAG)",
        table.name
    ))
}

/// `CREATE INDEX`: rows are always found by their times and tags, so for these columns there is
/// nothing to do.
///
/// # Errors
/// If a column is a field, or does not exist.
pub fn check_indexed(table: &TableSchema, columns: &[String]) -> SqlResult<()> {
    for column in columns {
        if *column == table.time_name || table.tag(column).is_some() {
            continue;
        }
        if table.field(column).is_none() {
            let tags = table.tags.iter().map(|tag| tag.name.as_str());
            let known = tags.chain([table.time_name.as_str()]);
            return Err(SqlError::unknown("42703", "column", column, known));
        }
        let message = format!(
            "rows are found by their times and tags; '{column}' is a field, and fields have no \
             index; leave it out (pandas: to_sql(…, index=False), or an index of times)"
        );
        return Err(SqlError::named("0A000", column, message));
    }
    Ok(())
}

/// The notice for a table whose columns are in a different order than they were declared; `None`
/// for other tables.
pub fn reordered(table: &TableSchema, declared: &[(String, ColumnKind)]) -> Option<String> {
    let stored: Vec<&str> = table.column_names().collect();
    if declared.iter().map(|(name, _)| name).eq(stored.iter()) {
        return None;
    }
    Some(in_order(table))
}

/// The notice for a table in which a tag was added before its fields; `None` for other tables.
pub fn shifted(table: &TableSchema, changes: &[TableAlteration]) -> Option<String> {
    let is_tag = |change: &TableAlteration| {
        matches!(
            change,
            TableAlteration::Add {
                kind: ColumnKind::Tag(_),
                ..
            }
        )
    };
    let is_shifted = !table.fields.is_empty() && changes.iter().any(is_tag);
    is_shifted.then(|| in_order(table))
}

fn in_order(table: &TableSchema) -> String {
    let names: Vec<&str> = table.column_names().collect();
    format!(
        "the columns of '{}' are in the order {}: the time, tags, fields; INSERT and COPY without a \
         list of columns take values in that order",
        table.name,
        names.join(", ")
    )
}

/// The notice for a statement that does nothing because the table exists already.
pub fn exists_already(name: &str) -> String {
    format!("'{name}' exists already, and was left as it is")
}

/// `ALTER TABLE`: applies its changes one by one, in order.
///
/// # Errors
/// The engine's errors. Changes before the one that failed remain in effect.
pub fn alter_table(
    engine: &Engine,
    database: &str,
    table: &str,
    changes: &[TableAlteration],
) -> SqlResult<Arc<TableSchema>> {
    let mut table = table.to_owned();
    for change in changes {
        let schema = engine.table(database, &table)?;
        let change = match change {
            TableAlteration::Rename(to) => {
                engine.alter_table(database, &table, &TableChange::Rename(to.clone()))?;
                table.clone_from(to);
                continue;
            }
            TableAlteration::RenameColumn(from, to) => {
                TableChange::RenameColumn(from.clone(), to.clone())
            }
            TableAlteration::Drop {
                name,
                if_exists: true,
            } if schema.column_names().all(|known| known != name) => {
                continue;
            }
            TableAlteration::Drop { name, .. } => {
                droppable(&schema, name)?;
                TableChange::DropField(name.clone())
            }
            TableAlteration::Add {
                name,
                if_not_exists: true,
                ..
            } if schema.column_names().any(|known| known == name) => {
                continue;
            }
            TableAlteration::Add { name, kind, .. } => match kind {
                ColumnKind::Tag(kind) => TableChange::AddTag(name.clone(), *kind),
                ColumnKind::Field(kind, codec) => {
                    let add = TableChange::AddField(name.clone(), *kind);
                    if *codec == ColumnCodec::default() {
                        add
                    } else {
                        engine.alter_table(database, &table, &add)?;
                        TableChange::SetCodec(name.clone(), *codec)
                    }
                }
                ColumnKind::ZonedField(codec) => {
                    add_zoned(engine, (database, &table), name, *codec)?;
                    continue;
                }
                ColumnKind::Time | ColumnKind::ZonedTime => {
                    let message = format!("a table has one time column; '{name}' would be another");
                    return Err(SqlError::named("42P16", name, message));
                }
            },
            TableAlteration::Codec { name, change } => set_codec(&schema, name, *change)?,
            TableAlteration::Type { name, written } => match retyped(&schema, name, written)? {
                Some(options) => TableChange::SetOptions(options),
                None => continue,
            },
            TableAlteration::Set(changes) if changes.identity.is_some() => {
                let message = "series_identity is fixed when a table is created; create another \
                               table with it and INSERT INTO it";
                return Err(SqlError::named("0A000", "series_identity", message));
            }
            TableAlteration::Set(changes) => {
                TableChange::SetOptions(changes.apply(&schema.options))
            }
        };
        engine.alter_table(database, &table, &change)?;
    }
    Ok(engine.table(database, &table)?)
}

/// Adds a field that is shown as a `timestamptz`.
fn add_zoned(
    engine: &Engine,
    (database, table): (&str, &str),
    name: &str,
    codec: ColumnCodec,
) -> SqlResult<()> {
    let add = TableChange::AddField(name.to_owned(), FieldType::Timestamp);
    let schema = engine.alter_table(database, table, &add)?;
    let mut options = schema.options.clone();
    options
        .zoned
        .extend(schema.field(name).map(|field| field.id));
    engine.alter_table(database, table, &TableChange::SetOptions(options))?;
    if codec != ColumnCodec::default() {
        let set = TableChange::SetCodec(name.to_owned(), codec);
        engine.alter_table(database, table, &set)?;
    }
    Ok(())
}

/// Refuses to drop columns that identify rows.
fn droppable(schema: &TableSchema, name: &str) -> SqlResult<()> {
    let reason = if schema.time_name == name {
        format!(
            "'{name}' is the time column of '{}': a table must have one",
            schema.name
        )
    } else if schema.tag(name).is_some() {
        format!(
            "'{name}' is a tag of '{}': series that differ only in it would become one, and \
             their rows replace each other; CREATE TABLE … AS SELECT the columns that stay",
            schema.name
        )
    } else if schema.field(name).is_none() {
        return Err(SqlError::unknown(
            "42703",
            "column",
            name,
            schema.column_names(),
        ));
    } else {
        return Ok(());
    };
    Err(SqlError::named("0A000", name, reason))
}

/// The settings with which a column has another type; `None` where it has that type already, by
/// whatever name. A time is stored in UTC whether it is shown with a zone or not, so those two types
/// follow each other freely; values of other types would have to be rewritten.
fn retyped(
    schema: &TableSchema,
    name: &str,
    written: &DataType,
) -> SqlResult<Option<TableOptions>> {
    let time = (schema.time_name == name).then_some((ColumnId::TIME, FieldType::Timestamp));
    let field = || schema.field(name).map(|field| (field.id, field.kind));
    let Some((id, kind)) = time.or_else(field) else {
        let Some((_, tag)) = schema.tag(name) else {
            let names = schema.column_names();
            return Err(SqlError::unknown("42703", "column", name, names));
        };
        if tag_type(name, written)? == tag.kind {
            return Ok(None);
        }
        let message = format!(
            "'{name}' is a tag of '{}': its values identify series, so its type cannot change",
            schema.name
        );
        return Err(SqlError::named("0A000", name, message));
    };
    if field_type(name, written)? != kind {
        let (table, kind) = (&schema.name, kind.to_string());
        let message = format!(
            "column '{name}' of '{table}' must stay {kind}, because its stored values are not written \
             again; CREATE TABLE … AS SELECT {name}::{written} AS {name} and the other columns, then \
             rename both tables"
        );
        return Err(SqlError::named("0A000", name, message));
    }
    let (was, is) = (schema.options.zoned.contains(&id), is_zoned(written));
    Ok((was != is).then(|| {
        let mut options = schema.options.clone();
        options.zoned.retain(|zoned| *zoned != id);
        if is {
            options.zoned.push(id);
            options.zoned.sort_unstable();
        }
        options
    }))
}

/// A new codec for a field.
fn set_codec(schema: &TableSchema, name: &str, change: CodecChange) -> SqlResult<TableChange> {
    let Some(field) = schema.field(name) else {
        if schema.column_names().any(|known| known == name) {
            let message = format!("column '{name}' is not a field: only fields have an encoding");
            return Err(SqlError::named("42P16", name, message));
        }
        let names = schema.fields.iter().map(|field| field.name.as_str());
        return Err(SqlError::unknown("42703", "column", name, names));
    };
    let codec = change.apply(field.codec);
    suited(name, field.kind, codec)?;
    Ok(TableChange::SetCodec(name.to_owned(), codec))
}
