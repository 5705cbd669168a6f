//! Changes tables.

use crate::catalog::{ReferenceCatalog, has_index};
use crate::condition::{mentions, renamed};
use crate::constraint::{
    add, check_constraint_name, check_identity, check_relation_name, check_types, dependents,
    relation_exists,
};
use crate::context::Context;
use crate::convert::convert;
use crate::create::{add_column, check_independent, drop_foreign_key};
use crate::definition::{
    NewColumn, NewConstraint, ReferenceAlteration, ReferenceColumn, ReferenceTable, ReferenceType,
};
use crate::error::{ReferenceError, Result};
use crate::foreign::check_orphans;
use crate::schema::{
    create_physical_index, drop_physical_index, physical_indexes, store_definition,
};
use rusqlite::Connection;
use std::sync::Arc;

/// Changes a table; returns the catalog after it.
pub(crate) fn alter_table(
    context: &Context<'_>,
    table: &Arc<ReferenceTable>,
    change: &ReferenceAlteration,
) -> Result<ReferenceCatalog> {
    let mut new = table.as_ref().clone();
    match change {
        ReferenceAlteration::AddColumn {
            column,
            if_not_exists,
        } => {
            if *if_not_exists && table.column(&column.name).is_some() {
                return Ok(context.catalog.clone());
            }
            return add_stored_column(context, table, column);
        }
        ReferenceAlteration::DropColumn {
            name,
            if_exists,
            cascades,
        } => {
            if *if_exists && table.column(name).is_none() {
                return Ok(context.catalog.clone());
            }
            return drop_column(context, table, name, *cascades);
        }
        ReferenceAlteration::Type { column, kind } => {
            return change_type(context, table, column, *kind);
        }
        ReferenceAlteration::AddConstraint(constraint) => {
            return add_constraint(context, table, constraint);
        }
        ReferenceAlteration::Rename(name) => {
            if context.catalog.has_relation(&table.database, name) {
                return Err(relation_exists(name));
            }
            new.name.clone_from(name);
        }
        ReferenceAlteration::RenameColumn(from, to) => rename_column(&mut new, from, to)?,
        ReferenceAlteration::RenameConstraint(from, to) => {
            rename_constraint(context.catalog, &mut new, from, to)?;
        }
        ReferenceAlteration::DropConstraint {
            name,
            if_exists,
            cascades,
        } => {
            let catalog = if *cascades {
                drop_dependents(context, table, name)?
            } else {
                context.catalog.clone()
            };
            // It may have referred to itself.
            let old = catalog.by_id(table.id).unwrap_or(table);
            let mut new = old.as_ref().clone();
            drop_constraint(&catalog, &mut new, name, *if_exists)?;
            store_definition(context.connection, Some(old), &new)?;
            return Ok(catalog.with(Arc::new(new)));
        }
        ReferenceAlteration::Default { column, default } => {
            column_mut(&mut new, column)?.default.clone_from(default);
        }
        ReferenceAlteration::Nullable {
            column,
            is_nullable,
        } => {
            set_nullable(context, &mut new, column, *is_nullable)?;
        }
        ReferenceAlteration::Nothing => return Ok(context.catalog.clone()),
    }
    store_definition(context.connection, Some(table), &new)?;
    Ok(context.catalog.with(Arc::new(new)))
}

fn column_mut<'a>(table: &'a mut ReferenceTable, name: &str) -> Result<&'a mut ReferenceColumn> {
    let missing = ReferenceError::no_column(name, &table.name);
    table
        .columns
        .iter_mut()
        .find(|column| column.name == name)
        .ok_or(missing)
}

fn column_exists(table: &ReferenceTable, name: &str) -> ReferenceError {
    let message = format!(
        "column \"{name}\" of relation \"{}\" already exists",
        table.name
    );
    ReferenceError::new("42701", message)
}

fn add_stored_column(
    context: &Context<'_>,
    table: &Arc<ReferenceTable>,
    column: &NewColumn,
) -> Result<ReferenceCatalog> {
    if table.column(&column.name).is_some() {
        return Err(column_exists(table, &column.name));
    }
    let Context {
        connection,
        catalog,
        identities,
    } = *context;
    let mut new = table.as_ref().clone();
    add_column(&mut new, column)?;
    let id = table.next_column;
    connection.execute_batch(&format!("ALTER TABLE t{} ADD COLUMN c{id} ANY", table.id))?;
    if column.identity.is_some() {
        let sql = format!(
            "UPDATE t{0} SET c{id} = n.n FROM (SELECT r AS r, row_number() OVER (ORDER BY r) AS n FROM t{0}) n
             WHERE t{0}.r = n.r",
            table.id
        );
        let rows = connection.execute(&sql, [])? as i64;
        if let Some(column) = new.columns.last() {
            crate::identity::check_range(&new, column, rows)?;
        }
        identities.restart(connection, table.id, id, rows + 1)?;
    }
    store_definition(connection, Some(table), &new)?;
    Ok(catalog.with(Arc::new(new)))
}

fn drop_column(
    context: &Context<'_>,
    table: &Arc<ReferenceTable>,
    name: &str,
    cascades: bool,
) -> Result<ReferenceCatalog> {
    let Context {
        connection,
        catalog,
        ..
    } = *context;
    let column = table
        .column(name)
        .ok_or_else(|| ReferenceError::no_column(name, &table.name))?;
    let id = column.id;
    let mut changed = catalog.clone();
    for (child, key) in catalog.referring_keys(table.id) {
        let is_own = child.id == table.id;
        let goes = is_own && (cascades || key.columns.contains(&id));
        if goes || !key.parent_columns.contains(&id) {
            // Its own foreign keys go with the column, below.
            continue;
        }
        if !cascades {
            let message = format!(
                "cannot drop column {name} of table {} because other objects depend on it",
                table.name
            );
            let detail = format!(
                "constraint {} on table {} depends on column {name} of table {}",
                key.name, child.name, table.name
            );
            return Err(ReferenceError::new("2BP01", message).with_detail(detail));
        }
        changed = drop_foreign_key(connection, &changed, child.id, &key.name)?;
    }
    let mut new = table.as_ref().clone();
    new.columns.retain(|column| column.id != id);
    new.keys.retain(|key| !key.columns.contains(&id));
    new.indexes.retain(|index| !index.columns.contains(&id));
    new.foreign_keys.retain(|key| {
        let is_own_parent = key.parent == table.id && key.parent_columns.contains(&id);
        !key.columns.contains(&id) && !is_own_parent
    });
    new.checks.retain(|check| !mentions(&check.condition, name));
    store_definition(connection, Some(table), &new)?;
    connection.execute_batch(&format!("ALTER TABLE t{} DROP COLUMN c{id}", table.id))?;
    Ok(changed.with(Arc::new(new)))
}

fn rename_column(table: &mut ReferenceTable, from: &str, to: &str) -> Result<()> {
    if table.column(from).is_some() && table.column(to).is_some() {
        return Err(column_exists(table, to));
    }
    to.clone_into(&mut column_mut(table, from)?.name);
    for check in &mut table.checks {
        check.condition = renamed(&check.condition, from, to);
    }
    Ok(())
}

fn rename_constraint(
    catalog: &ReferenceCatalog,
    table: &mut ReferenceTable,
    from: &str,
    to: &str,
) -> Result<()> {
    if has_index(table, from) {
        check_relation_name(catalog, table, to)?;
    }
    check_constraint_name(table, to)?;
    let keys = table.keys.iter_mut().map(|key| &mut key.name);
    let indexes = table.indexes.iter_mut().map(|index| &mut index.name);
    let foreign = table.foreign_keys.iter_mut().map(|key| &mut key.name);
    let checks = table.checks.iter_mut().map(|check| &mut check.name);
    let mut names = keys.chain(indexes).chain(foreign).chain(checks);
    match names.find(|name| name.as_str() == from) {
        Some(name) => to.clone_into(name),
        None => {
            let message = format!(
                "constraint \"{from}\" for table \"{}\" does not exist",
                table.name
            );
            return Err(ReferenceError::new("42704", message));
        }
    }
    Ok(())
}

/// Drops the foreign keys that need a key; returns the catalog after it.
fn drop_dependents(
    context: &Context<'_>,
    table: &ReferenceTable,
    name: &str,
) -> Result<ReferenceCatalog> {
    let Context {
        connection,
        catalog,
        ..
    } = *context;
    let mut changed = catalog.clone();
    let mut keys = table.keys.iter();
    if let Some(key) = keys.find(|key| key.name == name && key.is_constraint) {
        for (child, foreign) in dependents(catalog, table, &key.columns) {
            changed = drop_foreign_key(connection, &changed, child.id, &foreign.name)?;
        }
    }
    Ok(changed)
}

fn drop_constraint(
    catalog: &ReferenceCatalog,
    table: &mut ReferenceTable,
    name: &str,
    if_exists: bool,
) -> Result<()> {
    let before = table.keys.len() + table.foreign_keys.len() + table.checks.len();
    if let Some(key) = table
        .keys
        .iter()
        .find(|key| key.name == name && key.is_constraint)
    {
        let what = format!("constraint {name} on table {}", table.name);
        check_independent(catalog, table, key, &what)?;
    }
    table
        .keys
        .retain(|key| key.name != name || !key.is_constraint);
    table.foreign_keys.retain(|key| key.name != name);
    table.checks.retain(|check| check.name != name);
    let after = table.keys.len() + table.foreign_keys.len() + table.checks.len();
    if before == after && !if_exists {
        let message = format!(
            "constraint \"{name}\" of relation \"{}\" does not exist",
            table.name
        );
        return Err(ReferenceError::new("42704", message));
    }
    Ok(())
}

fn add_constraint(
    context: &Context<'_>,
    table: &Arc<ReferenceTable>,
    constraint: &NewConstraint,
) -> Result<ReferenceCatalog> {
    let Context {
        connection,
        catalog,
        ..
    } = *context;
    let mut new = table.as_ref().clone();
    let name = add(catalog, &mut new, constraint)?;
    for (column, before) in new.columns.iter().zip(&table.columns) {
        if before.is_nullable && !column.is_nullable {
            check_not_null(connection, table, column)?;
        }
    }
    store_definition(connection, Some(table), &new)?;
    let new = Arc::new(new);
    let changed = catalog.with(new.clone());
    if let Some(key) = new.foreign_keys.iter().find(|key| key.name == name) {
        check_orphans(connection, &changed, &new, key, None)?;
    }
    Ok(changed)
}

fn set_nullable(
    context: &Context<'_>,
    table: &mut ReferenceTable,
    name: &str,
    is_nullable: bool,
) -> Result<()> {
    let is_primary = |id| {
        table
            .primary_key()
            .is_some_and(|key| key.columns.contains(&id))
    };
    let column = table
        .column(name)
        .ok_or_else(|| ReferenceError::no_column(name, &table.name))?;
    if is_nullable && is_primary(column.id) {
        let message = format!("column \"{name}\" is in a primary key");
        return Err(ReferenceError::new("42P16", message));
    }
    if is_nullable && column.identity.is_some() {
        let message = format!(
            "column \"{name}\" of relation \"{}\" is an identity column",
            table.name
        );
        return Err(ReferenceError::new("42601", message));
    }
    if !is_nullable {
        check_not_null(context.connection, table, column)?;
    }
    column_mut(table, name)?.is_nullable = is_nullable;
    Ok(())
}

/// Checks that a column has a value in every row.
pub(crate) fn check_not_null(
    connection: &Connection,
    table: &ReferenceTable,
    column: &ReferenceColumn,
) -> Result<()> {
    let sql = format!(
        "SELECT EXISTS (SELECT 1 FROM t{} WHERE c{} IS NULL)",
        table.id, column.id
    );
    let has_null: bool = connection.query_row(&sql, [], |row| row.get(0))?;
    if !has_null {
        return Ok(());
    }
    let message = format!(
        "column \"{}\" of relation \"{}\" contains null values",
        column.name, table.name
    );
    Err(ReferenceError::new("23502", message).with_column(&table.name, &column.name))
}

fn change_type(
    context: &Context<'_>,
    table: &Arc<ReferenceTable>,
    name: &str,
    kind: ReferenceType,
) -> Result<ReferenceCatalog> {
    let Context {
        connection,
        catalog,
        ..
    } = *context;
    let mut new = table.as_ref().clone();
    let column = column_mut(&mut new, name)?;
    let id = column.id;
    column.kind = kind;
    check_identity(column)?;
    let is_key = |index: &crate::schema::PhysicalIndex| index.columns.contains(&id);
    let indexes: Vec<_> = physical_indexes(table).into_iter().filter(is_key).collect();
    if kind == ReferenceType::Json && !indexes.is_empty() {
        let message = "data type json has no default operator class for access method \"btree\"";
        return Err(ReferenceError::new("42704", message));
    }
    let new = Arc::new(new);
    let changed = catalog.with(new.clone());
    let own = new.foreign_keys.iter().map(|key| (&new, key));
    for (child, key) in own.chain(changed.referring_keys(table.id)) {
        if let Some(parent) = changed.by_id(key.parent) {
            check_types(child, parent, key)?;
        }
    }
    // The order of values may change with their type.
    for index in &indexes {
        drop_physical_index(connection, table.id, index)?;
    }
    convert(connection, table, name, kind)?;
    store_definition(connection, Some(table), &new)?;
    for index in &indexes {
        let key = new.keys.iter().find(|key| key.columns == index.columns);
        let key_name = key.map_or_else(String::new, |key| key.name.clone());
        create_physical_index(connection, &new, index, &key_name)?;
    }
    Ok(changed)
}
