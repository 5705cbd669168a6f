//! `GORILLA` and the older `GORILLA_V1`: each value as its XOR with the previous one.
//!
//! A page of GORILLA ends with a value that marks the end (the smallest integer, or a NaN). A page
//! may itself contain that value, so it is decoded by count rather than up to the mark.

use super::bits::BitReader;
use super::word::EncodedInteger;
use crate::bytes::Cursor;
use crate::error::{PartError, PartResult};

const WINDOW: PartError = PartError::Wrong("the bits of a difference are more than its type has");

pub(super) fn decode<W: EncodedInteger>(bytes: &[u8], count: usize) -> PartResult<Vec<W>> {
    let mut reader = BitReader::new(bytes);
    let mut values = Vec::with_capacity(count.min(bytes.len() * 8));
    if count == 0 {
        return Ok(values);
    }
    let mut value = reader.bits(W::BITS)?;
    values.push(W::from_bits(value));
    // Meaningful bits of a difference, and the zeros after them.
    let mut window: Option<(u32, u32)> = None;
    while values.len() < count {
        if reader.bit()? {
            if reader.bit()? {
                let leading = reader.bits(W::LEADING_BITS)? as u32;
                let meaningful = reader.bits(W::LEADING_BITS)? as u32 + 1;
                let trailing = W::BITS.checked_sub(leading + meaningful).ok_or(WINDOW)?;
                window = Some((meaningful, trailing));
            }
            let (meaningful, trailing) = window.ok_or(WINDOW)?;
            value ^= reader.bits(meaningful)? << trailing;
        }
        values.push(W::from_bits(value));
    }
    Ok(values)
}

/// The format of files before version 3: the first value is little-endian, and a difference that
/// reuses a window reuses that of the previous value rather than the previous difference.
pub(super) fn decode_v1<W: EncodedInteger>(bytes: &[u8], count: usize) -> PartResult<Vec<W>> {
    let mut values = Vec::with_capacity(count.min(bytes.len() * 8));
    if count == 0 {
        return Ok(values);
    }
    let width = W::BITS / 8;
    let mut cursor = Cursor::new(bytes);
    let first = cursor.take(width as usize)?;
    let mut value = first
        .iter()
        .rev()
        .fold(0, |value, byte| value << 8 | u64::from(*byte));
    let mut reader = BitReader::new(cursor.rest());
    values.push(W::from_bits(value));
    while values.len() < count {
        if reader.bit()? {
            let (meaningful, trailing) = if reader.bit()? {
                let leading = reader.bits(W::LEADING_BITS)? as u32;
                let meaningful = reader.bits(W::LEADING_BITS + 1)? as u32;
                let trailing = W::BITS.checked_sub(leading + meaningful).ok_or(WINDOW)?;
                (meaningful, trailing)
            } else if value == 0 {
                (0, 0)
            } else {
                let leading = value.leading_zeros() - (u64::BITS - W::BITS);
                let trailing = value.trailing_zeros();
                (W::BITS - leading - trailing, trailing)
            };
            if meaningful > 0 {
                value ^= reader.bits(meaningful)? << trailing;
            }
        }
        values.push(W::from_bits(value));
    }
    Ok(values)
}
