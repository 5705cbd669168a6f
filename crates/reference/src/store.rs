//! The store: one file of SQLite with the reference tables of all databases.

use crate::catalog::ReferenceCatalog;
use crate::definition::ReferenceTable;
use crate::error::{ReferenceError, Result, file_error};
use crate::identity::Identities;
use crate::pool::{Pool, ReferenceOptions, WriterLock, connect};
use crate::schema;
use crate::scratch::ScratchFolder;
use crate::session::{StoreShared, sync_folder};
use crate::transaction::ReferenceTransaction;
use crate::verify;
use parking_lot::{Mutex, RwLock};
use rusqlite::Connection;
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The name of the file in its folder.
const FILE: &str = "tables.db";
/// Files up to this size are checked page by page when they are opened.
const CHECKED_BYTES_MAX: u64 = 64 << 20;
/// How long dropping a database waits for the writer.
const DROP_PATIENCE: Duration = Duration::from_mins(1);

/// The store of reference tables. Clones are the same store.
#[derive(Clone)]
pub struct ReferenceStore(Arc<StoreShared>);

impl fmt::Debug for ReferenceStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.0.pool.file();
        f.debug_struct("ReferenceStore")
            .field("file", &file)
            .finish_non_exhaustive()
    }
}

impl ReferenceStore {
    /// Opens the store in a folder. The folder and the file are made by the first transaction that writes; until
    /// then there are no tables. One process at a time may have a folder open.
    pub fn open(dir: &Path, options: ReferenceOptions) -> Result<Self> {
        Self::open_with(dir, options, None)
    }

    /// A store that is gone when it is dropped.
    pub fn in_memory() -> Result<Self> {
        let scratch = ScratchFolder::create()?;
        let folder = scratch.path().to_owned();
        Self::open_with(&folder, ReferenceOptions::default(), Some(scratch))
    }

    fn open_with(
        dir: &Path,
        options: ReferenceOptions,
        scratch: Option<ScratchFolder>,
    ) -> Result<Self> {
        let file = dir.join(FILE);
        let size = match std::fs::metadata(&file) {
            Ok(metadata) => metadata.len(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
            Err(error) => return Err(file_error(&file, &error)),
        };
        let mut catalog = ReferenceCatalog::default();
        let mut exists = false;
        if size > 0 {
            let loaded = load(&file, size, &options).map_err(|mut error| {
                error.message = format!("{}: {}", file.display(), error.message);
                error
            })?;
            if let Some(loaded) = loaded {
                catalog = loaded;
                exists = true;
            }
        }
        Ok(Self(Arc::new(StoreShared {
            pool: Arc::new(Pool::new(file, options)),
            writer: Arc::new(WriterLock::default()),
            identities: Identities::default(),
            catalog: RwLock::new(Arc::new(catalog)),
            pending: Mutex::default(),
            exists: AtomicBool::new(exists),
            scratch,
        })))
    }

    /// Whether there is a file, or the store is in memory.
    pub fn exists(&self) -> bool {
        self.0.scratch.is_some() || self.0.exists.load(Ordering::Acquire)
    }

    /// A committed table by name. It is known without reading the file.
    pub fn table(&self, database: &str, name: &str) -> Option<Arc<ReferenceTable>> {
        self.0.catalog.read().table(database, name).cloned()
    }

    /// The committed tables of a database by name.
    pub fn tables(&self, database: &str) -> Vec<Arc<ReferenceTable>> {
        self.0.catalog.read().tables(database).cloned().collect()
    }

    /// The databases that have committed tables.
    pub fn databases(&self) -> BTreeSet<String> {
        let catalog = self.0.catalog.read();
        catalog.all().map(|table| table.database.clone()).collect()
    }

    /// Whether a table has a name, or the writer gives it to one.
    pub fn is_taken(&self, database: &str, name: &str) -> bool {
        let pending = (database.to_owned(), name.to_owned());
        self.table(database, name).is_some() || self.0.pending.lock().contains(&pending)
    }

    /// Grows with every committed change of tables.
    pub fn version(&self) -> u64 {
        self.0.catalog.read().version
    }

    /// Begins a transaction that reads: a snapshot from now on.
    pub fn read(&self) -> Result<ReferenceTransaction> {
        ReferenceTransaction::read(self.0.clone())
    }

    /// Begins a transaction that writes. There is one at a time: waits for it at most `patience` (55P03), and
    /// until `stop` returns true (57014).
    pub fn write(
        &self,
        patience: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<ReferenceTransaction> {
        ReferenceTransaction::write(self.0.clone(), patience, stop)
    }

    /// Checks the file, the tables in it, and that all rows are as their tables say; returns what is wrong.
    pub fn verify(&self) -> Result<Vec<String>> {
        if !self.0.exists.load(Ordering::Acquire) {
            return Ok(Vec::new());
        }
        let lease = self.0.pool.reader()?;
        verify::verify(lease.connection()?)
    }

    /// Writes a consistent copy to a new file and makes it durable. Without a file, there is nothing to copy.
    pub fn backup_to(&self, file: &Path) -> Result<()> {
        if !self.0.exists.load(Ordering::Acquire) {
            return Ok(());
        }
        let path = file.to_str().ok_or_else(|| {
            let message = format!("the path \"{}\" is not UTF-8", file.display());
            ReferenceError::new("58030", message)
        })?;
        let lease = self.0.pool.reader()?;
        lease.connection()?.execute("VACUUM INTO ?1", [path])?;
        sync_folder(file)?;
        match file
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
        {
            Some(parent) => sync_folder(parent),
            None => sync_folder(Path::new(".")),
        }
    }

    /// Drops all tables of a database, those that a transaction is about to commit too.
    pub fn drop_database(&self, database: &str) -> Result<()> {
        if !self.exists() {
            return Ok(());
        }
        let transaction = self.write(DROP_PATIENCE, &|| false)?;
        for table in transaction.tables(database) {
            transaction.drop_table(database, &table.name, true)?;
        }
        transaction.commit()
    }
}

/// The tables of a file; `None` if it was never written to the end. Refuses a damaged file.
fn load(file: &Path, size: u64, options: &ReferenceOptions) -> Result<Option<ReferenceCatalog>> {
    let connection = connect(file, options, false)?;
    if !schema::is_initialized(&connection)? {
        return Ok(None);
    }
    if size <= CHECKED_BYTES_MAX {
        quick_check(&connection)?;
    }
    let catalog = ReferenceCatalog::load(&connection)?;
    match verify::differences(&connection, &catalog)?.first() {
        Some(difference) => Err(ReferenceError::damaged(difference)),
        None => Ok(Some(catalog)),
    }
}

/// Refuses a file with damaged pages.
fn quick_check(connection: &Connection) -> Result<()> {
    let finding: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if finding == "ok" {
        Ok(())
    } else {
        Err(ReferenceError::damaged(finding))
    }
}

#[cfg(test)]
mod tests {
    use super::ReferenceStore;
    use crate::definition::{NewColumn, NewReferenceTable, ReferenceType};
    use crate::insert::OnConflict;
    use crate::pool::ReferenceOptions;
    use crate::transaction::ReferenceTransaction;
    use arrow::array::{ArrayRef, RecordBatch, StringArray};
    use std::sync::Arc;
    use std::time::Duration;

    fn write(store: &ReferenceStore) -> ReferenceTransaction {
        store.write(Duration::ZERO, &|| false).unwrap()
    }

    #[test]
    fn a_full_disk_is_an_error_and_leaves_what_was_committed() {
        let folder = tempfile::tempdir().unwrap();
        let store = ReferenceStore::open(folder.path(), ReferenceOptions::default()).unwrap();
        let name = NewColumn {
            name: "a".into(),
            kind: ReferenceType::Text,
            is_nullable: true,
            default: None,
            identity: None,
        };
        let (database, constraints) = ("d".to_owned(), Vec::new());
        let new = NewReferenceTable {
            database,
            name: "t".into(),
            columns: vec![name],
            constraints,
        };
        let transaction = write(&store);
        let table = transaction.create_table(&new).unwrap();
        transaction.commit().unwrap();
        let text: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(100_000)]));
        let rows = RecordBatch::try_from_iter([("a", text)]).unwrap();
        let transaction = write(&store);
        transaction.with_connection(|connection| {
            connection
                .execute_batch("PRAGMA max_page_count = 20")
                .unwrap();
        });
        let error = transaction
            .insert(&table, &rows, &OnConflict::Refuse)
            .unwrap_err();
        assert_eq!(error.sqlstate, "53100");
        // The transaction may have ended; it never does half of what it is asked to do.
        match transaction.count(&table) {
            Ok(count) => assert_eq!(count, 0),
            Err(error) => {
                assert_eq!(error.sqlstate, "25P02");
                assert_eq!(transaction.commit().unwrap_err().sqlstate, "25P02");
            }
        }
        let transaction = write(&store);
        transaction.with_connection(|connection| {
            connection
                .execute_batch("PRAGMA max_page_count = 1000000")
                .unwrap();
        });
        transaction
            .insert(&table, &rows, &OnConflict::Refuse)
            .unwrap();
        transaction.commit().unwrap();
        assert_eq!(store.read().unwrap().count(&table).unwrap(), 1);
        assert!(store.verify().unwrap().is_empty());
    }
}
