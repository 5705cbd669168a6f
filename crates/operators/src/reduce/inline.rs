//! Decides which aggregates begin quickly, or run quickly as a whole, and estimates their number of
//! rows.

use super::groups::GroupSlots;
use super::recipe::AggregateRecipe;
use crate::scan::SeriesScan;
use marigram_service::{InlineDecision, InlinePolicy};

/// Whether the whole aggregate runs inline, unless it must read more pages than the policy allows.
pub(super) fn runs_inline(recipe: &AggregateRecipe, scan: &SeriesScan) -> InlineDecision {
    if is_one_group(recipe, scan) {
        return Ok(());
    }
    let series = scan.request().selection.len();
    InlinePolicy::DEFAULT.aggregate(series, || knows_last(recipe, scan))
}

/// Whether no series needs a group of its own: all series form one group, and no part of them has
/// to be selected.
fn is_one_group(recipe: &AggregateRecipe, scan: &SeriesScan) -> bool {
    let is_whole = scan.request().partitions <= scan.snapshot().views().len();
    is_whole && recipe.tags.is_none() && !recipe.needs_last_rows_only()
}

/// Whether beginning takes less time than handing it to another thread.
pub(super) fn begins_inline(recipe: &AggregateRecipe, scan: &SeriesScan) -> bool {
    if is_one_group(recipe, scan) {
        return true;
    }
    let series = scan.request().selection.len();
    let knows_last = || knows_last(recipe, scan);
    InlinePolicy::DEFAULT.begin(series, knows_last).is_ok()
}

/// Whether the last rows are in memory, if the aggregate needs them.
fn knows_last(recipe: &AggregateRecipe, scan: &SeriesScan) -> bool {
    let selection = &scan.request().selection;
    !recipe.needs_last_rows_only() || scan.snapshot().knows_last_rows(selection)
}

/// An estimate of the result's number of rows, or more.
pub(super) fn estimated_rows(recipe: &AggregateRecipe, scan: &SeriesScan) -> usize {
    let series = scan.request().selection.len();
    let groups = if recipe.tags.is_some() { series } else { 1 };
    let groups = usize::try_from(groups).unwrap_or(usize::MAX);
    let rows = usize::try_from(scan.rows_about()).unwrap_or(usize::MAX);
    let slots = match GroupSlots::new(groups, recipe.buckets.as_ref(), scan.range()) {
        GroupSlots::Made { .. } => rows,
        slots => slots.len(),
    };
    slots.min(rows).max(1)
}
