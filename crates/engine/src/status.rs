//! The engine's figures about itself.

use crate::memory::{Holder, MemoryUsage};
use crate::shard::{Shard, ShardContext, segment_name};
use crate::stats::read;
use crate::view::OpenSegment;
use marigram_manifest::SegmentMeta;
use std::path::PathBuf;
use std::sync::Arc;

/// Figures of an engine; counts of events start when it was opened.
#[derive(Clone, Debug, Default)]
pub struct EngineStatus {
    /// Number of databases.
    pub databases: usize,
    /// Number of tables in all databases.
    pub tables: usize,
    /// Number of series ids assigned.
    pub series: u64,
    /// Number of rows stored.
    pub rows_written: u64,
    /// Those of them that were in order.
    pub rows_in_order: u64,
    /// Those of them that were late.
    pub rows_late: u64,
    /// Number of rows refused.
    pub rows_rejected: u64,
    /// Bytes of log on disk.
    pub wal_bytes: u64,
    /// Number of log syncs for writes.
    pub wal_syncs: u64,
    /// Bytes of rows that are not in segments.
    pub memtable_bytes: u64,
    /// Number of segments.
    pub segments: u64,
    /// Those of them whose files were missing or had another length when the engine was opened.
    pub segments_damaged: u64,
    /// Bytes of all segments.
    pub segment_bytes: u64,
    /// Segment files that are currently open, and the most that are kept open.
    pub open_files: u64,
    /// See [`open_files`](Self::open_files).
    pub open_files_max: u64,
    /// How often a file of a segment was opened.
    pub file_opens: u64,
    /// Number of memtables flushed.
    pub flushes: u64,
    /// Bytes of the resulting segments: the ingested rows, encoded.
    pub flushed_bytes: u64,
    /// Number of compactions done, including moves.
    pub compactions: u64,
    /// Bytes that they wrote: re-encoded rows and copied pages.
    pub compacted_bytes: u64,
    /// The part of it that are pages copied without decoding.
    pub compaction_copied_bytes: u64,
    /// Encoded bytes that they read.
    pub compaction_read_bytes: u64,
    /// Bytes of segments that only changed their space.
    pub compaction_moved_bytes: u64,
    /// Bytes that flushes and compactions wrote per byte that flushes wrote; 1 before the first
    /// flush.
    pub write_amplification: f64,
    /// Current and past memory usage of each holder.
    pub memory: Vec<(&'static str, MemoryUsage)>,
    /// The most memory that was ever in use, bytes.
    pub memory_peak_bytes: u64,
    /// Why writes are refused, if they are.
    pub read_only: Option<String>,
    /// How long opening took, ms.
    pub recovery_ms: u64,
    /// Bytes of log that were replayed.
    pub recovery_wal_bytes: u64,
    /// Replayed rows that were not in segments yet.
    pub recovery_rows: u64,
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
    /// The open file, for reading its content.
    pub open: Arc<OpenSegment>,
}

/// The figures that shards and their context provide.
pub(crate) fn status(context: &ShardContext, shards: &[Shard]) -> EngineStatus {
    let stats = &context.stats;
    let (written, late) = (read(&stats.rows_written), read(&stats.rows_late));
    let (flushed, compacted) = (read(&stats.flushed_bytes), read(&stats.compacted_bytes));
    let mut status = EngineStatus {
        rows_written: written,
        rows_in_order: written.saturating_sub(late),
        rows_late: late,
        rows_rejected: read(&stats.rows_rejected),
        wal_syncs: read(&stats.wal_syncs),
        flushes: read(&stats.flushes),
        flushed_bytes: flushed,
        compactions: read(&stats.compactions),
        compacted_bytes: compacted,
        compaction_copied_bytes: read(&stats.compaction_copied_bytes),
        compaction_read_bytes: read(&stats.compaction_read_bytes),
        compaction_moved_bytes: read(&stats.compaction_moved_bytes),
        write_amplification: 1.0 + compacted as f64 / flushed.max(1) as f64,
        memtable_bytes: context.memory.used_by(Holder::Memtable) as u64,
        read_only: context
            .health
            .reason()
            .or_else(|| context.reserve.refusal(&context.env)),
        open_files: context.files.pool().open_files() as u64,
        open_files_max: context.files.pool().capacity() as u64,
        file_opens: context.files.pool().opens(),
        ..EngineStatus::default()
    };
    for shard in shards {
        shard.measure();
        status.series += shard.index.read().len() as u64;
        status.wal_bytes += shard.log().wal.bytes();
        let state = shard.state.read();
        status.segments += state.segments.len() as u64;
        let is_damaged = |open: &&Arc<OpenSegment>| shard.damaged.contains(&open.meta.id);
        status.segments_damaged += match shard.damaged.len() {
            0 => 0,
            _ => state.segments.iter().filter(is_damaged).count() as u64,
        };
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
    let blobs = &shard.context.blobs;
    let state = shard.state.read();
    let info = |open: &Arc<OpenSegment>| SegmentInfo {
        shard: shard.number,
        path: blobs.location(&segment_name(shard.number, open.meta.id)),
        meta: open.meta.clone(),
        open: Arc::clone(open),
    };
    state.segments.iter().map(info).collect()
}
