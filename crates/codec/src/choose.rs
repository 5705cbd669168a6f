//! Chooses the encoding that suits hot values, by sampling and comparing estimated sizes.
//!
//! The choice is pure: the same values always give the same result. If two encodings come out about
//! equal, the one that decodes faster wins. [`crate::smallest`] finds what suits cold values, by
//! trying.

use crate::alp::{self, AlpFloat};
use crate::alp_rd;
use crate::bitpack::{PackedLane, bits_of};
use crate::compress::sampled;
use crate::entries::strings::distinct_share;
use crate::fsst;
use crate::integer::{self, PageInteger};
use crate::kinds::Encoding;
use crate::repeats::{cycle, distinct};
use crate::values::PageValues;

/// Bits per value below which searching the whole page for a dictionary does not pay.
const WIDE_BITS: usize = 6;
/// Longest cycle to look for if values take less than [`WIDE_BITS`].
const SHORT_CYCLE: usize = 1024;
/// Bytes of text from which on a symbol table can pay.
const TEXT_BYTES_MIN: usize = 2 << 10;

/// The encoding for `values`, among those that are fast to write and to read.
pub fn choose(values: PageValues<'_>) -> Encoding {
    match values {
        PageValues::Bool(values) => choose_truths(values),
        PageValues::I32(values) => choose_integer(values),
        PageValues::I64(values) => choose_integer(values),
        PageValues::U64(values) => choose_integer(values),
        PageValues::F32(values) => choose_float(values),
        PageValues::F64(values) => choose_float(values),
        PageValues::Bytes { offsets, data } => choose_strings(offsets, data),
    }
}

fn count_runs(count: usize, same: impl Fn(usize, usize) -> bool) -> usize {
    if count == 0 {
        return 0;
    }
    1 + (1..count).filter(|at| !same(at - 1, *at)).count()
}

fn choose_truths(values: &[bool]) -> Encoding {
    let runs = count_runs(values.len(), |a, b| values[a] == values[b]);
    // A run takes about ten bits, a value takes one.
    if runs * 12 < values.len() {
        Encoding::Runs
    } else {
        Encoding::Plain
    }
}

fn choose_integer<T: PageInteger>(values: &[T]) -> Encoding {
    let count = values.len();
    if count == 0 {
        return Encoding::Plain;
    }
    let plain = size_of_val(values);
    let runs = count_runs(count, |a, b| values[a] == values[b]);
    if runs == 1 {
        return Encoding::Runs;
    }
    let (frame, delta) = integer::estimate(values);
    // Prefix sums take time, which saving a twentieth does not justify.
    let (packed, size) = if delta < frame - frame / 20 {
        (Encoding::Delta, delta)
    } else {
        (Encoding::For, frame)
    };
    // The value of a run takes at least as much as in a frame; its length takes another ten bits.
    let by_runs = 12 + runs * 2 + (frame * runs).div_ceil(count);
    if runs * 4 < count && by_runs < size - size / 5 {
        return Encoding::Runs;
    }
    let key = |at: usize| values[at].lane().wide();
    if by_entries(count, size.min(plain), frame, key).is_some() {
        return Encoding::Entries;
    }
    if size < plain {
        packed
    } else {
        Encoding::Plain
    }
}

fn choose_float<F: AlpFloat>(values: &[F]) -> Encoding {
    let count = values.len();
    if count == 0 {
        return Encoding::Plain;
    }
    let runs = count_runs(count, |a, b| values[a].same(values[b]));
    if runs == 1 {
        return Encoding::Runs;
    }
    let plain = count * F::BYTES;
    let (frames, steps) = alp::estimate(values);
    // As for integers, prefix sums must pay.
    let (form, alp) = if steps < frames - frames / 20 {
        (Encoding::AlpDelta, steps)
    } else {
        (Encoding::Alp, frames)
    };
    let by_runs = 12 + runs * (F::BYTES + 2);
    // Runs are fastest to read: below half a bit per value, steps gain nothing.
    let steps_pay = alp * 2 <= by_runs && by_runs * 16 >= count;
    if runs * 4 < count && by_runs < frames - frames / 5 && !steps_pay {
        return Encoding::Runs;
    }
    let mut best = (Encoding::Plain, plain);
    if alp < plain - plain / 10 {
        best = (form, alp);
    } else {
        let cut = alp_rd::estimate(values);
        if cut < plain - plain / 10 {
            best = (Encoding::AlpRd, cut);
        }
    }
    let key = |at: usize| values[at].lane().wide();
    if by_entries(count, best.1, alp.min(plain), key).is_some() {
        return Encoding::Entries;
    }
    best.0
}

/// Whether, according to a sample, at most three quarters of the floats are distinct.
pub(crate) fn may_repeat(values: PageValues<'_>) -> bool {
    fn repeat<F: AlpFloat>(values: &[F]) -> bool {
        let distinct = distinct(values.len(), |at| values[at].lane().wide());
        distinct.is_some_and(|distinct| distinct <= values.len() / 4 * 3)
    }
    match values {
        PageValues::F32(values) => repeat(values),
        PageValues::F64(values) => repeat(values),
        _ => false,
    }
}

/// Estimated bytes with a dictionary, if that is well below the known `best`. `whole` is what all
/// values would take as entries.
fn by_entries(
    count: usize,
    best: usize,
    whole: usize,
    key: impl Fn(usize) -> u64,
) -> Option<usize> {
    // Less than two bits per value: there is nothing to gain.
    if best * 4 < count {
        return None;
    }
    let is_wide = best * 8 >= count * WIDE_BITS;
    let pays = |size: &usize| *size < best - best / 8;
    let of_entries = |entries: usize| 12 + (whole * entries).div_ceil(count);
    if is_wide {
        let entries = distinct(count, &key)?;
        let index = usize::from(bits_of(entries as u64)) * count / 8;
        let size = Some(of_entries(entries.min(count)) + index).filter(pays);
        if size.is_some() {
            return size;
        }
    }
    let longest = if is_wide { count / 2 } else { SHORT_CYCLE };
    let period = cycle(count, longest, &key)?;
    // The differences of indices are 1, except where the cycle restarts and where it is
    // interrupted.
    Some(of_entries(period) + count / 32).filter(pays)
}

fn choose_strings(offsets: &[i32], data: &[u8]) -> Encoding {
    let count = offsets.len().saturating_sub(1);
    let value = |at: usize| &data[offsets[at] as usize..offsets[at + 1] as usize];
    let runs = count_runs(count, |a, b| value(a) == value(b));
    if runs == 1 || (count > 0 && runs * 64 < count) {
        return Encoding::Runs;
    }
    if count >= 2 && distinct_share(offsets, data) <= 128 {
        return Encoding::Entries;
    }
    let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else {
        return Encoding::Plain;
    };
    let text = &data[*first as usize..*last as usize];
    if text.len() < TEXT_BYTES_MIN {
        return Encoding::Plain;
    }
    // Symbols are read about as fast as LZ4, and several times faster than Zstandard.
    let (symbols, compressed) = (fsst::estimate(text), sampled(text));
    let [plain, lz4, zstd] = [text.len(), compressed.lz4, compressed.zstd];
    if symbols < plain - plain / 8 && symbols < lz4 && symbols < zstd + zstd / 8 {
        Encoding::Fsst
    } else {
        Encoding::Plain
    }
}

#[cfg(test)]
mod tests;
