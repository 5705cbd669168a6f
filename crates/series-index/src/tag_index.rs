//! The inverted index of one tag of one table: value → series.
//!
//! A value's bytes are not stored here: an entry names the first series that has the value, and the
//! value is read from that series' key. A value that one series has costs its eight-byte entry;
//! a value that few have, a list of ids; only values of many series have bitmaps.

use crate::keys::Keys;
use hashbrown::HashTable;
use marigram_model::{TagValue, TagValueRef, tag_key_entries};
use roaring::RoaringBitmap;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Series of a value from which on a bitmap is kept.
const BITMAP_SERIES: usize = 64;
/// Entry of a value that one series has.
const ALONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The first series with the value.
    first: u32,
    /// Place of all its series in `postings`, or [`ALONE`].
    posting: u32,
}

#[derive(Debug)]
enum Posting {
    Few(Vec<u32>),
    Many(RoaringBitmap),
}

/// One tag of one table.
#[derive(Debug, Default)]
pub(crate) struct TagIndex {
    ordinal: u16,
    entries: HashTable<Entry>,
    postings: Vec<Posting>,
    any: RoaringBitmap,
}

impl TagIndex {
    pub(crate) fn new(ordinal: u16) -> Self {
        Self { ordinal, ..Self::default() }
    }

    /// Series with any value of the tag.
    pub(crate) fn any(&self) -> &RoaringBitmap {
        &self.any
    }

    /// Adds a series, whose key is in `keys`; ids only rise.
    pub(crate) fn insert(&mut self, keys: &Keys, value: TagValueRef<'_>, id: u32) {
        self.any.insert(id);
        let ordinal = self.ordinal;
        let hash = hash(value);
        let same = |entry: &Entry| value_of(keys, entry.first, ordinal) == Some(value);
        let Some(entry) = self.entries.find_mut(hash, same) else {
            let rehash = |entry: &Entry| {
                value_of(keys, entry.first, ordinal).map_or(0, self::hash)
            };
            self.entries.insert_unique(hash, Entry { first: id, posting: ALONE }, rehash);
            return;
        };
        if entry.posting == ALONE {
            // Fewer postings than series, so the number is never ALONE.
            entry.posting = self.postings.len() as u32;
            self.postings.push(Posting::Few(vec![entry.first, id]));
            return;
        }
        match &mut self.postings[entry.posting as usize] {
            Posting::Few(ids) if ids.len() + 1 < BITMAP_SERIES => ids.push(id),
            few @ Posting::Few(_) => {
                let Posting::Few(ids) = &*few else { unreachable!("matched above") };
                *few = Posting::Many(ids.iter().copied().chain([id]).collect());
            }
            Posting::Many(ids) => {
                ids.insert(id);
            }
        }
    }

    /// Series with a value.
    pub(crate) fn with_value(&self, keys: &Keys, value: TagValueRef<'_>) -> RoaringBitmap {
        let same = |entry: &Entry| value_of(keys, entry.first, self.ordinal) == Some(value);
        match self.entries.find(hash(value), same) {
            None => RoaringBitmap::new(),
            Some(entry) if entry.posting == ALONE => [entry.first].into_iter().collect(),
            Some(entry) => match &self.postings[entry.posting as usize] {
                Posting::Few(ids) => ids.iter().copied().collect(),
                Posting::Many(ids) => ids.clone(),
            },
        }
    }

    /// Distinct values, ascending.
    pub(crate) fn distinct(&self, keys: &Keys) -> Vec<TagValue> {
        let mut values: Vec<_> = self
            .entries
            .iter()
            .filter_map(|entry| value_of(keys, entry.first, self.ordinal))
            .collect();
        values.sort_unstable();
        values.into_iter().map(TagValueRef::to_value).collect()
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

/// Value of a tag in the key of a series.
pub(crate) fn value_of(keys: &Keys, id: u32, ordinal: u16) -> Option<TagValueRef<'_>> {
    value_in(keys.key(id), ordinal)
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
