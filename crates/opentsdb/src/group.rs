//! The series of a group, as one: at each time at which one of them has a point, the value of all.
//!
//! A series takes part from its first point to its last. Between points it takes part as the
//! function's [`Interpolation`] says; a rate holds until the next one.

use crate::aggregator::{Aggregator, AggregatorState, Interpolation};
use crate::checked_query::CheckedQuery;
use crate::reducer::SeriesPoint;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// Values of series that are looked at before the caller may stop.
const STEPS_MAX: usize = 100_000;

/// The tags that the series of a group share, and those in which they differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupTags {
    shared: BTreeMap<String, String>,
    differing: BTreeSet<String>,
}

impl GroupTags {
    /// Adds the tags of a series.
    pub fn add<'a>(&mut self, tags: impl IntoIterator<Item = (&'a str, &'a str)>) {
        for (key, value) in tags {
            if self.differing.contains(key) {
                continue;
            }
            match self.shared.get(key) {
                None => _ = self.shared.insert(key.to_owned(), value.to_owned()),
                Some(known) if known == value => {}
                Some(_) => {
                    self.shared.remove(key);
                    self.differing.insert(key.to_owned());
                }
            }
        }
    }

    /// The tags with one value, and the names of the others.
    pub fn into_parts(self) -> (BTreeMap<String, String>, Vec<String>) {
        (self.shared, self.differing.into_iter().collect())
    }
}

/// A series, and how far it was read.
#[derive(Debug)]
struct SeriesCursor {
    points: Vec<SeriesPoint>,
    next: usize,
}

/// Makes one point of those of a second, for answers with whole seconds.
#[derive(Debug)]
struct SecondMerge {
    held: Option<SecondInWork>,
    state: AggregatorState,
}

/// The points of one second.
#[derive(Clone, Copy, Debug)]
struct SecondInWork {
    second: i64,
    value: f64,
    has_many: bool,
}

/// Merges the series of a group.
#[derive(Debug)]
pub struct GroupMerge {
    series: Vec<SeriesCursor>,
    /// The time of the next point of the series that are not in `begun`, and the place of the series.
    waiting: BinaryHeap<Reverse<(i64, usize)>>,
    /// The places of the series that take part now, ascending.
    begun: Vec<usize>,
    /// The next time of one of these.
    begun_next: Option<i64>,
    /// Whether a series takes part at the times of its points only.
    only_points: bool,
    steps: usize,
    interpolation: Interpolation,
    state: AggregatorState,
    /// Whether the aggregate is that of one series as it is.
    is_plain: bool,
    range_ms: (i64, i64),
    /// `None` if the answer has milliseconds.
    seconds: Option<SecondMerge>,
}

impl GroupMerge {
    /// The merge of these series, each in the order of its times.
    pub fn new(query: &CheckedQuery, series: Vec<Vec<SeriesPoint>>) -> Self {
        let series = series.into_iter();
        let series = series.map(|points| SeriesCursor { points, next: 0 });
        let series: Vec<_> = series.collect();
        let places = series.iter().enumerate();
        let waiting =
            places.filter_map(|(place, series)| Some(Reverse((series.next_time()?, place))));
        let is_plain = query.aggregator == Aggregator::None;
        let interpolation = match query.rate {
            Some(_) => Interpolation::Previous,
            None => query.aggregator.interpolation(),
        };
        Self {
            waiting: waiting.collect(),
            series,
            begun: Vec::new(),
            begun_next: None,
            only_points: is_plain || interpolation == Interpolation::Absent,
            steps: 0,
            interpolation,
            state: AggregatorState::new(query.aggregator),
            is_plain,
            range_ms: (query.start_ms, query.end_ms),
            seconds: (!query.has_milliseconds).then(|| SecondMerge {
                held: None,
                state: AggregatorState::new(query.aggregator),
            }),
        }
    }

    /// Adds some of the next points of the group to `out`, fewer or none where many series take part;
    /// returns whether there may be more.
    pub fn next_points(&mut self, some: usize, out: &mut Vec<SeriesPoint>) -> bool {
        self.steps = 0;
        for _ in 0..some {
            if self.steps >= STEPS_MAX {
                break;
            }
            let next = self.next_time().filter(|time| *time <= self.range_ms.1);
            let Some(time_ms) = next else {
                out.extend(self.seconds.as_mut().and_then(SecondMerge::take));
                return false;
            };
            let value = self.value_at(time_ms);
            if time_ms >= self.range_ms.0 {
                let point = SeriesPoint { time_ms, value };
                match &mut self.seconds {
                    Some(seconds) => out.extend(seconds.add(point)),
                    None => out.push(point),
                }
            }
        }
        true
    }

    fn next_time(&self) -> Option<i64> {
        let waiting = self.waiting.peek().map(|Reverse((time, _))| *time);
        waiting.into_iter().chain(self.begun_next).min()
    }

    /// The aggregate at a time that is the next one of some series; moves these on.
    #[allow(
        clippy::stable_sort_primitive,
        reason = "it merges runs in linear time"
    )]
    fn value_at(&mut self, time_ms: i64) -> f64 {
        let known = self.begun.len();
        while let Some(Reverse((time, place))) = self.waiting.peek().copied()
            && time == time_ms
        {
            self.waiting.pop();
            self.begun.push(place);
        }
        if self.begun.len() > known {
            // Two ascending runs, which this sort merges.
            self.begun.sort();
        }
        self.steps += 1 + self.begun.len();
        self.state.clear();
        let (mut plain, mut next_time) = (f64::NAN, None);
        let (series, state, how) = (&mut self.series, &mut self.state, self.interpolation);
        self.begun.retain(|place| {
            let Some(series) = series.get_mut(*place) else {
                return false;
            };
            if let Some(value) = series.value_at(time_ms, how) {
                state.push(value);
                plain = value;
            }
            let Some(next) = series.next_time() else {
                series.points = Vec::new();
                return false;
            };
            next_time = Some(next_time.map_or(next, |time: i64| time.min(next)));
            true
        });
        self.begun_next = next_time;
        if self.only_points {
            self.begun_next = None;
            for place in self.begun.drain(..) {
                let next = self.series.get(place).and_then(SeriesCursor::next_time);
                self.waiting.extend(next.map(|next| Reverse((next, place))));
            }
        }
        if self.is_plain {
            plain
        } else {
            self.state.result()
        }
    }
}

impl SeriesCursor {
    fn next_time(&self) -> Option<i64> {
        self.points.get(self.next).map(|point| point.time_ms)
    }

    /// The value at a time; moves on if it is that of the next point.
    fn value_at(&mut self, time_ms: i64, interpolation: Interpolation) -> Option<f64> {
        let next = *self.points.get(self.next)?;
        if next.time_ms == time_ms {
            self.next += 1;
            return Some(next.value);
        }
        let before = self.points.get(self.next.checked_sub(1)?)?;
        match interpolation {
            Interpolation::Linear => {
                let passed = (time_ms - before.time_ms) as f64;
                let whole = (next.time_ms - before.time_ms) as f64;
                Some(before.value + passed * (next.value - before.value) / whole)
            }
            Interpolation::Zero => Some(0.0),
            Interpolation::Previous => Some(before.value),
            Interpolation::Absent => None,
        }
    }
}

impl SecondMerge {
    /// Adds a point; returns the second before, if this one begins another.
    fn add(&mut self, point: SeriesPoint) -> Option<SeriesPoint> {
        let second = point.time_ms.div_euclid(1000);
        if let Some(same) = self.held.as_mut().filter(|held| held.second == second) {
            if !same.has_many {
                same.has_many = true;
                self.state.clear();
                self.state.push(same.value);
            }
            self.state.push(point.value);
            return None;
        }
        let before = self.take();
        self.held = Some(SecondInWork {
            second,
            value: point.value,
            has_many: false,
        });
        before
    }

    /// The second that is held.
    fn take(&mut self) -> Option<SeriesPoint> {
        let held = self.held.take()?;
        let value = if held.has_many {
            self.state.result()
        } else {
            held.value
        };
        Some(SeriesPoint {
            time_ms: held.second * 1000,
            value,
        })
    }
}

#[cfg(test)]
mod tests;
