//! Standard set S: D devices, R rows each, one row a second, arriving in the order of time.
//!
//! Tags `devid` (integer), `devname` (`device_000123`), `devgroup` (devid mod 100). Temperature is
//! an i32, `round(N(μ, 5))` with `μ ~ U(20, 30)` a device; humidity an f32, `round(N(ν, 10), 4)`
//! with `ν ~ U(40, 60)` a device. Times begin at 2024-01-01T00:00:00Z. The same seed makes the
//! same rows on every machine.

use arrow_array::{Float32Array, Int32Array, Int64Array, StringArray};
use marigram_model::{BatchField, BatchTag, WriteBatch};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::f64::consts::TAU;
use std::fmt::Write;
use std::sync::Arc;

/// Time of the first row, seconds since the Unix epoch (2024-01-01T00:00:00Z).
pub const START_S: i64 = 1_704_067_200;

const NS: i64 = 1_000_000_000;

/// The set: `temperature` and `humidity` of every device, device-major.
#[derive(Debug)]
pub struct SetS {
    devices: usize,
    rows: usize,
    temperature: Vec<i32>,
    humidity: Vec<f32>,
}

/// Draws from N(mean, deviation) by the Box–Muller transform.
fn normal(rng: &mut SmallRng, mean: f64, deviation: f64) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    mean + deviation * radius * (TAU * rng.random::<f64>()).cos()
}

impl SetS {
    /// Makes `devices` × `rows` rows from `seed`.
    #[must_use]
    pub fn generate(devices: usize, rows: usize, seed: u64) -> Self {
        let mut temperature = Vec::with_capacity(devices * rows);
        let mut humidity = Vec::with_capacity(devices * rows);
        for device in 0..devices {
            let mut rng = SmallRng::seed_from_u64(seed ^ (device as u64).wrapping_mul(0x9E37_79B9));
            let mean_temperature = rng.random_range(20.0..30.0);
            let mean_humidity = rng.random_range(40.0..60.0);
            for _ in 0..rows {
                temperature.push(normal(&mut rng, mean_temperature, 5.0).round() as i32);
                let exact = normal(&mut rng, mean_humidity, 10.0);
                humidity.push(((exact * 10_000.0).round() / 10_000.0) as f32);
            }
        }
        Self {
            devices,
            rows,
            temperature,
            humidity,
        }
    }

    /// Number of devices.
    #[must_use]
    pub fn devices(&self) -> usize {
        self.devices
    }

    /// Rows in all.
    #[must_use]
    pub fn len(&self) -> usize {
        self.devices * self.rows
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Row `row` in the order of arrival: (device, time in seconds, temperature, humidity).
    #[must_use]
    pub fn row(&self, row: usize) -> (usize, i64, i32, f32) {
        let (device, second) = (row % self.devices, row / self.devices);
        let at = device * self.rows + second;
        (
            device,
            START_S + second as i64,
            self.temperature[at],
            self.humidity[at],
        )
    }

    /// Rows `from..to` in the order of arrival as line protocol, times in seconds.
    #[must_use]
    pub fn lines(&self, table: &str, from: usize, to: usize) -> String {
        let mut text = String::with_capacity((to - from) * 96);
        for row in from..to {
            let (device, second, temperature, humidity) = self.row(row);
            let group = device % 100;
            writeln!(
                text,
                "{table},devname=device_{device:06},devgroup={group} \
                 temperature={temperature}i,humidity={humidity} {second}"
            )
            .expect("a string takes every text");
        }
        text
    }

    /// Rows `from..to` in the order of arrival as a columnar batch.
    #[must_use]
    pub fn batch(&self, table: &str, from: usize, to: usize) -> WriteBatch {
        let slots = self.devices.min(to - from);
        let first = from % self.devices;
        let device_of = |slot: usize| (first + slot) % self.devices;
        let names: Vec<String> = (0..slots)
            .map(|slot| format!("device_{:06}", device_of(slot)))
            .collect();
        let ids = Int64Array::from_iter_values((0..slots).map(|slot| device_of(slot) as i64));
        let groups =
            Int64Array::from_iter_values((0..slots).map(|slot| (device_of(slot) % 100) as i64));
        let rows = || (from..to).map(|row| self.row(row));
        WriteBatch {
            table: table.to_owned(),
            tags: vec![
                BatchTag {
                    name: "devid".into(),
                    values: Arc::new(ids),
                },
                BatchTag {
                    name: "devname".into(),
                    values: Arc::new(StringArray::from(names)),
                },
                BatchTag {
                    name: "devgroup".into(),
                    values: Arc::new(groups),
                },
            ],
            slot_count: slots,
            slots: (0..to - from)
                .map(|row| (row % self.devices) as u32)
                .collect(),
            times: rows().map(|row| row.1 * NS).collect::<Vec<_>>().into(),
            fields: vec![
                BatchField {
                    name: "temperature".into(),
                    values: Arc::new(Int32Array::from_iter_values(rows().map(|row| row.2))),
                },
                BatchField {
                    name: "humidity".into(),
                    values: Arc::new(Float32Array::from_iter_values(rows().map(|row| row.3))),
                },
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_rows_of_the_right_shape() {
        let set = SetS::generate(50, 2_000, 7);
        let again = SetS::generate(50, 2_000, 7);
        assert_eq!(set.temperature, again.temperature);
        assert_eq!(set.humidity, again.humidity);
        let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / set.len() as f64;
        let temperature = mean(&mut set.temperature.iter().map(|v| f64::from(*v)));
        let humidity = mean(&mut set.humidity.iter().map(|v| f64::from(*v)));
        assert!((23.0..27.0).contains(&temperature), "{temperature}");
        assert!((46.0..54.0).contains(&humidity), "{humidity}");
        let device = &set.temperature[..2_000];
        let mean = device.iter().map(|v| f64::from(*v)).sum::<f64>() / 2_000.0;
        let variance = device
            .iter()
            .map(|v| (f64::from(*v) - mean).powi(2))
            .sum::<f64>()
            / 2_000.0;
        assert!(
            (22.0..29.0).contains(&variance),
            "variance of 5² and of rounding: {variance}"
        );
        assert_ne!(set.temperature[..2_000], set.temperature[2_000..4_000]);
    }

    #[test]
    fn a_batch_and_its_lines_say_the_same() {
        let set = SetS::generate(7, 20, 1);
        let batch = set.batch("s", 3, 33);
        assert_eq!(batch.check(), Ok(()));
        let lines = set.lines("s", 3, 33);
        for (row, line) in lines.lines().enumerate() {
            let (device, second, ..) = set.row(3 + row);
            let slot = batch.slots[row] as usize;
            let name = batch.tags[1].value(slot).unwrap().to_string();
            assert_eq!(name, format!("device_{device:06}"));
            assert!(
                line.contains(&name) && line.ends_with(&second.to_string()),
                "{line}"
            );
            assert_eq!(batch.times[row], second * NS);
        }
    }
}
