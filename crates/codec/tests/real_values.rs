//! Columns of real measurements come back with every bit, and never take more than they would raw.
//!
//! `MARIGRAM_TEST_DATA` may name a directory: the numbers in the last column of each `.csv` file
//! under it are then used. Without it, columns are made here that resemble such data.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test reads files that a person names; the crate itself does no I/O"
)]

use marigram_codec::{Choice, Limits, OwnedValues, ValueType, Values, decode, encode};
use std::path::Path;

const PAGE: usize = 8192;
const LIMITS: Limits = Limits {
    values: PAGE,
    bytes: 1 << 20,
};

/// Named columns.
fn columns() -> Vec<(String, Vec<f64>)> {
    let Some(dir) = std::env::var_os("MARIGRAM_TEST_DATA") else {
        return made();
    };
    let mut columns = Vec::new();
    collect(Path::new(&dir), &mut columns);
    assert!(
        !columns.is_empty(),
        "MARIGRAM_TEST_DATA names a directory with .csv files"
    );
    columns
}

fn collect(dir: &Path, columns: &mut Vec<(String, Vec<f64>)>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, columns);
        } else if path.extension().is_some_and(|ext| ext == "csv") {
            let text = std::fs::read_to_string(&path).unwrap();
            let last = |line: &str| line.rsplit(',').next()?.trim().parse().ok();
            let values: Vec<f64> = text.lines().filter_map(last).collect();
            if !values.is_empty() {
                columns.push((path.display().to_string(), values));
            }
        }
    }
}

/// A random walk in hundredths, a duty cycle with few levels, a price list with outliers, angles
/// that were computed, and a sensor that fails for a while.
fn made() -> Vec<(String, Vec<f64>)> {
    let mut state = 7u64;
    let mut random = move |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    let mut level = 2_000i64;
    let mut walk = || {
        level += random(21) as i64 - 10;
        level as f64 / 100.0
    };
    let walk: Vec<f64> = (0..20_000).map(|_| walk()).collect();
    let duty = (0..10_000).map(|row| f64::from(row / 37 % 4) * 0.25);
    let prices = walk.iter().enumerate().map(
        |(row, value)| {
            if row % 501 == 0 { value * 1e9 } else { *value }
        },
    );
    let angles = (0..10_000).map(|row| f64::from(row).sin());
    let failing = walk.iter().enumerate().map(
        |(row, value)| {
            if row % 3000 < 50 { f64::NAN } else { *value }
        },
    );
    vec![
        ("duty".into(), duty.collect()),
        ("prices".into(), prices.collect()),
        ("angles".into(), angles.collect()),
        ("failing".into(), failing.collect()),
        ("walk".into(), walk.clone()),
    ]
}

#[test]
fn real_columns_come_back_and_do_not_grow() {
    for (name, values) in columns() {
        let (mut bytes, mut bytes_32) = (0, 0);
        for page in values.chunks(PAGE) {
            let mut out = Vec::new();
            let header = encode(Values::F64(page), Choice::default(), &mut out);
            let back = decode(ValueType::F64, header, page.len(), &out, LIMITS).unwrap();
            let OwnedValues::F64(back) = back else {
                panic!("{name}: another type came back")
            };
            let same = page
                .iter()
                .zip(&back)
                .all(|(a, b)| a.to_bits() == b.to_bits());
            assert!(same && page.len() == back.len(), "{name}");
            bytes += out.len();

            let page: Vec<f32> = page.iter().map(|value| *value as f32).collect();
            let mut out = Vec::new();
            let header = encode(Values::F32(&page), Choice::default(), &mut out);
            let back = decode(ValueType::F32, header, page.len(), &out, LIMITS).unwrap();
            let OwnedValues::F32(back) = back else {
                panic!("{name}: another type came back")
            };
            let same = page
                .iter()
                .zip(&back)
                .all(|(a, b)| a.to_bits() == b.to_bits());
            assert!(same && page.len() == back.len(), "{name}");
            bytes_32 += out.len();
        }
        let bits = |bytes: usize| bytes as f64 * 8.0 / values.len() as f64;
        println!(
            "{:6.2} {:6.2} bits/value  {name}",
            bits(bytes),
            bits(bytes_32)
        );
        let pages = values.len().div_ceil(PAGE);
        assert!(bytes <= values.len() * 8 + pages * 16, "{name} grew");
        assert!(
            bytes_32 <= values.len() * 4 + pages * 16,
            "{name} grew as f32"
        );
    }
}
