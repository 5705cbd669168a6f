//! Looks rows up by unique keys, and says which key a row repeats.

use crate::definition::{ReferenceColumn, ReferenceTable, UniqueKey};
use crate::error::{ReferenceError, Result};
use crate::schema::{columns_of, comparable};
use crate::text;
use crate::value::Cell;
use rusqlite::{Connection, OptionalExtension};
use std::fmt::Write;

/// `c1 = ?1 AND c2 = ?2`, for columns with an alias before them.
pub(crate) fn equals(columns: &[&ReferenceColumn], alias: &str) -> String {
    let mut condition = String::with_capacity(16 * columns.len());
    for (number, column) in columns.iter().enumerate() {
        if number > 0 {
            condition.push_str(" AND ");
        }
        let _ = write!(condition, "{} = ?{}", comparable(column, alias), number + 1);
    }
    condition
}

/// The row that has a key, if it has no NULL.
pub(crate) fn find(
    connection: &Connection,
    table: &ReferenceTable,
    columns: &[&ReferenceColumn],
    cells: &[Cell<'_>],
) -> Result<Option<i64>> {
    if cells.iter().any(Cell::is_null) {
        return Ok(None);
    }
    let sql = format!(
        "SELECT r FROM t{} WHERE {} LIMIT 1",
        table.id,
        equals(columns, "")
    );
    let mut statement = connection.prepare_cached(&sql)?;
    for (number, (column, cell)) in columns.iter().zip(cells).enumerate() {
        statement.raw_bind_parameter(number + 1, cell.clone().comparable(column.kind))?;
    }
    let mut rows = statement.raw_query();
    match rows.next()? {
        Some(row) => Ok(Some(row.get(0)?)),
        None => Ok(None),
    }
}

/// Some columns of a row; `None` if it is gone.
pub(crate) fn read_cells(
    connection: &Connection,
    table: &ReferenceTable,
    columns: &[&ReferenceColumn],
    row_id: i64,
) -> Result<Option<Vec<Cell<'static>>>> {
    let names: Vec<_> = columns
        .iter()
        .map(|column| format!("c{}", column.id))
        .collect();
    let sql = format!(
        "SELECT {} FROM t{} WHERE r = ?1",
        names.join(", "),
        table.id
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let read = |row: &rusqlite::Row<'_>| {
        let cells = (0..columns.len()).map(|position| row.get_ref(position).map(Cell::stored));
        cells.collect::<rusqlite::Result<Vec<_>>>()
    };
    Ok(statement.query_row([row_id], read).optional()?)
}

/// A row that stands in the way of another.
pub(crate) struct Conflict<'a> {
    pub(crate) key: &'a UniqueKey,
    pub(crate) row_id: i64,
    pub(crate) cells: Vec<Cell<'static>>,
}

/// The first key of a table for which another row than `own` has the values that `value_of` gives for columns.
pub(crate) fn conflict<'a>(
    connection: &Connection,
    table: &'a ReferenceTable,
    own: Option<i64>,
    value_of: &dyn Fn(&ReferenceColumn) -> Result<Cell<'static>>,
) -> Result<Option<Conflict<'a>>> {
    for key in &table.keys {
        let columns = columns_of(table, &key.columns)?;
        let cells = columns
            .iter()
            .map(|column| value_of(column))
            .collect::<Result<Vec<_>>>()?;
        let found = find(connection, table, &columns, &cells)?;
        if let Some(row_id) = found.filter(|found| Some(*found) != own) {
            return Ok(Some(Conflict { key, row_id, cells }));
        }
    }
    Ok(None)
}

impl Conflict<'_> {
    /// The error for a row that repeats this key.
    pub(crate) fn error(&self, table: &ReferenceTable) -> ReferenceError {
        let name = &self.key.name;
        let message = format!("duplicate key value violates unique constraint \"{name}\"");
        let error = ReferenceError::new("23505", message).with_constraint(&table.name, name);
        match columns_of(table, &self.key.columns) {
            Ok(columns) => {
                let key = text::key(&columns, &self.cells);
                error.with_detail(format!("Key {key} already exists."))
            }
            Err(_) => error,
        }
    }
}

/// The error for a row without a value in a column.
pub(crate) fn null_value(table: &ReferenceTable, column: &ReferenceColumn) -> ReferenceError {
    ReferenceError::missing_value(&table.name, &column.name)
}
