//! Inserts rows.

use crate::context::{Context, atomically};
use crate::definition::{IdentityKind, ReferenceColumn, ReferenceTable};
use crate::error::{ReferenceError, Result};
use crate::foreign::check_orphans;
use crate::identity::{ROWS, check_range, store, stored};
use crate::keys::{Conflict, conflict, find, null_value};
use crate::schema::columns_of;
use crate::text;
use crate::value::{Cell, cell, normalized};
use arrow::array::{Array, ArrayRef, RecordBatch};
use rusqlite::{CachedStatement, ErrorCode};
use std::fmt::Write;

/// What happens to a row whose key another row has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnConflict {
    /// The insert is refused.
    Refuse,
    /// The row is left out if it repeats the unique key with these columns (positions in the table), in any order;
    /// `None` for any unique key.
    Skip(Option<Vec<usize>>),
}

/// What an insert did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inserted {
    /// The ids of the new rows.
    pub row_ids: Vec<i64>,
    /// Which rows of the batch they are.
    pub indices: Vec<usize>,
    /// Rows of the batch that were left out, each with the id of the row that has its key.
    pub conflicts: Vec<(usize, i64)>,
}

/// The key columns whose conflicts are skipped.
enum Arbiter<'a> {
    None,
    Any,
    Key(Vec<&'a ReferenceColumn>),
}

/// An identity column of a batch: the next number, and those that rows got.
struct Numbering<'a> {
    column: &'a ReferenceColumn,
    next: i64,
    /// The number of the current row, if it had none.
    current: Option<i64>,
}

/// Inserts the rows of a batch, all or none. `overrides`: whether they may have values for columns that are
/// always generated.
pub(crate) fn insert(
    context: &Context<'_>,
    table: &ReferenceTable,
    rows: &RecordBatch,
    on_conflict: &OnConflict,
    overrides: bool,
) -> Result<Inserted> {
    if rows.num_columns() != table.columns.len() {
        let message = format!(
            "rows for \"{}\" have {} columns",
            table.name,
            rows.num_columns()
        );
        return Err(ReferenceError::new("XX000", message));
    }
    if rows.num_rows() == 0 {
        return Ok(Inserted::default());
    }
    let columns = table.columns.iter().zip(rows.columns());
    let arrays = columns
        .map(|(column, array)| normalized(column, array))
        .collect::<Result<Vec<_>>>()?;
    let arbiter = arbiter(table, on_conflict)?;
    atomically(context.connection, || {
        let first = stored(context.connection, table.id, ROWS)?;
        let inserted = Insertion {
            context,
            table,
            arrays: &arrays,
            arbiter,
            next_row: first,
            overrides,
        }
        .run(rows.num_rows())?;
        let end = first.saturating_add(inserted.row_ids.len() as i64);
        store(context.connection, table.id, ROWS, end)?;
        if end > first {
            for key in &table.foreign_keys {
                let range = Some((first, end - 1));
                check_orphans(context.connection, context.catalog, table, key, range)?;
            }
        }
        Ok(inserted)
    })
}

fn arbiter<'a>(table: &'a ReferenceTable, on_conflict: &OnConflict) -> Result<Arbiter<'a>> {
    let positions = match on_conflict {
        OnConflict::Refuse => return Ok(Arbiter::None),
        OnConflict::Skip(None) => return Ok(Arbiter::Any),
        OnConflict::Skip(Some(positions)) => positions,
    };
    let ids: Vec<_> = positions
        .iter()
        .filter_map(|position| table.columns.get(*position).map(|column| column.id))
        .collect();
    let is_same = |key: &[u32]| {
        key.iter().all(|id| ids.contains(id)) && ids.iter().all(|id| key.contains(id))
    };
    match table.keys.iter().find(|key| is_same(&key.columns)) {
        Some(key) => Ok(Arbiter::Key(columns_of(table, &key.columns)?)),
        None => Err(ReferenceError::new(
            "42P10",
            "there is no unique or exclusion constraint matching the ON CONFLICT specification",
        )),
    }
}

struct Insertion<'a> {
    context: &'a Context<'a>,
    table: &'a ReferenceTable,
    arrays: &'a [ArrayRef],
    arbiter: Arbiter<'a>,
    next_row: i64,
    overrides: bool,
}

impl Insertion<'_> {
    fn run(&mut self, rows: usize) -> Result<Inserted> {
        let Context {
            connection,
            identities,
            ..
        } = *self.context;
        let mut sql = format!("INSERT INTO t{} (r", self.table.id);
        for column in &self.table.columns {
            let _ = write!(sql, ", c{}", column.id);
        }
        sql.push_str(") VALUES (?");
        sql.push_str(&", ?".repeat(self.table.columns.len()));
        sql.push(')');
        let mut statement = connection.prepare_cached(&sql)?;
        let mut numberings = self.numberings()?;
        let mut inserted = Inserted::default();
        let outcome = (0..rows).try_for_each(|row| {
            self.insert_row(&mut statement, &mut numberings, row, &mut inserted)
        });
        // Numbers are used up even if the insert fails, but not if that ended the transaction.
        if !connection.is_autocommit() {
            for numbering in numberings.iter().flatten() {
                identities.draw(
                    connection,
                    self.table.id,
                    numbering.column.id,
                    numbering.next,
                )?;
            }
        }
        outcome.map(|()| inserted)
    }

    fn numberings(&self) -> Result<Vec<Option<Numbering<'_>>>> {
        let Context {
            connection,
            identities,
            ..
        } = *self.context;
        let columns = self.table.columns.iter().zip(self.arrays);
        let numberings = columns.map(|(column, array)| {
            if column.identity.is_none() || array.null_count() == 0 {
                return Ok(None);
            }
            let next = identities.next(connection, self.table.id, column.id)?;
            Ok(Some(Numbering {
                column,
                next,
                current: None,
            }))
        });
        numberings.collect()
    }

    fn insert_row(
        &self,
        statement: &mut CachedStatement<'_>,
        numberings: &mut [Option<Numbering<'_>>],
        row: usize,
        inserted: &mut Inserted,
    ) -> Result<()> {
        let row_id = self.next_row.saturating_add(inserted.row_ids.len() as i64);
        statement.raw_bind_parameter(1, row_id)?;
        let columns = self.table.columns.iter().zip(self.arrays);
        for (position, (column, array)) in columns.enumerate() {
            let mut value = cell(column.kind, array, row)?;
            if let Some(kind) = column.identity {
                if !value.is_null() && kind == IdentityKind::Always && !self.overrides {
                    return Err(given_identity(column));
                }
                if let Some(Some(numbering)) = numberings.get_mut(position) {
                    numbering.current = None;
                    if value.is_null() {
                        value = Cell::Integer(numbering.draw(self.table)?);
                    }
                }
            }
            if value.is_null() && !column.is_nullable {
                return Err(self.null_row(column, row, numberings));
            }
            statement.raw_bind_parameter(position + 2, value)?;
        }
        let Err(error) = statement.raw_execute() else {
            inserted.row_ids.push(row_id);
            inserted.indices.push(row);
            return Ok(());
        };
        if error.sqlite_error_code() != Some(ErrorCode::ConstraintViolation) {
            return Err(error.into());
        }
        let existing = self.existing(row, numberings)?.ok_or(error)?;
        inserted.conflicts.push((row, existing));
        Ok(())
    }

    /// The value of a column in a row of the batch, numbered if the table did it.
    fn value(
        &self,
        column: &ReferenceColumn,
        row: usize,
        numberings: &[Option<Numbering<'_>>],
    ) -> Result<Cell<'_>> {
        let position = self.table.position(column.id);
        let numbering = position.and_then(|position| numberings.get(position)?.as_ref());
        if let Some(number) = numbering.and_then(|numbering| numbering.current) {
            return Ok(Cell::Integer(number));
        }
        match position.and_then(|position| self.arrays.get(position)) {
            Some(array) => cell(column.kind, array, row),
            None => Ok(Cell::Null),
        }
    }

    /// The row that has a key of this one, if the conflict may be skipped; an error otherwise.
    fn existing(&self, row: usize, numberings: &[Option<Numbering<'_>>]) -> Result<Option<i64>> {
        let connection = self.context.connection;
        if let Arbiter::Key(columns) = &self.arbiter {
            let cells = columns
                .iter()
                .map(|column| self.value(column, row, numberings));
            let cells = cells.collect::<Result<Vec<_>>>()?;
            if let Some(existing) = find(connection, self.table, columns, &cells)? {
                return Ok(Some(existing));
            }
        }
        let value_of =
            |column: &ReferenceColumn| Ok(self.value(column, row, numberings)?.into_owned());
        let conflict: Option<Conflict<'_>> = conflict(connection, self.table, None, &value_of)?;
        match (conflict, &self.arbiter) {
            (Some(conflict), Arbiter::Any) => Ok(Some(conflict.row_id)),
            (Some(conflict), _) => Err(conflict.error(self.table)),
            (None, _) => Ok(None),
        }
    }

    fn null_row(
        &self,
        column: &ReferenceColumn,
        row: usize,
        numberings: &[Option<Numbering<'_>>],
    ) -> ReferenceError {
        let error = null_value(self.table, column);
        let cells = self
            .table
            .columns
            .iter()
            .map(|column| self.value(column, row, numberings));
        match cells.collect::<Result<Vec<_>>>() {
            Ok(cells) => {
                let row = text::row(&self.table.columns, &cells);
                error.with_detail(format!("Failing row contains {row}."))
            }
            Err(_) => error,
        }
    }
}

impl Numbering<'_> {
    fn draw(&mut self, table: &ReferenceTable) -> Result<i64> {
        let number = self.next;
        check_range(table, self.column, number)?;
        self.next = number + 1;
        self.current = Some(number);
        Ok(number)
    }
}

fn given_identity(column: &ReferenceColumn) -> ReferenceError {
    let name = &column.name;
    let message = format!("cannot insert a non-DEFAULT value into column \"{name}\"");
    let detail = format!("Column \"{name}\" is an identity column defined as GENERATED ALWAYS.");
    ReferenceError::new("428C9", message).with_detail(detail)
}
