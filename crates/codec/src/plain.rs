//! Unencoded values: numbers as little-endian words, truth values as bits, strings as their lengths
//! and then their bytes.

use crate::bytes::ByteReader;
use crate::error::{CodecError, Result};
use crate::integer::{put_for, read_for};
use crate::values::DecodeLimits;

/// A number in memory and on disk.
pub(crate) trait PlainNumber: Copy {
    const BYTES: usize;
    fn put(values: &[Self], out: &mut Vec<u8>);
    fn read(bytes: &[u8]) -> Vec<Self>;
}

macro_rules! plain {
    ($($value:ty),*) => {$(
        impl PlainNumber for $value {
            const BYTES: usize = size_of::<$value>();
            fn put(values: &[Self], out: &mut Vec<u8>) {
                out.reserve(size_of_val(values));
                out.extend(values.iter().flat_map(|value| value.to_le_bytes()));
            }
            fn read(bytes: &[u8]) -> Vec<Self> {
                let (chunks, _) = bytes.as_chunks::<{ size_of::<$value>() }>();
                chunks.iter().map(|chunk| Self::from_le_bytes(*chunk)).collect()
            }
        }
    )*};
}
plain!(i32, i64, u64, f32, f64);

/// Reads `count` numbers.
pub(crate) fn read_numbers<T: PlainNumber>(
    reader: &mut ByteReader<'_>,
    count: usize,
) -> Result<Vec<T>> {
    let len = count
        .checked_mul(T::BYTES)
        .ok_or(CodecError::Damaged("too many values"))?;
    Ok(T::read(reader.take(len)?))
}

/// Appends truth values, one bit each, lowest bit first.
pub(crate) fn put_bits(values: &[bool], out: &mut Vec<u8>) {
    out.extend(values.chunks(8).map(|chunk| {
        chunk
            .iter()
            .enumerate()
            .fold(0, |byte, (at, value)| byte | u8::from(*value) << at)
    }));
}

/// Reads `count` truth values; bits after the last one must be 0.
pub(crate) fn read_bits(reader: &mut ByteReader<'_>, count: usize) -> Result<Vec<u8>> {
    let bits = reader.take(count.div_ceil(8))?.to_vec();
    let unused = bits
        .last()
        .is_some_and(|last| !count.is_multiple_of(8) && last >> (count % 8) != 0);
    if unused {
        return Err(CodecError::Damaged("bits are set past the last value"));
    }
    Ok(bits)
}

/// Lengths of strings.
pub(crate) fn lengths(offsets: &[i32]) -> Vec<u32> {
    let length = |pair: &[i32]| (pair[1] - pair[0]) as u32;
    offsets.windows(2).map(length).collect()
}

/// The offsets of strings with these lengths, and their total bytes, if the caller's limits allow
/// it.
pub(crate) fn offsets_of(lengths: &[u32], limits: DecodeLimits) -> Result<(Vec<i32>, usize)> {
    let mut offsets = Vec::with_capacity(lengths.len() + 1);
    offsets.push(0);
    let mut end = 0u64;
    for length in lengths {
        end += u64::from(*length);
        offsets.push(end as i32);
    }
    if end > i32::MAX as u64 {
        return Err(CodecError::Damaged("strings take 2 GiB or more"));
    }
    Ok((offsets, limits.check_bytes(end)?))
}

/// Appends strings: lengths in frames of reference, then all bytes.
pub(crate) fn put_strings(offsets: &[i32], data: &[u8], out: &mut Vec<u8>) {
    put_for(&lengths(offsets), out);
    if let (Some(first), Some(last)) = (offsets.first(), offsets.last()) {
        out.extend_from_slice(&data[*first as usize..*last as usize]);
    }
}

/// Reads `count` strings.
pub(crate) fn read_strings(
    reader: &mut ByteReader<'_>,
    count: usize,
    limits: DecodeLimits,
) -> Result<(Vec<i32>, Vec<u8>)> {
    let lengths = read_for::<u32>(reader, count)?;
    let (offsets, total) = offsets_of(&lengths, limits)?;
    Ok((offsets, reader.take(total)?.to_vec()))
}
