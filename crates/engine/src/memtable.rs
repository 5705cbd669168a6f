//! The memtable: written rows that are not in segments yet, in chunks per table and space.
//!
//! There is no structure per series, so idle series cost nothing. Chunks of one stack grow towards
//! the oldest like the digits of a binary counter, so that a reader sees few chunks however small
//! the writes are, and each row is merged a logarithmic number of times.

use crate::chunk::part::ChunkPart;
use crate::chunk::{CHUNK_ROWS, Chunk};
use crate::high_water_marks::HighWaterMarks;
use crate::memory::MemoryReservation;
use crate::text::CHUNK_TEXT_BYTES;
use arrow_array::UInt32Array;
use arrow_select::take::take;
use marigram_manifest::Tombstone;
use marigram_model::TableId;
use marigram_wal::WriteEntry;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// Rows of a shard that are not in segments yet.
#[derive(Debug, Default)]
pub(crate) struct Memtable {
    tables: BTreeMap<TableId, TableChunks>,
    /// Deletes that arrived while it was active.
    pub tombstones: Vec<Arc<Tombstone>>,
    /// Memory of the rows, as reserved from the accountant.
    pub bytes: usize,
    /// Number of rows, including repeated ones.
    pub rows: usize,
    /// Set when it is frozen; releases `bytes` when neither the shard nor a view holds it.
    pub reservation: Arc<OnceLock<MemoryReservation>>,
    /// Highest WAL sequence in it; 0 if there is none.
    pub sequence_max: u64,
    /// When the first entry arrived, on the monotonic clock.
    pub since_ns: Option<u64>,
}

/// Chunks of one table, each space with the oldest first.
#[derive(Debug, Default)]
pub(crate) struct TableChunks {
    /// Rows in order.
    pub sequence: ChunkStack,
    /// Late rows.
    pub late: ChunkStack,
}

/// Chunks of one table and space, oldest first.
#[derive(Debug, Default)]
pub(crate) struct ChunkStack {
    chunks: Vec<Arc<Chunk>>,
    /// Number of chunks, from the start, that accept no more rows.
    sealed: usize,
}

impl ChunkStack {
    fn seal(&mut self) {
        self.sealed = self.chunks.len();
    }

    /// Adds rows; merges the last chunks while they have at most [`CHUNK_ROWS`] and `text_max`
    /// bytes of text.
    fn push(&mut self, chunk: Chunk, text_max: usize) {
        let mut chunk = chunk;
        while self.chunks.len() > self.sealed {
            let last = &self.chunks[self.chunks.len() - 1];
            let fits = last.rows() + chunk.rows() <= CHUNK_ROWS
                && last.text_bytes() + chunk.text_bytes() <= text_max;
            if !fits || last.rows() > 2 * chunk.rows() {
                break;
            }
            chunk = last.join(&chunk);
            self.chunks.pop();
        }
        self.chunks.push(Arc::new(chunk));
    }
}

impl Memtable {
    /// Whether it contains no entry of the log.
    pub(crate) fn is_empty(&self) -> bool {
        self.sequence_max == 0
    }

    /// Records that it contains the entry with this sequence.
    pub(crate) fn note(&mut self, sequence: u64, now_ns: u64) {
        // Replay and compaction tell newer from older rows by these numbers alone.
        debug_assert!(
            sequence > self.sequence_max,
            "entry {sequence} after entry {}",
            self.sequence_max
        );
        self.sequence_max = sequence;
        self.since_ns.get_or_insert(now_ns);
    }

    /// Adds the rows of a write. `late` says for each row whether it goes to the unsequence space;
    /// `None` if no row does.
    pub(crate) fn write(
        &mut self,
        sequence: u64,
        entry: &WriteEntry,
        late: Option<&[bool]>,
        bytes: usize,
    ) {
        // Rows are split and sorted by position, across all of these arrays.
        debug_assert_eq!(entry.series.len(), entry.times.len(), "series of rows");
        debug_assert!(
            late.is_none_or(|late| late.len() == entry.times.len()),
            "each row is late or not"
        );
        self.bytes += bytes;
        self.rows += entry.times.len();
        if entry.times.is_empty() {
            return;
        }
        let mut columns = entry.columns.clone();
        columns.sort_unstable_by_key(|(id, _)| *id);
        let part = ChunkPart {
            series: entry.series.clone(),
            times: entry.times.clone(),
            columns,
        };
        let table = self.tables.entry(entry.table).or_default();
        let mut add = |part: ChunkPart, late: bool| {
            let stack = if late {
                &mut table.late
            } else {
                &mut table.sequence
            };
            for part in part.cut() {
                let chunk = Chunk::new(entry.table, late, sequence, vec![part]);
                stack.push(chunk, CHUNK_TEXT_BYTES);
            }
        };
        match late {
            None => add(part, false),
            Some(late) if late.iter().all(|late| *late) => add(part, true),
            Some(late) => {
                let (in_order, late) = split(&part, late);
                add(in_order, false);
                add(late, true);
            }
        }
    }

    /// Adds a delete: existing chunks of its table accept no more rows, so that none has rows from
    /// before and after it.
    pub(crate) fn delete(&mut self, tombstone: Arc<Tombstone>) {
        if let Some(table) = self.tables.get_mut(&tombstone.table) {
            table.sequence.seal();
            table.late.seal();
        }
        self.tombstones.push(tombstone);
    }

    /// Drops the rows of a table.
    pub(crate) fn drop_table(&mut self, table: TableId) {
        self.tables.remove(&table);
        self.tombstones.retain(|tombstone| tombstone.table != table);
    }

    /// The tables with rows, ascending.
    pub(crate) fn tables(&self) -> impl Iterator<Item = (TableId, &TableChunks)> {
        self.tables.iter().map(|(table, chunks)| (*table, chunks))
    }

    /// The chunks of a table: those in order, then the late ones, each with the oldest first.
    pub(crate) fn chunks(&self, table: TableId) -> impl Iterator<Item = &Arc<Chunk>> {
        let of_table = self.tables.get(&table);
        of_table
            .into_iter()
            .flat_map(|chunks| chunks.sequence.chunks.iter().chain(&chunks.late.chunks))
    }

    /// Raises the marks to the times of its rows: later rows that are not after them are late.
    pub(crate) fn raise(&self, marks: &mut HighWaterMarks) {
        let sequence = self
            .tables
            .values()
            .flat_map(|table| &table.sequence.chunks);
        for chunk in sequence {
            for part in chunk.parts().iter() {
                marks.raise(&part.series, &part.times);
            }
        }
    }
}

/// Splits a part into the rows in order and the late ones, as `late` says; there are rows of both
/// kinds.
fn split(part: &ChunkPart, late: &[bool]) -> (ChunkPart, ChunkPart) {
    // Numbers of rows in order fill the array from the start, those of late rows from the end. Each
    // row is written at both ends and kept at one: the processor would mispredict a branch on
    // practically random data.
    let mut rows = vec![0; late.len()];
    let (mut in_order, mut end) = (0, late.len());
    for (row, late) in (0_u32..).zip(late) {
        rows[in_order] = row;
        rows[end - 1] = row;
        in_order += usize::from(!late);
        end -= usize::from(*late);
    }
    rows[end..].reverse();
    let (series, times) = (&part.series, &part.times);
    let series = rows.iter().map(|row| series[*row as usize]).collect();
    let times = rows.iter().map(|row| times[*row as usize]).collect();
    let rows = UInt32Array::from(rows);
    let columns = part.columns.iter().map(|(id, values)| {
        let moved = take(values, &rows, None);
        (*id, moved.expect("the rows are rows of the part"))
    });
    let parted = ChunkPart {
        series,
        times,
        columns: columns.collect(),
    };
    (parted.slice(0, end), parted.slice(end, late.len() - end))
}

#[cfg(test)]
mod tests;
