//! `counter_agg(time, value)` and `gauge_agg(time, value)`: how a value changed over time. A counter that
//! falls restarted at zero; a gauge may fall.

use super::summary::{GroupSummary, Slot, SlotKind};
use SlotKind::{Float, Whole};
use datafusion::common::{Result, exec_err};

/// Nanoseconds of a second.
const SECOND_NS: f64 = 1e9;

/// A time and a value.
pub(crate) type TimedValue = (i64, f64);

/// Refuses summaries that overlap in time: their rows cannot be told apart any more.
///
/// # Errors
/// If the second one begins before the first one ends.
pub(crate) fn check_order(function: &str, end_ns: i64, start_ns: i64) -> Result<()> {
    if start_ns <= end_ns {
        return exec_err!(
            "rollup of {function}: two summaries overlap in time; join summaries of different buckets \
             of the same series"
        );
    }
    Ok(())
}

/// The summary of a counter or a gauge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Changes<const IS_COUNTER: bool> {
    /// Number of points.
    pub count: i64,
    /// The first point.
    pub first: TimedValue,
    /// The second point, or the first one.
    pub second: TimedValue,
    /// The point before the last one, or the last one.
    pub penultimate: TimedValue,
    /// The last point.
    pub last: TimedValue,
    /// What was lost by restarts.
    pub reset_sum: f64,
    /// Number of restarts.
    pub resets: i64,
    /// Number of changes.
    pub change_count: i64,
}

/// The summary of a counter.
pub(crate) type CounterSummary = Changes<true>;
/// The summary of a gauge.
pub(crate) type GaugeSummary = Changes<false>;

impl<const IS_COUNTER: bool> Changes<IS_COUNTER> {
    fn of_point(point: TimedValue) -> Self {
        Self {
            count: 1,
            first: point,
            second: point,
            penultimate: point,
            last: point,
            reset_sum: 0.0,
            resets: 0,
            change_count: 0,
        }
    }

    /// The summary of points in order of time.
    pub(crate) fn from_points(points: &[TimedValue]) -> Option<Self> {
        let (first, rest) = points.split_first()?;
        let mut all = Self::of_point(*first);
        for point in rest {
            all = all.followed(&Self::of_point(*point));
        }
        Some(all)
    }

    fn followed(&self, later: &Self) -> Self {
        let fell = IS_COUNTER && later.first.1 < self.last.1;
        let changed = later.first.1 != self.last.1;
        Self {
            count: self.count + later.count,
            first: self.first,
            second: if self.count == 1 {
                later.first
            } else {
                self.second
            },
            penultimate: if later.count == 1 {
                self.last
            } else {
                later.penultimate
            },
            last: later.last,
            reset_sum: self.reset_sum + later.reset_sum + if fell { self.last.1 } else { 0.0 },
            resets: self.resets + later.resets + i64::from(fell),
            change_count: self.change_count + later.change_count + i64::from(changed),
        }
    }

    /// The change from the first point to the last one.
    pub(crate) fn delta(&self) -> f64 {
        self.last.1 - self.first.1 + self.reset_sum
    }

    /// The seconds from the first point to the last one.
    pub(crate) fn time_delta(&self) -> f64 {
        seconds(self.first, self.last)
    }

    /// The change per second; `None` if no time passes.
    pub(crate) fn rate(&self) -> Option<f64> {
        let seconds = self.time_delta();
        (seconds > 0.0).then(|| self.delta() / seconds)
    }

    /// The change between two neighbours.
    fn change(left: TimedValue, right: TimedValue) -> f64 {
        if IS_COUNTER && right.1 < left.1 {
            right.1
        } else {
            right.1 - left.1
        }
    }

    /// The change from the first point to the second, or from the last but one to the last.
    pub(crate) fn edge_delta(&self, is_left: bool) -> f64 {
        let (left, right) = self.edge(is_left);
        Self::change(left, right)
    }

    /// The same per second; `None` if no time passes.
    pub(crate) fn edge_rate(&self, is_left: bool) -> Option<f64> {
        let (left, right) = self.edge(is_left);
        let seconds = seconds(left, right);
        (seconds > 0.0).then(|| Self::change(left, right) / seconds)
    }

    fn edge(&self, is_left: bool) -> (TimedValue, TimedValue) {
        if is_left {
            (self.first, self.second)
        } else {
            (self.penultimate, self.last)
        }
    }
}

fn seconds(left: TimedValue, right: TimedValue) -> f64 {
    (i128::from(right.0) - i128::from(left.0)) as f64 / SECOND_NS
}

impl<const IS_COUNTER: bool> GroupSummary for Changes<IS_COUNTER> {
    const NAME: &'static str = if IS_COUNTER {
        "counter_agg"
    } else {
        "gauge_agg"
    };
    const SLOTS: &'static [(&'static str, SlotKind)] = &[
        ("n", Whole),
        ("first_time", Whole),
        ("first_val", Float),
        ("second_time", Whole),
        ("second_val", Float),
        ("penultimate_time", Whole),
        ("penultimate_val", Float),
        ("last_time", Whole),
        ("last_val", Float),
        (if IS_COUNTER { "reset_sum" } else { "gauge" }, Float),
        ("num_resets", Whole),
        ("num_changes", Whole),
    ];

    fn slots(&self) -> Vec<Slot> {
        let mut slots = vec![self.count as u64];
        for point in [self.first, self.second, self.penultimate, self.last] {
            slots.extend([point.0 as u64, point.1.to_bits()]);
        }
        slots.extend([
            self.reset_sum.to_bits(),
            self.resets as u64,
            self.change_count as u64,
        ]);
        slots
    }

    fn from_slots(slots: &[Slot]) -> Self {
        let point = |at: usize| (slots[at] as i64, f64::from_bits(slots[at + 1]));
        Self {
            count: slots[0] as i64,
            first: point(1),
            second: point(3),
            penultimate: point(5),
            last: point(7),
            reset_sum: f64::from_bits(slots[9]),
            resets: slots[10] as i64,
            change_count: slots[11] as i64,
        }
    }

    fn join(&self, later: &Self) -> Result<Self> {
        check_order(Self::NAME, self.last.0, later.first.0)?;
        Ok(self.followed(later))
    }

    fn start(&self) -> i64 {
        self.first.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_falls_restarted_at_zero() {
        let points = [(0, 10.0), (10, 20.0), (20, 5.0), (30, 5.0), (40, 8.0)];
        let points = points.map(|(second, value)| (second * 1_000_000_000, value));
        let all = CounterSummary::from_points(&points).unwrap();
        assert_eq!((all.delta(), all.resets, all.change_count), (18.0, 1, 3));
        assert_eq!(all.rate(), Some(18.0 / 40.0));
        assert_eq!(all.edge_rate(true), Some(1.0));
        assert_eq!(all.edge_delta(false), 3.0);
        let (left, right) = points.split_at(2);
        let left = CounterSummary::from_points(left).unwrap();
        let right = CounterSummary::from_points(right).unwrap();
        assert_eq!(left.join(&right).unwrap(), all);
        assert!(right.join(&left).is_err());
        let gauge = GaugeSummary::from_points(&points).unwrap();
        assert_eq!((gauge.delta(), gauge.resets), (-2.0, 0));
    }
}
