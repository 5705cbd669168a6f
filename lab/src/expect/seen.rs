//! The set of (series, time) that were written.

use crate::data::{Rows, Table};

/// The times of each series of each table, in order.
///
/// Except for late rows, the rows of a series arrive in the order of time, so most are appended; a
/// hash set would need four times the memory.
pub(super) struct WrittenTimes(Vec<Vec<Vec<i64>>>);

impl WrittenTimes {
    /// Nothing of `tables` yet.
    pub(super) fn new(tables: &[Table]) -> Self {
        let series = |table: &Table| vec![Vec::new(); table.series.len()];
        Self(tables.iter().map(series).collect())
    }

    /// Adds row `row` of `batch`. Returns whether it is the first one of its series and time.
    pub(super) fn insert(&mut self, batch: &Rows, row: usize) -> bool {
        let times = &mut self.0[batch.table][batch.series[row] as usize];
        let time = batch.times[row];
        if times.last().is_none_or(|newest| *newest < time) {
            times.push(time);
            return true;
        }
        match times.binary_search(&time) {
            Ok(_) => false,
            Err(place) => {
                times.insert(place, time);
                true
            }
        }
    }
}
