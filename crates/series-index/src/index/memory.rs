//! The memory of the index, in total and by table.

use super::{SeriesIndex, TableSeries};
use crate::tag_index::{TagIndex, bitmap_bytes};
use marigram_model::{SeriesIdentity, TableId};

/// Memory that the series of one table use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableMemory {
    /// The key by which series are found.
    pub identity: SeriesIdentity,
    /// Number of series.
    pub series: u64,
    /// Size of the identities (tag tuples or digests), in bytes.
    pub identity_bytes: usize,
    /// Size of the compressed tags that are stored apart from digests, in bytes.
    pub tag_bytes: usize,
    /// The table's share of the hash table from identities to ids, in bytes.
    pub lookup_bytes: usize,
    /// Size of the inverted indexes of its tags, in bytes.
    pub inverted_bytes: usize,
}

impl TableMemory {
    /// Their total, in bytes.
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

/// Size of the end offset of a key.
const END_BYTES: usize = 2;

impl TableSeries {
    fn inverted_bytes(&self) -> usize {
        let tags: usize = self.tags.values().map(TagIndex::memory_bytes).sum();
        bitmap_bytes(&self.all) + self.tags.len() * size_of::<(u16, TagIndex)>() + tags
    }
}

impl SeriesIndex {
    /// Memory that the index holds, in bytes. Cheap: the share of the inverted indexes is only
    /// measured again after the number of series has grown by a sixteenth.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let tables = self.tables.len() * size_of::<(TableId, TableSeries)>();
        self.keys.memory_bytes()
            + self.ids.memory_bytes()
            + self.removals.memory_bytes()
            + self.measured.bytes
            + tables
    }

    /// Memory that the series of a table use; `None` for a table without series. It measures, which
    /// takes a while with millions of tag values.
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

    /// Measures again if the series that were removed are a considerable part of all.
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
