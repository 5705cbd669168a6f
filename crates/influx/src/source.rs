//! The rows of sources, in the order in which InfluxDB reads them.

mod measurement;
mod merge;
mod subquery;

pub use measurement::{MeasurementRequest, MeasurementRows};
pub use merge::{Concatenated, Merged, Nothing};
pub use subquery::SubqueryRows;

use crate::point::Row;
use crate::series::SeriesKey;
use crate::value::ValueType;
use futures::future::BoxFuture;
use marigram_sql::SqlResult;
use std::cmp::Ordering;
use std::sync::Arc;

/// Rows, in batches.
pub trait RowSource: Send {
    /// The next rows, at least one; `None` at the end.
    fn next(&mut self) -> BoxFuture<'_, SqlResult<Option<Vec<Row>>>>;
}

/// A column that a source is to return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceColumn {
    /// The name of a field, a tag, or a column of a subquery.
    pub name: String,
    /// The type of its values; `None` if it is unknown.
    pub kind: Option<ValueType>,
    /// Whether it is a function's input. Functions cannot use the tags of a table.
    pub is_driver: bool,
}

/// The order of rows.
#[derive(Clone, Debug)]
pub struct RowOrder {
    /// The tags by which rows are ordered, sorted by key.
    pub keys: Arc<[Arc<str>]>,
    /// From old to new, and from the smallest series to the greatest; otherwise reversed.
    pub ascending: bool,
}

impl RowOrder {
    /// Which of two rows comes first.
    pub fn compare(&self, a: (&SeriesKey, i64), b: (&SeriesKey, i64)) -> Ordering {
        let order = a.0.order_by(b.0, &self.keys).then(a.1.cmp(&b.1));
        if self.ascending {
            order
        } else {
            order.reverse()
        }
    }
}
