//! Folds: the states of all groups while rows are read, for one argument of one or several
//! aggregates.
//!
//! Groups have *slots*, which are numbers from 0 on. A fold takes rows as runs of an array that
//! belong to one slot each, so that its loops process slices and know nothing about groups. It
//! takes whole pages by their statistics if these suffice.

mod accumulator;
mod counts;
mod first_last;
mod numeric;
mod numeric_type;
mod variance;

pub(super) use accumulator::AccumulatorFold;
pub(super) use counts::CountFold;
pub(super) use first_last::FirstLastFold;
pub(super) use numeric::{NumericFold, NumericOutputs};
pub(super) use numeric_type::{F32, F64, I32, I64, TimeNumbers, U64};
pub(super) use variance::VarianceFold;

use arrow::array::ArrayRef;
use datafusion::common::Result;
use marigram_engine::PageStats;
use marigram_functions::NumericResult;
use std::any::Any;
use std::fmt::Debug;

/// Consecutive rows of one slot; for folds that depend on time, of one series, in order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlotRun {
    /// The slot.
    pub slot: u32,
    /// First row.
    pub start: u32,
    /// The row after the last one.
    pub end: u32,
}

impl SlotRun {
    /// The rows of the run.
    pub(super) fn rows(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// Facts about a page's rows of one slot, known without reading them.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotStatistics<'a> {
    /// The number of rows.
    pub rows: u64,
    /// Whether these are all rows of the page, so that `stats` apply to them.
    pub whole: bool,
    /// The statistics of the argument; `None` if no row has a value.
    pub stats: Option<&'a PageStats>,
}

/// A result that a fold can produce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum FoldOutput {
    /// Number of rows, or of values that are not null.
    Count,
    /// A result of the fold of numbers.
    Number(NumericResult),
    /// Variance or standard deviation, of a sample or a population.
    Variance {
        /// Whether it is of a sample: divided by one less.
        sample: bool,
        /// Whether it is the square root.
        root: bool,
    },
    /// The only result of the fold.
    Value,
}

/// The rows of a page or batch, in the form that folds take.
#[derive(Clone, Copy, Debug)]
pub(super) struct FoldRows<'a> {
    /// The arguments; `None` for an argument without any value.
    pub args: &'a [Option<ArrayRef>],
    /// Times, ns; empty if no fold needs them.
    pub times: &'a [i64],
    /// The runs of rows with their slots, ascending and not overlapping.
    pub stretches: &'a [SlotRun],
}

/// See the module documentation.
pub(super) trait SeriesFold: Debug + Send {
    /// Makes room for this many slots. The number never shrinks.
    fn resize(&mut self, slots: usize);

    /// Whether [`take_page`](Self::take_page) can process these rows.
    fn can_take_page(&self, facts: &SlotStatistics<'_>) -> bool;

    /// Processes the rows of a page by their statistics.
    fn take_page(&mut self, slot: usize, facts: &SlotStatistics<'_>);

    /// Processes rows.
    ///
    /// # Errors
    /// The errors of a function that is not ours.
    fn take_rows(&mut self, rows: FoldRows<'_>) -> Result<()>;

    /// Merges another fold of the same kind: its slot `from[i]` is this one's `to[i]`.
    ///
    /// # Errors
    /// Those of [`take_rows`](Self::take_rows).
    fn merge(&mut self, other: Box<dyn SeriesFold>, from: &[u32], to: &[u32]) -> Result<()>;

    /// The result for each of `slots`.
    ///
    /// # Errors
    /// If a result does not fit its type.
    fn finish(&mut self, answer: FoldOutput, slots: &[u32]) -> Result<ArrayRef>;

    /// Memory in use, bytes.
    fn size(&self) -> usize;

    /// For [`merge`](Self::merge).
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

/// Downcasts the other fold of a merge.
fn same<F: SeriesFold + 'static>(other: Box<dyn SeriesFold>) -> Result<F> {
    match other.into_any().downcast() {
        Ok(other) => Ok(*other),
        Err(_) => datafusion::common::internal_err!("folds of two kinds are merged"),
    }
}
