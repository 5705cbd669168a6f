//! `PLAIN` of `TsFile`: one byte per truth value, 32-bit integers as signed varints, everything
//! else big-endian, strings preceded by their length as a signed varint.

use super::Strictness;
use crate::bytes::{ByteReader, put_signed};
use crate::error::{CodecError, Result};
use crate::values::DecodeLimits;

/// Appends 32-bit integers.
pub(super) fn put_varints(values: &[i32], out: &mut Vec<u8>) {
    for value in values {
        put_signed(i64::from(*value), out);
    }
}

/// Reads `count` 32-bit integers.
pub(super) fn read_varints(reader: &mut ByteReader<'_>, count: usize) -> Result<Vec<i32>> {
    let too_wide = CodecError::Damaged("a number takes more than 32 bits");
    // None takes less than a byte.
    let mut values = Vec::with_capacity(count.min(reader.remaining()));
    for _ in 0..count {
        values.push(i32::try_from(reader.signed()?).map_err(|_| too_wide)?);
    }
    Ok(values)
}

/// The next `count` pieces of `N` bytes.
pub(super) fn read_pieces<'a, const N: usize>(
    reader: &mut ByteReader<'a>,
    count: usize,
) -> Result<&'a [[u8; N]]> {
    let len = count
        .checked_mul(N)
        .ok_or(CodecError::Damaged("too many values"))?;
    Ok(reader.take(len)?.as_chunks::<N>().0)
}

/// Reads `count` truth values, one byte each.
pub(super) fn read_truths(
    reader: &mut ByteReader<'_>,
    count: usize,
    strictness: Strictness,
) -> Result<Vec<bool>> {
    let truth = |byte: &u8| match byte {
        0 => Ok(false),
        1 => Ok(true),
        _ if strictness == Strictness::Foreign => Ok(true),
        _ => Err(CodecError::Damaged("a truth value is neither 0 nor 1")),
    };
    reader.take(count)?.iter().map(truth).collect()
}

/// Appends one string.
pub(super) fn put_string(text: &[u8], out: &mut Vec<u8>) {
    put_signed(text.len() as i64, out);
    out.extend_from_slice(text);
}

/// Reads one string. In files of others a length of -1 stands for none, which is read as an empty one.
pub(super) fn read_string<'a>(
    reader: &mut ByteReader<'a>,
    strictness: Strictness,
) -> Result<&'a [u8]> {
    let len = match reader.signed()? {
        -1 if strictness == Strictness::Foreign => 0,
        len => len,
    };
    let len = usize::try_from(len);
    let len = len.map_err(|_| CodecError::Damaged("a string's length is out of range"))?;
    reader.take(len)
}

/// Reads `count` strings.
pub(super) fn read_strings(
    reader: &mut ByteReader<'_>,
    count: usize,
    limits: DecodeLimits,
    strictness: Strictness,
) -> Result<(Vec<i32>, Vec<u8>)> {
    let mut ahead = *reader;
    let mut total = 0u64;
    for _ in 0..count {
        total += read_string(&mut ahead, strictness)?.len() as u64;
    }
    let mut data = Vec::with_capacity(check_total(total, limits)?);
    let mut offsets = Vec::with_capacity(count + 1);
    offsets.push(0);
    for _ in 0..count {
        data.extend_from_slice(read_string(reader, strictness)?);
        offsets.push(data.len() as i32);
    }
    Ok((offsets, data))
}

/// The total bytes of a page's strings, if the caller's limits allow it.
pub(super) fn check_total(bytes: u64, limits: DecodeLimits) -> Result<usize> {
    if bytes > i32::MAX as u64 {
        return Err(CodecError::Damaged("strings take 2 GiB or more"));
    }
    limits.check_bytes(bytes)
}
