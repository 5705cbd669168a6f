//! The functions that sensors follow, and how a sensor gets its function.
//!
//! By default, the five classes have the same share (`CONSTANT_RATIO`, `LINE_RATIO`,
//! `RANDOM_RATIO`, `SIN_RATIO`, `SQUARE_RATIO` are all 1 in IoT-Benchmark), and a sensor draws its
//! class. Within a class, IoT-Benchmark picks one of the parameters in its `function.xml`, which
//! come from a real plant. Here, parameters are drawn from ranges that describe them: most
//! constants are 0, lines are counters of thousands that grow slowly, sines have periods of about
//! half an hour, squares are states or set points, and most random values span some tens.

use super::super::draw::{Draw, Key, sine};
use rand::RngExt;

/// Class of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Always the same.
    Constant,
    /// Rises from the least to the greatest value over a cycle, then falls back.
    Line,
    /// Any value between the least and the greatest.
    Random,
    /// A sine wave.
    Sine,
    /// The greatest value in the first half of a cycle, the least in the second.
    Square,
}

/// Classes and their shares, in the order in which IoT-Benchmark lays them out.
const RATIOS: [(Class, f64); 5] = [
    (Class::Constant, 1.0),
    (Class::Line, 1.0),
    (Class::Random, 1.0),
    (Class::Sine, 1.0),
    (Class::Square, 1.0),
];

/// A function of time.
#[derive(Clone, Debug)]
pub(super) struct Function {
    /// Its class.
    pub class: Class,
    /// Least value.
    pub min: f64,
    /// Greatest value.
    pub max: f64,
    /// Length of a period, milliseconds.
    pub cycle_ms: i64,
}

fn between(draw: &mut Draw, min: f64, max: f64) -> f64 {
    let value = min + (max - min) * draw.random::<f64>();
    (value * 100.0).round() / 100.0
}

fn one_of<T: Copy>(draw: &mut Draw, choices: &[T]) -> T {
    choices[(draw.random::<f64>() * choices.len() as f64) as usize]
}

impl Function {
    /// The function of the sensor at `key`.
    pub(super) fn draw(key: Key) -> Self {
        let draw = &mut key.draw();
        let sum: f64 = RATIOS.iter().map(|(_, ratio)| ratio).sum();
        let mut left = draw.random::<f64>() * sum;
        let hit = RATIOS.iter().find(|(_, ratio)| {
            left -= ratio;
            left < 0.0
        });
        let class = hit.map_or(Class::Square, |(class, _)| *class);
        let (min, max, cycle_ms) = match class {
            Class::Constant => {
                let decade = one_of(draw, &[0.01, 0.1, 1.0, 10.0, 100.0, 1_000.0, 10_000.0]);
                let some = decade * between(draw, 1.0, 10.0);
                let value = if draw.random::<f64>() < 0.57 {
                    0.0
                } else {
                    some
                };
                (value, value, 3_600)
            }
            Class::Line => {
                let min = between(draw, 6_000.0, 35_000.0);
                let slopes = [(1.0, 420_000), (10.0, 350_000), (200.0, 7_000_000)];
                let (rise, cycle_ms) = one_of(draw, &slopes);
                (min, min + rise, cycle_ms)
            }
            Class::Random => {
                let share = draw.random::<f64>();
                let (narrowest, widest) = match share {
                    s if s < 0.08 => (0.05, 2.0),
                    s if s < 0.68 => (2.5, 100.0),
                    s if s < 0.93 => (100.0, 1_600.0),
                    _ => (10_000.0, 100_000.0),
                };
                let min = between(draw, -40.0, 30.0);
                (min, min + between(draw, narrowest, widest), 18_200)
            }
            Class::Sine => {
                let (min, max) = (between(draw, 3.2, 3.6), between(draw, 6.3, 6.7));
                // IoT-Benchmark's cycle is in seconds for a sine, and in ms for the others.
                let cycle_s = between(draw, 1_750.0, 1_802.0) as i64;
                (min, max, cycle_s * 1_000)
            }
            Class::Square => {
                let min = one_of(draw, &[0.0, 0.0, 2.0, 25.93, 781.54, 1_473.54]);
                let jump = between(draw, 1.0, 11.0);
                let cycles_s = [182, 210, 320, 1_120, 3_360, 4_200];
                (min, min + jump, one_of(draw, &cycles_s) * 1_000)
            }
        };
        Self {
            class,
            min,
            max,
            cycle_ms,
        }
    }

    /// The value at a time, milliseconds; `chance` returns a random number in [0, 1).
    pub(super) fn value(&self, time_ms: i64, chance: impl FnOnce() -> f64) -> f64 {
        let span = self.max - self.min;
        let part = || time_ms.rem_euclid(self.cycle_ms) as f64 / self.cycle_ms as f64;
        match self.class {
            Class::Line => self.min + span * part(),
            Class::Random => self.min + span * chance(),
            Class::Sine => self.min + span / 2.0 * (1.0 + sine(part())),
            Class::Square if part() < 0.5 => self.max,
            Class::Square | Class::Constant => self.min,
        }
    }

    /// The middle between the least and the greatest value; above it, a boolean sensor is true.
    pub(super) fn middle(&self) -> f64 {
        f64::midpoint(self.min, self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn functions(count: u64) -> Vec<Function> {
        let key = Key::new(11);
        (0..count)
            .map(|sensor| Function::draw(key.with(sensor)))
            .collect()
    }

    #[test]
    fn classes_have_equal_shares() {
        let functions = functions(5_000);
        for (class, _) in RATIOS {
            let count = functions.iter().filter(|f| f.class == class).count();
            // The standard error is 28.
            assert!((860..1_140).contains(&count), "{class:?}: {count}");
        }
    }

    #[test]
    fn values_stay_between_the_least_and_the_greatest() {
        for function in functions(500) {
            assert!(function.cycle_ms > 0 && function.min <= function.max);
            let constant = function.class == Class::Constant;
            assert_eq!(constant, function.min == function.max);
            for step in 0..200_u64 {
                let time = step as i64 * 37_123;
                let value = function.value(time, || Key::new(step).uniform());
                let slack = 1e-9 * function.max.abs().max(1.0);
                let range = function.min - slack..=function.max + slack;
                assert!(range.contains(&value), "{function:?} is {value}");
            }
        }
    }

    fn function(class: Class) -> Function {
        Function {
            class,
            min: 10.0,
            max: 20.0,
            cycle_ms: 1_000,
        }
    }

    #[test]
    fn each_class_has_its_shape() {
        let values = |class| {
            let at = |time_ms| function(class).value(time_ms, || 0.25);
            [0, 250, 500, 750, 1_000].map(at).map(f64::round)
        };
        assert_eq!(values(Class::Constant), [10.0; 5]);
        assert_eq!(values(Class::Line), [10.0, 13.0, 15.0, 18.0, 10.0]);
        assert_eq!(values(Class::Random), [13.0; 5]);
        assert_eq!(values(Class::Sine), [15.0, 20.0, 15.0, 10.0, 15.0]);
        assert_eq!(values(Class::Square), [20.0, 20.0, 10.0, 10.0, 20.0]);
        assert_eq!(function(Class::Sine).middle(), 15.0);
    }
}
