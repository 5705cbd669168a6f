//! Exact means of whole numbers, and the two halves in which a sum of them is stored.
//!
//! A mean is the double nearest to the quotient of an exact sum of 128 bits and a count. A sum that
//! must be stored (by a rollup, whose fields have at most 64 bits) is split: its high part counts
//! multiples of 2^32, and its low part is the rest, from 0 to 2^32 - 1. Parts of many groups can be
//! added up before they are joined.

use super::aggregate::{AccumulatorFactory, AggregateDescription, AggregateState, aggregate};
use super::arguments::ConstantArguments;
use super::numbers::{NumberColumn, NumberKind};
use crate::arithmetic::out_of_range;
use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Float64Array, Int64Array};
use arrow::datatypes::{DataType, Decimal128Type, Int64Type};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{
    AggregateUDF, ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use std::sync::{Arc, LazyLock};

/// The number of bits in the low part of a sum.
const LOW_BITS: u32 = 32;
/// Whole numbers up to this one are exact doubles.
const EXACT_MAX: u64 = 1 << f64::MANTISSA_DIGITS;

/// The double nearest to `sum / count`, to the even one of two; `None` if there are no values.
#[must_use]
pub fn exact_mean(sum: i128, count: u64) -> Option<f64> {
    if count == 0 {
        return None;
    }
    // If both operands are exact doubles, the division is the only rounding.
    let magnitude = sum.unsigned_abs();
    if magnitude <= u128::from(EXACT_MAX) && count <= EXACT_MAX {
        return Some(sum as f64 / count as f64);
    }
    // The quotient of a shifted sum has at least 64 bits, and so more than a double keeps. Its last
    // bit records whether a remainder follows, which is all that rounding needs to know.
    let shift = magnitude.leading_zeros();
    let shifted = magnitude << shift;
    let (quotient, rest) = (shifted / u128::from(count), shifted % u128::from(count));
    let rounded = (quotient | u128::from(rest != 0)) as f64;
    // A power of two: the result is far from the limits of a double.
    let mean = rounded * 2f64.powi(-(shift as i32));
    Some(if sum < 0 { -mean } else { mean })
}

/// The high and the low part of a sum; `None` if the high part has more than 64 bits, which takes
/// more than 2^32 values.
#[must_use]
pub fn sum_parts(sum: i128) -> Option<(i64, i64)> {
    let low = sum & ((1 << LOW_BITS) - 1);
    let high = i64::try_from(sum >> LOW_BITS).ok()?;
    Some((high, low as i64))
}

/// The refusal of a sum whose parts do not fit.
#[must_use]
pub fn parts_out_of_range() -> datafusion::common::DataFusionError {
    out_of_range("the sum of a mean has more than 96 bits; cast its argument to DOUBLE")
}

/// A part of a sum of whole numbers, as an aggregate: a rollup stores both to compute means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum SumPart {
    High,
    Low,
}

/// `sum_high(value)`: the multiples of 2^32 in a sum. It is not registered: only rollups call it.
pub fn sum_high_udaf() -> Arc<AggregateUDF> {
    static HIGH: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| Arc::new(aggregate(SumPart::High)));
    Arc::clone(&HIGH)
}

/// `sum_low(value)`: the rest of a sum after [`sum_high_udaf`].
pub fn sum_low_udaf() -> Arc<AggregateUDF> {
    static LOW: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| Arc::new(aggregate(SumPart::Low)));
    Arc::clone(&LOW)
}

impl AggregateDescription for SumPart {
    fn name(&self) -> &'static str {
        match self {
            Self::High => "sum_high",
            Self::Low => "sum_low",
        }
    }

    fn coerce(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [DataType::UInt64] => Ok(vec![DataType::UInt64]),
            [_] => Ok(vec![DataType::Int64]),
            _ => internal_err!("a part of a sum takes one argument"),
        }
    }

    fn answer_type(&self, _: &[DataType]) -> DataType {
        DataType::Int64
    }

    fn state_types(&self) -> Vec<(&'static str, DataType)> {
        vec![("sum", DataType::Decimal128(38, 0))]
    }

    fn fold(
        &self,
        types: &[DataType],
        _: &ConstantArguments<'_>,
        _: bool,
    ) -> Result<Box<dyn AccumulatorFactory>> {
        Ok(Box::new(SumPartGroups {
            part: *self,
            kind: NumberKind::from_type(&types[0])?,
        }))
    }
}

#[derive(Debug)]
struct SumPartGroups {
    part: SumPart,
    kind: NumberKind,
}

impl AggregateState for SumPartGroups {
    type State = Option<i128>;
    type Rows<'a> = NumberColumn<'a>;

    fn rows<'a>(&self, columns: &'a [ArrayRef]) -> Result<NumberColumn<'a>> {
        NumberColumn::from_array(&columns[0])
    }

    fn add(&self, state: &mut Option<i128>, rows: &NumberColumn<'_>, row: usize) {
        if let Some(number) = rows.get(row).and_then(|bits| self.kind.whole(bits)) {
            *state.get_or_insert(0) += number;
        }
    }

    fn states(&self, states: &[Option<i128>]) -> Result<Vec<ArrayRef>> {
        let sums: Decimal128Array = states.iter().copied().collect();
        Ok(vec![Arc::new(sums.with_precision_and_scale(38, 0)?)])
    }

    fn merge(&self, state: &mut Option<i128>, columns: &[ArrayRef], row: usize) -> Result<()> {
        let Some(sums) = columns[0].as_primitive_opt::<Decimal128Type>() else {
            return internal_err!("the state of a part of a sum has another type");
        };
        if sums.is_valid(row) {
            *state.get_or_insert(0) += sums.value(row);
        }
        Ok(())
    }

    fn answers(&self, states: &mut [Option<i128>]) -> Result<ArrayRef> {
        let mut all = Vec::with_capacity(states.len());
        for state in states {
            all.push(match state {
                None => None,
                Some(sum) => {
                    let (high, low) = sum_parts(*sum).ok_or_else(parts_out_of_range)?;
                    Some(match self.part {
                        SumPart::High => high,
                        SumPart::Low => low,
                    })
                }
            });
        }
        Ok(Arc::new(Int64Array::from(all)))
    }

    fn heap_bytes(&self, _: &Option<i128>) -> usize {
        0
    }
}

/// `mean_of_parts(high, low, count)`: the exact mean of a stored sum. It is not registered: only
/// rollups call it.
pub fn mean_of_parts_udf() -> Arc<ScalarUDF> {
    static MEAN: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        let signature = Signature::exact(vec![DataType::Int64; 3], Volatility::Immutable);
        Arc::new(ScalarUDF::from(MeanOfParts { signature }))
    });
    Arc::clone(&MEAN)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct MeanOfParts {
    signature: Signature,
}

impl ScalarUDFImpl for MeanOfParts {
    fn name(&self) -> &'static str {
        "mean_of_parts"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let mut columns = Vec::with_capacity(3);
        for array in &arrays {
            columns.extend(array.as_primitive_opt::<Int64Type>());
        }
        let [high, low, count] = &columns[..] else {
            return internal_err!("a mean of parts takes three BIGINT");
        };
        let parts = high.iter().zip(low.iter()).zip(count.iter());
        let means: Float64Array = parts
            .map(|((high, low), count)| {
                let sum = (i128::from(high?) << LOW_BITS) + i128::from(low?);
                exact_mean(sum, u64::try_from(count?).ok()?)
            })
            .collect();
        Ok(ColumnarValue::Array(Arc::new(means)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The nearest double, found by comparing exact distances of neighbours.
    fn nearest(sum: i128, count: u64) -> f64 {
        let start = sum as f64 / count as f64;
        let bits = start.to_bits() as i64;
        let near = (-3..=3).map(|step| f64::from_bits((bits + step) as u64));
        // |candidate - sum / count| as a fraction: numerator of 256 bits is avoided, because the
        // cases below have candidates that are multiples of 2^-20 and below 2^64.
        let distance = |value: f64| {
            let scaled = (value * 1_048_576.0) as i128;
            assert_eq!(scaled as f64 / 1_048_576.0, value, "the case is too fine");
            (scaled * i128::from(count) - (sum << 20)).unsigned_abs()
        };
        near.min_by(|a, b| {
            let even = |value: &f64| value.to_bits() & 1;
            (distance(*a), even(a)).cmp(&(distance(*b), even(b)))
        })
        .unwrap_or(start)
    }

    #[test]
    fn means_are_the_nearest_doubles() {
        assert_eq!(exact_mean(5, 0), None);
        assert_eq!(exact_mean(0, 7), Some(0.0));
        assert_eq!(exact_mean(-7, 2), Some(-3.5));
        assert_eq!(
            exact_mean(i128::from(i64::MIN), 1),
            Some(-9_223_372_036_854_775_808.0)
        );
        // A sum just above a tie of doubles, whose quotient must not round twice.
        let tie = (1i128 << 62) + (1 << 9);
        for sum in [
            tie - 1,
            tie,
            tie + 1,
            3 * tie,
            3 * tie + 1,
            5 * tie - 1,
            7 * tie + 3,
        ] {
            for count in [1, 2, 3, 5, 7, 1000] {
                if (sum / i128::from(count)) < 1 << 34 {
                    continue;
                }
                let expected = nearest(sum, count);
                assert_eq!(exact_mean(sum, count), Some(expected), "{sum} / {count}");
                assert_eq!(exact_mean(-sum, count), Some(-expected), "-{sum} / {count}");
            }
        }
        let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
        for _ in 0..20_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let count = (seed >> 40) % 999 + 1;
            let sum = (i128::from(seed as i64) | (1 << 61)) * i128::from(count) + 1;
            if sum > 0 && sum < 1 << 70 {
                assert_eq!(
                    exact_mean(sum, count),
                    Some(nearest(sum, count)),
                    "{sum} / {count}"
                );
            }
        }
    }

    #[test]
    fn parts_add_up_to_the_sum() {
        for sum in [
            0,
            1,
            -1,
            i128::from(i64::MIN) * 1000,
            i128::from(u64::MAX) * 77,
        ] {
            let (high, low) = sum_parts(sum).unwrap();
            assert!((0..1 << LOW_BITS).contains(&low), "{sum}");
            assert_eq!((i128::from(high) << LOW_BITS) + i128::from(low), sum);
        }
        assert_eq!(sum_parts(1 << 96), None);
    }
}
