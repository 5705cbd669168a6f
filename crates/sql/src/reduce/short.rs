//! Which aggregates take little time to begin, or as a whole.

use super::recipe::Recipe;
use crate::scan::SeriesScan;

/// Series up to which an aggregate is begun on the thread that polls the plan.
const INLINE_SERIES_MAX: u64 = 4096;
/// Series up to which a whole statement is carried out on the thread of who asks.
const SHORT_SERIES_MAX: u64 = 1024;

/// Whether all of it takes little time, unless there are more pages to be read than are read at once.
pub(super) fn is_short(recipe: &Recipe, scan: &SeriesScan) -> bool {
    scan.request().selection.len() <= SHORT_SERIES_MAX && begins_quickly(recipe, scan)
}

/// Whether to begin takes less than to hand it to another thread.
pub(super) fn begins_quickly(recipe: &Recipe, scan: &SeriesScan) -> bool {
    let selection = &scan.request().selection;
    selection.len() <= INLINE_SERIES_MAX
        && (!recipe.needs_last_rows_only() || scan.snapshot().knows_last_rows(selection))
}
