//! Functions that number states, sessions, events and counted windows, or tell how long a state has
//! lasted.

use super::{WindowStep, condition_at, time_at};
use arrow::array::{Array, ArrayRef};
use datafusion::common::{Result, ScalarValue};

fn number(number: Option<i64>) -> ScalarValue {
    ScalarValue::Int64(number)
}

/// `state_count(condition)`: the number of rows for which the condition has held; -1 if it does not
/// hold.
#[derive(Debug, Default)]
pub(super) struct StateCount {
    count: i64,
}

impl WindowStep for StateCount {
    fn step(&mut self, columns: &[ArrayRef], row: usize) -> Result<ScalarValue> {
        match condition_at(&columns[0], row)? {
            Some(true) => {
                self.count += 1;
                Ok(number(Some(self.count)))
            }
            Some(false) => {
                self.count = 0;
                Ok(number(Some(-1)))
            }
            None => Ok(number(None)),
        }
    }
}

/// `state_duration(condition, time [, unit])`: the time for which the condition has held; -1 if it
/// does not hold.
#[derive(Debug)]
pub(super) struct StateDuration {
    unit_ns: f64,
    began: Option<i64>,
}

impl StateDuration {
    /// Creates the step with a unit of time.
    pub(super) fn new(unit_ns: i64) -> Self {
        Self {
            unit_ns: unit_ns as f64,
            began: None,
        }
    }
}

impl WindowStep for StateDuration {
    fn step(&mut self, columns: &[ArrayRef], row: usize) -> Result<ScalarValue> {
        let (condition, time) = (condition_at(&columns[0], row)?, time_at(&columns[1], row)?);
        Ok(ScalarValue::Float64(match (condition, time) {
            (Some(true), Some(time)) => {
                let began = *self.began.get_or_insert(time);
                Some((i128::from(time) - i128::from(began)).abs() as f64 / self.unit_ns)
            }
            (Some(false), _) => {
                self.began = None;
                Some(-1.0)
            }
            _ => None,
        }))
    }
}

/// `session_id(time, gap)`: starts a new number after a longer gap.
#[derive(Debug)]
pub(super) struct SessionId {
    gap_ns: u64,
    session: i64,
    before: Option<i64>,
}

impl SessionId {
    /// Creates the step for sessions whose gaps are at most `gap_ns`.
    pub(super) fn new(gap_ns: i64) -> Self {
        Self {
            gap_ns: gap_ns.unsigned_abs(),
            session: 0,
            before: None,
        }
    }
}

impl WindowStep for SessionId {
    fn step(&mut self, columns: &[ArrayRef], row: usize) -> Result<ScalarValue> {
        let Some(time) = time_at(&columns[0], row)? else {
            return Ok(number(None));
        };
        let goes_on = |before: i64| time.abs_diff(before) <= self.gap_ns;
        if !self.before.is_some_and(goes_on) {
            self.session += 1;
        }
        self.before = Some(time);
        Ok(number(Some(self.session)))
    }
}

/// `state_id(value)`: starts a new number when the value changes.
#[derive(Debug, Default)]
pub(super) struct StateId {
    state: i64,
    value: Option<ScalarValue>,
}

impl WindowStep for StateId {
    fn step(&mut self, columns: &[ArrayRef], row: usize) -> Result<ScalarValue> {
        if columns[0].is_null(row) {
            return Ok(number(None));
        }
        let value = ScalarValue::try_from_array(&columns[0], row)?;
        if !self.value.as_ref().is_some_and(|held| same(held, &value)) {
            self.state += 1;
            self.value = Some(value);
        }
        Ok(number(Some(self.state)))
    }
}

/// Equality as in PostgreSQL: there is one zero, and one NaN.
fn same(left: &ScalarValue, right: &ScalarValue) -> bool {
    let same = |left: f64, right: f64| left == right || (left.is_nan() && right.is_nan());
    match (left, right) {
        (ScalarValue::Float64(Some(left)), ScalarValue::Float64(Some(right))) => {
            same(*left, *right)
        }
        (ScalarValue::Float32(Some(left)), ScalarValue::Float32(Some(right))) => {
            same(f64::from(*left), f64::from(*right))
        }
        _ => left == right,
    }
}

/// `event_id(start, end)`: the number of the event that contains a row; null outside events.
#[derive(Debug, Default)]
pub(super) struct EventId {
    event: i64,
    lasts: bool,
}

impl WindowStep for EventId {
    fn step(&mut self, columns: &[ArrayRef], row: usize) -> Result<ScalarValue> {
        let holds = |at: usize| {
            Ok::<_, datafusion::common::DataFusionError>(
                condition_at(&columns[at], row)? == Some(true),
            )
        };
        if !self.lasts {
            if !holds(0)? {
                return Ok(number(None));
            }
            self.event += 1;
        }
        // The row that ends an event belongs to it, and may be the one that began it.
        self.lasts = !holds(1)?;
        Ok(number(Some(self.event)))
    }
}

/// `count_id(n)`: starts a new number every `n` rows.
#[derive(Debug)]
pub(super) struct CountId {
    n: i64,
    rows: i64,
}

impl CountId {
    /// Creates the step for windows of `n` rows.
    pub(super) fn new(n: usize) -> Self {
        Self {
            n: n as i64,
            rows: 0,
        }
    }
}

impl WindowStep for CountId {
    fn step(&mut self, _: &[ArrayRef], _: usize) -> Result<ScalarValue> {
        let window = self.rows / self.n + 1;
        self.rows += 1;
        Ok(number(Some(window)))
    }
}
