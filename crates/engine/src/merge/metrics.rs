//! Counters of what a scan did, for `EXPLAIN ANALYZE` and tests.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// What a scan did; shared by its partitions and readable while it runs.
#[derive(Debug, Default)]
pub struct ScanMetrics {
    /// Series of the table.
    pub series_total: AtomicU64,
    /// Series whose rows are read.
    pub series_selected: AtomicU64,
    /// Segments that hold rows of the table.
    pub segments_total: AtomicU64,
    /// Of `segments_total`, those left out by their series and times.
    pub segments_pruned: AtomicU64,
    /// Pages of touched row groups: time pages count one each, and each projected column's.
    pub pages_total: AtomicU64,
    /// Of `pages_total`, those left out by series, times or value statistics.
    pub pages_pruned: AtomicU64,
    /// Pages read and decoded.
    pub pages_read: AtomicU64,
    /// Encoded bytes of the pages read.
    pub bytes_read: AtomicU64,
    /// Pages whose statistics answered for them, so that they were not read.
    pub pages_answered: AtomicU64,
    /// Rows that gave way to, or were completed by, a newer row of the same (series, time).
    pub rows_merged: AtomicU64,
    /// Rows given to the reader.
    pub rows_returned: AtomicU64,
    /// Time in which it was planned which pages to read and which not, ns. This and the times below are
    /// added up over the threads that took part.
    pub planning_ns: AtomicU64,
    /// Time in which pages were read and decoded, ns.
    pub reading_ns: AtomicU64,
    /// Time in which rows of several sources were compared and merged, ns.
    pub merging_ns: AtomicU64,
}

impl ScanMetrics {
    pub(crate) fn add(counter: &AtomicU64, count: u64) {
        // Counters are read for display alone: no order with other memory is needed.
        counter.fetch_add(count, Ordering::Relaxed);
    }

    /// Does some work; gives how long it took too, ns.
    #[expect(
        clippy::disallowed_methods,
        reason = "how long something took is shown and decides nothing"
    )]
    pub fn timed<T>(work: impl FnOnce() -> T) -> (T, u64) {
        let started = Instant::now();
        let done = work();
        let took_ns = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        (done, took_ns)
    }

    /// Takes in what `own` has counted of pages since the last call; `own` begins anew.
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

/// What is counted for every page, by one thread alone: threads that add to the same counters page by
/// page hold each other up.
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
        // Nobody else adds, so that no locked instruction is needed.
        let before = counter.load(Ordering::Relaxed);
        counter.store(before + count, Ordering::Relaxed);
    }
}
