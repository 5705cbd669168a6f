//! Consecutive stages that process points.
//!
//! A stage receives points in the order of its source: by measurement, by the tags by which the
//! whole statement groups, by time. Its output has that order, too.

mod fill;
mod reduce;
mod transform;

pub(crate) use fill::{FillStage, FillWith};
pub(crate) use reduce::Reduce;
pub(crate) use transform::{Transform, TransformStage};

use crate::point::Point;
use crate::reducer::Aggregate;
use crate::series::{SeriesKey, same};
use crate::value::Value;
use crate::window::Windows;
use marigram_influxql::time_range::TIME_MIN_NS;
use std::sync::Arc;

/// One step of a function.
pub(crate) trait Stage: Send {
    /// Processes a point; appends the resulting points.
    fn push(&mut self, point: Point, out: &mut Vec<Point>);

    /// Ends the input; appends the points that were held back.
    fn finish(&mut self, out: &mut Vec<Point>);
}

/// What a function does with rows that are not within its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutsideRows {
    /// They are for other functions.
    Skip,
    /// They count: a group of a subquery has the time at which it starts, which may be earlier than
    /// its rows.
    Take,
    /// The function reads no further: they are in none of its groups.
    End,
    /// One was read.
    Ended,
}

/// The stages of one function, and the times of the source that they see.
pub(crate) struct Chain {
    /// The input column.
    pub driver: usize,
    /// The first time, included.
    pub start_ns: i64,
    /// The last time, included.
    pub end_ns: i64,
    /// Whether its first stage makes one group of all times of the statement.
    pub is_one_group: bool,
    /// What becomes of rows before the first time and after the last.
    pub outside: OutsideRows,
    /// Whether points carry their rows.
    pub keeps_rows: bool,
    /// The aggregate, if the first stage is one over the groups of the SELECT.
    pub reduces: Option<Aggregate>,
    /// The stages.
    pub stages: Vec<Box<dyn Stage>>,
}

impl Chain {
    /// Prepares for rows of subqueries that read the rows of a range.
    pub(crate) fn read_subqueries(&mut self, range: (i64, i64)) {
        if (self.start_ns, self.end_ns) == range {
            self.outside = if self.is_one_group {
                OutsideRows::End
            } else {
                OutsideRows::Take
            };
        }
    }

    /// Prepares for rows that are groups already, with the value of this function at `place`.
    pub(crate) fn read_groups(&mut self, place: usize) {
        self.driver = place;
        self.outside = OutsideRows::Take;
        self.stages.remove(0);
    }

    /// Processes a row of the source.
    pub(crate) fn push(&mut self, row: &crate::point::Row, out: &mut Vec<Point>) {
        if self.outside == OutsideRows::Ended {
            return;
        }
        if row.time < self.start_ns || row.time > self.end_ns {
            match self.outside {
                OutsideRows::Take => {}
                OutsideRows::End => {
                    self.outside = OutsideRows::Ended;
                    return;
                }
                OutsideRows::Skip | OutsideRows::Ended => return,
            }
        }
        let value = row.values.get(self.driver).cloned().unwrap_or_default();
        if value.is_null() {
            return;
        }
        let point = Point {
            series: Arc::clone(&row.series),
            time: row.time,
            value,
            row: self.keeps_rows.then(|| Arc::clone(&row.values)),
        };
        feed(&mut self.stages, point, out);
    }

    /// Ends the input.
    pub(crate) fn finish(&mut self, out: &mut Vec<Point>) {
        for place in 0..self.stages.len() {
            let mut last = Vec::new();
            let (before, behind) = self.stages.split_at_mut(place + 1);
            if let Some(stage) = before.last_mut() {
                stage.finish(&mut last);
            }
            for point in last {
                feed(behind, point, out);
            }
        }
    }
}

fn feed(stages: &mut [Box<dyn Stage>], point: Point, out: &mut Vec<Point>) {
    let Some((first, rest)) = stages.split_first_mut() else {
        out.push(point);
        return;
    };
    let mut given = Vec::new();
    first.push(point, &mut given);
    for point in given {
        feed(rest, point, out);
    }
}

/// Gives each point the start time of its group.
pub(crate) struct GroupTimes(pub Windows);

impl Stage for GroupTimes {
    fn push(&mut self, mut point: Point, out: &mut Vec<Point>) {
        point.time = match self.0.window(point.time).0 {
            TIME_MIN_NS => 0,
            start => start,
        };
        out.push(point);
    }

    fn finish(&mut self, _: &mut Vec<Point>) {}
}

/// LIMIT and OFFSET for the points of each series.
#[derive(Debug)]
pub(crate) struct Limit {
    rows_max: u64,
    offset: u64,
    seen: u64,
    series: Option<Arc<SeriesKey>>,
}

impl Limit {
    /// A limit (0 for none) after an offset.
    pub(crate) const fn new(limit: u64, offset: u64) -> Self {
        Self {
            rows_max: limit,
            offset,
            seen: 0,
            series: None,
        }
    }

    /// Whether the next point of a series is within the limit.
    pub(crate) fn admits(&mut self, series: &Arc<SeriesKey>) -> bool {
        if !self
            .series
            .as_ref()
            .is_some_and(|known| same(known, series))
        {
            self.series = Some(Arc::clone(series));
            self.seen = 0;
        }
        self.seen += 1;
        self.seen > self.offset && (self.rows_max == 0 || self.seen - self.offset <= self.rows_max)
    }

    /// Whether no further point of the current series is within the limit.
    pub(crate) const fn is_reached(&self) -> bool {
        self.rows_max > 0 && self.seen >= self.offset.saturating_add(self.rows_max)
    }
}

impl Stage for Limit {
    fn push(&mut self, point: Point, out: &mut Vec<Point>) {
        if self.admits(&point.series) {
            out.push(point);
        }
    }

    fn finish(&mut self, _: &mut Vec<Point>) {}
}

/// The linearly interpolated value between two points at a time.
pub(crate) fn on_line(time: i64, before: (i64, f64), behind: (i64, f64)) -> f64 {
    let slope = (behind.1 - before.1) / (behind.0.wrapping_sub(before.0)) as f64;
    slope * (time.wrapping_sub(before.0)) as f64 + before.1
}

/// The same for values of one type.
pub(crate) fn value_on_line(time: i64, before: (i64, &Value), behind: (i64, &Value)) -> Value {
    let (Some(a), Some(b)) = (before.1.as_f64(), behind.1.as_f64()) else {
        return Value::Null;
    };
    let value = on_line(time, (before.0, a), (behind.0, b));
    match before.1 {
        Value::Integer(_) => Value::Integer(value as i64),
        Value::Unsigned(_) => Value::Unsigned(value as u64),
        _ => Value::Float(value),
    }
}
