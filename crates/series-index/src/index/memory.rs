//! What the index holds, as a whole and by table.

use super::{SeriesIndex, TableSeries};
use crate::tag_index::{TagIndex, bitmap_bytes};
use marigram_model::{SeriesIdentity, TableId};

/// Memory that the series of one table take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableMemory {
    /// By what series are told apart.
    pub identity: SeriesIdentity,
    /// Number of series.
    pub series: u64,
    /// Identities: tag tuples, or digests; bytes.
    pub identity_bytes: usize,
    /// Tags that stand apart from digests, packed; bytes.
    pub tag_bytes: usize,
    /// The table's share of the hash table from identities to ids, bytes.
    pub lookup_bytes: usize,
    /// The inverted indexes of its tags, bytes.
    pub inverted_bytes: usize,
}

impl TableMemory {
    /// All of it, bytes.
    #[must_use]
    pub fn total_bytes(&self) -> usize {
        self.identity_bytes + self.tag_bytes + self.lookup_bytes + self.inverted_bytes
    }
}

/// Memory of the inverted indexes, measured when there were `len` series.
#[derive(Debug, Default)]
pub(super) struct MeasuredIndexes {
    bytes: usize,
    len: usize,
}

/// Where a key ends.
const END_BYTES: usize = 2;

impl TableSeries {
    fn inverted_bytes(&self) -> usize {
        let tags: usize = self.tags.values().map(TagIndex::memory_bytes).sum();
        bitmap_bytes(&self.all) + self.tags.len() * size_of::<(u16, TagIndex)>() + tags
    }
}

impl SeriesIndex {
    /// Memory held, bytes. Cheap: the part of the inverted indexes is measured anew each time that
    /// the number of series has grown by a sixteenth.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let tables = self.tables.len() * size_of::<(TableId, TableSeries)>();
        self.keys.memory_bytes()
            + self.ids.memory_bytes()
            + self.removals.memory_bytes()
            + self.measured.bytes
            + tables
    }

    /// Memory that the series of a table take; `None` for a table without series. Measures, so
    /// that it takes a while where there are millions of tag values.
    #[must_use]
    pub fn table_memory(&self, table: TableId) -> Option<TableMemory> {
        let series = self.tables.get(&table)?;
        let count = series.all.len() as usize;
        let share = |whole: usize, part: usize, all: usize| {
            (whole as u128 * part as u128 / all.max(1) as u128) as usize
        };
        let all_cold = self.tables.values().map(|series| series.cold_bytes).sum();
        Some(TableMemory {
            identity: series.identity,
            series: count as u64,
            identity_bytes: series.key_bytes + END_BYTES * count,
            tag_bytes: share(self.keys.cold_bytes(), series.cold_bytes, all_cold),
            lookup_bytes: share(self.ids.memory_bytes(), count, self.ids.len()),
            inverted_bytes: series.inverted_bytes(),
        })
    }

    pub(super) fn measure_if_grown(&mut self) {
        if self.keys.len() > self.measured.len + self.measured.len / 16 + 1024 {
            self.measure();
        }
    }

    /// Measures anew after so many series went, if they were a good part of all.
    pub(super) fn measure_if_changed(&mut self, gone: u64) {
        if gone >= self.live() as u64 / 16 {
            self.measure();
        }
    }

    pub(super) fn measure(&mut self) {
        self.measured = MeasuredIndexes {
            len: self.keys.len(),
            bytes: self.tables.values().map(TableSeries::inverted_bytes).sum(),
        };
    }
}
