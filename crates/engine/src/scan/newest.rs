//! Finds the newest row of each of some series in storage: the newest times first, so that old
//! segments are not touched for series with newer rows.

use super::sources::{chunks_of, sources_of, truncate};
use crate::error::{EngineError, Result};
use crate::memory::{Holder, MemoryAccountant, MemoryReservation};
use crate::merge::{MergeOptions, MergeStream};
use crate::text::{self, BATCH_TEXT_BYTES};
use crate::view::ShardView;
use marigram_model::{SeriesId, SeriesRun, SortedRows, TableId, TimeRange};
use marigram_segment::SegmentColumn;
use roaring::RoaringBitmap;
use std::sync::Arc;
use std::time::Duration;

/// The share of a source's times, at their end, that is read first: devices that still report have
/// their newest rows there.
const FIRST_SHARE: u64 = 16;

const BATCH_ROWS: usize = 8192;
/// Rows in a batch of the result.
const COMBINED_ROWS: usize = 64 * 1024;

/// How long the result waits for memory at most.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// The newest row of each of `series` that has one, sorted by series, in consecutive batches. The
/// result counts as memory of scans until it is complete.
///
/// # Errors
/// Damage or I/O errors in what is read; `Busy` if there is no memory for it.
pub(crate) fn newest_rows(
    view: &ShardView,
    table: TableId,
    series: &RoaringBitmap,
    columns: &[SegmentColumn],
    memory: &Arc<MemoryAccountant>,
) -> Result<Vec<SortedRows>> {
    let mut left = series.clone();
    let mut found = Vec::new();
    let mut held = MemoryReservation::empty(memory, Holder::Scan);
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
            memory: Some((memory.clone(), Holder::Scan)),
            ..MergeOptions::all(columns.to_vec(), BATCH_ROWS)
        };
        let newest = last_of_each(MergeStream::new(sources, options), &mut held)?;
        for rows in &newest {
            rows.runs.iter().for_each(|run| {
                left.remove(run.series.0);
            });
        }
        found.extend(newest);
        newest_max = window.min.checked_sub(1);
    }
    Ok(combine(&found, BATCH_TEXT_BYTES))
}

/// The newest times up to `max` in which there may be rows: a share of the times of the segment or
/// chunk that extends furthest.
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
    // After the share, the rest follows at once: it is most of what remains.
    let whole = view_reaches(view, max, newest);
    let share = if whole { width } else { width / FIRST_SHARE };
    Some(TimeRange {
        min: newest.max.saturating_sub_unsigned(share),
        max: newest.max,
    })
}

/// Whether a part of the segment or chunk of `newest` has been read already.
fn view_reaches(view: &ShardView, max: i64, newest: TimeRange) -> bool {
    let segments = view.segments.iter().map(|segment| segment.meta.range);
    let mut ranges = segments.chain(view.chunks.iter().map(|chunk| chunk.range()));
    ranges.any(|range| range.min == newest.min && range.max > max)
}

/// The last row of each series in a merge, in batches sorted by series.
fn last_of_each(mut merge: MergeStream, held: &mut MemoryReservation) -> Result<Vec<SortedRows>> {
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
        let picked = pick(&[&rows], series, &lasts);
        let bytes = bytes_of(&picked);
        if !held.wait_grow(bytes, WAIT_MAX) {
            return Err(EngineError::Busy {
                reason: format!("no memory for {bytes} more bytes of newest rows"),
                retry_after: WAIT_MAX,
            });
        }
        batches.push(picked);
    }
    Ok(batches)
}

fn bytes_of(rows: &SortedRows) -> usize {
    let columns = rows
        .columns
        .iter()
        .map(|values| values.get_buffer_memory_size());
    rows.len() * size_of::<(SeriesRun, i64)>() + columns.sum::<usize>()
}

/// Batches with one row per series (no series twice), sorted by series, consecutive, with at most
/// about `text_max` bytes of text each.
pub(crate) fn combine(batches: &[SortedRows], text_max: usize) -> Vec<SortedRows> {
    let mut order: Vec<(SeriesId, usize, usize)> = Vec::new();
    for (batch, rows) in batches.iter().enumerate() {
        let runs = rows.runs.iter().enumerate();
        order.extend(runs.map(|(row, run)| (run.series, batch, row)));
    }
    if let [only] = batches {
        return vec![only.clone()];
    }
    order.sort_unstable();
    let sources: Vec<&SortedRows> = batches.iter().collect();
    let mut combined = Vec::new();
    let mut rest = &order[..];
    while !rest.is_empty() {
        let mut text_bytes = 0;
        let fits = |(_, batch, row): &&(SeriesId, usize, usize)| {
            let columns = batches[*batch].columns.iter();
            text_bytes += columns
                .map(|v| text::bytes_in(v, *row..*row + 1))
                .sum::<usize>();
            text_bytes <= text_max
        };
        let rows = rest
            .iter()
            .take(COMBINED_ROWS)
            .take_while(fits)
            .count()
            .max(1);
        let (part, behind) = rest.split_at(rows);
        let series = part.iter().map(|(series, _, _)| *series).collect();
        let picks: Vec<(usize, usize)> =
            part.iter().map(|(_, batch, row)| (*batch, *row)).collect();
        combined.push(pick(&sources, series, &picks));
        rest = behind;
    }
    combined
}

/// Rows of batches as (batch, row), each of a different series. Together they must have less text
/// than an array can hold.
fn pick(batches: &[&SortedRows], series: Vec<SeriesId>, picks: &[(usize, usize)]) -> SortedRows {
    let columns = (0..batches.first().map_or(0, |rows| rows.columns.len()))
        .map(|column| {
            let arrays: Vec<_> = batches
                .iter()
                .map(|rows| rows.columns[column].as_ref())
                .collect();
            arrow_select::interleave::interleave(&arrays, picks)
                .expect("batches of one table have columns of the same types, and text is limited")
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

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray;
    use arrow_array::{ArrayRef, StringArray};

    fn batch(rows: &[(u32, &str)]) -> SortedRows {
        let texts: ArrayRef = Arc::new(rows.iter().map(|row| Some(row.1)).collect::<StringArray>());
        let run = |row: &(u32, &str)| SeriesRun {
            series: SeriesId(row.0),
            rows: 1,
        };
        SortedRows {
            runs: rows.iter().map(run).collect(),
            times: rows.iter().map(|row| i64::from(row.0)).collect(),
            columns: vec![texts],
        }
    }

    #[test]
    fn combined_rows_are_cut_by_their_text() {
        let batches = [
            batch(&[(1, "aaa"), (5, "a text that is over the bound alone")]),
            batch(&[(0, "bb"), (3, "c"), (9, "")]),
        ];
        let combined = combine(&batches, 5);
        let series =
            |rows: &SortedRows| rows.runs.iter().map(|run| run.series.0).collect::<Vec<_>>();
        let cut: Vec<_> = combined.iter().map(series).collect();
        assert_eq!(cut, [vec![0, 1], vec![3], vec![5], vec![9]]);
        let texts = combined[0].columns[0].as_string::<i32>();
        assert_eq!((texts.value(0), texts.value(1)), ("bb", "aaa"));
        assert!(combine(&[], 5).is_empty());
    }
}
