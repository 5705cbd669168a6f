//! The numbers of identity columns and of rows.
//!
//! The file keeps the next number of each column. As PostgreSQL's sequences, numbers drawn by a transaction that
//! is rolled back are not drawn again: a conflict with a row that was given its number by hand passes by itself.
//! So the last number drawn is kept in memory, too, for as long as the process runs.

use crate::definition::{ReferenceColumn, ReferenceTable, ReferenceType};
use crate::error::{ReferenceError, Result};
use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension};
use std::collections::{HashMap, HashSet};

/// In place of a column's id: the counter of a table's rows.
pub(crate) const ROWS: u32 = 0;

type Key = (u64, u32);

/// The next numbers, for the one writer. One entry an identity column at most.
#[derive(Debug, Default)]
pub(crate) struct Identities(Mutex<Drawn>);

#[derive(Debug, Default)]
struct Drawn {
    next: HashMap<Key, i64>,
    /// Set by hand in the current transaction; forgotten if it goes back.
    restarted: HashSet<Key>,
}

impl Identities {
    /// The next number of a column.
    pub(crate) fn next(&self, connection: &Connection, table: u64, column: u32) -> Result<i64> {
        if let Some(next) = self.0.lock().next.get(&(table, column)) {
            return Ok(*next);
        }
        stored(connection, table, column)
    }

    /// Notes the next number of a column after some were drawn.
    pub(crate) fn draw(
        &self,
        connection: &Connection,
        table: u64,
        column: u32,
        next: i64,
    ) -> Result<()> {
        store(connection, table, column, next)?;
        self.0.lock().next.insert((table, column), next);
        Ok(())
    }

    /// Sets the next number of a column by hand.
    pub(crate) fn restart(
        &self,
        connection: &Connection,
        table: u64,
        column: u32,
        next: i64,
    ) -> Result<()> {
        store(connection, table, column, next)?;
        let mut drawn = self.0.lock();
        drawn.next.insert((table, column), next);
        drawn.restarted.insert((table, column));
        Ok(())
    }

    /// Forgets the numbers of a table that is new or gone.
    pub(crate) fn forget(&self, table: u64) {
        let mut drawn = self.0.lock();
        drawn.next.retain(|key, _| key.0 != table);
        drawn.restarted.retain(|key| key.0 != table);
    }

    /// The transaction is committed.
    pub(crate) fn keep(&self) {
        self.0.lock().restarted.clear();
    }

    /// A part of the transaction went back: what it set by hand is as in the file.
    pub(crate) fn roll_back_part(&self) {
        let Drawn { next, restarted } = &mut *self.0.lock();
        next.retain(|key, _| !restarted.contains(key));
    }

    /// The transaction went back.
    pub(crate) fn roll_back(&self) {
        self.roll_back_part();
        self.keep();
    }
}

/// The next number in the file, 1 if there is none.
pub(crate) fn stored(connection: &Connection, table: u64, column: u32) -> Result<i64> {
    let mut statement = connection
        .prepare_cached("SELECT next FROM identities WHERE table_id = ?1 AND column_id = ?2")?;
    let next = statement
        .query_row((table as i64, column), |row| row.get(0))
        .optional()?;
    Ok(next.unwrap_or(1))
}

/// Writes the next number to the file.
pub(crate) fn store(connection: &Connection, table: u64, column: u32, next: i64) -> Result<()> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO identities (table_id, column_id, next) VALUES (?1, ?2, ?3)
         ON CONFLICT (table_id, column_id) DO UPDATE SET next = excluded.next",
    )?;
    statement.execute((table as i64, column, next))?;
    Ok(())
}

/// Checks that a column can hold a number drawn for it.
pub(crate) fn check_range(
    table: &ReferenceTable,
    column: &ReferenceColumn,
    number: i64,
) -> Result<()> {
    let most = match column.kind {
        ReferenceType::Int2 => i64::from(i16::MAX),
        ReferenceType::Int4 => i64::from(i32::MAX),
        // The last number is not given, so that the next one can always be written down.
        _ => i64::MAX - 1,
    };
    if number <= most {
        return Ok(());
    }
    let sequence = format!("{}_{}_seq", table.name, column.name);
    let message = format!("nextval: reached maximum value of sequence \"{sequence}\" ({most})");
    Err(ReferenceError::new("2200H", message))
}
