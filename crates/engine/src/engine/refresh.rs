//! The refresh of rollups: what a refresh may do that users may not.

use super::deletes::delete_range;
use super::write::{WriteOrigin, write};
use super::{Engine, WriteOptions, WriteReport};
use crate::error::Result;
use crate::filter::TagFilter;
use crate::rollups::RollupState;
use crate::shard::Shard;
use marigram_model::{TableId, TableSchema, TimeRange, TimeSet, WriteBatch};
use std::sync::Arc;

impl Engine {
    /// The rollups of all databases, ascending by id.
    pub fn rollups(&self) -> Vec<Arc<TableSchema>> {
        let inner = self.inner();
        let mut ids = inner.context.rollups.ids();
        ids.sort_unstable();
        let tables = ids.into_iter().filter_map(|id| inner.schemas.by_id(id));
        tables.collect()
    }

    /// The plain views of all databases, ascending by id.
    pub fn views(&self) -> Vec<Arc<TableSchema>> {
        self.inner().schemas.views()
    }

    /// A table or view by its number, if it exists.
    pub fn table_by_id(&self, id: TableId) -> Option<Arc<TableSchema>> {
        self.inner().schemas.by_id(id)
    }

    /// The state of a rollup.
    ///
    /// # Errors
    /// If it is not a rollup.
    pub fn rollup_state(&self, rollup: TableId) -> Result<RollupState> {
        self.opened()?.context.rollups.state(rollup)
    }

    /// Begins a refresh of a rollup, after which it will cover the touched times in `taken` and
    /// everything from its watermark to `through_ns`. The refresh must read the source's rows in a
    /// snapshot taken after this call. A rollup has one refresh at a time.
    ///
    /// # Errors
    /// If it is not a rollup.
    pub fn begin_refresh(&self, rollup: TableId, taken: &TimeSet, through_ns: i64) -> Result<()> {
        let rollups = &self.writable()?.context.rollups;
        rollups.begin(rollup, taken, through_ns)
    }

    /// Writes rows of a rollup.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_refreshed(&self, database: &str, batch: &WriteBatch) -> Result<WriteReport> {
        let options = WriteOptions { grow: false };
        write(
            self.writable()?,
            database,
            batch,
            options,
            WriteOrigin::Refresh,
        )
    }

    /// Deletes all rows of a rollup in a range of time.
    ///
    /// # Errors
    /// If it is not a rollup, or writes are refused.
    pub fn delete_refreshed(&self, rollup: TableId, range: TimeRange) -> Result<()> {
        let inner = self.writable()?;
        inner.context.rollups.state(rollup)?;
        delete_range(inner, rollup, &TagFilter::All, range)
    }

    /// Completes the refresh: from now on, the rollup covers those times. What it read and wrote is
    /// made durable first.
    ///
    /// # Errors
    /// If it is no longer a rollup, or the disk fails; the refresh then counts as failed.
    pub fn finish_refresh(&self, rollup: TableId) -> Result<()> {
        let inner = self.writable()?;
        let synced: Result<()> = inner.shards.iter().try_for_each(Shard::sync);
        if let Err(error) = synced {
            self.abort_refresh(rollup);
            return Err(error);
        }
        inner.context.rollups.finish(rollup)
    }

    /// Abandons the refresh: its times count as touched, as before.
    pub fn abort_refresh(&self, rollup: TableId) {
        self.inner().context.rollups.abort(rollup);
    }

    /// The current time by the engine's monotonic clock, ns.
    pub fn monotonic_ns(&self) -> u64 {
        self.inner().context.env.clock.monotonic_ns()
    }

    /// The current time by the engine's clock, ns since the epoch.
    pub fn now_ns(&self) -> i64 {
        self.inner().context.env.clock.now_ns()
    }
}
