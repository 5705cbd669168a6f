//! `mode(value)`: the most frequent value, and the smallest if there are several. Nulls do not
//! count. The state keeps each distinct value of a group with its count.

use super::aggregate::{AccumulatorFactory, AggregateDescription, AggregateState};
use super::arguments::{self, ConstantArguments};
use super::keys::{self, BatchKeys, ValueKey, ValueKeys};
use arrow::array::{Array, ArrayRef, AsArray, LargeListArray, UInt64Array};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, UInt64Type};
use datafusion::common::{HashMap, Result, downcast_value, plan_err};
use std::cmp::Reverse;
use std::sync::Arc;

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Mode;

impl AggregateDescription for Mode {
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
        _: &ConstantArguments<'_>,
        _: bool,
    ) -> Result<Box<dyn AccumulatorFactory>> {
        Ok(Box::new(ModeState(ValueKeys::new(&types[0], false)?)))
    }
}

#[derive(Debug)]
struct ModeState(ValueKeys);

/// How often each value occurred.
#[derive(Debug, Default)]
struct ValueTally {
    counts: HashMap<ValueKey, u64>,
    key_bytes: usize,
}

impl ValueTally {
    fn add(&mut self, key: &[u8], count: u64) {
        if let Some(held) = self.counts.get_mut(key) {
            *held += count;
        } else {
            self.key_bytes += key.len();
            self.counts.insert(key.into(), count);
        }
    }
}

impl AggregateState for ModeState {
    type State = ValueTally;
    type Rows<'a> = BatchKeys;

    fn rows(&self, columns: &[ArrayRef]) -> Result<BatchKeys> {
        self.0.encode_column(&columns[0])
    }

    fn add(&self, state: &mut ValueTally, rows: &BatchKeys, row: usize) {
        if let Some(key) = rows.get(row) {
            state.add(key, 1);
        }
    }

    fn retracts(&self) -> bool {
        true
    }

    fn retract(&self, state: &mut ValueTally, rows: &BatchKeys, row: usize) {
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

    fn states(&self, states: &[ValueTally]) -> Result<Vec<ArrayRef>> {
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

    fn merge(&self, state: &mut ValueTally, columns: &[ArrayRef], row: usize) -> Result<()> {
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

    fn answers(&self, states: &mut [ValueTally]) -> Result<ArrayRef> {
        self.0.values(states.iter().map(|state| {
            let entries = state.counts.iter();
            let most = entries.max_by_key(|(key, count)| (*count, Reverse(*key)));
            most.map(|(key, _)| key.as_ref())
        }))
    }

    fn heap_bytes(&self, state: &ValueTally) -> usize {
        // The hash table uses an extra byte for each entry, and the allocator some bytes for each
        // key.
        state.counts.capacity() * (size_of::<(ValueKey, u64)>() + 1)
            + state.counts.len() * 16
            + state.key_bytes
    }
}
