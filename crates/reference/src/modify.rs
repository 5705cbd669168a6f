//! Updates and deletes rows by their ids, with all that follows by foreign keys.

use crate::context::{Context, atomically};
use crate::definition::{IdentityKind, ReferenceColumn, ReferenceTable};
use crate::error::{ReferenceError, Result};
use crate::foreign::{Consequence, Consequences};
use crate::keys::{conflict, null_value, read_cells};
use crate::rows::column_at;
use crate::schema::columns_of;
use crate::value::{Cell, cell, normalized};
use arrow::array::RecordBatch;
use rusqlite::ErrorCode;
use std::sync::Arc;

/// Deletes rows; returns how many of them there were.
pub(crate) fn delete(
    context: &Context<'_>,
    table: &Arc<ReferenceTable>,
    row_ids: &[i64],
) -> Result<u64> {
    atomically(context.connection, || {
        let mut consequences = Consequences::default();
        let deleted = delete_rows(context, table, row_ids, &mut consequences)?;
        follow(context, consequences)?;
        Ok(deleted)
    })
}

/// Sets columns (positions) of rows to the values of a batch, one row of it for each id.
pub(crate) fn update(
    context: &Context<'_>,
    table: &Arc<ReferenceTable>,
    row_ids: &[i64],
    positions: &[usize],
    values: &RecordBatch,
) -> Result<u64> {
    if values.num_columns() != positions.len() || values.num_rows() != row_ids.len() {
        let message = format!("values for \"{}\" do not match its rows", table.name);
        return Err(ReferenceError::new("XX000", message));
    }
    if positions.is_empty() {
        return Ok(row_ids.len() as u64);
    }
    let mut columns = Vec::with_capacity(positions.len());
    let mut arrays = Vec::with_capacity(positions.len());
    for (position, array) in positions.iter().zip(values.columns()) {
        let column = column_at(table, *position)?;
        if column.identity == Some(IdentityKind::Always) {
            let message = format!("column \"{}\" can only be updated to DEFAULT", column.name);
            let detail = format!(
                "Column \"{}\" is an identity column defined as GENERATED ALWAYS.",
                column.name
            );
            return Err(ReferenceError::new("428C9", message).with_detail(detail));
        }
        arrays.push(normalized(column, array)?);
        columns.push(column);
    }
    atomically(context.connection, || {
        let mut consequences = Consequences::default();
        let mut change = Change::new(context, table, &columns);
        let mut updated = 0;
        for (index, row) in row_ids.iter().enumerate() {
            let cells = columns.iter().zip(&arrays);
            let cells = cells.map(|(column, array)| cell(column.kind, array, index));
            let cells = cells.collect::<Result<Vec<_>>>()?;
            updated += u64::from(change.apply(*row, &cells, &mut consequences)?);
        }
        follow(context, consequences)?;
        Ok(updated)
    })
}

/// Carries out what follows, and checks the keys in the end.
fn follow(context: &Context<'_>, mut consequences: Consequences) -> Result<()> {
    while let Some(consequence) = consequences.queue.pop_front() {
        match consequence {
            Consequence::Delete { table, rows } => {
                delete_rows(context, &table, &rows, &mut consequences)?;
            }
            Consequence::Change {
                table,
                rows,
                columns,
                cells,
            } => {
                let columns = columns_of(&table, &columns)?;
                let mut change = Change::new(context, &table, &columns);
                for row in rows {
                    change.apply(row, &cells, &mut consequences)?;
                }
            }
        }
    }
    consequences.check(context)
}

fn delete_rows(
    context: &Context<'_>,
    table: &ReferenceTable,
    row_ids: &[i64],
    consequences: &mut Consequences,
) -> Result<u64> {
    let connection = context.connection;
    let has_children = context.catalog.referring(table.id).next().is_some();
    let sql = format!("DELETE FROM t{} WHERE r = ?1", table.id);
    let mut statement = connection.prepare_cached(&sql)?;
    let mut deleted = 0;
    let mut old_keys = Vec::new();
    for row in row_ids {
        if has_children {
            old_keys.push(Consequences::old_keys(context, table, None, *row)?);
        }
        deleted += statement.execute([row])? as u64;
    }
    // Only now: rows of the same call that refer to each other are gone together.
    for old in old_keys {
        consequences.deleted(connection, old)?;
    }
    Ok(deleted)
}

/// A change of the same columns of several rows.
struct Change<'a> {
    context: &'a Context<'a>,
    table: &'a Arc<ReferenceTable>,
    columns: &'a [&'a ReferenceColumn],
    ids: Vec<u32>,
    sql: String,
    is_parent_key: bool,
}

impl<'a> Change<'a> {
    fn new(
        context: &'a Context<'a>,
        table: &'a Arc<ReferenceTable>,
        columns: &'a [&'a ReferenceColumn],
    ) -> Self {
        let ids: Vec<_> = columns.iter().map(|column| column.id).collect();
        let sets: Vec<_> = ids.iter().map(|id| format!("c{id} = ?")).collect();
        let sql = format!("UPDATE t{} SET {} WHERE r = ?", table.id, sets.join(", "));
        let is_parent_key = context
            .catalog
            .referring_keys(table.id)
            .any(|(_, key)| key.parent_columns.iter().any(|id| ids.contains(id)));
        Self {
            context,
            table,
            columns,
            ids,
            sql,
            is_parent_key,
        }
    }

    /// Changes a row; false if it is gone.
    fn apply(
        &mut self,
        row: i64,
        cells: &[Cell<'_>],
        consequences: &mut Consequences,
    ) -> Result<bool> {
        let connection = self.context.connection;
        for (column, cell) in self.columns.iter().zip(cells) {
            if cell.is_null() && !column.is_nullable {
                return Err(null_value(self.table, column));
            }
        }
        let old = if self.is_parent_key {
            Some(Consequences::old_keys(
                self.context,
                self.table,
                Some(&self.ids),
                row,
            )?)
        } else {
            None
        };
        let mut statement = connection.prepare_cached(&self.sql)?;
        for (number, cell) in cells.iter().enumerate() {
            statement.raw_bind_parameter(number + 1, cell)?;
        }
        statement.raw_bind_parameter(cells.len() + 1, row)?;
        match statement.raw_execute() {
            Ok(0) => return Ok(false),
            Ok(_) => {}
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
                return Err(self.duplicate(row, cells, error));
            }
            Err(error) => return Err(error.into()),
        }
        if let Some(old) = old {
            consequences.changed(connection, self.table, row, old)?;
        }
        consequences.check_parents(self.table, &self.ids, row);
        Ok(true)
    }

    /// Names the key that a changed row repeats.
    fn duplicate(&self, row: i64, cells: &[Cell<'_>], error: rusqlite::Error) -> ReferenceError {
        let connection = self.context.connection;
        let value_of = |column: &ReferenceColumn| {
            if let Some(position) = self.ids.iter().position(|id| *id == column.id) {
                let new = cells.get(position).cloned().unwrap_or(Cell::Null);
                return Ok(new.into_owned());
            }
            let stored = read_cells(connection, self.table, &[column], row)?;
            Ok(stored
                .and_then(|cells| cells.into_iter().next())
                .unwrap_or(Cell::Null))
        };
        match conflict(connection, self.table, Some(row), &value_of) {
            Ok(Some(conflict)) => conflict.error(self.table),
            Ok(None) => error.into(),
            Err(other) => other,
        }
    }
}
