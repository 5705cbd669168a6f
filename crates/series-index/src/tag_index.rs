//! The inverted index of one tag of one table: value → series.
//!
//! A value that only one series has takes a four-byte entry: its bytes are read from that series'
//! key. A value of a few series takes a list of ids in addition. From the sixth series on, the text
//! of a value is stored here, and further keys refer to it; ids are in a bitmap if they are dense.

mod posting;

use crate::compact::{StoredTagValue, find};
use crate::id_table::IdTable;
use crate::keys::{ColdKeys, KeyArena};
use marigram_model::{SeriesId, TagValueRef};
use posting::SeriesPosting;
pub(crate) use posting::{append, bitmap_bytes};
use roaring::RoaringBitmap;
use std::cell::RefCell;
use std::collections::HashSet;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Set in an entry that is an index into `postings`; otherwise, the entry is the id of the only
/// series with the value.
const SHARED: u32 = 1 << 31;

/// Number of series that such an index can distinguish.
pub(crate) const SERIES_MAX: u32 = SHARED;

/// Number of values from which on a load defers the rest of a tag whose values are mostly distinct.
const PUT_OFF_VALUES: usize = 4096;

/// One tag of one table.
#[derive(Debug, Default)]
pub(crate) struct TagIndex {
    ordinal: u16,
    /// One entry per value: the id of its only series, or [`SHARED`] and its index in `postings`.
    entries: IdTable,
    postings: Vec<SeriesPosting>,
    /// Unused indexes in `postings`.
    free: Vec<u32>,
    any: RoaringBitmap,
    /// While a log is loaded, for a tag whose values are mostly distinct: hashes (the higher half)
    /// and ids of values that are still to be added.
    put_off: Option<Vec<u64>>,
}

/// Keys, and the cold keys that were read last.
pub(crate) struct KeyReader<'a> {
    pub keys: &'a KeyArena,
    pub cold: RefCell<ColdKeys>,
}

impl<'a> KeyReader<'a> {
    pub(crate) fn new(keys: &'a KeyArena) -> Self {
        let cold = RefCell::default();
        Self { keys, cold }
    }

    /// Whether a series has this value, with this hash, in its own key.
    fn has(&self, id: u32, ordinal: u16, value: TagValueRef<'_>, hash: u32) -> bool {
        let Some(entry) = self.keys.get(SeriesId(id)) else {
            return false;
        };
        if entry.digest.is_none() {
            return find(entry.tags, ordinal).is_some_and(|own| own.equals(value));
        }
        if hash_of_digest(entry.tags, ordinal) != Some(hash) {
            return false;
        }
        let mut cold = self.cold.borrow_mut();
        find(self.keys.cold(id, &mut cold), ordinal).is_some_and(|own| own.equals(value))
    }

    /// Passes `with` the value in a series' own key.
    fn with<T>(
        &self,
        id: u32,
        ordinal: u16,
        with: impl FnOnce(StoredTagValue<'_>) -> T,
    ) -> Option<T> {
        let entry = self.keys.get(SeriesId(id))?;
        if entry.digest.is_none() {
            return find(entry.tags, ordinal).map(with);
        }
        let mut cold = self.cold.borrow_mut();
        find(self.keys.cold(id, &mut cold), ordinal).map(with)
    }

    /// The hash of the value in a series' own key.
    fn hash(&self, id: u32, ordinal: u16) -> Option<u32> {
        let entry = self.keys.get(SeriesId(id))?;
        if entry.digest.is_some() {
            return hash_of_digest(entry.tags, ordinal);
        }
        find(entry.tags, ordinal).and_then(hash_stored)
    }
}

impl TagIndex {
    pub(crate) fn new(ordinal: u16) -> Self {
        Self {
            ordinal,
            ..Self::default()
        }
    }

    /// The series with any value of the tag.
    pub(crate) fn any(&self) -> &RoaringBitmap {
        &self.any
    }

    /// Adds a series that is not yet in `keys`; ids must ascend. Returns the index of the posting
    /// that holds the value's text, if there is one. A `load` may defer the work until
    /// [`catch_up`](Self::catch_up): at random places, it would take most of the time.
    pub(crate) fn insert(
        &mut self,
        keys: &KeyReader<'_>,
        value: TagValueRef<'_>,
        id: u32,
        load: bool,
    ) -> Option<u32> {
        append(&mut self.any, id);
        if let Some(rest) = &mut self.put_off {
            rest.push(u64::from(value_hash(value)) << 32 | u64::from(id));
            return None;
        }
        let values = self.entries.len();
        if load
            && values >= PUT_OFF_VALUES
            && values.is_power_of_two()
            && values as u64 * 2 > self.any.len()
        {
            self.put_off = Some(Vec::new());
        }
        self.link(keys, value, id)
    }

    /// Does the deferred work.
    pub(crate) fn catch_up(&mut self, keys: &KeyReader<'_>) {
        let Some(mut rest) = self.put_off.take() else {
            return;
        };
        let (ordinal, postings) = (self.ordinal, &self.postings);
        let rehash = |entry| spread(entry_hash(postings, keys, ordinal, entry));
        self.entries
            .reserve(self.entries.len() + rest.len(), rehash);
        // In the order of hashes, each part of the table is filled at once. A value whose hash is
        // unique here is new, if no earlier value had this hash.
        rest.sort_unstable();
        let hash_of = |at: usize| rest.get(at).map(|entry| entry >> 32);
        let known: HashSet<u64> = self
            .entries
            .iter()
            .map(|entry| u64::from(entry_hash(&self.postings, keys, ordinal, entry)))
            .collect();
        for (at, entry) in rest.iter().enumerate() {
            let (hash, id) = (entry >> 32, *entry as u32);
            let alone = hash_of(at + 1) != Some(hash)
                && at.checked_sub(1).and_then(hash_of) != Some(hash)
                && !known.contains(&hash);
            if alone {
                let postings = &self.postings;
                let rehash = |entry| spread(entry_hash(postings, keys, ordinal, entry));
                self.entries.insert(spread(hash as u32), id, rehash);
            } else {
                let value = keys.with(id, ordinal, |own| {
                    with_stored(own, |value: TagValueRef<'_>| value.to_value())
                });
                if let Some(value) = value.flatten() {
                    self.link(keys, value.as_ref(), id);
                }
            }
        }
    }

    /// Adds a series to the posting of its value.
    fn link(&mut self, keys: &KeyReader<'_>, value: TagValueRef<'_>, id: u32) -> Option<u32> {
        let (ordinal, postings) = (self.ordinal, &mut self.postings);
        let hash = value_hash(value);
        let same = |entry: u32| tag_equals(postings, keys, ordinal, entry, value, hash);
        let Some(entry) = self.entries.find_mut(spread(hash), same) else {
            let rehash = |entry| spread(entry_hash(postings, keys, ordinal, entry));
            self.entries.insert(spread(hash), id, rehash);
            return None;
        };
        if *entry < SHARED {
            let posting = SeriesPosting::pair(*entry, id);
            // There are fewer postings than series, so the index stays below SHARED.
            let place = self.free.pop().unwrap_or(postings.len() as u32);
            match postings.get_mut(place as usize) {
                Some(free) => *free = posting,
                None => postings.push(posting),
            }
            *entry = SHARED | place;
            return None;
        }
        let place = *entry & !SHARED;
        let posting = &mut postings[place as usize];
        posting.push(id, value);
        posting.text().map(|_| place)
    }

    /// Removes a series, whose value was `value`.
    pub(crate) fn remove(&mut self, keys: &KeyReader<'_>, value: TagValueRef<'_>, id: u32) {
        self.any.remove(id);
        let (ordinal, hash) = (self.ordinal, value_hash(value));
        let postings = &mut self.postings;
        let same = |entry: u32| tag_equals(postings, keys, ordinal, entry, value, hash);
        let Some(entry) = self.entries.find(spread(hash), same) else {
            return;
        };
        if entry >= SHARED {
            let place = entry & !SHARED;
            let posting = &mut postings[place as usize];
            posting.remove(id);
            if !posting.is_empty() {
                return;
            }
            *posting = SeriesPosting::default();
            self.free.push(place);
        } else if entry != id {
            return;
        }
        self.entries.remove(spread(hash), |other| other == entry);
    }

    /// The series with a value.
    pub(crate) fn with_value(&self, keys: &KeyReader<'_>, value: TagValueRef<'_>) -> RoaringBitmap {
        let hash = value_hash(value);
        let same = |entry: u32| tag_equals(&self.postings, keys, self.ordinal, entry, value, hash);
        match self.entries.find(spread(hash), same) {
            None => RoaringBitmap::new(),
            Some(entry) if entry < SHARED => [entry].into_iter().collect(),
            Some(entry) => self.postings[(entry & !SHARED) as usize].to_bitmap(),
        }
    }

    /// The series whose value meets a test, which runs once for each shared value.
    pub(crate) fn matching(
        &self,
        keys: &KeyReader<'_>,
        mut test: impl FnMut(TagValueRef<'_>) -> bool,
    ) -> RoaringBitmap {
        let mut found = RoaringBitmap::new();
        let mut single = self.any.clone();
        for posting in self.postings.iter().filter(|posting| !posting.is_empty()) {
            let ids = posting.to_bitmap();
            if self.with_value_of(posting, keys, &mut test) == Some(true) {
                found |= &ids;
            }
            single -= ids;
        }
        // In the order of ids, so that keys are read sequentially.
        for id in single {
            let met = keys.with(id, self.ordinal, |own| with_stored(own, &mut test));
            if met.flatten() == Some(true) {
                append(&mut found, id);
            }
        }
        found
    }

    /// Passes `with` each distinct value, in no particular order.
    pub(crate) fn each_value(&self, keys: &KeyReader<'_>, mut with: impl FnMut(TagValueRef<'_>)) {
        let mut single: Vec<u32> = Vec::new();
        for entry in self.entries.iter() {
            match self.postings.get((entry & !SHARED) as usize) {
                Some(posting) if entry >= SHARED => {
                    self.with_value_of(posting, keys, &mut with);
                }
                _ => single.push(entry),
            }
        }
        single.sort_unstable();
        for id in single {
            keys.with(id, self.ordinal, |own| with_stored(own, &mut with));
        }
    }

    /// The text of a posting to which keys refer.
    pub(crate) fn text(&self, place: u32) -> &str {
        let posting = self.postings.get(place as usize);
        posting.and_then(SeriesPosting::text).unwrap_or_default()
    }

    /// Releases memory that was reserved for values that did not arrive.
    pub(crate) fn shrink(&mut self, keys: &KeyReader<'_>) {
        let (ordinal, postings) = (self.ordinal, &self.postings);
        let rehash = |entry| spread(entry_hash(postings, keys, ordinal, entry));
        self.entries.shrink(rehash);
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let postings: usize = self.postings.iter().map(SeriesPosting::memory_bytes).sum();
        self.entries.memory_bytes()
            + self.postings.capacity() * size_of::<SeriesPosting>()
            + self.free.capacity() * 4
            + postings
            + bitmap_bytes(&self.any)
    }

    fn with_value_of<T>(
        &self,
        posting: &SeriesPosting,
        keys: &KeyReader<'_>,
        with: impl FnOnce(TagValueRef<'_>) -> T,
    ) -> Option<T> {
        match posting.text() {
            Some(text) => Some(with(TagValueRef::String(text))),
            None => keys
                .with(posting.first(), self.ordinal, |own| with_stored(own, with))
                .flatten(),
        }
    }
}

/// Whether an entry belongs to this value, with this hash.
fn tag_equals(
    postings: &[SeriesPosting],
    keys: &KeyReader<'_>,
    ordinal: u16,
    entry: u32,
    value: TagValueRef<'_>,
    hash: u32,
) -> bool {
    if entry < SHARED {
        return keys.has(entry, ordinal, value, hash);
    }
    let posting = &postings[(entry & !SHARED) as usize];
    match posting.text() {
        Some(text) => value == TagValueRef::String(text),
        None => keys.has(posting.first(), ordinal, value, hash),
    }
}

fn entry_hash(postings: &[SeriesPosting], keys: &KeyReader<'_>, ordinal: u16, entry: u32) -> u32 {
    if entry < SHARED {
        return keys.hash(entry, ordinal).unwrap_or(0);
    }
    let posting = &postings[(entry & !SHARED) as usize];
    match posting.text() {
        Some(text) => value_hash(TagValueRef::String(text)),
        None => keys.hash(posting.first(), ordinal).unwrap_or(0),
    }
}

/// Passes `with` a value that is stored in a series' own key.
pub(crate) fn with_stored<T>(
    stored: StoredTagValue<'_>,
    with: impl FnOnce(TagValueRef<'_>) -> T,
) -> Option<T> {
    Some(with(match stored {
        StoredTagValue::Text(text) => TagValueRef::String(str::from_utf8(text).ok()?),
        StoredTagValue::I64(number) => TagValueRef::I64(number),
        StoredTagValue::Bool(truth) => TagValueRef::Bool(truth),
        StoredTagValue::Shared(_) => return None,
    }))
}

/// The hash of a value, as in the keys of SHA256 series.
pub(crate) fn value_hash(value: TagValueRef<'_>) -> u32 {
    let seed = value.tag_type() as u64;
    let hash = match value {
        TagValueRef::String(text) => xxh3_64_with_seed(text.as_bytes(), seed),
        TagValueRef::I64(number) => xxh3_64_with_seed(&number.to_le_bytes(), seed),
        TagValueRef::Bool(truth) => xxh3_64_with_seed(&[u8::from(truth)], seed),
    };
    hash as u32
}

fn hash_stored(stored: StoredTagValue<'_>) -> Option<u32> {
    with_stored(stored, value_hash)
}

/// The hash of a tag's value among the heads and hashes of a SHA256 series.
fn hash_of_digest(mut tags: &[u8], ordinal: u16) -> Option<u32> {
    while let Some(head) = crate::compact::take_number(&mut tags) {
        let (hash, rest) = tags.split_first_chunk::<4>()?;
        if head >> 2 == u64::from(ordinal) {
            return Some(u32::from_le_bytes(*hash));
        }
        tags = rest;
    }
    None
}

/// A place in a table; preserves the order of the hashes.
fn spread(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash.wrapping_mul(0x9E37_79B9))
}
