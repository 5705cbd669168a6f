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

/// This many buckets take 8 KB per group; and as much per row if DataFusion converts rows to states
/// without merging them.
const BUCKETS_MAX: usize = 1_000;

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

    /// The counter of a row's bucket.
    fn counter<'a>(
        &self,
        state: &'a mut Vec<i64>,
        rows: &Float64Array,
        row: usize,
    ) -> Option<&'a mut i64> {
        if rows.is_null(row) {
            return None;
        }
        if state.is_empty() {
            // Reserve exactly as many counters as are used.
            state.reserve_exact(self.buckets + 2);
            state.resize(self.buckets + 2, 0);
        }
        state.get_mut(self.bucket(rows.value(row)))
    }
}

impl AggregateState for HistogramState {
    /// Empty until a value arrives.
    type State = Vec<i64>;
    type Rows<'a> = &'a Float64Array;

    fn rows<'a>(&self, columns: &'a [ArrayRef]) -> Result<&'a Float64Array> {
        Ok(downcast_value!(columns[0], Float64Array))
    }

    fn add(&self, state: &mut Vec<i64>, rows: &&Float64Array, row: usize) {
        if let Some(count) = self.counter(state, rows, row) {
            *count += 1;
        }
    }

    fn retracts(&self) -> bool {
        true
    }

    fn retract(&self, state: &mut Vec<i64>, rows: &&Float64Array, row: usize) {
        if let Some(count) = self.counter(state, rows, row) {
            *count -= 1;
        }
        if state.iter().all(|count| *count == 0) {
            state.clear();
        }
    }

    fn states(&self, states: &[Vec<i64>]) -> Result<Vec<ArrayRef>> {
        let offsets = OffsetBuffer::<i64>::from_lengths(states.iter().map(Vec::len));
        let counts: Int64Array = states.concat().into();
        let field = Arc::new(Field::new_list_field(DataType::Int64, true));
        let list = LargeListArray::try_new(field, offsets, Arc::new(counts), None)?;
        Ok(vec![Arc::new(list)])
    }

    fn merge(&self, state: &mut Vec<i64>, columns: &[ArrayRef], row: usize) -> Result<()> {
        let list = downcast_value!(columns[0], LargeListArray);
        if list.is_null(row) {
            return Ok(());
        }
        let counts = list.value(row);
        let counts = counts.as_primitive::<Int64Type>().values();
        if state.is_empty() {
            state.extend_from_slice(counts);
        } else {
            for (sum, count) in state.iter_mut().zip(counts) {
                *sum += count;
            }
        }
        Ok(())
    }

    fn answers(&self, states: &mut [Vec<i64>]) -> Result<ArrayRef> {
        let lengths = states
            .iter()
            .map(|state| (!state.is_empty()).then_some(state.len()));
        let lengths: Vec<Option<usize>> = lengths.collect();
        let counts: Int64Array = states.concat().into();
        lists("histogram", &lengths, Arc::new(counts))
    }

    fn heap_bytes(&self, state: &Vec<i64>) -> usize {
        state.capacity() * size_of::<i64>()
    }
}
