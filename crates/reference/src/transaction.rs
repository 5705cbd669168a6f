//! A transaction: a snapshot of rows and tables, with its own changes.

use crate::alter::{self, check_not_null};
use crate::catalog::ReferenceCatalog;
use crate::context::Context;
use crate::create::{self, NewIndex};
use crate::definition::{NewReferenceTable, ReferenceAlteration, ReferenceColumn, ReferenceTable};
use crate::error::{ReferenceError, Result};
use crate::identity::{check_range, stored};
use crate::insert::{self, Inserted, OnConflict};
use crate::modify;
use crate::scan::{self, ReferenceScanRequest, ScanPage};
use crate::session::{OpenTransaction, StoreShared};
use arrow::array::RecordBatch;
use parking_lot::Mutex;
use rusqlite::InterruptHandle;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A transaction. Its methods may be called from several threads, one after the other. Dropping it rolls it back.
///
/// Each method changes all of what it is asked to change, or nothing. A full disk or a failure of the disk ends the
/// whole transaction; then all methods refuse with 25P02.
pub struct ReferenceTransaction(Mutex<OpenTransaction>, Interruption);

/// How a call is interrupted. Once the transaction ends, its connection may serve another one.
#[derive(Default)]
struct Interruption(Mutex<Option<InterruptHandle>>);

impl fmt::Debug for ReferenceTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReferenceTransaction")
            .field(&self.0)
            .finish()
    }
}

impl ReferenceTransaction {
    /// A snapshot from now on.
    pub(crate) fn read(shared: Arc<StoreShared>) -> Result<Self> {
        Ok(Self::with_session(OpenTransaction::read(shared)?))
    }

    /// A transaction that writes.
    pub(crate) fn write(
        shared: Arc<StoreShared>,
        patience: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<Self> {
        Ok(Self::with_session(OpenTransaction::write(
            shared, patience, stop,
        )?))
    }

    fn with_session(session: OpenTransaction) -> Self {
        let handle = session.interrupt_handle();
        Self(Mutex::new(session), Interruption(Mutex::new(handle)))
    }

    /// Makes the call that runs on another thread, if there is one, fail soon, with 57014. SQLite may take back the
    /// whole transaction then.
    pub fn interrupt(&self) {
        if let Some(handle) = &*self.1.0.lock() {
            handle.interrupt();
        }
    }

    /// Whether it may write.
    pub fn is_write(&self) -> bool {
        self.0.lock().is_write()
    }

    /// Turns a snapshot into a writing transaction, without effect if it is one. Refuses with 40001 if another
    /// transaction was committed since the snapshot; waits as [`crate::ReferenceStore::write`] does.
    pub fn upgrade(&self, patience: Duration, stop: &dyn Fn() -> bool) -> Result<()> {
        self.0.lock().upgrade(patience, stop)
    }

    /// A table by name, as this transaction sees it.
    pub fn table(&self, database: &str, name: &str) -> Option<Arc<ReferenceTable>> {
        self.0.lock().catalog().table(database, name).cloned()
    }

    /// The tables of a database by name, as this transaction sees them.
    pub fn tables(&self, database: &str) -> Vec<Arc<ReferenceTable>> {
        self.0.lock().catalog().tables(database).cloned().collect()
    }

    /// Creates a table.
    pub fn create_table(&self, new: &NewReferenceTable) -> Result<Arc<ReferenceTable>> {
        let mut session = self.0.lock();
        session.take_name(&new.database, &new.name);
        session.change(|context| {
            let (id, catalog) = create::create_table(context, new)?;
            let table = by_id(&catalog, id)?;
            Ok((table, Some(catalog)))
        })
    }

    /// Drops a table; false if there is none. With `cascades`, the foreign keys of other tables to it go, too.
    pub fn drop_table(&self, database: &str, name: &str, cascades: bool) -> Result<bool> {
        self.0.lock().change(|context| {
            let Some(table) = context.catalog.table(database, name) else {
                return Ok((false, None));
            };
            Ok((true, Some(create::drop_table(context, table, cascades)?)))
        })
    }

    /// Changes a table. A new column has no values, except an identity column: its rows are numbered.
    pub fn alter_table(
        &self,
        database: &str,
        name: &str,
        change: &ReferenceAlteration,
    ) -> Result<Arc<ReferenceTable>> {
        let mut session = self.0.lock();
        if let ReferenceAlteration::Rename(to) = change {
            session.take_name(database, to);
        }
        session.change(|context| {
            let table = context.catalog.existing(database, name)?;
            let catalog = alter::alter_table(context, table, change)?;
            let altered = by_id(&catalog, table.id)?;
            let is_changed = **table != *altered;
            Ok((altered, is_changed.then_some(catalog)))
        })
    }

    /// Refuses with 23502 if a column has no value in some row.
    pub fn check_not_null(&self, table: &ReferenceTable, column: &str) -> Result<()> {
        self.0.lock().with_table(table, |context, table| {
            check_not_null(context.connection, table, column_named(table, column)?)
        })
    }

    /// Creates an index; returns its name, which is `table_columns_idx` if none is given.
    pub fn create_index(
        &self,
        database: &str,
        table: &str,
        name: Option<String>,
        columns: &[String],
        is_unique: bool,
        if_not_exists: bool,
    ) -> Result<String> {
        self.0.lock().change(|context| {
            let table = context.catalog.existing(database, table)?;
            let index = NewIndex {
                name,
                columns,
                is_unique,
                if_not_exists,
            };
            create::create_index(context, table, index)
        })
    }

    /// Drops an index; false if there is none.
    pub fn drop_index(&self, database: &str, name: &str) -> Result<bool> {
        self.0.lock().change(|context| {
            let catalog = create::drop_index(context, database, name)?;
            Ok((catalog.is_some(), catalog))
        })
    }

    /// Removes all rows; returns how many there were.
    pub fn truncate(&self, table: &ReferenceTable, restarts_identity: bool) -> Result<u64> {
        self.0.lock().change_rows(table, |context, table| {
            create::truncate(context, table, restarts_identity)
        })
    }

    /// The number of rows.
    pub fn count(&self, table: &ReferenceTable) -> Result<u64> {
        self.0.lock().with_table(table, |context, table| {
            let sql = format!("SELECT count(*) FROM t{}", table.id);
            let mut statement = context.connection.prepare_cached(&sql)?;
            Ok(statement.query_row([], |row| row.get::<_, i64>(0))? as u64)
        })
    }

    /// Reads a page of rows.
    pub fn scan(&self, table: &ReferenceTable, request: &ReferenceScanRequest) -> Result<ScanPage> {
        self.0.lock().with_table(table, |context, table| {
            scan::scan(context.connection, table, request)
        })
    }

    /// Reads rows by their ids, in the order of the ids, with all columns. An id without a row is an error.
    pub fn fetch(&self, table: &ReferenceTable, row_ids: &[i64]) -> Result<RecordBatch> {
        self.0.lock().with_table(table, |context, table| {
            scan::fetch(context.connection, table, row_ids)
        })
    }

    /// Inserts rows: all columns of the table in their order. Identity columns are numbered where they are NULL.
    pub fn insert(
        &self,
        table: &ReferenceTable,
        rows: &RecordBatch,
        on_conflict: &OnConflict,
    ) -> Result<Inserted> {
        self.insert_overriding(table, rows, on_conflict, false)
    }

    /// The same; `overrides` says whether rows may have values for columns that the table alone numbers otherwise.
    pub fn insert_overriding(
        &self,
        table: &ReferenceTable,
        rows: &RecordBatch,
        on_conflict: &OnConflict,
        overrides: bool,
    ) -> Result<Inserted> {
        self.0.lock().change_rows(table, |context, table| {
            insert::insert(context, table, rows, on_conflict, overrides)
        })
    }

    /// Sets columns (positions) of rows to values, one row of them for each id. Returns how many rows there were.
    pub fn update(
        &self,
        table: &ReferenceTable,
        row_ids: &[i64],
        columns: &[usize],
        values: &RecordBatch,
    ) -> Result<u64> {
        self.0.lock().change_rows(table, |context, table| {
            modify::update(context, table, row_ids, columns, values)
        })
    }

    /// Deletes rows; returns how many there were.
    pub fn delete(&self, table: &ReferenceTable, row_ids: &[i64]) -> Result<u64> {
        self.0.lock().change_rows(table, |context, table| {
            modify::delete(context, table, row_ids)
        })
    }

    /// The number that the next row gets in an identity column.
    pub fn identity(&self, table: &ReferenceTable, column: &str) -> Result<i64> {
        self.0.lock().with_table(table, |context, table| {
            let column = column_named(table, column)?;
            stored(context.connection, table.id, column.id)
        })
    }

    /// Draws a number of an identity column, as `nextval` does.
    pub fn next_identity(&self, table: &ReferenceTable, column: &str) -> Result<i64> {
        self.0.lock().change_rows(table, |context, table| {
            let Context {
                connection,
                identities,
                ..
            } = *context;
            let column = column_named(table, column)?;
            let number = identities.next(connection, table.id, column.id)?;
            check_range(table, column, number)?;
            identities.draw(connection, table.id, column.id, number + 1)?;
            Ok(number)
        })
    }

    /// Sets the number that the next row gets in an identity column.
    pub fn restart_identity(&self, table: &ReferenceTable, column: &str, next: i64) -> Result<()> {
        self.0.lock().change_rows(table, |context, table| {
            let column = column_named(table, column)?;
            context
                .identities
                .restart(context.connection, table.id, column.id, next)
        })
    }

    /// Sets a savepoint; one of the same name before it is hidden until this one is released.
    pub fn set_savepoint(&self, name: &str) -> Result<()> {
        self.0.lock().set_savepoint(name)
    }

    /// Forgets a savepoint and all after it; their changes stay.
    pub fn release(&self, name: &str) -> Result<()> {
        self.0.lock().release(name)
    }

    /// Goes back to a savepoint, which stays; those after it are forgotten.
    pub fn roll_back_to(&self, name: &str) -> Result<()> {
        self.0.lock().roll_back_to(name)
    }

    /// Makes the changes durable, and visible to others.
    /// Nothing can be done with it afterwards.
    pub fn commit(&self) -> Result<()> {
        *self.1.0.lock() = None;
        self.0.lock().commit()
    }

    /// Lets a test change how the connection behaves.
    #[cfg(test)]
    pub(crate) fn with_connection(&self, change: impl FnOnce(&rusqlite::Connection)) {
        change(self.0.lock().connection().unwrap());
    }

    /// Gives the changes up. Nothing can be done with it afterwards.
    pub fn roll_back(&self) {
        *self.1.0.lock() = None;
        self.0.lock().roll_back();
    }
}

fn by_id(catalog: &ReferenceCatalog, id: u64) -> Result<Arc<ReferenceTable>> {
    catalog
        .by_id(id)
        .cloned()
        .ok_or_else(|| ReferenceError::new("XX000", "the table is gone"))
}

fn column_named<'a>(table: &'a ReferenceTable, name: &str) -> Result<&'a ReferenceColumn> {
    table
        .column(name)
        .ok_or_else(|| ReferenceError::no_column(name, &table.name))
}
