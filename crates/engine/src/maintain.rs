//! Maintenance of a shard: compaction and retention.
//!
//! Pure functions of the manifest's state (`compaction::pick`, [`outlived`]) decide what to do;
//! this module executes it: it runs, commits, and makes the result visible.

use crate::compaction::{
    CompactionPlan, CompactionState, PickInput, PickOptions, RunContext, pick, pick_table, run,
};
use crate::error::{EngineError, Result};
use crate::flush::{LiveSource, LiveTables};
use crate::shard::{MaintenanceState, Shard};
use crate::stats::add;
use crate::view::OpenSegment;
use marigram_manifest::{ManifestEdit, ManifestState, Partition, SegmentId, SegmentMeta};
use marigram_model::{ColumnCodec, FieldColumn, TableId, TableOptions, TableSchema, TimeRange};
use parking_lot::MutexGuard;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How compactions are picked and run.
pub(crate) struct CompactionSettings<'a> {
    /// When they are due.
    pub options: PickOptions,
    /// Called between batches with the bytes read and written since the last call; may pause.
    /// Returns whether to stop.
    pub stop: &'a dyn Fn(u64) -> bool,
    /// Whether to wait while other maintenance of the shard runs, or to return.
    pub wait: bool,
}

/// The result of compacting a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableCompaction {
    /// Number of compacted partitions, over all shards, without those that had nothing to gain.
    pub partitions: usize,
    /// Number of segments read.
    pub segments_read: usize,
    /// Number of segments written.
    pub segments_written: usize,
    /// Encoded bytes read.
    pub bytes_read: u64,
    /// Bytes written, including copied ones.
    pub bytes_written: u64,
    /// Bytes of pages that were copied without decoding.
    pub bytes_copied: u64,
    /// Rows written.
    pub rows: u64,
}

impl std::ops::AddAssign for TableCompaction {
    fn add_assign(&mut self, other: Self) {
        self.partitions += other.partitions;
        self.segments_read += other.segments_read;
        self.segments_written += other.segments_written;
        self.bytes_read += other.bytes_read;
        self.bytes_written += other.bytes_written;
        self.bytes_copied += other.bytes_copied;
        self.rows += other.rows;
    }
}

/// Options of the existing tables.
type LiveTableOptions = BTreeMap<TableId, TableOptions>;

impl Shard {
    /// Runs one compaction if one is due; returns whether it did.
    pub(crate) fn compact_once(
        &self,
        live: LiveSource<'_>,
        manner: &CompactionSettings<'_>,
    ) -> Result<bool> {
        let Some(mut maintenance) = self.maintain(manner.wait) else {
            return Ok(false);
        };
        self.context.health.check_lasting()?;
        let manifest = self.durable.lock().manifest.state().clone();
        let live = live();
        let tables = options_of(&live);
        let input = input(&manifest, &tables, &maintenance);
        let Some(plan) = pick(&input, &manner.options, maintenance.turn) else {
            return Ok(false);
        };
        let done = self.compact(&plan, &mut maintenance, &live, &tables, manner)?;
        Ok(done.is_some())
    }

    /// Rewrites each partition of a table as one sorted segment, as far as possible.
    pub(crate) fn compact_table(
        &self,
        table: TableId,
        live: LiveSource<'_>,
        manner: &CompactionSettings<'_>,
    ) -> Result<TableCompaction> {
        let partitions: BTreeSet<Partition> = {
            let durable = self.durable.lock();
            let segments = durable.manifest.state().segments.values();
            let holding = segments.filter(|segment| segment.tables.contains(&table));
            holding.map(|segment| segment.partition).collect()
        };
        // Nothing records whether the pages of a segment match the current settings.
        let anew = live()
            .get(&table)
            .is_some_and(|schema| asks_for_a_form(schema));
        let mut all = TableCompaction::default();
        for partition in partitions {
            let mut maintenance = self.maintenance.lock();
            self.context.health.check_lasting()?;
            let manifest = self.durable.lock().manifest.state().clone();
            let live = live();
            let tables = options_of(&live);
            let input = input(&manifest, &tables, &maintenance);
            let Some(plan) = pick_table(&input, &manner.options, table, partition, anew) else {
                continue;
            };
            match self.compact(&plan, &mut maintenance, &live, &tables, manner)? {
                Some(done) => all += done,
                None => return Err(EngineError::Closed),
            }
        }
        Ok(all)
    }

    /// The lock for changing the set of segments; `None` if it is taken and `wait` is false.
    fn maintain(&self, wait: bool) -> Option<MutexGuard<'_, MaintenanceState>> {
        if wait {
            Some(self.maintenance.lock())
        } else {
            self.maintenance.try_lock()
        }
    }

    /// Executes a plan; `None` if it was stopped.
    fn compact(
        &self,
        plan: &CompactionPlan,
        maintenance: &mut MaintenanceState,
        live: &LiveTables,
        tables: &LiveTableOptions,
        manner: &CompactionSettings<'_>,
    ) -> Result<Option<TableCompaction>> {
        if (manner.stop)(0) {
            return Ok(None);
        }
        let (inputs, tombstones) = {
            let state = self.state.read();
            let named: BTreeMap<SegmentId, &Arc<OpenSegment>> = state
                .segments
                .iter()
                .map(|segment| (segment.meta.id, segment))
                .collect();
            let inputs = plan
                .inputs
                .iter()
                .filter_map(|id| named.get(id).copied().cloned());
            (inputs.collect::<Vec<_>>(), state.tombstones.clone())
        };
        let clock = &self.context.env.clock;
        let now = || (clock.now_ns(), clock.monotonic_ns());
        let (history, policy) = (&self.context.compactions, self.context.options.compaction);
        let metas = inputs.iter().map(|input| &input.meta);
        let progress = history.begin(self.number, policy, plan, metas, now());
        let told = Cell::new(0);
        let stop = || {
            let bytes = progress.bytes();
            (manner.stop)(bytes - told.replace(bytes))
        };
        let context = RunContext {
            blobs: self.context.blobs.clone(),
            options: self.context.options.segment.clone(),
            memory: self.context.memory.clone(),
            schemas: live,
            new_segment: &|| self.new_segment(),
            stop: &stop,
            progress: &progress,
        };
        let done = run(plan, &inputs, &tombstones, tables, &context).and_then(|edit| {
            let Some(edit) = edit else {
                return Ok(None);
            };
            let written = edit.added.len();
            // What it leaves out may have been deleted by a delete that a loss of power still takes:
            // the cells that the delete touched must then stay touched.
            if let Err(error) = self.context.rollups.persist() {
                self.remove_new(&edit);
                return Err(error);
            }
            self.install(edit, false).map(|()| Some(written))
        });
        let state = match &done {
            Ok(Some(_)) => CompactionState::Done,
            Ok(None) => CompactionState::Stopped,
            Err(_) => CompactionState::Failed,
        };
        let info = history.end(&progress, state, now());
        tracing::debug!(
            shard = info.shard,
            kind = info.kind,
            outcome = ?info.state,
            segments_read = info.inputs.len(),
            segments_written = done.as_ref().ok().copied().flatten().unwrap_or(0),
            rows = info.rows,
            bytes_read = info.bytes_read,
            bytes_written = info.bytes_written,
            took_ms = info.duration_ns / 1_000_000,
            "a compaction ended"
        );
        if matches!(done, Err(EngineError::Corrupt { .. })) {
            maintenance.unreadable.extend(&plan.inputs);
        }
        let Some(segments_written) = done? else {
            return Ok(None);
        };
        maintenance.turn += 1;
        let stats = &self.context.stats;
        add(&stats.compactions, 1);
        add(&stats.compacted_bytes, info.bytes_written as usize);
        add(&stats.compaction_copied_bytes, info.bytes_copied as usize);
        add(&stats.compaction_read_bytes, info.bytes_read as usize);
        if info.bytes_written == 0 && segments_written > 0 {
            add(&stats.compaction_moved_bytes, info.input_bytes as usize);
        }
        Ok(Some(TableCompaction {
            partitions: 1,
            segments_read: inputs.len(),
            segments_written,
            bytes_read: info.bytes_read,
            bytes_written: info.bytes_written,
            bytes_copied: info.bytes_copied,
            rows: info.rows,
        }))
    }

    /// Drops the partitions in which every row is past its table's ttl; returns whether there were
    /// any. With `wait`, it waits for other maintenance of the shard to end.
    pub(crate) fn retain(&self, live: LiveSource<'_>, wait: bool) -> Result<bool> {
        let Some(_maintenance) = self.maintain(wait) else {
            return Ok(false);
        };
        self.context.health.check_lasting()?;
        let now_ns = self.context.env.clock.now_ns();
        let segments = self.durable.lock().manifest.state().segments.clone();
        let live = live();
        let removed = outlived(&segments, &live, now_ns);
        if removed.is_empty() {
            return Ok(false);
        }
        let edit = ManifestEdit {
            removed: removed.clone(),
            ..ManifestEdit::default()
        };
        let context = &self.context;
        let install = || self.install(edit.clone(), false);
        context.reserve.spend_on(&context.env, install)?;
        let sequence = self.state.read().sequence;
        let dropped: Vec<&SegmentMeta> = removed.iter().filter_map(|id| segments.get(id)).collect();
        let tables: BTreeSet<&str> = dropped
            .iter()
            .flat_map(|meta| &meta.tables)
            .filter_map(|table| live.get(table).map(|schema| schema.name.as_str()))
            .collect();
        tracing::info!(
            shard = self.number,
            ?tables,
            segments = dropped.len(),
            rows = dropped.iter().map(|meta| meta.rows).sum::<u64>(),
            bytes = dropped.iter().map(|meta| meta.bytes).sum::<u64>(),
            "retention dropped segments whose rows are all older than the ttl"
        );
        for meta in dropped {
            for table in meta.tables.iter().filter(|table| live.contains_key(table)) {
                self.last
                    .lock()
                    .invalidate(sequence, *table, None, window(meta));
            }
        }
        Ok(true)
    }
}

fn options_of(live: &LiveTables) -> LiveTableOptions {
    live.iter()
        .map(|(table, schema)| (*table, schema.options.clone()))
        .collect()
}

/// Whether a table's settings name an encoding or compressor.
fn asks_for_a_form(schema: &TableSchema) -> bool {
    let usual = TableOptions {
        partition_ns: schema.options.partition_ns,
        ttl_ns: schema.options.ttl_ns,
        identity: schema.options.identity,
        ..TableOptions::default()
    };
    let named = |field: &FieldColumn| field.codec != ColumnCodec::default();
    schema.options != usual || schema.fields.iter().any(named)
}

/// A version as the picker sees it.
fn input<'a>(
    manifest: &'a ManifestState,
    tables: &'a LiveTableOptions,
    maintenance: &'a MaintenanceState,
) -> PickInput<'a> {
    PickInput {
        segments: &manifest.segments,
        tombstones: &manifest.tombstones,
        tables,
        unreadable: &maintenance.unreadable,
        flushed_sequence: manifest.flushed_sequence,
    }
}

/// Segments of partitions that are past the ttl of every table in them. All segments that overlap
/// such a partition in time are dropped together: one that stays could contain older versions of
/// dropped rows.
fn outlived(
    segments: &BTreeMap<SegmentId, SegmentMeta>,
    live: &LiveTables,
    now_ns: i64,
) -> Vec<SegmentId> {
    let is_old = |meta: &SegmentMeta| {
        meta.tables.iter().all(|table| match live.get(table) {
            None => true,
            Some(schema) => schema
                .options
                .ttl_ns
                .is_some_and(|ttl_ns| window(meta).max < now_ns.saturating_sub(ttl_ns)),
        })
    };
    let old: BTreeSet<SegmentId> = segments
        .values()
        .filter(|meta| is_old(meta))
        .map(|meta| meta.id)
        .collect();
    let shares_rows = |a: &SegmentMeta, b: &SegmentMeta| {
        let live_in_both = |table: &TableId| live.contains_key(table) && b.tables.contains(table);
        a.range.overlaps(b.range) && a.tables.iter().any(live_in_both)
    };
    let stays = |meta: &&SegmentMeta| !old.contains(&meta.id);
    let staying: Vec<&SegmentMeta> = segments.values().filter(stays).collect();
    let free = |id: &SegmentId| {
        !staying
            .iter()
            .any(|other| shares_rows(&segments[id], other))
    };
    old.iter().copied().filter(free).collect()
}

/// The times of a segment's partition.
fn window(meta: &SegmentMeta) -> TimeRange {
    let end = meta.partition.start_ns.checked_add(meta.partition.width_ns);
    TimeRange {
        min: meta.partition.start_ns,
        max: end.map_or(i64::MAX, |end| end - 1),
    }
}

#[cfg(test)]
mod tests;
