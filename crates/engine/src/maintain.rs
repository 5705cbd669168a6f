//! Maintenance of a shard: compaction and retention.
//!
//! What to do is decided by pure functions of the manifest's state (`compaction::pick`,
//! [`outlived`]); this module does it: runs, commits, and makes it visible.

use crate::compaction::{PickInput, PickOptions, RunContext, pick, run};
use crate::error::{EngineError, Result};
use crate::flush::LiveTables;
use crate::shard::Shard;
use crate::stats::add;
use crate::view::OpenSegment;
use marigram_manifest::{Edit, SegmentId, SegmentMeta};
use marigram_model::{TableId, TableOptions, TimeRange};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Shard {
    /// Does one compaction, if one is due; says whether it did. `stop` ends a running one early.
    pub fn compact_once(&self, live: &LiveTables, stop: &dyn Fn() -> bool) -> Result<bool> {
        let mut maintenance = self.maintenance.lock();
        self.check_lasting()?;
        let tables: BTreeMap<TableId, TableOptions> = live
            .iter()
            .map(|(table, schema)| (*table, schema.options.clone()))
            .collect();
        let manifest = self.durable.lock().manifest.state().clone();
        let input = PickInput {
            segments: &manifest.segments,
            tombstones: &manifest.tombstones,
            tables: &tables,
            unreadable: &maintenance.unreadable,
            flushed_sequence: manifest.flushed_sequence,
        };
        let Some(plan) = pick(&input, &PickOptions::default(), maintenance.turn) else {
            return Ok(false);
        };
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
        let context = RunContext {
            fs: self.context.env.fs.clone(),
            options: self.context.options.segment.clone(),
            memory: self.context.memory.clone(),
            schemas: live,
            cold: false,
            new_file: &|| self.new_segment(),
            stop,
        };
        let edit = match run(&plan, &inputs, &tombstones, &tables, &context) {
            Ok(Some(edit)) => edit,
            Ok(None) => return Ok(false),
            Err(error) => {
                if matches!(error, EngineError::Corrupt { .. }) {
                    maintenance.unreadable.extend(&plan.inputs);
                }
                return Err(error);
            }
        };
        maintenance.turn += 1;
        let bytes: u64 = edit.added.iter().map(|meta| meta.bytes).sum();
        self.install(edit, false)?;
        add(&self.context.stats.compactions, 1);
        add(&self.context.stats.compacted_bytes, bytes as usize);
        Ok(true)
    }

    /// `ReadOnly` where nothing can be committed any more: work would only leave files behind.
    fn check_lasting(&self) -> Result<()> {
        if self.context.health.is_final() {
            self.context.health.check()
        } else {
            Ok(())
        }
    }

    /// Drops the partitions that every table in them has outlived; says whether there were any.
    pub fn retain(&self, live: &LiveTables) -> Result<bool> {
        let _maintenance = self.maintenance.lock();
        self.check_lasting()?;
        let now_ns = self.context.env.clock.now_ns();
        let segments = self.durable.lock().manifest.state().segments.clone();
        let removed = outlived(&segments, live, now_ns);
        if removed.is_empty() {
            return Ok(false);
        }
        let edit = Edit {
            removed: removed.clone(),
            ..Edit::default()
        };
        self.install(edit, false)?;
        let sequence = self.state.read().sequence;
        for meta in removed.iter().filter_map(|id| segments.get(id)) {
            for table in meta.tables.iter().filter(|table| live.contains_key(table)) {
                self.last
                    .lock()
                    .invalidate(sequence, *table, None, window(meta));
            }
        }
        Ok(true)
    }
}

/// Segments of partitions that lie, for every table in them, before what the table keeps. All
/// segments that overlap such a partition in time go together: one that stays could hold older
/// forms of rows that go.
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
