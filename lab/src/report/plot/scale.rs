//! Axes: the position of a value on an axis, and the ticks.

use crate::report::number::tick;

/// An axis. Positions on a linear axis are values; on a logarithmic axis, they are decimal
/// logarithms.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    log: bool,
    /// The least position.
    pub low: f64,
    /// The greatest position.
    pub high: f64,
    /// Positions and labels of ticks.
    pub ticks: Vec<(f64, String)>,
}

impl Scale {
    /// An axis of quantities: from 0 to beyond the greatest of `values`; logarithmic: from below
    /// the least positive one.
    #[must_use]
    pub(super) fn quantity(values: impl Iterator<Item = f64>, log: bool) -> Self {
        let finite: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        let greatest = finite.iter().copied().fold(0.0, f64::max);
        let positive = finite.iter().copied().filter(|value| *value > 0.0);
        let least = positive.fold(f64::INFINITY, f64::min);
        if log && least.is_finite() {
            Self::logarithmic(least, greatest)
        } else {
            Self::linear(finite.iter().copied().fold(0.0, f64::min), greatest)
        }
    }

    /// An axis of time: from 0 to the last of `values`.
    #[must_use]
    pub(super) fn time(values: impl Iterator<Item = f64>) -> Self {
        let last = values.fold(0.0, f64::max);
        let mut scale = Self::linear(0.0, last);
        if last > 0.0 {
            scale.high = last;
            scale.ticks.retain(|(place, _)| *place <= last);
        }
        scale
    }

    fn linear(least: f64, greatest: f64) -> Self {
        let span = if greatest > least {
            greatest - least
        } else {
            1.0
        };
        let step = nice(span / 5.0);
        let first = (least / step).floor();
        let last = ((least + span * 1.02) / step).ceil();
        let ticks = (0..=(last - first) as usize).map(|at| (first + at as f64) * step);
        Self {
            log: false,
            low: first * step,
            high: last * step,
            ticks: ticks.map(|value| (value, tick(value))).collect(),
        }
    }

    fn logarithmic(least: f64, greatest: f64) -> Self {
        let low = least.log10() - 0.12;
        let high = greatest.log10() + 0.12;
        let factors: &[f64] = match high - low {
            span if span <= 2.0 => &[1.0, 2.0, 5.0],
            span if span <= 4.0 => &[1.0, 3.0],
            _ => &[1.0],
        };
        let mut ticks = Vec::new();
        for decade in low.floor() as i32..=high.ceil() as i32 {
            for factor in factors {
                let value = factor * 10.0_f64.powi(decade);
                if (low..=high).contains(&value.log10()) {
                    ticks.push((value.log10(), tick(value)));
                }
            }
        }
        Self {
            log: true,
            low,
            high,
            ticks,
        }
    }

    /// An axis of settings, each with its own label; logarithmic if they cover a wide range.
    #[must_use]
    pub(super) fn settings(values: &[(f64, String)]) -> Self {
        let least = values
            .iter()
            .map(|(value, _)| *value)
            .fold(f64::INFINITY, f64::min);
        let greatest = values
            .iter()
            .map(|(value, _)| *value)
            .fold(f64::NEG_INFINITY, f64::max);
        let log = least > 0.0 && greatest / least >= 10.0;
        let mut scale = Self {
            log,
            low: 0.0,
            high: 1.0,
            ticks: Vec::new(),
        };
        let placed = |(value, text): &(f64, String)| Some((scale.place(*value)?, text.clone()));
        let ticks: Vec<(f64, String)> = values.iter().filter_map(placed).collect();
        scale.ticks = ticks;
        if let (Some(low), Some(high)) = (scale.place(least), scale.place(greatest)) {
            let margin = if high > low { (high - low) * 0.03 } else { 0.5 };
            (scale.low, scale.high) = (low - margin, high + margin);
        }
        scale
    }

    /// Names side by side, at 0, 1, 2 ….
    #[must_use]
    pub(super) fn names(names: &[String]) -> Self {
        let ticks = names.iter().enumerate();
        Self {
            log: false,
            low: -0.5,
            high: names.len() as f64 - 0.5,
            ticks: ticks.map(|(at, name)| (at as f64, name.clone())).collect(),
        }
    }

    /// The position of `value`; `None` if the axis cannot show it.
    #[must_use]
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        if !self.log {
            return value.is_finite().then_some(value);
        }
        (value > 0.0 && value.is_finite()).then(|| value.log10())
    }

    /// The fraction of the axis at `value`: 0 … 1, clamped at the ends.
    #[must_use]
    pub(super) fn part(&self, value: f64) -> Option<f64> {
        let place = self.place(value)?;
        Some(((place - self.low) / (self.high - self.low)).clamp(0.0, 1.0))
    }
}

/// The least of 1, 2, 5 times a power of ten that is not less than `step`.
fn nice(step: f64) -> f64 {
    let power = 10.0_f64.powf(step.log10().floor());
    let factors = [1.0, 2.0, 5.0];
    let factor = factors
        .into_iter()
        .find(|factor| factor * power >= step * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(scale: &Scale) -> Vec<&str> {
        scale.ticks.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn linear_axes_begin_at_nothing() {
        let scale = Scale::quantity([3.0, 9.7].into_iter(), false);
        assert_eq!(texts(&scale), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(scale.part(5.0), Some(0.5));
        assert_eq!(Scale::time([59.0].into_iter()).high, 59.0);
        let empty = Scale::quantity(std::iter::empty(), true);
        assert!(empty.high > empty.low);
    }

    #[test]
    fn logarithmic_axes_label_decades() {
        let scale = Scale::quantity([0.5, 0.0, 20_000.0].into_iter(), true);
        assert_eq!(texts(&scale), ["1", "10", "100", "1000", "10 k"]);
        assert_eq!(scale.place(0.0), None);
    }

    #[test]
    fn far_settings_are_spread_out() {
        let settings = |values: &[f64]| {
            let named: Vec<_> = values
                .iter()
                .map(|value| (*value, value.to_string()))
                .collect();
            Scale::settings(&named)
        };
        assert_eq!(settings(&[1.0, 10.0, 1000.0]).place(10.0), Some(1.0));
        assert_eq!(settings(&[1.0, 2.0, 7.0]).place(7.0), Some(7.0));
        let one = settings(&[4.0]);
        assert!(one.low < 4.0 && one.high > 4.0);
    }
}
