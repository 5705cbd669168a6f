//! Which compaction comes next: a pure function of a version.
//!
//! The kinds of compaction, with their constraints:
//! - *Move* late segments that overlap nothing into the sequence space; this only changes the
//!   manifest. Late rows are not after what was flushed of their series, so no row in order will
//!   ever overlap them.
//! - *Rewrite* one segment without dropped tables and deleted rows.
//! - *Inner*: segments of one space and partition become one. It is size-tiered: the result is at
//!   least four times the largest input, so both the number of times that a byte is rewritten and
//!   the number of segments grow with the logarithm of a partition's size, up to segments of the
//!   largest size. In the unsequence space, only segments adjacent in age are merged: between any
//!   two of them, there must be no third one that could contain the same rows.
//! - *Cross*: unsequence segments are merged into the sequence segments that they overlap, when
//!   this is worthwhile: each late byte pays once for at most a fixed number of bytes. Their rows
//!   then count as older than everything that stays in the unsequence space, so the oldest go
//!   first.

use super::candidates::CompactionCandidates;
use super::plan::{CompactionPlan, PickInput, PickOptions};
use super::spent::cost;
use crate::options::CompactionPolicy as Policy;
use marigram_manifest::{Partition, SegmentSpace};
use marigram_model::TableId;

/// The next compaction; `None` if none is due. `turn` is the number of compactions picked before,
/// for policies that take turns.
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
            let costs = input.tombstones.iter().map(cost);
            (costs.sum::<usize>() > options.tombstones_max).then(|| candidates.tombstones())?
        })
}

/// The plan that turns all segments of a table in a partition into one sorted segment; `None` if
/// there is only one already, unless it must be rewritten (`anew`).
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
