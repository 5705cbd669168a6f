//! The engine: shards, catalog and background threads combined behind one handle.

mod deletes;
mod inner;
mod redeclare;
mod refresh;
mod replaced;
mod retype;
mod upkeep;
mod warning_throttle;
mod write;

use crate::background::BackgroundThreads;
use crate::backup::{self, BackupOptions, BackupReport};
use crate::catalog::{OtherTables, TableChange, TableSpec};
use crate::commit::CommitChange;
use crate::compaction::CompactionInfo;
use crate::error::{EngineError, Result};
use crate::maintain::TableCompaction;
use crate::memory::MemoryAccountant;
use crate::options::EngineOptions;
use crate::reference_file::{self, CopyReference};
use crate::shard::Shard;
use crate::snapshot::TableSnapshot;
use crate::status::{EngineStatus, SegmentInfo};
use deletes::DELETE_HEAD_BYTES;
use inner::EngineInner;
use marigram_env::Env;
use marigram_model::{RetentionPolicies, TableId, TableSchema, WriteBatch};
use marigram_wal::RoomPromise;
pub use replaced::ReplacedCount;
pub use retype::{ConvertedColumn, RetypeOutcome, RetypeRequest, UnfitValue};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use write::WriteOrigin;
pub use write::{RejectedRow, TableGrowth, WriteOptions, WriteReport};

/// An open data directory. Cheap to clone (one `Arc`); all methods block, and may be called from
/// any thread. Dropping the last clone stops the threads; what was acknowledged is then as durable
/// as [`Durability`](crate::Durability) promises.
#[derive(Clone, Debug)]
pub struct Engine {
    handle: Arc<EngineHandle>,
}

/// The part that the clones of an engine share. Threads hold only `inner`, so that dropping the
/// last clone ends them.
#[derive(Debug)]
struct EngineHandle {
    inner: Arc<EngineInner>,
    threads: BackgroundThreads,
}

impl Drop for EngineHandle {
    fn drop(&mut self) {
        self.inner.bell.stop();
        self.threads.join();
        self.inner.unlock();
    }
}

impl Engine {
    /// Opens or creates a data directory. Recovers first.
    ///
    /// # Errors
    /// If it is open elsewhere, the file system fails, or something indispensable is damaged: the
    /// catalog, a manifest, a series log, or the log before its tail.
    pub fn open(env: Env, dir: &Path, options: EngineOptions) -> Result<Self> {
        let memory = Arc::new(MemoryAccountant::new(options.memory_limit_bytes));
        Self::open_on(memory, env, dir, options)
    }

    /// Like [`open`](Self::open), with an existing accountant, so that recovery can be watched,
    /// too. The accountant's limit applies, rather than that of the options.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_on(
        memory: Arc<MemoryAccountant>,
        env: Env,
        dir: &Path,
        options: EngineOptions,
    ) -> Result<Self> {
        let inner = Arc::new(EngineInner::open(memory, env, dir, options)?);
        let handle = EngineHandle {
            inner,
            threads: BackgroundThreads::default(),
        };
        upkeep::start(&handle.inner, &handle.threads)
            .map_err(|error| EngineError::io(dir, error))?;
        Ok(Self {
            handle: Arc::new(handle),
        })
    }

    /// Flushes, stops the threads, releases the lock. Further calls return `Closed`.
    ///
    /// # Errors
    /// If the flush fails; the engine is closed nevertheless.
    pub fn close(&self) -> Result<()> {
        let inner = &self.handle.inner;
        inner.check_open()?;
        inner.bell.stop();
        self.handle.threads.join();
        inner.close()
    }

    /// The accountant of everything that the engine and its queries hold.
    pub fn memory(&self) -> &Arc<MemoryAccountant> {
        &self.inner().context.memory
    }

    /// Figures about the engine.
    pub fn status(&self) -> EngineStatus {
        self.inner().status()
    }

    /// Creates a database.
    ///
    /// # Errors
    /// If the name is taken (unless `if_not_exists`) or invalid, or the disk fails.
    pub fn create_database(&self, name: &str, if_not_exists: bool) -> Result<()> {
        self.writable()?
            .schemas
            .create_database(name, if_not_exists)
    }

    /// Removes a database with its tables and rows.
    ///
    /// # Errors
    /// If there is none with this name (unless `if_exists`), or the disk fails.
    pub fn drop_database(&self, name: &str, if_exists: bool) -> Result<()> {
        let inner = self.lasting()?;
        let _pass = inner.gate.pass_database(name)?;
        let tables = inner.schemas.tables(name).map_or(0, |tables| tables.len());
        let (_room, dropped) = self.freeing(|| {
            let room = self.room_to_drop(tables)?;
            Ok((room, inner.schemas.drop_database(name, if_exists)?))
        })?;
        // All are dropped by now, so a failure for one must not keep the others.
        let forgotten = dropped.into_iter().map(|table| self.forget(table));
        let forgotten: Vec<Result<()>> = forgotten.collect();
        inner.schemas.drop_other_tables(name)?;
        forgotten.into_iter().collect()
    }

    /// The names of the databases, ascending.
    pub fn databases(&self) -> Vec<String> {
        self.inner().schemas.databases()
    }

    /// The retention policies of a database.
    ///
    /// # Errors
    /// If there is no such database.
    pub fn retention_policies(&self, database: &str) -> Result<Arc<RetentionPolicies>> {
        self.opened()?.schemas.retention_policies(database)
    }

    /// Changes the retention policies of a database as `change` says; nothing changes if it fails.
    /// Tables that are there keep their settings.
    ///
    /// # Errors
    /// What `change` returns; if there is no such database, if these cannot be the policies of one,
    /// or if the disk refuses.
    pub fn change_retention_policies<E: From<EngineError>>(
        &self,
        database: &str,
        change: impl FnOnce(&mut RetentionPolicies) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let inner = self.writable()?;
        inner.schemas.change_retention_policies(database, change)
    }

    /// The records of users and tokens, by key; the engine does not know what they mean.
    ///
    /// # Errors
    /// If the engine is closed.
    pub fn access_records(&self) -> Result<BTreeMap<String, Arc<[u8]>>> {
        Ok(self.opened()?.schemas.access_records())
    }

    /// Puts records of users and tokens, and removes those that are `None`: all of them, durably, or
    /// none.
    ///
    /// # Errors
    /// If the disk refuses, or the engine only reads.
    pub fn put_access(&self, records: Vec<(String, Option<Arc<[u8]>>)>) -> Result<()> {
        self.writable()?.schemas.put_access(records)
    }

    /// From here on, new tables get no name that one of these has, and they go with their database.
    ///
    /// # Errors
    /// If the engine is closed.
    pub fn set_other_tables(&self, tables: Box<dyn OtherTables>) -> Result<()> {
        self.opened()?.schemas.set_other_tables(tables);
        Ok(())
    }

    /// Notes durably that the directory has reference tables, so that it no longer opens without
    /// their file. To be called when that file exists, and before the first table in it is
    /// committed; does nothing when it was noted before, and where there is no file: the tables are
    /// then in memory.
    ///
    /// # Errors
    /// If the disk refuses, or the engine only reads.
    pub fn note_reference_tables(&self) -> Result<()> {
        let inner = self.writable()?;
        let env = &inner.context.env;
        if inner.schemas.has_reference_tables() || !reference_file::exists(env, &inner.dir)? {
            return Ok(());
        }
        reference_file::sync_names(env, &inner.dir)?;
        inner.schemas.note_reference_tables()
    }

    /// Creates a table.
    ///
    /// # Errors
    /// If the database is missing, the name is taken (unless `if_not_exists`), the schema exceeds
    /// the limits, or the disk fails.
    pub fn create_table(
        &self,
        database: &str,
        spec: &TableSpec,
        if_not_exists: bool,
    ) -> Result<Arc<TableSchema>> {
        let inner = self.writable()?;
        let schema = inner.schemas.create_table(database, spec, if_not_exists)?;
        self.register(&schema)?;
        Ok(schema)
    }

    /// Tells the parts of the engine about a new table.
    fn register(&self, schema: &TableSchema) -> Result<()> {
        let inner = self.opened()?;
        inner.context.rollups.register(schema);
        for index in &inner.indexes {
            let identity = crate::flush::identity_of(schema);
            index.write().set_identity(schema.id, identity);
        }
        Ok(())
    }

    /// Changes a table.
    ///
    /// # Errors
    /// If it is missing, the change is invalid, or the disk fails.
    pub fn alter_table(
        &self,
        database: &str,
        table: &str,
        change: &TableChange,
    ) -> Result<Arc<TableSchema>> {
        let _pass = self.opened()?.gate.pass(database, table)?;
        let alter = |inner: &EngineInner| inner.schemas.alter_table(database, table, change);
        // A shorter time to live frees space.
        if matches!(change, TableChange::SetOptions(_)) {
            let inner = self.lasting()?;
            return self.freeing(|| alter(inner));
        }
        alter(self.writable()?)
    }

    /// Removes a table with its rows.
    ///
    /// # Errors
    /// If there is none with this name (unless `if_exists`), or the disk fails.
    pub fn drop_table(&self, database: &str, table: &str, if_exists: bool) -> Result<()> {
        let inner = self.lasting()?;
        let _pass = inner.gate.pass(database, table)?;
        let (_room, dropped) = self.freeing(|| {
            let room = self.room_to_drop(1)?;
            Ok((room, inner.schemas.drop_table(database, table, if_exists)?))
        })?;
        match dropped {
            Some(table) => self.forget(table),
            None => Ok(()),
        }
    }

    /// The tables of a database by name.
    ///
    /// # Errors
    /// If there is no such database.
    pub fn tables(&self, database: &str) -> Result<Vec<Arc<TableSchema>>> {
        self.opened()?.schemas.tables(database)
    }

    /// A table by name.
    ///
    /// # Errors
    /// If there is no such database or table.
    pub fn table(&self, database: &str, table: &str) -> Result<Arc<TableSchema>> {
        self.opened()?.schemas.table(database, table)
    }

    /// Stores the valid rows, which are durable when it returns, and reports the invalid ones.
    ///
    /// # Errors
    /// If the whole batch fails: it is inconsistent, it names what does not exist and may not be
    /// created, there is currently no memory for it, or writes are refused.
    pub fn write(
        &self,
        database: &str,
        batch: &WriteBatch,
        options: WriteOptions,
    ) -> Result<WriteReport> {
        write::write(
            self.writable()?,
            database,
            batch,
            options,
            WriteOrigin::User,
        )
    }

    /// A snapshot for a query on a table: one version of every shard.
    ///
    /// # Errors
    /// If there is no such database or table.
    pub fn snapshot(&self, database: &str, table: &str) -> Result<TableSnapshot> {
        let inner = self.opened()?;
        let schema = inner.schemas.table(database, table)?;
        // Before the views, so that no series in them is removed before the snapshot pins it.
        let pins: Vec<_> = inner
            .indexes
            .iter()
            .map(|index| index.read().pin())
            .collect();
        let views = inner
            .shards
            .iter()
            .map(|shard| shard.view(schema.id))
            .collect();
        let series = inner.indexes.clone();
        let last = inner
            .shards
            .iter()
            .map(|shard| shard.last.clone())
            .collect();
        let memory = inner.context.memory.clone();
        let snapshot = TableSnapshot::new(schema, views, series, last, memory);
        drop(pins);
        Ok(snapshot)
    }

    /// Flushes; everything acknowledged is in segments when it returns.
    ///
    /// # Errors
    /// If the disk fails; nothing is then lost.
    pub fn flush(&self) -> Result<()> {
        self.opened()?.flush()
    }

    /// Compacts until nothing is left to merge and all late rows are in the sequence space.
    ///
    /// # Errors
    /// If the disk fails, or a segment is damaged.
    pub fn compact(&self) -> Result<()> {
        self.opened()?.compact()
    }

    /// Flushes, then rewrites each partition of a table as one sorted segment (several if the
    /// largest size does not suffice), with late rows merged and deletes spent. Skips partitions
    /// that are so already. Waits until it is done; the rate limit does not apply.
    ///
    /// # Errors
    /// If there is no such table, the disk fails, or a segment is damaged. What was done before
    /// stays done.
    pub fn compact_table(&self, database: &str, table: &str) -> Result<TableCompaction> {
        let inner = self.writable()?;
        let table = inner.schemas.table(database, table)?.id;
        inner.flush()?;
        inner.compact_table(table)
    }

    /// The running compactions, and the last hundred that ended, oldest first.
    pub fn compactions(&self) -> Vec<CompactionInfo> {
        let context = &self.inner().context;
        let clock = &context.env.clock;
        let now = (clock.now_ns(), clock.monotonic_ns());
        context.compactions.list(now)
    }

    /// Runs one round of background work: flushes that are due, one compaction per shard,
    /// retention. Returns whether it did anything.
    ///
    /// # Errors
    /// The first error; the rest of the round is done nevertheless.
    pub fn maintain(&self) -> Result<bool> {
        self.opened()?.maintain()
    }

    /// Drops partitions in which every row is past its table's ttl.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn retain(&self) -> Result<()> {
        self.opened()?.retain().map(drop)
    }

    /// Copies the database, as it is at one moment after the call began, into a folder of backups,
    /// which is created if it does not exist. Reads, writes and compactions continue.
    ///
    /// # Errors
    /// If the folder is something else, another backup into it runs, a segment is damaged, the disk
    /// fails, or the content of the disk is unknown after an earlier failure. Earlier backups are
    /// then untouched.
    pub fn backup(&self, folder: &Path, options: BackupOptions) -> Result<BackupReport> {
        self.backup_with(folder, options, None)
    }

    /// Like [`backup`](Self::backup), for a directory that may have reference tables: `reference`
    /// copies them, as they are at one moment, into a new file, and fails with a reason.
    ///
    /// # Errors
    /// As [`backup`](Self::backup), and if the reference tables cannot be copied.
    pub fn backup_with(
        &self,
        folder: &Path,
        options: BackupOptions,
        reference: Option<CopyReference<'_>>,
    ) -> Result<BackupReport> {
        let inner = self.opened()?;
        let origin = backup::BackupOrigin {
            env: &inner.context.env,
            dir: &inner.dir,
            schemas: &inner.schemas,
            shards: &inner.shards,
            reference,
        };
        backup::take(&origin, folder, options, || inner.flush())
    }

    /// All segments.
    pub fn segments(&self) -> Vec<SegmentInfo> {
        self.inner()
            .shards
            .iter()
            .flat_map(crate::status::segments)
            .collect()
    }

    /// Reads everything and checks every checksum; calls `damage` with one message for each damaged
    /// place (file, offset, reason). Works on an open or a closed directory, and on a folder of
    /// backups.
    ///
    /// # Errors
    /// If `dir` is neither, or cannot be read at all.
    pub fn verify(env: &Env, dir: &Path, damage: &mut dyn FnMut(String)) -> Result<()> {
        crate::verify::verify(env, dir, damage)
    }

    /// Reserves space in every log for the record that drops `tables`, before the catalog drops
    /// them.
    fn room_to_drop(&self, tables: usize) -> Result<Vec<RoomPromise>> {
        let bytes = (tables * DELETE_HEAD_BYTES) as u64;
        let shards = self.inner().shards.iter();
        shards.map(|shard| shard.promise_room(bytes)).collect()
    }

    /// Tells every shard that a table was dropped.
    fn forget(&self, table: TableId) -> Result<()> {
        self.inner().context.rollups.forget(table);
        let submit = |shard| (shard, Shard::submit(shard, CommitChange::DropTable(table)));
        let tickets: Vec<_> = self.inner().shards.iter().map(submit).collect();
        let outcomes = tickets
            .into_iter()
            .map(|(shard, ticket)| shard.drive(&ticket));
        outcomes.collect::<Vec<_>>().into_iter().collect()
    }

    fn inner(&self) -> &EngineInner {
        &self.handle.inner
    }

    fn opened(&self) -> Result<&EngineInner> {
        self.inner().check_open()?;
        Ok(self.inner())
    }

    fn writable(&self) -> Result<&EngineInner> {
        let inner = self.opened()?;
        inner.context.health.check()?;
        inner.context.reserve.restore(&inner.context.env)?;
        Ok(inner)
    }

    /// For changes that free disk space: they are possible even while the disk is full.
    fn lasting(&self) -> Result<&EngineInner> {
        let inner = self.opened()?;
        inner.context.health.check_lasting()?;
        Ok(inner)
    }

    /// Makes a change that frees space; uses the reserve file if the disk is full.
    fn freeing<T>(&self, change: impl Fn() -> Result<T>) -> Result<T> {
        let context = &self.inner().context;
        context.reserve.spend_on(&context.env, change)
    }
}

#[cfg(test)]
mod tests;
