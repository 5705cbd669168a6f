//! The series of a shard, in memory.

mod bulk;
mod memory;
mod query;
mod removal;

pub(crate) use bulk::BulkIndex;
pub use memory::TableMemory;
pub use removal::RetiredSeriesPin;

use crate::compact::{StoredTagValue, put_canonical, put_head, put_key, put_tag, tags};
use crate::error::SeriesError;
use crate::id_table::IdTable;
use crate::keys::{ArenaEntry, ColdKeys, GONE, KeyArena, KeyDigest};
use crate::tag_index::{KeyReader, SERIES_MAX, TagIndex, append, value_hash};
use marigram_model::{SeriesId, SeriesIdentity, TableId, TagKey, TagValueRef, tag_key_entries};
use memory::MeasuredIndexes;
use removal::RetiredSeries;
use roaring::RoaringBitmap;
use sha2::{Digest as _, Sha256};
use std::cell::RefCell;
use std::collections::BTreeMap;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The series of a shard: an arena of keys, a hash table (table, key) → id, and for each tag an
/// inverted index. Looking up a series allocates nothing.
#[derive(Debug, Default)]
pub struct SeriesIndex {
    keys: KeyArena,
    ids: IdTable,
    tables: BTreeMap<TableId, TableSeries>,
    removals: RetiredSeries,
    measured: MeasuredIndexes,
}

#[derive(Debug, Default)]
struct TableSeries {
    identity: SeriesIdentity,
    all: RoaringBitmap,
    /// By ordinal; tags that no series has are missing.
    tags: BTreeMap<u16, TagIndex>,
    /// Bytes in the arena, without those of cold tags (before compression).
    key_bytes: usize,
    cold_bytes: usize,
}

impl SeriesIndex {
    /// The hash that determines shard and place: xxh3 (64 bits) of the key, with the table's id as
    /// the seed. It must never change, because it determines in which shard a series lives.
    #[must_use]
    pub fn hash(table: TableId, key: &[u8]) -> u64 {
        xxh3_64_with_seed(key, table.0.into())
    }

    /// Sets the identity of a table's series. It only affects a table without series: others keep
    /// the identity that they have. Returns the identity in force.
    pub fn set_identity(&mut self, table: TableId, identity: SeriesIdentity) -> SeriesIdentity {
        let series = self.tables.entry(table).or_default();
        if series.all.is_empty() {
            series.identity = identity;
        }
        series.identity
    }

    /// The series with this key; `hash` is the [`hash`](Self::hash) of both.
    #[must_use]
    pub fn get(&self, table: TableId, key: &[u8], hash: u64) -> Option<SeriesId> {
        let series = self.tables.get(&table)?;
        let found = match series.identity {
            SeriesIdentity::Plain => self.ids.find(place(hash), |id| {
                self.keys.get(SeriesId(id)).is_some_and(|entry| {
                    entry.table == table
                        && entry.digest.is_none()
                        && series.matches_key(&entry, key)
                })
            }),
            SeriesIdentity::Sha256 => {
                let digest = digest_of(key);
                self.ids.find(digest_place(table, &digest), |id| {
                    self.keys
                        .get(SeriesId(id))
                        .is_some_and(|entry| entry.table == table && entry.digest == Some(&digest))
                })
            }
        };
        found.map(SeriesId)
    }

    /// The next id.
    ///
    /// # Panics
    /// Never: `insert` fails before ids run out.
    #[must_use]
    pub fn next_id(&self) -> SeriesId {
        SeriesId(u32::try_from(self.keys.len()).expect("insert limits the number of series"))
    }

    /// Adds a new series. Ids are dense: `id` must be [`next_id`](Self::next_id). An existing id
    /// with the same table and key is accepted without effect, for replay.
    ///
    /// # Errors
    /// `Conflict` if the id is neither, or the key has another id; `Key` if `key` is not canonical;
    /// `Full` if no id is left.
    pub fn insert(&mut self, id: SeriesId, table: TableId, key: &[u8]) -> Result<(), SeriesError> {
        let conflict = |reason: String| Err(SeriesError::Conflict { id: id.0, reason });
        if id < self.next_id() {
            // A series that was removed since has left nothing to compare with.
            let known = self.keys.get(id).is_none()
                || self.removals.holds(id)
                || self.get(table, key, Self::hash(table, key)) == Some(id);
            return if known {
                Ok(())
            } else {
                conflict("the id belongs to another series".to_owned())
            };
        }
        if id != self.next_id() {
            return conflict(format!("the next id is {}", self.next_id()));
        }
        if id.0 >= SERIES_MAX {
            return Err(SeriesError::Full);
        }
        if table == GONE {
            return conflict(format!("{table} is not the id of a table"));
        }
        check_key(key)?;
        let hash = Self::hash(table, key);
        if let Some(known) = self.get(table, key, hash) {
            return conflict(format!("series {known} has the same key"));
        }
        let place = self.store(id.0, table, key, false);
        let (keys, tables, scratch) = (&self.keys, &self.tables, RefCell::default());
        let rehash = |id| id_place(keys, tables, id, &scratch);
        self.ids.insert(place, id.0, rehash);
        self.measure_if_grown();
        Ok(())
    }

    /// Adds a series to everything except the hash table; returns its place there.
    fn store(&mut self, id: u32, table: TableId, key: &[u8], load: bool) -> u64 {
        let series = self.tables.entry(table).or_default();
        let digest = match series.identity {
            SeriesIdentity::Plain => None,
            SeriesIdentity::Sha256 => Some(digest_of(key)),
        };
        append(&mut series.all, id);
        let (mut bytes, mut cold) = (Vec::with_capacity(key.len()), None);
        ArenaEntry::put(table, digest.as_ref(), &mut bytes);
        let reader = KeyReader::new(&self.keys);
        for (ordinal, value) in tag_key_entries(key).map_while(Result::ok) {
            let index = series
                .tags
                .entry(ordinal)
                .or_insert_with(|| TagIndex::new(ordinal));
            let text = index.insert(&reader, value, id, load);
            if digest.is_some() {
                put_head(ordinal, value, &mut bytes);
                bytes.extend_from_slice(&value_hash(value).to_le_bytes());
            } else {
                put_tag(ordinal, value, text, &mut bytes);
            }
        }
        series.key_bytes += bytes.len();
        if digest.is_some() {
            let mut tags = Vec::with_capacity(key.len());
            put_key(key, &mut tags);
            series.cold_bytes += tags.len();
            cold = Some(tags);
        }
        self.keys.push(&bytes, cold.as_deref());
        match digest {
            None => place(Self::hash(table, key)),
            Some(digest) => digest_place(table, &digest),
        }
    }

    /// Releases memory of tables that hold far less than their capacity.
    fn shrink(&mut self) {
        let (keys, tables, scratch) = (&self.keys, &self.tables, RefCell::default());
        self.ids.shrink(|id| id_place(keys, tables, id, &scratch));
        let reader = KeyReader::new(keys);
        for index in self
            .tables
            .values_mut()
            .flat_map(|series| series.tags.values_mut())
        {
            index.shrink(&reader);
        }
    }

    /// The table of a series; `None` if the series does not exist or was removed.
    #[must_use]
    pub fn table_of(&self, id: SeriesId) -> Option<TableId> {
        self.keys.get(id).map(|entry| entry.table)
    }

    /// The tag key of a series; `None` if the series does not exist or was removed.
    #[must_use]
    pub fn key(&self, id: SeriesId) -> Option<TagKey> {
        let mut key = Vec::new();
        self.read_key(id, &mut ColdKeys::default(), &mut key)?;
        TagKey::from_bytes(&key).ok()
    }

    /// Appends the canonical key of a series; returns its table.
    pub(crate) fn read_key(
        &self,
        id: SeriesId,
        cold: &mut ColdKeys,
        out: &mut Vec<u8>,
    ) -> Option<TableId> {
        let entry = self.keys.get(id)?;
        let series = self.tables.get(&entry.table)?;
        if entry.digest.is_some() {
            series.put(self.keys.cold(id.0, cold), out);
        } else {
            series.put(entry.tags, out);
        }
        Some(entry.table)
    }

    /// Number of assigned ids, including those of removed series.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether no id has been assigned.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl TableSeries {
    /// Passes `with` a value that may be a reference to a text.
    fn with<T>(
        &self,
        ordinal: u16,
        value: StoredTagValue<'_>,
        with: impl FnOnce(TagValueRef<'_>) -> T,
    ) -> Option<T> {
        match value {
            StoredTagValue::Shared(place) => {
                let text = self.tags.get(&ordinal)?.text(place);
                Some(with(TagValueRef::String(text)))
            }
            own => crate::tag_index::with_stored(own, with),
        }
    }

    /// Appends tags in canonical form.
    fn put(&self, compact: &[u8], out: &mut Vec<u8>) {
        for (ordinal, value) in tags(compact) {
            self.with(ordinal, value, |value| put_canonical(ordinal, value, out));
        }
    }

    /// Whether a PLAIN series has this canonical key.
    fn matches_key(&self, entry: &ArenaEntry<'_>, key: &[u8]) -> bool {
        let mut rest = key;
        for (ordinal, value) in tags(entry.tags) {
            let same = match value {
                StoredTagValue::Text(text) => take_text(&mut rest, ordinal, text),
                StoredTagValue::Shared(place) => {
                    let text = self
                        .tags
                        .get(&ordinal)
                        .map_or("", |index| index.text(place));
                    take_text(&mut rest, ordinal, text.as_bytes())
                }
                StoredTagValue::I64(number) => {
                    take(&mut rest, &ordinal.to_le_bytes())
                        && take(&mut rest, &[marigram_model::TagType::I64 as u8])
                        && take(&mut rest, &number.to_le_bytes())
                }
                StoredTagValue::Bool(truth) => {
                    take(&mut rest, &ordinal.to_le_bytes())
                        && take(
                            &mut rest,
                            &[marigram_model::TagType::Bool as u8, u8::from(truth)],
                        )
                }
            };
            if !same {
                return false;
            }
        }
        rest.is_empty()
    }
}

fn take_text(rest: &mut &[u8], ordinal: u16, text: &[u8]) -> bool {
    take(rest, &ordinal.to_le_bytes())
        && take(rest, &[marigram_model::TagType::String as u8])
        && take(rest, &(text.len() as u32).to_le_bytes())
        && take(rest, text)
}

fn take(rest: &mut &[u8], expected: &[u8]) -> bool {
    match rest.strip_prefix(expected) {
        Some(after) => {
            *rest = after;
            true
        }
        None => false,
    }
}

/// The place of a series in the hash table.
fn id_place(
    keys: &KeyArena,
    tables: &BTreeMap<TableId, TableSeries>,
    id: u32,
    scratch: &RefCell<Vec<u8>>,
) -> u64 {
    let Some(entry) = keys.get(SeriesId(id)) else {
        return 0;
    };
    if let Some(digest) = entry.digest {
        return digest_place(entry.table, digest);
    }
    let mut key = scratch.borrow_mut();
    key.clear();
    if let Some(series) = tables.get(&entry.table) {
        series.put(entry.tags, &mut key);
    }
    place(SeriesIndex::hash(entry.table, &key))
}

/// Mixes a hash that has determined the shard: within one shard, some of its bits are always equal.
fn place(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^ (hash >> 29)
}

fn digest_place(table: TableId, digest: &KeyDigest) -> u64 {
    let first = digest
        .first_chunk()
        .map_or(0, |first| u64::from_le_bytes(*first));
    place(first.wrapping_add(u64::from(table.0)))
}

fn digest_of(key: &[u8]) -> KeyDigest {
    Sha256::digest(key).into()
}

/// Checks that a key is canonical, without copying it.
fn check_key(key: &[u8]) -> Result<(), SeriesError> {
    let mut last = None;
    for entry in tag_key_entries(key) {
        let (ordinal, _) = entry?;
        if last >= Some(ordinal) {
            // The model's error contains the reason.
            TagKey::from_bytes(key)?;
        }
        last = Some(ordinal);
    }
    Ok(())
}
