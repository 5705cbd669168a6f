//! Rows as they were written: the arrays of one write, or those of several small writes
//! concatenated.
//!
//! Invariant: a part has at least one row and at most [`PART_ROWS`], so that a row's place among
//! the parts of a memtable fits 32 bits (16 for the part, 16 for the row; see [`super::sort`]). It
//! has at most [`CHUNK_TEXT_BYTES`] of text, or a single row.

use crate::chunk::kind_of;
use crate::text::{self, CHUNK_TEXT_BYTES};
use arrow_array::{Array, ArrayRef};
use arrow_buffer::ScalarBuffer;
use arrow_select::concat::concat;
use marigram_model::{ColumnId, SortedRows, TimeRange};
use marigram_segment::SegmentColumn;
use std::collections::BTreeMap;

/// Most rows of a part.
pub(crate) const PART_ROWS: usize = 1 << 16;

/// Neighbours with fewer rows than this in total are copied into one part.
const SMALL_ROWS: usize = 2048;
/// Unless they have more text than this in total, in bytes.
pub(crate) const SMALL_TEXT_BYTES: usize = 4 << 20;

/// Rows of one table, in the order in which they were written.
#[derive(Clone, Debug)]
pub(crate) struct ChunkPart {
    /// Series of each row.
    pub series: ScalarBuffer<u32>,
    /// Time of each row, ns.
    pub times: ScalarBuffer<i64>,
    /// Columns, ascending by id; null where a row carries no value.
    pub columns: Vec<(ColumnId, ArrayRef)>,
}

impl ChunkPart {
    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.times.len()
    }

    /// The time range of its rows.
    pub(crate) fn range(&self) -> TimeRange {
        let (min, max) = self
            .times
            .iter()
            .fold((i64::MAX, i64::MIN), |(min, max), time| {
                (min.min(*time), max.max(*time))
            });
        TimeRange { min, max }
    }

    /// A column's values, if the part has the column.
    pub(crate) fn column(&self, id: ColumnId) -> Option<&ArrayRef> {
        self.columns
            .iter()
            .find(|(column, _)| *column == id)
            .map(|(_, values)| values)
    }

    /// Rows `start..start + len`, without copying.
    pub(crate) fn slice(&self, start: usize, len: usize) -> Self {
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

    /// Bytes of text in its columns.
    pub(crate) fn text_bytes(&self) -> usize {
        text::bytes_of(self.columns.iter().map(|(_, values)| values))
    }

    /// Cuts the rows into parts within the limits.
    pub(crate) fn cut(self) -> Vec<Self> {
        self.cut_at(CHUNK_TEXT_BYTES)
    }

    /// Cuts the rows into parts of at most [`PART_ROWS`] rows and `text_max` bytes of text each.
    pub(crate) fn cut_at(self, text_max: usize) -> Vec<Self> {
        let end_of = |start: usize| {
            let rows = start..self.len().min(start + PART_ROWS);
            text::end_within(
                self.columns.iter().map(|(_, values)| values),
                rows,
                text_max,
            )
        };
        let first = end_of(0);
        if first == self.len() {
            return vec![self];
        }
        let mut parts = vec![self.slice(0, first)];
        let mut start = first;
        while start < self.len() {
            let end = end_of(start);
            parts.push(self.slice(start, end - start));
            start = end;
        }
        parts
    }

    /// Converts sorted rows to parts.
    pub(crate) fn from_sorted(rows: &SortedRows, columns: &[SegmentColumn]) -> Vec<Self> {
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

/// Adds a part; merges it with the previous part if both are small: few rows, and at most
/// `text_max` bytes of text.
pub(crate) fn push(parts: &mut Vec<ChunkPart>, part: ChunkPart, text_max: usize) {
    let small = |last: &ChunkPart| {
        last.len() + part.len() <= SMALL_ROWS && last.text_bytes() + part.text_bytes() <= text_max
    };
    match parts.last_mut() {
        Some(last) if small(last) => *last = concat_parts(&[last, &part]),
        _ => parts.push(part),
    }
}

/// Merges neighbouring parts in pairs, except those with more than [`CHUNK_TEXT_BYTES`] of text in
/// total.
pub(crate) fn halve(parts: &[ChunkPart]) -> Vec<ChunkPart> {
    let joined = parts.chunks(2).flat_map(|pair| {
        let text_bytes: usize = pair.iter().map(ChunkPart::text_bytes).sum();
        if text_bytes > CHUNK_TEXT_BYTES {
            pair.to_vec()
        } else {
            concat_parts(&pair.iter().collect::<Vec<_>>()).cut()
        }
    });
    joined.collect()
}

/// One part with the rows of several, which together must have less text than an array can hold.
fn concat_parts(parts: &[&ChunkPart]) -> ChunkPart {
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
            concat(&arrays).expect("a column has one type, and callers limit its text"),
        )
    });
    let columns = columns.collect();
    ChunkPart {
        series: series.into(),
        times: times.into(),
        columns,
    }
}

/// The union of the parts' columns, ascending by id.
pub(crate) fn columns_of<'a>(parts: impl IntoIterator<Item = &'a ChunkPart>) -> Vec<SegmentColumn> {
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
