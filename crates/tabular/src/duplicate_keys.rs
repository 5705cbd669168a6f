//! Finds keys that occur more than once with different contents among any number of rows, in bounded
//! memory: sorted runs are spilled and merged.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};

/// Keys that are held in memory, 32 bytes each.
const KEYS_HELD: usize = 2 << 20;

/// Groups of places to report.
const GROUPS_TOLD: usize = 1000;

/// Places to report of a group.
const PLACES_TOLD: usize = 100;

/// A key's hash in two halves, the place of its row, and a hash of the row's content.
type KeyEntry = (u64, u64, u64, u64);

/// Takes a key and a place whose content differs from that of the place before.
pub type ConflictSink<'a> = &'a mut dyn FnMut(u128, u64) -> io::Result<()>;

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
    /// Number of keys beyond the first of each whose content is another one than that before.
    pub repeats: u64,
    /// Number of keys beyond the first of each that have the same content as the one before.
    pub equal: u64,
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

    /// Adds the key with this hash, whose row is at `place`, and a hash of what the row holds.
    ///
    /// # Errors
    /// If scratch space fails.
    pub fn add(&mut self, hash: u128, place: u64, content: u64) -> io::Result<()> {
        let entry = ((hash >> 64) as u64, hash as u64, place, content);
        self.held.push(entry);
        if self.held.len() >= self.held_max {
            self.spill()?;
        }
        Ok(())
    }

    fn spill(&mut self) -> io::Result<()> {
        self.held.sort_unstable();
        let mut run = BufWriter::new((self.scratch)()?);
        for (high, low, place, content) in self.held.drain(..) {
            for part in [high, low, place, content] {
                run.write_all(&part.to_le_bytes())?;
            }
        }
        let mut run = run.into_inner().map_err(io::IntoInnerError::into_error)?;
        run.seek(SeekFrom::Start(0))?;
        self.runs.push(run);
        Ok(())
    }

    /// Returns the keys that occur more than once with different contents, and passes each place that
    /// differs from the one before to `conflict`.
    ///
    /// # Errors
    /// If scratch space or `conflict` fails.
    pub fn finish(mut self, conflict: ConflictSink<'_>) -> io::Result<DuplicateKeys> {
        self.held.sort_unstable();
        let mut found = EqualKeyGroups::default();
        if self.runs.is_empty() {
            for entry in &self.held {
                found.add(*entry, conflict)?;
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
            found.add(entry, conflict)?;
            heap.extend(next(&mut runs[at])?.map(|entry| Reverse((entry, at))));
        }
        Ok(found.finish())
    }
}

fn next(run: &mut impl Read) -> io::Result<Option<KeyEntry>> {
    let mut bytes = [0; 32];
    match run.read_exact(&mut bytes) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let part = |at: usize| {
        let mut part = [0; 8];
        part.copy_from_slice(&bytes[at..at + 8]);
        u64::from_le_bytes(part)
    };
    Ok(Some((part(0), part(8), part(16), part(24))))
}

/// Groups of equal neighbours in sorted order.
#[derive(Default)]
struct EqualKeyGroups {
    found: DuplicateKeys,
    key: Option<(u64, u64)>,
    content: u64,
    differs: bool,
    places: Vec<u64>,
}

impl EqualKeyGroups {
    fn add(
        &mut self,
        (high, low, place, content): KeyEntry,
        conflict: ConflictSink<'_>,
    ) -> io::Result<()> {
        self.found.keys += 1;
        if self.key == Some((high, low)) {
            if self.content == content {
                self.found.equal += 1;
            } else {
                self.found.repeats += 1;
                self.content = content;
                self.differs = true;
                conflict((u128::from(high) << 64) | u128::from(low), place)?;
            }
            if self.places.len() < PLACES_TOLD {
                self.places.push(place);
            }
            return Ok(());
        }
        self.end_group();
        self.key = Some((high, low));
        self.content = content;
        self.places.push(place);
        Ok(())
    }

    fn end_group(&mut self) {
        if std::mem::take(&mut self.differs) {
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
        // Several values of a row conflict in the same places.
        self.found.groups.dedup();
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

    fn found(keys: &[(u128, u64)], room: usize) -> (DuplicateKeys, Vec<(u128, u64)>) {
        let mut repeats = DuplicateKeyFinder::with_room(room, || Ok(Cursor::new(Vec::new())));
        for (place, (key, content)) in keys.iter().enumerate() {
            repeats.add(*key, place as u64, *content).unwrap();
        }
        let mut conflicts = Vec::new();
        let found = repeats.finish(&mut |key, place| {
            conflicts.push((key, place));
            Ok(())
        });
        (found.unwrap(), conflicts)
    }

    #[test]
    fn repeats_are_found_within_and_across_runs() {
        let wide = 1u128 << 100;
        let keys = [5, wide, 7, 5, wide + 1, 7, 7, 9];
        let keys: Vec<(u128, u64)> = keys.into_iter().zip(0..).collect();
        let expected = DuplicateKeys {
            keys: 8,
            repeats: 3,
            equal: 0,
            groups: vec![vec![0, 3], vec![2, 5, 6]],
        };
        for room in [1, 2, 3, 100] {
            assert_eq!(found(&keys, room).0, expected, "{room}");
        }
        assert_eq!(found(&[], 4).0, DuplicateKeys::default());
    }

    #[test]
    fn equal_contents_are_no_conflict() {
        let keys = [(5, 1), (7, 1), (5, 1), (7, 2), (7, 2), (9, 0), (7, 1)];
        for room in [1, 3, 100] {
            let (found, conflicts) = found(&keys, room);
            assert_eq!((found.repeats, found.equal), (2, 2), "{room}");
            assert_eq!(found.groups, [vec![1, 3, 4, 6]]);
            assert_eq!(conflicts, [(7, 3), (7, 6)]);
        }
    }

    #[test]
    fn only_the_first_groups_are_told() {
        let keys: Vec<(u128, u64)> = (0..5000).chain(0..5000).zip(0..).collect();
        let found = found(&keys, 512).0;
        assert_eq!((found.repeats, found.groups.len()), (5000, GROUPS_TOLD));
        assert_eq!(found.groups[0], [0, 5000]);
    }
}
