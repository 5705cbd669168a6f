//! The types of numbers, and the loops over slices of them.

use super::SlotRun;
use arrow::array::{ArrayRef, ArrowPrimitiveType, Float64Array, Int64Array, UInt64Array};
use arrow::datatypes::ArrowNativeType;
use arrow::datatypes::{
    Float32Type, Float64Type, Int32Type, Int64Type, TimestampNanosecondType, UInt64Type,
};
use datafusion::common::Result;
use marigram_functions::arithmetic::out_of_range;
use marigram_functions::exact_mean;
use marigram_functions::floats::canonical;
use marigram_model::{FieldValue, sum_i32, sum_i64, sum_u64, sums_i32};
use std::fmt::Debug;
use std::sync::Arc;

/// The number of lanes in which sums of floats are computed: in a single lane, each addition would
/// wait for the one before.
const LANES: usize = 8;

/// The sum of `of` applied to each value.
fn in_lanes<T>(values: &[T], of: impl Fn(&T) -> f64) -> f64 {
    let mut lanes = [0.0; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += of(value);
        }
    }
    let rest = rest.iter().fold(0.0, |sum, value| sum + of(value));
    lanes.iter().fold(rest, |sum, lane| sum + lane)
}

/// A type of numbers.
pub(crate) trait NumericType: Debug + Send + 'static {
    /// The Arrow type.
    type Arrow: ArrowPrimitiveType<Native = Self::Native>;
    /// One number.
    type Native: ArrowNativeType;
    /// A sum of very many numbers.
    type Sum: Copy + Debug + Default + Send + std::ops::AddAssign;

    /// The sum of at most a page of values.
    fn sum(values: &[Self::Native]) -> Self::Sum;

    /// Passes the sum of each run of a page's values to a function.
    fn sums_of(
        values: &[Self::Native],
        stretches: &[SlotRun],
        mut see: impl FnMut(&SlotRun, Self::Sum),
    ) {
        for stretch in stretches {
            see(stretch, Self::sum(&values[stretch.rows()]));
        }
    }

    /// The minimum of at least one number.
    fn min(values: &[Self::Native]) -> Self::Native;

    /// The maximum of at least one number.
    fn max(values: &[Self::Native]) -> Self::Native;

    /// A statistic as a number; `None` if it has another type, or cannot be compared as rows are.
    fn from_value(value: &FieldValue) -> Option<Self::Native>;

    /// A statistic as a sum.
    fn sum_of(value: &FieldValue) -> Option<Self::Sum>;

    /// Sum of the squares of the differences from `mean`.
    fn squares(values: &[Self::Native], mean: f64) -> f64;

    /// A sum as a float.
    fn to_f64(sum: Self::Sum) -> f64;

    /// The mean of `count` values, which is null if there are none.
    fn mean(sum: Self::Sum, count: u64) -> Option<f64>;

    /// A sum without fraction, for the parts in which rollups store it; `None` for floats.
    fn whole(sum: Self::Sum) -> Option<i128>;

    /// Sums with their SQL type; `None` is null.
    ///
    /// # Errors
    /// If a sum does not fit.
    fn sums(sums: Vec<Option<Self::Sum>>) -> Result<ArrayRef>;
}

/// 32-bit integers.
#[derive(Debug)]
pub(crate) struct I32;
/// 64-bit integers.
#[derive(Debug)]
pub(crate) struct I64;
/// Unsigned 64-bit integers.
#[derive(Debug)]
pub(crate) struct U64;
/// Times; their sum has no meaning and is never requested.
#[derive(Debug)]
pub(crate) struct TimeNumbers;
/// 32-bit floats.
#[derive(Debug)]
pub(crate) struct F32;
/// 64-bit floats.
#[derive(Debug)]
pub(crate) struct F64;

macro_rules! integer_extremes {
    () => {
        fn min(values: &[Self::Native]) -> Self::Native {
            values.iter().fold(Self::Native::MAX, |a, b| a.min(*b))
        }

        fn max(values: &[Self::Native]) -> Self::Native {
            values.iter().fold(Self::Native::MIN, |a, b| a.max(*b))
        }

        fn to_f64(sum: i128) -> f64 {
            sum as f64
        }

        fn mean(sum: i128, count: u64) -> Option<f64> {
            exact_mean(sum, count)
        }

        fn whole(sum: i128) -> Option<i128> {
            Some(sum)
        }

        fn squares(values: &[Self::Native], mean: f64) -> f64 {
            in_lanes(values, |value| {
                let difference = *value as f64 - mean;
                difference * difference
            })
        }
    };
}

/// The statistic of a sum of signed integers.
fn signed_sum(value: &FieldValue) -> Option<i128> {
    match value {
        FieldValue::I64(sum) => Some(i128::from(*sum)),
        _ => None,
    }
}

fn signed_sums(sums: Vec<Option<i128>>) -> Result<ArrayRef> {
    let mut all = Vec::with_capacity(sums.len());
    for sum in sums {
        all.push(match sum.map(i64::try_from) {
            Some(Ok(sum)) => Some(sum),
            Some(Err(_)) => {
                return Err(out_of_range(
                    "a sum is out of the range of BIGINT; cast its argument to NUMERIC",
                ));
            }
            None => None,
        });
    }
    Ok(Arc::new(Int64Array::from(all)))
}

impl NumericType for I32 {
    type Arrow = Int32Type;
    type Native = i32;
    type Sum = i128;

    fn sum(values: &[i32]) -> i128 {
        i128::from(sum_i32(values))
    }

    fn sums_of(values: &[i32], stretches: &[SlotRun], mut see: impl FnMut(&SlotRun, i128)) {
        let pieces = stretches.iter().map(|stretch| (stretch.rows(), stretch));
        sums_i32(values, pieces, |stretch, sum| see(stretch, sum.into()));
    }

    fn from_value(value: &FieldValue) -> Option<i32> {
        match value {
            FieldValue::I32(value) => Some(*value),
            _ => None,
        }
    }

    fn sum_of(value: &FieldValue) -> Option<i128> {
        signed_sum(value)
    }

    fn sums(sums: Vec<Option<i128>>) -> Result<ArrayRef> {
        signed_sums(sums)
    }

    integer_extremes!();
}

macro_rules! signed {
    ($name:ident, $arrow:ty, $pattern:pat => $value:ident, $sum:expr) => {
        impl NumericType for $name {
            type Arrow = $arrow;
            type Native = i64;
            type Sum = i128;

            fn sum(values: &[i64]) -> i128 {
                sum_i64(values)
            }

            fn from_value(value: &FieldValue) -> Option<i64> {
                match value {
                    $pattern => Some(*$value),
                    _ => None,
                }
            }

            fn sum_of(value: &FieldValue) -> Option<i128> {
                $sum(value)
            }

            fn sums(sums: Vec<Option<i128>>) -> Result<ArrayRef> {
                signed_sums(sums)
            }

            integer_extremes!();
        }
    };
}

signed!(I64, Int64Type, FieldValue::I64(value) => value, signed_sum);
signed!(
    TimeNumbers,
    TimestampNanosecondType,
    FieldValue::I64(value) | FieldValue::Timestamp(value) => value,
    |_| None
);

impl NumericType for U64 {
    type Arrow = UInt64Type;
    type Native = u64;
    type Sum = i128;

    fn sum(values: &[u64]) -> i128 {
        sum_u64(values)
    }

    fn from_value(value: &FieldValue) -> Option<u64> {
        match value {
            FieldValue::U64(value) => Some(*value),
            _ => None,
        }
    }

    fn sum_of(value: &FieldValue) -> Option<i128> {
        match value {
            FieldValue::U64(sum) => Some(i128::from(*sum)),
            _ => None,
        }
    }

    fn sums(sums: Vec<Option<i128>>) -> Result<ArrayRef> {
        let mut all = Vec::with_capacity(sums.len());
        for sum in sums {
            all.push(match sum.map(u64::try_from) {
                Some(Ok(sum)) => Some(sum),
                Some(Err(_)) => {
                    return Err(out_of_range(
                        "a sum is out of the range of BIGINT UNSIGNED; cast its argument to NUMERIC",
                    ));
                }
                None => None,
            });
        }
        Ok(Arc::new(UInt64Array::from(all)))
    }

    integer_extremes!();
}

macro_rules! float {
    ($name:ident, $native:ty, $arrow:ty, $variant:ident) => {
        impl NumericType for $name {
            type Arrow = $arrow;
            type Native = $native;
            type Sum = f64;

            fn sum(values: &[$native]) -> f64 {
                in_lanes(values, |value| f64::from(*value))
            }

            fn squares(values: &[$native], mean: f64) -> f64 {
                in_lanes(values, |value| {
                    let difference = f64::from(*value) - mean;
                    difference * difference
                })
            }

            // As in PostgreSQL, NaN is greater than every number.
            fn min(values: &[$native]) -> $native {
                let least = values.iter().fold(<$native>::NAN, |a, b| a.min(*b));
                canonical(least)
            }

            fn max(values: &[$native]) -> $native {
                let (mut greatest, mut nan) = (<$native>::NEG_INFINITY, false);
                for value in values {
                    greatest = greatest.max(*value);
                    nan |= value.is_nan();
                }
                canonical(if nan { <$native>::NAN } else { greatest })
            }

            fn from_value(value: &FieldValue) -> Option<$native> {
                match value {
                    // Statistics order NaN by its sign.
                    FieldValue::$variant(value) if !value.is_nan() => Some(canonical(*value)),
                    _ => None,
                }
            }

            fn sum_of(value: &FieldValue) -> Option<f64> {
                match value {
                    FieldValue::F64(sum) => Some(*sum),
                    _ => None,
                }
            }

            fn to_f64(sum: f64) -> f64 {
                sum
            }

            fn mean(sum: f64, count: u64) -> Option<f64> {
                (count > 0).then(|| sum / count as f64)
            }

            fn whole(_: f64) -> Option<i128> {
                None
            }

            fn sums(sums: Vec<Option<f64>>) -> Result<ArrayRef> {
                Ok(Arc::new(Float64Array::from(sums)))
            }
        }
    };
}

float!(F32, f32, Float32Type, F32);
float!(F64, f64, Float64Type, F64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_many_extremes_are_exact() {
        for extreme in [i32::MIN, i32::MAX, -1, 0xffff, 0x7fff_0000] {
            for len in [0, 1, 7, 60, 8192, 70_001] {
                let expected = i128::from(extreme) * len as i128;
                assert_eq!(I32::sum(&vec![extreme; len]), expected, "{extreme} {len}");
            }
        }
        let mixed: Vec<i32> = (0..70_000)
            .map(|at: i32| at.wrapping_mul(0x9E37_79B1_u32 as i32))
            .collect();
        let expected: i128 = mixed.iter().map(|value| i128::from(*value)).sum();
        assert_eq!(I32::sum(&mixed), expected);
    }
}
