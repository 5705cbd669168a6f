//! Folds: what is kept of the rows of each group while they are read, for one argument of one or
//! several aggregates.
//!
//! Groups have *slots*, numbers from 0 on. A fold takes rows in as stretches of an array that
//! belong to one slot each, so that its loops run over slices and know nothing of groups; and it
//! takes whole pages in by their statistics where those tell enough.

mod accumulator;
mod counts;
mod first_last;
mod numeric;
mod numeric_type;
mod variance;

pub use accumulator::AccumulatorFold;
pub use counts::CountFold;
pub use first_last::{FirstLastFold, FoldSide};
pub use numeric::{NumericFold, NumericOutputs};
pub use numeric_type::{F32, F64, I32, I64, TimeNumbers, U64};
pub use variance::VarianceFold;

use arrow::array::ArrayRef;
use datafusion::common::Result;
use marigram_engine::PageStats;
use std::any::Any;
use std::fmt::Debug;

/// Consecutive rows of one slot; where a fold goes by time, of one series, in order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotRun {
    /// The slot.
    pub slot: u32,
    /// First row.
    pub start: u32,
    /// Row behind the last one.
    pub end: u32,
}

impl SlotRun {
    /// Its rows.
    pub fn rows(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// What is known of a page's rows of one slot without reading them.
#[derive(Clone, Copy, Debug)]
pub struct SlotStatistics<'a> {
    /// How many rows.
    pub rows: u64,
    /// Whether they are all of the page, so that `stats` are theirs.
    pub whole: bool,
    /// Statistics of the argument; `None` where no row has a value.
    pub stats: Option<&'a PageStats>,
}

/// What is asked of a fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FoldOutput {
    /// Number of rows, or of values that are not null.
    Count,
    /// Sum.
    Sum,
    /// Mean.
    Avg,
    /// Least value.
    Min,
    /// Greatest value.
    Max,
    /// Variance, of a sample or not, or its root.
    Spread {
        /// Whether of a sample: divided by one less.
        sample: bool,
        /// Whether its root.
        root: bool,
    },
    /// The only thing that the fold knows.
    Value,
}

/// Rows of a page or batch as a fold takes them.
#[derive(Clone, Copy, Debug)]
pub struct FoldRows<'a> {
    /// The arguments; `None` for one of which no row has a value.
    pub args: &'a [Option<ArrayRef>],
    /// Times, ns; empty where nobody needs them.
    pub times: &'a [i64],
    /// Whose the rows are, ascending and not overlapping.
    pub stretches: &'a [SlotRun],
}

/// See the head of this file.
pub trait SeriesFold: Debug + Send {
    /// Makes room for so many slots. They only become more.
    fn resize(&mut self, slots: usize);

    /// Whether [`take_page`](Self::take_page) can take these rows in.
    fn can_take_page(&self, facts: &SlotStatistics<'_>) -> bool;

    /// Takes the rows of a page in.
    fn take_page(&mut self, slot: usize, facts: &SlotStatistics<'_>);

    /// Takes rows in.
    ///
    /// # Errors
    /// Those of a function that is not ours.
    fn take_rows(&mut self, rows: FoldRows<'_>) -> Result<()>;

    /// Takes in what another fold of the same kind knows: its slot `from[i]` is this one's `to[i]`.
    ///
    /// # Errors
    /// As [`take_rows`](Self::take_rows).
    fn merge(&mut self, other: Box<dyn SeriesFold>, from: &[u32], to: &[u32]) -> Result<()>;

    /// The answer for each of `slots`.
    ///
    /// # Errors
    /// Where the answer does not fit into its type.
    fn finish(&mut self, answer: FoldOutput, slots: &[u32]) -> Result<ArrayRef>;

    /// Memory in use, bytes.
    fn size(&self) -> usize;

    /// For [`merge`](Self::merge).
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

/// The other fold of a merge as what it is.
fn same<F: SeriesFold + 'static>(other: Box<dyn SeriesFold>) -> Result<F> {
    match other.into_any().downcast() {
        Ok(other) => Ok(*other),
        Err(_) => datafusion::common::internal_err!("folds of two kinds are merged"),
    }
}
