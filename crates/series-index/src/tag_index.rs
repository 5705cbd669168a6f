//! The inverted index of one tag of one table: value → series.
//!
//! A value's bytes are not stored here: they are read from the key of the first series that has the
//! value. A value that one series has costs a four-byte entry; one that few have, a list of ids;
//! only values of many series have bitmaps.

use crate::keys::Keys;
use hashbrown::HashTable;
use marigram_model::{TagValue, TagValueRef, tag_key_entries};
use roaring::RoaringBitmap;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Series of a value from which on a bitmap is kept.
const BITMAP_SERIES: usize = 64;
/// Set in an entry that is a place in `postings`; without it, the entry is the id of the one series
/// that has the value.
const SHARED: u32 = 1 << 31;

/// Series that an index of this kind can tell apart.
pub(crate) const SERIES_MAX: u32 = SHARED;

#[derive(Debug)]
enum Posting {
    Few(Vec<u32>),
    Many(RoaringBitmap),
}

/// One tag of one table.
#[derive(Debug, Default)]
pub(crate) struct TagIndex {
    ordinal: u16,
    /// One entry a value: the id of its only series, or [`SHARED`] and its place in `postings`.
    entries: HashTable<u32>,
    postings: Vec<Posting>,
    any: RoaringBitmap,
}

impl TagIndex {
    pub(crate) fn new(ordinal: u16) -> Self {
        Self {
            ordinal,
            ..Self::default()
        }
    }

    /// Series with any value of the tag.
    pub(crate) fn any(&self) -> &RoaringBitmap {
        &self.any
    }

    /// Adds a series, whose key is in `keys`; ids only rise.
    pub(crate) fn insert(&mut self, keys: &Keys, value: TagValueRef<'_>, id: u32) {
        append(&mut self.any, id);
        let (ordinal, postings) = (self.ordinal, &self.postings);
        let hash = hash(value);
        let value_of_entry = |entry: &u32| value_in(keys.key(first(postings, *entry)), ordinal);
        let same = |entry: &u32| value_of_entry(entry) == Some(value);
        let Some(entry) = self.entries.find_mut(hash, same) else {
            let rehash = |entry: &u32| value_of_entry(entry).map_or(0, self::hash);
            self.entries.insert_unique(hash, id, rehash);
            return;
        };
        if *entry < SHARED {
            let ids = vec![*entry, id];
            // Fewer postings than series, so the place does not reach SHARED.
            *entry = SHARED | self.postings.len() as u32;
            self.postings.push(Posting::Few(ids));
            return;
        }
        let posting = &mut self.postings[(*entry & !SHARED) as usize];
        match posting {
            Posting::Few(ids) if ids.len() + 1 < BITMAP_SERIES => ids.push(id),
            Posting::Few(ids) => {
                let bitmap = ids.iter().copied().chain([id]).collect();
                *posting = Posting::Many(bitmap);
            }
            Posting::Many(ids) => append(ids, id),
        }
    }

    /// Series with a value.
    pub(crate) fn with_value(&self, keys: &Keys, value: TagValueRef<'_>) -> RoaringBitmap {
        let same = |entry: &u32| self.value_of(keys, *entry) == Some(value);
        match self.entries.find(hash(value), same) {
            None => RoaringBitmap::new(),
            Some(entry) if *entry < SHARED => [*entry].into_iter().collect(),
            Some(entry) => match &self.postings[(*entry & !SHARED) as usize] {
                Posting::Few(ids) => ids.iter().copied().collect(),
                Posting::Many(ids) => ids.clone(),
            },
        }
    }

    /// Distinct values, ascending.
    pub(crate) fn distinct(&self, keys: &Keys) -> Vec<TagValue> {
        let values = self
            .entries
            .iter()
            .filter_map(|entry| self.value_of(keys, *entry));
        let mut values: Vec<_> = values.collect();
        values.sort_unstable();
        values.into_iter().map(TagValueRef::to_value).collect()
    }

    fn value_of<'a>(&self, keys: &'a Keys, entry: u32) -> Option<TagValueRef<'a>> {
        value_in(keys.key(first(&self.postings, entry)), self.ordinal)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let postings: usize = self.postings.iter().map(Posting::memory_bytes).sum();
        self.entries.allocation_size()
            + self.postings.capacity() * size_of::<Posting>()
            + postings
            + bitmap_bytes(&self.any)
    }
}

impl Posting {
    fn memory_bytes(&self) -> usize {
        match self {
            Self::Few(ids) => ids.capacity() * 4,
            Self::Many(ids) => bitmap_bytes(ids),
        }
    }
}

/// Memory of a bitmap, near enough: its containers, and 32 bytes of head for each.
pub(crate) fn bitmap_bytes(bitmap: &RoaringBitmap) -> usize {
    let statistics = bitmap.statistics();
    let bytes = statistics.n_bytes_array_containers
        + statistics.n_bytes_run_containers
        + statistics.n_bytes_bitset_containers;
    bytes as usize + statistics.n_containers as usize * 32
}

/// The first series of an entry.
fn first(postings: &[Posting], entry: u32) -> u32 {
    if entry < SHARED {
        return entry;
    }
    match &postings[(entry & !SHARED) as usize] {
        Posting::Few(ids) => ids[0],
        Posting::Many(ids) => ids.min().expect("a posting is never empty"),
    }
}

/// Adds an id above all others of a bitmap.
pub(crate) fn append(bitmap: &mut RoaringBitmap, id: u32) {
    bitmap.try_push(id).expect("ids only rise");
}

/// Value of a tag in a key that was checked when its series was added.
pub(crate) fn value_in(key: &[u8], ordinal: u16) -> Option<TagValueRef<'_>> {
    tag_key_entries(key)
        .map_while(Result::ok)
        .take_while(|(at, _)| *at <= ordinal)
        .find_map(|(at, value)| (at == ordinal).then_some(value))
}

fn hash(value: TagValueRef<'_>) -> u64 {
    let seed = value.tag_type() as u64;
    match value {
        TagValueRef::String(text) => xxh3_64_with_seed(text.as_bytes(), seed),
        TagValueRef::I64(number) => xxh3_64_with_seed(&number.to_le_bytes(), seed),
        TagValueRef::Bool(truth) => xxh3_64_with_seed(&[u8::from(truth)], seed),
    }
}
