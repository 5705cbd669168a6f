//! The rows of a group as pairs of time and value, for functions that need them in order of time
//! although they arrive in any order.

use super::aggregate::AggregateState;
use super::arguments::TIME;
use super::numbers::{NumberColumn, NumberKind};
use arrow::array::{Array, ArrayRef, AsArray, Int64Array, LargeListArray, UInt64Array};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Int64Type, UInt64Type};
use datafusion::common::{Result, exec_err};
use std::fmt::Debug;
use std::sync::Arc;

/// A time and the bits of a value.
pub(crate) type TimeValuePair = (i64, u64);

/// The pairs of a group. Rows whose time or value is null are not included.
#[derive(Debug, Default)]
pub(crate) struct TimeValuePairs {
    held: Vec<TimeValuePair>,
    /// Pairs before this index were removed.
    start: usize,
    /// Whether a pair arrived that is not after the one before it.
    unordered: bool,
}

impl TimeValuePairs {
    /// Adds a pair.
    pub(crate) fn push(&mut self, pair: TimeValuePair) {
        // Pairs with the same time are ordered by value, so that their order of arrival does not
        // matter.
        self.unordered |= self.held.last().is_some_and(|last| last.0 >= pair.0);
        self.held.push(pair);
    }

    /// Removes the pair that arrived first.
    pub(crate) fn pop(&mut self) {
        self.start += 1;
        if self.start >= self.held.len() {
            *self = Self::default();
        } else if self.start > 64 && self.start > self.held.len() / 2 {
            self.held.drain(..self.start);
            self.start = 0;
        }
    }

    /// Passes all pairs, ordered by time and then by value. Sorts them in place, unless `keep` says
    /// that the order of arrival is needed again.
    pub(crate) fn ordered<T>(
        &mut self,
        kind: NumberKind,
        keep: bool,
        read: impl FnOnce(&[TimeValuePair]) -> T,
    ) -> T {
        let compare = |left: &TimeValuePair, right: &TimeValuePair| {
            left.0
                .cmp(&right.0)
                .then_with(|| kind.compare(left.1, right.1))
        };
        if !self.unordered {
            return read(&self.held[self.start..]);
        }
        if keep {
            let mut copy = self.held[self.start..].to_vec();
            copy.sort_by(compare);
            return read(&copy);
        }
        self.held.sort_by(compare);
        self.unordered = false;
        read(&self.held[self.start..])
    }

    /// The bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.held.capacity() * size_of::<TimeValuePair>()
    }

    /// Adds the pairs in one row of columns made by [`states`].
    pub(crate) fn merge(&mut self, columns: &[ArrayRef], row: usize) -> Result<()> {
        let (Some(times), Some(values)) = (
            columns[0].as_list_opt::<i64>(),
            columns[1].as_list_opt::<i64>(),
        ) else {
            return exec_err!("the states of an aggregate are not lists");
        };
        if times.is_null(row) || values.is_null(row) {
            return Ok(());
        }
        let (times, values) = (times.value(row), values.value(row));
        let times = times.as_primitive::<Int64Type>().values();
        let values = values.as_primitive::<UInt64Type>().values();
        self.held.reserve(times.len());
        for pair in times.iter().zip(values) {
            self.push((*pair.0, *pair.1));
        }
        Ok(())
    }
}

/// The columns of states that consist of pairs.
pub(crate) fn state_types() -> Vec<(&'static str, DataType)> {
    let list = |item| DataType::LargeList(Arc::new(Field::new_list_field(item, true)));
    vec![
        ("times", list(DataType::Int64)),
        ("values", list(DataType::UInt64)),
    ]
}

/// The pairs of many groups as columns.
pub(crate) fn states(groups: &[TimeValuePairs]) -> Result<Vec<ArrayRef>> {
    let all = || groups.iter().flat_map(|group| &group.held[group.start..]);
    let lengths = groups.iter().map(|group| group.held.len() - group.start);
    let offsets = OffsetBuffer::<i64>::from_lengths(lengths);
    let times: Int64Array = all().map(|pair| pair.0).collect::<Vec<_>>().into();
    let values: UInt64Array = all().map(|pair| pair.1).collect::<Vec<_>>().into();
    let list = |items: ArrayRef| -> Result<ArrayRef> {
        let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
        let list = LargeListArray::try_new(field, offsets.clone(), items, None)?;
        Ok(Arc::new(list))
    };
    Ok(vec![list(Arc::new(times))?, list(Arc::new(values))?])
}

/// The times and values of a batch.
pub(crate) struct TimeValueColumns<'a> {
    times: NumberColumn<'a>,
    values: NumberColumn<'a>,
}

impl<'a> TimeValueColumns<'a> {
    /// Wraps these columns.
    pub(crate) fn from_arrays(times: &'a ArrayRef, values: &'a ArrayRef) -> Result<Self> {
        debug_assert_eq!(times.data_type(), &TIME);
        Ok(Self {
            times: NumberColumn::from_array(times)?,
            values: NumberColumn::from_array(values)?,
        })
    }

    /// The pair in a row, unless one of its parts is null.
    pub(crate) fn pair(&self, row: usize) -> Option<TimeValuePair> {
        Some((self.times.get(row)? as i64, self.values.get(row)?))
    }
}

/// What a function computes from all pairs of a group.
pub(crate) trait PairsAnswer: Debug + Send + Sync + 'static {
    /// The results, one per group. `keep` says that the order of arrival is needed again.
    fn answers(&self, groups: &mut [TimeValuePairs], keep: bool) -> Result<ArrayRef>;
}

/// Keeps all pairs of a group until it is done.
#[derive(Debug)]
pub(crate) struct AllPairsState<A> {
    /// What is computed from them.
    pub answer: A,
    /// The position of the time among the arguments.
    pub time: usize,
    /// The position of the value among the arguments.
    pub value: usize,
    /// Whether the oldest pairs can be removed again.
    pub sliding: bool,
}

impl<A: PairsAnswer> AggregateState for AllPairsState<A> {
    type State = TimeValuePairs;
    type Rows<'a> = TimeValueColumns<'a>;

    fn rows<'a>(&self, columns: &'a [ArrayRef]) -> Result<TimeValueColumns<'a>> {
        TimeValueColumns::from_arrays(&columns[self.time], &columns[self.value])
    }

    fn add(&self, state: &mut TimeValuePairs, rows: &TimeValueColumns<'_>, row: usize) {
        if let Some(pair) = rows.pair(row) {
            state.push(pair);
        }
    }

    fn retracts(&self) -> bool {
        self.sliding
    }

    fn retract(&self, state: &mut TimeValuePairs, rows: &TimeValueColumns<'_>, row: usize) {
        if rows.pair(row).is_some() {
            state.pop();
        }
    }

    fn states(&self, groups: &[TimeValuePairs]) -> Result<Vec<ArrayRef>> {
        states(groups)
    }

    fn merge(&self, state: &mut TimeValuePairs, columns: &[ArrayRef], row: usize) -> Result<()> {
        state.merge(columns, row)
    }

    fn answers(&self, groups: &mut [TimeValuePairs]) -> Result<ArrayRef> {
        self.answer.answers(groups, self.sliding)
    }

    fn heap_bytes(&self, state: &TimeValuePairs) -> usize {
        state.heap_bytes()
    }
}
