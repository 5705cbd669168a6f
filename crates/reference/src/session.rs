//! The state of a transaction: its connection, its tables, its savepoints.
//!
//! Invariant: the tables in memory are those of the connection's snapshot with the transaction's own changes; each
//! way back, to a savepoint or to the beginning, takes both.

use crate::catalog::{ReferenceCatalog, version};
use crate::context::{Context, atomically, run};
use crate::definition::ReferenceTable;
use crate::error::{ReferenceError, Result, file_error};
use crate::identity::Identities;
use crate::pool::{Lease, Pool, WriterGuard, WriterLock, connect};
use crate::schema;
use crate::scratch::ScratchFolder;
use parking_lot::{Mutex, RwLock};
use rusqlite::{Connection, InterruptHandle};
use std::collections::HashSet;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Savepoints of one transaction.
const SAVEPOINTS_MAX: usize = 10_000;

/// What the transactions of a store share.
pub(crate) struct StoreShared {
    pub(crate) pool: Arc<Pool>,
    pub(crate) writer: Arc<WriterLock>,
    pub(crate) identities: Identities,
    /// The committed tables.
    pub(crate) catalog: RwLock<Arc<ReferenceCatalog>>,
    /// Names, by database and name, that the writer gives to tables and has not committed.
    pub(crate) pending: Mutex<HashSet<(String, String)>>,
    /// Whether the file exists.
    pub(crate) exists: AtomicBool,
    /// Last, so that the connections are closed before the folder goes.
    pub(crate) scratch: Option<ScratchFolder>,
}

impl StoreShared {
    /// Makes the folder and the file. Only the writer calls this.
    fn create_file(&self) -> Result<()> {
        if self.exists.load(Ordering::Acquire) {
            return Ok(());
        }
        let file = self.pool.file();
        let folder = file.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(|error| file_error(folder, &error))?;
        let connection = connect(file, self.pool.options(), true)?;
        if !schema::is_initialized(&connection)? {
            schema::initialize(&connection)?;
        }
        drop(connection);
        sync_folder(folder)?;
        if let Some(parent) = folder
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
        {
            sync_folder(parent)?;
        }
        self.exists.store(true, Ordering::Release);
        Ok(())
    }
}

/// Makes the names in a folder durable.
#[expect(
    clippy::disallowed_methods,
    reason = "SQLite's file is on the machine's own disk"
)]
pub(crate) fn sync_folder(folder: &Path) -> Result<()> {
    let synced = std::fs::File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|error| file_error(folder, &error))
}

struct TransactionSavepoint {
    name: String,
    catalog: Arc<ReferenceCatalog>,
}

/// The state of a transaction. The fields are dropped in their order: first the connection goes back, then the
/// next writer may come.
pub(crate) struct OpenTransaction {
    /// None as long as there is no file.
    lease: Option<Lease>,
    writer: Option<WriterGuard>,
    catalog: Arc<ReferenceCatalog>,
    base: Arc<ReferenceCatalog>,
    savepoints: Vec<TransactionSavepoint>,
    has_ended: bool,
    shared: Arc<StoreShared>,
}

impl fmt::Debug for OpenTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenTransaction")
            .field("is_write", &self.is_write())
            .field("version", &self.catalog.version)
            .finish_non_exhaustive()
    }
}

impl OpenTransaction {
    fn new(shared: Arc<StoreShared>, lease: Option<Lease>, catalog: Arc<ReferenceCatalog>) -> Self {
        let (base, savepoints) = (catalog.clone(), Vec::new());
        Self {
            lease,
            writer: None,
            catalog,
            base,
            savepoints,
            has_ended: false,
            shared,
        }
    }

    /// A snapshot from now on.
    pub(crate) fn read(shared: Arc<StoreShared>) -> Result<Self> {
        if !shared.exists.load(Ordering::Acquire) {
            return Ok(Self::new(shared, None, Arc::default()));
        }
        let lease = shared.pool.reader()?;
        run(lease.connection()?, "BEGIN")?;
        let catalog = snapshot_catalog(&shared, lease.connection()?)?;
        Ok(Self::new(shared, Some(lease), catalog))
    }

    /// A transaction that writes.
    pub(crate) fn write(
        shared: Arc<StoreShared>,
        patience: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<Self> {
        let writer = shared.writer.acquire(patience, stop)?;
        shared.create_file()?;
        let lease = shared.pool.writer()?;
        run(lease.connection()?, "BEGIN IMMEDIATE")?;
        let catalog = snapshot_catalog(&shared, lease.connection()?)?;
        let mut session = Self::new(shared, Some(lease), catalog);
        session.writer = Some(writer);
        Ok(session)
    }

    /// Stops what the connection does. SQLite allows it as long as the connection is open, and does nothing after.
    pub(crate) fn interrupt_handle(&self) -> Option<InterruptHandle> {
        let connection = self.lease.as_ref()?.connection().ok()?;
        Some(connection.get_interrupt_handle())
    }

    pub(crate) fn is_write(&self) -> bool {
        self.writer.is_some()
    }

    pub(crate) fn catalog(&self) -> &ReferenceCatalog {
        &self.catalog
    }

    pub(crate) fn upgrade(&mut self, patience: Duration, stop: &dyn Fn() -> bool) -> Result<()> {
        if self.is_write() {
            return Ok(());
        }
        self.check_open()?;
        let writer = self.shared.writer.acquire(patience, stop)?;
        if self.lease.is_none() {
            self.shared.create_file()?;
            let lease = self.shared.pool.writer()?;
            let connection = lease.connection()?;
            run(connection, "BEGIN IMMEDIATE")?;
            if version(connection)? != self.base.version {
                return Err(serialization_failure());
            }
            for number in 0..self.savepoints.len() {
                connection.execute_batch(&format!("SAVEPOINT s{number}"))?;
            }
            self.lease = Some(lease);
        } else {
            // A write that changes nothing: SQLite refuses it if the snapshot is not the newest.
            let connection = self.connection()?;
            match run(
                connection,
                "UPDATE state SET version = version WHERE id = 0",
            ) {
                Ok(()) => {}
                Err(error) if error.sqlstate == "55P03" => return Err(serialization_failure()),
                Err(error) => return Err(error),
            }
        }
        self.writer = Some(writer);
        Ok(())
    }

    /// The connection, unless an error of the disk ended the transaction.
    pub(crate) fn connection(&self) -> Result<&Connection> {
        self.check_open()?;
        let lease = self
            .lease
            .as_ref()
            .ok_or_else(|| ReferenceError::new("XX000", "there are no reference tables yet"))?;
        let connection = lease.connection()?;
        if connection.is_autocommit() {
            let message =
                "current transaction is aborted, commands ignored until end of transaction block";
            return Err(ReferenceError::new("25P02", message));
        }
        Ok(connection)
    }

    fn check_open(&self) -> Result<()> {
        if self.has_ended {
            return Err(ReferenceError::new("25000", "the transaction has ended"));
        }
        Ok(())
    }

    fn context(&self) -> Result<Context<'_>> {
        let connection = self.connection()?;
        Ok(Context {
            connection,
            catalog: &self.catalog,
            identities: &self.shared.identities,
        })
    }

    /// Works on a table, whose columns must be as the caller knows them. Its keys and names may have changed since;
    /// those of this transaction count.
    pub(crate) fn with_table<T>(
        &self,
        table: &ReferenceTable,
        work: impl FnOnce(&Context<'_>, &Arc<ReferenceTable>) -> Result<T>,
    ) -> Result<T> {
        let known = self.catalog.by_id(table.id);
        let known = known.ok_or_else(|| ReferenceError::no_table(&table.name))?;
        if !std::ptr::eq(Arc::as_ptr(known), table) && !has_same_layout(known, table) {
            let message = format!("the columns of relation \"{}\" have changed", table.name);
            return Err(ReferenceError::new("40001", message));
        }
        work(&self.context()?, known)
    }

    /// Changes rows of a table.
    pub(crate) fn change_rows<T>(
        &self,
        table: &ReferenceTable,
        change: impl FnOnce(&Context<'_>, &Arc<ReferenceTable>) -> Result<T>,
    ) -> Result<T> {
        self.check_write()?;
        self.with_table(table, change)
    }

    /// Changes tables, all of it or nothing.
    pub(crate) fn change<T>(
        &mut self,
        change: impl FnOnce(&Context<'_>) -> Result<(T, Option<ReferenceCatalog>)>,
    ) -> Result<T> {
        self.check_write()?;
        let context = self.context()?;
        let changed = atomically(context.connection, || change(&context));
        if changed.is_err() {
            self.shared.identities.roll_back_part();
        }
        let (value, catalog) = changed?;
        if let Some(catalog) = catalog {
            self.catalog = Arc::new(catalog);
        }
        Ok(value)
    }

    /// Keeps a name for a table of this transaction.
    pub(crate) fn take_name(&self, database: &str, name: &str) {
        let taken = (database.to_owned(), name.to_owned());
        self.shared.pending.lock().insert(taken);
    }

    fn check_write(&self) -> Result<()> {
        if self.is_write() {
            return Ok(());
        }
        Err(ReferenceError::new(
            "25006",
            "cannot change a table in a read-only transaction",
        ))
    }

    pub(crate) fn set_savepoint(&mut self, name: &str) -> Result<()> {
        let number = self.savepoints.len();
        if number >= SAVEPOINTS_MAX {
            let message = format!("a transaction can have at most {SAVEPOINTS_MAX} savepoints");
            return Err(ReferenceError::new("54000", message));
        }
        self.run_savepoint("SAVEPOINT", number)?;
        let catalog = self.catalog.clone();
        self.savepoints.push(TransactionSavepoint {
            name: name.to_owned(),
            catalog,
        });
        Ok(())
    }

    pub(crate) fn release(&mut self, name: &str) -> Result<()> {
        let number = self.savepoint(name)?;
        self.run_savepoint("RELEASE", number)?;
        self.savepoints.truncate(number);
        Ok(())
    }

    pub(crate) fn roll_back_to(&mut self, name: &str) -> Result<()> {
        let number = self.savepoint(name)?;
        self.run_savepoint("ROLLBACK TO", number)?;
        self.savepoints.truncate(number + 1);
        if let Some(savepoint) = self.savepoints.last() {
            self.catalog = savepoint.catalog.clone();
        }
        if self.is_write() {
            self.shared.identities.roll_back_part();
        }
        Ok(())
    }

    fn run_savepoint(&self, verb: &str, number: usize) -> Result<()> {
        if self.lease.is_none() {
            return Ok(());
        }
        run(self.connection()?, &format!("{verb} s{number}"))
    }

    fn savepoint(&self, name: &str) -> Result<usize> {
        let position = self
            .savepoints
            .iter()
            .rposition(|savepoint| savepoint.name == name);
        position.ok_or_else(|| {
            ReferenceError::new("3B001", format!("savepoint \"{name}\" does not exist"))
        })
    }

    /// Makes the changes durable; if that fails, they are gone.
    pub(crate) fn commit(&mut self) -> Result<()> {
        let committed = self.try_commit();
        self.roll_back();
        committed
    }

    /// Ends the transaction: what was not committed is gone.
    pub(crate) fn roll_back(&mut self) {
        if self.is_write() {
            self.shared.identities.roll_back();
            self.shared.pending.lock().clear();
        }
        self.has_ended = true;
        self.savepoints.clear();
        // In this order: the next writer may come when the connection has gone back.
        self.lease = None;
        self.writer = None;
    }

    fn try_commit(&mut self) -> Result<()> {
        if !self.is_write() {
            return Ok(());
        }
        let connection = self.connection()?;
        let is_changed = !Arc::ptr_eq(&self.catalog, &self.base);
        if is_changed {
            run(connection, "UPDATE state SET version = version + 1")?;
        }
        run(connection, "COMMIT")?;
        self.shared.identities.keep();
        if is_changed {
            let mut catalog = self.catalog.as_ref().clone();
            catalog.version = self.base.version + 1;
            *self.shared.catalog.write() = Arc::new(catalog);
        }
        self.shared.pending.lock().clear();
        // Only now may the next writer come: it must see the tables.
        self.lease = None;
        self.writer = None;
        Ok(())
    }
}

impl Drop for OpenTransaction {
    fn drop(&mut self) {
        self.roll_back();
    }
}

/// Whether rows of two definitions have the same columns.
fn has_same_layout(a: &ReferenceTable, b: &ReferenceTable) -> bool {
    let layout = |table: &ReferenceTable| -> Vec<_> {
        table
            .columns
            .iter()
            .map(|column| (column.id, column.kind))
            .collect()
    };
    layout(a) == layout(b)
}

fn serialization_failure() -> ReferenceError {
    ReferenceError::new(
        "40001",
        "could not serialize access due to concurrent update",
    )
}

/// The tables of a connection's snapshot: those in memory, unless a commit is just between the file and memory.
fn snapshot_catalog(
    shared: &StoreShared,
    connection: &Connection,
) -> Result<Arc<ReferenceCatalog>> {
    let version = version(connection)?;
    let current = shared.catalog.read().clone();
    if current.version == version {
        return Ok(current);
    }
    Ok(Arc::new(ReferenceCatalog::load(connection)?))
}
