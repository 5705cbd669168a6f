//! Counters of a scan's work, for `EXPLAIN ANALYZE` and tests.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Counters of a scan's work; its partitions share them, and they can be read while it runs.
#[derive(Debug, Default)]
pub struct ScanMetrics {
    /// Series of the table.
    pub series_total: AtomicU64,
    /// Series whose rows are read.
    pub series_selected: AtomicU64,
    /// Segments with rows of the table.
    pub segments_total: AtomicU64,
    /// Those of `segments_total` that were skipped by their series and times.
    pub segments_pruned: AtomicU64,
    /// Pages of the row groups that were read: each time page and each page of a projected column
    /// counts.
    pub pages_total: AtomicU64,
    /// Those of `pages_total` that were skipped by series, times or value statistics.
    pub pages_pruned: AtomicU64,
    /// Pages read and decoded.
    pub pages_read: AtomicU64,
    /// Encoded bytes of the pages read.
    pub bytes_read: AtomicU64,
    /// Pages whose statistics were sufficient, so that they were not read.
    pub pages_answered: AtomicU64,
    /// Rows that a newer row with the same (series, time) replaced or completed.
    pub rows_merged: AtomicU64,
    /// Rows returned to the reader.
    pub rows_returned: AtomicU64,
    /// Time spent planning which pages to read, ns. This time and the ones below are sums over the
    /// participating threads.
    pub planning_ns: AtomicU64,
    /// Time spent reading and decoding pages, ns.
    pub reading_ns: AtomicU64,
    /// Time spent comparing and merging rows of several sources, ns.
    pub merging_ns: AtomicU64,
}

impl ScanMetrics {
    pub(crate) fn add(counter: &AtomicU64, count: u64) {
        // Counters are only read for display, so they need no ordering with other memory.
        counter.fetch_add(count, Ordering::Relaxed);
    }

    /// Runs some work; also returns how long it took, ns.
    #[expect(clippy::disallowed_methods, reason = "durations are only displayed")]
    pub fn timed<T>(work: impl FnOnce() -> T) -> (T, u64) {
        let started = Instant::now();
        let done = work();
        let took_ns = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        (done, took_ns)
    }

    /// Adds what `own` has counted of pages since the last call, and resets `own`.
    pub(super) fn take_in(&self, own: &OwnCounts) {
        let counts = [
            (&self.pages_read, &own.pages_read),
            (&self.bytes_read, &own.bytes_read),
            (&self.pages_answered, &own.pages_answered),
            (&self.reading_ns, &own.reading_ns),
        ];
        for (all, own) in counts {
            match own.swap(0, Ordering::Relaxed) {
                0 => {}
                count => Self::add(all, count),
            }
        }
    }

    pub(super) fn add_merged(&self, rows: u64) {
        Self::add(&self.rows_merged, rows);
    }

    pub(super) fn add_page(&self, bytes: u32) {
        Self::add(&self.pages_read, 1);
        Self::add(&self.bytes_read, u64::from(bytes));
    }
}

/// Counters that change with every page and belong to one thread: threads that update the same
/// counters page by page would slow each other down.
#[derive(Debug, Default)]
pub(super) struct OwnCounts {
    pages_read: AtomicU64,
    bytes_read: AtomicU64,
    pages_answered: AtomicU64,
    reading_ns: AtomicU64,
}

impl OwnCounts {
    pub(super) fn add_page(&self, bytes: u32) {
        Self::add(&self.pages_read, 1);
        Self::add(&self.bytes_read, u64::from(bytes));
    }

    pub(super) fn add_answered(&self, pages: u64) {
        Self::add(&self.pages_answered, pages);
    }

    pub(super) fn add_reading(&self, took_ns: u64) {
        Self::add(&self.reading_ns, took_ns);
    }

    fn add(counter: &AtomicU64, count: u64) {
        // No other thread writes, so no locked instruction is needed.
        let before = counter.load(Ordering::Relaxed);
        counter.store(before + count, Ordering::Relaxed);
    }
}
