//! Finds the first or the last rows of each of some series, from that end of time on: series that have
//! enough rows are not read further, so that a dead series costs its own pages and not those of others.
//!
//! Invariant: for each series, the rows are the outermost ones that count, and there may be more of them
//! than were asked for.

use super::sources::{chunks_of, sources_of};
use crate::error::{EngineError, Result};
use crate::filter::SeriesSelection;
use crate::memory::{Holder, MemoryAccountant, MemoryReservation};
use crate::merge::{MergeOptions, MergeStream};
use crate::view::ShardView;
use arrow_array::{Array, ArrayRef, UInt32Array};
use arrow_select::take::take;
use marigram_model::{ColumnId, SeriesRun, SortedRows, TableId, TimeRange};
use marigram_segment::SegmentColumn;
use roaring::RoaringBitmap;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// The share of a source's times that is read first: series that are alive have rows there.
const FIRST_SHARE: u64 = 16;
const BATCH_ROWS: usize = 8192;
/// How long rows wait for memory at most.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// What to find of each series.
#[derive(Clone, Debug)]
pub struct EdgeRequest {
    /// The series.
    pub selection: SeriesSelection,
    /// Times to read, ns.
    pub range: TimeRange,
    /// Fields to return, in this order.
    pub columns: Vec<ColumnId>,
    /// Indexes of `columns`: a row counts only if it has a value in one of them. Empty: every row counts.
    pub present: Vec<usize>,
    /// The number of rows of each series.
    pub rows: usize,
    /// The last rows rather than the first ones.
    pub newest: bool,
}

/// The rows of the series of one shard that `request` asks for, in batches: each is sorted by series and
/// time, and a series may be in several of them. Ends early, with what was found, once `proceed` is false;
/// it is asked before each batch that is read.
///
/// # Errors
/// Damage or I/O errors in what is read; `Busy` if there is no memory for it.
pub(crate) fn edge_rows(
    view: &ShardView,
    table: TableId,
    (request, columns): (&EdgeRequest, &[SegmentColumn]),
    memory: &Arc<MemoryAccountant>,
    proceed: &mut dyn FnMut() -> bool,
) -> Result<Vec<SortedRows>> {
    let Some(series) = request.selection.shards.get(view.shard) else {
        return Ok(Vec::new());
    };
    let mut edge = Edge {
        request,
        left: series.clone(),
        counts: HashMap::new(),
        found: Vec::new(),
        held: MemoryReservation::empty(memory, Holder::Scan),
    };
    let mut range = request.range;
    while !edge.left.is_empty() && !range.is_empty() {
        let is_begun = range != request.range;
        let Some(window) = next_window(view, range, (request.newest, is_begun)) else {
            break;
        };
        let mut sources = sources_of(view, table, &edge.left, window)?;
        sources.extend(chunks_of(view, window));
        let options = MergeOptions {
            range: window,
            series: Some(Arc::new(edge.left.clone())),
            memory: Some((memory.clone(), Holder::Scan)),
            ..MergeOptions::all(columns.to_vec(), BATCH_ROWS)
        };
        if !edge.read(MergeStream::new(sources, options), proceed)? {
            break;
        }
        let beyond = if request.newest {
            window.min.checked_sub(1).map(|max| range.max = max)
        } else {
            window.max.checked_add(1).map(|min| range.min = min)
        };
        if beyond.is_none() {
            break;
        }
    }
    Ok(edge.found)
}

/// The next times within `range`, from its end, in which there may be rows: a share of the times of the
/// segment or chunk that extends furthest, and then the rest of them at once.
fn next_window(
    view: &ShardView,
    range: TimeRange,
    (newest, is_begun): (bool, bool),
) -> Option<TimeRange> {
    let segments = view.segments.iter().map(|segment| segment.meta.range);
    let stored = segments.chain(view.chunks.iter().map(|chunk| chunk.range()));
    let within = stored.filter(|stored| stored.overlaps(range));
    let furthest = if newest {
        within.max_by_key(|stored| (stored.max.min(range.max), Reverse(stored.min)))?
    } else {
        within.min_by_key(|stored| (stored.min.max(range.min), Reverse(stored.max)))?
    };
    let clipped = furthest.intersect(range);
    // A window has ended within it before.
    let is_cut = if newest {
        furthest.max > range.max
    } else {
        furthest.min < range.min
    };
    let width = clipped.max.abs_diff(clipped.min);
    let share = if is_begun && is_cut {
        width
    } else {
        width / FIRST_SHARE
    };
    Some(if newest {
        TimeRange {
            min: clipped.max.saturating_sub_unsigned(share),
            max: clipped.max,
        }
    } else {
        TimeRange {
            min: clipped.min,
            max: clipped.min.saturating_add_unsigned(share),
        }
    })
}

/// What was found, and what is missing.
struct Edge<'a> {
    request: &'a EdgeRequest,
    /// The series without enough rows.
    left: RoaringBitmap,
    /// The number of rows that series of `left` have from earlier windows.
    counts: HashMap<u32, usize>,
    found: Vec<SortedRows>,
    held: MemoryReservation,
}

impl Edge<'_> {
    /// Takes the rows of a window; returns whether to read on.
    fn read(&mut self, mut merge: MergeStream, proceed: &mut dyn FnMut() -> bool) -> Result<bool> {
        // The rows of each series in this window: a series may continue in the next batch.
        let mut counted: HashMap<u32, usize> = HashMap::new();
        loop {
            if !proceed() {
                return Ok(false);
            }
            let Some(rows) = merge.next_rows()? else {
                break;
            };
            let mut places: Vec<u32> = Vec::new();
            let mut runs: Vec<SeriesRun> = Vec::new();
            let mut start = 0;
            for run in &rows.runs {
                let end = start + run.rows as usize;
                let series = run.series.0;
                let known = counted.get(&series).copied().unwrap_or_default();
                let taken = self.take(&rows, start..end, known);
                start = end;
                if taken.is_empty() {
                    continue;
                }
                if self.request.newest && known > 0 && taken.len() >= self.request.rows {
                    // Earlier rows of the same window are not among the last ones.
                    self.drop_last_run(series);
                    counted.remove(&series);
                }
                *counted.entry(series).or_default() += taken.len();
                runs.push(SeriesRun {
                    series: run.series,
                    rows: taken.len() as u32,
                });
                places.extend(taken);
            }
            if !runs.is_empty() {
                self.keep(&rows, runs, places)?;
            }
        }
        for (series, count) in counted {
            let all = self.counts.entry(series).or_default();
            *all += count;
            if *all >= self.request.rows {
                self.left.remove(series);
                self.counts.remove(&series);
            }
        }
        Ok(true)
    }

    /// The places of the rows of a run that count and are outermost. `known` rows of its series were taken
    /// from the batches before.
    fn take(&self, rows: &SortedRows, run: Range<usize>, known: usize) -> Vec<u32> {
        let present = &self.request.present;
        let counts = |row: &usize| {
            let has_value = |column: &usize| rows.columns[*column].is_valid(*row);
            present.is_empty() || present.iter().any(has_value)
        };
        if self.request.newest {
            let mut taken: Vec<u32> = run
                .rev()
                .filter(counts)
                .take(self.request.rows)
                .map(|row| row as u32)
                .collect();
            taken.reverse();
            return taken;
        }
        let rows_max = self.request.rows.saturating_sub(known);
        let taken = run.filter(counts).take(rows_max);
        taken.map(|row| row as u32).collect()
    }

    /// Forgets the last run that was found, if it is of this series.
    fn drop_last_run(&mut self, series: u32) {
        let Some(rows) = self.found.last_mut() else {
            return;
        };
        if let Some(run) = rows.runs.pop_if(|run| run.series.0 == series) {
            let len = rows.times.len() - run.rows as usize;
            rows.times = rows.times.slice(0, len);
            for column in &mut rows.columns {
                *column = column.slice(0, len);
            }
        }
    }

    /// Keeps some rows of a batch.
    fn keep(&mut self, rows: &SortedRows, runs: Vec<SeriesRun>, places: Vec<u32>) -> Result<()> {
        let times = places.iter().map(|row| rows.times[*row as usize]).collect();
        let places = UInt32Array::from(places);
        let column = |values: &ArrayRef| {
            take(values, &places, None).expect("the places are rows of the batch")
        };
        let kept = SortedRows {
            runs,
            times,
            columns: rows.columns.iter().map(column).collect(),
        };
        let bytes = kept.memory_bytes();
        if !self.held.wait_grow(bytes, WAIT_MAX) {
            return Err(EngineError::Busy {
                reason: format!("no memory for {bytes} more bytes of the first rows of series"),
                retry_after: WAIT_MAX,
            });
        }
        self.found.push(kept);
        Ok(())
    }
}
