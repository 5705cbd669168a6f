//! What a merge reads, for those who read it.

use super::MergeOptions;
use super::block::Memory;
use super::bounds::{Extents, Pruning};
use super::metrics::ScanMetrics;
use marigram_model::TimeRange;
use marigram_segment::SegmentColumn;
use roaring::RoaringBitmap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What all cursors of a merge share.
#[derive(Debug)]
pub(super) struct Scope {
    pub(super) columns: Vec<SegmentColumn>,
    pub(super) range: TimeRange,
    pub(super) series: Option<Arc<RoaringBitmap>>,
    pub(super) pruning: Pruning,
    pub(super) memory: Option<Memory>,
    pub(super) metrics: Arc<ScanMetrics>,
    pub(super) territory: RangeInclusive<u32>,
    /// Time that planning and reading took for this scope, ns.
    spent_ns: AtomicU64,
}

impl Scope {
    /// What `options` ask for, of sources that lie at `extents`.
    pub(super) fn new(options: MergeOptions, extents: Extents) -> Self {
        let memory = options.memory;
        Self {
            columns: options.columns,
            range: options.range,
            series: options.series,
            pruning: Pruning {
                bounds: options.bounds,
                extents,
            },
            memory: memory.map(|(accountant, holder)| Memory::new(accountant, holder)),
            metrics: options.metrics.unwrap_or_default(),
            territory: options.territory,
            spent_ns: AtomicU64::new(0),
        }
    }

    /// Plans pages, on the clock.
    pub(super) fn planning<T>(&self, work: impl FnOnce() -> T) -> T {
        self.spending(&self.metrics.planning_ns, work)
    }

    /// Reads and decodes a page, on the clock.
    pub(super) fn reading<T>(&self, work: impl FnOnce() -> T) -> T {
        self.spending(&self.metrics.reading_ns, work)
    }

    /// Time that planning and reading took so far, ns.
    pub(super) fn spent_ns(&self) -> u64 {
        self.spent_ns.load(Ordering::Relaxed)
    }

    fn spending<T>(&self, stage: &AtomicU64, work: impl FnOnce() -> T) -> T {
        let (done, took_ns) = ScanMetrics::timed(work);
        ScanMetrics::add(stage, took_ns);
        ScanMetrics::add(&self.spent_ns, took_ns);
        done
    }
}
