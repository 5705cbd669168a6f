//! What an engine says about itself.

use crate::memory::{Holder, Usage};
use crate::shard::{Context, Shard, segment_path};
use crate::stats::read;
use marigram_manifest::SegmentMeta;
use std::path::PathBuf;

/// Figures of an engine, since it was opened where they count events.
#[derive(Clone, Debug, Default)]
pub struct EngineStatus {
    /// Databases.
    pub databases: usize,
    /// Tables of all databases.
    pub tables: usize,
    /// Series ids given.
    pub series: u64,
    /// Rows stored.
    pub rows_written: u64,
    /// Of these, rows that came late.
    pub rows_late: u64,
    /// Rows refused.
    pub rows_rejected: u64,
    /// Bytes of log on disk.
    pub wal_bytes: u64,
    /// Syncs of the log for writes.
    pub wal_syncs: u64,
    /// Bytes of rows that are not in segments.
    pub memtable_bytes: u64,
    /// Segments.
    pub segments: u64,
    /// Their bytes.
    pub segment_bytes: u64,
    /// Memtables flushed.
    pub flushes: u64,
    /// Compactions done.
    pub compactions: u64,
    /// Bytes that they wrote.
    pub compacted_bytes: u64,
    /// What each holder has of the memory, and has had.
    pub memory: Vec<(&'static str, Usage)>,
    /// The most memory that ever was in use, bytes.
    pub memory_peak_bytes: u64,
    /// Why writes are refused, if they are.
    pub read_only: Option<String>,
    /// How long opening took, ms.
    pub recovery_ms: u64,
    /// How much log was replayed, bytes.
    pub recovery_wal_bytes: u64,
}

/// A segment of an engine.
#[derive(Clone, Debug)]
pub struct SegmentInfo {
    /// Number of its shard.
    pub shard: usize,
    /// Its file.
    pub path: PathBuf,
    /// Its entry in the manifest.
    pub meta: SegmentMeta,
}

/// The figures that shards and their context know.
pub(crate) fn status(context: &Context, shards: &[Shard]) -> EngineStatus {
    let stats = &context.stats;
    let mut status = EngineStatus {
        rows_written: read(&stats.rows_written),
        rows_late: read(&stats.rows_late),
        rows_rejected: read(&stats.rows_rejected),
        wal_syncs: read(&stats.wal_syncs),
        flushes: read(&stats.flushes),
        compactions: read(&stats.compactions),
        compacted_bytes: read(&stats.compacted_bytes),
        memtable_bytes: context.memory.used_by(Holder::Memtable) as u64,
        read_only: context.health.reason(),
        ..EngineStatus::default()
    };
    for shard in shards {
        shard.measure();
        status.series += shard.index.read().len() as u64;
        status.wal_bytes += shard.log().wal.bytes();
        let state = shard.state.read();
        status.segments += state.segments.len() as u64;
        status.segment_bytes += state.segments.iter().map(|s| s.meta.bytes).sum::<u64>();
    }
    status.memory = Holder::ALL
        .map(|holder| (holder.name(), context.memory.usage(holder)))
        .to_vec();
    status.memory_peak_bytes = context.memory.peak() as u64;
    status
}

/// The segments of a shard.
pub(crate) fn segments(shard: &Shard) -> Vec<SegmentInfo> {
    let dir = shard.segment_dir();
    let state = shard.state.read();
    let info = |meta: &SegmentMeta| SegmentInfo {
        shard: shard.number,
        path: segment_path(&dir, meta.id),
        meta: meta.clone(),
    };
    state
        .segments
        .iter()
        .map(|segment| info(&segment.meta))
        .collect()
}
