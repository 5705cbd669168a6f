//! `stats_agg(value)` and `stats_agg(y, x)`: moments of one or two variables.
//!
//! Central moments are kept, not sums of powers, and joined by the formulas of Chan and Pébay: sums of
//! powers lose all digits where the values are large and their spread is small.

use super::summary::{GroupSummary, Slot, SlotKind};
use SlotKind::Float;
use datafusion::common::Result;

/// The moments of one variable.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Moments {
    /// Number of values.
    pub count: f64,
    /// Mean.
    pub mean: f64,
    /// Sum of the squares of the distances from the mean.
    pub m2: f64,
    /// The same of the cubes.
    pub m3: f64,
    /// The same of the fourth powers.
    pub m4: f64,
}

impl Moments {
    /// The moments of one value.
    pub(crate) fn of_value(value: f64) -> Self {
        Self {
            count: 1.0,
            mean: value,
            ..Self::default()
        }
    }

    fn joined(&self, other: &Self) -> Self {
        let (a, b) = (self.count, other.count);
        let n = a + b;
        let delta = other.mean - self.mean;
        let part = delta / n;
        let m2 = self.m2 + other.m2 + delta * part * a * b;
        let m3 = self.m3
            + other.m3
            + delta * part * part * a * b * (a - b)
            + 3.0 * part * (a * other.m2 - b * self.m2);
        let m4 = self.m4
            + other.m4
            + delta * part * part * part * a * b * (a * a - a * b + b * b)
            + 6.0 * part * part * (a * a * other.m2 + b * b * self.m2)
            + 4.0 * part * (a * other.m3 - b * self.m3);
        Self {
            count: n,
            mean: self.mean + part * b,
            m2,
            m3,
            m4,
        }
    }

    /// The variance; `None` of a sample of one value.
    pub(crate) fn variance(&self, is_population: bool) -> Option<f64> {
        let divisor = if is_population {
            self.count
        } else {
            self.count - 1.0
        };
        (divisor > 0.0).then(|| self.m2 / divisor)
    }

    /// The skewness: of the population, or of a sample.
    pub(crate) fn skewness(&self, is_population: bool) -> Option<f64> {
        let deviation = self.variance(is_population)?.sqrt();
        (deviation > 0.0).then(|| self.m3 / self.count / deviation.powi(3))
    }

    /// The kurtosis, which is 3 for the normal distribution.
    pub(crate) fn kurtosis(&self, is_population: bool) -> Option<f64> {
        let variance = self.variance(is_population)?;
        (variance > 0.0).then(|| self.m4 / self.count / (variance * variance))
    }

    fn slots(&self) -> [Slot; 5] {
        [self.count, self.mean, self.m2, self.m3, self.m4].map(f64::to_bits)
    }

    fn from_slots(slots: &[Slot]) -> Self {
        let number = |at: usize| f64::from_bits(slots[at]);
        Self {
            count: number(0),
            mean: number(1),
            m2: number(2),
            m3: number(3),
            m4: number(4),
        }
    }
}

/// The summary of one variable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct OneVariable(pub Moments);

impl GroupSummary for OneVariable {
    const NAME: &'static str = "stats_agg";
    const SLOTS: &'static [(&'static str, SlotKind)] = &[
        ("n", Float),
        ("mean", Float),
        ("m2", Float),
        ("m3", Float),
        ("m4", Float),
    ];

    fn slots(&self) -> Vec<Slot> {
        self.0.slots().to_vec()
    }

    fn from_slots(slots: &[Slot]) -> Self {
        Self(Moments::from_slots(slots))
    }

    fn join(&self, later: &Self) -> Result<Self> {
        Ok(Self(self.0.joined(&later.0)))
    }
}

/// The summary of two variables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TwoVariables {
    /// The dependent one.
    pub y: Moments,
    /// The independent one.
    pub x: Moments,
    /// Sum of the products of the distances from both means.
    pub xy: f64,
}

impl TwoVariables {
    /// The summary of one pair.
    pub(crate) fn of_pair(y: f64, x: f64) -> Self {
        Self {
            y: Moments::of_value(y),
            x: Moments::of_value(x),
            xy: 0.0,
        }
    }

    /// The slope of the line that fits best.
    pub(crate) fn slope(&self) -> Option<f64> {
        (self.x.m2 > 0.0).then(|| self.xy / self.x.m2)
    }

    /// Where that line meets the y axis.
    pub(crate) fn intercept(&self) -> Option<f64> {
        self.slope().map(|slope| self.y.mean - slope * self.x.mean)
    }

    /// Where that line meets the x axis.
    pub(crate) fn x_intercept(&self) -> Option<f64> {
        let slope = self.slope().filter(|slope| *slope != 0.0)?;
        Some(-self.intercept()? / slope)
    }

    /// The correlation.
    pub(crate) fn correlation(&self) -> Option<f64> {
        let product = self.x.m2 * self.y.m2;
        (product > 0.0).then(|| self.xy / product.sqrt())
    }

    /// The covariance.
    pub(crate) fn covariance(&self, is_population: bool) -> Option<f64> {
        let divisor = if is_population {
            self.x.count
        } else {
            self.x.count - 1.0
        };
        (divisor > 0.0).then(|| self.xy / divisor)
    }
}

impl GroupSummary for TwoVariables {
    const NAME: &'static str = "stats_agg";
    const SLOTS: &'static [(&'static str, SlotKind)] = &[
        ("ny", Float),
        ("mean_y", Float),
        ("m2_y", Float),
        ("m3_y", Float),
        ("m4_y", Float),
        ("nx", Float),
        ("mean_x", Float),
        ("m2_x", Float),
        ("m3_x", Float),
        ("m4_x", Float),
        ("xy", Float),
    ];

    fn slots(&self) -> Vec<Slot> {
        let mut slots = self.y.slots().to_vec();
        slots.extend(self.x.slots());
        slots.push(self.xy.to_bits());
        slots
    }

    fn from_slots(slots: &[Slot]) -> Self {
        Self {
            y: Moments::from_slots(&slots[..5]),
            x: Moments::from_slots(&slots[5..10]),
            xy: f64::from_bits(slots[10]),
        }
    }

    fn join(&self, later: &Self) -> Result<Self> {
        let (a, b) = (self.x.count, later.x.count);
        let between = (later.x.mean - self.x.mean) * (later.y.mean - self.y.mean);
        Ok(Self {
            y: self.y.joined(&later.y),
            x: self.x.joined(&later.x),
            xy: self.xy + later.xy + between * a * b / (a + b),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_moments_are_those_of_all_values() {
        let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        let all = values.map(Moments::of_value);
        let joined = |moments: &[Moments]| {
            let first = moments[0];
            moments[1..]
                .iter()
                .fold(first, |all, next| all.joined(next))
        };
        let (left, right) = all.split_at(3);
        for moments in [joined(&all), joined(left).joined(&joined(right))] {
            assert!((moments.mean - 5.0).abs() < 1e-12);
            assert!((moments.variance(true).unwrap() - 4.0).abs() < 1e-12);
            // By the definitions: sums of the cubes and of the fourth powers of the distances.
            let sum = |power| {
                values
                    .iter()
                    .map(|v: &f64| (v - 5.0).powi(power))
                    .sum::<f64>()
            };
            assert!((moments.m3 - sum(3)).abs() < 1e-9);
            assert!((moments.m4 - sum(4)).abs() < 1e-9);
        }
    }
}
