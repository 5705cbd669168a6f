//! Any other aggregate function: uses the function's own accumulator and tells it the group of each
//! row.
//!
//! An accumulator assumes that each group it hears about has had a row: if a batch has no null, it
//! marks all groups up to the greatest number as seen. Slots are laid out in advance and may never
//! have a row. So a slot gets a group of the accumulator when its first row arrives, and the result
//! of a slot without rows is that of an accumulator that has seen nothing.

use super::{FoldOutput, FoldRows, SeriesFold, SlotStatistics, same};
use arrow::array::{Array, ArrayRef, AsArray, UInt32Array, new_empty_array, new_null_array};
use arrow::compute::{concat, take};
use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use datafusion::physical_expr::GroupsAccumulatorAdapter;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// See the module documentation. Its last argument is a condition if the call has a FILTER.
pub(crate) struct AccumulatorFold {
    call: Arc<AggregateFunctionExpr>,
    /// Types of the arguments.
    kinds: Vec<DataType>,
    filtered: bool,
    accumulator: Box<dyn GroupsAccumulator>,
    /// The accumulator's group of each slot; `NONE` if the slot has had no row.
    groups: Vec<u32>,
    /// The number of groups.
    count: usize,
    /// The groups of the rows in a batch; kept to reuse its memory.
    rows: Vec<usize>,
}

/// No group.
const NONE: u32 = u32::MAX;

impl fmt::Debug for AccumulatorFold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Foreign")
            .field("call", &self.call.name())
            .finish_non_exhaustive()
    }
}

impl AccumulatorFold {
    /// Creates a fold for an aggregate call with arguments of these types; `filtered` if the
    /// condition of a FILTER follows them.
    ///
    /// # Errors
    /// If the function cannot create an accumulator.
    pub(crate) fn new(
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
            groups: Vec::new(),
            count: 0,
            rows: Vec::new(),
        })
    }

    /// The group of a slot that has a row.
    fn group(&mut self, slot: u32) -> usize {
        let group = &mut self.groups[slot as usize];
        if *group == NONE {
            *group = self.count as u32;
            self.count += 1;
        }
        *group as usize
    }

    /// The function's result for no rows.
    fn of_nothing(&self) -> Result<ArrayRef> {
        self.call.create_accumulator()?.evaluate()?.to_array()
    }
}

impl SeriesFold for AccumulatorFold {
    fn resize(&mut self, slots: usize) {
        self.groups.resize(slots, NONE);
    }

    fn can_take_page(&self, _: &SlotStatistics<'_>) -> bool {
        false
    }

    fn take_page(&mut self, _: usize, _: &SlotStatistics<'_>) {}

    fn take_rows(&mut self, rows: FoldRows<'_>) -> Result<()> {
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
            // Runs that follow each other without a gap form one batch.
            self.rows.clear();
            let mut end = start.max(next.start);
            start = end;
            let mut taken = 0;
            for stretch in stretches {
                if stretch.start != end {
                    break;
                }
                end = stretch.end;
                let rows = (end - stretch.start) as usize;
                if rows > 0 {
                    let group = self.group(stretch.slot);
                    self.rows.resize(self.rows.len() + rows, group);
                }
                taken += 1;
            }
            stretches = &stretches[taken..];
            let part = |array: &ArrayRef| array.slice(start as usize, (end - start) as usize);
            let mut part: Vec<ArrayRef> = arrays.iter().map(part).collect();
            let filter = if self.filtered { part.pop() } else { None };
            let filter = filter.as_ref().map(AsArray::as_boolean);
            self.accumulator
                .update_batch(&part, &self.rows, filter, self.count)?;
            start = end;
        }
        Ok(())
    }

    fn merge(&mut self, other: Box<dyn SeriesFold>, from: &[u32], to: &[u32]) -> Result<()> {
        let mut other: Self = same(other)?;
        // Slots without rows in the other fold need no merge.
        let (mut theirs, mut ours) = (Vec::new(), Vec::new());
        for (from, to) in from.iter().zip(to) {
            let group = other.groups[*from as usize];
            if group != NONE {
                theirs.push(group);
                ours.push(self.group(*to));
            }
        }
        if theirs.is_empty() {
            return Ok(());
        }
        let theirs = UInt32Array::from(theirs);
        let states = other.accumulator.state(EmitTo::All)?;
        let states = states.iter().map(|state| take(state, &theirs, None));
        let states = states.collect::<Result<Vec<_>, _>>()?;
        self.accumulator.merge_batch(&states, &ours, self.count)
    }

    fn finish(&mut self, _: FoldOutput, slots: &[u32]) -> Result<ArrayRef> {
        if slots.is_empty() {
            return Ok(new_empty_array(self.call.field().data_type()));
        }
        let nothing = self.of_nothing()?;
        let values = if self.count == 0 {
            nothing
        } else {
            let values = self.accumulator.evaluate(EmitTo::All)?;
            concat(&[values.as_ref(), nothing.as_ref()])?
        };
        let place = |slot: &u32| self.groups[*slot as usize].min(self.count as u32);
        let places: UInt32Array = slots.iter().map(place).map(Some).collect();
        Ok(take(&values, &places, None)?)
    }

    fn size(&self) -> usize {
        self.accumulator.size()
            + self.groups.capacity() * size_of::<u32>()
            + self.rows.capacity() * size_of::<usize>()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
