//! `RLE`: runs of one value, and groups of eight bit-packed values; the codes of `DICTIONARY`.
//!
//! A part consists of its length, the width of its values, and runs. The lowest bit of a run's
//! header says whether it has groups of eight, with the number of values in the last of them, or
//! one repeated value.

use super::bits::BitReader;
use super::word::EncodedInteger;
use crate::bytes::Cursor;
use crate::error::{PartError, PartResult};

const COUNT: PartError = PartError::Wrong("a run holds more values than its page");

/// Decodes exactly `count` values from the front of `cursor`.
pub(super) fn decode<W: EncodedInteger>(
    cursor: &mut Cursor<'_>,
    count: usize,
) -> PartResult<Vec<W>> {
    let mut values = Vec::new();
    while values.len() < count {
        let len = cursor.uvar()? as usize;
        let mut part = Cursor::new(cursor.take(len)?);
        let width = u32::from(part.byte()?);
        if width > W::BITS {
            return Err(PartError::Wrong("a value is wider than its type"));
        }
        while !part.is_empty() {
            let header = part.uvar()?;
            let groups = (header >> 1) as usize;
            let left = count - values.len();
            if header & 1 == 0 {
                if groups > left {
                    return Err(COUNT);
                }
                let bytes = part.take(width.div_ceil(8) as usize)?;
                let value = bytes
                    .iter()
                    .rev()
                    .fold(0, |value, byte| value << 8 | u64::from(*byte));
                values.resize(values.len() + groups, W::from_bits(value));
            } else {
                let in_last = usize::from(part.byte()?);
                let packed = groups.checked_mul(width as usize).ok_or(PartError::Short)?;
                let mut packed = BitReader::new(part.take(packed)?);
                let Some(full) = groups.checked_sub(1) else {
                    return Err(PartError::Wrong("a run has no values"));
                };
                let in_run = full
                    .checked_mul(8)
                    .and_then(|full| full.checked_add(in_last));
                let in_run = in_run
                    .filter(|run| *run <= left && in_last <= 8)
                    .ok_or(COUNT)?;
                values.reserve(in_run);
                for _ in 0..in_run {
                    values.push(W::from_bits(packed.bits(width)?));
                }
            }
        }
    }
    Ok(values)
}
