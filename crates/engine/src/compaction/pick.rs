//! Which compaction comes next: a pure function of a version.
//!
//! Kinds, and what each must keep to:
//! - *Move* late segments that overlap nothing into the sequence space: an entry of the manifest.
//!   What is late is not after what was flushed of its series, so that no row in order will ever
//!   overlap it.
//! - *Rewrite* one segment, without the tables that were dropped and the rows that were deleted.
//! - *Inner*: segments of one space and partition become one. Size-tiered: the result is at least
//!   four times the largest input, so that both the number of times that a byte is rewritten and
//!   the number of segments grow with the logarithm of a partition's size, up to segments of the
//!   largest size. In the unsequence space only neighbours in the order of age are merged: between
//!   two of them there must be no third that could hold the same rows.
//! - *Cross*: unsequence segments go into the sequence segments that they overlap, when they are
//!   worth it: each late byte pays for a fixed number of bytes at most, once. Their rows are then
//!   older than all that stays in the unsequence space, so the oldest go first.

use super::candidates::CompactionCandidates;
use super::plan::{CompactionPlan, PickInput, PickOptions};
use crate::options::CompactionPolicy as Policy;
use marigram_manifest::{Partition, SegmentSpace};
use marigram_model::TableId;

/// The next compaction; `None` where none is due. `turn` counts the compactions that were picked
/// before, for policies that take turns.
pub(crate) fn pick(
    input: &PickInput<'_>,
    options: &PickOptions,
    turn: u64,
) -> Option<CompactionPlan> {
    let candidates = CompactionCandidates { input, options };
    candidates
        .dropped_tables()
        .or_else(|| candidates.movable())
        .or_else(|| by_policy(&candidates, turn))
        .or_else(|| {
            (input.tombstones.len() > options.tombstones_max).then(|| candidates.tombstones())?
        })
}

/// What makes one segment in order of all that a table has in a partition; `None` where it is that
/// already, unless it is to be written `anew`.
pub(crate) fn pick_table(
    input: &PickInput<'_>,
    options: &PickOptions,
    table: TableId,
    partition: Partition,
    anew: bool,
) -> Option<CompactionPlan> {
    CompactionCandidates { input, options }.table(table, partition, anew)
}

fn by_policy(candidates: &CompactionCandidates<'_>, turn: u64) -> Option<CompactionPlan> {
    let sequence = || candidates.inner(SegmentSpace::Sequence);
    let unsequence = || candidates.inner(SegmentSpace::Unsequence);
    let cross = || candidates.cross();
    let kinds: [&dyn Fn() -> Option<CompactionPlan>; 3] =
        match (candidates.options.policy, turn % 3) {
            (Policy::InnerCross, _) | (Policy::Balance, 0) => [&sequence, &unsequence, &cross],
            (Policy::CrossInner, _) | (Policy::Balance, 2) => [&cross, &sequence, &unsequence],
            (Policy::Balance, _) => [&unsequence, &cross, &sequence],
        };
    kinds.into_iter().find_map(|kind| kind())
}

#[cfg(test)]
#[path = "simulation_tests.rs"]
mod simulation;
#[cfg(test)]
#[path = "pick_tests.rs"]
mod tests;
