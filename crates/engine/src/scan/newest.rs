//! The newest row of each of some series, out of storage: newest times first, so that old segments
//! are not touched for series that have newer rows.

use super::sources::{chunks_of, sources_of, truncate};
use crate::error::Result;
use crate::memory::{Holder, MemoryAccountant};
use crate::merge::{Merge, MergeOptions};
use crate::view::ShardView;
use marigram_model::{SeriesId, SeriesRun, SortedRows, TableId, TimeRange};
use marigram_segment::SegmentColumn;
use roaring::RoaringBitmap;
use std::sync::Arc;

/// Of a source's times, the share at their end that is looked at first: devices that still report
/// have their newest rows there.
const FIRST_SHARE: u64 = 16;

const BATCH_ROWS: usize = 8192;

/// The newest row of each of `series` that has one, sorted by series.
pub(crate) fn newest_rows(
    view: &ShardView,
    table: TableId,
    series: &RoaringBitmap,
    columns: &[SegmentColumn],
    memory: &Arc<MemoryAccountant>,
) -> Result<SortedRows> {
    let mut left = series.clone();
    let mut found = Vec::new();
    let mut newest_max = Some(i64::MAX);
    while let Some(max) = newest_max.filter(|_| !left.is_empty()) {
        let Some(window) = newest_window(view, max) else {
            break;
        };
        let mut sources = sources_of(view, table, &left, window)?;
        sources.extend(chunks_of(view, window));
        let options = MergeOptions {
            range: window,
            series: Some(Arc::new(left.clone())),
            memory: Some((memory.clone(), Holder::Query)),
            ..MergeOptions::all(columns.to_vec(), BATCH_ROWS)
        };
        let newest = last_of_each(Merge::new(sources, options))?;
        for rows in &newest {
            rows.runs.iter().for_each(|run| {
                left.remove(run.series.0);
            });
        }
        found.extend(newest);
        newest_max = window.min.checked_sub(1);
    }
    Ok(combine(&found, columns))
}

/// The newest times up to `max` in which there may be rows: a share of those of the segment or
/// chunk that goes on longest.
fn newest_window(view: &ShardView, max: i64) -> Option<TimeRange> {
    let segments = view.segments.iter().map(|segment| segment.meta.range);
    let ranges = segments.chain(view.chunks.iter().map(|chunk| chunk.range()));
    let below = ranges
        .filter(|range| range.min <= max)
        .map(|range| TimeRange {
            min: range.min,
            max: range.max.min(max),
        });
    let newest = below.max_by_key(|range| (range.max, std::cmp::Reverse(range.min)))?;
    let width = newest.max.abs_diff(newest.min);
    // When the share has been looked at, the rest follows at once: it is most of what is left.
    let whole = view_reaches(view, max, newest);
    let share = if whole { width } else { width / FIRST_SHARE };
    Some(TimeRange {
        min: newest.max.saturating_sub_unsigned(share),
        max: newest.max,
    })
}

/// Whether a part of the segment or chunk of `newest` has been looked at already.
fn view_reaches(view: &ShardView, max: i64, newest: TimeRange) -> bool {
    let segments = view.segments.iter().map(|segment| segment.meta.range);
    let mut ranges = segments.chain(view.chunks.iter().map(|chunk| chunk.range()));
    ranges.any(|range| range.min == newest.min && range.max > max)
}

/// The last row of each series of a merge, in batches sorted by series.
fn last_of_each(mut merge: Merge) -> Result<Vec<SortedRows>> {
    let mut batches: Vec<SortedRows> = Vec::new();
    while let Some(rows) = merge.next_rows()? {
        let goes_on = |earlier: &SortedRows| {
            let (last, first) = (earlier.runs.last(), rows.runs.first());
            last.zip(first)
                .is_some_and(|(last, first)| last.series == first.series)
        };
        if let Some(earlier) = batches.last_mut()
            && goes_on(earlier)
        {
            truncate(earlier, earlier.len() - 1);
        }
        let mut end = 0;
        let lasts: Vec<(usize, usize)> = rows
            .runs
            .iter()
            .map(|run| {
                end += run.rows as usize;
                (0, end - 1)
            })
            .collect();
        let series = rows.runs.iter().map(|run| run.series).collect();
        batches.push(pick(&[rows], series, &lasts));
    }
    Ok(batches)
}

/// Batches of one row a series (no series twice) as one, sorted by series.
pub(crate) fn combine(batches: &[SortedRows], columns: &[SegmentColumn]) -> SortedRows {
    let mut order: Vec<(SeriesId, usize, usize)> = Vec::new();
    for (batch, rows) in batches.iter().enumerate() {
        order.extend(
            rows.runs
                .iter()
                .enumerate()
                .map(|(row, run)| (run.series, batch, row)),
        );
    }
    if order.is_empty() {
        let columns = columns.iter().map(|column| column.kind.nulls(0)).collect();
        return SortedRows {
            runs: Vec::new(),
            times: Vec::new().into(),
            columns,
        };
    }
    if let [only] = batches {
        return only.clone();
    }
    order.sort_unstable();
    let series = order.iter().map(|(series, _, _)| *series).collect();
    let picks: Vec<(usize, usize)> = order.iter().map(|(_, batch, row)| (*batch, *row)).collect();
    pick(batches, series, &picks)
}

/// Rows of batches as (batch, row), each of its own series.
fn pick(batches: &[SortedRows], series: Vec<SeriesId>, picks: &[(usize, usize)]) -> SortedRows {
    let columns = (0..batches.first().map_or(0, |rows| rows.columns.len()))
        .map(|column| {
            let arrays: Vec<_> = batches
                .iter()
                .map(|rows| rows.columns[column].as_ref())
                .collect();
            arrow_select::interleave::interleave(&arrays, picks)
                .expect("batches of one table have columns of the same types")
        })
        .collect();
    SortedRows {
        runs: series
            .into_iter()
            .map(|series| SeriesRun { series, rows: 1 })
            .collect(),
        times: picks
            .iter()
            .map(|(batch, row)| batches[*batch].times[*row])
            .collect(),
        columns,
    }
}
