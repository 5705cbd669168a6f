//! TDengine's comparison with other databases (`tests/comparisonTest` in its repository):
//! thermometers in groups.
//!
//! Devices are numbered from 1, as in the comparison. Every device has two centres: c₁, drawn from
//! 0 … 99 and clamped to 35 … 65, and c₂, drawn from 0 … 21. A row is `trunc(35/3·g + c₁)` and
//! `trunc(17/3·g' + c₂)`, where g and g' are N(0, 1) clamped to ±3. The comparison reads the first
//! as `temperature`, an integer, and the second as `humidity`, in single precision. Rows are a
//! second apart and begin at 1563249700000 ms.

use super::draw::Key;
use super::thermometers::{Thermometer, Thermometers};
use crate::data::SECOND_NS;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

/// Time of the first row: 2019-07-16T04:01:40Z.
const START_NS: i64 = 1_563_249_700 * SECOND_NS;

/// A device of the comparison.
pub(super) struct Device {
    key: Key,
    centres: (f64, f64),
}

impl Device {
    fn new(key: Key) -> Self {
        let mut draw = key.draw();
        let first = (draw.random::<f64>() * 100.0).floor().clamp(35.0, 65.0);
        let second = (draw.random::<f64>() * 22.0).floor();
        Self {
            key,
            centres: (first, second),
        }
    }
}

impl Thermometer for Device {
    fn reading(&self, step: u64) -> (i32, f32) {
        let mut draw = self.key.with(step).draw();
        let mut around = |centre: f64, radius: f64| -> f64 {
            let standard: f64 = StandardNormal.sample(&mut draw);
            (radius / 3.0 * standard.clamp(-3.0, 3.0) + centre).trunc()
        };
        let temperature = around(self.centres.0, 35.0);
        // Zero has one sign, as in the comparison's files.
        let humidity = around(self.centres.1, 17.0) + 0.0;
        (temperature as i32, humidity as f32)
    }
}

/// `devices` thermometers with `rows` rows each.
pub(super) fn fleet(devices: usize, rows: usize, seed: u64) -> Thermometers<Device> {
    let device = |device: usize| {
        let number = device + 1;
        let name = (number, format!("dev_{number}"));
        (name, Device::new(Key::new(seed).with(device as u64)))
    };
    Thermometers::new("devices", (0..devices).map(device), rows, START_NS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Source;
    use crate::generate::check;

    #[test]
    fn any_number_of_clients_sends_the_same() {
        check::same_for_any_clients(&fleet(10, 33, 1));
    }

    #[test]
    fn the_rows_of_a_seed_are_pinned() {
        assert_eq!(
            check::checksum(&fleet(20, 50, 7)),
            10_670_669_967_787_841_961
        );
    }

    #[test]
    fn devices_are_numbered_from_one_and_grouped() {
        let fleet = fleet(200, 1, 0);
        let table = &fleet.tables()[0];
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(table.name, "devices");
        assert_eq!(table.series[0], [text("1"), text("dev_1"), text("1")]);
        assert_eq!(table.series[199], [text("200"), text("dev_200"), text("0")]);
        assert_eq!(fleet.span_ns().0, 1_563_249_700_000 * 1_000_000);
    }

    #[test]
    fn values_stay_within_the_radius_of_their_centre() {
        let fleet = fleet(500, 200, 5);
        let (mut centres, mut clamped) = (Vec::new(), 0);
        for (device, values) in check::numbers(&fleet, 0).iter().enumerate() {
            let centre = fleet.devices[device].centres.0;
            assert!((35.0..=65.0).contains(&centre) && centre.fract() == 0.0);
            assert!(
                values
                    .iter()
                    .all(|v| (v - centre).abs() <= 35.0 && v.fract() == 0.0)
            );
            clamped += values
                .iter()
                .filter(|v| (**v - centre).abs() >= 34.0)
                .count();
            centres.push(centre);
        }
        // P(|g| ≥ 34·3/35) is 0.36 % for the normal distribution: the tails are clamped, not
        // dropped.
        assert!((150..600).contains(&clamped), "{clamped}");
        // 0 … 99 clamped to 35 … 65: 36 % at the lower end, 35 % at the upper.
        let share = |end: f64| centres.iter().filter(|c| **c == end).count();
        assert!((140..220).contains(&share(35.0)), "{}", share(35.0));
        assert!((130..220).contains(&share(65.0)), "{}", share(65.0));
    }

    #[test]
    fn values_are_distributed_as_the_model_says() {
        let fleet = fleet(500, 200, 6);
        for (field, radius) in [(0, 35.0_f64), (1, 17.0)] {
            let rests: Vec<f64> = check::numbers(&fleet, field)
                .iter()
                .flat_map(|values| {
                    let mean = values.iter().sum::<f64>() / values.len() as f64;
                    values.iter().map(move |value| value - mean)
                })
                .collect();
            let (_, deviation) = check::moments(&rests);
            assert!(
                (deviation / (radius / 3.0) - 1.0).abs() < 0.03,
                "{deviation}"
            );
        }
        let humidity = check::numbers(&fleet, 1).concat();
        let (mean, _) = check::moments(&humidity);
        // Centres have the mean 10.5 and the deviation 6.3; truncation moves values towards zero.
        assert!((9.0..12.0).contains(&mean), "{mean}");
        assert!(humidity.iter().all(|v| (-17.0..=38.0).contains(v)));
        assert!(humidity.iter().any(|v| *v < 0.0));
    }
}
