//! `mode(value)`: the value that comes most often, and of several the smallest. Nulls do not count.
//! Each distinct value of a group is kept with its number.

use super::aggregate::{Accumulators, Fold, Function};
use super::arguments::{self, Constants};
use super::keys::{self, BatchKeys, Key, Keys};
use arrow::array::{Array, ArrayRef, AsArray, LargeListArray, UInt64Array};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, UInt64Type};
use datafusion::common::{HashMap, Result, downcast_value, plan_err};
use std::cmp::Reverse;
use std::sync::Arc;

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Mode;

impl Function for Mode {
    fn name(&self) -> &'static str {
        "mode"
    }

    fn coerce(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [value] => Ok(vec![arguments::comparable("mode", value)?]),
            _ => plan_err!("mode takes a value: mode(value)"),
        }
    }

    fn answer_type(&self, types: &[DataType]) -> DataType {
        types[0].clone()
    }

    fn state_types(&self) -> Vec<(&'static str, DataType)> {
        let count = Arc::new(Field::new_list_field(DataType::UInt64, true));
        vec![
            ("values", keys::list_type()),
            ("counts", DataType::LargeList(count)),
        ]
    }

    fn fold(
        &self,
        types: &[DataType],
        _: &Constants<'_>,
        _: bool,
    ) -> Result<Box<dyn Accumulators>> {
        Ok(Box::new(Counts(Keys::new(&types[0], false)?)))
    }
}

#[derive(Debug)]
struct Counts(Keys);

/// How often each value came.
#[derive(Debug, Default)]
struct Tally {
    counts: HashMap<Key, u64>,
    key_bytes: usize,
}

impl Tally {
    fn add(&mut self, key: &[u8], count: u64) {
        if let Some(held) = self.counts.get_mut(key) {
            *held += count;
        } else {
            self.key_bytes += key.len();
            self.counts.insert(key.into(), count);
        }
    }
}

impl Fold for Counts {
    type State = Tally;
    type Rows<'a> = BatchKeys;

    fn rows(&self, columns: &[ArrayRef]) -> Result<BatchKeys> {
        self.0.of(&columns[0])
    }

    fn add(&self, state: &mut Tally, rows: &BatchKeys, row: usize) {
        if let Some(key) = rows.get(row) {
            state.add(key, 1);
        }
    }

    fn retracts(&self) -> bool {
        true
    }

    fn retract(&self, state: &mut Tally, rows: &BatchKeys, row: usize) {
        let Some(key) = rows.get(row) else {
            return;
        };
        if let Some(count) = state.counts.get_mut(key) {
            *count -= 1;
            if *count == 0 {
                state.key_bytes -= key.len();
                state.counts.remove(key);
            }
        }
    }

    fn states(&self, states: &[Tally]) -> Result<Vec<ArrayRef>> {
        let lengths = || states.iter().map(|state| state.counts.len());
        let keys = states.iter().flat_map(|state| state.counts.keys());
        let keys = keys::key_lists(lengths(), keys)?;
        let counts = states
            .iter()
            .flat_map(|state| state.counts.values().copied());
        let counts: UInt64Array = counts.collect::<Vec<_>>().into();
        let field = Arc::new(Field::new_list_field(DataType::UInt64, true));
        let offsets = OffsetBuffer::<i64>::from_lengths(lengths());
        let counts = LargeListArray::try_new(field, offsets, Arc::new(counts), None)?;
        Ok(vec![keys, Arc::new(counts)])
    }

    fn merge(&self, state: &mut Tally, columns: &[ArrayRef], row: usize) -> Result<()> {
        let keys = keys::keys_at(&columns[0], row)?;
        let counts = downcast_value!(columns[1], LargeListArray);
        if counts.is_null(row) {
            return Ok(());
        }
        let counts = counts.value(row);
        for (at, count) in counts
            .as_primitive::<UInt64Type>()
            .values()
            .iter()
            .enumerate()
        {
            state.add(keys.value(at), *count);
        }
        Ok(())
    }

    fn answers(&self, states: &mut [Tally]) -> Result<ArrayRef> {
        self.0.values(states.iter().map(|state| {
            let entries = state.counts.iter();
            let most = entries.max_by_key(|(key, count)| (*count, Reverse(*key)));
            most.map(|(key, _)| key.as_ref())
        }))
    }

    fn heap_bytes(&self, state: &Tally) -> usize {
        // The table has a byte of its own for each entry, and the allocator some for each key.
        state.counts.capacity() * (size_of::<(Key, u64)>() + 1)
            + state.counts.len() * 16
            + state.key_bytes
    }
}
