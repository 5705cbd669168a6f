//! Summaries as values: structs of whole numbers and floats.

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, StructArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Fields, Float64Type, Int64Type};
use datafusion::common::{Result, exec_err};
use std::fmt::Debug;
use std::sync::Arc;

/// How a number of a summary is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotKind {
    /// A whole number: a count, or the nanoseconds of a time.
    Whole,
    /// A float.
    Float,
}

/// A number of a summary, whole or not, by its bits.
pub(crate) type Slot = u64;

/// What the rows of a group are reduced to.
pub(crate) trait GroupSummary: Clone + Debug + Send + Sync + 'static {
    /// The aggregate that makes it.
    const NAME: &'static str;
    /// Its numbers.
    const SLOTS: &'static [(&'static str, SlotKind)];

    /// Its numbers, in the order of [`SLOTS`](Self::SLOTS).
    fn slots(&self) -> Vec<Slot>;
    /// The summary with these numbers.
    fn from_slots(slots: &[Slot]) -> Self;
    /// The summary of the rows of both; `later` does not begin before this one.
    fn join(&self, later: &Self) -> Result<Self>;
    /// By what summaries are ordered before they are joined.
    fn start(&self) -> i64 {
        0
    }
}

/// The columns of a summary.
pub(crate) fn fields<S: GroupSummary>() -> Fields {
    let fields = S::SLOTS.iter().map(|(name, kind)| {
        let kind = match kind {
            SlotKind::Whole => DataType::Int64,
            SlotKind::Float => DataType::Float64,
        };
        Field::new(*name, kind, true)
    });
    fields.collect()
}

/// The type of a summary.
pub(crate) fn summary_type<S: GroupSummary>() -> DataType {
    DataType::Struct(fields::<S>())
}

/// Summaries as a column.
pub(crate) fn to_array<S: GroupSummary>(summaries: &[Option<S>]) -> Result<ArrayRef> {
    let rows: Vec<Option<Vec<Slot>>> = summaries
        .iter()
        .map(|summary| summary.as_ref().map(GroupSummary::slots))
        .collect();
    let columns = S::SLOTS.iter().enumerate().map(|(at, (_, kind))| {
        let slots = rows.iter().map(|row| row.as_ref().map(|row| row[at]));
        match kind {
            SlotKind::Whole => Arc::new(
                slots
                    .map(|slot| slot.map(|bits| bits as i64))
                    .collect::<Int64Array>(),
            ) as ArrayRef,
            SlotKind::Float => Arc::new(
                slots
                    .map(|slot| slot.map(f64::from_bits))
                    .collect::<Float64Array>(),
            ),
        }
    });
    let valid: NullBuffer = rows.iter().map(Option::is_some).collect();
    Ok(Arc::new(StructArray::try_new(
        fields::<S>(),
        columns.collect(),
        Some(valid),
    )?))
}

/// The summary in a row of a column; `None` if it is null.
///
/// # Errors
/// If the column holds no summaries of this kind.
pub(crate) fn from_array<S: GroupSummary>(column: &ArrayRef, row: usize) -> Result<Option<S>> {
    let Some(structs) = column.as_struct_opt() else {
        return exec_err!("{} expects its own summaries", S::NAME);
    };
    if structs.num_columns() != S::SLOTS.len() {
        return exec_err!("{} expects its own summaries", S::NAME);
    }
    if structs.is_null(row) {
        return Ok(None);
    }
    let mut slots = Vec::with_capacity(S::SLOTS.len());
    for (values, (_, kind)) in structs.columns().iter().zip(S::SLOTS) {
        let slot = match kind {
            SlotKind::Whole => {
                let values = values.as_primitive_opt::<Int64Type>();
                values
                    .filter(|values| values.is_valid(row))
                    .map(|values| values.value(row) as u64)
            }
            SlotKind::Float => {
                let values = values.as_primitive_opt::<Float64Type>();
                values
                    .filter(|values| values.is_valid(row))
                    .map(|values| values.value(row).to_bits())
            }
        };
        match slot {
            Some(slot) => slots.push(slot),
            None => return Ok(None),
        }
    }
    Ok(Some(S::from_slots(&slots)))
}

/// The summary of all of these, joined in their order.
pub(crate) fn joined<S: GroupSummary>(mut summaries: Vec<S>) -> Result<Option<S>> {
    summaries.sort_by_key(GroupSummary::start);
    let mut summaries = summaries.into_iter();
    let Some(first) = summaries.next() else {
        return Ok(None);
    };
    summaries
        .try_fold(first, |joined, next| joined.join(&next))
        .map(Some)
}
