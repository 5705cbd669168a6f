//! The words of picking: what it looks at, its settings, and what it gives.

use crate::options::CompactionPolicy;
use marigram_manifest::{SegmentId, SegmentMeta, SegmentSpace, Tombstone};
use marigram_model::{TableId, TableOptions};
use std::collections::{BTreeMap, BTreeSet};

/// When compactions are due.
#[derive(Clone, Debug)]
pub(crate) struct PickOptions {
    /// Which kind goes first.
    pub policy: CompactionPolicy,
    /// Segments are merged when all of them together have so many times the bytes of the largest.
    pub inner_growth: u64,
    /// So many segments are merged at once, at most.
    pub inner_segments_max: usize,
    /// Segments below this size count as of this size.
    pub small_bytes: u64,
    /// Segments of this size are not merged among themselves, and none is written much larger.
    pub segment_bytes_max: u64,
    /// Unsequence segments go into the sequence ones when so many times their bytes are as many as
    /// those that must be rewritten.
    pub cross_ratio: u64,
    /// A cross compaction reads so many bytes at most, if it can.
    pub cross_bytes_max: u64,
    /// With more tombstones, segments are rewritten to spend them.
    pub tombstones_max: usize,
}

impl PickOptions {
    /// The settings of a policy. What a policy puts first it also does sooner: a late byte costs
    /// `cross_ratio` bytes of rewriting at most, and waits the shorter the larger it is.
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

    /// Settings under which no late row is left where it is: for compaction on demand. Across goes
    /// first, since it merges what inner compactions would merge before.
    pub(crate) fn thorough() -> Self {
        Self {
            cross_ratio: u64::MAX,
            ..Self::for_policy(CompactionPolicy::CrossInner)
        }
    }
}

/// A version, as the picker sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PickInput<'a> {
    pub segments: &'a BTreeMap<SegmentId, SegmentMeta>,
    pub tombstones: &'a [Tombstone],
    /// Tables that are there; rows of others are to be removed.
    pub tables: &'a BTreeMap<TableId, TableOptions>,
    /// Segments that cannot be read: they are left alone.
    pub unreadable: &'a BTreeSet<SegmentId>,
    /// Highest WAL sequence of which all rows up to it are in segments.
    pub flushed_sequence: u64,
}

/// Kinds of compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompactionKind {
    /// Late segments that overlap nothing go to the sequence space as they are.
    Move,
    /// One segment without what was dropped and deleted.
    Rewrite,
    /// Segments of one space become one.
    Inner(SegmentSpace),
    /// Late segments go into the sequence segments that they overlap.
    Cross,
    /// All that a table has in a partition becomes one.
    Table,
}

impl CompactionKind {
    /// Its name for people.
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
    /// may be raised to it.
    pub spends_up_to: u64,
    /// The result is split into segments of about this size.
    pub segment_bytes_max: u64,
    /// Whether the result will be read rather than merged again: a partition older than the newest
    /// one, or compaction on demand. Its pages are filled, not only copied.
    pub cold: bool,
}
