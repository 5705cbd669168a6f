//! Loads a whole index at once, from a log.
//!
//! Adding series one by one costs a few random memory accesses for each, in tables that exceed
//! every cache: seconds for millions. This loader adds only the keys one by one, and fills the hash
//! tables at the end, in the order of the hashes.

use super::{SeriesIndex, id_place};
use crate::error::SeriesError;
use crate::keys::GONE;
use crate::tag_index::{KeyReader, SERIES_MAX};
use marigram_model::{SeriesId, SeriesIdentity, TableId};
use roaring::RoaringBitmap;
use std::cell::RefCell;

impl SeriesIndex {
    /// Whether two series have the same table and key.
    fn are_alike(&self, a: u32, b: u32) -> bool {
        let (a, b) = (SeriesId(a), SeriesId(b));
        self.table_of(a) == self.table_of(b) && self.key(a) == self.key(b)
    }
}

/// An index that is being loaded.
#[derive(Debug, Default)]
pub(crate) struct BulkIndex {
    index: SeriesIndex,
    /// Places in the hash table, with their ids.
    places: Vec<(u64, u32)>,
    removed: RoaringBitmap,
}

impl BulkIndex {
    pub(crate) fn next_id(&self) -> SeriesId {
        self.index.next_id()
    }

    /// Sets the identity of a table, before its first series.
    pub(crate) fn set_identity(&mut self, table: TableId, identity: SeriesIdentity) {
        self.index.set_identity(table, identity);
    }

    /// Adds the next id for a series; `key` must be canonical.
    ///
    /// # Errors
    /// `Full` if no id is left, `Conflict` for an impossible table.
    pub(crate) fn add(&mut self, table: TableId, key: &[u8]) -> Result<(), SeriesError> {
        let id = self.check_id()?;
        if table == GONE {
            let reason = format!("{table} is not the id of a table");
            return Err(SeriesError::Conflict { id, reason });
        }
        let place = self.index.store(id, table, key, true);
        self.places.push((place, id));
        Ok(())
    }

    /// Adds the next id for a removed series.
    ///
    /// # Errors
    /// `Full` if no id is left.
    pub(crate) fn add_gone(&mut self) -> Result<(), SeriesError> {
        self.check_id()?;
        self.index.keys.push(&[], None);
        Ok(())
    }

    /// Removes a series that was added.
    pub(crate) fn remove(&mut self, id: SeriesId) {
        self.removed.insert(id.0);
    }

    fn check_id(&self) -> Result<u32, SeriesError> {
        let id = self.next_id().0;
        if id < SERIES_MAX {
            Ok(id)
        } else {
            Err(SeriesError::Full)
        }
    }

    /// Returns the finished index.
    ///
    /// # Errors
    /// `Conflict` if two series have the same key.
    pub(crate) fn finish(self) -> Result<SeriesIndex, SeriesError> {
        let Self {
            mut index,
            mut places,
            removed,
        } = self;
        if !removed.is_empty() {
            places.retain(|(_, id)| !removed.contains(*id));
        }
        places.sort_unstable();
        let (keys, tables, scratch) = (&index.keys, &index.tables, RefCell::default());
        let rehash = |id| id_place(keys, tables, id, &scratch);
        index.ids.reserve(places.len(), rehash);
        for pair in places.windows(2) {
            let [(place, known), (other, id)] = pair else {
                continue;
            };
            if place == other && index.are_alike(*known, *id) {
                let reason = format!("series {known} has the same key");
                return Err(SeriesError::Conflict { id: *id, reason });
            }
        }
        for (place, id) in places {
            index.ids.insert(place, id, rehash);
        }
        let reader = KeyReader::new(keys);
        for series in index.tables.values_mut() {
            for tag in series.tags.values_mut() {
                tag.catch_up(&reader);
            }
        }
        index.free(&removed);
        index.shrink();
        index.measure();
        Ok(index)
    }
}
