//! Flush: turns a frozen memtable into segments.
//!
//! All rows of a table are sorted at once (see [`crate::chunk::sort`]) and written slice by slice:
//! one segment for each (partition, space) and each group of tables that share partition width and
//! ttl. Deletes that came after a chunk are applied to it on the way. Nothing takes effect before
//! the manifest says so: the files of a failed flush are removed, and it can be retried.

mod pieces;
mod write;

use crate::error::{EngineError, Result};
use crate::shard::{FlushState, FrozenMemtable, Shard};
use marigram_manifest::{ManifestEdit, SegmentMeta, Tombstone};
use marigram_model::{SeriesIdentity, TableId, TableSchema};
use marigram_series_index::{DiscardFile, LogPosition, SeriesLog};
use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How long the background waits after a failed flush.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Existing tables, by id.
pub(crate) type LiveTables = HashMap<TableId, Arc<TableSchema>>;

/// Reads which tables currently exist.
///
/// Rows of a table that does not exist are garbage. So this must only be called after the data to
/// flush or merge was taken: an earlier answer may lack a table that was created since, and the
/// table's rows would be lost.
pub(crate) type LiveSource<'a> = &'a dyn Fn() -> LiveTables;

/// The identity of a table's series.
pub(crate) fn identity_of(schema: &TableSchema) -> SeriesIdentity {
    schema.options.identity
}

/// Whether the disk had no space.
fn is_full(flushed: &Result<()>) -> bool {
    let full = |error: &EngineError| matches!(error, EngineError::Io { source, .. } if source.kind() == ErrorKind::StorageFull);
    flushed.as_ref().is_err_and(full)
}

impl Shard {
    /// Flushes the oldest frozen memtable; returns whether there was one. After a failure, writes
    /// are refused until a flush of the shard succeeds.
    pub(crate) fn flush_oldest(&self, live: LiveSource<'_>) -> Result<bool> {
        self.flush_next(&mut self.flushing.lock(), live)
    }

    /// Like [`flush_oldest`](Self::flush_oldest), unless another thread is flushing the shard,
    /// which looks for more afterwards, or the last flush failed less than [`RETRY_PAUSE`] ago:
    /// every writer that finds no memory wakes the flushing threads.
    pub(crate) fn try_flush_oldest(&self, live: LiveSource<'_>) -> Result<bool> {
        let Some(mut alone) = self.flushing.try_lock() else {
            return Ok(false);
        };
        let now_ns = self.context.env.clock.monotonic_ns();
        if alone.retry_at_ns.is_some_and(|retry| now_ns < retry) {
            return Ok(false);
        }
        self.flush_next(&mut alone, live)
    }

    fn flush_next(&self, alone: &mut FlushState, live: LiveSource<'_>) -> Result<bool> {
        let Some(frozen) = self.state.read().frozen.front().cloned() else {
            self.context.health.flush_succeeded(self.number);
            return Ok(false);
        };
        if self.context.health.is_final() {
            // Nothing can be committed any more, so segments would only be left behind.
            self.context.health.check()?;
        }
        let live = live();
        let mut flushed = self.flush(&frozen, &live);
        if is_full(&flushed) && self.context.trash.empty(&self.context.env) {
            tracing::warn!(
                shard = self.number,
                "the disk is full: the trash was emptied"
            );
            flushed = self.flush(&frozen, &live);
        }
        alone.retry_at_ns = None;
        if let Err(error) = flushed {
            let now_ns = self.context.env.clock.monotonic_ns();
            alone.retry_at_ns = Some(now_ns.saturating_add(RETRY_PAUSE.as_nanos() as u64));
            self.context
                .health
                .flush_failed(self.number, &error.to_string());
            return Err(error);
        }
        self.context.health.flush_succeeded(self.number);
        crate::stats::add(&self.context.stats.flushes, 1);
        if let Some(floor) = frozen.wal_floor
            && let Err(error) = self.log().wal.remove_below(floor)
        {
            tracing::warn!(shard = self.number, %error, "old log files were not removed");
        }
        Ok(true)
    }

    fn flush(&self, frozen: &FrozenMemtable, live: &LiveTables) -> Result<()> {
        let tombstones = self.state.read().tombstones.clone();
        let added = write::write_segments(self, &frozen.memtable, &tombstones, live)?;
        let (series_log_bytes, series_log_checksum) = match self.log_series(frozen, live) {
            Ok(position) => position,
            Err(error) => {
                self.remove_segments(&added);
                return Err(error);
            }
        };
        let kept = frozen
            .memtable
            .tombstones
            .iter()
            .filter(|t| live.contains_key(&t.table));
        let bytes: u64 = added.iter().map(|meta| meta.bytes).sum();
        let edit = ManifestEdit {
            added,
            tombstones_added: kept.map(|tombstone| Tombstone::clone(tombstone)).collect(),
            wal_floor: frozen.wal_floor,
            flushed_sequence: Some(frozen.memtable.sequence_max),
            series_log_bytes: Some(series_log_bytes),
            series_log_checksum: Some(series_log_checksum),
            ..ManifestEdit::default()
        };
        // Before the log that could repeat it is released.
        if let Err(error) = self.context.rollups.persist() {
            self.remove_segments(&edit.added);
            return Err(error);
        }
        self.install(edit, true)?;
        crate::stats::add(&self.context.stats.flushed_bytes, bytes as usize);
        Ok(())
    }

    /// Logs the series that the memtable's rows may refer to, and the removed ones; returns the
    /// log's position, and the checksum of its valid bytes.
    fn log_series(&self, frozen: &FrozenMemtable, live: &LiveTables) -> Result<(u64, u32)> {
        if !self.index.read().retired().is_empty() {
            self.index.write().sweep();
        }
        // The delete that ended series must be durable before their removal. During recovery there
        // is no log yet: what is replayed is durable.
        if self.log.get().is_some() {
            self.sync()?;
        }
        let mut durable = self.durable.lock();
        let mut log = if let Some(log) = durable.series_log.take() {
            log
        } else {
            let identity = |table| live.get(&table).map(|schema| identity_of(schema));
            let state = durable.manifest.state();
            let (valid, pin) = (
                LogPosition(state.series_log_bytes),
                state.series_log_checksum,
            );
            let discard = |path: &Path| self.discard(path);
            let discard: Option<DiscardFile<'_>> = self.is_certain.then_some(&discard);
            let fs = self.context.env.fs.clone();
            SeriesLog::open_proved(fs, &self.dir, valid, pin, discard, &identity)?.0
        };
        let committed = LogPosition(durable.manifest.state().series_log_bytes);
        let position = log.append(&self.index.read(), frozen.series_end, committed)?;
        let checksum = log.checksum();
        durable.series_log = Some(log);
        Ok((position.0, checksum))
    }

    /// Removes files that were written and are not in the manifest.
    fn remove_segments(&self, segments: &[SegmentMeta]) {
        for meta in segments {
            let name = crate::shard::segment_name(self.number, meta.id);
            if let Err(error) = self.context.blobs.delete(&name) {
                tracing::warn!(name, %error, "a segment of a failed flush was not removed");
            }
        }
    }
}
