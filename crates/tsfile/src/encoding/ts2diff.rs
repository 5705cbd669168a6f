//! `TS_2DIFF`: blocks of differences to the previous value, minus the smallest of them, bit packed.
//!
//! A block consists of the number of differences, their width (four bytes each), the smallest
//! difference, the first value, and the packed differences, padded to a whole byte.

use super::bits::{BitReader, BitWriter};
use super::word::EncodedInteger;
use crate::bytes::{Cursor, put_i32};
use crate::error::{PartError, PartResult};

/// Differences in a block when writing.
const BLOCK_DELTAS: usize = 128;

/// Decodes values up to the end of `bytes`, at most `count_max` in total.
pub(super) fn decode<W: EncodedInteger>(bytes: &[u8], count_max: usize) -> PartResult<Vec<W>> {
    let mut cursor = Cursor::new(bytes);
    let mut values = Vec::new();
    while !cursor.is_empty() {
        let deltas = usize::try_from(cursor.i32()?).map_err(|_| WIDTH)?;
        let width = u32::try_from(cursor.i32()?).map_err(|_| WIDTH)?;
        let min = W::read(&mut cursor)?.to_bits();
        let first = W::read(&mut cursor)?;
        if width > W::BITS {
            return Err(WIDTH);
        }
        if deltas >= count_max.saturating_sub(values.len()) {
            return Err(PartError::Wrong("a block holds more values than its page"));
        }
        let bits = deltas as u64 * u64::from(width);
        let packed =
            cursor.take(usize::try_from(bits.div_ceil(8)).map_err(|_| PartError::Short)?)?;
        let mut packed = BitReader::new(packed);
        values.reserve(deltas + 1);
        values.push(first);
        let mut value = first.to_bits();
        for _ in 0..deltas {
            value = value.wrapping_add(min).wrapping_add(packed.bits(width)?);
            values.push(W::from_bits(value));
        }
    }
    Ok(values)
}

const WIDTH: PartError = PartError::Wrong("a block's count or width is impossible");

/// Differences that do not fit wrap around, as in the format's own libraries.
pub(super) fn encode<W: EncodedInteger>(values: &[W], out: &mut Vec<u8>) {
    let mut deltas = Vec::with_capacity(BLOCK_DELTAS);
    for block in values.chunks(BLOCK_DELTAS + 1) {
        deltas.clear();
        let differences = block
            .windows(2)
            .map(|pair| W::from_bits(pair[1].to_bits().wrapping_sub(pair[0].to_bits())));
        deltas.extend(differences);
        let min = deltas.iter().copied().min().unwrap_or_default();
        let offset = |delta: W| W::from_bits(delta.to_bits().wrapping_sub(min.to_bits())).to_bits();
        let widest = deltas.iter().map(|delta| offset(*delta)).max().unwrap_or(0);
        let width = u64::BITS - widest.leading_zeros();
        put_i32(deltas.len() as i32, out);
        put_i32(width as i32, out);
        min.put(out);
        block[0].put(out);
        let mut writer = BitWriter::new(out);
        for delta in &deltas {
            writer.put(offset(*delta), width);
        }
    }
}
