//! `TS_2DIFF` of `TsFile`: differences of neighbours in blocks, minus the smallest of their block.
//!
//! ```text
//! i32 BE  differences in the block, at most 128
//! i32 BE  width
//! BE      smallest difference (the largest integer of the type, where there is none)
//! BE      first value
//! ...     differences - smallest, `width` bits each, highest first
//! ```
//!
//! A block has one more value than differences. All arithmetic wraps.

use super::bits::{BitReader, BitWriter};
use super::word::TsFileInteger;
use crate::bytes::ByteReader;
use crate::error::{CodecError, Result};

/// Values of a block: the first, and 128 differences.
const BLOCK: usize = 129;

/// Appends `values`.
pub(super) fn put_ts2diff<W: TsFileInteger>(values: &[W], out: &mut Vec<u8>) {
    for block in values.chunks(BLOCK) {
        let steps = || block.windows(2).map(|pair| pair[1].minus(pair[0]));
        let smallest = steps().fold(
            W::MAX,
            |least, step| if step < least { step } else { least },
        );
        let widest = steps().fold(0, |bits, step| bits | step.minus(smallest).wide());
        let width = 64 - widest.leading_zeros();
        (block.len() as i32 - 1).put(out);
        (width as i32).put(out);
        smallest.put(out);
        block[0].put(out);
        let mut writer = BitWriter::new(out);
        steps().for_each(|step| writer.put(step.minus(smallest).wide(), width));
        writer.finish();
    }
}

/// Reads `count` values.
pub(super) fn read_ts2diff<W: TsFileInteger>(
    reader: &mut ByteReader<'_>,
    count: usize,
) -> Result<Vec<W>> {
    let mut values = Vec::with_capacity(count);
    while values.len() < count {
        read_block(reader, count, &mut values)?;
    }
    Ok(values)
}

/// Reads values to the end, at most `count_max`.
pub(super) fn read_ts2diff_to_end<W: TsFileInteger>(
    reader: &mut ByteReader<'_>,
    count_max: usize,
) -> Result<Vec<W>> {
    let mut values = Vec::new();
    while reader.remaining() > 0 {
        read_block(reader, count_max, &mut values)?;
    }
    Ok(values)
}

/// Reads a block, after which there are at most `count_max` values.
fn read_block<W: TsFileInteger>(
    reader: &mut ByteReader<'_>,
    count_max: usize,
    values: &mut Vec<W>,
) -> Result<()> {
    let mut head = BitReader::new(reader.take(8 + 2 * W::BITS as usize / 8)?);
    let steps = head.take(32)? as usize;
    let width = head.take(32)? as u32;
    let smallest = W::narrow(head.take(W::BITS)?);
    let first = W::narrow(head.take(W::BITS)?);
    if width > W::BITS {
        return Err(CodecError::Damaged("a bit width is larger than the values"));
    }
    if steps >= count_max.saturating_sub(values.len()) {
        return Err(CodecError::Damaged("it holds more values than it should"));
    }
    let mut bits = BitReader::new(reader.take((steps * width as usize).div_ceil(8))?);
    let mut last = first;
    values.reserve(steps + 1);
    values.push(first);
    for _ in 0..steps {
        last = last.plus(smallest).plus(W::narrow(bits.take(width)?));
        values.push(last);
    }
    Ok(())
}
