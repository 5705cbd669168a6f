//! The data that passes through a statement: rows, and the points that functions compute from them.

use crate::series::SeriesKey;
use crate::value::Value;
use std::sync::Arc;

/// A row of a source or of an answer.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// Its series.
    pub series: Arc<SeriesKey>,
    /// Its time in nanoseconds.
    pub time: i64,
    /// Its values, in the order of the requested columns.
    pub values: Arc<[Value]>,
}

/// A value that a function has computed or is to process.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    /// Its series.
    pub series: Arc<SeriesKey>,
    /// Its time in nanoseconds.
    pub time: i64,
    /// The value; null if a group is empty.
    pub value: Value,
    /// The row from which it was taken, if other columns of it may be shown.
    pub row: Option<Arc<[Value]>>,
}
