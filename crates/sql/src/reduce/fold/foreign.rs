//! Any other aggregate function: its own accumulator, told which row is of which group.

use super::{Answer, Facts, Fold, Rows, same};
use arrow::array::{Array, ArrayRef, AsArray, UInt32Array, new_empty_array, new_null_array};
use arrow::compute::take;
use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use datafusion::physical_expr::GroupsAccumulatorAdapter;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// See the head of this file. Its last argument is a condition, if the call has a FILTER.
pub struct Foreign {
    call: Arc<AggregateFunctionExpr>,
    /// Types of the arguments.
    kinds: Vec<DataType>,
    filtered: bool,
    accumulator: Box<dyn GroupsAccumulator>,
    slots: usize,
    /// Kept for its memory.
    groups: Vec<usize>,
}

impl fmt::Debug for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Foreign")
            .field("call", &self.call.name())
            .finish_non_exhaustive()
    }
}

impl Foreign {
    /// For an aggregate call of arguments of these types; `filtered` where the condition of a FILTER
    /// comes behind them.
    ///
    /// # Errors
    /// If the function makes no accumulator.
    pub fn new(
        call: &Arc<AggregateFunctionExpr>,
        kinds: Vec<DataType>,
        filtered: bool,
    ) -> Result<Self> {
        let accumulator = if call.groups_accumulator_supported() {
            call.create_groups_accumulator()?
        } else {
            let call = Arc::clone(call);
            Box::new(GroupsAccumulatorAdapter::new(move || {
                call.create_accumulator()
            }))
        };
        Ok(Self {
            call: Arc::clone(call),
            kinds,
            filtered,
            accumulator,
            slots: 0,
            groups: Vec::new(),
        })
    }
}

impl Fold for Foreign {
    fn resize(&mut self, slots: usize) {
        self.slots = slots;
    }

    fn can_take_page(&self, _: &Facts<'_>) -> bool {
        false
    }

    fn take_page(&mut self, _: usize, _: &Facts<'_>) {}

    fn take_rows(&mut self, rows: Rows<'_>) -> Result<()> {
        let (Some(first), Some(last)) = (rows.stretches.first(), rows.stretches.last()) else {
            return Ok(());
        };
        let len = rows.args.iter().flatten().map(Array::len).next();
        let len = len.unwrap_or(last.end as usize);
        let or_nulls = |(arg, kind): (&Option<ArrayRef>, &DataType)| match arg {
            Some(array) => Arc::clone(array),
            None => new_null_array(kind, len),
        };
        let conditions = std::iter::once(&DataType::Boolean);
        let kinds = self.kinds.iter().chain(conditions);
        let arrays: Vec<ArrayRef> = rows.args.iter().zip(kinds).map(or_nulls).collect();
        let mut stretches = rows.stretches;
        let mut start = first.start;
        while let Some(next) = stretches.first() {
            // Stretches that follow each other without a gap are one batch.
            self.groups.clear();
            let mut end = start.max(next.start);
            start = end;
            let mut taken = 0;
            for stretch in stretches {
                if stretch.start != end {
                    break;
                }
                end = stretch.end;
                let rows = (end - stretch.start) as usize;
                self.groups
                    .resize(self.groups.len() + rows, stretch.slot as usize);
                taken += 1;
            }
            stretches = &stretches[taken..];
            let part = |array: &ArrayRef| array.slice(start as usize, (end - start) as usize);
            let mut part: Vec<ArrayRef> = arrays.iter().map(part).collect();
            let filter = if self.filtered { part.pop() } else { None };
            let filter = filter.as_ref().map(AsArray::as_boolean);
            self.accumulator
                .update_batch(&part, &self.groups, filter, self.slots)?;
            start = end;
        }
        Ok(())
    }

    fn merge(&mut self, other: Box<dyn Fold>, from: &[u32], to: &[u32]) -> Result<()> {
        let mut other: Self = same(other)?;
        if from.is_empty() {
            return Ok(());
        }
        other.fill()?;
        let from = UInt32Array::from(from.to_vec());
        let states = other.accumulator.state(EmitTo::All)?;
        let states = states.iter().map(|state| take(state, &from, None));
        let states = states.collect::<Result<Vec<_>, _>>()?;
        let groups: Vec<usize> = to.iter().map(|slot| *slot as usize).collect();
        self.accumulator.merge_batch(&states, &groups, self.slots)
    }

    fn finish(&mut self, _: Answer, slots: &[u32]) -> Result<ArrayRef> {
        if slots.is_empty() {
            return Ok(new_empty_array(self.call.field().data_type()));
        }
        self.fill()?;
        let values = self.accumulator.evaluate(EmitTo::All)?;
        Ok(take(&values, &UInt32Array::from(slots.to_vec()), None)?)
    }

    fn size(&self) -> usize {
        self.accumulator.size() + self.groups.capacity() * size_of::<usize>()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl Foreign {
    /// Tells the accumulator of slots that had no rows, by a batch without rows.
    fn fill(&mut self) -> Result<()> {
        let empty: Vec<ArrayRef> = self.kinds.iter().map(new_empty_array).collect();
        self.accumulator.update_batch(&empty, &[], None, self.slots)
    }
}
