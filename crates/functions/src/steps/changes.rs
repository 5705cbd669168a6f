//! Functions of the change from row to row. They skip a row whose value or time is null: its own
//! result is null, and the next row is compared with the last row that was not null.

use super::super::mean::exact_mean;
use super::super::numbers::{NumberColumn, NumberKind};
use super::{WindowStep, time_at};
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use std::collections::VecDeque;

/// `difference(value)`
#[derive(Debug)]
pub(super) struct DifferenceStep {
    kind: NumberKind,
    answer: DataType,
    before: Option<u64>,
}

impl DifferenceStep {
    /// Creates the step for values of a type.
    pub(super) fn new(values: &DataType) -> Result<Self> {
        let kind = NumberKind::from_type(values)?;
        Ok(Self {
            kind,
            answer: match kind {
                NumberKind::Float => DataType::Float64,
                NumberKind::Signed | NumberKind::Unsigned => DataType::Int64,
            },
            before: None,
        })
    }
}

impl WindowStep for DifferenceStep {
    fn step(&mut self, columns: &[ArrayRef], row: usize) -> Result<ScalarValue> {
        let Some(value) = NumberColumn::from_array(&columns[0])?.get(row) else {
            return ScalarValue::try_from(&self.answer);
        };
        match self.before.replace(value) {
            Some(before) => self
                .kind
                .minus(value, before)
                .scalar("difference", &self.answer),
            None => ScalarValue::try_from(&self.answer),
        }
    }
}

/// `non_negative_derivative(value, time [, unit])`
#[derive(Debug)]
pub(super) struct DerivativeStep {
    kind: NumberKind,
    unit_ns: f64,
    before: Option<(i64, u64)>,
}

impl DerivativeStep {
    /// Creates the step for values of a type and a unit of time.
    pub(super) fn new(values: &DataType, unit_ns: i64) -> Result<Self> {
        Ok(Self {
            kind: NumberKind::from_type(values)?,
            unit_ns: unit_ns as f64,
            before: None,
        })
    }
}

impl WindowStep for DerivativeStep {
    fn step(&mut self, columns: &[ArrayRef], row: usize) -> Result<ScalarValue> {
        let value = NumberColumn::from_array(&columns[0])?.get(row);
        let (Some(value), Some(time)) = (value, time_at(&columns[1], row)?) else {
            return Ok(ScalarValue::Float64(None));
        };
        let slope = self.before.replace((time, value)).and_then(|before| {
            let since = (i128::from(time) - i128::from(before.0)) as f64;
            let difference = self.kind.minus(value, before.1).float();
            (since != 0.0).then(|| difference / (since / self.unit_ns))
        });
        // A counter that falls restarted; its growth in between is not known.
        Ok(ScalarValue::Float64(
            slope.filter(|slope| slope.is_nan() || *slope >= 0.0),
        ))
    }
}

/// `moving_avg(value, n)` for values of a type: the mean of the last `n` values that are not null.
pub(super) fn moving_avg(values: &DataType, n: usize) -> Result<Box<dyn WindowStep>> {
    Ok(match NumberKind::from_type(values)? {
        NumberKind::Float => Box::new(FloatMovingAvg::new(n)),
        kind => Box::new(WholeMovingAvg::new(kind, n)),
    })
}

/// The moving average of whole numbers, from exact sums.
#[derive(Debug)]
struct WholeMovingAvg {
    kind: NumberKind,
    n: usize,
    values: VecDeque<u64>,
    sum: i128,
}

impl WholeMovingAvg {
    fn new(kind: NumberKind, n: usize) -> Self {
        Self {
            kind,
            n,
            values: VecDeque::new(),
            sum: 0,
        }
    }

    /// A value as a whole number, which all of these kinds are.
    fn whole(&self, bits: u64) -> i128 {
        self.kind.whole(bits).unwrap_or_default()
    }
}

impl WindowStep for WholeMovingAvg {
    fn step(&mut self, columns: &[ArrayRef], row: usize) -> Result<ScalarValue> {
        let Some(bits) = NumberColumn::from_array(&columns[0])?.get(row) else {
            return Ok(ScalarValue::Float64(None));
        };
        if self.values.len() == self.n
            && let Some(oldest) = self.values.pop_front()
        {
            self.sum -= self.whole(oldest);
        }
        self.values.push_back(bits);
        self.sum += self.whole(bits);
        let mean = (self.values.len() == self.n).then(|| exact_mean(self.sum, self.n as u64));
        Ok(ScalarValue::Float64(mean.flatten()))
    }
}

/// The moving average of floats.
///
/// It uses a queue of two stacks, which only ever adds, so that rounding errors do not accumulate
/// and an infinite value or a NaN is gone when it leaves the window.
#[derive(Debug)]
struct FloatMovingAvg {
    n: usize,
    /// The sums of the older values, from each of them to the newest of them. The sum from the
    /// oldest is on top.
    older: Vec<f64>,
    newer: VecDeque<f64>,
    newer_sum: f64,
}

impl FloatMovingAvg {
    /// Creates the step for `n` values.
    fn new(n: usize) -> Self {
        Self {
            n,
            older: Vec::new(),
            newer: VecDeque::new(),
            newer_sum: 0.0,
        }
    }

    fn pop(&mut self) {
        if self.older.is_empty() {
            let mut sum = 0.0;
            while let Some(value) = self.newer.pop_back() {
                sum += value;
                self.older.push(sum);
            }
            self.newer_sum = 0.0;
        }
        self.older.pop();
    }
}

impl WindowStep for FloatMovingAvg {
    fn step(&mut self, columns: &[ArrayRef], row: usize) -> Result<ScalarValue> {
        let Some(bits) = NumberColumn::from_array(&columns[0])?.get(row) else {
            return Ok(ScalarValue::Float64(None));
        };
        let value = f64::from_bits(bits);
        if self.older.len() + self.newer.len() == self.n {
            self.pop();
        }
        self.newer.push_back(value);
        self.newer_sum += value;
        let full = self.older.len() + self.newer.len() == self.n;
        let sum = self.older.last().copied().unwrap_or(0.0) + self.newer_sum;
        Ok(ScalarValue::Float64(full.then(|| sum / self.n as f64)))
    }
}
