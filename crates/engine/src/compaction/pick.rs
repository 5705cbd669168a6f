//! Which compaction comes next: a pure function of a version.
//!
//! Kinds, and what each must keep to:
//! - *Rewrite* one segment, without the tables that were dropped and the rows that were deleted.
//! - *Inner*: segments of one space and partition become one. Size-tiered: of small segments there
//!   are never more than a few, so that the number of segments of a partition grows with the
//!   logarithm of its size, up to segments of the largest size. In the unsequence space only
//!   neighbours in the order of age are merged: between two of them there must be no third that
//!   could hold the same rows.
//! - *Cross*: unsequence segments go into the sequence segments that they overlap. Their rows are
//!   then older than all that stays in the unsequence space, so the oldest go first.

use super::candidates::Candidates;
use super::plan::{PickInput, PickOptions, Plan, Policy};
use marigram_manifest::Space;

/// The next compaction; `None` where none is due. `turn` counts the compactions that were picked
/// before, for policies that take turns.
pub(crate) fn pick(input: &PickInput<'_>, options: &PickOptions, turn: u64) -> Option<Plan> {
    let candidates = Candidates { input, options };
    candidates
        .dropped_tables()
        .or_else(|| by_policy(&candidates, turn))
        .or_else(|| {
            (input.tombstones.len() > options.tombstones_max).then(|| candidates.tombstones())?
        })
}

fn by_policy(candidates: &Candidates<'_>, turn: u64) -> Option<Plan> {
    let sequence = || candidates.inner(Space::Sequence);
    let unsequence = || candidates.inner(Space::Unsequence);
    let cross = || candidates.cross();
    let kinds: [&dyn Fn() -> Option<Plan>; 3] = match (candidates.options.policy, turn % 3) {
        (Policy::InnerCross, _) | (Policy::Balance, 0) => [&sequence, &unsequence, &cross],
        (Policy::CrossInner, _) | (Policy::Balance, 2) => [&cross, &sequence, &unsequence],
        (Policy::Balance, _) => [&unsequence, &cross, &sequence],
    };
    kinds.into_iter().find_map(|kind| kind())
}

#[cfg(test)]
#[path = "pick_tests.rs"]
mod tests;
