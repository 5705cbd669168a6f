//! Carries out the statements that define databases and tables.

use crate::error::{SqlError, SqlResult};
use crate::statement::{Change, ColumnKind, OptionChanges, Target};
use marigram_engine::{Engine, TableChange, TableSpec};
use marigram_model::TableOptions;

/// `CREATE TABLE`
///
/// # Errors
/// The engine's.
pub fn create_table(
    engine: &Engine,
    database: &str,
    target: &Target,
    columns: &[(String, ColumnKind)],
    options: &OptionChanges,
    if_not_exists: bool,
) -> SqlResult<()> {
    let mut spec = TableSpec {
        name: target.table.clone(),
        options: options.apply(&TableOptions::default()),
        ..TableSpec::default()
    };
    for (name, kind) in columns {
        match kind {
            ColumnKind::Time => spec.time_name = Some(name.clone()),
            ColumnKind::Tag(kind) => spec.tags.push((name.clone(), *kind)),
            ColumnKind::Field(kind) => spec.fields.push((name.clone(), *kind)),
        }
    }
    engine.create_table(database, &spec, if_not_exists)?;
    Ok(())
}

/// `ALTER TABLE`: its changes one by one, in their order.
///
/// # Errors
/// The engine's. Changes before the one that failed are done.
pub fn alter_table(
    engine: &Engine,
    database: &str,
    table: &str,
    changes: &[Change],
) -> SqlResult<()> {
    for change in changes {
        let schema = engine.table(database, table)?;
        let change = match change {
            Change::Add {
                name,
                if_not_exists: true,
                ..
            } if schema.column_names().any(|known| known == name) => {
                continue;
            }
            Change::Add { name, kind, .. } => match kind {
                ColumnKind::Tag(kind) => TableChange::AddTag(name.clone(), *kind),
                ColumnKind::Field(kind) => TableChange::AddField(name.clone(), *kind),
                ColumnKind::Time => {
                    let message = format!("a table has one time column; '{name}' would be another");
                    return Err(SqlError::named("42P16", name, message));
                }
            },
            Change::Set(changes) => TableChange::SetOptions(changes.apply(&schema.options)),
        };
        engine.alter_table(database, table, &change)?;
    }
    Ok(())
}
