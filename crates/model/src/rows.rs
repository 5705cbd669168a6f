//! Rows in storage order, as they pass between memtable, segments and scans.

use crate::ids::SeriesId;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::ScalarBuffer;

/// Consecutive rows of one series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesRun {
    /// The series.
    pub series: SeriesId,
    /// Number of rows, at least one.
    pub rows: u32,
}

/// Rows of one table, sorted by (series, time), each (series, time) once.
///
/// The producer and the consumer agree on `columns` and their order. Each column has `times.len()`
/// rows, with nulls where a row has no value.
#[derive(Clone, Debug)]
pub struct SortedRows {
    /// Runs of series, ascending; their rows add up to `times.len()`. A series may continue in the
    /// next `SortedRows` of a stream, but never occurs twice in one.
    pub runs: Vec<SeriesRun>,
    /// Times, ns.
    pub times: ScalarBuffer<i64>,
    /// Columns.
    pub columns: Vec<ArrayRef>,
}

impl SortedRows {
    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// Memory that the rows hold, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.columns
            .iter()
            .map(Array::get_array_memory_size)
            .sum::<usize>()
            + self.times.len() * size_of::<i64>()
            + self.runs.len() * size_of::<SeriesRun>()
    }

    /// Whether the rows satisfy the invariant of this type; for assertions and tests.
    #[must_use]
    pub fn is_sorted(&self) -> bool {
        let mut row = 0;
        for (at, run) in self.runs.iter().enumerate() {
            let end = row + run.rows as usize;
            let in_order = at == 0 || self.runs[at - 1].series < run.series;
            if run.rows == 0 || !in_order || end > self.times.len() {
                return false;
            }
            if !self.times[row..end]
                .windows(2)
                .all(|pair| pair[0] < pair[1])
            {
                return false;
            }
            row = end;
        }
        row == self.times.len() && self.columns.iter().all(|column| column.len() == row)
    }
}
