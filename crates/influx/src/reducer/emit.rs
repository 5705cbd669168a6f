//! The results of aggregates that need all points of a group.

use super::{Aggregate, Emitted, rank};
use crate::point::Point;
use crate::value::Value;

/// The points of an aggregate that needs all of them.
pub(super) fn emit_points(aggregate: &Aggregate, mut points: Vec<Point>) -> Vec<Emitted> {
    let own = |point: Point| (Some(point.time), point.value, point.row);
    match aggregate {
        Aggregate::Top(_) | Aggregate::Bottom(_) => {
            points.sort_by(|a, b| rank(aggregate, b, a));
            points.into_iter().map(own).collect()
        }
        Aggregate::Percentile(percent) => {
            let count = points.len();
            let place = (count as f64 * percent / 100.0 + 0.5).floor() - 1.0;
            if place < 0.0 || place >= count as f64 {
                return Vec::new();
            }
            points.sort_by(|a, b| a.value.order(&b.value));
            vec![own(points.swap_remove(place as usize))]
        }
        Aggregate::Distinct => distinct(points),
        Aggregate::Median => median(points),
        Aggregate::Mode => mode(points),
        Aggregate::Stddev => vec![(None, Value::Float(stddev(&points)), None)],
        _ => Vec::new(),
    }
}

/// The point of each value that was read first, by time and value.
fn distinct(points: Vec<Point>) -> Vec<Emitted> {
    let mut first: Vec<Point> = Vec::new();
    let mut sorted = points;
    sorted.sort_by(|a, b| a.value.order(&b.value));
    for point in sorted {
        if first
            .last()
            .is_none_or(|last| last.value.order(&point.value).is_ne())
        {
            first.push(point);
        }
    }
    first.sort_by(|a, b| a.time.cmp(&b.time).then(a.value.order(&b.value)));
    let emitted = first.into_iter();
    emitted
        .map(|point| (Some(point.time), point.value, None))
        .collect()
}

fn median(mut points: Vec<Point>) -> Vec<Emitted> {
    let count = points.len();
    if count == 1 {
        return points
            .pop()
            .map(|point| {
                let is_float = matches!(point.value, Value::Float(_));
                let value = point.value.as_f64().map_or(Value::Null, Value::Float);
                // For floats, the point itself is returned, with its time.
                (is_float.then_some(point.time), value, point.row)
            })
            .into_iter()
            .collect();
    }
    points.sort_by(|a, b| a.value.order(&b.value));
    let number = |place: usize| points.get(place).and_then(|point| point.value.as_f64());
    let middle = number(count / 2).unwrap_or(f64::NAN);
    let value = if count.is_multiple_of(2) {
        let low = number(count / 2 - 1).unwrap_or(f64::NAN);
        low + (middle - low) / 2.0
    } else {
        middle
    };
    vec![(None, Value::Float(value), None)]
}

/// The most frequent value; if there are several, the one seen first.
fn mode(mut points: Vec<Point>) -> Vec<Emitted> {
    if points.len() == 1 {
        return points
            .pop()
            .map(|point| (Some(point.time), point.value, point.row))
            .into_iter()
            .collect();
    }
    if let Some(Value::Boolean(_)) = points.first().map(|point| &point.value) {
        let yes = points
            .iter()
            .filter(|point| point.value == Value::Boolean(true))
            .count();
        let value = Value::Boolean(yes >= points.len() - yes);
        return vec![(None, value, None)];
    }
    points.sort_by(|a, b| a.value.order(&b.value));
    let Some(first) = points.first() else {
        return Vec::new();
    };
    let (mut most, mut most_time) = (first.value.clone(), first.time);
    let (mut current, mut current_time) = (most.clone(), most_time);
    let (mut most_count, mut count) = (0u64, 0u64);
    for point in &points {
        if point.value.order(&current).is_ne() {
            count = 1;
            current = point.value.clone();
            current_time = point.time;
            continue;
        }
        count += 1;
        if most_count > count || (most_count == count && current_time > most_time) {
            continue;
        }
        most_count = count;
        most = point.value.clone();
        most_time = point.time;
    }
    vec![(None, most, None)]
}

fn stddev(points: &[Point]) -> f64 {
    if points.len() < 2 {
        return f64::NAN;
    }
    let numbers = || {
        let values = points.iter().filter_map(|point| point.value.as_f64());
        values.filter(|value| !value.is_nan())
    };
    let (mut mean, mut count) = (0.0, 0.0);
    for value in numbers() {
        count += 1.0;
        mean += (value - mean) / count;
    }
    let variance: f64 = numbers().map(|value| (value - mean).powi(2)).sum();
    (variance / (count - 1.0)).sqrt()
}
