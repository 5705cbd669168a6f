//! Aggregates of the distribution of values: percentiles, the line through them, the most frequent one.

use crate::stage::accumulator::Accumulator;
use crate::taos_value::Val;
use std::collections::HashMap;

pub(in crate::stage) struct Percentile {
    pub(in crate::stage) wanted: Vec<f64>,
    pub(in crate::stage) values: Vec<f64>,
}

impl Accumulator for Percentile {
    fn push(&mut self, _time: i64, arguments: &[Val]) -> bool {
        self.values.extend(arguments[0].number());
        false
    }

    fn value(&self) -> Val {
        if self.values.is_empty() {
            return Val::Null;
        }
        let mut values = self.values.clone();
        values.sort_unstable_by(f64::total_cmp);
        let at = |percent: f64| {
            let place = percent / 100.0 * (values.len() - 1) as f64;
            let low = (place.floor() as usize).min(values.len() - 1);
            let high = (low + 1).min(values.len() - 1);
            values[low] + (values[high] - values[low]) * (place - low as f64)
        };
        match self.wanted.as_slice() {
            [one] => Val::of_number(at(*one)),
            many => {
                let texts: Vec<String> =
                    many.iter().map(|one| format!("{:.6}", at(*one))).collect();
                Val::of_text(format!("[{}]", texts.join(", ")))
            }
        }
    }

    fn held_bytes(&self) -> usize {
        // Its value is computed from a copy.
        self.values.capacity() * 2 * size_of::<f64>()
    }
}

/// The line of least squares over evenly spaced places.
pub(in crate::stage) struct LeastSquares {
    pub(in crate::stage) x: f64,
    pub(in crate::stage) step: f64,
    /// Of 1, x, y, x·x and x·y.
    pub(in crate::stage) sums: [f64; 5],
}

impl Accumulator for LeastSquares {
    fn push(&mut self, _time: i64, arguments: &[Val]) -> bool {
        if let Some(y) = arguments[0].number() {
            let x = self.x;
            for (sum, value) in self.sums.iter_mut().zip([1.0, x, y, x * x, x * y]) {
                *sum += value;
            }
            self.x += self.step;
        }
        false
    }

    fn value(&self) -> Val {
        let [n, x, y, xx, xy] = self.sums;
        let spread = n * xx - x * x;
        if n == 0.0 || spread == 0.0 {
            return Val::Null;
        }
        let slope = (n * xy - x * y) / spread;
        let intercept = (y - slope * x) / n;
        Val::of_text(format!("{{slop:{slope:.6}, intercept:{intercept:.6}}}"))
    }
}

/// The most frequent value; of equally frequent ones that which became so first.
#[derive(Default)]
pub(in crate::stage) struct ModeAccumulator {
    counts: HashMap<String, u64>,
    best: u64,
    value: Option<Val>,
    bytes: usize,
}

impl Accumulator for ModeAccumulator {
    fn push(&mut self, _time: i64, arguments: &[Val]) -> bool {
        let value = &arguments[0];
        let Some(key) = (match value {
            Val::Float(number) => Some(number.to_bits().to_string()),
            other => other.shown(),
        }) else {
            return false;
        };
        let length = key.len();
        let count = self.counts.entry(key).or_insert(0);
        if *count == 0 {
            self.bytes += length + 64;
        }
        *count += 1;
        if *count > self.best {
            self.best = *count;
            self.value = Some(value.clone());
            return true;
        }
        false
    }

    fn value(&self) -> Val {
        self.value.clone().unwrap_or(Val::Null)
    }

    fn held_bytes(&self) -> usize {
        self.bytes
    }
}
