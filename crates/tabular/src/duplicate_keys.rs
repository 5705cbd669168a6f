//! Finds keys that occur more than once among any number of rows, in bounded memory: sorted runs
//! are spilled and merged.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};

/// Keys that are held in memory, 24 bytes each.
const KEYS_HELD: usize = 2 << 20;

/// Groups of places to report.
const GROUPS_TOLD: usize = 1000;

/// Places to report of a group.
const PLACES_TOLD: usize = 100;

/// A key's hash in two halves, and the place of its row.
type KeyEntry = (u64, u64, u64);

/// Finds repeated keys. `S` is scratch space, such as a temporary file.
pub struct DuplicateKeyFinder<S, F> {
    held: Vec<KeyEntry>,
    held_max: usize,
    runs: Vec<S>,
    scratch: F,
}

/// The result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DuplicateKeys {
    /// Number of keys added.
    pub keys: u64,
    /// Number of keys beyond the first of each.
    pub repeats: u64,
    /// The places of the first groups (by first place), up to the limits on reports.
    pub groups: Vec<Vec<u64>>,
}

impl<S: Read + Write + Seek, F: FnMut() -> io::Result<S>> DuplicateKeyFinder<S, F> {
    /// No keys yet; `scratch` creates the space for a run.
    pub fn new(scratch: F) -> Self {
        Self::with_room(KEYS_HELD, scratch)
    }

    fn with_room(held_max: usize, scratch: F) -> Self {
        Self {
            held: Vec::new(),
            held_max,
            runs: Vec::new(),
            scratch,
        }
    }

    /// Adds the key with this hash, whose row is at `place`.
    ///
    /// # Errors
    /// If scratch space fails.
    pub fn add(&mut self, hash: u128, place: u64) -> io::Result<()> {
        self.held.push(((hash >> 64) as u64, hash as u64, place));
        if self.held.len() >= self.held_max {
            self.spill()?;
        }
        Ok(())
    }

    fn spill(&mut self) -> io::Result<()> {
        self.held.sort_unstable();
        let mut run = BufWriter::new((self.scratch)()?);
        for (high, low, place) in self.held.drain(..) {
            for part in [high, low, place] {
                run.write_all(&part.to_le_bytes())?;
            }
        }
        let mut run = run.into_inner().map_err(io::IntoInnerError::into_error)?;
        run.seek(SeekFrom::Start(0))?;
        self.runs.push(run);
        Ok(())
    }

    /// Returns the keys that occur more than once.
    ///
    /// # Errors
    /// If scratch space fails.
    pub fn finish(mut self) -> io::Result<DuplicateKeys> {
        self.held.sort_unstable();
        let mut found = EqualKeyGroups::default();
        if self.runs.is_empty() {
            for entry in &self.held {
                found.add(*entry);
            }
            return Ok(found.finish());
        }
        self.spill()?;
        let mut runs: Vec<_> = self.runs.into_iter().map(BufReader::new).collect();
        let mut heap = BinaryHeap::new();
        for (at, run) in runs.iter_mut().enumerate() {
            heap.extend(next(run)?.map(|entry| Reverse((entry, at))));
        }
        while let Some(Reverse((entry, at))) = heap.pop() {
            found.add(entry);
            heap.extend(next(&mut runs[at])?.map(|entry| Reverse((entry, at))));
        }
        Ok(found.finish())
    }
}

fn next(run: &mut impl Read) -> io::Result<Option<KeyEntry>> {
    let mut bytes = [0; 24];
    match run.read_exact(&mut bytes) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let part = |at: usize| {
        let mut part = [0; 8];
        part.copy_from_slice(&bytes[at..at + 8]);
        u64::from_le_bytes(part)
    };
    Ok(Some((part(0), part(8), part(16))))
}

/// Groups of equal neighbours in sorted order.
#[derive(Default)]
struct EqualKeyGroups {
    found: DuplicateKeys,
    key: Option<(u64, u64)>,
    places: Vec<u64>,
}

impl EqualKeyGroups {
    fn add(&mut self, (high, low, place): KeyEntry) {
        self.found.keys += 1;
        if self.key == Some((high, low)) {
            self.found.repeats += 1;
            if self.places.len() < PLACES_TOLD {
                self.places.push(place);
            }
            return;
        }
        self.end_group();
        self.key = Some((high, low));
        self.places.push(place);
    }

    fn end_group(&mut self) {
        if self.places.len() > 1 {
            self.found.groups.push(std::mem::take(&mut self.places));
            if self.found.groups.len() > 2 * GROUPS_TOLD {
                self.cut();
            }
        }
        self.places.clear();
    }

    /// Keeps the groups with the lowest first places.
    fn cut(&mut self) {
        self.found.groups.sort_unstable();
        self.found.groups.truncate(GROUPS_TOLD);
    }

    fn finish(mut self) -> DuplicateKeys {
        self.end_group();
        self.cut();
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn found(keys: &[u128], room: usize) -> DuplicateKeys {
        let mut repeats = DuplicateKeyFinder::with_room(room, || Ok(Cursor::new(Vec::new())));
        for (place, key) in keys.iter().enumerate() {
            repeats.add(*key, place as u64).unwrap();
        }
        repeats.finish().unwrap()
    }

    #[test]
    fn repeats_are_found_within_and_across_runs() {
        let wide = 1u128 << 100;
        let keys = [5, wide, 7, 5, wide + 1, 7, 7, 9];
        let expected = DuplicateKeys {
            keys: 8,
            repeats: 3,
            groups: vec![vec![0, 3], vec![2, 5, 6]],
        };
        for room in [1, 2, 3, 100] {
            assert_eq!(found(&keys, room), expected, "{room}");
        }
        assert_eq!(found(&[], 4), DuplicateKeys::default());
    }

    #[test]
    fn only_the_first_groups_are_told() {
        let keys: Vec<u128> = (0..5000).chain(0..5000).collect();
        let found = found(&keys, 512);
        assert_eq!((found.repeats, found.groups.len()), (5000, GROUPS_TOLD));
        assert_eq!(found.groups[0], [0, 5000]);
    }
}
