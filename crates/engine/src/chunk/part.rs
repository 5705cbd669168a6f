//! Rows as they were written: one write's arrays, or those of several small writes put together.
//!
//! Invariant: a part has at least one row and at most [`PART_ROWS`], so that a row's place among
//! the parts of a memtable fits 32 bits (16 for the part, 16 for the row; see [`super::sort`]).

use crate::chunk::kind_of;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::ScalarBuffer;
use arrow_select::concat::concat;
use marigram_model::{ColumnId, SortedRows, TimeRange};
use marigram_segment::SegmentColumn;
use std::collections::BTreeMap;

/// Most rows of a part.
pub(crate) const PART_ROWS: usize = 1 << 16;

/// Neighbours that have fewer rows than this together are copied into one part.
const SMALL_ROWS: usize = 4096;

/// Rows of one table, in the order in which they were written.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// Series of each row.
    pub series: ScalarBuffer<u32>,
    /// Time of each row, ns.
    pub times: ScalarBuffer<i64>,
    /// Columns, ascending by id; null where a row carries no value.
    pub columns: Vec<(ColumnId, ArrayRef)>,
}

impl Part {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// The times of its rows.
    pub fn range(&self) -> TimeRange {
        let (min, max) = self
            .times
            .iter()
            .fold((i64::MAX, i64::MIN), |(min, max), time| {
                (min.min(*time), max.max(*time))
            });
        TimeRange { min, max }
    }

    /// A column's values, if the part has the column.
    pub fn column(&self, id: ColumnId) -> Option<&ArrayRef> {
        self.columns
            .iter()
            .find(|(column, _)| *column == id)
            .map(|(_, values)| values)
    }

    /// Rows `start..start + len`, without copying.
    fn slice(&self, start: usize, len: usize) -> Self {
        Self {
            series: self.series.slice(start, len),
            times: self.times.slice(start, len),
            columns: self
                .columns
                .iter()
                .map(|(id, v)| (*id, v.slice(start, len)))
                .collect(),
        }
    }

    /// The rows, cut into parts of at most [`PART_ROWS`].
    pub fn cut(self) -> Vec<Self> {
        if self.len() <= PART_ROWS {
            return vec![self];
        }
        (0..self.len())
            .step_by(PART_ROWS)
            .map(|start| self.slice(start, PART_ROWS.min(self.len() - start)))
            .collect()
    }

    /// Sorted rows as parts.
    pub fn of_sorted(rows: &SortedRows, columns: &[SegmentColumn]) -> Vec<Self> {
        let mut series = Vec::with_capacity(rows.len());
        for run in &rows.runs {
            series.resize(series.len() + run.rows as usize, run.series.0);
        }
        let columns = columns
            .iter()
            .map(|column| column.id)
            .zip(rows.columns.iter().cloned());
        Self {
            series: series.into(),
            times: rows.times.clone(),
            columns: columns.collect(),
        }
        .cut()
    }
}

/// Adds a part; copies it together with the one before where both are small.
pub(crate) fn push(parts: &mut Vec<Part>, part: Part) {
    match parts.last_mut() {
        Some(last) if last.len() + part.len() <= SMALL_ROWS => *last = concat_parts(&[last, &part]),
        _ => parts.push(part),
    }
}

/// One part with the rows of several.
pub(crate) fn concat_parts(parts: &[&Part]) -> Part {
    let rows = parts.iter().map(|part| part.len()).sum();
    let (mut series, mut times) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
    for part in parts {
        series.extend_from_slice(&part.series);
        times.extend_from_slice(&part.times);
    }
    let columns = columns_of(parts.iter().copied()).into_iter().map(|column| {
        let arrays: Vec<ArrayRef> = parts
            .iter()
            .map(|part| {
                let values = part.column(column.id).cloned();
                values.unwrap_or_else(|| column.kind.nulls(part.len()))
            })
            .collect();
        let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
        (
            column.id,
            concat(&arrays).expect("a column has one type and text far below 2 GiB"),
        )
    });
    let columns = columns.collect();
    Part {
        series: series.into(),
        times: times.into(),
        columns,
    }
}

/// The columns that the parts have together, ascending by id.
pub(crate) fn columns_of<'a>(parts: impl IntoIterator<Item = &'a Part>) -> Vec<SegmentColumn> {
    let mut columns = BTreeMap::new();
    for part in parts {
        for (id, values) in &part.columns {
            columns.entry(*id).or_insert_with(|| kind_of(values));
        }
    }
    columns
        .into_iter()
        .map(|(id, kind)| SegmentColumn { id, kind })
        .collect()
}
