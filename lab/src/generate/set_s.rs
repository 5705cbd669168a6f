//! Standard set S: thermometers that report once per second, in the order of time.
//!
//! Temperature is `round(N(μ, 5))` with `μ ~ U(20, 30)` for each device; humidity is `N(ν, 10)`
//! rounded to four decimals with `ν ~ U(40, 60)` for each device. Times begin at
//! 2024-01-01T00:00:00Z.

use super::Delay;
use super::delayed::Delayed;
use super::draw::Key;
use super::thermometers::{Thermometer, Thermometers};
use crate::data::SECOND_NS;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

/// Time of the first row: 2024-01-01T00:00:00Z.
const START_NS: i64 = 1_704_067_200 * SECOND_NS;

/// A device of the set.
pub(super) struct Device {
    key: Key,
    temperature: f64,
    humidity: f64,
}

impl Device {
    fn new(key: Key) -> Self {
        let mut draw = key.draw();
        Self {
            key,
            temperature: 20.0 + 10.0 * draw.random::<f64>(),
            humidity: 40.0 + 20.0 * draw.random::<f64>(),
        }
    }
}

impl Thermometer for Device {
    fn reading(&self, step: u64) -> (i32, f32) {
        let mut draw = self.key.with(step).draw();
        let mut normal = |mean: f64, deviation: f64| -> f64 {
            let standard: f64 = StandardNormal.sample(&mut draw);
            mean + deviation * standard
        };
        let temperature = normal(self.temperature, 5.0).round_ties_even();
        let humidity = (normal(self.humidity, 10.0) * 1e4).round_ties_even() / 1e4;
        (temperature as i32, humidity as f32)
    }
}

/// The same rows as those of [`set_s`], arriving as `delay` says.
pub(super) fn late_set_s(
    devices: usize,
    rows: usize,
    delay: Delay,
    seed: u64,
) -> Thermometers<Device> {
    // Apart from the devices' keys.
    let key = Key::new(seed).with(u64::MAX);
    set_s(devices, rows, seed).delayed(Delayed::new(delay, rows, key))
}

/// `devices` thermometers with `rows` rows each.
pub(super) fn set_s(devices: usize, rows: usize, seed: u64) -> Thermometers<Device> {
    let device = |device: usize| {
        let name = (device, format!("device_{device:06}"));
        (name, Device::new(Key::new(seed).with(device as u64)))
    };
    Thermometers::new("s", (0..devices).map(device), rows, START_NS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Source;
    use crate::generate::check;

    #[test]
    fn any_number_of_clients_sends_the_same() {
        check::same_for_any_clients(&set_s(10, 33, 1));
        check::same_for_any_clients(&set_s(2, 5, 1));
    }

    #[test]
    fn the_rows_of_a_seed_are_pinned() {
        assert_eq!(check::checksum(&set_s(20, 50, 7)), 742_829_102_652_605_743);
        assert_ne!(
            check::sent(&set_s(2, 2, 1), 1, 9),
            check::sent(&set_s(2, 2, 2), 1, 9)
        );
    }

    #[test]
    fn late_rows_are_the_same_rows_in_another_order() {
        let delay = Delay {
            ratio: 0.5,
            steps_max: 20,
        };
        let late = late_set_s(10, 33, delay, 1);
        check::same_for_any_clients(&late);
        assert_eq!(
            check::sent(&late, 1, 9),
            check::sent(&set_s(10, 33, 1), 1, 9)
        );
        let times: Vec<i64> = late.stream(0, 1, 8).flat_map(|rows| rows.times).collect();
        assert!(!times.is_sorted());
    }

    #[test]
    fn devices_are_named_and_grouped() {
        let set = set_s(124, 1, 0);
        let table = &set.tables()[0];
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(
            table.series[123],
            [text("123"), text("device_000123"), text("23")]
        );
        assert_eq!(table.tags[table.key].name, "devname");
    }

    #[test]
    fn rows_come_in_the_order_of_time() {
        let set = set_s(10, 20, 0);
        let times: Vec<i64> = set.stream(1, 3, 8).flat_map(|rows| rows.times).collect();
        assert_eq!(times.len(), 60);
        assert!(times.is_sorted());
        assert_eq!((times[0], times[59]), (START_NS, START_NS + 19 * SECOND_NS));
    }

    #[test]
    fn values_are_distributed_as_the_model_says() {
        let set = set_s(400, 100, 3);
        for (field, mean, deviation, noise) in [(0, 25.0, 10.0, 5.0), (1, 50.0, 20.0, 10.0)] {
            let numbers = check::numbers(&set, field);
            let devices: Vec<(f64, f64)> = numbers.iter().map(|n| check::moments(n)).collect();
            let means: Vec<f64> = devices.iter().map(|device| device.0).collect();
            let (of_means, spread) = check::moments(&means);
            // A uniform distribution's deviation is its width / √12; the mean of 100 rows adds a
            // tenth of the noise.
            let expected = (deviation * deviation / 12.0 + noise * noise / 100.0_f64).sqrt();
            assert!(
                (of_means - mean).abs() < 5.0 * expected / 20.0,
                "{of_means}"
            );
            assert!((spread / expected - 1.0).abs() < 0.15, "{spread}");
            let within = devices
                .iter()
                .map(|device| device.1 * device.1)
                .sum::<f64>()
                / 400.0;
            assert!((within.sqrt() / noise - 1.0).abs() < 0.02, "{within}");
        }
        let humidity = check::numbers(&set, 1).concat();
        let exact = |value: &f64| ((value * 1e4).round() / 1e4 - value).abs() < 1e-5;
        assert!(humidity.iter().all(exact), "four decimals");
    }
}
