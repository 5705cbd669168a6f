//! `RLE` of `TsFile`: runs of at least eight equal integers, and groups of eight packed ones.
//!
//! ```text
//! varint  bytes that follow
//! u8      width
//! ...     runs:   varint (times << 1), value in the fewest bytes that hold `width` bits (32-bit
//!                 integers lowest byte first, 64-bit ones highest byte first)
//!         groups: u8 (number of groups << 1 | 1), u8 values in the last group, groups of 8 · width
//!                 bits, filled up with zeros
//! ```
//!
//! The writer of Apache `TsFile` works value by value. Looking for a run at every position where a
//! group would begin has the same result.

use super::bits::{BitReader, BitWriter};
use super::word::TsFileInteger;
use crate::bytes::{ByteReader, put_varint};
use crate::error::{CodecError, Result};

/// Values of a group, and equal values that make a run.
const GROUP: usize = 8;
/// Groups behind one header.
const GROUPS_MAX: usize = 63;
/// Values of a run.
const RUN_MAX: usize = 0x7fff;

/// Appends `values`.
pub(super) fn put_rle<W: TsFileInteger>(values: &[W], out: &mut Vec<u8>) {
    if values.is_empty() {
        return;
    }
    let widest = values.iter().fold(0, |bits, value| bits | value.wide());
    let width = (64 - widest.leading_zeros()).max(1);
    let mut body = vec![width as u8];
    let (mut from, mut at) = (0, 0);
    while let Some(value) = values.get(at) {
        let rest = &values[at..values.len().min(at + RUN_MAX)];
        let run = rest.iter().take_while(|other| *other == value).count();
        if run >= GROUP {
            put_groups(&values[from..at], width, &mut body);
            put_varint((run as u64) << 1, &mut body);
            value.put_short(width.div_ceil(8) as usize, &mut body);
            at += run;
            from = at;
            continue;
        }
        at = values.len().min(at + GROUP);
        if at - from == GROUPS_MAX * GROUP {
            put_groups(&values[from..at], width, &mut body);
            from = at;
        }
    }
    put_groups(&values[from..], width, &mut body);
    put_varint(body.len() as u64, out);
    out.extend_from_slice(&body);
}

fn put_groups<W: TsFileInteger>(values: &[W], width: u32, out: &mut Vec<u8>) {
    if values.is_empty() {
        return;
    }
    let groups = values.len().div_ceil(GROUP);
    out.push((groups << 1 | 1) as u8);
    out.push((values.len() - (groups - 1) * GROUP) as u8);
    let end = out.len() + groups * width as usize;
    let mut writer = BitWriter::new(out);
    for value in values {
        writer.put(value.wide(), width);
    }
    writer.finish();
    out.resize(end, 0);
}

/// Reads `count` values.
pub(super) fn read_rle<W: TsFileInteger>(
    reader: &mut ByteReader<'_>,
    count: usize,
) -> Result<Vec<W>> {
    let mut values = Vec::with_capacity(count);
    while values.len() < count {
        let len = reader.count(reader.remaining())?;
        let mut body = ByteReader::new(reader.take(len)?);
        let width = u32::from(body.byte()?);
        if width > W::BITS {
            return Err(CodecError::Damaged("a bit width is larger than the values"));
        }
        while body.remaining() > 0 {
            read_part(&mut body, width, count, &mut values)?;
        }
    }
    Ok(values)
}

fn read_part<W: TsFileInteger>(
    body: &mut ByteReader<'_>,
    width: u32,
    count: usize,
    values: &mut Vec<W>,
) -> Result<()> {
    const TOO_MANY: CodecError = CodecError::Damaged("it holds more values than it should");
    let head = body.varint()?;
    let room = count - values.len();
    let number = usize::try_from(head >> 1).map_err(|_| TOO_MANY)?;
    if head & 1 == 0 {
        let value = W::read_short(body.take(width.div_ceil(8) as usize)?);
        if number > room {
            return Err(TOO_MANY);
        }
        values.resize(values.len() + number, value);
        return Ok(());
    }
    let last = usize::from(body.byte()?);
    if number == 0 || last > GROUP {
        return Err(CodecError::Damaged("a group has a wrong number of values"));
    }
    let held = (number - 1)
        .checked_mul(GROUP)
        .and_then(|full| full.checked_add(last));
    let held = held.filter(|held| *held <= room).ok_or(TOO_MANY)?;
    let mut bits = BitReader::new(body.take(number * width as usize)?);
    for _ in 0..held {
        values.push(W::narrow(bits.take(width)?));
    }
    Ok(())
}
