//! Types for picking compactions: the input, the settings and the plan.

use crate::options::CompactionPolicy;
use marigram_manifest::{SegmentId, SegmentMeta, SegmentSpace, Tombstone};
use marigram_model::{TableId, TableOptions};
use std::collections::{BTreeMap, BTreeSet};

/// When compactions are due.
#[derive(Clone, Debug)]
pub(crate) struct PickOptions {
    /// Which kind has priority.
    pub policy: CompactionPolicy,
    /// Segments are merged when their total size is this many times that of the largest.
    pub inner_growth: u64,
    /// Most segments to merge at once.
    pub inner_segments_max: usize,
    /// Segments below this size count as this size.
    pub small_bytes: u64,
    /// Segments of this size are not merged with one another, and no segment is written much
    /// larger.
    pub segment_bytes_max: u64,
    /// Unsequence segments are merged into sequence segments when this many times their bytes
    /// reaches the bytes to rewrite.
    pub cross_ratio: u64,
    /// Most bytes that a cross compaction reads, if possible.
    pub cross_bytes_max: u64,
    /// Cost of tombstones (most count as one) above which segments are rewritten to spend them.
    pub tombstones_max: usize,
}

impl PickOptions {
    /// The settings of a policy. A kind that has priority is also due sooner: a late byte costs at
    /// most `cross_ratio` bytes of rewriting, and waits less the larger this is.
    pub(crate) fn for_policy(policy: CompactionPolicy) -> Self {
        Self {
            policy,
            inner_growth: 4,
            inner_segments_max: 32,
            small_bytes: 64 << 10,
            segment_bytes_max: 512 << 20,
            cross_ratio: match policy {
                CompactionPolicy::InnerCross => 2,
                CompactionPolicy::Balance => 4,
                CompactionPolicy::CrossInner => 8,
            },
            cross_bytes_max: 8 << 30,
            tombstones_max: 64,
        }
    }

    /// Settings that leave no late row in place, for compaction on demand. Cross compactions come
    /// first, because they merge what inner compactions would otherwise merge before.
    pub(crate) fn thorough() -> Self {
        Self {
            cross_ratio: u64::MAX,
            ..Self::for_policy(CompactionPolicy::CrossInner)
        }
    }
}

/// A version as the picker sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PickInput<'a> {
    pub segments: &'a BTreeMap<SegmentId, SegmentMeta>,
    pub tombstones: &'a [Tombstone],
    /// Existing tables; rows of others must be removed.
    pub tables: &'a BTreeMap<TableId, TableOptions>,
    /// Unreadable segments, which are left alone.
    pub unreadable: &'a BTreeSet<SegmentId>,
    /// The WAL sequence up to which all rows are in segments.
    pub flushed_sequence: u64,
}

/// Kinds of compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompactionKind {
    /// Late segments that overlap nothing move to the sequence space unchanged.
    Move,
    /// Rewrites one segment without what was dropped and deleted.
    Rewrite,
    /// Merges segments of one space into one.
    Inner(SegmentSpace),
    /// Merges late segments into the sequence segments that they overlap.
    Cross,
    /// Merges all segments of a table in a partition into one.
    Table,
}

impl CompactionKind {
    /// Name for display.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Move => "move",
            Self::Rewrite => "rewrite",
            Self::Inner(SegmentSpace::Sequence) => "inner sequence",
            Self::Inner(SegmentSpace::Unsequence) => "inner unsequence",
            Self::Cross => "cross",
            Self::Table => "table",
        }
    }
}

/// What to compact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CompactionPlan {
    pub kind: CompactionKind,
    /// Ascending by id.
    pub inputs: Vec<SegmentId>,
    /// Space of the result.
    pub space: SegmentSpace,
    /// Tombstones up to this sequence need not be applied to the result again: its `sequence_max`
    /// may be raised to this.
    pub spends_up_to: u64,
    /// The result is split into segments of about this size.
    pub segment_bytes_max: u64,
    /// Whether the result will be read rather than merged again: because its partition is older
    /// than the newest one, or the compaction is on demand. Then its pages are filled rather than
    /// only copied.
    pub cold: bool,
}
