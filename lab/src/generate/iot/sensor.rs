//! Values of a sensor, in the type of its field.
//!
//! IoT-Benchmark generates 100 values of each sensor in advance, at the times of the first 100
//! steps. Step s of device d has value number s·(d + 1) mod 100; all devices share the values. Such
//! data compress better than any real data. *Fresh* values follow the function through true time
//! instead, and each device has its own phase and random numbers.

use super::super::draw::Key;
use super::START_MS;
use super::function::Function;
use crate::data::{FieldKind, Values};
use rand::RngExt;

/// Values generated in advance (`WORKLOAD_BUFFER_SIZE`).
const BUFFER: u64 = 100;
/// Phases of devices are spread over a day.
const PHASE_MS: f64 = 86_400_000.0;
/// Characters of a text (`STRING_LENGTH` is 2 of them).
const CHARACTERS: &[u8; 62] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// A sensor; every device has the same sensors.
pub(super) struct Sensor {
    key: Key,
    kind: FieldKind,
    step_ms: i64,
    function: Function,
    /// The values generated in advance.
    buffer: Values,
}

/// Indices of the values generated in advance for `steps` of `device`.
pub(super) fn slots(device: u64, steps: &[u64]) -> Vec<usize> {
    let slot = |step: &u64| (step % BUFFER * ((device + 1) % BUFFER) % BUFFER) as usize;
    steps.iter().map(slot).collect()
}

fn text(key: Key) -> String {
    let mut draw = key.draw();
    let mut character = || CHARACTERS[(draw.random::<f64>() * 62.0) as usize] as char;
    [character(), character()].iter().collect()
}

fn gather<T: Clone>(values: &[T], slots: &[usize]) -> Vec<T> {
    slots.iter().map(|slot| values[*slot].clone()).collect()
}

impl Sensor {
    /// The sensor with random numbers below `key` and fields of type `kind` every `step_ms`
    /// milliseconds.
    pub(super) fn new(key: Key, kind: FieldKind, step_ms: i64) -> Self {
        let mut sensor = Self {
            key: key.with(0),
            kind,
            step_ms,
            function: Function::draw(key),
            buffer: Values::new(kind),
        };
        let steps: Vec<u64> = (0..BUFFER).collect();
        sensor.buffer = sensor.values(key.with(1), 0, &steps);
        sensor
    }

    /// The values number `slots` of those generated in advance.
    pub(super) fn cycled(&self, slots: &[usize]) -> Values {
        match &self.buffer {
            Values::Bool(values) => Values::Bool(gather(values, slots)),
            Values::I32(values) => Values::I32(gather(values, slots)),
            Values::I64(values) => Values::I64(gather(values, slots)),
            Values::F32(values) => Values::F32(gather(values, slots)),
            Values::F64(values) => Values::F64(gather(values, slots)),
            Values::Text(values) => Values::Text(gather(values, slots)),
        }
    }

    /// The values of `device` at `steps` in true time.
    pub(super) fn fresh(&self, device: u64, steps: &[u64]) -> Values {
        let key = self.key.with(device);
        self.values(key, (key.uniform() * PHASE_MS) as i64, steps)
    }

    fn values(&self, key: Key, phase_ms: i64, steps: &[u64]) -> Values {
        let function = &self.function;
        let number = |step: &u64| {
            let time_ms = START_MS + phase_ms + *step as i64 * self.step_ms;
            function.value(time_ms, || key.with(*step).uniform())
        };
        let numbers = steps.iter().map(number);
        match self.kind {
            FieldKind::Bool => {
                let middle = function.middle();
                Values::Bool(numbers.map(|number| number > middle).collect())
            }
            FieldKind::I32 => Values::I32(numbers.map(|number| number as i32).collect()),
            FieldKind::I64 => Values::I64(numbers.map(|number| number as i64).collect()),
            FieldKind::F32 => Values::F32(numbers.map(|number| number as f32).collect()),
            FieldKind::F64 => {
                // `DOUBLE_LENGTH` is 2 decimals. Zero has one sign.
                let round = |number: f64| (number * 100.0).round() / 100.0 + 0.0;
                Values::F64(numbers.map(round).collect())
            }
            FieldKind::Text => {
                Values::Text(steps.iter().map(|step| text(key.with(*step))).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::function::Class;
    use super::*;

    fn sensor(class: Class, kind: FieldKind) -> Sensor {
        let mut sensors = (0..100).map(|n| Sensor::new(Key::new(5).with(n), kind, 400));
        sensors.find(|s| s.function.class == class).unwrap()
    }

    #[test]
    fn a_hundred_values_come_round_by_device() {
        assert_eq!(slots(0, &[0, 1, 99, 100, 101]), [0, 1, 99, 0, 1]);
        assert_eq!(slots(2, &[0, 1, 33, 34]), [0, 3, 99, 2]);
        assert_eq!(slots(99, &[0, 1, 2]), [0, 0, 0], "as in IoT-Benchmark");
        let sensor = sensor(Class::Random, FieldKind::F64);
        let steps: Vec<u64> = (0..300).collect();
        let values = sensor.cycled(&slots(0, &steps));
        for row in 0..200 {
            assert_eq!(values.number(row), values.number(row + 100));
        }
        assert_ne!(values.number(0), values.number(1));
    }

    #[test]
    fn fresh_values_do_not_come_round() {
        let steps: Vec<u64> = (0..300).collect();
        for kind in [FieldKind::F64, FieldKind::Text] {
            let sensor = sensor(Class::Random, kind);
            let (one, other) = (sensor.fresh(0, &steps), sensor.fresh(1, &steps));
            assert_ne!(one, other);
            assert_ne!(
                sensor.fresh(0, &steps[..100]),
                sensor.fresh(0, &steps[100..200])
            );
            // A late row has the same value as the row that was in time.
            assert_eq!(sensor.fresh(1, &[7]), sensor.fresh(1, &steps[7..8]));
        }
        // In half an hour, a wave passes through its range once.
        let sensor = sensor(Class::Sine, FieldKind::F32);
        let steps: Vec<u64> = (0..4_600).collect();
        let wave = sensor.fresh(3, &steps);
        let wave: Vec<f64> = (0..4_600).filter_map(|row| wave.number(row)).collect();
        let least = wave.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = wave.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        assert!((least - sensor.function.min).abs() < 1e-3);
        assert!((greatest - sensor.function.max).abs() < 1e-3);
    }

    #[test]
    fn values_take_the_type_of_their_field() {
        let exact = sensor(Class::Random, FieldKind::F32);
        let steps: Vec<u64> = (0..100).collect();
        let exact = exact.fresh(0, &steps);
        let doubles = sensor(Class::Random, FieldKind::F64).fresh(0, &steps);
        let ints = sensor(Class::Random, FieldKind::I32).fresh(0, &steps);
        let longs = sensor(Class::Random, FieldKind::I64).fresh(0, &steps);
        for row in 0..100 {
            let number = exact.number(row).unwrap();
            let cents = doubles.number(row).unwrap() * 100.0;
            assert!((cents - cents.round()).abs() < 1e-6);
            assert!((cents / 100.0 - number).abs() < 0.0051);
            assert_eq!(ints.number(row), Some(number.trunc()));
            assert_eq!(longs.number(row), Some(number.trunc()));
        }
        let square = sensor(Class::Square, FieldKind::Bool);
        let Values::Bool(states) = square.fresh(0, &(0..11_000).collect::<Vec<_>>()) else {
            panic!("booleans");
        };
        assert!(states.contains(&true) && states.contains(&false));
        let constant = sensor(Class::Constant, FieldKind::Bool);
        assert_eq!(constant.fresh(0, &[0]), Values::Bool(vec![false]));
        let Values::Text(texts) = sensor(Class::Line, FieldKind::Text).fresh(0, &steps) else {
            panic!("texts");
        };
        assert!(texts.iter().all(|text| text.len() == 2));
    }
}
