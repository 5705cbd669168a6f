//! Creates and drops tables and indexes.

use crate::catalog::{ReferenceCatalog, has_index};
use crate::constraint::{
    add, check_identity, check_relation_name, dependents, key_columns, name_index, relation_exists,
};
use crate::context::Context;
use crate::definition::{
    NewColumn, NewConstraint, NewReferenceTable, ReferenceColumn, ReferenceTable, SecondaryIndex,
    UniqueKey,
};
use crate::error::{ReferenceError, Result};
use crate::schema::store_definition;
use rusqlite::Connection;
use std::fmt::Write;
use std::sync::Arc;

/// As in PostgreSQL; SQLite takes 2000.
const COLUMNS_MAX: usize = 1600;

/// Creates a table; returns its id and the catalog with it.
pub(crate) fn create_table(
    context: &Context<'_>,
    new: &NewReferenceTable,
) -> Result<(u64, ReferenceCatalog)> {
    let Context {
        connection,
        catalog,
        identities,
    } = *context;
    if catalog.has_relation(&new.database, &new.name) {
        return Err(relation_exists(&new.name));
    }
    let mut statement = connection
        .prepare_cached("UPDATE state SET next_table = next_table + 1 RETURNING next_table - 1")?;
    let id = statement.query_row([], |row| row.get::<_, i64>(0))? as u64;
    drop(statement);
    let mut table = ReferenceTable {
        id,
        database: new.database.clone(),
        name: new.name.clone(),
        columns: Vec::new(),
        next_column: 1,
        keys: Vec::new(),
        foreign_keys: Vec::new(),
        checks: Vec::new(),
        indexes: Vec::new(),
    };
    for column in &new.columns {
        add_column(&mut table, column)?;
    }
    // A foreign key may refer to a key of its own table that is declared behind it.
    let is_foreign =
        |constraint: &&NewConstraint| matches!(constraint, NewConstraint::ForeignKey { .. });
    for constraint in new
        .constraints
        .iter()
        .filter(|constraint| !is_foreign(constraint))
    {
        add(catalog, &mut table, constraint)?;
    }
    for constraint in new.constraints.iter().filter(is_foreign) {
        add(catalog, &mut table, constraint)?;
    }
    let mut sql = format!("CREATE TABLE t{id} (r INTEGER PRIMARY KEY");
    for column in &table.columns {
        let _ = write!(sql, ", c{} ANY", column.id);
    }
    sql.push_str(") STRICT");
    connection.execute_batch(&sql)?;
    identities.forget(id);
    store_definition(connection, None, &table)?;
    Ok((id, catalog.with(Arc::new(table))))
}

/// Adds a column to a definition.
pub(crate) fn add_column(table: &mut ReferenceTable, new: &NewColumn) -> Result<()> {
    if table.column(&new.name).is_some() {
        let message = format!("column \"{}\" specified more than once", new.name);
        return Err(ReferenceError::new("42701", message));
    }
    if table.columns.len() >= COLUMNS_MAX {
        let message = format!("tables can have at most {COLUMNS_MAX} columns");
        return Err(ReferenceError::new("54011", message));
    }
    let column = ReferenceColumn {
        id: table.next_column,
        name: new.name.clone(),
        kind: new.kind,
        is_nullable: new.is_nullable && new.identity.is_none(),
        default: new.default.clone(),
        identity: new.identity,
    };
    check_identity(&column)?;
    table.next_column += 1;
    table.columns.push(column);
    Ok(())
}

/// Drops a table; with `cascades`, also the foreign keys of others to it.
pub(crate) fn drop_table(
    context: &Context<'_>,
    table: &ReferenceTable,
    cascades: bool,
) -> Result<ReferenceCatalog> {
    let Context {
        connection,
        catalog,
        identities,
    } = *context;
    let referring = |(child, key): (&Arc<ReferenceTable>, _)| {
        (child.id != table.id).then_some((child.clone(), key))
    };
    let mut changed = catalog.clone();
    for (child, key) in catalog.referring_keys(table.id).filter_map(referring) {
        if !cascades {
            let message = format!(
                "cannot drop table {} because other objects depend on it",
                table.name
            );
            let detail = format!(
                "constraint {} on table {} depends on table {}",
                key.name, child.name, table.name
            );
            return Err(ReferenceError::new("2BP01", message).with_detail(detail));
        }
        changed = drop_foreign_key(connection, &changed, child.id, &key.name)?;
    }
    connection.execute_batch(&format!("DROP TABLE t{}", table.id))?;
    connection
        .prepare_cached("DELETE FROM definitions WHERE id = ?1")?
        .execute([table.id as i64])?;
    connection
        .prepare_cached("DELETE FROM identities WHERE table_id = ?1")?
        .execute([table.id as i64])?;
    identities.forget(table.id);
    Ok(changed.without(table.id))
}

/// Drops a foreign key of a table.
pub(crate) fn drop_foreign_key(
    connection: &Connection,
    catalog: &ReferenceCatalog,
    table: u64,
    name: &str,
) -> Result<ReferenceCatalog> {
    let Some(old) = catalog.by_id(table) else {
        return Ok(catalog.clone());
    };
    let mut new = old.as_ref().clone();
    new.foreign_keys.retain(|key| key.name != name);
    store_definition(connection, Some(old), &new)?;
    Ok(catalog.with(Arc::new(new)))
}

/// A new index.
pub(crate) struct NewIndex<'a> {
    pub(crate) name: Option<String>,
    pub(crate) columns: &'a [String],
    pub(crate) is_unique: bool,
    pub(crate) if_not_exists: bool,
}

/// Creates an index; returns its name, and the catalog if it is new.
pub(crate) fn create_index(
    context: &Context<'_>,
    table: &Arc<ReferenceTable>,
    index: NewIndex<'_>,
) -> Result<(String, Option<ReferenceCatalog>)> {
    let Context {
        connection,
        catalog,
        ..
    } = *context;
    let columns = key_columns(table, index.columns)?;
    let name = match index.name {
        Some(name) if index.if_not_exists && catalog.has_relation(&table.database, &name) => {
            return Ok((name, None));
        }
        Some(name) => {
            check_relation_name(catalog, table, &name)?;
            name
        }
        None => name_index(catalog, table, index.columns),
    };
    let mut new = table.as_ref().clone();
    if index.is_unique {
        let (is_primary, is_constraint) = (false, false);
        new.keys.push(UniqueKey {
            name: name.clone(),
            columns,
            is_primary,
            is_constraint,
        });
    } else {
        new.indexes.push(SecondaryIndex {
            name: name.clone(),
            columns,
        });
    }
    // The name of the new key must be in the error, not that of an older one with the same columns: such a one
    // has the same index already, and nothing is made.
    store_definition(connection, Some(table), &new)?;
    Ok((name, Some(catalog.with(Arc::new(new)))))
}

/// Drops an index; `None` if there is none.
pub(crate) fn drop_index(
    context: &Context<'_>,
    database: &str,
    name: &str,
) -> Result<Option<ReferenceCatalog>> {
    let Context {
        connection,
        catalog,
        ..
    } = *context;
    let Some(table) = catalog
        .tables(database)
        .find(|table| has_index(table, name))
    else {
        return Ok(None);
    };
    if let Some(key) = table.keys.iter().find(|key| key.name == name) {
        if key.is_constraint {
            let message = format!(
                "cannot drop index {name} because constraint {name} on table {} requires it",
                table.name
            );
            return Err(ReferenceError::new("2BP01", message));
        }
        check_independent(catalog, table, key, &format!("index {name}"))?;
    }
    let mut new = table.as_ref().clone();
    new.keys.retain(|key| key.name != name);
    new.indexes.retain(|index| index.name != name);
    store_definition(connection, Some(table), &new)?;
    Ok(Some(catalog.with(Arc::new(new))))
}

/// Checks that no foreign key needs a unique key that is dropped.
pub(crate) fn check_independent(
    catalog: &ReferenceCatalog,
    table: &ReferenceTable,
    key: &UniqueKey,
    what: &str,
) -> Result<()> {
    let Some((child, foreign)) = dependents(catalog, table, &key.columns).next() else {
        return Ok(());
    };
    let message = format!("cannot drop {what} because other objects depend on it");
    let detail = format!(
        "constraint {} on table {} depends on index {}",
        foreign.name, child.name, key.name
    );
    Err(ReferenceError::new("2BP01", message).with_detail(detail))
}

/// Removes all rows of a table; returns how many there were.
pub(crate) fn truncate(
    context: &Context<'_>,
    table: &ReferenceTable,
    restarts_identity: bool,
) -> Result<u64> {
    let Context {
        connection,
        catalog,
        identities,
    } = *context;
    for (child, _) in catalog.referring_keys(table.id) {
        if child.id != table.id && has_rows(connection, child)? {
            let message = "cannot truncate a table referenced in a foreign key constraint";
            let detail = format!("Table \"{}\" references \"{}\".", child.name, table.name);
            return Err(ReferenceError::new("0A000", message).with_detail(detail));
        }
    }
    let sql = format!("DELETE FROM t{}", table.id);
    let removed = connection.prepare_cached(&sql)?.execute([])? as u64;
    if restarts_identity {
        for column in table
            .columns
            .iter()
            .filter(|column| column.identity.is_some())
        {
            identities.restart(connection, table.id, column.id, 1)?;
        }
    }
    Ok(removed)
}

fn has_rows(connection: &Connection, table: &ReferenceTable) -> Result<bool> {
    let sql = format!("SELECT EXISTS (SELECT 1 FROM t{})", table.id);
    Ok(connection
        .prepare_cached(&sql)?
        .query_row([], |row| row.get(0))?)
}
