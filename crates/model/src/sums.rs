//! Exact sums of integers; a caller that needs a narrower type checks whether the sum fits.

use std::ops::Range;

/// The sum of less than 2^32 values, which cannot overflow.
#[inline]
#[must_use]
pub fn sum_i32(values: &[i32]) -> i64 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[expect(
            unsafe_code,
            reason = "without AVX2, widening takes twice as long as adding up"
        )]
        // SAFETY: the processor has AVX2.
        return unsafe { sum_i32_by_avx2(values) };
    }
    values.iter().map(|value| i64::from(*value)).sum()
}

/// The same, compiled for AVX2.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2")]
fn sum_i32_by_avx2(values: &[i32]) -> i64 {
    values.iter().map(|value| i64::from(*value)).sum()
}

/// Passes the sum of each piece of `values` to the callback, with the piece's label. For many short
/// pieces, this is faster than one call for each.
///
/// # Panics
/// If a piece is out of bounds of `values`.
#[inline]
pub fn sums_i32<T>(
    values: &[i32],
    pieces: impl Iterator<Item = (Range<usize>, T)>,
    see: impl FnMut(T, i64),
) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[expect(unsafe_code, reason = "as for one sum")]
        // SAFETY: the processor has AVX2.
        return unsafe { sums_i32_by_avx2(values, pieces, see) };
    }
    sums_i32_by_any(values, pieces, see);
}

/// The same, compiled for AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn sums_i32_by_avx2<T>(
    values: &[i32],
    pieces: impl Iterator<Item = (Range<usize>, T)>,
    see: impl FnMut(T, i64),
) {
    sums_i32_by_any(values, pieces, see);
}

/// Compiled for the instruction set of its caller.
#[inline(always)]
fn sums_i32_by_any<T>(
    values: &[i32],
    pieces: impl Iterator<Item = (Range<usize>, T)>,
    mut see: impl FnMut(T, i64),
) {
    // Two vectors at once: pieces of similar length then mostly take the same branch.
    const LANES: usize = 16;
    /// From index `LANES - n` on: ones for the `n` lanes to keep, then zeros.
    const MASKS: [i32; 2 * LANES] = {
        let mut masks = [0; 2 * LANES];
        let (kept, _) = masks.split_at_mut(LANES);
        kept.copy_from_slice(&[-1; LANES]);
        masks
    };
    for (piece, with) in pieces {
        let end = piece.end;
        let (chunks, rest) = values[piece].as_chunks::<LANES>();
        let mut lanes = [0i64; LANES];
        for chunk in chunks {
            for (lane, value) in lanes.iter_mut().zip(chunk) {
                *lane += i64::from(*value);
            }
        }
        // The rest is read together with the values after it, which are masked to zero.
        let at = end - rest.len();
        if let Some((chunk, _)) = values[at..].split_first_chunk::<LANES>() {
            let mask = &MASKS[LANES - rest.len()..][..LANES];
            for ((lane, value), mask) in lanes.iter_mut().zip(chunk).zip(mask) {
                *lane += i64::from(value & mask);
            }
        } else {
            lanes[0] += rest.iter().map(|value| i64::from(*value)).sum::<i64>();
        }
        see(with, lanes.iter().sum());
    }
}

/// The sum of 64-bit integers, in halves: two sums that cannot overflow, of which a processor can
/// compute several at once.
#[inline]
#[must_use]
pub fn sum_i64(values: &[i64]) -> i128 {
    let (mut low, mut high) = (0u64, 0i64);
    for value in values {
        low += *value as u64 & u64::from(u32::MAX);
        high += value >> 32;
    }
    (i128::from(high) << 32) + i128::from(low)
}

/// [`sum_i64`] for unsigned integers.
#[inline]
#[must_use]
pub fn sum_u64(values: &[u64]) -> i128 {
    let (mut low, mut high) = (0u64, 0u64);
    for value in values {
        low += value & u64::from(u32::MAX);
        high += value >> 32;
    }
    (i128::from(high) << 32) + i128::from(low)
}

#[cfg(test)]
mod tests {
    use super::{sum_i32, sum_i64, sum_u64, sums_i32, sums_i32_by_any};

    #[test]
    fn sums_of_pieces_are_sums_of_what_is_in_them() {
        let wild = |at: i32| at.wrapping_mul(0x9E37_79B1_u32 as i32);
        for shift in [0, 7, 8, 9, 10, 25, 31] {
            let values: Vec<i32> = (0..200).map(|at| wild(at) >> shift).collect();
            let pieces = (0..=200).flat_map(|start| (start..=200).map(move |end| start..end));
            let expected: Vec<i64> = pieces
                .clone()
                .map(|piece| sum_i32(&values[piece]))
                .collect();
            let mut found = Vec::new();
            let shown = pieces.map(|piece| (piece, ()));
            sums_i32(&values, shown.clone(), |(), sum| found.push(sum));
            assert_eq!(found, expected, "{shift}");
            found.clear();
            sums_i32_by_any(&values, shown, |(), sum| found.push(sum));
            assert_eq!(found, expected, "{shift}");
        }
        for extreme in [i32::MIN, i32::MAX, i32::MAX / 100, i32::MAX / 101, -1, 0] {
            sums_i32(&[extreme; 100], std::iter::once((0..100, ())), |(), sum| {
                assert_eq!(sum, i64::from(extreme) * 100);
            });
        }
        let all = std::iter::once((0..100, 7));
        sums_i32(&[i32::MIN; 100], all, |with, sum| {
            assert_eq!((with, sum), (7, i64::from(i32::MIN) * 100));
        });
    }

    #[test]
    fn sums_of_extremes_are_exact() {
        assert_eq!(sum_i32(&[i32::MIN; 100]), i64::from(i32::MIN) * 100);
        assert_eq!(sum_i32(&[]), 0);
        assert_eq!(sum_i64(&[i64::MIN; 100]), i128::from(i64::MIN) * 100);
        assert_eq!(sum_i64(&[i64::MAX, i64::MIN, -1, 7]), 5);
        assert_eq!(sum_u64(&[u64::MAX; 100]), i128::from(u64::MAX) * 100);
    }
}
