//! Sums of integers that are exact: whoever wants one that fits a type asks whether it does.

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

/// The sum of 64-bit integers by halves: two sums that cannot overflow, of which a processor can do
/// several at once.
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

/// [`sum_i64`] of unsigned integers.
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
    use super::{sum_i32, sum_i64, sum_u64};

    #[test]
    fn sums_of_extremes_are_exact() {
        assert_eq!(sum_i32(&[i32::MIN; 100]), i64::from(i32::MIN) * 100);
        assert_eq!(sum_i32(&[]), 0);
        assert_eq!(sum_i64(&[i64::MIN; 100]), i128::from(i64::MIN) * 100);
        assert_eq!(sum_i64(&[i64::MAX, i64::MIN, -1, 7]), 5);
        assert_eq!(sum_u64(&[u64::MAX; 100]), i128::from(u64::MAX) * 100);
    }
}
