//! Which encoding writes and reads which type: the only place, besides its own file, that a new
//! encoding changes.

use crate::alp::{AlpFloat, AlpPacking, put_alp, read_alp, read_alp_part};
use crate::alp_rd::{put_alp_rd, read_alp_rd};
use crate::bytes::ByteReader;
use crate::entries::{numbers, strings};
use crate::error::{CodecError, Result};
use crate::fsst::{put_fsst, read_fsst};
use crate::grid::{put_grid, read_grid, read_grid_part};
use crate::integer::{
    PageInteger, put_delta, put_for, read_delta, read_delta_part, read_for, read_for_part,
};
use crate::kinds::{Encoding, ValueType};
use crate::pco::{PcoNumber, put_pco, read_pco};
use crate::plain::{PlainNumber, put_bits, put_strings, read_bits, read_numbers, read_strings};
use crate::runs::{put_runs, read_lengths, read_runs, read_string_runs, spread_bits};
use crate::tsfile_forms;
use crate::values::{DecodeLimits, OwnedValues, PageValues};
use std::ops::Range;

/// Bytes that integers may take on grids, however few they are; beyond it, no more than in memory.
const GRID_BYTES_MIN: usize = 64;

/// Appends `values`.
///
/// # Errors
/// If the encoding cannot hold them; `out` may then contain a part.
pub(super) fn put(values: PageValues<'_>, encoding: Encoding, out: &mut Vec<u8>) -> Result<()> {
    match (encoding, values) {
        (Encoding::Plain, PageValues::Bool(values)) => put_bits(values, out),
        (Encoding::Plain, PageValues::I32(values)) => PlainNumber::put(values, out),
        (Encoding::Plain, PageValues::I64(values)) => PlainNumber::put(values, out),
        (Encoding::Plain, PageValues::U64(values)) => PlainNumber::put(values, out),
        (Encoding::Plain, PageValues::F32(values)) => PlainNumber::put(values, out),
        (Encoding::Plain, PageValues::F64(values)) => PlainNumber::put(values, out),
        (Encoding::Plain, PageValues::Bytes { offsets, data }) => put_strings(offsets, data, out),
        (Encoding::For, PageValues::I32(values)) => put_for(values, out),
        (Encoding::For, PageValues::I64(values)) => put_for(values, out),
        (Encoding::For, PageValues::U64(values)) => put_for(values, out),
        (Encoding::Delta, PageValues::I32(values)) => put_delta(values, out),
        (Encoding::Delta, PageValues::I64(values)) => put_delta(values, out),
        (Encoding::Delta, PageValues::U64(values)) => put_delta(values, out),
        (Encoding::Grid, PageValues::I64(values)) => {
            if !put_grid(values, size_of_val(values).max(GRID_BYTES_MIN), out) {
                return Err(CodecError::Unsupported(
                    Encoding::Grid.name(),
                    "integers far from each other",
                ));
            }
        }
        (Encoding::Alp, PageValues::F32(values)) => put_alp(values, AlpPacking::Frame, out),
        (Encoding::AlpDelta, PageValues::F32(values)) => put_alp(values, AlpPacking::Steps, out),
        (Encoding::Alp, PageValues::F64(values)) => put_alp(values, AlpPacking::Frame, out),
        (Encoding::AlpDelta, PageValues::F64(values)) => put_alp(values, AlpPacking::Steps, out),
        (Encoding::AlpRd, PageValues::F32(values)) => put_alp_rd(values, out),
        (Encoding::AlpRd, PageValues::F64(values)) => put_alp_rd(values, out),
        (Encoding::Pco, PageValues::I32(values)) => put_pco(values, out)?,
        (Encoding::Pco, PageValues::I64(values)) => put_pco(values, out)?,
        (Encoding::Pco, PageValues::U64(values)) => put_pco(values, out)?,
        (Encoding::Pco, PageValues::F32(values)) => put_pco(values, out)?,
        (Encoding::Pco, PageValues::F64(values)) => put_pco(values, out)?,
        (Encoding::Fsst, PageValues::Bytes { offsets, data }) => put_fsst(offsets, data, out),
        (Encoding::Entries, values) => put_entries(values, out),
        (Encoding::Runs, values) => put_runs(values, out),
        (Encoding::Rle | Encoding::Ts2Diff | Encoding::Gorilla | Encoding::Dictionary, values) => {
            tsfile_forms::encode(values, encoding, out)?;
        }
        (encoding, values) => {
            return Err(CodecError::Unsupported(
                encoding.name(),
                values.value_type().name(),
            ));
        }
    }
    Ok(())
}

/// Appends numbers as ENTRIES whose indices are in planes; returns whether they are numbers.
pub(super) fn put_in_planes(values: PageValues<'_>, out: &mut Vec<u8>) -> bool {
    match values {
        PageValues::I32(values) => numbers::put_entries_in_planes(values, out),
        PageValues::I64(values) => numbers::put_entries_in_planes(values, out),
        PageValues::U64(values) => numbers::put_entries_in_planes(values, out),
        PageValues::F32(values) => numbers::put_entries_in_planes(values, out),
        PageValues::F64(values) => numbers::put_entries_in_planes(values, out),
        PageValues::Bool(_) | PageValues::Bytes { .. } => return false,
    }
    true
}

fn put_entries(values: PageValues<'_>, out: &mut Vec<u8>) {
    match values {
        PageValues::Bool(values) => {
            let numbers: Vec<i32> = values.iter().map(|value| i32::from(*value)).collect();
            numbers::put_entries(&numbers, out);
        }
        PageValues::I32(values) => numbers::put_entries(values, out),
        PageValues::I64(values) => numbers::put_entries(values, out),
        PageValues::U64(values) => numbers::put_entries(values, out),
        PageValues::F32(values) => numbers::put_entries(values, out),
        PageValues::F64(values) => numbers::put_entries(values, out),
        PageValues::Bytes { offsets, data } => strings::put_entries(offsets, data, out),
    }
}

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
        Encoding::Runs => read_runs(reader, count, read_for),
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
        Encoding::Runs => read_runs(reader, count, read_numbers),
        Encoding::Entries => numbers::read_entries(reader, count),
        Encoding::Pco => read_pco(reader.take(reader.remaining())?, count),
        _ => Err(unsupported(encoding, kind)),
    }
}
