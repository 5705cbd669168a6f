//! Reading pages of a row group, checked against what its index says.

use super::page_plan::PagePlan;
use super::scope::Scope;
use crate::error::{EngineError, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::ScalarBuffer;
use marigram_model::ColumnId;
use marigram_segment::{PageTimes, Segment, SegmentColumn};

/// The times of a page of row group `group`.
pub(super) fn times(segment: &Segment, group: usize, plan: &PagePlan) -> Result<ScalarBuffer<i64>> {
    let array = segment.read_page(group, ColumnId::TIME, plan.page)?;
    let times = array
        .as_primitive_opt::<Int64Type>()
        .map(|times| times.values().clone());
    times
        .filter(|times| times.len() == plan.rows as usize)
        .ok_or_else(|| not_times(segment, plan))
}

/// The times of a page of row group `group`, in whatever form is had for less.
pub(super) fn any_times(segment: &Segment, group: usize, plan: &PagePlan) -> Result<PageTimes> {
    let times = segment.read_times(group, plan.page)?;
    let rows = match &times {
        PageTimes::Each(times) => times.len() as u64,
        PageTimes::Regular(times) => times.len(),
    };
    if rows != u64::from(plan.rows) {
        return Err(not_times(segment, plan));
    }
    Ok(times)
}

fn not_times(segment: &Segment, plan: &PagePlan) -> EngineError {
    EngineError::Corrupt {
        path: segment.path().to_owned(),
        offset: plan.offset,
        reason: format!("a time page is not {} times", plan.rows),
    }
}

/// The scope's columns of the page number `place.0`, whose times stand at `place.1` and are `rows`;
/// `None` for a column that the row group lacks.
pub(super) fn columns(
    segment: &Segment,
    group: usize,
    place: (usize, u64),
    rows: usize,
    scope: &Scope,
) -> Result<Vec<Option<ArrayRef>>> {
    let (page, times_offset) = place;
    let own = &segment.row_groups()[group].columns;
    let read = |column: &SegmentColumn| {
        if !own.iter().any(|own| own.id == column.id) {
            return Ok(None);
        }
        let meta = segment.pages(group, column.id)?;
        let meta = meta.and_then(|metas| metas.get(page));
        let array = segment.read_page(group, column.id, page)?;
        scope.own.add_page(meta.map_or(0, |meta| meta.bytes));
        if array.len() != rows || *array.data_type() != column.kind.data_type() {
            return Err(EngineError::Corrupt {
                path: segment.path().to_owned(),
                offset: meta.map_or(times_offset, |meta| meta.offset),
                reason: format!(
                    "a page of column {} holds {} values of {}; {rows} of {} are expected",
                    column.id,
                    array.len(),
                    array.data_type(),
                    column.kind.data_type(),
                ),
            });
        }
        Ok(Some(array))
    };
    scope.columns.iter().map(read).collect()
}
