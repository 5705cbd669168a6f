//! Which aggregates take little time to begin, or as a whole, and how many rows they give.

use super::groups::GroupSlots;
use super::recipe::AggregateRecipe;
use crate::scan::SeriesScan;

/// Series up to which an aggregate is begun on the thread that polls the plan.
const INLINE_BEGIN_SERIES_MAX: u64 = 4096;
/// Series up to which a whole statement is carried out on the thread of who asks.
const INLINE_STATEMENT_SERIES_MAX: u64 = 1024;

/// Whether all of it takes little time, unless there are more pages to be read than are read at once.
pub(super) fn runs_inline(recipe: &AggregateRecipe, scan: &SeriesScan) -> bool {
    if is_one_group(recipe, scan) {
        return true;
    }
    scan.request().selection.len() <= INLINE_STATEMENT_SERIES_MAX && begins_inline(recipe, scan)
}

/// Whether no series is looked at by itself: all are one group, and no part of them has to be found.
fn is_one_group(recipe: &AggregateRecipe, scan: &SeriesScan) -> bool {
    let is_whole = scan.request().partitions <= scan.snapshot().views().len();
    is_whole && recipe.tags.is_none() && !recipe.needs_last_rows_only()
}

/// Whether to begin takes less than to hand it to another thread.
pub(super) fn begins_inline(recipe: &AggregateRecipe, scan: &SeriesScan) -> bool {
    let selection = &scan.request().selection;
    if is_one_group(recipe, scan) {
        return true;
    }
    selection.len() <= INLINE_BEGIN_SERIES_MAX
        && (!recipe.needs_last_rows_only() || scan.snapshot().knows_last_rows(selection))
}

/// About how many rows the answer has, or more.
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
