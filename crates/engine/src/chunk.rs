//! Chunks: immutable sets of rows of one table and one space, as they were written.
//!
//! A chunk keeps the written arrays ([`ChunkPart`]s) and sorts them by (series, time) once, when it
//! is first read; from then on, it keeps only the sorted form. Writers never wait for a sort. Rows
//! that are flushed before they are read are sorted once, by the flush.

pub(crate) mod part;
pub(crate) mod sort;

use crate::chunk::part::ChunkPart;
use crate::chunk::sort::ChunkOrder;
use crate::shared_rows::SharedRows;
use marigram_model::{FieldType, SortedRows, TableId, TimeRange};
use marigram_segment::SegmentColumn;
use parking_lot::Mutex;
use std::sync::{Arc, OnceLock};

/// Number of rows from which on a chunk is full.
pub(crate) const CHUNK_ROWS: usize = 64 * 1024;

/// Up to some 64 Ki rows of one table and space, immutable; sorted on first use and kept sorted.
/// Rows with the same (series, time) in it are merged field by field; the last write wins.
#[derive(Debug)]
pub struct Chunk {
    table: TableId,
    late: bool,
    sequence_max: u64,
    rows: usize,
    text_bytes: usize,
    range: TimeRange,
    columns: Vec<SegmentColumn>,
    /// As written, in the order of arrival; `None` once `sorted` exists.
    parts: Mutex<Option<Arc<[ChunkPart]>>>,
    sorted: OnceLock<SortedRows>,
    pub(crate) shared: SharedRows,
}

impl Chunk {
    /// A chunk of `parts` in the order of their arrival; at least one part, none of them empty.
    pub(crate) fn new(
        table: TableId,
        late: bool,
        sequence_max: u64,
        parts: Vec<ChunkPart>,
    ) -> Self {
        let range = parts.iter().map(ChunkPart::range).reduce(TimeRange::union);
        Self {
            table,
            late,
            sequence_max,
            rows: parts.iter().map(ChunkPart::len).sum(),
            text_bytes: parts.iter().map(ChunkPart::text_bytes).sum(),
            range: range.expect("a chunk has rows"),
            columns: part::columns_of(&parts),
            parts: Mutex::new(Some(parts.into())),
            sorted: OnceLock::new(),
            shared: SharedRows::default(),
        }
    }

    /// Joins the rows of two chunks of one table and space; `self` is the older one.
    pub(crate) fn join(&self, newer: &Self) -> Self {
        debug_assert!(self.table == newer.table && self.late == newer.late);
        // Of two rows of one time, the part behind the other wins.
        debug_assert!(
            self.sequence_max <= newer.sequence_max,
            "the newer chunk comes second"
        );
        let mut parts: Vec<ChunkPart> = self.parts().iter().cloned().collect();
        for part in newer.parts().iter() {
            part::push(&mut parts, part.clone(), part::SMALL_TEXT_BYTES);
        }
        Self {
            table: self.table,
            late: self.late,
            sequence_max: self.sequence_max.max(newer.sequence_max),
            rows: self.rows + newer.rows,
            text_bytes: self.text_bytes + newer.text_bytes,
            range: self.range.union(newer.range),
            columns: part::columns_of(&parts),
            parts: Mutex::new(Some(parts.into())),
            sorted: OnceLock::new(),
            shared: SharedRows::default(),
        }
    }

    /// The table.
    pub fn table(&self) -> TableId {
        self.table
    }

    /// Ascending by id; `sorted().columns` has the same order.
    pub fn columns(&self) -> &[SegmentColumn] {
        &self.columns
    }

    /// The rows in storage order. The first call sorts; concurrent callers wait for it.
    ///
    /// # Panics
    /// Never: parts exist until they are sorted, and have less text than an array can hold.
    pub fn sorted(&self) -> &SortedRows {
        let rows = self.sorted.get_or_init(|| {
            let parts = self
                .parts
                .lock()
                .clone()
                .expect("parts exist until they are sorted");
            let order = ChunkOrder::from_parts(&parts);
            let sorted_rows = order.times.len();
            let columns = order.gather(
                &parts,
                &self.columns,
                std::slice::from_ref(&(0..sorted_rows)),
            );
            SortedRows {
                runs: order.runs,
                times: order.times.into(),
                columns,
            }
        });
        *self.parts.lock() = None;
        rows
    }

    /// The rows as parts, in the order of arrival as far as that still matters.
    pub(crate) fn parts(&self) -> Arc<[ChunkPart]> {
        if let Some(parts) = &*self.parts.lock() {
            return parts.clone();
        }
        let rows = self
            .sorted
            .get()
            .expect("parts exist until they are sorted");
        ChunkPart::from_sorted(rows, &self.columns).into()
    }

    /// How many rows were written to it (counting duplicates).
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of text that were written to it.
    pub(crate) fn text_bytes(&self) -> usize {
        self.text_bytes
    }

    /// The time range of its rows.
    pub fn range(&self) -> TimeRange {
        self.range
    }

    /// Highest WAL sequence of its rows.
    pub fn sequence_max(&self) -> u64 {
        self.sequence_max
    }

    /// Whether its rows belong to the unsequence space.
    pub fn is_late(&self) -> bool {
        self.late
    }
}

/// The type of a column in a checked batch.
pub(crate) fn kind_of(array: &dyn arrow_array::Array) -> FieldType {
    FieldType::from_arrow(array.data_type()).expect("columns of checked batches have field types")
}

#[cfg(test)]
mod tests;
