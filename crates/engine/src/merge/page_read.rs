//! Reads the pages of a row group, and checks them against the index.

use super::page_plan::{PagePlan, PageSpan};
use super::scope::MergeScope;
use crate::error::{EngineError, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::ScalarBuffer;
use marigram_model::{ColumnId, TimeRange};
use marigram_segment::{PageTimes, Segment, SegmentColumn};
use std::ops::Range;

/// Selects which rows of a page of `rows` rows to read if `spans` is requested: from the first to
/// the last requested row if that is at most half of the page, otherwise all rows.
pub(super) fn window(spans: &[PageSpan], rows: u32) -> Range<u32> {
    let ends = spans.first().zip(spans.last());
    let asked = ends.map_or(0..rows, |(first, last)| first.start..last.end);
    if asked.end - asked.start > rows / 2 {
        return 0..rows;
    }
    asked
}

fn read(
    segment: &Segment,
    (group, column, page): (usize, ColumnId, usize),
    window: &Range<u32>,
    rows: u32,
) -> Result<ArrayRef> {
    Ok(if *window == (0..rows) {
        segment.read_page(group, column, page)?
    } else {
        let rows = window.start as usize..window.end as usize;
        segment.read_part(group, column, page, &rows)?
    })
}

/// The times of the rows `window` in a page of row group `group`.
pub(super) fn times(
    segment: &Segment,
    group: usize,
    plan: &PagePlan,
    window: &Range<u32>,
) -> Result<ScalarBuffer<i64>> {
    let array = read(
        segment,
        (group, ColumnId::TIME, plan.page),
        window,
        plan.rows,
    )?;
    let times = array
        .as_primitive_opt::<Int64Type>()
        .map(|times| times.values().clone());
    times
        .filter(|times| times.len() == window.len())
        .ok_or_else(|| not_times(segment, plan))
}

/// Like [`times`], for the requested rows `spans` of a page, narrowed to those in `range` as far as
/// that is cheaper; also returns which rows they are.
pub(super) fn times_within(
    segment: &Segment,
    group: usize,
    plan: &PagePlan,
    spans: &[PageSpan],
    range: TimeRange,
) -> Result<(Range<u32>, ScalarBuffer<i64>)> {
    if let [span] = spans
        && !range.covers(plan.range)
    {
        let rows = span.start as usize..span.end as usize;
        let (rows, times) = segment.read_times_within(group, plan.page, &rows, range)?;
        return Ok((rows.start as u32..rows.end as u32, times));
    }
    let window = window(spans, plan.rows);
    let times = times(segment, group, plan, &window)?;
    Ok((window, times))
}

/// The times of a page of row group `group`, in whichever form is cheaper.
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

/// The location of a page in its row group, and which of its rows are read.
#[derive(Clone, Debug)]
pub(super) struct PageWindow {
    /// Its number.
    pub(super) page: usize,
    /// The offset of its times in the file.
    pub(super) offset: u64,
    /// Number of its rows.
    pub(super) rows: u32,
    /// The rows that are read.
    pub(super) window: Range<u32>,
}

impl PageWindow {
    /// The window of a planned page.
    pub(super) fn new(plan: &PagePlan, window: Range<u32>) -> Self {
        Self {
            page: plan.page,
            offset: plan.offset,
            rows: plan.rows,
            window,
        }
    }

    /// Narrows the rows that are read to `rows`.
    pub(super) fn narrowed(self, rows: &Range<u32>) -> Self {
        let first = self.window.start;
        Self {
            window: first + rows.start..first + rows.end,
            ..self
        }
    }

    /// Whether all rows are read.
    pub(super) fn is_whole(&self) -> bool {
        self.window == (0..self.rows)
    }
}

/// The scope's columns for the rows of a page that are read; `None` for a column that the row group
/// lacks.
pub(super) fn columns(
    segment: &Segment,
    group: usize,
    place: &PageWindow,
    scope: &MergeScope,
) -> Result<Vec<Option<ArrayRef>>> {
    let (page, rows) = (place.page, place.window.len());
    let own = &segment.row_groups()[group].columns;
    let read = |column: &SegmentColumn| {
        if !own.iter().any(|own| own.id == column.id) {
            return Ok(None);
        }
        let meta = segment.pages(group, column.id)?;
        let meta = meta.and_then(|metas| metas.get(page));
        let array = read(segment, (group, column.id, page), &place.window, place.rows)?;
        scope.own.add_page(meta.map_or(0, |meta| meta.bytes));
        if array.len() != rows || *array.data_type() != column.kind.data_type() {
            return Err(EngineError::Corrupt {
                path: segment.path().to_owned(),
                offset: meta.map_or(place.offset, |meta| meta.offset),
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
