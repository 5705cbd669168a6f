//! Standard set S: thermometers that report once a second, in the order of time.
//!
//! Temperature is `round(N(μ, 5))` with `μ ~ U(20, 30)` a device, humidity `N(ν, 10)` rounded to
//! four decimals with `ν ~ U(40, 60)` a device. Times begin at 2024-01-01T00:00:00Z.

use super::draw::Key;
use super::time_major::TimeMajor;
use crate::data::{
    Column, Field, FieldKind, Rows, SECOND_NS, Source, Stream, Table, Tag, TagKind, Values,
};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use std::sync::Arc;

/// Time of the first row: 2024-01-01T00:00:00Z.
const START_NS: i64 = 1_704_067_200 * SECOND_NS;

struct Device {
    key: Key,
    temperature: f64,
    humidity: f64,
}

/// The set.
pub struct SetS {
    tables: Vec<Table>,
    devices: Vec<Device>,
    rows: usize,
}

/// Tags and fields that set S and TDengine's comparison have in common: numbered thermometers in
/// groups of a hundred; `series` are their (number, name).
pub fn thermometers(name: &str, series: impl Iterator<Item = (usize, String)>) -> Table {
    let tag = |name: &str, kind| Tag {
        name: name.to_owned(),
        kind,
    };
    let field = |name: &str, kind| Field {
        name: name.to_owned(),
        kind,
    };
    let values = series.map(|(number, name)| {
        vec![
            Some(number.to_string()),
            Some(name),
            Some((number % 100).to_string()),
        ]
    });
    Table {
        name: name.to_owned(),
        tags: vec![
            tag("devid", TagKind::Integer),
            tag("devname", TagKind::Text),
            tag("devgroup", TagKind::Integer),
        ],
        key: 1,
        fields: vec![
            field("temperature", FieldKind::I32),
            field("humidity", FieldKind::F32),
        ],
        series: Arc::new(values.collect()),
    }
}

/// A batch of thermometers' rows.
pub fn readings(series: Vec<u32>, times: Vec<i64>, values: (Vec<i32>, Vec<f32>)) -> Rows {
    let column = |values| Column {
        values,
        present: None,
    };
    Rows {
        table: 0,
        series,
        times,
        columns: vec![column(Values::I32(values.0)), column(Values::F32(values.1))],
    }
}

impl SetS {
    /// `devices` thermometers with `rows` rows each.
    pub fn new(devices: usize, rows: usize, seed: u64) -> Self {
        let names = (0..devices).map(|device| (device, format!("device_{device:06}")));
        let device = |device: usize| {
            let key = Key::new(seed).with(device as u64);
            let mut draw = key.draw();
            Device {
                key,
                temperature: 20.0 + 10.0 * draw.random::<f64>(),
                humidity: 40.0 + 20.0 * draw.random::<f64>(),
            }
        };
        Self {
            tables: vec![thermometers("s", names)],
            devices: (0..devices).map(device).collect(),
            rows,
        }
    }

    fn reading(&self, device: u32, step: u64) -> (i32, f32) {
        let device = &self.devices[device as usize];
        let mut draw = device.key.with(step).draw();
        let mut normal = |mean: f64, deviation: f64| -> f64 {
            let standard: f64 = StandardNormal.sample(&mut draw);
            mean + deviation * standard
        };
        let temperature = normal(device.temperature, 5.0).round_ties_even();
        let humidity = (normal(device.humidity, 10.0) * 1e4).round_ties_even() / 1e4;
        (temperature as i32, humidity as f32)
    }
}

impl Source for SetS {
    fn tables(&self) -> &[Table] {
        &self.tables
    }

    fn rows(&self) -> u64 {
        self.devices.len() as u64 * self.rows as u64
    }

    fn span_ns(&self) -> (i64, i64) {
        (START_NS, START_NS + self.rows as i64 * SECOND_NS)
    }

    fn stream(&self, client: usize, clients: usize, batch_rows: usize) -> Stream<'_> {
        let order = TimeMajor::new(self.devices.len(), self.rows, client, clients, batch_rows);
        Box::new(order.map(|(devices, steps)| {
            let values = devices.iter().zip(&steps);
            let values = values.map(|(device, step)| self.reading(*device, *step));
            let values = values.unzip();
            let times = steps.iter().map(|step| START_NS + *step as i64 * SECOND_NS);
            readings(devices, times.collect(), values)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::check;

    #[test]
    fn any_number_of_clients_sends_the_same() {
        check::same_for_any_clients(&SetS::new(10, 33, 1));
        check::same_for_any_clients(&SetS::new(2, 5, 1));
    }

    #[test]
    fn the_rows_of_a_seed_are_pinned() {
        assert_eq!(
            check::checksum(&SetS::new(20, 50, 7)),
            742_829_102_652_605_743
        );
        assert_ne!(
            check::sent(&SetS::new(2, 2, 1), 1, 9),
            check::sent(&SetS::new(2, 2, 2), 1, 9)
        );
    }

    #[test]
    fn devices_are_named_and_grouped() {
        let set = SetS::new(124, 1, 0);
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
        let set = SetS::new(10, 20, 0);
        let times: Vec<i64> = set.stream(1, 3, 8).flat_map(|rows| rows.times).collect();
        assert_eq!(times.len(), 60);
        assert!(times.is_sorted());
        assert_eq!((times[0], times[59]), (START_NS, START_NS + 19 * SECOND_NS));
    }

    #[test]
    fn values_are_distributed_as_the_model_says() {
        let set = SetS::new(400, 100, 3);
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
