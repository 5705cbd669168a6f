//! Detects rows of one import that would replace each other, before the first one is written.
//!
//! The key of a row is its table, its tags and its time. In line protocol, several lines may make
//! up one row; there, each field has a key of its own, so that lines with other fields add to a
//! row.

use super::ParsedBatch;
use anyhow::Result;
use arrow::array::Array;
use marigram_model::{TagValueRef, WriteBatch};
use marigram_tabular::duplicate_keys::{DuplicateKeyFinder, DuplicateKeys};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

/// Bits of a place that hold the line; those above hold the file.
const LINE_BITS: u32 = 44;

type ScratchFile = fn() -> io::Result<File>;

/// Collects the keys of all rows of an import.
pub(super) struct DuplicateCheck {
    repeats: DuplicateKeyFinder<File, ScratchFile>,
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
    pub(super) fn new() -> Self {
        Self {
            repeats: DuplicateKeyFinder::new(tempfile::tempfile as ScratchFile),
            file: 0,
            spans: BTreeMap::new(),
            rows: 0,
            bad: 0,
        }
    }

    /// Starts file number `file`: the rows that follow belong to it.
    pub(super) fn begin_file(&mut self, file: usize) {
        self.file = file as u64;
    }

    /// Adds the rows that were read.
    pub(super) fn add(&mut self, parsed: &ParsedBatch, by_field: bool) -> Result<()> {
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
            let slots = series(batch);
            for (row, (slot, time)) in batch.slots.iter().zip(batch.times.iter()).enumerate() {
                let line = lines.get(row).copied().unwrap_or(0);
                let place = place_of(self.file, line);
                let mut key = [0; 24];
                key[..16].copy_from_slice(&slots[*slot as usize].to_le_bytes());
                key[16..].copy_from_slice(&time.to_le_bytes());
                if !by_field {
                    self.repeats.add(xxh3_128(&key), place)?;
                    continue;
                }
                for field in batch
                    .fields
                    .iter()
                    .filter(|field| field.values.is_valid(row))
                {
                    let mut hasher = Xxh3::new();
                    hasher.update(&key);
                    hasher.update(field.name.as_bytes());
                    self.repeats.add(hasher.digest128(), place)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the result; [`place`] decodes its places.
    pub(super) fn finish(self) -> Result<DuplicateKeys> {
        Ok(self.repeats.finish()?)
    }
}

/// Encodes a file number and a line.
pub(crate) fn place_of(file: u64, line: u64) -> u64 {
    file << LINE_BITS | line
}

/// Decodes the file number and the line of a place.
pub(super) fn place(place: u64) -> (usize, u64) {
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
