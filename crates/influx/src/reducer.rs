//! Aggregates and selectors: the result of each for the points of one group.

mod emit;

use crate::point::Point;
use crate::value::{InfluxValueType, Value};
use emit::emit_points;
use std::cmp::Ordering;
use std::sync::Arc;

/// A function over the points of a group.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Aggregate {
    /// `count`
    Count,
    /// `sum`
    Sum,
    /// `mean`
    Mean,
    /// `min`
    Min,
    /// `max`
    Max,
    /// `first`
    First,
    /// `last`
    Last,
    /// `median`
    Median,
    /// `mode`
    Mode,
    /// `stddev`
    Stddev,
    /// `spread`
    Spread,
    /// `percentile`, with its percentage.
    Percentile(f64),
    /// `distinct`
    Distinct,
    /// The given number of greatest values.
    Top(usize),
    /// The given number of smallest values.
    Bottom(usize),
    /// The given number of random points.
    Sample(usize),
}

impl Aggregate {
    /// The aggregate with a name and without further arguments.
    pub(crate) fn simple(name: &str) -> Option<Self> {
        Some(match name {
            "count" => Self::Count,
            "sum" => Self::Sum,
            "mean" => Self::Mean,
            "min" => Self::Min,
            "max" => Self::Max,
            "first" => Self::First,
            "last" => Self::Last,
            "median" => Self::Median,
            "mode" => Self::Mode,
            "stddev" => Self::Stddev,
            "spread" => Self::Spread,
            _ => return None,
        })
    }

    /// Whether it takes values of a type.
    pub(crate) const fn takes(&self, kind: InfluxValueType) -> bool {
        match self {
            Self::Count
            | Self::First
            | Self::Last
            | Self::Mode
            | Self::Distinct
            | Self::Sample(_) => true,
            Self::Min | Self::Max => kind.is_number() || matches!(kind, InfluxValueType::Boolean),
            _ => kind.is_number(),
        }
    }

    /// Whether its points keep their own times, by which the points of a group are sorted.
    pub(crate) const fn sorts_by_time(&self) -> bool {
        matches!(
            self,
            Self::Percentile(_)
                | Self::Top(_)
                | Self::Bottom(_)
                | Self::Sample(_)
                | Self::Distinct
                | Self::Mode
                | Self::Median
        )
    }
}

/// The state of an aggregate over one group.
#[derive(Debug)]
pub(crate) struct Reducer {
    aggregate: Aggregate,
    state: ReducerState,
}

#[derive(Debug)]
enum ReducerState {
    Count(i64),
    Sum(Value),
    Mean(Value, u64),
    Spread(Value, Value),
    Selected(Option<Point>),
    Points(Vec<Point>),
    Sampled {
        points: Vec<Point>,
        seen: u64,
        random: u64,
    },
}

/// The result of an aggregate: its own time, if it has one, the value, and the row from which it
/// comes.
pub(crate) type Emitted = (Option<i64>, Value, Option<Arc<[Value]>>);

impl Reducer {
    /// The state of an aggregate without points.
    pub(crate) fn new(aggregate: &Aggregate) -> Self {
        let state = match aggregate {
            Aggregate::Count => ReducerState::Count(0),
            Aggregate::Sum => ReducerState::Sum(Value::Null),
            Aggregate::Mean => ReducerState::Mean(Value::Null, 0),
            Aggregate::Spread => ReducerState::Spread(Value::Null, Value::Null),
            Aggregate::Min | Aggregate::Max | Aggregate::First | Aggregate::Last => {
                ReducerState::Selected(None)
            }
            Aggregate::Sample(_) => ReducerState::Sampled {
                points: Vec::new(),
                seen: 0,
                random: 0x9e37_79b9_7f4a_7c15,
            },
            _ => ReducerState::Points(Vec::new()),
        };
        Self {
            aggregate: aggregate.clone(),
            state,
        }
    }

    /// Adds a point; returns by how many bytes the state grew.
    pub(crate) fn add(&mut self, point: Point) -> usize {
        match &mut self.state {
            ReducerState::Count(count) => *count += 1,
            ReducerState::Sum(sum) => *sum = plus(sum, &point.value),
            ReducerState::Mean(sum, count) => {
                *sum = plus(sum, &point.value);
                *count += 1;
            }
            ReducerState::Spread(min, max) => {
                if min.is_null() || point.value.order(min).is_lt() {
                    *min = point.value.clone();
                }
                if max.is_null() || point.value.order(max).is_gt() {
                    *max = point.value;
                }
            }
            ReducerState::Selected(best) => {
                let better = best
                    .as_ref()
                    .is_none_or(|best| replaces(&self.aggregate, best, &point));
                if better {
                    *best = Some(point);
                }
            }
            ReducerState::Points(points) => {
                if let Aggregate::Top(most) | Aggregate::Bottom(most) = self.aggregate
                    && points.len() >= most
                {
                    let worst = (0..points.len())
                        .min_by(|a, b| rank(&self.aggregate, &points[*a], &points[*b]));
                    if let Some(worst) = worst
                        && rank(&self.aggregate, &points[worst], &point).is_lt()
                    {
                        points[worst] = point;
                    }
                    return 0;
                }
                let bytes = size_of::<Point>() + point.value.heap_bytes();
                points.push(point);
                return bytes;
            }
            ReducerState::Sampled {
                points,
                seen,
                random,
            } => {
                let Aggregate::Sample(most) = self.aggregate else {
                    return 0;
                };
                *seen += 1;
                if points.len() < most {
                    points.push(point);
                    return size_of::<Point>();
                }
                // A reservoir: each point is kept with the same probability.
                *random ^= *random << 13;
                *random ^= *random >> 7;
                *random ^= *random << 17;
                let place = usize::try_from(*random % *seen).unwrap_or(usize::MAX);
                if let Some(kept) = points.get_mut(place) {
                    *kept = point;
                }
            }
        }
        0
    }

    /// The aggregate's points.
    pub(crate) fn emit(self) -> Vec<Emitted> {
        let at_start = |value: Value| vec![(None, value, None)];
        let own = |point: Point| (Some(point.time), point.value, point.row);
        match self.state {
            ReducerState::Count(count) => at_start(Value::Integer(count)),
            ReducerState::Sum(sum) => at_start(sum),
            ReducerState::Mean(sum, count) => at_start(Value::Float(
                sum.as_f64().unwrap_or(f64::NAN) / count as f64,
            )),
            ReducerState::Spread(min, max) => at_start(minus(&max, &min)),
            ReducerState::Selected(point) => point.map(own).into_iter().collect(),
            ReducerState::Sampled { mut points, .. } => {
                points.sort_by_key(|point| point.time);
                points.into_iter().map(own).collect()
            }
            ReducerState::Points(points) => emit_points(&self.aggregate, points),
        }
    }
}

fn plus(sum: &Value, value: &Value) -> Value {
    match (sum, value) {
        (Value::Null, value) => value.clone(),
        (Value::Float(a), Value::Float(b)) => Value::Float(a + b),
        (Value::Integer(a), Value::Integer(b)) => Value::Integer(a.wrapping_add(*b)),
        (Value::Unsigned(a), Value::Unsigned(b)) => Value::Unsigned(a.wrapping_add(*b)),
        (a, b) => match (a.as_f64(), b.as_f64()) {
            (Some(a), Some(b)) => Value::Float(a + b),
            _ => a.clone(),
        },
    }
}

/// The difference of two numbers of one type; otherwise null.
pub(crate) fn minus(max: &Value, min: &Value) -> Value {
    match (max, min) {
        (Value::Float(a), Value::Float(b)) => Value::Float(a - b),
        (Value::Integer(a), Value::Integer(b)) => Value::Integer(a.wrapping_sub(*b)),
        (Value::Unsigned(a), Value::Unsigned(b)) => Value::Unsigned(a.wrapping_sub(*b)),
        _ => Value::Null,
    }
}

/// Whether a selector replaces `best` with `point`.
fn replaces(aggregate: &Aggregate, best: &Point, point: &Point) -> bool {
    let time = point.time.cmp(&best.time);
    let value = point.value.order(&best.value);
    let is_boolean = matches!(point.value, Value::Boolean(_));
    match aggregate {
        Aggregate::Min => value.is_lt() || (value.is_eq() && time.is_lt()),
        Aggregate::Max => value.is_gt() || (value.is_eq() && time.is_lt()),
        Aggregate::First if is_boolean => time.is_lt() || (time.is_eq() && value.is_lt()),
        Aggregate::First => time.is_lt() || (time.is_eq() && value.is_gt()),
        Aggregate::Last => time.is_gt() || (time.is_eq() && value.is_gt()),
        _ => false,
    }
}

/// The order in which `top` and `bottom` prefer points: the worse point is less.
fn rank(aggregate: &Aggregate, a: &Point, b: &Point) -> Ordering {
    let value = match aggregate {
        Aggregate::Bottom(_) => b.value.order(&a.value),
        _ => a.value.order(&b.value),
    };
    value.then_with(|| b.time.cmp(&a.time))
}
