//! How reference tables are stored in SQLite.
//!
//! Names of tables, columns and indexes in the file are made of ids, so that nothing must be quoted and renames
//! cost nothing. All columns have the type `ANY`: SQLite keeps values as they are bound, and this crate checks
//! them. Which indexes there are is a function of the definition; a change of it makes and drops what differs.

use crate::definition::{ReferenceColumn, ReferenceTable, ReferenceType};
use crate::error::{ReferenceError, Result};
use crate::text;
use crate::value::Cell;
use rusqlite::{Connection, ErrorCode};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The version of the file's format, in its `user_version`.
pub(crate) const FORMAT: i64 = 1;

/// The file's `application_id`: "Mari".
pub(crate) const APPLICATION: i64 = 0x4d61_7269;

/// Makes the tables that describe the others, in one transaction.
pub(crate) fn initialize(connection: &Connection) -> Result<()> {
    connection.execute_batch(&format!(
        "BEGIN IMMEDIATE;
         PRAGMA application_id = {APPLICATION};
         PRAGMA user_version = {FORMAT};
         CREATE TABLE state (id INTEGER PRIMARY KEY CHECK (id = 1), version INTEGER NOT NULL,
             next_table INTEGER NOT NULL) STRICT;
         INSERT INTO state VALUES (1, 0, 1);
         CREATE TABLE definitions (id INTEGER PRIMARY KEY, database TEXT NOT NULL, name TEXT NOT NULL,
             json TEXT NOT NULL) STRICT;
         CREATE UNIQUE INDEX definitions_name ON definitions (database, name);
         CREATE TABLE identities (table_id INTEGER NOT NULL, column_id INTEGER NOT NULL,
             next INTEGER NOT NULL, PRIMARY KEY (table_id, column_id)) STRICT, WITHOUT ROWID;
         COMMIT;"
    ))?;
    Ok(())
}

/// Whether a file holds reference tables; false for one that was never written to the end.
pub(crate) fn is_initialized(connection: &Connection) -> Result<bool> {
    let application: i64 = connection.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    let format: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if application == 0 && format == 0 {
        let objects: i64 =
            connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        if objects == 0 {
            return Ok(false);
        }
    }
    if application != APPLICATION {
        return Err(ReferenceError::damaged(
            "it is a database of another program",
        ));
    }
    if format > FORMAT {
        let message = format!(
            "the file of reference tables has format {format}, and this version reads up to {FORMAT}"
        );
        return Err(ReferenceError::new("0A000", message));
    }
    Ok(true)
}

/// An index in the file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PhysicalIndex {
    pub(crate) is_unique: bool,
    pub(crate) columns: Vec<u32>,
}

impl PhysicalIndex {
    /// Its name in the file.
    pub(crate) fn name(&self, table: u64) -> String {
        let mut name = format!("{}{table}", if self.is_unique { "k" } else { "i" });
        for column in &self.columns {
            let _ = write!(name, "_{column}");
        }
        name
    }
}

/// The indexes that a table has in the file: those of its keys, its own, and one for each foreign key whose
/// columns no other begins with. Without that, deleting a parent would read the whole table.
pub(crate) fn physical_indexes(table: &ReferenceTable) -> BTreeSet<PhysicalIndex> {
    let mut indexes = BTreeSet::new();
    for key in &table.keys {
        indexes.insert(PhysicalIndex {
            is_unique: true,
            columns: key.columns.clone(),
        });
    }
    for index in &table.indexes {
        indexes.insert(PhysicalIndex {
            is_unique: false,
            columns: index.columns.clone(),
        });
    }
    for key in &table.foreign_keys {
        let begins = |index: &PhysicalIndex| {
            let beginning = index.columns.get(..key.columns.len());
            beginning.is_some_and(|columns| key.columns.iter().all(|id| columns.contains(id)))
        };
        if !indexes.iter().any(begins) {
            indexes.insert(PhysicalIndex {
                is_unique: false,
                columns: key.columns.clone(),
            });
        }
    }
    indexes
}

/// The expression by which values of a column are compared, with an alias of the table before it. Intervals
/// compare by their length alone, as in PostgreSQL: a month is 30 days.
pub(crate) fn comparable(column: &ReferenceColumn, alias: &str) -> String {
    let id = column.id;
    if column.kind == ReferenceType::Interval {
        return format!("substr({alias}c{id}, 1, 16)");
    }
    format!("{alias}c{id}")
}

/// The columns with some ids; those that do not exist are damage.
pub(crate) fn columns_of<'a>(
    table: &'a ReferenceTable,
    ids: &[u32],
) -> Result<Vec<&'a ReferenceColumn>> {
    let find = |id: &u32| {
        table
            .columns
            .iter()
            .find(|column| column.id == *id)
            .ok_or_else(|| {
                ReferenceError::damaged(format!("table \"{}\" has no column {id}", table.name))
            })
    };
    ids.iter().map(find).collect()
}

/// Makes an index. Where values are not unique, the error names the key `name`.
pub(crate) fn create_physical_index(
    connection: &Connection,
    table: &ReferenceTable,
    index: &PhysicalIndex,
    name: &str,
) -> Result<()> {
    let columns = columns_of(table, &index.columns)?;
    let expressions: Vec<_> = columns
        .iter()
        .map(|column| comparable(column, ""))
        .collect();
    let sql = format!(
        "CREATE {}INDEX {} ON t{} ({})",
        if index.is_unique { "UNIQUE " } else { "" },
        index.name(table.id),
        table.id,
        expressions.join(", ")
    );
    let Err(error) = connection.execute_batch(&sql) else {
        return Ok(());
    };
    if error.sqlite_error_code() != Some(ErrorCode::ConstraintViolation) {
        return Err(error.into());
    }
    let mut refusal =
        ReferenceError::new("23505", format!("could not create unique index \"{name}\""))
            .with_constraint(&table.name, name);
    refusal.detail = duplicate(connection, table, &columns, &expressions)?;
    Err(refusal)
}

/// One key that occurs several times.
fn duplicate(
    connection: &Connection,
    table: &ReferenceTable,
    columns: &[&ReferenceColumn],
    expressions: &[String],
) -> Result<Option<String>> {
    let listed: Vec<_> = columns
        .iter()
        .map(|column| format!("c{}", column.id))
        .collect();
    let present: Vec<_> = listed
        .iter()
        .map(|column| format!("{column} IS NOT NULL"))
        .collect();
    let sql = format!(
        "SELECT {} FROM t{} WHERE {} GROUP BY {} HAVING count(*) > 1 LIMIT 1",
        listed.join(", "),
        table.id,
        present.join(" AND "),
        expressions.join(", ")
    );
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    let mut cells = Vec::with_capacity(columns.len());
    for position in 0..columns.len() {
        cells.push(Cell::stored(row.get_ref(position)?));
    }
    Ok(Some(format!(
        "Key {} is duplicated.",
        text::key(columns, &cells)
    )))
}

/// Writes the definition of a table, and makes the indexes what it says.
pub(crate) fn store_definition(
    connection: &Connection,
    old: Option<&ReferenceTable>,
    new: &ReferenceTable,
) -> Result<()> {
    let json = serde_json::to_string(new).map_err(ReferenceError::damaged)?;
    let mut statement = connection.prepare_cached(
        "INSERT INTO definitions (id, database, name, json) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (id) DO UPDATE SET name = excluded.name, json = excluded.json",
    )?;
    statement.execute((new.id as i64, &new.database, &new.name, json))?;
    let before = old.map(physical_indexes).unwrap_or_default();
    let after = physical_indexes(new);
    for index in before.difference(&after) {
        drop_physical_index(connection, new.id, index)?;
    }
    for index in after.difference(&before) {
        let key = new.keys.iter().find(|key| key.columns == index.columns);
        let name = key.map_or_else(String::new, |key| key.name.clone());
        create_physical_index(connection, new, index, &name)?;
    }
    Ok(())
}

/// Drops an index.
pub(crate) fn drop_physical_index(
    connection: &Connection,
    table: u64,
    index: &PhysicalIndex,
) -> Result<()> {
    connection.execute_batch(&format!("DROP INDEX {}", index.name(table)))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::{ForeignKey, ForeignKeyAction, UniqueKey};

    fn key(columns: &[u32]) -> UniqueKey {
        let columns = columns.to_vec();
        UniqueKey {
            name: "k".into(),
            columns,
            is_primary: false,
            is_constraint: true,
        }
    }

    #[test]
    fn a_foreign_key_shares_an_index_that_begins_with_its_columns() {
        let foreign = |columns: &[u32]| ForeignKey {
            name: "f".into(),
            columns: columns.to_vec(),
            parent: 1,
            parent_columns: columns.to_vec(),
            on_delete: ForeignKeyAction::Refuse,
            on_update: ForeignKeyAction::Refuse,
        };
        let mut table = ReferenceTable {
            id: 7,
            database: "d".into(),
            name: "t".into(),
            columns: Vec::new(),
            next_column: 1,
            keys: vec![key(&[2, 1, 3]), key(&[2, 1, 3])],
            foreign_keys: vec![foreign(&[1, 2])],
            checks: Vec::new(),
            indexes: Vec::new(),
        };
        let names = |table: &ReferenceTable| -> Vec<_> {
            physical_indexes(table)
                .iter()
                .map(|index| index.name(7))
                .collect()
        };
        assert_eq!(names(&table), ["k7_2_1_3"]);
        table.foreign_keys.push(foreign(&[3]));
        assert_eq!(names(&table), ["i7_3", "k7_2_1_3"]);
    }
}
