//! `DICTIONARY` of `TsFile`: distinct strings in the order of their first appearance, then the
//! index of each value's entry as [`super::rle`].
//!
//! ```text
//! signed  number of entries
//! ...     entries: signed length, bytes
//! RLE     32-bit numbers of the values' entries
//! ```

use super::Strictness;
use super::plain::{check_total, put_string, read_string};
use super::rle::{put_rle, read_rle};
use crate::bytes::{ByteReader, put_signed};
use crate::error::{CodecError, Result};
use crate::values::DecodeLimits;
use std::collections::HashMap;

/// Appends strings.
pub(super) fn put_dictionary(offsets: &[i32], data: &[u8], out: &mut Vec<u8>) {
    let mut numbers: HashMap<&[u8], i32> = HashMap::new();
    let mut entries = Vec::new();
    let mut indices = Vec::with_capacity(offsets.len());
    for pair in offsets.windows(2) {
        let value = &data[pair[0] as usize..pair[1] as usize];
        let next = numbers.len() as i32;
        let index = *numbers.entry(value).or_insert_with(|| {
            entries.push(value);
            next
        });
        indices.push(index);
    }
    if indices.is_empty() {
        return;
    }
    put_signed(entries.len() as i64, out);
    for entry in entries {
        put_string(entry, out);
    }
    put_rle(&indices, out);
}

/// Reads `count` strings.
pub(super) fn read_dictionary(
    reader: &mut ByteReader<'_>,
    count: usize,
    limits: DecodeLimits,
    strictness: Strictness,
) -> Result<(Vec<i32>, Vec<u8>)> {
    let mut offsets = vec![0];
    let mut data = Vec::new();
    if count == 0 {
        return Ok((offsets, data));
    }
    let number = usize::try_from(reader.signed()?).ok();
    // Every entry takes at least one byte.
    let number = number.filter(|number| *number <= reader.remaining());
    let number = number.ok_or(CodecError::Damaged("a dictionary has too many entries"))?;
    let mut entries = Vec::with_capacity(number);
    for _ in 0..number {
        entries.push(read_string(reader, strictness)?);
    }
    let indices = read_rle::<i32>(reader, count)?;
    let entry = |index: &i32| {
        let entry = usize::try_from(*index).ok();
        let entry = entry.and_then(|index| entries.get(index)).copied();
        entry.ok_or(CodecError::Damaged("a value refers to a missing entry"))
    };
    let mut total = 0u64;
    for index in &indices {
        total += entry(index)?.len() as u64;
    }
    data.reserve(check_total(total, limits)?);
    offsets.reserve(count);
    for index in &indices {
        data.extend_from_slice(entry(index)?);
        offsets.push(data.len() as i32);
    }
    Ok((offsets, data))
}
