//! Rows that come late.
//!
//! *Poisson*: with some probability, a row is δ steps older than the newest row of its device, δ ~
//! Poisson(λ), but no older than the first. It does not advance the device's clock, so it repeats a
//! row that was already sent. (For λ ≥ 500, IoT-Benchmark does not draw from Poisson(λ) but
//! stretches Poisson(10), because its table of probabilities ends; here λ means λ.)
//!
//! *Batch*: a fraction of the rows of each batch change places with each other; nothing repeats.
//! (The mode of this name in IoT-Benchmark's present source leaves batches unchanged and begins
//! with the later ones.)
//!
//! *Delayed*: rows are late by any number of steps up to a limit ([`Delayed`]); nothing repeats.

use super::super::Late;
use super::super::delayed::Delayed;
use super::super::draw::Key;
use rand::RngExt;
use rand_distr::{Distribution, Poisson};
use std::ops::Range;

/// Decides which step of time a row belongs to.
pub(super) struct Lateness {
    key: Key,
    late: Late,
    /// `None` if λ is not a positive number; late rows then repeat the newest row.
    delay: Option<Poisson<f64>>,
    /// How rows with a limited delay arrive.
    orders: Option<Delayed>,
}

impl Lateness {
    /// Lateness by `late` for devices of `rows` rows each, with random numbers below `key`.
    pub(super) fn new(late: Late, rows: usize, key: Key) -> Self {
        let delay = match late {
            Late::Poisson { lambda, .. } => Poisson::new(lambda).ok(),
            _ => None,
        };
        let orders = match late {
            Late::Delayed(delay) => Some(Delayed::new(delay, rows, key)),
            _ => None,
        };
        Self {
            key,
            late,
            delay,
            orders,
        }
    }

    /// Whether rows repeat earlier ones.
    pub(super) fn repeats(&self) -> bool {
        matches!(self.late, Late::Poisson { .. })
    }

    /// Number of steps that `device` completes with `rows` rows.
    pub(super) fn steps_of(&self, device: u64, rows: u64) -> u64 {
        let Late::Poisson { ratio, .. } = self.late else {
            return rows;
        };
        let key = self.key.with(device);
        let on_time = |row: &u64| *row == 0 || key.with(*row).uniform() >= ratio;
        (0..rows).filter(on_time).count() as u64
    }

    /// Steps of rows number `rows` of `device`, some of which repeat earlier rows; `clock` is the
    /// number of steps that the device has completed.
    pub(super) fn repeating(&self, device: u64, rows: Range<u64>, clock: &mut u64) -> Vec<u64> {
        let Late::Poisson { ratio, .. } = self.late else {
            return rows.collect();
        };
        let key = self.key.with(device);
        let step = |row| {
            let mut draw = key.with(row).draw();
            // The first row has nothing to repeat.
            if row == 0 || draw.random::<f64>() >= ratio {
                *clock += 1;
                *clock - 1
            } else {
                let delay = self.delay.map_or(0.0, |delay| delay.sample(&mut draw));
                (*clock - 1).saturating_sub(delay as u64)
            }
        };
        rows.map(step).collect()
    }

    /// Steps of rows number `rows` of `device`, which are one batch: the same numbers, some in
    /// other places; or, if delays are limited, other numbers.
    pub(super) fn permuted(&self, device: u64, rows: Range<u64>) -> Vec<u64> {
        if let Some(orders) = &self.orders {
            return rows.map(|row| orders.step(device, row)).collect();
        }
        let mut steps: Vec<u64> = rows.collect();
        let (Late::Batch { ratio }, Some(first)) = (self.late, steps.first().copied()) else {
            return steps;
        };
        let mut draw = self.key.with(device).with(first).draw();
        let count = steps.len();
        let moved = ((ratio.clamp(0.0, 1.0) * count as f64).round() as usize).min(count);
        // The first `moved` places of a shuffle are a random choice in a random order. Each takes
        // the row of the next one, so that every one changes.
        let mut places: Vec<usize> = (0..count).collect();
        for chosen in 0..moved {
            let rest = (count - chosen) as f64;
            places.swap(chosen, chosen + (draw.random::<f64>() * rest) as usize);
        }
        for pair in places[..moved].windows(2) {
            steps.swap(pair[0], pair[1]);
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::check::moments;

    fn poisson(ratio: f64, lambda: f64) -> Lateness {
        Lateness::new(Late::Poisson { ratio, lambda }, 0, Key::new(3))
    }

    #[test]
    fn late_rows_are_as_many_and_as_late_as_asked() {
        for (ratio, lambda) in [(0.1, 5.0), (0.5, 40.0), (0.9, 2_200.0)] {
            let late = poisson(ratio, lambda);
            let (mut delays, mut rows) = (Vec::new(), 0);
            for device in 0..5 {
                let mut clock = 0;
                for row in 0..50_000 {
                    let before = clock;
                    let step = late.repeating(device, row..row + 1, &mut clock)[0];
                    assert!(step < clock, "a step that exists");
                    // The beginning is left out, because δ is cut off there.
                    if before > 2 * lambda as u64 + 20 {
                        rows += 1;
                        if clock == before {
                            delays.push((before - 1 - step) as f64);
                        }
                    }
                }
                assert_eq!(clock, late.steps_of(device, 50_000));
            }
            assert!(rows > 1_000);
            let rows = f64::from(rows);
            let share = delays.len() as f64 / rows;
            let error = (ratio * (1.0 - ratio) / rows).sqrt();
            assert!((share - ratio).abs() < 5.0 * error, "{share} for {ratio}");
            let (mean, deviation) = moments(&delays);
            let error = (lambda / delays.len() as f64).sqrt();
            assert!((mean - lambda).abs() < 5.0 * error, "{mean} for {lambda}");
            assert!(
                (deviation / lambda.sqrt() - 1.0).abs() < 0.05,
                "{deviation}"
            );
        }
    }

    #[test]
    fn steps_do_not_depend_on_the_size_of_batches() {
        let late = poisson(0.5, 10.0);
        let (mut one, mut other) = (0, 0);
        let whole = late.repeating(4, 0..100, &mut one);
        let parts: Vec<u64> = (0..10)
            .flat_map(|part| late.repeating(4, part * 10..part * 10 + 10, &mut other))
            .collect();
        assert_eq!(whole, parts);
        assert_eq!(one, other);
        assert!(whole.iter().max() == Some(&(one - 1)));
    }

    #[test]
    fn a_delay_that_cannot_be_drawn_is_none() {
        let late = poisson(1.0, -1.0);
        assert_eq!(late.repeating(0, 0..4, &mut 0), [0, 0, 0, 0]);
        assert_eq!(late.steps_of(0, 4), 1);
    }

    #[test]
    fn a_part_of_each_batch_changes_places() {
        for (ratio, moved) in [(0.0, 0), (0.25, 25), (1.0, 100), (7.0, 100), (0.01, 0)] {
            let late = Lateness::new(Late::Batch { ratio }, 0, Key::new(3));
            assert!(!late.repeats());
            let mut seen = Vec::new();
            for batch in 0..20_u64 {
                let rows = batch * 100..batch * 100 + 100;
                let steps = late.permuted(9, rows.clone());
                let changed = steps.iter().zip(rows.clone()).filter(|(a, b)| *a != b);
                assert_eq!(changed.count(), moved);
                let mut sorted = steps.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, rows.collect::<Vec<_>>());
                seen.push(steps.iter().map(|step| step % 100).collect::<Vec<_>>());
            }
            seen.dedup();
            assert_eq!(seen.len(), if moved == 0 { 1 } else { 20 });
        }
    }

    #[test]
    fn any_distance_may_be_moved() {
        let late = Lateness::new(Late::Batch { ratio: 1.0 }, 0, Key::new(3));
        let distances: Vec<f64> = (0..500_u64)
            .flat_map(|batch| {
                let rows = batch * 100..batch * 100 + 100;
                let steps = late.permuted(1, rows.clone());
                let distance = |(step, place): (u64, u64)| step.abs_diff(place) as f64;
                steps
                    .into_iter()
                    .zip(rows)
                    .map(distance)
                    .collect::<Vec<_>>()
            })
            .collect();
        // Two places of 100 at random are 33⅔ apart on average.
        let (mean, _) = moments(&distances);
        assert!((mean - 33.67).abs() < 1.0, "{mean}");
    }
}
