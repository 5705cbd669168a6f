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
        }
    }
}
