//! How far the rows of each series are apart, over a whole file.
//!
//! A time that stands still in a repeated hour means the second pass for a logger of one row an hour, and a
//! second row of the same moment for a faster one; so does a time that goes on by seconds only. The rows around
//! it do not say which: a file may begin within the hour, or a logger may have paused before it. Therefore all
//! rows of the file decide.

use std::collections::HashMap;

const HOUR_NS: u64 = 3_600_000_000_000;

/// Rows this far apart are those of a logger of one row an hour: its clock and its delays vary.
pub(crate) const HOURLY_NS: u64 = HOUR_NS / 4 * 3;

/// Distances between rows with different times.
#[derive(Clone, Copy, Debug, Default)]
struct RowDistances {
    /// The last row's time in each pass.
    last: Option<(i64, i64)>,
    /// Distances below [`HOURLY_NS`].
    short: u64,
    /// The others.
    long: u64,
    /// Rows that go on within a repeated hour; the first of an hourly logger's may be of the next pass.
    within: u64,
}

/// A distance, by what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowDistance {
    Short,
    Long,
    Within,
}

impl RowDistances {
    fn add(&mut self, distance: RowDistance) {
        match distance {
            RowDistance::Short => self.short += 1,
            RowDistance::Long => self.long += 1,
            RowDistance::Within => self.within += 1,
        }
    }

    fn is_known(&self) -> bool {
        self.short + self.long + self.within > 0
    }

    /// Whether the rows are about an hour or more apart; `None` if there is no distance, or if most are an
    /// hour and some are not.
    fn is_hourly(&self) -> Option<bool> {
        if self.short == 0 && self.long > 2 * self.within {
            return Some(true);
        }
        (self.is_known() && self.short + self.within >= self.long).then_some(false)
    }
}

/// The distances between the rows of each series, and of all together.
#[derive(Debug, Default)]
pub(crate) struct SeriesSteps {
    series: HashMap<u64, RowDistances>,
    all: RowDistances,
}

impl SeriesSteps {
    /// Adds the next row of a series, with its time in each pass.
    pub(crate) fn add(&mut self, series: u64, first: i64, second: i64) {
        let own = self.series.entry(series).or_default();
        let Some(last) = own.last.replace((first, second)) else {
            return;
        };
        let Some(distance) = distance(last, (first, second)) else {
            return;
        };
        own.add(distance);
        self.all.add(distance);
    }

    /// Whether the rows of a series are about an hour or more apart; those of the whole file decide for a
    /// series that has one time only. `None` if the file does not say.
    pub(crate) fn is_hourly(&self, series: u64) -> Option<bool> {
        let own = self.series.get(&series);
        own.filter(|own| own.is_known())
            .unwrap_or(&self.all)
            .is_hourly()
    }
}

/// The distance of two rows, each with its time in both passes; `None` if it says nothing.
fn distance(from: (i64, i64), to: (i64, i64)) -> Option<RowDistance> {
    let is_twice = |(first, second): (i64, i64)| first != second;
    if is_twice(from) && is_twice(to) && to.0.abs_diff(from.0) < HOUR_NS {
        return (to.0 > from.0).then_some(RowDistance::Within);
    }
    if from == to {
        return None;
    }
    // Which passes are meant is not known yet, so the shortest distance counts.
    let distances = [
        to.0.abs_diff(from.0),
        to.0.abs_diff(from.1),
        to.1.abs_diff(from.0),
        to.1.abs_diff(from.1),
    ];
    let is_long = distances.iter().all(|distance| *distance >= HOURLY_NS);
    Some(if is_long {
        RowDistance::Long
    } else {
        RowDistance::Short
    })
}
