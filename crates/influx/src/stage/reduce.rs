//! Reduces groups of points by an aggregate or a selector.

use super::Stage;
use crate::budget::Budget;
use crate::point::Point;
use crate::reducer::{Aggregate, Reducer};
use crate::series::{Narrowing, SeriesKey, same};
use crate::window::Windows;
use std::collections::HashMap;
use std::sync::Arc;

/// An aggregate over groups of time and tags.
pub(crate) struct Reduce {
    aggregate: Aggregate,
    windows: Windows,
    /// The tags by which the whole statement groups; a change ends a group.
    outer: Narrowing,
    /// The tags by which this function groups.
    own: Narrowing,
    budget: Budget,
    current: Option<(Arc<SeriesKey>, i64, i64)>,
    groups: Vec<(Arc<SeriesKey>, Reducer)>,
    places: HashMap<Arc<SeriesKey>, usize>,
    /// The group of the last point.
    last: usize,
    held: usize,
}

impl Reduce {
    /// Creates an aggregate whose points are ordered by `outer` tags, and grouped by `own`.
    pub(crate) fn new(
        aggregate: Aggregate,
        windows: Windows,
        outer: Arc<[Arc<str>]>,
        own: Arc<[Arc<str>]>,
        budget: Budget,
    ) -> Self {
        Self {
            aggregate,
            windows,
            outer: Narrowing::new(outer),
            own: Narrowing::new(own),
            budget,
            current: None,
            groups: Vec::new(),
            places: HashMap::new(),
            last: 0,
            held: 0,
        }
    }

    /// The index of a group, which is created if it is new.
    fn place(&mut self, series: Arc<SeriesKey>) -> usize {
        if let Some((known, _)) = self.groups.get(self.last)
            && same(known, &series)
        {
            return self.last;
        }
        if let Some(place) = self.places.get(&series) {
            return *place;
        }
        let place = self.groups.len();
        let bytes = size_of::<Reducer>() + 128;
        self.held += bytes;
        self.budget.take(bytes);
        self.places.insert(Arc::clone(&series), place);
        self.groups.push((series, Reducer::new(&self.aggregate)));
        place
    }

    /// Ends a group of time.
    fn flush(&mut self, out: &mut Vec<Point>) {
        let Some((_, start, _)) = self.current.take() else {
            return;
        };
        self.places.clear();
        self.last = 0;
        let mut groups = std::mem::take(&mut self.groups);
        groups.sort_by(|(a, _), (b, _)| a.order(b));
        let begin = out.len();
        let mut own_times = false;
        for (series, reducer) in groups {
            for (time, value, row) in reducer.emit() {
                own_times |= time.is_some();
                out.push(Point {
                    series: Arc::clone(&series),
                    time: time.unwrap_or(start),
                    value,
                    row,
                });
            }
        }
        if own_times && self.aggregate.sorts_by_time() {
            out[begin..].sort_by_key(|point| point.time);
        }
        self.budget.give(self.held);
        self.held = 0;
    }
}

impl Stage for Reduce {
    fn push(&mut self, point: Point, out: &mut Vec<Point>) {
        if point.value.is_null() {
            return;
        }
        let outer = self.outer.narrow(&point.series);
        let stays = self.current.as_ref().is_some_and(|(key, start, end)| {
            point.time >= *start && point.time < *end && same(key, &outer)
        });
        if !stays {
            self.flush(out);
            let (start, end) = self.windows.window(point.time);
            self.current = Some((outer, start, end));
        }
        let series = self.own.narrow(&point.series);
        let place = self.place(series);
        self.last = place;
        if let Some((_, reducer)) = self.groups.get_mut(place) {
            let bytes = reducer.add(point);
            if bytes > 0 {
                self.held += bytes;
                self.budget.take(bytes);
            }
        }
    }

    fn finish(&mut self, out: &mut Vec<Point>) {
        self.flush(out);
    }
}
