//! Decodes bytes to values: which encoding reads which type.

use crate::alp::{AlpFloat, AlpPacking, read_alp, read_alp_part};
use crate::alp_rd::read_alp_rd;
use crate::bytes::ByteReader;
use crate::entries::numbers;
use crate::entries::strings;
use crate::error::{CodecError, Result};
use crate::fsst::read_fsst;
use crate::grid::{read_grid, read_grid_part};
use crate::integer::{PageInteger, read_delta, read_delta_part, read_for, read_for_part};
use crate::kinds::{Encoding, ValueType};
use crate::pco::{PcoNumber, read_pco};
use crate::plain::{PlainNumber, put_bits, read_bits, read_numbers, read_strings};
use crate::runs::{expand, read_lengths};
use crate::tsfile_forms;
use crate::values::{DecodeLimits, OwnedValues};
use std::ops::Range;

/// Reads `count` values.
pub(super) fn read(
    kind: ValueType,
    encoding: Encoding,
    count: usize,
    reader: &mut ByteReader<'_>,
    limits: DecodeLimits,
) -> Result<OwnedValues> {
    if matches!(
        encoding,
        Encoding::Rle | Encoding::Ts2Diff | Encoding::Gorilla | Encoding::Dictionary
    ) {
        return tsfile_forms::read(kind, encoding, count, reader, limits);
    }
    Ok(match kind {
        ValueType::Bool => {
            let bits = read_truths(encoding, count, reader)?;
            OwnedValues::Bool { bits, len: count }
        }
        ValueType::I32 => OwnedValues::I32(read_integers(kind, encoding, count, reader)?),
        ValueType::I64 if encoding == Encoding::Grid => OwnedValues::I64(read_grid(reader, count)?),
        ValueType::I64 => OwnedValues::I64(read_integers(kind, encoding, count, reader)?),
        ValueType::U64 => OwnedValues::U64(read_integers(kind, encoding, count, reader)?),
        ValueType::F32 => OwnedValues::F32(read_floats(kind, encoding, count, reader)?),
        ValueType::F64 => OwnedValues::F64(read_floats(kind, encoding, count, reader)?),
        ValueType::Bytes => {
            let (offsets, data) = match encoding {
                Encoding::Plain => read_strings(reader, count, limits)?,
                Encoding::Entries => strings::read_entries(reader, count, limits)?,
                Encoding::Runs => read_string_runs(reader, count, limits)?,
                Encoding::Fsst => read_fsst(reader, count, limits)?,
                _ => return Err(unsupported(encoding, kind)),
            };
            OwnedValues::Bytes { offsets, data }
        }
    })
}

/// Reads the values in `rows` out of `count` values; `None` if that requires reading all.
pub(super) fn read_part(
    kind: ValueType,
    encoding: Encoding,
    count: usize,
    reader: &mut ByteReader<'_>,
    rows: &Range<usize>,
) -> Result<Option<OwnedValues>> {
    let packing = match encoding {
        Encoding::AlpDelta => AlpPacking::Steps,
        _ => AlpPacking::Frame,
    };
    Ok(Some(match (kind, encoding) {
        (ValueType::I32, Encoding::For) => OwnedValues::I32(read_for_part(reader, count, rows)?),
        (ValueType::I64, Encoding::For) => OwnedValues::I64(read_for_part(reader, count, rows)?),
        (ValueType::U64, Encoding::For) => OwnedValues::U64(read_for_part(reader, count, rows)?),
        (ValueType::I32, Encoding::Delta) => {
            OwnedValues::I32(read_delta_part(reader, count, rows)?)
        }
        (ValueType::I64, Encoding::Delta) => {
            OwnedValues::I64(read_delta_part(reader, count, rows)?)
        }
        (ValueType::U64, Encoding::Delta) => {
            OwnedValues::U64(read_delta_part(reader, count, rows)?)
        }
        (ValueType::I64, Encoding::Grid) => OwnedValues::I64(read_grid_part(reader, count, rows)?),
        (ValueType::F32, Encoding::Alp | Encoding::AlpDelta) => {
            OwnedValues::F32(read_alp_part(reader, packing, count, rows)?)
        }
        (ValueType::F64, Encoding::Alp | Encoding::AlpDelta) => {
            OwnedValues::F64(read_alp_part(reader, packing, count, rows)?)
        }
        _ => return Ok(None),
    }))
}

fn unsupported(encoding: Encoding, kind: ValueType) -> CodecError {
    CodecError::Unsupported(encoding.name(), kind.name())
}

fn read_truths(encoding: Encoding, count: usize, reader: &mut ByteReader<'_>) -> Result<Vec<u8>> {
    match encoding {
        Encoding::Plain => read_bits(reader, count),
        Encoding::Runs => {
            let lengths = read_lengths(reader, count)?;
            let bits = read_bits(reader, lengths.len())?;
            Ok(spread_bits(&bits, &lengths, count))
        }
        Encoding::Entries => {
            let numbers = numbers::read_entries::<i32>(reader, count)?;
            if numbers.iter().any(|number| number & !1 != 0) {
                return Err(CodecError::Damaged("a truth value is neither 0 nor 1"));
            }
            let truths: Vec<bool> = numbers.iter().map(|number| *number == 1).collect();
            let mut bits = Vec::with_capacity(count.div_ceil(8));
            put_bits(&truths, &mut bits);
            Ok(bits)
        }
        _ => Err(unsupported(encoding, ValueType::Bool)),
    }
}

fn read_integers<T: PageInteger + PlainNumber + PcoNumber>(
    kind: ValueType,
    encoding: Encoding,
    count: usize,
    reader: &mut ByteReader<'_>,
) -> Result<Vec<T>> {
    match encoding {
        Encoding::Plain => read_numbers(reader, count),
        Encoding::For => read_for(reader, count),
        Encoding::Delta => read_delta(reader, count),
        Encoding::Runs => {
            let lengths = read_lengths(reader, count)?;
            let values = read_for(reader, lengths.len())?;
            Ok(expand(&values, &lengths, count))
        }
        Encoding::Entries => numbers::read_entries(reader, count),
        Encoding::Pco => read_pco(reader.take(reader.remaining())?, count),
        _ => Err(unsupported(encoding, kind)),
    }
}

fn read_floats<T: AlpFloat + PcoNumber>(
    kind: ValueType,
    encoding: Encoding,
    count: usize,
    reader: &mut ByteReader<'_>,
) -> Result<Vec<T>> {
    match encoding {
        Encoding::Plain => read_numbers(reader, count),
        Encoding::Alp => read_alp(reader, AlpPacking::Frame, count),
        Encoding::AlpDelta => read_alp(reader, AlpPacking::Steps, count),
        Encoding::AlpRd => read_alp_rd(reader, count),
        Encoding::Runs => {
            let lengths = read_lengths(reader, count)?;
            let values = read_numbers(reader, lengths.len())?;
            Ok(expand(&values, &lengths, count))
        }
        Encoding::Entries => numbers::read_entries(reader, count),
        Encoding::Pco => read_pco(reader.take(reader.remaining())?, count),
        _ => Err(unsupported(encoding, kind)),
    }
}

fn read_string_runs(
    reader: &mut ByteReader<'_>,
    count: usize,
    limits: DecodeLimits,
) -> Result<(Vec<i32>, Vec<u8>)> {
    let lengths = read_lengths(reader, count)?;
    let (run_offsets, run_data) = read_strings(reader, lengths.len(), limits)?;
    let widths = run_offsets
        .windows(2)
        .map(|pair| (pair[1] - pair[0]) as u64);
    let bytes: u64 = widths
        .zip(&lengths)
        .map(|(width, rows)| width * u64::from(*rows))
        .sum();
    if bytes > i32::MAX as u64 {
        return Err(CodecError::Damaged("strings take 2 GiB or more"));
    }
    let mut data = Vec::with_capacity(limits.check_bytes(bytes)?);
    let mut offsets = Vec::with_capacity(count + 1);
    offsets.push(0);
    for (pair, rows) in run_offsets.windows(2).zip(lengths) {
        let value = &run_data[pair[0] as usize..pair[1] as usize];
        for _ in 0..rows {
            data.extend_from_slice(value);
            offsets.push(data.len() as i32);
        }
    }
    Ok((offsets, data))
}

/// Repeats each bit by the length of its run.
fn spread_bits(bits: &[u8], lengths: &[u32], count: usize) -> Vec<u8> {
    let mut out = vec![0; count.div_ceil(8)];
    let mut row = 0;
    for (run, length) in lengths.iter().enumerate() {
        let end = row + *length as usize;
        if bits[run / 8] >> (run % 8) & 1 == 1 {
            while row < end && row % 8 != 0 {
                out[row / 8] |= 1 << (row % 8);
                row += 1;
            }
            let bytes = (end - row) / 8;
            out[row / 8..row / 8 + bytes].fill(0xff);
            row += bytes * 8;
            while row < end {
                out[row / 8] |= 1 << (row % 8);
                row += 1;
            }
        }
        row = end;
    }
    out
}
