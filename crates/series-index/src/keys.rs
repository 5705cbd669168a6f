//! The arena of keys: the table and tags of each series, by id.
//!
//! Keys are stored in blocks of [`BLOCK_SERIES`] series, one key after another:
//!
//! ```text
//! number   table << 1 | 1 for identity SHA256; a series that is gone has no bytes at all
//! PLAIN    the tags (see `compact`)
//! SHA256   32 bytes: the digest; then for each tag its head and 4 bytes: the hash of its value
//! ```
//!
//! The tags of SHA256 series are stored apart, *cold*: a full block of them is compressed. So every
//! row only touches a digest, and the tags, which only queries need, take little room.

use crate::compact::{put_number, take_number};
use marigram_model::{SeriesId, TableId};
use roaring::RoaringBitmap;

/// Series in a block: few enough that a block of the longest keys (256 tags of 16 KiB) stays below
/// 4 GiB, and that a block of long paths is decompressed in microseconds.
const BLOCK_SERIES: usize = 64;
/// A block up to this size has two-byte ends.
const NARROW_BYTES: usize = 1 << 16;

/// Marks a removed series, in place of its table.
pub(crate) const GONE: TableId = TableId(u32::MAX);

/// SHA-256 of a canonical key.
pub(crate) type KeyDigest = [u8; 32];

/// A full block.
#[derive(Debug)]
struct KeyBlock {
    /// The end of each key, counted from the end of the ends (`u16`, or `u32` in a block larger
    /// than [`NARROW_BYTES`]); then the keys.
    bytes: Box<[u8]>,
    /// Tags of SHA256 series in their order, each preceded by its length, compressed.
    cold: Option<Box<Box<[u8]>>>,
}

/// The block that is being filled.
#[derive(Debug, Default)]
struct OpenKeyBlock {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    cold: Vec<u8>,
}

/// The entry of a series in the arena.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArenaEntry<'a> {
    pub table: TableId,
    /// For a series with identity SHA256.
    pub digest: Option<&'a KeyDigest>,
    /// Tags, or heads and hashes of values if there is a digest.
    pub tags: &'a [u8],
}

/// The cold keys of the block that was read last, so that reading series in order decompresses each
/// block once.
#[derive(Debug, Default)]
pub(crate) struct ColdKeys {
    /// Number of the block, from 1.
    block: usize,
    bytes: Vec<u8>,
}

/// Keys by series id.
#[derive(Debug, Default)]
pub(crate) struct KeyArena {
    blocks: Vec<KeyBlock>,
    open: OpenKeyBlock,
    /// Memory of the blocks' content.
    block_bytes: usize,
}

impl KeyBlock {
    fn key(&self, at: usize) -> &[u8] {
        let width = if self.bytes.len() <= NARROW_BYTES {
            2
        } else {
            4
        };
        let (ends, keys) = self.bytes.split_at(width * BLOCK_SERIES);
        let end = |at: usize| {
            let mut end = [0; 4];
            end[..width].copy_from_slice(&ends[width * at..width * (at + 1)]);
            u32::from_le_bytes(end) as usize
        };
        &keys[at.checked_sub(1).map_or(0, end)..end(at)]
    }

    fn memory_bytes(&self) -> usize {
        let cold = self.cold.as_ref();
        self.bytes.len() + cold.map_or(0, |cold| size_of_val(cold) + cold.len())
    }
}

impl OpenKeyBlock {
    fn key(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start as usize..self.ends[at] as usize]
    }

    fn push(&mut self, bytes: &[u8], cold: Option<&[u8]>) {
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len() as u32);
        if let Some(cold) = cold {
            put_number(cold.len() as u64, &mut self.cold);
            self.cold.extend_from_slice(cold);
        }
    }

    /// Returns the block in its final form, and starts a new one.
    fn seal(&mut self) -> KeyBlock {
        let narrow = 2 * BLOCK_SERIES + self.bytes.len() <= NARROW_BYTES;
        let width = if narrow { 2 } else { 4 };
        let mut bytes = Vec::with_capacity(width * BLOCK_SERIES + self.bytes.len());
        for end in &self.ends {
            bytes.extend_from_slice(&end.to_le_bytes()[..width]);
        }
        bytes.extend_from_slice(&self.bytes);
        let pack = |cold| Box::new(lz4_flex::block::compress_prepend_size(cold).into_boxed_slice());
        let cold = (!self.cold.is_empty()).then(|| pack(&self.cold));
        self.bytes.clear();
        self.ends.clear();
        self.cold.clear();
        let bytes = bytes.into_boxed_slice();
        KeyBlock { bytes, cold }
    }

    fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + 4 * self.ends.capacity() + self.cold.capacity()
    }
}

impl<'a> ArenaEntry<'a> {
    fn read(mut bytes: &'a [u8]) -> Option<Self> {
        let owner = take_number(&mut bytes)?;
        let table = TableId((owner >> 1) as u32);
        if owner & 1 == 0 {
            let (digest, tags) = (None, bytes);
            return Some(Self {
                table,
                digest,
                tags,
            });
        }
        let (digest, tags) = bytes.split_first_chunk::<32>()?;
        let digest = Some(digest);
        Some(Self {
            table,
            digest,
            tags,
        })
    }

    /// Appends what precedes the tags.
    pub(crate) fn put(table: TableId, digest: Option<&KeyDigest>, out: &mut Vec<u8>) {
        put_number(u64::from(table.0) << 1 | u64::from(digest.is_some()), out);
        out.extend_from_slice(digest.map_or(&[][..], |digest| digest));
    }
}

fn place(id: u32) -> (usize, usize) {
    (id as usize / BLOCK_SERIES, id as usize % BLOCK_SERIES)
}

impl KeyArena {
    pub(crate) fn len(&self) -> usize {
        self.blocks.len() * BLOCK_SERIES + self.open.ends.len()
    }

    /// Adds the key for the next id; empty bytes for a removed series. `cold` has the tags of a
    /// SHA256 series.
    pub(crate) fn push(&mut self, bytes: &[u8], cold: Option<&[u8]>) {
        self.open.push(bytes, cold);
        if self.open.ends.len() == BLOCK_SERIES {
            let block = self.open.seal();
            self.block_bytes += block.memory_bytes();
            self.blocks.push(block);
        }
    }

    fn bytes(&self, id: u32) -> Option<&[u8]> {
        let (number, at) = place(id);
        match self.blocks.get(number) {
            Some(block) => Some(block.key(at)),
            None if number == self.blocks.len() && at < self.open.ends.len() => {
                Some(self.open.key(at))
            }
            None => None,
        }
    }

    /// The entry of a series; `None` if it does not exist or was removed.
    pub(crate) fn get(&self, id: SeriesId) -> Option<ArenaEntry<'_>> {
        ArenaEntry::read(self.bytes(id.0)?)
    }

    /// The tags of a SHA256 series.
    pub(crate) fn cold<'c>(&'c self, id: u32, cold: &'c mut ColdKeys) -> &'c [u8] {
        let (number, at) = place(id);
        let first = id - at as u32;
        let is_digest = |id: &u32| self.bytes(*id).is_some_and(is_digest);
        let before = (first..id).filter(is_digest).count();
        let mut bytes = match self.blocks.get(number) {
            None => &self.open.cold[..],
            Some(block) => {
                if cold.block != number + 1 {
                    cold.bytes.clear();
                    if let Some(packed) = &block.cold {
                        cold.bytes = lz4_flex::block::decompress_size_prepended(packed)
                            .expect("this module compressed the block");
                    }
                    cold.block = number + 1;
                }
                &cold.bytes[..]
            }
        };
        for _ in 0..before {
            take_cold(&mut bytes);
        }
        take_cold(&mut bytes)
    }

    /// Removes the keys of series, and frees their memory.
    pub(crate) fn forget(&mut self, gone: &RoaringBitmap) {
        let mut scratch = ColdKeys::default();
        let mut ids = gone.iter().peekable();
        while let Some(number) = ids.peek().map(|id| place(*id).0) {
            let first = (number * BLOCK_SERIES) as u32;
            let mut kept = OpenKeyBlock::default();
            for id in first..first + BLOCK_SERIES as u32 {
                let is_gone = ids.next_if_eq(&id).is_some();
                match self.bytes(id) {
                    None => {}
                    Some(_) if is_gone => kept.push(&[], None),
                    Some(key) if is_digest(key) => {
                        kept.push(key, Some(self.cold(id, &mut scratch)));
                    }
                    Some(key) => kept.push(key, None),
                }
            }
            let open = self.blocks.len();
            match self.blocks.get_mut(number) {
                Some(block) => {
                    self.block_bytes -= block.memory_bytes();
                    *block = kept.seal();
                    self.block_bytes += block.memory_bytes();
                }
                None if number == open => self.open = kept,
                None => return,
            }
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.block_bytes + self.open.memory_bytes() + self.blocks.capacity() * size_of::<KeyBlock>()
    }

    /// Memory of the tags of SHA256 series, in bytes.
    pub(crate) fn cold_bytes(&self) -> usize {
        let packed = self.blocks.iter().filter_map(|block| block.cold.as_ref());
        packed.map(|cold| cold.len()).sum::<usize>() + self.open.cold.capacity()
    }
}

fn is_digest(key: &[u8]) -> bool {
    key.first().is_some_and(|owner| owner & 1 == 1)
}

fn take_cold<'a>(bytes: &mut &'a [u8]) -> &'a [u8] {
    let len = take_number(bytes).unwrap_or(0) as usize;
    let (key, rest) = bytes.split_at(len.min(bytes.len()));
    *bytes = rest;
    key
}
