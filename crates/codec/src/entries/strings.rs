//! Distinct strings.
//!
//! ```text
//! varint  number of entries
//! PLAIN   entries
//! FOR     index of each value's entry
//! ```

use crate::bytes::{ByteReader, put_varint};
use crate::error::{CodecError, Result};
use crate::integer::{put_for, read_for};
use crate::plain::{put_strings, read_strings};
use crate::values::DecodeLimits;
use std::collections::HashMap;

/// Appends strings with a dictionary.
pub(crate) fn put_entries(offsets: &[i32], data: &[u8], out: &mut Vec<u8>) {
    let mut entries: HashMap<&[u8], u32> = HashMap::new();
    let mut entry_offsets = vec![0];
    let mut entry_data = Vec::new();
    let mut indices = Vec::with_capacity(offsets.len().saturating_sub(1));
    let mut last: Option<(&[u8], u32)> = None;
    for pair in offsets.windows(2) {
        let value = &data[pair[0] as usize..pair[1] as usize];
        if let Some((_, index)) = last.filter(|(text, _)| *text == value) {
            indices.push(index);
            continue;
        }
        let next = entries.len() as u32;
        let index = *entries.entry(value).or_insert_with(|| {
            entry_data.extend_from_slice(value);
            entry_offsets.push(entry_data.len() as i32);
            next
        });
        last = Some((value, index));
        indices.push(index);
    }
    put_varint(entries.len() as u64, out);
    put_strings(&entry_offsets, &entry_data, out);
    put_for(&indices, out);
}

/// Reads `count` strings written by [`put_entries`].
pub(crate) fn read_entries(
    reader: &mut ByteReader<'_>,
    count: usize,
    limits: DecodeLimits,
) -> Result<(Vec<i32>, Vec<u8>)> {
    let entries = reader.count(count)?;
    let (entry_offsets, entry_data) = read_strings(reader, entries, limits)?;
    let indices = read_for::<u32>(reader, count)?;
    let mut bytes = 0u64;
    let mut offsets = Vec::with_capacity(count + 1);
    offsets.push(0);
    for index in &indices {
        let at = *index as usize;
        let (Some(from), Some(to)) = (entry_offsets.get(at), entry_offsets.get(at + 1)) else {
            return Err(CodecError::Damaged("a value refers to a missing entry"));
        };
        bytes += (to - from) as u64;
        offsets.push(bytes as i32);
    }
    if bytes > i32::MAX as u64 {
        return Err(CodecError::Damaged("strings take 2 GiB or more"));
    }
    let mut data = Vec::with_capacity(limits.check_bytes(bytes)?);
    for index in indices {
        let at = index as usize;
        let (from, to) = (entry_offsets[at] as usize, entry_offsets[at + 1] as usize);
        data.extend_from_slice(&entry_data[from..to]);
    }
    Ok((offsets, data))
}

/// Share of distinct values in a sample of up to 512, from 0 to 256.
pub(crate) fn distinct_share(offsets: &[i32], data: &[u8]) -> usize {
    let count = offsets.len().saturating_sub(1);
    let seen = count.min(512);
    let mut distinct = std::collections::HashSet::new();
    for at in 0..seen {
        let row = at * count / seen;
        distinct.insert(&data[offsets[row] as usize..offsets[row + 1] as usize]);
    }
    (distinct.len() * 256).checked_div(seen).unwrap_or(0)
}
