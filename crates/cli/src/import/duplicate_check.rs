//! Detects rows of one import that would replace each other, before the first one is written.
//!
//! The key of a row is its table, its tags and its time. Rows with the same key replace each other only
//! if one has another value than the other in the same column: equal rows, and rows that complete each
//! other, lose nothing. The first reading finds the keys whose rows differ. If there are any, a second
//! one compares the values of only those rows. In line protocol each field has a key of its own from
//! the start, because several lines make up one row.

use super::ParsedBatch;
use super::row_values::{row_hashes, value_hashes};
use anyhow::Result;
use marigram_model::{TagValueRef, WriteBatch};
use marigram_tabular::duplicate_keys::{DuplicateKeyFinder, DuplicateKeys};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

/// Bits of a place that hold the line; those above hold the file.
const LINE_BITS: u32 = 44;

/// Bits of the filter of keys whose rows differ: 8 MiB.
const FILTER_BITS: u64 = 1 << 26;

type ScratchFile = fn() -> io::Result<File>;

type KeyFinder = DuplicateKeyFinder<File, ScratchFile>;

fn key_finder() -> KeyFinder {
    DuplicateKeyFinder::new(tempfile::tempfile as ScratchFile)
}

/// Collects the keys of all rows of an import.
pub(crate) struct DuplicateCheck {
    repeats: KeyFinder,
    file: u64,
    /// First and last time of each table, ns.
    pub spans: BTreeMap<String, (i64, i64)>,
    /// Rows that can be stored.
    pub rows: u64,
    /// Rows that cannot be stored.
    pub bad: u64,
}

impl DuplicateCheck {
    /// An empty check.
    pub(crate) fn new() -> Self {
        Self {
            repeats: key_finder(),
            file: 0,
            spans: BTreeMap::new(),
            rows: 0,
            bad: 0,
        }
    }

    /// Starts file number `file`: the rows that follow belong to it.
    pub(crate) fn begin_file(&mut self, file: usize) {
        self.file = file as u64;
    }

    /// Adds the rows that were read.
    pub(crate) fn add(&mut self, parsed: &ParsedBatch, by_field: bool) -> Result<()> {
        self.bad += parsed.bad.len() as u64;
        for (batch, lines) in parsed.batches.iter().zip(&parsed.lines) {
            self.rows += batch.len() as u64;
            if let (Some(first), Some(last)) = (batch.times.iter().min(), batch.times.iter().max())
            {
                let span = self
                    .spans
                    .entry(batch.table.clone())
                    .or_insert((*first, *last));
                *span = (span.0.min(*first), span.1.max(*last));
            }
            let keys = row_keys(batch);
            if by_field {
                add_values(
                    &mut self.repeats,
                    batch,
                    &keys,
                    self.file,
                    lines,
                    &|_, _| true,
                )?;
                continue;
            }
            for (row, (key, content)) in keys.iter().zip(row_hashes(batch)).enumerate() {
                let place = place_of(self.file, lines.get(row).copied().unwrap_or(0));
                self.repeats.add(xxh3_128(key), place, content)?;
            }
        }
        Ok(())
    }

    /// The keys whose rows differ, and a comparison of their values if the keys are not those of values
    /// already; [`place`] decodes the places.
    pub(crate) fn finish(self) -> Result<(DuplicateKeys, ValueCheck)> {
        let mut suspects = KeyFilter::default();
        let found = self.repeats.finish(&mut |key, _| {
            suspects.insert(key);
            Ok(())
        })?;
        let values = ValueCheck {
            suspects,
            values: key_finder(),
        };
        Ok((found, values))
    }
}

/// Compares the values of the rows whose keys are suspects.
pub(crate) struct ValueCheck {
    suspects: KeyFilter,
    values: KeyFinder,
}

impl ValueCheck {
    /// Adds rows of file number `file`.
    pub(crate) fn add(&mut self, file: usize, parsed: &ParsedBatch, by_field: bool) -> Result<()> {
        for (batch, lines) in parsed.batches.iter().zip(&parsed.lines) {
            let keys = row_keys(batch);
            let suspects: Vec<bool> = keys
                .iter()
                .map(|key| by_field || self.suspects.may_have(xxh3_128(key)))
                .collect();
            let takes =
                |row: usize, key: u128| suspects[row] && (!by_field || self.suspects.may_have(key));
            add_values(&mut self.values, batch, &keys, file as u64, lines, &takes)?;
        }
        Ok(())
    }

    /// The rows that would replace values; `rows` is what the rows alone told.
    pub(crate) fn finish(self, rows: &DuplicateKeys) -> Result<DuplicateKeys> {
        let mut places = key_finder();
        let values = self
            .values
            .finish(&mut |_, place| places.add(u128::from(place), place, 0))?;
        // A row with several values that differ is one row.
        let places = places.finish(&mut |_, _| Ok(()))?;
        let repeats = places.keys - places.equal;
        Ok(DuplicateKeys {
            keys: rows.keys,
            repeats,
            equal: (rows.repeats + rows.equal).saturating_sub(repeats),
            groups: values.groups,
        })
    }
}

/// Adds the key of each value that `takes` wants.
fn add_values(
    finder: &mut KeyFinder,
    batch: &WriteBatch,
    keys: &[[u8; 24]],
    file: u64,
    lines: &[u64],
    takes: &dyn Fn(usize, u128) -> bool,
) -> Result<()> {
    for field in &batch.fields {
        let mut added = Ok(());
        value_hashes(field, &mut |row, content| {
            let mut hasher = Xxh3::new();
            hasher.update(&keys[row]);
            hasher.update(field.name.as_bytes());
            let key = hasher.digest128();
            if added.is_ok() && takes(row, key) {
                let place = place_of(file, lines.get(row).copied().unwrap_or(0));
                added = finder.add(key, place, content);
            }
        });
        added?;
    }
    Ok(())
}

/// A set of keys that may have more than were inserted, in bounded memory.
#[derive(Default)]
struct KeyFilter {
    bits: Vec<u64>,
}

impl KeyFilter {
    fn insert(&mut self, key: u128) {
        if self.bits.is_empty() {
            self.bits = vec![0; (FILTER_BITS / 64) as usize];
        }
        let bit = key as u64 % FILTER_BITS;
        self.bits[(bit / 64) as usize] |= 1 << (bit % 64);
    }

    fn may_have(&self, key: u128) -> bool {
        let bit = key as u64 % FILTER_BITS;
        let word = self.bits.get((bit / 64) as usize).copied().unwrap_or(0);
        word & (1 << (bit % 64)) != 0
    }
}

/// For each row its series and its time.
fn row_keys(batch: &WriteBatch) -> Vec<[u8; 24]> {
    let slots = series(batch);
    let rows = batch.slots.iter().zip(batch.times.iter());
    let keys = rows.map(|(slot, time)| {
        let mut key = [0; 24];
        key[..16].copy_from_slice(&slots[*slot as usize].to_le_bytes());
        key[16..].copy_from_slice(&time.to_le_bytes());
        key
    });
    keys.collect()
}

/// Encodes a file number and a line.
pub(crate) fn place_of(file: u64, line: u64) -> u64 {
    file << LINE_BITS | line
}

/// Decodes the file number and the line of a place.
pub(crate) fn place(place: u64) -> (usize, u64) {
    (
        (place >> LINE_BITS) as usize,
        place & ((1 << LINE_BITS) - 1),
    )
}

/// A hash of the table and the tags for each slot.
pub(crate) fn series(batch: &WriteBatch) -> Vec<u128> {
    let mut tags: Vec<_> = batch.tags.iter().collect();
    tags.sort_by(|a, b| a.name.cmp(&b.name));
    let slots = (0..batch.slot_count).map(|slot| {
        let values = tags.iter().filter_map(|tag| {
            // A table gives a tag one type, so the text identifies the value.
            let text = match tag.value(slot)? {
                TagValueRef::String(text) => Cow::Borrowed(text),
                TagValueRef::I64(number) => Cow::Owned(number.to_string()),
                TagValueRef::Bool(truth) => Cow::Owned(truth.to_string()),
            };
            Some((tag.name.as_str(), text))
        });
        series_key(&batch.table, values)
    });
    slots.collect()
}

/// A hash of a table and of tags, which are sorted by name.
pub(crate) fn series_key<'a, T: AsRef<str>>(
    table: &str,
    tags: impl IntoIterator<Item = (&'a str, T)>,
) -> u128 {
    let mut hasher = Xxh3::new();
    let mut put = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    put(table.as_bytes());
    for (name, text) in tags {
        put(name.as_bytes());
        put(text.as_ref().as_bytes());
    }
    hasher.digest128()
}
