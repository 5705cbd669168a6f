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

/// Repeats each value by the length of its run.
pub(crate) fn expand<T: Copy>(values: &[T], lengths: &[u32], count: usize) -> Vec<T> {
    let mut out = Vec::with_capacity(count);
    for (value, length) in values.iter().zip(lengths) {
        out.resize(out.len() + *length as usize, *value);
    }
    out
}
