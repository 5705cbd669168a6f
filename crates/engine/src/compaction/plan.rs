//! The words of picking: what it looks at, its settings, and what it gives.

use marigram_manifest::{SegmentId, SegmentMeta, Space, Tombstone};
use marigram_model::{TableId, TableOptions};
use std::collections::{BTreeMap, BTreeSet};

/// Which kind of compaction goes first where several are due.
#[cfg_attr(
    not(test),
    expect(
        dead_code,
        reason = "shards take turns; the other orders wait for a setting"
    )
)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Policy {
    /// All kinds alike, in turn (`BALANCE`).
    #[default]
    Balance,
    /// Sequence with sequence and unsequence with unsequence before anything across
    /// (`INNER_CROSS`).
    InnerCross,
    /// Unsequence into sequence before anything else (`CROSS_INNER`).
    CrossInner,
}

/// When compactions are due.
#[derive(Clone, Debug)]
pub(crate) struct PickOptions {
    /// Which kind goes first.
    pub policy: Policy,
    /// So many segments of a size are merged.
    pub inner_segments_min: usize,
    /// So many segments are merged at once, at most.
    pub inner_segments_max: usize,
    /// Segments below this size count as of one size; each next size is four times the one before.
    pub tier_bytes: u64,
    /// Segments of this size are not merged among themselves, and none is written much larger.
    pub segment_bytes_max: u64,
    /// Unsequence segments go into the sequence ones when they have this part of their bytes.
    pub cross_ratio: u64,
    /// Or when there are so many of them.
    pub unsequence_segments_max: usize,
    /// A cross compaction reads so many bytes at most, if it can.
    pub cross_bytes_max: u64,
    /// With more tombstones, segments are rewritten to spend them.
    pub tombstones_max: usize,
}

impl Default for PickOptions {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            inner_segments_min: 4,
            inner_segments_max: 16,
            tier_bytes: 1 << 20,
            segment_bytes_max: 512 << 20,
            cross_ratio: 8,
            unsequence_segments_max: 8,
            cross_bytes_max: 8 << 30,
            tombstones_max: 64,
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
pub(crate) enum Kind {
    Rewrite,
    Inner(Space),
    Cross,
}

/// What to compact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub kind: Kind,
    /// Ascending by id.
    pub inputs: Vec<SegmentId>,
    /// Space of the result.
    pub space: Space,
    /// Tombstones up to this sequence need not be applied to the result again: its `sequence_max`
    /// may be raised to it.
    pub spends_up_to: u64,
    /// The result is split into segments of about this size.
    pub segment_bytes_max: u64,
}
