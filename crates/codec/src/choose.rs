//! Which encoding suits some values: by sampling, and a comparison of estimated sizes.
//!
//! Pure: the same values always give the same choice. Where two come out about the same, the one
//! that decodes faster wins.

use crate::alp::{self, Float};
use crate::dictionary::distinct_share;
use crate::integer::{self, Integer};
use crate::kinds::{Encoding, Values};

/// The encoding for `values`.
pub fn choose(values: Values<'_>) -> Encoding {
    match values {
        Values::Bool(values) => {
            let runs = count_runs(values.len(), |a, b| values[a] == values[b]);
            // A run takes about ten bits, a value one.
            if runs * 12 < values.len() {
                Encoding::Runs
            } else {
                Encoding::Plain
            }
        }
        Values::I32(values) => choose_integer(values),
        Values::I64(values) => choose_integer(values),
        Values::U64(values) => choose_integer(values),
        Values::F32(values) => choose_float(values),
        Values::F64(values) => choose_float(values),
        Values::Bytes { offsets, data } => choose_strings(offsets, data),
    }
}

fn count_runs(count: usize, same: impl Fn(usize, usize) -> bool) -> usize {
    if count == 0 {
        return 0;
    }
    1 + (1..count).filter(|at| !same(at - 1, *at)).count()
}

fn choose_integer<T: Integer>(values: &[T]) -> Encoding {
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
    // Prefix sums take time; a difference of a twentieth does not pay for it.
    let (packed, size) = if delta < frame - frame / 20 {
        (Encoding::Delta, delta)
    } else {
        (Encoding::For, frame)
    };
    // A run's value takes what a value takes in a frame, or more; its length another ten bits.
    let rle = 12 + runs * 2 + (frame * runs).div_ceil(count);
    if runs * 4 < count && rle < size - size / 5 {
        return Encoding::Runs;
    }
    if size < plain {
        packed
    } else {
        Encoding::Plain
    }
}

fn choose_float<F: Float>(values: &[F]) -> Encoding {
    let count = values.len();
    if count == 0 {
        return Encoding::Plain;
    }
    let runs = count_runs(count, |a, b| values[a].same(values[b]));
    if runs == 1 {
        return Encoding::Runs;
    }
    let plain = count * F::BYTES;
    let alp = alp::estimate(values);
    let rle = 12 + runs * (F::BYTES + 2);
    if runs * 4 < count && rle < alp - alp / 5 {
        return Encoding::Runs;
    }
    if alp < plain - plain / 10 {
        Encoding::Alp
    } else {
        Encoding::Plain
    }
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
    Encoding::Plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_follows_the_values() {
        let times: Vec<i64> = (0..8192)
            .map(|i| 1_700_000_000_000_000_000 + i * 1000)
            .collect();
        assert_eq!(choose(Values::I64(&times)), Encoding::Delta);
        let small: Vec<i32> = (0..8192).map(|i| i * 7919 % 64).collect();
        assert_eq!(choose(Values::I32(&small)), Encoding::For);
        assert_eq!(choose(Values::U64(&[7; 100])), Encoding::Runs);
        let steps: Vec<i64> = (0..8192).map(|i| i / 512 * 7919 % 101).collect();
        assert_eq!(choose(Values::I64(&steps)), Encoding::Runs);
        let decimals: Vec<f64> = (0..8192)
            .map(|i| f64::from(i * 7919 % 1000) / 10.0)
            .collect();
        assert_eq!(choose(Values::F64(&decimals)), Encoding::Alp);
        let mut state = 3u64;
        let mut random = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            f64::from_bits(state ^ (state >> 29))
        };
        let noise: Vec<f64> = (0..8192).map(|_| random()).collect();
        assert_eq!(choose(Values::F64(&noise)), Encoding::Plain);
        assert_eq!(choose(Values::Bool(&[true; 64])), Encoding::Runs);
        assert_eq!(
            choose(Values::Bool(&[true, false, false, true])),
            Encoding::Plain
        );
        let offsets = [0, 1, 2, 3, 4];
        let choose_text = |data: &[u8]| {
            choose(Values::Bytes {
                offsets: &offsets,
                data,
            })
        };
        assert_eq!(choose_text(b"abab"), Encoding::Entries);
        assert_eq!(choose_text(b"abcd"), Encoding::Plain);
        assert_eq!(choose_text(b"aaaa"), Encoding::Runs);
        assert_eq!(choose(Values::F32(&[])), Encoding::Plain);
    }
}
