//! Removes series, together with their table or because all their rows were deleted.
//!
//! A series is first *retired*: no row finds it any more, and the same tags create a new series
//! with an id of its own. Its tags stay readable as long as an older reader holds a
//! [`RetiredSeriesPin`]. Then it is *swept*, and is gone. Ids are never reused.

use super::{SeriesIndex, TableSeries, id_place};
use crate::keys::{ArenaEntry, ColdKeys};
use crate::tag_index::KeyReader;
use marigram_model::{SeriesId, TableId, tag_key_entries};
use roaring::RoaringBitmap;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

/// While it is held, series that are retired later stay readable by their ids.
#[derive(Clone, Debug, Default)]
pub struct RetiredSeriesPin(
    #[expect(dead_code, reason = "only its reference count matters")] Arc<()>,
);

/// Retired series.
#[derive(Debug, Default)]
pub(super) struct RetiredSeries {
    /// Held by the pins taken now.
    now: Arc<()>,
    /// Oldest first: series, and what the pins from before their retirement hold.
    waiting: VecDeque<(Weak<()>, RoaringBitmap)>,
    /// All series that wait.
    retired: RoaringBitmap,
    /// All series that were retired since the index was loaded, in order; for the log.
    history: Vec<SeriesId>,
}

impl RetiredSeries {
    pub(super) fn holds(&self, id: SeriesId) -> bool {
        self.retired.contains(id.0)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.history.capacity() * size_of::<SeriesId>() + self.retired.serialized_size()
    }
}

impl SeriesIndex {
    /// Delays the sweeping of series that are retired from now on.
    #[must_use]
    pub fn pin(&self) -> RetiredSeriesPin {
        RetiredSeriesPin(self.removals.now.clone())
    }

    /// Retires series of a table (see the module documentation); ignores those that do not exist.
    /// Returns those that were retired.
    pub fn retire(
        &mut self,
        table: TableId,
        series: impl IntoIterator<Item = SeriesId>,
    ) -> RoaringBitmap {
        let is_live = |id: &SeriesId| {
            self.table_of(*id) == Some(table) && !self.removals.retired.contains(id.0)
        };
        let ids: RoaringBitmap = series.into_iter().filter(is_live).map(|id| id.0).collect();
        if ids.is_empty() {
            return ids;
        }
        let (keys, tables, scratch) = (&self.keys, &self.tables, RefCell::default());
        for id in &ids {
            let at = id_place(keys, tables, id, &scratch);
            self.ids.remove(at, |other| other == id);
        }
        self.removals.history.extend(ids.iter().map(SeriesId));
        self.removals.retired |= &ids;
        let before = std::mem::take(&mut self.removals.now);
        let waiting = (Arc::downgrade(&before), ids.clone());
        self.removals.waiting.push_back(waiting);
        drop(before);
        ids
    }

    /// Frees the retired series that no reader can use any more; returns whether there were any.
    pub fn sweep(&mut self) -> bool {
        let mut gone = RoaringBitmap::new();
        // A later pin does not hold what was retired before it.
        while let Some((pins, _)) = self.removals.waiting.front() {
            if pins.strong_count() > 0 {
                break;
            }
            if let Some((_, ids)) = self.removals.waiting.pop_front() {
                gone |= ids;
            }
        }
        if gone.is_empty() {
            return false;
        }
        self.removals.retired -= &gone;
        self.free(&gone);
        self.shrink();
        self.measure_if_changed(gone.len());
        true
    }

    /// Number of series that exist and are not retired.
    pub(crate) fn live(&self) -> usize {
        self.ids.len()
    }

    /// Frees series that are in no hash table; for loading.
    pub(super) fn free(&mut self, gone: &RoaringBitmap) {
        self.unlink(gone);
        self.keys.forget(gone);
    }

    /// Series that are retired and not yet swept.
    #[must_use]
    pub fn retired(&self) -> &RoaringBitmap {
        &self.removals.retired
    }

    /// Series that were retired since the index was loaded, in order.
    pub(crate) fn retired_so_far(&self) -> &[SeriesId] {
        &self.removals.history
    }

    /// Removes series from the sets of their tables and tags.
    fn unlink(&mut self, gone: &RoaringBitmap) {
        let (mut cold, mut key) = (ColdKeys::default(), Vec::new());
        for id in gone {
            key.clear();
            let Some(table) = self.read_key(SeriesId(id), &mut cold, &mut key) else {
                continue;
            };
            let entry = self.keys.get(SeriesId(id));
            let bytes = entry.map_or(0, |entry| stored_bytes(&entry));
            let is_cold = entry.is_some_and(|entry| entry.digest.is_some());
            let cold_bytes = if is_cold {
                self.keys.cold(id, &mut cold).len()
            } else {
                0
            };
            let Some(series) = self.tables.get_mut(&table) else {
                continue;
            };
            series.all.remove(id);
            series.key_bytes -= bytes;
            series.cold_bytes -= cold_bytes;
            let reader = KeyReader::new(&self.keys);
            for (ordinal, value) in tag_key_entries(&key).map_while(Result::ok) {
                if let Some(index) = series.tags.get_mut(&ordinal) {
                    index.remove(&reader, value, id);
                }
            }
        }
        for series in self
            .tables
            .values_mut()
            .filter(|series| series.all.is_empty())
        {
            *series = TableSeries {
                identity: series.identity,
                ..TableSeries::default()
            };
        }
    }

    /// Removes the series of a table and frees their memory. Their ids are not reused.
    pub fn remove_table(&mut self, table: TableId) {
        let Some(series) = self.tables.remove(&table) else {
            return;
        };
        self.removals.retired -= &series.all;
        for (_, waiting) in &mut self.removals.waiting {
            *waiting -= &series.all;
        }
        let (keys, tables, scratch) = (&self.keys, &self.tables, RefCell::default());
        let rehash = |id| id_place(keys, tables, id, &scratch);
        self.ids.retain(|id| !series.all.contains(id), rehash);
        self.keys.forget(&series.all);
        self.measure();
    }
}

fn stored_bytes(entry: &ArenaEntry<'_>) -> usize {
    let mut bytes = Vec::new();
    ArenaEntry::put(entry.table, entry.digest, &mut bytes);
    bytes.len() + entry.tags.len()
}
