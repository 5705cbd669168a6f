//! `top_n(value, n)` and `bottom_n(value, n)`: arrays of the `n` greatest or smallest values, each
//! as often as it occurs. Nulls do not count. The state keeps at most `n` values of a group.

use super::aggregate::{
    AccumulatorFactory, AggregateDescription, AggregateState, list_type, lists,
};
use super::arguments::{self, ConstantArguments};
use super::keys::{self, BatchKeys, ValueKey, ValueKeys};
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::common::{Result, plan_err};
use std::collections::BinaryHeap;

/// A sorted query serves larger numbers better.
const VALUES_MAX: usize = 10_000;

/// The functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum TopNFunction {
    /// The greatest.
    Top,
    /// The smallest.
    Bottom,
}

impl AggregateDescription for TopNFunction {
    fn name(&self) -> &'static str {
        match self {
            Self::Top => "top_n",
            Self::Bottom => "bottom_n",
        }
    }

    fn aliases(&self) -> &'static [&'static str] {
        match self {
            Self::Top => &["max_n"],
            Self::Bottom => &["min_n"],
        }
    }

    fn coerce(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let name = self.name();
        match types {
            [value, n] => Ok(vec![
                arguments::comparable(name, value)?,
                arguments::count(name, "n", n)?,
            ]),
            _ => plan_err!("{name} takes a value and a number: {name}(value, n)"),
        }
    }

    fn answer_type(&self, types: &[DataType]) -> DataType {
        list_type(types[0].clone())
    }

    fn state_types(&self) -> Vec<(&'static str, DataType)> {
        vec![("values", keys::list_type())]
    }

    fn fold(
        &self,
        types: &[DataType],
        constants: &ConstantArguments<'_>,
        _: bool,
    ) -> Result<Box<dyn AccumulatorFactory>> {
        Ok(Box::new(TopNState {
            function: self.name(),
            n: constants.count(1, "n", 1, VALUES_MAX)?,
            // The values that come first in the result have the smallest keys.
            keys: ValueKeys::new(&types[0], *self == Self::Top)?,
        }))
    }
}

#[derive(Debug)]
struct TopNState {
    function: &'static str,
    n: usize,
    keys: ValueKeys,
}

/// The smallest keys, with the greatest of them on top, to be replaced next.
#[derive(Debug, Default)]
struct TopNHeap {
    keys: BinaryHeap<ValueKey>,
    key_bytes: usize,
}

impl TopNState {
    fn push(&self, state: &mut TopNHeap, key: &[u8]) {
        if state.keys.len() < self.n {
            state.key_bytes += key.len();
            state.keys.push(key.into());
        } else if let Some(mut worst) = state.keys.peek_mut()
            && key < worst.as_ref()
        {
            state.key_bytes = state.key_bytes + key.len() - worst.len();
            *worst = key.into();
        }
    }
}

impl AggregateState for TopNState {
    type State = TopNHeap;
    type Rows<'a> = BatchKeys;

    fn rows(&self, columns: &[ArrayRef]) -> Result<BatchKeys> {
        self.keys.encode_column(&columns[0])
    }

    fn add(&self, state: &mut TopNHeap, rows: &BatchKeys, row: usize) {
        if let Some(key) = rows.get(row) {
            self.push(state, key);
        }
    }

    fn states(&self, states: &[TopNHeap]) -> Result<Vec<ArrayRef>> {
        let lengths = states.iter().map(|state| state.keys.len());
        let keys = states.iter().flat_map(|state| state.keys.iter());
        Ok(vec![keys::key_lists(lengths, keys)?])
    }

    fn merge(&self, state: &mut TopNHeap, columns: &[ArrayRef], row: usize) -> Result<()> {
        let keys = keys::keys_at(&columns[0], row)?;
        for key in keys.iter().flatten() {
            self.push(state, key);
        }
        Ok(())
    }

    fn answers(&self, states: &mut [TopNHeap]) -> Result<ArrayRef> {
        let (mut sorted, mut lengths) = (Vec::new(), Vec::new());
        for state in states {
            let from = sorted.len();
            sorted.extend(state.keys.iter().map(AsRef::as_ref));
            sorted[from..].sort_unstable();
            lengths.push((sorted.len() > from).then_some(sorted.len() - from));
        }
        let values = self.keys.values(sorted.into_iter().map(Some))?;
        lists(self.function, &lengths, values)
    }

    fn heap_bytes(&self, state: &TopNHeap) -> usize {
        // The allocator takes some bytes for each key.
        state.keys.capacity() * size_of::<ValueKey>() + state.keys.len() * 16 + state.key_bytes
    }
}
