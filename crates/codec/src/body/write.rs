//! Encodes values to bytes: which encoding writes which type.

use crate::alp::{AlpPacking, put_alp};
use crate::alp_rd::put_alp_rd;
use crate::entries::{numbers, strings};
use crate::error::{CodecError, Result};
use crate::fsst::put_fsst;
use crate::grid::put_grid;
use crate::integer::{put_delta, put_for};
use crate::kinds::Encoding;
use crate::pco::put_pco;
use crate::plain::{PlainNumber, put_bits, put_strings};
use crate::runs::{cut, put_lengths};
use crate::tsfile_forms;
use crate::values::PageValues;

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

fn put_runs(values: PageValues<'_>, out: &mut Vec<u8>) {
    fn pick<T: Copy>(values: &[T], same: impl Fn(&T, &T) -> bool, out: &mut Vec<u8>) -> Vec<T> {
        let (starts, lengths) = cut(values.len(), |a, b| same(&values[a], &values[b]));
        put_lengths(&lengths, out);
        starts.into_iter().map(|start| values[start]).collect()
    }
    match values {
        PageValues::Bool(values) => {
            let picked = pick(values, |a, b| a == b, out);
            put_bits(&picked, out);
        }
        PageValues::I32(values) => {
            let picked = pick(values, |a, b| a == b, out);
            put_for(&picked, out);
        }
        PageValues::I64(values) => {
            let picked = pick(values, |a, b| a == b, out);
            put_for(&picked, out);
        }
        PageValues::U64(values) => {
            let picked = pick(values, |a, b| a == b, out);
            put_for(&picked, out);
        }
        PageValues::F32(values) => {
            let picked = pick(values, |a, b| a.to_bits() == b.to_bits(), out);
            PlainNumber::put(&picked, out);
        }
        PageValues::F64(values) => {
            let picked = pick(values, |a, b| a.to_bits() == b.to_bits(), out);
            PlainNumber::put(&picked, out);
        }
        PageValues::Bytes { offsets, data } => {
            let value = |at: usize| &data[offsets[at] as usize..offsets[at + 1] as usize];
            let count = offsets.len().saturating_sub(1);
            let (starts, lengths) = cut(count, |a, b| value(a) == value(b));
            put_lengths(&lengths, out);
            let mut picked_offsets = vec![0];
            let mut picked = Vec::new();
            for start in starts {
                picked.extend_from_slice(value(start));
                picked_offsets.push(picked.len() as i32);
            }
            put_strings(&picked_offsets, &picked, out);
        }
    }
}
