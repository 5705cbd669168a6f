//! `sum`. Sums of whole numbers do not wrap: a result that does not fit its type is an error
//! (22003). Intervals are added up part by part. For all other types the function is DataFusion's.
//!
//! Sums are kept in 128 bits, so that the order in which values arrive does not decide whether
//! there is an error, as long as there are fewer than 2^63 values. The state between two stages is
//! a number of 38 digits.

use super::interval_sums::{self, DistinctIntervalSum, IntervalSum, is_summed};
use super::mean::exact_mean;
use super::sliding::SlidingSum;
use crate::arithmetic::out_of_range;
use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, Decimal128Array, PrimitiveArray,
};
use arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, Int64Type, UInt64Type};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::functions_aggregate::sum::Sum as Wrapping;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, SetMonotonicity,
    Signature, TypeSignature,
};
use std::collections::HashMap;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::Arc;

/// The type of the state.
const STATE: DataType = DataType::Decimal128(38, 0);

/// The `sum` function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct CheckedSum {
    other: Wrapping,
    signature: Signature,
}

impl Default for CheckedSum {
    fn default() -> Self {
        let other = Wrapping::new();
        let mut forms = match &other.signature().type_signature {
            TypeSignature::OneOf(forms) => forms.clone(),
            form => vec![form.clone()],
        };
        forms.push(interval_sums::signature());
        let signature = Signature::one_of(forms, other.signature().volatility);
        Self { other, signature }
    }
}

fn is_whole(kind: &DataType) -> bool {
    matches!(kind, DataType::Int64 | DataType::UInt64)
}

macro_rules! by_type {
    ($kind:expr, $made:ident :: <_>) => {
        match $kind {
            DataType::UInt64 => Ok(Box::new($made::<UInt64Type>::new())),
            _ => Ok(Box::new($made::<Int64Type>::new())),
        }
    };
}

impl AggregateUDFImpl for CheckedSum {
    fn name(&self) -> &'static str {
        "sum"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [kind] if is_summed(kind) => Ok(kind.clone()),
            _ => self.other.return_type(types),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        match args.return_type() {
            kind if is_summed(kind) && args.is_distinct => {
                Ok(Box::new(DistinctIntervalSum::new(false)))
            }
            kind if is_summed(kind) => Ok(Box::new(IntervalSum::new(false))),
            kind if !is_whole(kind) => self.other.accumulator(args),
            kind if args.is_distinct => by_type!(kind, DistinctSumAccumulator::<_>),
            kind => by_type!(kind, SumAccumulator::<_>),
        }
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        match args.return_type() {
            kind if is_whole(kind) || is_summed(kind) => self.accumulator(args),
            DataType::Float64 if !args.is_distinct => Ok(Box::new(SlidingSum::sum())),
            _ => self.other.create_sliding_accumulator(args),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        if is_summed(args.return_type()) {
            return Ok(interval_sums::state_fields(&args));
        }
        if !is_whole(args.return_type()) || args.is_distinct {
            return self.other.state_fields(args);
        }
        let name = format_state_name(args.name, "sum");
        Ok(vec![Arc::new(Field::new(name, STATE, true))])
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        !is_summed(args.return_type()) && self.other.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        match args.return_type() {
            kind if is_whole(kind) => by_type!(kind, SumGroupsAccumulator::<_>),
            _ => self.other.create_groups_accumulator(args),
        }
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn set_monotonicity(&self, kind: &DataType) -> SetMonotonicity {
        self.other.set_monotonicity(kind)
    }
}

/// A type of whole numbers that can be summed.
pub(crate) trait WholeNumber: ArrowPrimitiveType + Debug + Send + Sync {
    const NAME: &'static str;
    fn widen(value: Self::Native) -> i128;
    fn narrow(sum: i128) -> Option<Self::Native>;
    /// The sum of at most [`BLOCK_ROWS`] values, in the width of the values if their extremes show
    /// that it fits.
    fn sum_of_block(values: &[Self::Native]) -> i128;
}

/// Rows that are summed at once: few enough for values of 49 bits to fit together into 63, and for
/// the second of two loops over them to find them in the first cache.
const BLOCK_ROWS: usize = 1 << 11;
/// Blocks of a column with nulls are copied first, with a zero for each null, to the stack.
const COPIED_ROWS: usize = 512;

macro_rules! whole {
    ($kind:ty, $native:ty, $name:literal, $bias:expr) => {
        impl WholeNumber for $kind {
            const NAME: &'static str = $name;

            fn widen(value: $native) -> i128 {
                i128::from(value)
            }

            fn narrow(sum: i128) -> Option<$native> {
                <$native>::try_from(sum).ok()
            }

            fn sum_of_block(values: &[$native]) -> i128 {
                debug_assert!(values.len() <= BLOCK_ROWS);
                let sum = values
                    .iter()
                    .fold(0, |sum: $native, v| sum.wrapping_add(*v));
                let bits = values
                    .iter()
                    .fold(0, |bits, v| bits | v.wrapping_add($bias));
                if (bits as u64) >> 50 == 0 {
                    i128::from(sum)
                } else {
                    values.iter().map(|value| i128::from(*value)).sum()
                }
            }
        }
    };
}
// The bias makes numbers of 50 bits with a sign numbers of 50 bits without one.
whole!(Int64Type, i64, "BIGINT", 1 << 49);
whole!(UInt64Type, u64, "BIGINT UNSIGNED", 0);

fn narrow<T: WholeNumber>(sum: i128) -> Result<T::Native> {
    T::narrow(sum).ok_or_else(|| {
        out_of_range(format!(
            "a sum is out of the range of {}; cast its argument to NUMERIC",
            T::NAME
        ))
    })
}

fn answer<T: WholeNumber>(sum: Option<i128>) -> Result<ScalarValue> {
    let sum = sum.map(narrow::<T>).transpose()?;
    let array = PrimitiveArray::<T>::from_iter([sum]);
    ScalarValue::try_from_array(&array, 0)
}

pub(crate) fn numbers<T: ArrowPrimitiveType>(columns: &[ArrayRef]) -> Result<&PrimitiveArray<T>> {
    match columns
        .first()
        .and_then(|column| column.as_primitive_opt::<T>())
    {
        Some(column) => Ok(column),
        None => internal_err!("a sum of a column of another type"),
    }
}

/// The sum of a column, and its number of values.
pub(crate) fn total<T: WholeNumber>(column: &PrimitiveArray<T>) -> (i128, usize) {
    let count = column.len() - column.null_count();
    let values = column.values();
    let Some(nulls) = column.nulls().filter(|nulls| nulls.null_count() > 0) else {
        let sums = values.chunks(BLOCK_ROWS).map(T::sum_of_block);
        return (sums.sum(), count);
    };
    let mut sum = 0;
    let mut copy = [T::Native::default(); COPIED_ROWS];
    let validity = nulls.inner().bit_chunks();
    let mut words = validity.iter_padded();
    for values in values.chunks(COPIED_ROWS) {
        for (slots, values) in copy.chunks_mut(64).zip(values.chunks(64)) {
            let word = words.next().unwrap_or(0);
            for (at, (slot, value)) in slots.iter_mut().zip(values).enumerate() {
                let is_valid = word >> at & 1 == 1;
                *slot = if is_valid {
                    *value
                } else {
                    T::Native::default()
                };
            }
        }
        sum += T::sum_of_block(&copy[..values.len()]);
    }
    (sum, count)
}

/// The accumulator of one group, or of a window.
#[derive(Debug)]
struct SumAccumulator<T> {
    sum: i128,
    /// The number of values.
    count: usize,
    kind: PhantomData<T>,
}

impl<T: WholeNumber> SumAccumulator<T> {
    fn new() -> Self {
        Self {
            sum: 0,
            count: 0,
            kind: PhantomData,
        }
    }
}

impl<T: WholeNumber> Accumulator for SumAccumulator<T> {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let (sum, count) = total(numbers::<T>(columns)?);
        self.sum += sum;
        self.count += count;
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn retract_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let (sum, count) = total(numbers::<T>(columns)?);
        self.sum -= sum;
        self.count = self.count.saturating_sub(count);
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for sum in numbers::<Decimal128Type>(states)?.iter().flatten() {
            self.sum += sum;
            self.count += 1;
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let sum = (self.count > 0).then_some(self.sum);
        Ok(vec![ScalarValue::Decimal128(sum, 38, 0)])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        answer::<T>((self.count > 0).then_some(self.sum))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// The sum or mean of distinct values; counts how often each value is in the window.
#[derive(Debug)]
pub(crate) struct DistinctSumAccumulator<T> {
    /// Whether the sum is divided by the number of distinct values.
    is_mean: bool,
    counts: HashMap<i128, usize>,
    kind: PhantomData<T>,
}

impl<T: WholeNumber> DistinctSumAccumulator<T> {
    fn new() -> Self {
        Self {
            is_mean: false,
            counts: HashMap::new(),
            kind: PhantomData,
        }
    }

    /// Creates a mean.
    pub(crate) fn mean() -> Self {
        Self {
            is_mean: true,
            ..Self::new()
        }
    }
}

impl<T: WholeNumber> DistinctSumAccumulator<T> {
    fn add(&mut self, column: &PrimitiveArray<T>) {
        for value in column.iter().flatten() {
            *self.counts.entry(T::widen(value)).or_default() += 1;
        }
    }
}

impl<T: WholeNumber> Accumulator for DistinctSumAccumulator<T> {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        self.add(numbers::<T>(columns)?);
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn retract_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        for value in numbers::<T>(columns)?.iter().flatten() {
            let value = T::widen(value);
            if let Some(count) = self.counts.get_mut(&value) {
                *count -= 1;
                if *count == 0 {
                    self.counts.remove(&value);
                }
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let Some(lists) = states.first().and_then(|state| state.as_list_opt::<i32>()) else {
            return internal_err!("the state of a distinct sum is no list");
        };
        for values in lists.iter().flatten() {
            self.add(numbers::<T>(&[values])?);
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values = self.counts.keys().copied();
        let values = values.map(|value| answer::<T>(Some(value)));
        let values = values.collect::<Result<Vec<_>>>()?;
        let list = ScalarValue::new_list_nullable(&values, &T::DATA_TYPE);
        Ok(vec![ScalarValue::List(list)])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.is_mean {
            let mean = exact_mean(self.counts.keys().sum(), self.counts.len() as u64);
            return Ok(ScalarValue::Float64(mean));
        }
        let any = !self.counts.is_empty();
        answer::<T>(any.then(|| self.counts.keys().sum()))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.counts.capacity() * (size_of::<(i128, usize)>() + 1)
    }
}

/// The accumulator of many groups.
#[derive(Debug)]
struct SumGroupsAccumulator<T> {
    /// The sum of each group, and whether the group has a value.
    sums: Vec<(i128, bool)>,
    kind: PhantomData<T>,
}

impl<T: WholeNumber> SumGroupsAccumulator<T> {
    fn new() -> Self {
        Self {
            sums: Vec::new(),
            kind: PhantomData,
        }
    }
}

impl<T: WholeNumber> SumGroupsAccumulator<T> {
    fn take(&mut self, emit_to: EmitTo) -> impl Iterator<Item = Option<i128>> {
        let sums = emit_to.take_needed(&mut self.sums);
        sums.into_iter().map(|(sum, any)| any.then_some(sum))
    }
}

pub(crate) fn passes(filter: Option<&BooleanArray>, row: usize) -> bool {
    filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row))
}

fn states(sums: impl Iterator<Item = Option<i128>>) -> Result<Vec<ArrayRef>> {
    let sums: Decimal128Array = sums.collect();
    Ok(vec![Arc::new(sums.with_precision_and_scale(38, 0)?)])
}

impl<T: WholeNumber> GroupsAccumulator for SumGroupsAccumulator<T> {
    fn update_batch(
        &mut self,
        columns: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.sums.resize(total, (0, false));
        let column = numbers::<T>(columns)?;
        if filter.is_none() && column.null_count() == 0 {
            for (value, group) in column.values().iter().zip(groups) {
                let (sum, any) = &mut self.sums[*group];
                *sum += T::widen(*value);
                *any = true;
            }
            return Ok(());
        }
        for (row, group) in groups.iter().enumerate() {
            if column.is_valid(row) && passes(filter, row) {
                let (sum, any) = &mut self.sums[*group];
                *sum += T::widen(column.value(row));
                *any = true;
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, columns: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.sums.resize(total, (0, false));
        let partial = numbers::<Decimal128Type>(columns)?;
        for (sum, group) in partial.iter().zip(groups) {
            if let Some(more) = sum {
                let (sum, any) = &mut self.sums[*group];
                *sum += more;
                *any = true;
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let sums = self.take(emit_to);
        let sums = sums.map(|sum| sum.map(narrow::<T>).transpose());
        let sums = sums.collect::<Result<PrimitiveArray<T>>>()?;
        Ok(Arc::new(sums))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        states(self.take(emit_to))
    }

    fn convert_to_state(
        &self,
        columns: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let column = numbers::<T>(columns)?;
        let value = |row| {
            (column.is_valid(row) && passes(filter, row)).then(|| T::widen(column.value(row)))
        };
        states((0..column.len()).map(value))
    }

    fn size(&self) -> usize {
        self.sums.capacity() * size_of::<(i128, bool)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int64Array, UInt64Array};

    /// Columns of every length around a block, small numbers and extremes, with and without nulls,
    /// summed one by one.
    #[test]
    fn a_total_is_the_sum_of_its_values() {
        let edges = [
            0,
            1,
            -1,
            (1 << 49) - 1,
            1 << 49,
            -(1 << 49),
            i64::MAX,
            i64::MIN,
        ];
        let mut seed = 7_u64;
        for rows in [0, 1, 511, 512, 513, 1_025, 8_191, 8_192, 8_193, 20_000] {
            for (extremes, nulls) in [(0, 0), (0, 3), (2, 0), (2, 3), (5_000, 50)] {
                let mut random = |below: u64| {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (seed >> 33) % below
                };
                let values: Vec<Option<i64>> = (0..rows)
                    .map(|_| {
                        let is_edge = random(5_000) < extremes;
                        let value = if is_edge {
                            edges[random(8) as usize]
                        } else {
                            random(1_000) as i64 - 500
                        };
                        (random(100) >= nulls).then_some(value)
                    })
                    .collect();
                let count = values.iter().flatten().count();
                let signed = Int64Array::from(values.clone());
                let expected: i128 = values.iter().flatten().map(|v| i128::from(*v)).sum();
                assert_eq!(total(&signed), (expected, count), "{rows} rows");
                let values: Vec<_> = values.iter().map(|v| v.map(|v| v as u64)).collect();
                let expected: i128 = values.iter().flatten().map(|v| i128::from(*v)).sum();
                assert_eq!(total(&UInt64Array::from(values)), (expected, count));
            }
        }
    }
}
