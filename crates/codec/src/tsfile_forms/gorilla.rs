//! `GORILLA` of `TsFile` (its second version): the XOR of each value and the previous one (Pelkonen
//! et al.: Gorilla, VLDB 2015).
//!
//! ```text
//! the first value as it is, then for each value, and for the end mark after the last:
//! 0       the same value
//! 10      the bits where the last `11` had them
//! 11      leading zeros (5 bits; 6 for 64-bit values), bits - 1 (5 or 6 bits), the bits
//! ```
//!
//! Bits are written highest first; the page ends with a partial byte, or otherwise with a zero
//! byte. Because the reader of Apache `TsFile` stops at the end mark, a page that contains it among
//! its values cannot be written this way.

use super::Strictness;
use super::bits::{BitReader, BitWriter};
use super::word::TsFileInteger;
use crate::bytes::ByteReader;
use crate::error::{CodecError, Result};

/// Appends `values`, none of which may be `end`.
pub(super) fn put_gorilla<W: TsFileInteger>(values: &[W], end: W, out: &mut Vec<u8>) -> Result<()> {
    let Some(first) = values.first() else {
        return Ok(());
    };
    if values.contains(&end) {
        return Err(CodecError::Unsupported(
            "GORILLA",
            "the value that is its end mark",
        ));
    }
    let field = field_bits::<W>();
    let mut writer = BitWriter::new(out);
    writer.put(first.wide(), W::BITS);
    let (mut leading, mut trailing) = (u32::MAX, 0);
    let mut last = first.wide();
    for value in values[1..].iter().chain([&end]) {
        let xor = last ^ value.wide();
        last = value.wide();
        if xor == 0 {
            writer.put(0, 1);
            continue;
        }
        let (left, right) = (xor.leading_zeros() - (64 - W::BITS), xor.trailing_zeros());
        if left >= leading && right >= trailing {
            writer.put(0b10, 2);
        } else {
            (leading, trailing) = (left, right);
            writer.put(0b11, 2);
            writer.put(u64::from(leading), field);
            writer.put(u64::from(W::BITS - leading - trailing - 1), field);
        }
        writer.put(xor >> trailing, W::BITS - leading - trailing);
    }
    if writer.finish() == 0 {
        out.push(0);
    }
    Ok(())
}

/// Bits that a number of bits takes.
pub(super) fn field_bits<W: TsFileInteger>() -> u32 {
    W::BITS.ilog2()
}

/// Reads `count` values and the end mark. Files of others may hold the end mark among their values, so
/// that they are read by count alone.
pub(super) fn read_gorilla<W: TsFileInteger>(
    reader: &mut ByteReader<'_>,
    end: W,
    count: usize,
    strictness: Strictness,
) -> Result<Vec<W>> {
    // None takes less than a bit.
    let mut values = Vec::with_capacity(count.min(reader.remaining().saturating_mul(8)));
    if count == 0 {
        return Ok(values);
    }
    let bytes = reader.take(reader.remaining())?;
    let mut bits = BitReader::new(bytes);
    let mut last = bits.take(W::BITS)?;
    let mut window = None;
    values.push(W::narrow(last));
    for _ in 1..count {
        last ^= read_xor::<W>(&mut bits, &mut window)?;
        values.push(W::narrow(last));
    }
    if strictness == Strictness::Foreign {
        return Ok(values);
    }
    last ^= read_xor::<W>(&mut bits, &mut window)?;
    if last != end.wide() || bits.position() / 8 + 1 != bytes.len() {
        return Err(CodecError::Damaged("its end mark is not at its end"));
    }
    Ok(values)
}

/// Reads the next XOR; `window` is the number of its bits and of the zeros after them.
fn read_xor<W: TsFileInteger>(
    bits: &mut BitReader<'_>,
    window: &mut Option<(u32, u32)>,
) -> Result<u64> {
    const OUTSIDE: CodecError = CodecError::Damaged("bits are outside their value");
    if bits.take(1)? == 0 {
        return Ok(0);
    }
    if bits.take(1)? == 1 {
        let leading = bits.take(field_bits::<W>())? as u32;
        let width = bits.take(field_bits::<W>())? as u32 + 1;
        let trailing = W::BITS.checked_sub(leading + width).ok_or(OUTSIDE)?;
        *window = Some((width, trailing));
    }
    let (width, trailing) = window.ok_or(OUTSIDE)?;
    Ok(bits.take(width)? << trailing)
}
