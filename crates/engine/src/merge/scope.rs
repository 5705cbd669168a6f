//! What a merge reads, as the parts of the merge share it.

use super::MergeOptions;
use super::block::BlockMemory;
use super::bounds::{PagePruning, SourceExtents};
use super::metrics::{OwnCounts, ScanMetrics};
use marigram_model::TimeRange;
use marigram_segment::SegmentColumn;
use roaring::RoaringBitmap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// State that all cursors of a merge share.
#[derive(Debug)]
pub(super) struct MergeScope {
    pub(super) columns: Vec<SegmentColumn>,
    pub(super) range: TimeRange,
    pub(super) series: Option<Arc<RoaringBitmap>>,
    pub(super) pruning: PagePruning,
    pub(super) memory: Option<BlockMemory>,
    pub(super) metrics: Arc<ScanMetrics>,
    /// Counts that have not been added to `metrics` yet.
    pub(super) own: OwnCounts,
    pub(super) territory: RangeInclusive<u32>,
    /// Time that planning and reading took for this scope, ns.
    spent_ns: AtomicU64,
}

impl MergeScope {
    /// The scope of `options`, for sources with `extents`.
    pub(super) fn new(options: MergeOptions, extents: SourceExtents) -> Self {
        let memory = options.memory;
        Self {
            columns: options.columns,
            range: options.range,
            series: options.series,
            pruning: PagePruning {
                bounds: options.bounds,
                extents,
            },
            memory: memory.map(|(accountant, holder)| BlockMemory::new(accountant, holder)),
            metrics: options.metrics.unwrap_or_default(),
            territory: options.territory,
            own: OwnCounts::default(),
            spent_ns: AtomicU64::new(0),
        }
    }

    /// Plans pages, and measures the time.
    pub(super) fn planning<T>(&self, work: impl FnOnce() -> T) -> T {
        let (done, took_ns) = self.spending(work);
        ScanMetrics::add(&self.metrics.planning_ns, took_ns);
        done
    }

    /// Reads and decodes a page, and measures the time.
    pub(super) fn reading<T>(&self, work: impl FnOnce() -> T) -> T {
        let (done, took_ns) = self.spending(work);
        self.own.add_reading(took_ns);
        done
    }

    /// Time that planning and reading have taken so far, ns.
    pub(super) fn spent_ns(&self) -> u64 {
        self.spent_ns.load(Ordering::Relaxed)
    }

    fn spending<T>(&self, work: impl FnOnce() -> T) -> (T, u64) {
        let (done, took_ns) = ScanMetrics::timed(work);
        ScanMetrics::add(&self.spent_ns, took_ns);
        (done, took_ns)
    }

    /// Adds the counts of pages to the metrics.
    pub(super) fn tell(&self) {
        self.metrics.take_in(&self.own);
    }
}

impl Drop for MergeScope {
    fn drop(&mut self) {
        self.tell();
    }
}
