//! `time_weight(method, time, value)`: the mean over time, and the area under the values.

use super::summary::{GroupSummary, Slot, SlotKind};
use SlotKind::{Float, Whole};
use datafusion::common::{Result, exec_err};

/// How a value holds until the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WeightMethod {
    /// Values change in straight lines.
    Linear,
    /// A value holds until the next one.
    Locf,
}

impl WeightMethod {
    /// The method of this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "linear" | "trapezoidal" => Some(Self::Linear),
            "locf" => Some(Self::Locf),
            _ => None,
        }
    }

    /// The area between two points, in the values' unit times nanoseconds.
    pub(crate) fn area(self, left: (i64, f64), right: (i64, f64)) -> f64 {
        let width = (i128::from(right.0) - i128::from(left.0)) as f64;
        if width <= 0.0 {
            return 0.0;
        }
        match self {
            // Halve first: the sum of two very large floats is infinite.
            Self::Linear => (left.1 / 2.0 + right.1 / 2.0) * width,
            Self::Locf => left.1 * width,
        }
    }
}

/// The summary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TimeWeight {
    /// The first point.
    pub first: (i64, f64),
    /// The last point.
    pub last: (i64, f64),
    /// The area under the points, in the values' unit times nanoseconds.
    pub area_ns: f64,
    /// How values hold.
    pub method: WeightMethod,
}

impl TimeWeight {
    /// The summary of points in order of time.
    pub(crate) fn from_points(points: &[(i64, f64)], method: WeightMethod) -> Option<Self> {
        let (first, last) = (*points.first()?, *points.last()?);
        let pairs = points.iter().zip(&points[1..]);
        Some(Self {
            first,
            last,
            area_ns: pairs.map(|(left, right)| method.area(*left, *right)).sum(),
            method,
        })
    }

    /// The mean over time; `None` if no time passes.
    pub(crate) fn average(&self) -> Option<f64> {
        let span = (i128::from(self.last.0) - i128::from(self.first.0)) as f64;
        (span > 0.0).then(|| self.area_ns / span)
    }
}

impl GroupSummary for TimeWeight {
    const NAME: &'static str = "time_weight";
    const SLOTS: &'static [(&'static str, SlotKind)] = &[
        ("first_time", Whole),
        ("first_val", Float),
        ("last_time", Whole),
        ("last_val", Float),
        ("area", Float),
        ("is_locf", Whole),
    ];

    fn slots(&self) -> Vec<Slot> {
        vec![
            self.first.0 as u64,
            self.first.1.to_bits(),
            self.last.0 as u64,
            self.last.1.to_bits(),
            self.area_ns.to_bits(),
            u64::from(self.method == WeightMethod::Locf),
        ]
    }

    fn from_slots(slots: &[Slot]) -> Self {
        let float = |at: usize| f64::from_bits(slots[at]);
        Self {
            first: (slots[0] as i64, float(1)),
            last: (slots[2] as i64, float(3)),
            area_ns: float(4),
            method: if slots[5] == 1 {
                WeightMethod::Locf
            } else {
                WeightMethod::Linear
            },
        }
    }

    fn join(&self, later: &Self) -> Result<Self> {
        if self.method != later.method {
            return exec_err!("rollup: summaries of different methods cannot be joined");
        }
        super::counter::check_order(Self::NAME, self.last.0, later.first.0)?;
        Ok(Self {
            first: self.first,
            last: later.last,
            area_ns: self.area_ns + self.method.area(self.last, later.first) + later.area_ns,
            method: self.method,
        })
    }

    fn start(&self) -> i64 {
        self.first.0
    }
}
