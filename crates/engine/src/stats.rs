//! Counters of the engine's work since it was opened.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters that are incremented wherever work is done.
#[derive(Debug, Default)]
pub(crate) struct EngineCounters {
    pub rows_written: AtomicU64,
    pub rows_late: AtomicU64,
    pub rows_rejected: AtomicU64,
    pub wal_syncs: AtomicU64,
    pub flushes: AtomicU64,
    pub flushed_bytes: AtomicU64,
    pub compactions: AtomicU64,
    /// Bytes written, including copied ones.
    pub compacted_bytes: AtomicU64,
    pub compaction_copied_bytes: AtomicU64,
    pub compaction_read_bytes: AtomicU64,
    pub compaction_moved_bytes: AtomicU64,
}

/// Adds to a counter.
pub(crate) fn add(counter: &AtomicU64, count: usize) {
    counter.fetch_add(count as u64, Ordering::Relaxed);
}

/// Reads a counter.
pub(crate) fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
