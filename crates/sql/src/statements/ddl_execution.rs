//! Executes the statements that define databases and tables.

use crate::dialect::ddl::columns::suited;
use crate::dialect::statement::{
    CodecChange, ColumnKind, OptionChanges, TableAlteration, TableReferenceName,
};
use crate::dialect::types::{field_type, is_zoned, tag_type};
use crate::error::{SqlError, SqlResult};
use crate::statements::retype::{FieldConversion, no_conversion, unfit_error};
use crate::statements::roles::{self, RoleRequest};
use datafusion::sql::sqlparser::ast::DataType;
use marigram_engine::{Engine, RetypeOutcome, RetypeRequest, TableChange};
use marigram_model::{ColumnCodec, ColumnId, FieldType, TableOptions, TableSchema};
use std::sync::Arc;

/// `CREATE TABLE`
///
/// # Errors
/// The engine's errors.
pub(crate) fn create_table(
    engine: &Engine,
    database: &str,
    target: &TableReferenceName,
    columns: &[(String, ColumnKind)],
    options: &OptionChanges,
    if_not_exists: bool,
) -> SqlResult<Arc<TableSchema>> {
    let options = options.apply(&usual_options(engine, database, &target.table));
    let spec = roles::table_spec(&target.table, columns, options);
    Ok(engine.create_table(database, &spec, if_not_exists)?)
}

/// The settings of a new table for which a statement gives none: those of the retention policy to which
/// its name belongs. A table that is made for its first rows begins in the same way.
pub(crate) fn usual_options(engine: &Engine, database: &str, table: &str) -> TableOptions {
    let policies = engine.retention_policies(database).unwrap_or_default();
    let options = TableOptions::default();
    match policies.locate(table) {
        Some((policy, _)) => policy.table_options(options),
        None => options,
    }
}

/// The notice for a table without tags; `None` for other tables.
pub(crate) fn untagged(table: &TableSchema) -> Option<String> {
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

/// What a client is told of changes that do nothing.
pub(crate) fn notices(changes: &[TableAlteration]) -> Vec<String> {
    let notices = changes.iter().flat_map(|change| match change {
        TableAlteration::Owner => {
            vec!["tables have no owners; GRANT gives users rights to databases".to_owned()]
        }
        TableAlteration::Key { kind, .. } => vec![format!(
            "the {kind} is the table's own: a row replaces the one with the same tags and time"
        )],
        TableAlteration::Hypertable(settings) => settings.notices.clone(),
        _ => Vec::new(),
    });
    notices.collect()
}

/// The notice for a statement that does nothing because the table exists already.
pub(crate) fn exists_already(name: &str) -> String {
    format!("'{name}' exists already, and was left as it is")
}

/// `ALTER TABLE`: applies its changes one by one, in order.
///
/// # Errors
/// The engine's errors. Changes before the one that failed remain in effect.
pub(crate) fn alter_table(
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
            } if !schema.has_column(name) => {
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
            } if schema.has_column(name) => {
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
            TableAlteration::Key { kind, columns } => {
                roles::key(engine, &schema, kind, columns)?;
                continue;
            }
            TableAlteration::Hypertable(settings) => {
                let request = RoleRequest {
                    time: settings.time.as_deref(),
                    tags: &settings.tags,
                };
                let schema = roles::assign(engine, &schema, &request)?;
                let Some(partition_ns) = settings.partition_ns else {
                    continue;
                };
                TableChange::SetOptions(TableOptions {
                    partition_ns,
                    ..schema.options.clone()
                })
            }
            TableAlteration::Owner => continue,
            TableAlteration::Codec { name, change } => set_codec(&schema, name, *change)?,
            TableAlteration::Type { name, written } => match retyped(&schema, name, written)? {
                ColumnRetype::Settings(options) => TableChange::SetOptions(options),
                ColumnRetype::Nothing => continue,
                ColumnRetype::Rewrite { from, to, is_zoned } => {
                    rewrite(engine, (database, &table), name, (from, to), is_zoned)?;
                    continue;
                }
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

/// What gives a column another type.
enum ColumnRetype {
    /// It has that type already, by whatever name.
    Nothing,
    /// The stored values are the same: a time is stored in UTC whether it is shown with a zone or not.
    Settings(TableOptions),
    /// The values are written anew.
    Rewrite {
        from: FieldType,
        to: FieldType,
        /// Whether the values are shown with a zone, before or afterwards.
        is_zoned: bool,
    },
}

/// How a column gets another type.
fn retyped(schema: &TableSchema, name: &str, written: &DataType) -> SqlResult<ColumnRetype> {
    let time = (schema.time_name == name).then_some((ColumnId::TIME, FieldType::Timestamp));
    let field = || schema.field(name).map(|field| (field.id, field.kind));
    let Some((id, kind)) = time.or_else(field) else {
        let Some((_, tag)) = schema.tag(name) else {
            let names = schema.column_names();
            return Err(SqlError::unknown("42703", "column", name, names));
        };
        if tag_type(name, written)? == tag.kind {
            return Ok(ColumnRetype::Nothing);
        }
        let message = format!(
            "'{name}' is a tag of '{}': its values identify series, so its type cannot change",
            schema.name
        );
        return Err(SqlError::named("0A000", name, message));
    };
    let (was, is) = (schema.options.zoned.contains(&id), is_zoned(written));
    let to = field_type(name, written)?;
    if to != kind && id == ColumnId::TIME {
        let message = format!(
            "'{name}' is the time column of '{}', so it stays a TIMESTAMP or TIMESTAMPTZ",
            schema.name
        );
        return Err(SqlError::named("0A000", name, message));
    }
    if to != kind {
        return Ok(ColumnRetype::Rewrite {
            from: kind,
            to,
            is_zoned: was || is,
        });
    }
    if was == is {
        return Ok(ColumnRetype::Nothing);
    }
    let mut options = schema.options.clone();
    options.zoned.retain(|zoned| *zoned != id);
    if is {
        options.zoned.push(id);
        options.zoned.sort_unstable();
    }
    Ok(ColumnRetype::Settings(options))
}

/// Gives a field a type in which its values are written anew.
fn rewrite(
    engine: &Engine,
    (database, table): (&str, &str),
    name: &str,
    (from, to): (FieldType, FieldType),
    is_zoned: bool,
) -> SqlResult<()> {
    let Some(conversion) = FieldConversion::between(from, to, is_zoned) else {
        return Err(no_conversion((table, name), from, to));
    };
    let request = RetypeRequest {
        column: name,
        kind: to,
        is_zoned: is_zoned && to == FieldType::Timestamp,
        convert: &|values| conversion.convert(values),
    };
    match engine.retype_field(database, table, &request)? {
        RetypeOutcome::Done { .. } => Ok(()),
        RetypeOutcome::Unfit { count, first } => {
            Err(unfit_error((table, name), (from, to), count, &first))
        }
    }
}

/// A new codec for a field.
fn set_codec(schema: &TableSchema, name: &str, change: CodecChange) -> SqlResult<TableChange> {
    let Some(field) = schema.field(name) else {
        if schema.has_column(name) {
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
