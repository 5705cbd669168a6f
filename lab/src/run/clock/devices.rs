//! Devices that all write at the tick of a clock.

use crate::data::{Column, Field, FieldKind, Rows, Table, Tag, TagKind, Values};
use std::sync::Arc;

/// Time of the first tick, nanoseconds (2024-01-01T00:00:00Z).
pub(super) const START_NS: i64 = 1_704_067_200_000_000_000;

/// Number of groups of devices.
const GROUPS: u64 = 100;

/// The table `clock`: tags `device` (the key) and `site`, fields `s_0`, ….
pub(super) fn table(devices: u64, fields: usize) -> Table {
    let tag = |name: &str| Tag {
        name: name.to_owned(),
        kind: TagKind::Text,
    };
    let field = |index| Field {
        name: format!("s_{index}"),
        kind: FieldKind::F64,
    };
    let series = |device| {
        vec![
            Some(format!("d_{device}")),
            Some(format!("site_{}", device % GROUPS)),
        ]
    };
    Table {
        name: "clock".to_owned(),
        tags: vec![tag("device"), tag("site")],
        key: 0,
        fields: (0..fields).map(field).collect(),
        series: Arc::new((0..devices).map(series).collect()),
    }
}

/// Well-mixed bits of a number (splitmix64's finalizer, Steele and others 2014).
fn mix(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

/// A sensor's value at a tick: a level of its own and a step of up to ±1 around it, two decimals.
fn value(seed: u64, device: u64, field: u64, tick: u64) -> f64 {
    let level = mix(seed ^ mix(device ^ (field << 48))) % 10_000;
    let step = mix(seed ^ mix(device ^ (field << 48)) ^ mix(tick)) % 200;
    (level + step) as f64 / 100.0
}

/// The rows of `devices` at `tick`.
pub(super) fn rows(
    table: &Table,
    devices: std::ops::Range<u64>,
    tick: u64,
    period_ns: i64,
    seed: u64,
) -> Rows {
    let column = |field: usize| Column {
        values: Values::F64(
            devices
                .clone()
                .map(|device| value(seed, device, field as u64, tick))
                .collect(),
        ),
        present: None,
    };
    Rows {
        table: 0,
        columns: (0..table.fields.len()).map(column).collect(),
        times: vec![START_NS + tick as i64 * period_ns; devices.clone().count()],
        series: devices.map(|device| device as u32).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sensor_stays_near_its_level_and_moves() {
        let table = table(3, 2);
        let of = |tick| rows(&table, 0..3, tick, 10, 7);
        let first = of(0);
        assert_eq!(first, of(0));
        assert_eq!(first.points(), 6);
        assert_eq!(of(4).times, [START_NS + 40; 3]);
        let at = |rows: &Rows, device: usize| rows.columns[1].values.number(device);
        let walk: Vec<f64> = (0..50).filter_map(|tick| at(&of(tick), 2)).collect();
        let low = walk.iter().copied().fold(f64::INFINITY, f64::min);
        let high = walk.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        assert!(high - low <= 2.0 && high - low > 0.5, "{low} to {high}");
    }
}
