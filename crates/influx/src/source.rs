//! The rows of sources, in the order in which InfluxDB reads them.

mod edge_rows;
mod extreme;
mod first_rows;
mod limited;
mod measurement;
mod merge;
mod reduced;
mod subquery;
mod tag_filter;

pub(crate) use extreme::ExtremeRows;
pub(crate) use first_rows::FirstRows;
pub(crate) use limited::LimitedRows;
pub use measurement::scan_of;
pub(crate) use measurement::{MeasurementRequest, MeasurementRows, NeededFields, ShownSeries};
pub(crate) use merge::{Concatenated, Merged, Nothing};
pub(crate) use reduced::{
    ReducedCall, ReducedFallback, ReducedInput, ReducedOperand, ReducedRequest, ReducedRows,
    can_reduce,
};
pub(crate) use subquery::SubqueryRows;

use crate::point::Row;
use crate::series::SeriesKey;
use crate::value::InfluxValueType;
use futures::future::BoxFuture;
use marigram_sql::SqlResult;
use std::cmp::Ordering;
use std::sync::Arc;

/// Rows, in batches.
pub(crate) trait RowSource: Send {
    /// The next rows, at least one; `None` at the end.
    fn next(&mut self) -> BoxFuture<'_, SqlResult<Option<Vec<Row>>>>;
}

/// A column that a source is to return.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SourceColumn {
    /// The name of a field, a tag, or a column of a subquery.
    pub name: String,
    /// The type that its values get; `None` for one that is unknown.
    pub kind: Option<InfluxValueType>,
    /// Whether a function computes with it. Tags of a table are no values of functions.
    pub is_driver: bool,
}

/// The order of rows.
#[derive(Clone, Debug)]
pub(crate) struct RowOrder {
    /// The tags by which rows are ordered, sorted by key.
    pub keys: Arc<[Arc<str>]>,
    /// From old to new, and from the smallest series to the greatest; otherwise reversed.
    pub ascending: bool,
}

impl RowOrder {
    /// Which of two rows comes first.
    pub(crate) fn compare(&self, a: (&SeriesKey, i64), b: (&SeriesKey, i64)) -> Ordering {
        let order = a.0.order_by(b.0, &self.keys).then(a.1.cmp(&b.1));
        if self.ascending {
            order
        } else {
            order.reverse()
        }
    }
}
