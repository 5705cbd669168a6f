//! Connections to the file, and the lock of the one writer.
//!
//! SQLite has one writer at a time, and tells others that it is busy. Here they wait for [`WriterLock`] instead, so
//! that SQLite is never busy, and a wait has a deadline and can be cancelled.

use crate::error::{ReferenceError, Result};
use parking_lot::{Condvar, Mutex};
use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Statements that a connection keeps prepared.
const STATEMENTS_MAX: usize = 64;
/// How often a wait looks whether it shall end.
const WAIT: Duration = Duration::from_millis(10);
/// How long a transaction waits for a connection to read with.
const READER_PATIENCE: Duration = Duration::from_secs(30);

/// What a store may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferenceOptions {
    /// Bytes of pages that each connection caches.
    pub cache_bytes: usize,
    /// Transactions that read at the same time; others wait.
    pub readers_max: usize,
}

impl Default for ReferenceOptions {
    fn default() -> Self {
        Self {
            cache_bytes: 2 << 20,
            readers_max: 16,
        }
    }
}

/// The time now, for deadlines of waits alone.
#[expect(
    clippy::disallowed_methods,
    reason = "a wait needs a deadline by the machine's clock; no data depends on it"
)]
fn now() -> Instant {
    Instant::now()
}

/// Opens the file. It must exist unless `creates`.
pub(crate) fn connect(
    file: &Path,
    options: &ReferenceOptions,
    creates: bool,
) -> Result<Connection> {
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if creates {
        flags |= OpenFlags::SQLITE_OPEN_CREATE;
    }
    let connection = Connection::open_with_flags(file, flags)?;
    connection.busy_timeout(Duration::from_secs(10))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    let cache_kib = (options.cache_bytes / 1024).clamp(64, 1 << 20);
    connection.execute_batch(&format!(
        "PRAGMA journal_mode = WAL;
         PRAGMA synchronous = FULL;
         PRAGMA cache_size = -{cache_kib};
         PRAGMA temp_store = FILE;
         PRAGMA wal_autocheckpoint = 1000;
         PRAGMA journal_size_limit = 16777216;
         PRAGMA cell_size_check = ON;
         PRAGMA trusted_schema = OFF;"
    ))?;
    Ok(connection)
}

/// Who may write.
#[derive(Debug, Default)]
pub(crate) struct WriterLock {
    is_held: Mutex<bool>,
    freed: Condvar,
}

/// The right to write, until it is dropped.
pub(crate) struct WriterGuard(Arc<WriterLock>);

impl WriterLock {
    /// Waits at most `patience` for the right to write.
    pub(crate) fn acquire(
        self: &Arc<Self>,
        patience: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<WriterGuard> {
        let mut is_held = self.is_held.lock();
        if *is_held {
            let deadline = now().checked_add(patience);
            while *is_held {
                if stop() {
                    let message = "canceling statement due to user request";
                    return Err(ReferenceError::new("57014", message));
                }
                if deadline.is_some_and(|deadline| now() >= deadline) {
                    let message = "canceling statement due to lock timeout";
                    return Err(ReferenceError::new("55P03", message));
                }
                self.freed.wait_for(&mut is_held, WAIT);
            }
        }
        *is_held = true;
        Ok(WriterGuard(self.clone()))
    }
}

impl Drop for WriterGuard {
    fn drop(&mut self) {
        *self.0.is_held.lock() = false;
        self.0.freed.notify_one();
    }
}

/// The connections.
pub(crate) struct Pool {
    file: PathBuf,
    options: ReferenceOptions,
    state: Mutex<PoolState>,
    freed: Condvar,
}

#[derive(Default)]
struct PoolState {
    /// The last one given back is the next one taken: its cache is warm.
    idle: Vec<Connection>,
    readers: usize,
}

impl Pool {
    pub(crate) fn new(file: PathBuf, options: ReferenceOptions) -> Self {
        let options = ReferenceOptions {
            readers_max: options.readers_max.max(1),
            ..options
        };
        Self {
            file,
            options,
            state: Mutex::default(),
            freed: Condvar::new(),
        }
    }

    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    pub(crate) fn options(&self) -> &ReferenceOptions {
        &self.options
    }

    /// A connection to read with; it may write later.
    pub(crate) fn reader(self: &Arc<Self>) -> Result<Lease> {
        let mut state = self.state.lock();
        if state.readers >= self.options.readers_max {
            let deadline = now() + READER_PATIENCE;
            while state.readers >= self.options.readers_max {
                if now() >= deadline {
                    let message = "too many transactions read reference tables";
                    return Err(ReferenceError::new("53300", message));
                }
                self.freed.wait_for(&mut state, WAIT);
            }
        }
        state.readers += 1;
        let idle = state.idle.pop();
        drop(state);
        // From here on, the lease counts as a reader.
        let mut lease = Lease {
            pool: self.clone(),
            connection: idle,
            is_reader: true,
        };
        if lease.connection.is_none() {
            lease.connection = Some(connect(&self.file, &self.options, false)?);
        }
        Ok(lease)
    }

    /// The connection of the writer, who waits for no reader.
    pub(crate) fn writer(self: &Arc<Self>) -> Result<Lease> {
        let idle = self.state.lock().idle.pop();
        let connection = match idle {
            Some(connection) => connection,
            None => connect(&self.file, &self.options, false)?,
        };
        Ok(Lease {
            pool: self.clone(),
            connection: Some(connection),
            is_reader: false,
        })
    }
}

/// A connection, until it is dropped. A transaction that is still open then is rolled back.
pub(crate) struct Lease {
    pool: Arc<Pool>,
    connection: Option<Connection>,
    is_reader: bool,
}

impl Lease {
    pub(crate) fn connection(&self) -> Result<&Connection> {
        self.connection
            .as_ref()
            .ok_or_else(|| ReferenceError::new("XX000", "no connection"))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let sound = self.connection.take().filter(|connection| {
            connection.is_autocommit() || connection.execute_batch("ROLLBACK").is_ok()
        });
        let mut state = self.pool.state.lock();
        state.readers -= usize::from(self.is_reader);
        if let Some(connection) = sound
            && state.idle.len() <= self.pool.options.readers_max
        {
            state.idle.push(connection);
        }
        drop(state);
        self.pool.freed.notify_one();
    }
}
