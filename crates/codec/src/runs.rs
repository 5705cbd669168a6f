//! Runs of equal values; a constant page is one run.
//!
//! ```text
//! varint  number of runs
//! FOR     length of each run
//! ...     the value of each run: bits for truth values, PLAIN for floats and strings,
//!         FOR for integers
//! ```

use crate::bytes::{ByteReader, put_varint};
use crate::error::{CodecError, Result};
use crate::integer::{put_for, read_for};
use crate::plain::{PlainNumber, put_bits, put_strings, read_strings};
use crate::values::{DecodeLimits, PageValues};

/// Cuts `0..count` into runs: the first row of each run, and its length.
pub(crate) fn cut(count: usize, same: impl Fn(usize, usize) -> bool) -> (Vec<usize>, Vec<u32>) {
    let (mut starts, mut lengths) = (Vec::new(), Vec::new());
    let mut start = 0;
    for at in 1..=count {
        if at == count || !same(at - 1, at) {
            starts.push(start);
            lengths.push((at - start) as u32);
            start = at;
        }
    }
    (starts, lengths)
}

/// Appends the number and lengths of runs; their values follow.
pub(crate) fn put_lengths(lengths: &[u32], out: &mut Vec<u8>) {
    put_varint(lengths.len() as u64, out);
    put_for(lengths, out);
}

/// Reads the lengths of runs that add up to `count`.
pub(crate) fn read_lengths(reader: &mut ByteReader<'_>, count: usize) -> Result<Vec<u32>> {
    let runs = reader.count(count)?;
    let lengths = read_for::<u32>(reader, runs)?;
    let sum: u64 = lengths.iter().map(|length| u64::from(*length)).sum();
    if sum != count as u64 {
        return Err(CodecError::Damaged(
            "runs do not add up to the number of values",
        ));
    }
    Ok(lengths)
}

/// Reads runs, whose values `read_values` reads, as `count` values.
pub(crate) fn read_runs<T: Copy>(
    reader: &mut ByteReader<'_>,
    count: usize,
    read_values: impl FnOnce(&mut ByteReader<'_>, usize) -> Result<Vec<T>>,
) -> Result<Vec<T>> {
    let lengths = read_lengths(reader, count)?;
    let values = read_values(reader, lengths.len())?;
    Ok(expand(&values, &lengths, count))
}

/// Repeats each value by the length of its run.
fn expand<T: Copy>(values: &[T], lengths: &[u32], count: usize) -> Vec<T> {
    let mut out = Vec::with_capacity(count);
    for (value, length) in values.iter().zip(lengths) {
        out.resize(out.len() + *length as usize, *value);
    }
    // `read_lengths` has checked it, and callers index without looking.
    debug_assert_eq!(out.len(), count, "the lengths of runs add up");
    out
}

/// Appends values as runs: their lengths, and each value once.
pub(crate) fn put_runs(values: PageValues<'_>, out: &mut Vec<u8>) {
    fn pick<T: Copy>(values: &[T], same: impl Fn(&T, &T) -> bool, out: &mut Vec<u8>) -> Vec<T> {
        let (starts, lengths) = cut(values.len(), |a, b| same(&values[a], &values[b]));
        put_lengths(&lengths, out);
        starts.into_iter().map(|start| values[start]).collect()
    }
    match values {
        PageValues::Bool(values) => {
            let picked = pick(values, |a, b| a == b, out);
            put_bits(&picked, out);
        }
        PageValues::I32(values) => {
            let picked = pick(values, |a, b| a == b, out);
            put_for(&picked, out);
        }
        PageValues::I64(values) => {
            let picked = pick(values, |a, b| a == b, out);
            put_for(&picked, out);
        }
        PageValues::U64(values) => {
            let picked = pick(values, |a, b| a == b, out);
            put_for(&picked, out);
        }
        PageValues::F32(values) => {
            let picked = pick(values, |a, b| a.to_bits() == b.to_bits(), out);
            PlainNumber::put(&picked, out);
        }
        PageValues::F64(values) => {
            let picked = pick(values, |a, b| a.to_bits() == b.to_bits(), out);
            PlainNumber::put(&picked, out);
        }
        PageValues::Bytes { offsets, data } => {
            let value = |at: usize| &data[offsets[at] as usize..offsets[at + 1] as usize];
            let count = offsets.len().saturating_sub(1);
            let (starts, lengths) = cut(count, |a, b| value(a) == value(b));
            put_lengths(&lengths, out);
            let mut picked_offsets = vec![0];
            let mut picked = Vec::new();
            for start in starts {
                picked.extend_from_slice(value(start));
                picked_offsets.push(picked.len() as i32);
            }
            put_strings(&picked_offsets, &picked, out);
        }
    }
}

/// Reads runs of strings: offsets and bytes.
pub(crate) fn read_string_runs(
    reader: &mut ByteReader<'_>,
    count: usize,
    limits: DecodeLimits,
) -> Result<(Vec<i32>, Vec<u8>)> {
    let lengths = read_lengths(reader, count)?;
    let (run_offsets, run_data) = read_strings(reader, lengths.len(), limits)?;
    let widths = run_offsets
        .windows(2)
        .map(|pair| (pair[1] - pair[0]) as u64);
    let bytes: u64 = widths
        .zip(&lengths)
        .map(|(width, rows)| width * u64::from(*rows))
        .sum();
    if bytes > i32::MAX as u64 {
        return Err(CodecError::Damaged("strings take 2 GiB or more"));
    }
    let mut data = Vec::with_capacity(limits.check_bytes(bytes)?);
    let mut offsets = Vec::with_capacity(count + 1);
    offsets.push(0);
    for (pair, rows) in run_offsets.windows(2).zip(lengths) {
        let value = &run_data[pair[0] as usize..pair[1] as usize];
        for _ in 0..rows {
            data.extend_from_slice(value);
            offsets.push(data.len() as i32);
        }
    }
    Ok((offsets, data))
}

/// Repeats each bit by the length of its run.
pub(crate) fn spread_bits(bits: &[u8], lengths: &[u32], count: usize) -> Vec<u8> {
    let mut out = vec![0; count.div_ceil(8)];
    let mut row = 0;
    for (run, length) in lengths.iter().enumerate() {
        let end = row + *length as usize;
        if bits[run / 8] >> (run % 8) & 1 == 1 {
            while row < end && row % 8 != 0 {
                out[row / 8] |= 1 << (row % 8);
                row += 1;
            }
            let bytes = (end - row) / 8;
            out[row / 8..row / 8 + bytes].fill(0xff);
            row += bytes * 8;
            while row < end {
                out[row / 8] |= 1 << (row % 8);
                row += 1;
            }
        }
        row = end;
    }
    out
}
