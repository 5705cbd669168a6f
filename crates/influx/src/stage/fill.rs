//! `fill(…)`: adds a point for each group of time that has none.

use super::{Stage, value_on_line};
use crate::budget::Budget;
use crate::point::Point;
use crate::series::{SeriesKey, same};
use crate::value::Value;
use crate::window::Windows;
use marigram_influxql::time_range::TIME_MIN_NS;
use marigram_sql::SqlError;
use std::sync::Arc;

/// The value of an empty group.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FillWith {
    /// Null, or a number.
    Value(Value),
    /// The previous value.
    Previous,
    /// The linearly interpolated value between its neighbors.
    Linear,
}

/// The largest number of groups of time of a series, and of those that a statement fills: more than the
/// seconds of a year.
const GROUPS_MAX: u64 = 50_000_000;
/// The number of filled groups whose memory is reserved at once.
const COUNTED_GROUPS: u64 = 1024;

/// Fills the groups of each series, from the statement's first to its last.
pub(crate) struct FillStage {
    windows: Windows,
    ascending: bool,
    with: FillWith,
    /// The first group in the direction of reading.
    first: i64,
    /// The last one.
    last: i64,
    budget: Budget,
    series: Option<Arc<SeriesKey>>,
    /// The next group.
    next: i64,
    zone_offset: i64,
    previous: Option<(i64, Value)>,
    filled: u64,
    /// The memory that was reserved for points that the following stage has not accounted for yet.
    taken: usize,
}

impl FillStage {
    /// Fills with `with`, in one direction of time.
    pub(crate) fn new(windows: Windows, ascending: bool, with: FillWith, budget: Budget) -> Self {
        let start = windows.window(windows.start_ns).0;
        let end = windows.window(windows.end_ns).0;
        let (first, last) = if ascending {
            (start, end)
        } else {
            (end, start)
        };
        Self {
            windows,
            ascending,
            with,
            first,
            last,
            budget,
            series: None,
            next: 0,
            zone_offset: 0,
            previous: None,
            filled: 0,
            taken: 0,
        }
    }

    fn begin(&mut self, point: &Point) {
        self.series = Some(Arc::clone(&point.series));
        self.next = if self.first == TIME_MIN_NS {
            self.windows.window(point.time).0
        } else {
            self.first
        };
        self.zone_offset = self.windows.zone_offset(self.next);
        self.previous = None;
    }

    /// Whether the next group is within the statement's range.
    const fn is_within(&self) -> bool {
        if self.ascending {
            self.next <= self.last
        } else {
            self.next >= self.last && self.last != TIME_MIN_NS
        }
    }

    /// Whether the next group precedes the group of a time.
    const fn comes_before(&self, time: i64) -> bool {
        if self.ascending {
            self.next < time
        } else {
            self.next > time
        }
    }

    /// Advances to the following group.
    fn advance(&mut self) {
        let every = self.windows.every_ns;
        self.next = if self.ascending {
            self.next.saturating_add(every)
        } else {
            self.next.saturating_sub(every)
        };
        if self.windows.zone.is_some() {
            let offset = self.windows.zone_offset(self.next.saturating_sub(1));
            if offset != self.zone_offset {
                let changed = self.zone_offset - offset;
                if changed.abs() < every {
                    self.next = self.next.saturating_add(changed);
                }
                self.zone_offset = offset;
            }
        }
    }

    /// Fails if the groups up to a time are too many: they are made in one go.
    fn check_gap(&self, until: i64) -> bool {
        let every = self.windows.every_ns.unsigned_abs().max(1);
        let gap = until.abs_diff(self.next) / every;
        let groups = self.filled.saturating_add(gap);
        let is_short = groups <= GROUPS_MAX;
        if !is_short {
            let message = format!("max-select-buckets limit exceeded: ({groups}/{GROUPS_MAX})");
            self.budget.fail(SqlError::unsupported(message));
        }
        is_short
    }

    /// Appends a point for the next group. `behind` is the point that follows in the series.
    fn fill(&mut self, behind: Option<&Point>, out: &mut Vec<Point>) -> bool {
        let Some(series) = self.series.clone() else {
            return false;
        };
        self.filled += 1;
        if self.filled.is_multiple_of(COUNTED_GROUPS) {
            if let Err(stopped) = self.budget.check_interrupt() {
                self.budget.fail(stopped);
                return false;
            }
            let bytes = COUNTED_GROUPS as usize * size_of::<Point>();
            self.taken += bytes;
            if !self.budget.take(bytes) {
                return false;
            }
        }
        let value = match (&self.with, &self.previous) {
            (FillWith::Value(value), _) | (FillWith::Previous, Some((_, value))) => value.clone(),
            (FillWith::Linear, Some((time, value))) => match behind {
                Some(behind) => {
                    let every = self.windows.every_ns;
                    let before = (time / every, value);
                    let behind = (behind.time / every, &behind.value);
                    value_on_line(self.next / every, before, behind)
                }
                None => Value::Null,
            },
            (FillWith::Previous | FillWith::Linear, None) => Value::Null,
        };
        out.push(Point {
            series,
            time: self.next,
            value,
            row: None,
        });
        self.advance();
        true
    }

    fn end_series(&mut self, out: &mut Vec<Point>) {
        while self.series.is_some() && self.is_within() {
            if !self.fill(None, out) {
                return;
            }
        }
    }
}

impl Stage for FillStage {
    fn push(&mut self, point: Point, out: &mut Vec<Point>) {
        self.budget.give(std::mem::take(&mut self.taken));
        if !self
            .series
            .as_ref()
            .is_some_and(|known| same(known, &point.series))
        {
            self.end_series(out);
            self.begin(&point);
            // Without a first time, groups are filled backwards only as far as there are rows.
            if self.last != TIME_MIN_NS && !self.check_gap(self.last) {
                return;
            }
        }
        while self.comes_before(point.time) {
            if !self.fill(Some(&point), out) {
                return;
            }
        }
        self.previous = Some((point.time, point.value.clone()));
        out.push(point);
        self.advance();
    }

    fn finish(&mut self, out: &mut Vec<Point>) {
        self.end_series(out);
        self.series = None;
    }
}
