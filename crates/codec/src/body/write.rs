//! Values to encoded bytes: which encoding writes which type.

use crate::alp::{Packing, put_alp};
use crate::alp_rd::put_alp_rd;
use crate::entries::{numbers, strings};
use crate::error::{CodecError, Result};
use crate::fsst::put_fsst;
use crate::grid::put_grid;
use crate::integer::{put_delta, put_for};
use crate::kinds::Encoding;
use crate::pco::put_pco;
use crate::plain::{Plain, put_bits, put_strings};
use crate::runs::{cut, put_lengths};
use crate::tsfile_forms;
use crate::values::Values;

/// So many bytes integers may take on grids, however few they are; else no more than in memory.
const GRID_BYTES_MIN: usize = 64;

/// Appends `values`.
///
/// # Errors
/// If the encoding cannot hold them; `out` may then hold a part.
pub(super) fn put(values: Values<'_>, encoding: Encoding, out: &mut Vec<u8>) -> Result<()> {
    match (encoding, values) {
        (Encoding::Plain, Values::Bool(values)) => put_bits(values, out),
        (Encoding::Plain, Values::I32(values)) => Plain::put(values, out),
        (Encoding::Plain, Values::I64(values)) => Plain::put(values, out),
        (Encoding::Plain, Values::U64(values)) => Plain::put(values, out),
        (Encoding::Plain, Values::F32(values)) => Plain::put(values, out),
        (Encoding::Plain, Values::F64(values)) => Plain::put(values, out),
        (Encoding::Plain, Values::Bytes { offsets, data }) => put_strings(offsets, data, out),
        (Encoding::For, Values::I32(values)) => put_for(values, out),
        (Encoding::For, Values::I64(values)) => put_for(values, out),
        (Encoding::For, Values::U64(values)) => put_for(values, out),
        (Encoding::Delta, Values::I32(values)) => put_delta(values, out),
        (Encoding::Delta, Values::I64(values)) => put_delta(values, out),
        (Encoding::Delta, Values::U64(values)) => put_delta(values, out),
        (Encoding::Grid, Values::I64(values)) => {
            if !put_grid(values, size_of_val(values).max(GRID_BYTES_MIN), out) {
                return Err(CodecError::Unsupported(
                    Encoding::Grid.name(),
                    "integers far from each other",
                ));
            }
        }
        (Encoding::Alp, Values::F32(values)) => put_alp(values, Packing::Frame, out),
        (Encoding::AlpDelta, Values::F32(values)) => put_alp(values, Packing::Steps, out),
        (Encoding::Alp, Values::F64(values)) => put_alp(values, Packing::Frame, out),
        (Encoding::AlpDelta, Values::F64(values)) => put_alp(values, Packing::Steps, out),
        (Encoding::AlpRd, Values::F32(values)) => put_alp_rd(values, out),
        (Encoding::AlpRd, Values::F64(values)) => put_alp_rd(values, out),
        (Encoding::Pco, Values::I32(values)) => put_pco(values, out)?,
        (Encoding::Pco, Values::I64(values)) => put_pco(values, out)?,
        (Encoding::Pco, Values::U64(values)) => put_pco(values, out)?,
        (Encoding::Pco, Values::F32(values)) => put_pco(values, out)?,
        (Encoding::Pco, Values::F64(values)) => put_pco(values, out)?,
        (Encoding::Fsst, Values::Bytes { offsets, data }) => put_fsst(offsets, data, out),
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

/// Appends numbers as ENTRIES whose indices stand in planes; says whether they are numbers.
pub(super) fn put_in_planes(values: Values<'_>, out: &mut Vec<u8>) -> bool {
    match values {
        Values::I32(values) => numbers::put_entries_in_planes(values, out),
        Values::I64(values) => numbers::put_entries_in_planes(values, out),
        Values::U64(values) => numbers::put_entries_in_planes(values, out),
        Values::F32(values) => numbers::put_entries_in_planes(values, out),
        Values::F64(values) => numbers::put_entries_in_planes(values, out),
        Values::Bool(_) | Values::Bytes { .. } => return false,
    }
    true
}

fn put_entries(values: Values<'_>, out: &mut Vec<u8>) {
    match values {
        Values::Bool(values) => {
            let numbers: Vec<i32> = values.iter().map(|value| i32::from(*value)).collect();
            numbers::put_entries(&numbers, out);
        }
        Values::I32(values) => numbers::put_entries(values, out),
        Values::I64(values) => numbers::put_entries(values, out),
        Values::U64(values) => numbers::put_entries(values, out),
        Values::F32(values) => numbers::put_entries(values, out),
        Values::F64(values) => numbers::put_entries(values, out),
        Values::Bytes { offsets, data } => strings::put_entries(offsets, data, out),
    }
}

fn put_runs(values: Values<'_>, out: &mut Vec<u8>) {
    fn pick<T: Copy>(values: &[T], same: impl Fn(&T, &T) -> bool, out: &mut Vec<u8>) -> Vec<T> {
        let (starts, lengths) = cut(values.len(), |a, b| same(&values[a], &values[b]));
        put_lengths(&lengths, out);
        starts.into_iter().map(|start| values[start]).collect()
    }
    match values {
        Values::Bool(values) => {
            let picked = pick(values, |a, b| a == b, out);
            put_bits(&picked, out);
        }
        Values::I32(values) => {
            let picked = pick(values, |a, b| a == b, out);
            put_for(&picked, out);
        }
        Values::I64(values) => {
            let picked = pick(values, |a, b| a == b, out);
            put_for(&picked, out);
        }
        Values::U64(values) => {
            let picked = pick(values, |a, b| a == b, out);
            put_for(&picked, out);
        }
        Values::F32(values) => {
            let picked = pick(values, |a, b| a.to_bits() == b.to_bits(), out);
            Plain::put(&picked, out);
        }
        Values::F64(values) => {
            let picked = pick(values, |a, b| a.to_bits() == b.to_bits(), out);
            Plain::put(&picked, out);
        }
        Values::Bytes { offsets, data } => {
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
