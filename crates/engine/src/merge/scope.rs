//! What a merge reads, for those who read it.

use super::block::Memory;
use super::bounds::Pruning;
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
