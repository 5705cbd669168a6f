//! The order in which the rows of a device arrive if some of them are late.
//!
//! Row s arrives at its time s or, if it is late, at a time drawn from s + 1 to s + `steps_max`;
//! rows are sent in the order of these times. Even if all rows are late, nearly every row follows a
//! newer one, because the delays differ. The devices share a few such orders.

use super::Delay;
use super::draw::Key;

/// Number of orders that the devices share; they need little memory for any number of devices.
const ORDERS: u64 = 16;

/// Orders of arrival.
#[derive(Debug)]
pub(super) struct Delayed {
    orders: Vec<Vec<u32>>,
}

impl Delayed {
    /// Orders for devices of `rows` rows each.
    pub(super) fn new(delay: Delay, rows: usize, key: Key) -> Self {
        let order = |number| {
            let key = key.with(number);
            let arrival = |step: u32| {
                let row = key.with(u64::from(step));
                let late = row.with(0).uniform() < delay.ratio;
                let drawn = (row.with(1).uniform() * f64::from(delay.steps_max)) as u64;
                let wait = if late { 1 + drawn } else { 0 };
                u64::from(step) + wait
            };
            let mut steps: Vec<u32> = (0..rows as u32).collect();
            steps.sort_by_cached_key(|step| (arrival(*step), *step));
            steps
        };
        Self {
            orders: (0..ORDERS).map(order).collect(),
        }
    }

    /// The step of the row that `device` sends as number `position`.
    pub(super) fn step(&self, device: u64, position: u64) -> u64 {
        let order = &self.orders[(device % ORDERS) as usize];
        order
            .get(position as usize)
            .map_or(position, |step| u64::from(*step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: u64 = 20_000;

    fn delayed(ratio: f64) -> Delayed {
        let delay = Delay {
            ratio,
            steps_max: 5_000,
        };
        Delayed::new(delay, ROWS as usize, Key::new(3))
    }

    /// Steps of `device` in the order of arrival.
    fn steps(delayed: &Delayed, device: u64) -> Vec<u64> {
        (0..ROWS).map(|row| delayed.step(device, row)).collect()
    }

    /// Fraction of the rows that follow a newer row.
    fn late(steps: &[u64]) -> f64 {
        let mut newest = 0;
        let mut late = 0;
        for step in steps {
            late += u32::from(*step < newest);
            newest = newest.max(*step);
        }
        f64::from(late) / steps.len() as f64
    }

    #[test]
    fn every_row_comes_once_and_as_many_are_late_as_asked() {
        for ratio in [0.0, 0.1, 0.5, 0.9, 1.0] {
            let delayed = delayed(ratio);
            for device in [0, 7] {
                let steps = steps(&delayed, device);
                let found = late(&steps);
                assert!((found - ratio).abs() < 0.03, "{found} for {ratio}");
                let mut sorted = steps;
                sorted.sort_unstable();
                assert!(sorted.into_iter().eq(0..ROWS));
            }
        }
    }

    #[test]
    fn rows_are_late_by_anything_up_to_the_limit() {
        let steps = steps(&delayed(0.1), 0);
        let mut newest = 0;
        let mut waits = Vec::new();
        for step in steps {
            // Near the end of the data, no newer row is left.
            if step < newest && step < ROWS - 5_000 {
                waits.push((newest - step) as f64);
            }
            newest = newest.max(step);
        }
        let (mean, _) = crate::generate::check::moments(&waits);
        assert!((mean - 2_500.0).abs() < 150.0, "{mean}");
        assert!(waits.iter().all(|wait| *wait <= 5_000.0));
    }

    #[test]
    fn devices_have_different_orders() {
        let delayed = delayed(0.5);
        assert_ne!(steps(&delayed, 0), steps(&delayed, 1));
        assert_eq!(delayed.step(3, ROWS + 5), ROWS + 5);
    }
}
