//! Columns of real measurements decode bit for bit, and never take more than raw values. Chosen
//! automatically for cold data, the encoding takes about as much as the best single codec.
//!
//! `MARIGRAM_SHARED` may name a directory whose folder `data` contains `nab/*.csv` and `ett/*.csv`
//! (a time, then columns of numbers) and `alp/*.bin` (raw little-endian doubles). Without it, the
//! test generates columns that resemble such data. Without optimization, it uses only a part of
//! each.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test reads files that the user names; the crate itself does no I/O"
)]

use marigram_codec::{
    Compressor, DecodeLimits, Encoding, EncodingChoice, EncodingGoal, OwnedValues, PageValues,
    ValueType, decode, encode,
};
use std::path::Path;

const PAGE: usize = 8192;
const LIMITS: DecodeLimits = DecodeLimits {
    values: PAGE,
    bytes: 1 << 20,
};
const HOT: EncodingChoice = EncodingChoice {
    encoding: None,
    compressor: None,
    goal: EncodingGoal::Fast,
};
const COLD: EncodingChoice = EncodingChoice {
    goal: EncodingGoal::Small,
    ..HOT
};

/// Named columns.
fn columns() -> Vec<(String, Vec<f64>)> {
    let Some(shared) = std::env::var_os("MARIGRAM_SHARED") else {
        eprintln!("MARIGRAM_SHARED is not set: columns are generated instead of read");
        return made();
    };
    let mut columns = Vec::new();
    for folder in ["nab", "ett", "alp"] {
        let folder = Path::new(&shared).join("data").join(folder);
        let files = std::fs::read_dir(folder).unwrap();
        let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        paths.sort();
        for path in paths {
            read_file(&path, &mut columns);
        }
    }
    assert!(!columns.is_empty(), "MARIGRAM_SHARED has data");
    if cfg!(debug_assertions) {
        for (_, values) in &mut columns {
            values.truncate(PAGE + 1000);
        }
    }
    columns
}

fn read_file(path: &Path, columns: &mut Vec<(String, Vec<f64>)>) {
    let name = path.file_stem().unwrap().to_string_lossy().into_owned();
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("bin") => {
            let bytes = std::fs::read(path).unwrap();
            let (doubles, _) = bytes.as_chunks::<8>();
            let values = doubles.iter().map(|bytes| f64::from_le_bytes(*bytes));
            columns.push((name, values.collect()));
        }
        Some("csv") => {
            let text = std::fs::read_to_string(path).unwrap();
            let (head, rows) = text.split_once('\n').unwrap();
            let titles: Vec<&str> = head.trim().split(',').skip(1).collect();
            for (at, title) in titles.iter().enumerate() {
                let number = |row: &str| row.trim().split(',').nth(at + 1)?.parse().ok();
                let name = match titles.len() {
                    1 => name.clone(),
                    _ => format!("{name}.{title}"),
                };
                columns.push((name, rows.lines().filter_map(number).collect()));
            }
        }
        _ => {}
    }
}

/// A random walk in hundredths, a duty cycle with few levels, a price list with outliers, computed
/// angles, and a sensor that fails for a while.
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

fn same_bits(page: &[f64], back: &OwnedValues) -> bool {
    let OwnedValues::F64(back) = back else {
        return false;
    };
    let bits = |values: &[f64]| {
        values
            .iter()
            .map(|value| value.to_bits())
            .collect::<Vec<_>>()
    };
    bits(page) == bits(back)
}

fn same_singles(page: &[f32], back: &OwnedValues) -> bool {
    let OwnedValues::F32(back) = back else {
        return false;
    };
    let bits = |values: &[f32]| {
        values
            .iter()
            .map(|value| value.to_bits())
            .collect::<Vec<_>>()
    };
    bits(page) == bits(back)
}

#[test]
fn real_columns_come_back_and_do_not_grow() {
    for (name, values) in columns() {
        for choice in [HOT, COLD] {
            let (mut bytes, mut bytes_32) = (0, 0);
            for page in values.chunks(PAGE) {
                let mut out = Vec::new();
                let header = encode(PageValues::F64(page), choice, &mut out);
                let back = decode(ValueType::F64, header, page.len(), &out, LIMITS).unwrap();
                assert!(same_bits(page, &back), "{name}");
                bytes += out.len();

                let page: Vec<f32> = page.iter().map(|value| *value as f32).collect();
                let mut out = Vec::new();
                let header = encode(PageValues::F32(&page), choice, &mut out);
                let back = decode(ValueType::F32, header, page.len(), &out, LIMITS).unwrap();
                assert!(same_singles(&page, &back), "{name} as f32");
                bytes_32 += out.len();
            }
            let pages = values.len().div_ceil(PAGE);
            assert!(bytes <= values.len() * 8 + pages * 16, "{name} grew");
            assert!(
                bytes_32 <= values.len() * 4 + pages * 16,
                "{name} grew as f32"
            );
        }
    }
}

/// Bytes of a column, in pages.
fn size(values: &[f64], choice: EncodingChoice) -> usize {
    let mut out = Vec::new();
    for page in values.chunks(PAGE) {
        encode(PageValues::F64(page), choice, &mut out);
    }
    out.len()
}

#[test]
fn auto_is_about_as_small_as_the_best_single_codec() {
    println!(
        "{:>9} {:>9} {:>9} {:>9}  best single codec",
        "values", "hot", "cold", "best"
    );
    let mut worse = Vec::new();
    for (name, values) in columns() {
        let mut best = (usize::MAX, Encoding::Plain, Compressor::Uncompressed);
        for encoding in Encoding::ALL {
            if !encoding.suits(ValueType::F64) {
                continue;
            }
            for compressor in Compressor::ALL {
                let choice = EncodingChoice {
                    encoding: Some(encoding),
                    compressor: Some(compressor),
                    goal: EncodingGoal::Fast,
                };
                let bytes = size(&values, choice);
                if bytes < best.0 {
                    best = (bytes, encoding, compressor);
                }
            }
        }
        let (hot, cold) = (size(&values, HOT), size(&values, COLD));
        println!(
            "{:9} {hot:9} {cold:9} {:9}  {:38} {} {}",
            values.len(),
            best.0,
            name,
            best.1.name(),
            best.2.name(),
        );
        // A page of a few bytes is not worth a search.
        let slack = 32 * values.len().div_ceil(PAGE);
        if cold * 100 > best.0 * 103 + slack * 100 {
            worse.push(name);
        }
    }
    assert!(worse.is_empty(), "larger than with one codec: {worse:?}");
}
