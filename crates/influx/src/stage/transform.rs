//! Transformations: compute each point from it and the preceding points.

use super::{Stage, on_line};
use crate::budget::Budget;
use crate::point::Point;
use crate::series::{Narrowing, SeriesKey, same};
use crate::value::Value;
use crate::window::Windows;
use marigram_influxql::time_range::TIME_MIN_NS;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// A transformation.
#[derive(Clone, Debug)]
pub(crate) enum Transform {
    /// `derivative` per unit of time.
    Derivative {
        /// The unit of time, ns.
        unit_ns: i64,
        /// Whether to leave out decreases.
        non_negative: bool,
        /// The direction of reading.
        ascending: bool,
    },
    /// `difference`
    Difference {
        /// Whether to leave out decreases.
        non_negative: bool,
    },
    /// `elapsed` in units of time.
    Elapsed {
        /// The unit of time.
        unit_ns: i64,
    },
    /// `moving_average` of this number of points.
    MovingAverage(usize),
    /// `cumulative_sum`
    CumulativeSum,
    /// `integral` per unit of time.
    Integral {
        /// The unit of time.
        unit_ns: i64,
        /// The groups of time.
        windows: Windows,
        /// The direction of reading.
        ascending: bool,
    },
}

/// The state of a transformation for one series.
#[derive(Debug, Default)]
struct TransformState {
    previous: Option<(i64, Value)>,
    values: VecDeque<Value>,
    sum: Value,
    window: (i64, i64),
}

/// Applies a transformation to each series.
pub(crate) struct TransformStage {
    transform: Transform,
    own: Narrowing,
    budget: Budget,
    states: Vec<(Arc<SeriesKey>, TransformState)>,
    places: HashMap<Arc<SeriesKey>, usize>,
    last: usize,
}

impl TransformStage {
    /// Creates a transformation of series by these tags.
    pub(crate) fn new(transform: Transform, own: Arc<[Arc<str>]>, budget: Budget) -> Self {
        Self {
            transform,
            own: Narrowing::new(own),
            budget,
            states: Vec::new(),
            places: HashMap::new(),
            last: 0,
        }
    }

    fn place(&mut self, series: &Arc<SeriesKey>) -> usize {
        if let Some((known, _)) = self.states.get(self.last)
            && same(known, series)
        {
            return self.last;
        }
        if let Some(place) = self.places.get(series) {
            return *place;
        }
        let place = self.states.len();
        self.budget.take(size_of::<TransformState>() + 128);
        self.places.insert(Arc::clone(series), place);
        self.states
            .push((Arc::clone(series), TransformState::default()));
        place
    }
}

impl Stage for TransformStage {
    fn push(&mut self, point: Point, out: &mut Vec<Point>) {
        if point.value.is_null() {
            return;
        }
        let series = self.own.narrow(&point.series);
        let place = self.place(&series);
        self.last = place;
        let Some((_, state)) = self.states.get_mut(place) else {
            return;
        };
        let held = state.values.len();
        let given = state.add(&self.transform, point.time, &point.value);
        // `moving_average` holds as many points as the statement says.
        if state.values.len() > held {
            self.budget.take(size_of::<Value>());
        }
        out.extend(given.map(|(time, value)| Point {
            series,
            time,
            value,
            row: None,
        }));
    }

    fn finish(&mut self, out: &mut Vec<Point>) {
        if !matches!(self.transform, Transform::Integral { .. }) {
            return;
        }
        let mut states = std::mem::take(&mut self.states);
        states.sort_by(|(a, _), (b, _)| a.order(b));
        for (series, state) in states {
            if let Some((time, _)) = state.previous
                && time != state.window.0
            {
                out.push(Point {
                    series,
                    time: state.window.0,
                    value: Value::Float(state.sum.as_f64().unwrap_or(0.0)),
                    row: None,
                });
            }
        }
    }
}

impl TransformState {
    fn add(&mut self, transform: &Transform, time: i64, value: &Value) -> Option<(i64, Value)> {
        match transform {
            Transform::Derivative {
                unit_ns,
                non_negative,
                ascending,
            } => {
                let (before, previous) = self.step(time, value)?;
                let difference = difference_f64(value, &previous)?;
                if *non_negative && difference < 0.0 {
                    return None;
                }
                let elapsed = time.wrapping_sub(before) as f64;
                let elapsed = if *ascending { elapsed } else { -elapsed };
                Some((time, Value::Float(difference / (elapsed / *unit_ns as f64))))
            }
            Transform::Difference { non_negative } => {
                let (_, previous) = self.step(time, value)?;
                let difference = match (value, &previous) {
                    (Value::Integer(a), Value::Integer(b)) => Value::Integer(a.wrapping_sub(*b)),
                    (Value::Unsigned(a), Value::Unsigned(b)) => Value::Unsigned(a.wrapping_sub(*b)),
                    (a, b) => Value::Float(a.as_f64()? - b.as_f64()?),
                };
                let falls = value.order(&previous).is_lt();
                (!(*non_negative && falls)).then_some((time, difference))
            }
            Transform::Elapsed { unit_ns } => {
                let before = self.previous.replace((time, Value::Null));
                let elapsed = time.wrapping_sub(before?.0) / (*unit_ns).max(1);
                Some((time, Value::Integer(elapsed)))
            }
            Transform::MovingAverage(count) => self.average(*count, time, value),
            Transform::CumulativeSum => {
                self.sum = match (&self.sum, value) {
                    (Value::Null, value) => value.clone(),
                    (Value::Integer(a), Value::Integer(b)) => Value::Integer(a.wrapping_add(*b)),
                    (Value::Unsigned(a), Value::Unsigned(b)) => Value::Unsigned(a.wrapping_add(*b)),
                    (a, b) => Value::Float(a.as_f64()? + b.as_f64()?),
                };
                Some((time, self.sum.clone()))
            }
            Transform::Integral {
                unit_ns,
                windows,
                ascending,
            } => self.integrate(*unit_ns, windows, *ascending, time, value),
        }
    }

    /// The point before this one; further points with the same time do not replace it.
    fn step(&mut self, time: i64, value: &Value) -> Option<(i64, Value)> {
        if self
            .previous
            .as_ref()
            .is_some_and(|(known, _)| *known == time)
        {
            return None;
        }
        self.previous.replace((time, value.clone()))
    }

    fn average(&mut self, count: usize, time: i64, value: &Value) -> Option<(i64, Value)> {
        let plus = |sum: &Value, value: &Value, sign: i64| match (sum, value) {
            (Value::Null, value) => value.clone(),
            (Value::Integer(a), Value::Integer(b)) => {
                Value::Integer(a.wrapping_add(b.wrapping_mul(sign)))
            }
            (a, b) => {
                let (a, b) = (a.as_f64().unwrap_or(0.0), b.as_f64().unwrap_or(0.0));
                Value::Float(a + b * sign as f64)
            }
        };
        if self.values.len() == count
            && let Some(oldest) = self.values.pop_front()
        {
            self.sum = plus(&self.sum, &oldest, -1);
        }
        self.values.push_back(value.clone());
        self.sum = plus(&self.sum, value, 1);
        if self.values.len() < count {
            return None;
        }
        Some((time, Value::Float(self.sum.as_f64()? / count as f64)))
    }

    fn integrate(
        &mut self,
        unit_ns: i64,
        windows: &Windows,
        ascending: bool,
        time: i64,
        value: &Value,
    ) -> Option<(i64, Value)> {
        // InfluxDB computes floats and integers by different rules.
        let is_float = matches!(value, Value::Float(_));
        let value = value.as_f64()?;
        let window = |time: i64| {
            let (start, end) = windows.window(time);
            if ascending {
                (start, end)
            } else {
                (end, start)
            }
        };
        let Some((before, previous)) = self.previous.replace((time, Value::Float(value))) else {
            let (start, end) = window(time);
            let none = start == TIME_MIN_NS || (is_float && !windows.is_grouped());
            self.window = (if none { 0 } else { start }, end);
            self.sum = Value::Float(0.0);
            return None;
        };
        let (mut before, mut previous) = (before, previous.as_f64()?);
        if before == time {
            return None;
        }
        let unit = unit_ns as f64;
        let mut sum = self.sum.as_f64().unwrap_or(0.0);
        let mut value = value;
        let (start, end) = self.window;
        let leaves = if ascending { time >= end } else { time <= end };
        let leaves = leaves && windows.is_grouped();
        let mut given = None;
        if leaves {
            if before != end {
                let at_end = on_line(end, (before, previous), (time, value));
                sum += 0.5 * (at_end + previous) * (end.wrapping_sub(before) as f64 / unit);
                before = end;
                if is_float {
                    previous = at_end;
                } else {
                    value = at_end;
                }
            }
            given = Some((start, Value::Float(sum)));
            self.window = window(time);
            sum = 0.0;
        }
        sum += 0.5 * (value + previous) * (time.wrapping_sub(before) as f64 / unit);
        self.sum = Value::Float(sum);
        given
    }
}

fn difference_f64(value: &Value, previous: &Value) -> Option<f64> {
    Some(match (value, previous) {
        (Value::Integer(a), Value::Integer(b)) => a.wrapping_sub(*b) as f64,
        (Value::Unsigned(a), Value::Unsigned(b)) if a >= b => (a - b) as f64,
        (Value::Unsigned(a), Value::Unsigned(b)) => -((b - a) as f64),
        (a, b) => a.as_f64()? - b.as_f64()?,
    })
}

#[cfg(test)]
#[path = "transform_tests.rs"]
mod tests;
