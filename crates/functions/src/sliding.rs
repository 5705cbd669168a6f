//! Sums and means of floats over windows whose start moves.
//!
//! DataFusion subtracts from a sum the values that leave the window. A NaN or an infinite value
//! would never leave, and rounding errors would accumulate. Here a window is a queue of two stacks,
//! which only ever adds: it takes 8 bytes per value in the window, and at most two additions per
//! value.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::Float64Type;
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::Accumulator;

/// The sum or mean of the floats in a window.
#[derive(Debug)]
pub(crate) struct SlidingSum {
    /// Whether the sum is divided by the number of values.
    is_mean: bool,
    /// The sums of the older values, from each of them to the newest of them. The sum from the
    /// oldest is on top.
    older: Vec<f64>,
    newer: Vec<f64>,
    newer_sum: f64,
}

impl SlidingSum {
    /// Creates a mean.
    pub(crate) fn mean() -> Self {
        Self {
            is_mean: true,
            ..Self::sum()
        }
    }

    /// Creates a sum.
    pub(crate) fn sum() -> Self {
        Self {
            is_mean: false,
            older: Vec::new(),
            newer: Vec::new(),
            newer_sum: 0.0,
        }
    }

    fn pop(&mut self) {
        if self.older.is_empty() {
            let mut sum = 0.0;
            while let Some(value) = self.newer.pop() {
                sum += value;
                self.older.push(sum);
            }
            self.newer_sum = 0.0;
        }
        self.older.pop();
    }
}

impl Accumulator for SlidingSum {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let Some(column) = columns
            .first()
            .and_then(|c| c.as_primitive_opt::<Float64Type>())
        else {
            return internal_err!("a window of a column of another type");
        };
        for value in column.iter().flatten() {
            self.newer.push(value);
            self.newer_sum += value;
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn retract_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let leaving = columns.first();
        for _ in 0..leaving.map_or(0, |column| column.len() - column.null_count()) {
            self.pop();
        }
        Ok(())
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        internal_err!("windows are not merged")
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        internal_err!("windows are not merged")
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let count = self.older.len() + self.newer.len();
        if count == 0 {
            return Ok(ScalarValue::Float64(None));
        }
        let sum = self.older.last().copied().unwrap_or(0.0) + self.newer_sum;
        Ok(ScalarValue::Float64(Some(if self.is_mean {
            sum / count as f64
        } else {
            sum
        })))
    }

    fn size(&self) -> usize {
        size_of_val(self) + (self.older.capacity() + self.newer.capacity()) * size_of::<f64>()
    }
}
