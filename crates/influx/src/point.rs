//! What flows through a statement: rows, and the points that functions make of them.

use crate::series::SeriesKey;
use crate::value::Value;
use std::sync::Arc;

/// A row of a source or of an answer.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its series.
    pub series: Arc<SeriesKey>,
    /// Its time in nanoseconds.
    pub time: i64,
    /// Its values, in the order of the columns asked for.
    pub values: Arc<[Value]>,
}

/// A value of a function, or on its way through one.
#[derive(Clone, Debug)]
pub struct Point {
    /// Its series.
    pub series: Arc<SeriesKey>,
    /// Its time in nanoseconds.
    pub time: i64,
    /// The value; null where a group is empty.
    pub value: Value,
    /// The row that it was taken from, where other columns of it may be shown.
    pub row: Option<Arc<[Value]>>,
}
