//! `GORILLA` and the older `GORILLA_V1`: each value as its XOR with the one before.
//!
//! A page of GORILLA ends with a value that stands for the end. A page that holds this value itself
//! can be read by count, as it is here, but not by every reader; so such pages are not written.

use super::bits::{BitReader, BitWriter};
use super::word::Word;
use crate::bytes::Cursor;
use crate::error::{Part, PartResult};

/// The float that ends a page: the plain not-a-number.
pub(super) const END_32: u32 = 0x7fc0_0000;
pub(super) const END_64: u64 = 0x7ff8_0000_0000_0000;

const WINDOW: Part = Part::Wrong("the bits of a difference are more than its type has");

pub(super) fn decode<W: Word>(bytes: &[u8], count: usize) -> PartResult<Vec<W>> {
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

/// The form of files before version 3: the first value is little-endian, and a difference that
/// reuses a window reuses that of the value before, not of the difference before.
pub(super) fn decode_v1<W: Word>(bytes: &[u8], count: usize) -> PartResult<Vec<W>> {
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

pub(super) fn encode_floats32(values: &[f32], out: &mut Vec<u8>) {
    let bits = values.iter().map(|value| value.to_bits() as i32);
    encode(bits, END_32 as i32, out);
}

pub(super) fn encode_floats64(values: &[f64], out: &mut Vec<u8>) {
    let bits = values.iter().map(|value| value.to_bits() as i64);
    encode(bits, END_64 as i64, out);
}

fn encode<W: Word>(values: impl Iterator<Item = W>, end: W, out: &mut Vec<u8>) {
    let mut writer = BitWriter::new(out);
    let mut before: Option<u64> = None;
    let mut window: Option<(u32, u32)> = None;
    for value in values.chain(std::iter::once(end)) {
        let value = value.to_bits();
        let Some(last) = before.replace(value) else {
            writer.put(value, W::BITS);
            continue;
        };
        let xor = value ^ last;
        if xor == 0 {
            writer.put(0, 1);
            continue;
        }
        let leading = xor.leading_zeros() - (u64::BITS - W::BITS);
        let trailing = xor.trailing_zeros();
        match window {
            Some((l, t)) if leading >= l && trailing >= t => {
                writer.put(0b10, 2);
                writer.put(xor >> t, W::BITS - l - t);
            }
            _ => {
                let meaningful = W::BITS - leading - trailing;
                writer.put(0b11, 2);
                writer.put(u64::from(leading), W::LEADING_BITS);
                writer.put(u64::from(meaningful - 1), W::LEADING_BITS);
                writer.put(xor >> trailing, meaningful);
                window = Some((leading, trailing));
            }
        }
    }
    // Other readers want a byte after the end.
    out.push(0);
}
