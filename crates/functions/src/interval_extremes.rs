//! `min` and `max` of intervals over a window whose frame moves.

use crate::interval_arithmetic::length_ns;
use crate::value_casts::as_intervals;
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{IntervalMonthDayNano, IntervalMonthDayNanoType};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Accumulator;
use std::collections::VecDeque;

/// The shortest or the longest interval of a frame.
///
/// Values leave the frame in the order in which they came. So a value that a later one beats is never the
/// answer again: what stays is in order, with the answer in front.
#[derive(Debug)]
pub(crate) struct SlidingExtreme {
    is_min: bool,
    /// Values that may be an answer, each with its number.
    candidates: VecDeque<(u64, IntervalMonthDayNano)>,
    /// The numbers of values that came and that left.
    added: u64,
    removed: u64,
}

impl SlidingExtreme {
    /// The shortest interval, or else the longest.
    pub(crate) fn new(is_min: bool) -> Self {
        Self {
            is_min,
            candidates: VecDeque::new(),
            added: 0,
            removed: 0,
        }
    }

    /// Whether a value is the answer rather than an earlier one. Of equal lengths, PostgreSQL takes the
    /// last.
    fn beats(&self, later: IntervalMonthDayNano, earlier: IntervalMonthDayNano) -> bool {
        let (later, earlier) = (length_ns(later), length_ns(earlier));
        if self.is_min {
            later <= earlier
        } else {
            later >= earlier
        }
    }
}

impl Accumulator for SlidingExtreme {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let Some(values) = columns.first() else {
            return Ok(());
        };
        let values = as_intervals(values)?;
        for value in values.as_primitive::<IntervalMonthDayNanoType>() {
            self.added += 1;
            let Some(value) = value else { continue };
            while let Some((_, last)) = self.candidates.back()
                && self.beats(value, *last)
            {
                self.candidates.pop_back();
            }
            self.candidates.push_back((self.added, value));
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn retract_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        self.removed += columns.first().map_or(0, |values| values.len() as u64);
        while let Some((number, _)) = self.candidates.front()
            && *number <= self.removed
        {
            self.candidates.pop_front();
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let best = self.candidates.front().map(|(_, value)| *value);
        Ok(ScalarValue::IntervalMonthDayNano(best))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.candidates.capacity() * size_of::<(u64, IntervalMonthDayNano)>()
    }
}
