//! `histogram(value, min, max, buckets)`: the number of values below `min`, in each of the
//! `buckets` of equal width, and from `max` on. Nulls do not count; NaN is greater than all
//! numbers.

use super::aggregate::{
    AccumulatorFactory, AggregateDescription, AggregateState, list_type, lists,
};
use super::arguments::{self, ConstantArguments};
use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, LargeListArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Int64Type};
use datafusion::common::{Result, downcast_value, exec_err, plan_err};
use std::sync::Arc;

/// The answer for this many buckets takes 8 KB per group.
const BUCKETS_MAX: usize = 1_000;

/// A group that touches more buckets than this counts in an array of all buckets.
const PAIRS_MAX: usize = 16;

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Histogram;

impl AggregateDescription for Histogram {
    fn name(&self) -> &'static str {
        "histogram"
    }

    fn coerce(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [value, min, max, buckets] = types else {
            return plan_err!(
                "histogram takes a value, two bounds and the number of buckets: histogram(value, min, max, buckets)"
            );
        };
        for number in [value, min, max] {
            arguments::number("histogram", number)?;
        }
        let buckets = arguments::count("histogram", "the number of buckets", buckets)?;
        Ok(vec![
            DataType::Float64,
            DataType::Float64,
            DataType::Float64,
            buckets,
        ])
    }

    fn answer_type(&self, _: &[DataType]) -> DataType {
        list_type(DataType::Int64)
    }

    fn state_types(&self) -> Vec<(&'static str, DataType)> {
        let item = Arc::new(Field::new_list_field(DataType::Int64, true));
        vec![("counts", DataType::LargeList(item))]
    }

    fn fold(
        &self,
        _: &[DataType],
        constants: &ConstantArguments<'_>,
        _: bool,
    ) -> Result<Box<dyn AccumulatorFactory>> {
        let min = constants.finite(1, "the lower bound")?;
        let max = constants.finite(2, "the upper bound")?;
        if min >= max {
            return exec_err!(
                "histogram: the lower bound {min} is not less than the upper bound {max}"
            );
        }
        let buckets = constants.count(3, "the number of buckets", 1, BUCKETS_MAX)?;
        Ok(Box::new(HistogramState { min, max, buckets }))
    }
}

#[derive(Debug)]
struct HistogramState {
    min: f64,
    max: f64,
    buckets: usize,
}

impl HistogramState {
    fn bucket(&self, value: f64) -> usize {
        if value < self.min {
            0
        } else if value < self.max {
            // Halve first: the distance between very large floats is infinite.
            let (value, min, max) = (value / 2.0, self.min / 2.0, self.max / 2.0);
            let bucket = (value - min) / (max - min) * self.buckets as f64;
            // Rounding must not push a value below the upper bound past it.
            (bucket as usize).min(self.buckets - 1) + 1
        } else {
            self.buckets + 1
        }
    }

    fn bucket_of_row(&self, rows: &Float64Array, row: usize) -> Option<usize> {
        rows.is_valid(row).then(|| self.bucket(rows.value(row)))
    }

    /// The buckets between the bounds, and one on either side.
    fn counters(&self) -> usize {
        self.buckets + 2
    }
}

/// The counts of one group. Most groups touch few buckets: `GROUP BY` a key with many values makes
/// a state per row before it merges them, and an array of all buckets would take 8 KB for each.
#[derive(Debug)]
enum BucketCounts {
    /// Buckets with their counts, in no order, at most [`PAIRS_MAX`]; none until a value arrives.
    Pairs(Vec<(u16, i64)>),
    /// A count for each bucket.
    All(Vec<i64>),
}

impl Default for BucketCounts {
    fn default() -> Self {
        Self::Pairs(Vec::new())
    }
}

impl BucketCounts {
    /// Adds `count` to one of `counters` buckets.
    fn add(&mut self, bucket: usize, count: i64, counters: usize) {
        match self {
            Self::Pairs(pairs) => {
                let known = pairs.iter_mut().find(|(it, _)| usize::from(*it) == bucket);
                if let Some((_, sum)) = known {
                    *sum += count;
                } else if pairs.len() < PAIRS_MAX {
                    pairs.push((bucket as u16, count));
                } else {
                    let mut all = vec![0; counters];
                    for (bucket, count) in pairs {
                        all[usize::from(*bucket)] = *count;
                    }
                    all[bucket] = count;
                    *self = Self::All(all);
                }
            }
            Self::All(all) => all[bucket] += count,
        }
    }

    /// The buckets that hold values, and how many.
    fn counted(&self) -> impl Iterator<Item = (usize, i64)> + '_ {
        let (pairs, all): (&[_], &[_]) = match self {
            Self::Pairs(pairs) => (pairs, &[]),
            Self::All(all) => (&[], all),
        };
        let pairs = pairs
            .iter()
            .map(|(bucket, count)| (usize::from(*bucket), *count));
        let all = all.iter().copied().enumerate();
        pairs.chain(all).filter(|(_, count)| *count != 0)
    }

    fn is_empty(&self) -> bool {
        self.counted().next().is_none()
    }
}

impl AggregateState for HistogramState {
    type State = BucketCounts;
    type Rows<'a> = &'a Float64Array;

    fn rows<'a>(&self, columns: &'a [ArrayRef]) -> Result<&'a Float64Array> {
        Ok(downcast_value!(columns[0], Float64Array))
    }

    fn add(&self, state: &mut BucketCounts, rows: &&Float64Array, row: usize) {
        if let Some(bucket) = self.bucket_of_row(rows, row) {
            state.add(bucket, 1, self.counters());
        }
    }

    fn retracts(&self) -> bool {
        true
    }

    fn retract(&self, state: &mut BucketCounts, rows: &&Float64Array, row: usize) {
        if let Some(bucket) = self.bucket_of_row(rows, row) {
            state.add(bucket, -1, self.counters());
        }
    }

    /// Bucket and count in turn, for each bucket that holds values.
    fn states(&self, states: &[BucketCounts]) -> Result<Vec<ArrayRef>> {
        let mut lengths = Vec::with_capacity(states.len());
        let mut items = Vec::new();
        for state in states {
            let before = items.len();
            let counted = state.counted();
            items.extend(counted.flat_map(|(bucket, count)| [bucket as i64, count]));
            lengths.push(items.len() - before);
        }
        let offsets = OffsetBuffer::<i64>::from_lengths(lengths);
        let field = Arc::new(Field::new_list_field(DataType::Int64, true));
        let items: ArrayRef = Arc::new(Int64Array::from(items));
        let list = LargeListArray::try_new(field, offsets, items, None)?;
        Ok(vec![Arc::new(list)])
    }

    fn merge(&self, state: &mut BucketCounts, columns: &[ArrayRef], row: usize) -> Result<()> {
        let list = downcast_value!(columns[0], LargeListArray);
        if list.is_null(row) {
            return Ok(());
        }
        let items = list.value(row);
        for pair in items.as_primitive::<Int64Type>().values().chunks_exact(2) {
            match usize::try_from(pair[0]) {
                Ok(bucket) if bucket < self.counters() => {
                    state.add(bucket, pair[1], self.counters());
                }
                _ => return exec_err!("histogram: a state names bucket {}", pair[0]),
            }
        }
        Ok(())
    }

    fn answers(&self, states: &mut [BucketCounts]) -> Result<ArrayRef> {
        let lengths: Vec<Option<usize>> = states
            .iter()
            .map(|state| (!state.is_empty()).then_some(self.counters()))
            .collect();
        let mut counts = vec![0; lengths.iter().flatten().sum()];
        let answers = counts.chunks_exact_mut(self.counters());
        for (answer, state) in answers.zip(states.iter().filter(|state| !state.is_empty())) {
            for (bucket, count) in state.counted() {
                answer[bucket] = count;
            }
        }
        lists("histogram", &lengths, Arc::new(Int64Array::from(counts)))
    }

    /// The group's answer counts from its first value on: all answers are made at once at the end.
    fn heap_bytes(&self, state: &BucketCounts) -> usize {
        let answer = self.counters() * size_of::<i64>();
        match state {
            BucketCounts::Pairs(pairs) if pairs.is_empty() => 0,
            BucketCounts::Pairs(pairs) => pairs.capacity() * size_of::<(u16, i64)>() + answer,
            BucketCounts::All(all) => all.capacity() * size_of::<i64>() + answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HUNDRED: HistogramState = HistogramState {
        min: 0.0,
        max: 100.0,
        buckets: 100,
    };

    fn counted(values: impl IntoIterator<Item = f64>) -> BucketCounts {
        let rows: Float64Array = values.into_iter().map(Some).collect();
        let mut state = BucketCounts::default();
        for row in 0..rows.len() {
            HUNDRED.add(&mut state, &&rows, row);
        }
        state
    }

    #[test]
    fn a_group_of_few_values_takes_little_besides_its_answer() {
        let few = counted([3.5, 3.6, 90.0]);
        let answer = HUNDRED.counters() * size_of::<i64>();
        assert!(HUNDRED.heap_bytes(&few) <= answer + 64 + PAIRS_MAX * 16);
        assert_eq!(
            HUNDRED.states(&[few]).unwrap()[0]
                .as_list::<i64>()
                .value(0)
                .len(),
            4
        );
        assert_eq!(HUNDRED.heap_bytes(&BucketCounts::default()), 0);
    }

    #[test]
    fn states_of_few_and_of_many_values_merge_alike() {
        let many = counted((0..100).map(f64::from));
        let few = counted([3.5, 3.6, 90.0]);
        assert!(matches!(many, BucketCounts::All(_)));
        let columns = HUNDRED
            .states(&[many, few, BucketCounts::default()])
            .unwrap();
        let mut forward = BucketCounts::default();
        let mut backward = BucketCounts::default();
        for row in 0..3 {
            HUNDRED.merge(&mut forward, &columns, row).unwrap();
            HUNDRED.merge(&mut backward, &columns, 2 - row).unwrap();
        }
        let answers = HUNDRED
            .answers(&mut [forward, backward, BucketCounts::default()])
            .unwrap();
        let answers = answers.as_list::<i32>();
        assert!(answers.is_null(2));
        for row in 0..2 {
            let counts = answers.value(row);
            let counts = counts.as_primitive::<Int64Type>().values();
            assert_eq!(counts.len(), 102);
            assert_eq!(counts.iter().sum::<i64>(), 103);
            assert_eq!((counts[4], counts[91], counts[101]), (3, 2, 0));
        }
    }
}
