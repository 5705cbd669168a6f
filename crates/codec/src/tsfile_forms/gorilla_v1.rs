//! `GORILLA_V1` of `TsFile`, which only files before version 3 hold: the XOR of each value and the one
//! before.
//!
//! ```text
//! the first value, lowest byte first, then for each value:
//! 0       the same value
//! 10      the bits between the first and the last set bit of the value before
//! 11      leading zeros (5 bits; 6 for 64-bit values), bits (6 or 7 bits), the bits
//! ```

use super::bits::BitReader;
use super::gorilla::field_bits;
use super::word::TsFileInteger;
use crate::bytes::ByteReader;
use crate::error::{CodecError, Result};

/// Reads `count` values.
pub(super) fn read_gorilla_v1<W: TsFileInteger>(
    reader: &mut ByteReader<'_>,
    count: usize,
) -> Result<Vec<W>> {
    // None takes less than a bit.
    let mut values = Vec::with_capacity(count.min(reader.remaining().saturating_mul(8)));
    if count == 0 {
        return Ok(values);
    }
    let first = reader.take(W::BITS as usize / 8)?.iter().rev();
    let mut value = first.fold(0, |value, byte| value << 8 | u64::from(*byte));
    let mut bits = BitReader::new(reader.take(reader.remaining())?);
    values.push(W::narrow(value));
    while values.len() < count {
        if bits.take(1)? == 1 {
            let (width, trailing) = if bits.take(1)? == 1 {
                let leading = bits.take(field_bits::<W>())? as u32;
                let width = bits.take(field_bits::<W>() + 1)? as u32;
                let trailing = W::BITS.checked_sub(leading + width);
                let outside = CodecError::Damaged("bits lie outside their value");
                (width, trailing.ok_or(outside)?)
            } else if value == 0 {
                (0, 0)
            } else {
                let leading = value.leading_zeros() - (u64::BITS - W::BITS);
                (
                    W::BITS - leading - value.trailing_zeros(),
                    value.trailing_zeros(),
                )
            };
            if width > 0 {
                value ^= bits.take(width)? << trailing;
            }
        }
        values.push(W::narrow(value));
    }
    Ok(values)
}
