//! A hash table of series ids that grows in small steps.
//!
//! A table that doubles at once holds its lock for a second at some millions of series, and needs
//! three times its memory meanwhile. This one consists of many small tables, *parts*. A full part
//! is split in two (extendible hashing), so no insertion moves more ids than one part has. An id is
//! found by the hash of what it stands for; the caller recomputes the hash when ids move.

use hashbrown::HashTable;

/// Ids in a full part: as many as fit in 8,192 buckets.
const PART_IDS: usize = 7168;

#[derive(Debug)]
pub(crate) struct IdTable {
    /// The part for each pattern of the `depth` highest bits of a hash.
    directory: Vec<u32>,
    parts: Vec<IdTablePart>,
    depth: u32,
    len: usize,
}

#[derive(Debug, Default)]
struct IdTablePart {
    ids: HashTable<u32>,
    /// Number of the highest bits that all hashes in it share.
    depth: u32,
}

impl Default for IdTable {
    fn default() -> Self {
        Self {
            directory: vec![0],
            parts: vec![IdTablePart::default()],
            depth: 0,
            len: 0,
        }
    }
}

/// Most of the highest bits of a hash that select the part.
const DEPTH_MAX: u32 = 24;

/// The hash within a part; the highest bits, which are equal there, do not contribute.
fn within(hash: u64) -> u64 {
    hash.rotate_left(32)
}

impl IdTable {
    /// Finds the id with this hash for which `same` returns true.
    pub(crate) fn find(&self, hash: u64, mut same: impl FnMut(u32) -> bool) -> Option<u32> {
        let part = &self.parts[self.part_of(hash)];
        part.ids.find(within(hash), |id| same(*id)).copied()
    }

    /// Like [`find`](Self::find), for replacing the id by another one for the same thing.
    pub(crate) fn find_mut(
        &mut self,
        hash: u64,
        mut same: impl FnMut(u32) -> bool,
    ) -> Option<&mut u32> {
        let at = self.part_of(hash);
        self.parts[at].ids.find_mut(within(hash), |id| same(*id))
    }

    /// Adds an id that is not in the table. `rehash` returns the hashes of those that are.
    pub(crate) fn insert(&mut self, hash: u64, id: u32, rehash: impl Fn(u32) -> u64) {
        let mut at = self.part_of(hash);
        if self.parts[at].ids.len() >= PART_IDS {
            self.split(at, &rehash);
            at = self.part_of(hash);
        }
        let rehash = |id: &u32| within(rehash(*id));
        self.parts[at].ids.insert_unique(within(hash), id, rehash);
        self.len += 1;
    }

    /// Removes the id with this hash for which `same` returns true; returns whether there was one.
    pub(crate) fn remove(&mut self, hash: u64, mut same: impl FnMut(u32) -> bool) -> bool {
        let at = self.part_of(hash);
        let Ok(entry) = self.parts[at].ids.find_entry(within(hash), |id| same(*id)) else {
            return false;
        };
        entry.remove();
        self.len -= 1;
        true
    }

    /// Reserves room for about `count` ids in total. Adding them in the order of their hashes is
    /// fastest.
    pub(crate) fn reserve(&mut self, count: usize, rehash: impl Fn(u32) -> u64) {
        // Hashes are distributed at random: no part should need more than the mean plus five
        // standard deviations.
        let fits = |depth: u32| (count >> depth) + 5 * (count >> depth).isqrt() <= PART_IDS;
        let depth = (0..=DEPTH_MAX).find(|depth| fits(*depth));
        let Some(depth) = depth.filter(|depth| *depth > self.depth) else {
            return;
        };
        let room = (count >> depth) + 5 * (count >> depth).isqrt();
        let part = |_| IdTablePart {
            ids: HashTable::with_capacity(room),
            depth,
        };
        let parts = (0..1 << depth).map(part).collect();
        let before = std::mem::replace(&mut self.parts, parts);
        self.directory = (0..1 << depth).collect();
        self.depth = depth;
        for id in before.into_iter().flat_map(|part| part.ids) {
            let hash = rehash(id);
            let (at, rehash) = (self.part_of(hash), |id: &u32| within(rehash(*id)));
            self.parts[at].ids.insert_unique(within(hash), id, rehash);
        }
    }

    /// Keeps the ids for which `keep` returns true, and releases memory.
    pub(crate) fn retain(
        &mut self,
        mut keep: impl FnMut(u32) -> bool,
        rehash: impl Fn(u32) -> u64,
    ) {
        for part in &mut self.parts {
            part.ids.retain(|id| keep(*id));
        }
        self.len = self.parts.iter().map(|part| part.ids.len()).sum();
        self.shrink(rehash);
    }

    /// Releases reserved or unused memory, if there is much of it.
    pub(crate) fn shrink(&mut self, rehash: impl Fn(u32) -> u64) {
        if self.len == 0 {
            *self = Self::default();
        } else if self.memory_bytes() > 12 * self.len + 4096 {
            for part in &mut self.parts {
                part.ids.shrink_to_fit(|id| within(rehash(*id)));
            }
        }
    }

    /// All ids, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        self.parts.iter().flat_map(|part| &part.ids).copied()
    }

    /// Number of ids.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Memory that the table holds, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let parts: usize = self
            .parts
            .iter()
            .map(|part| part.ids.allocation_size())
            .sum();
        parts + self.parts.capacity() * size_of::<IdTablePart>() + self.directory.capacity() * 4
    }

    fn part_of(&self, hash: u64) -> usize {
        let pattern = hash.checked_shr(64 - self.depth).unwrap_or(0);
        self.directory[pattern as usize] as usize
    }

    /// Splits a part in two by the next bit of the hashes.
    fn split(&mut self, at: usize, rehash: &impl Fn(u32) -> u64) {
        let depth = self.parts[at].depth;
        if depth == DEPTH_MAX {
            // Memory cannot hold that many ids; only equal hashes lead here.
            return;
        }
        if depth == self.depth {
            let twice = self.directory.iter().flat_map(|part| [*part; 2]);
            self.directory = twice.collect();
            self.depth += 1;
        }
        let new = self.parts.len() as u32;
        let next_bit = self.depth - depth - 1;
        for (pattern, part) in self.directory.iter_mut().enumerate() {
            if *part == at as u32 && pattern >> next_bit & 1 == 1 {
                *part = new;
            }
        }
        let old = std::mem::take(&mut self.parts[at].ids);
        let half = || IdTablePart {
            ids: HashTable::with_capacity(old.len() / 2),
            depth: depth + 1,
        };
        let (low, high) = (half(), half());
        self.parts[at] = low;
        self.parts.push(high);
        for id in old {
            let hash = rehash(id);
            let (to, rehash) = (self.part_of(hash), |id: &u32| within(rehash(*id)));
            self.parts[to].ids.insert_unique(within(hash), id, rehash);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(id: u32) -> u64 {
        let hash = u64::from(id).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        hash ^ (hash >> 29)
    }

    fn check(table: &IdTable, ids: impl Iterator<Item = u32> + Clone) {
        assert_eq!(table.len(), ids.clone().count());
        for id in ids.clone() {
            assert_eq!(table.find(hash(id), |other| other == id), Some(id));
        }
        let mut all: Vec<_> = table.iter().collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(ids));
    }

    #[test]
    fn ids_are_found_while_parts_are_split() {
        let mut table = IdTable::default();
        for id in 0..100_000 {
            table.insert(hash(id), id, hash);
            if id % 9973 == 0 {
                check(&table, 0..=id);
            }
        }
        check(&table, 0..100_000);
        assert!(table.memory_bytes() < 100_000 * 12 + 1000);
        table.retain(|id| id >= 99_000, hash);
        check(&table, 99_000..100_000);
        assert!(table.remove(hash(99_000), |id| id == 99_000));
        assert!(!table.remove(hash(99_000), |id| id == 99_000));
        check(&table, 99_001..100_000);
        assert!(table.memory_bytes() < 20_000, "{}", table.memory_bytes());
    }

    #[test]
    fn reserved_tables_hold_what_they_were_made_for_without_growing() {
        for count in [1, 7000, 30_000, 55_000, 100_000] {
            let mut table = IdTable::default();
            (0..100.min(count)).for_each(|id| table.insert(hash(id), id, hash));
            table.reserve(count as usize, hash);
            let before = table.memory_bytes();
            (100.min(count)..count).for_each(|id| table.insert(hash(id), id, hash));
            check(&table, 0..count);
            if count > 7168 {
                assert_eq!(table.memory_bytes(), before, "{count}");
            }
            assert!(
                before < 12 * count as usize + 100_000,
                "{before} for {count}"
            );
        }
    }
}
