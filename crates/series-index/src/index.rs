//! The series of a shard, in memory.

use crate::error::SeriesError;
use crate::keys::{GONE, Keys};
use crate::tag_index::{SERIES_MAX, TagIndex, append, bitmap_bytes};
use crate::tag_values::tag_values;
use arrow_array::ArrayRef;
use hashbrown::HashTable;
use marigram_model::{SeriesId, TableId, TagKey, TagType, TagValue, TagValueRef, tag_key_entries};
use roaring::RoaringBitmap;
use std::collections::BTreeMap;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The series of a shard: an arena of keys, a hash table (table, key) → id, and for each tag an
/// inverted index. Looking up a series allocates nothing.
#[derive(Debug, Default)]
pub struct SeriesIndex {
    keys: Keys,
    ids: HashTable<u32>,
    tables: BTreeMap<TableId, TableSeries>,
    /// Memory of `tables`, measured when there were `measured_len` series.
    measured_bytes: usize,
    measured_len: usize,
}

#[derive(Debug, Default)]
struct TableSeries {
    all: RoaringBitmap,
    /// By ordinal; a tag that no series has so far is missing.
    tags: BTreeMap<u16, TagIndex>,
}

impl TableSeries {
    fn memory_bytes(&self) -> usize {
        let tags: usize = self.tags.values().map(TagIndex::memory_bytes).sum();
        bitmap_bytes(&self.all) + self.tags.len() * size_of::<(u16, TagIndex)>() + tags
    }
}

impl SeriesIndex {
    /// Hash that decides shard and place: xxh3 (64 bits) of the key, with the table's id as its
    /// seed. Stable for ever, since it decides in which shard a series lives.
    #[must_use]
    pub fn hash(table: TableId, key: &[u8]) -> u64 {
        xxh3_64_with_seed(key, table.0.into())
    }

    /// The series with this key; `hash` is [`hash`](Self::hash) of the two.
    #[must_use]
    pub fn get(&self, table: TableId, key: &[u8], hash: u64) -> Option<SeriesId> {
        let same = |id: &u32| self.keys.key(*id) == key && self.keys.table(*id) == table;
        self.ids.find(place(hash), same).map(|id| SeriesId(*id))
    }

    /// The next id.
    ///
    /// # Panics
    /// Never: `insert` ends before ids do.
    #[must_use]
    pub fn next_id(&self) -> SeriesId {
        SeriesId(u32::try_from(self.keys.len()).expect("insert bounds the number of series"))
    }

    /// Adds a series that is not there; ids are dense: `id` must be [`next_id`](Self::next_id).
    /// An id that is there already with the same table and key is accepted without effect, for
    /// replay.
    ///
    /// # Errors
    /// `Conflict` if the id is neither, or the key has another id; `Key` if `key` is not canonical;
    /// `Full` if there is no id left.
    pub fn insert(&mut self, id: SeriesId, table: TableId, key: &[u8]) -> Result<(), SeriesError> {
        let conflict = |reason: String| Err(SeriesError::Conflict { id: id.0, reason });
        if let Some((owner, known)) = self.keys.get(id) {
            // A table dropped since has taken its keys along.
            if owner == GONE || (owner == table && known == key) {
                return Ok(());
            }
            return conflict("the id stands for another series".to_owned());
        }
        if id != self.next_id() {
            return conflict(format!("the next id is {}", self.next_id()));
        }
        if id.0 >= SERIES_MAX {
            return Err(SeriesError::Full);
        }
        if table == GONE {
            return conflict(format!("{table} is no table's id"));
        }
        check_key(key)?;
        let hash = Self::hash(table, key);
        if let Some(known) = self.get(table, key, hash) {
            return conflict(format!("its key is that of series {known}"));
        }
        if !self.keys.push(table, key) {
            return Err(SeriesError::Full);
        }
        let keys = &self.keys;
        let rehash = |id: &u32| place(Self::hash(keys.table(*id), keys.key(*id)));
        self.ids.insert_unique(place(hash), id.0, rehash);
        let series = self.tables.entry(table).or_default();
        append(&mut series.all, id.0);
        for (ordinal, value) in tag_key_entries(key).map_while(Result::ok) {
            let index = series
                .tags
                .entry(ordinal)
                .or_insert_with(|| TagIndex::new(ordinal));
            index.insert(keys, value, id.0);
        }
        if self.keys.len() > self.measured_len + self.measured_len / 16 + 1024 {
            self.measure();
        }
        Ok(())
    }

    /// Makes room for `count` more series, so that the hash table need not grow on the way.
    pub(crate) fn reserve(&mut self, count: usize) {
        let keys = &self.keys;
        let rehash = |id: &u32| place(Self::hash(keys.table(*id), keys.key(*id)));
        self.ids.reserve(count, rehash);
    }

    /// Adds, for replay, an id whose table was dropped before the log was written.
    pub(crate) fn insert_gone(&mut self, id: SeriesId) -> Result<(), SeriesError> {
        if id != self.next_id() || id.0 >= SERIES_MAX {
            let reason = format!("the next id is {}", self.next_id());
            return Err(SeriesError::Conflict { id: id.0, reason });
        }
        if self.keys.push(GONE, &[]) {
            Ok(())
        } else {
            Err(SeriesError::Full)
        }
    }

    /// The table of a series; `None` where there is no such series, or its table was dropped.
    #[must_use]
    pub fn table_of(&self, id: SeriesId) -> Option<TableId> {
        self.keys
            .get(id)
            .map(|(table, _)| table)
            .filter(|table| *table != GONE)
    }

    /// The tag key of a series; `None` where there is no such series, or its table was dropped.
    #[must_use]
    pub fn key(&self, id: SeriesId) -> Option<&[u8]> {
        self.keys
            .get(id)
            .filter(|(table, _)| *table != GONE)
            .map(|(_, key)| key)
    }

    /// Every series of a table.
    #[must_use]
    pub fn all(&self, table: TableId) -> RoaringBitmap {
        self.tables
            .get(&table)
            .map(|series| series.all.clone())
            .unwrap_or_default()
    }

    /// Series of a table with a tag value.
    #[must_use]
    pub fn with_value(&self, table: TableId, tag: u16, value: TagValueRef<'_>) -> RoaringBitmap {
        let index = self.tag_index(table, tag);
        index
            .map(|index| index.with_value(&self.keys, value))
            .unwrap_or_default()
    }

    /// Series that have any value of the tag (the rest of [`all`](Self::all) is null there).
    #[must_use]
    pub fn with_tag(&self, table: TableId, tag: u16) -> RoaringBitmap {
        self.tag_index(table, tag)
            .map(|index| index.any().clone())
            .unwrap_or_default()
    }

    fn tag_index(&self, table: TableId, tag: u16) -> Option<&TagIndex> {
        self.tables.get(&table)?.tags.get(&tag)
    }

    /// Values of one tag, one per entry of `series` (null where missing), of `kind.data_type()`.
    #[must_use]
    pub fn tag_values(&self, series: &[SeriesId], tag: u16, kind: TagType) -> ArrayRef {
        tag_values(&self.keys, series, tag, kind)
    }

    /// Distinct values of a tag in a table, ascending.
    #[must_use]
    pub fn distinct(&self, table: TableId, tag: u16) -> Vec<TagValue> {
        self.tag_index(table, tag)
            .map(|index| index.distinct(&self.keys))
            .unwrap_or_default()
    }

    /// Forgets the series of a table and frees their memory. Their ids are not used again.
    pub fn remove_table(&mut self, table: TableId) {
        if self.tables.remove(&table).is_none() {
            return;
        }
        let keys = &self.keys;
        self.ids.retain(|id| keys.table(*id) != table);
        self.ids
            .shrink_to_fit(|id| place(Self::hash(keys.table(*id), keys.key(*id))));
        self.keys.remove_table(table);
        self.measure();
    }

    /// Number of ids given, those of dropped tables too.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether no id was given.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Memory held, bytes. Cheap: the part of the inverted indexes is measured anew each time that
    /// the number of series has grown by a sixteenth.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.keys.memory_bytes() + self.ids.allocation_size() + self.measured_bytes
    }

    fn measure(&mut self) {
        self.measured_len = self.keys.len();
        self.measured_bytes = self.tables.values().map(TableSeries::memory_bytes).sum();
    }
}

/// Mixes a hash that has decided the shard: within one shard some of its bits are all alike.
fn place(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^ (hash >> 29)
}

/// Checks that a key is canonical, without copying it.
fn check_key(key: &[u8]) -> Result<(), SeriesError> {
    let mut last = None;
    for entry in tag_key_entries(key) {
        let (ordinal, _) = entry?;
        if last >= Some(ordinal) {
            // The error of the model names the reason.
            TagKey::from_bytes(key)?;
        }
        last = Some(ordinal);
    }
    Ok(())
}
