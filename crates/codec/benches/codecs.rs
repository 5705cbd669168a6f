//! Measures bits per value and speed of the encodings that are chosen for typical columns.
//!
//! `cargo bench -p marigram-codec`. Pages of 8,192 values, one thread, the best of five passes.
//! Temperature and humidity are distributed as in a common benchmark of sensor data: normally
//! around a mean for each device, in whole degrees and with four decimals.
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark reads the machine's clock"
)]

use marigram_codec::{BodyHeader, DecodeLimits, Encoding, PageValues, decode, encode};
use marigram_codec::{Compressor, EncodingChoice, EncodingGoal, ValueType};
use std::hint::black_box;
use std::time::Instant;

const PAGE: usize = 8192;
const PAGES: usize = 128;
const LIMITS: DecodeLimits = DecodeLimits {
    values: PAGE,
    bytes: 64 << 20,
};

/// A small random number generator, so that every run has the same values.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

fn report<T>(name: &str, kind: ValueType, pages: &[Vec<T>], view: impl Fn(&[T]) -> PageValues<'_>) {
    report_as(name, kind, pages, EncodingChoice::default(), view);
}

/// Like [`report`], with a given encoding and compressor.
fn report_one<T>(
    name: &str,
    kind: ValueType,
    pages: &[Vec<T>],
    (encoding, compressor): (Encoding, Compressor),
    view: impl Fn(&[T]) -> PageValues<'_>,
) {
    let choice = EncodingChoice {
        encoding: Some(encoding),
        compressor: Some(compressor),
        goal: EncodingGoal::Fast,
    };
    report_as(name, kind, pages, choice, view);
}

fn report_as<T>(
    name: &str,
    kind: ValueType,
    pages: &[Vec<T>],
    choice: EncodingChoice,
    view: impl Fn(&[T]) -> PageValues<'_>,
) {
    let count: usize = pages.iter().map(Vec::len).sum();
    let mut encoded: Vec<(BodyHeader, Vec<u8>)> = Vec::new();
    let mut encode_ns = u128::MAX;
    let mut decode_ns = u128::MAX;
    for _ in 0..5 {
        encoded.clear();
        let start = Instant::now();
        for page in pages {
            let mut out = Vec::new();
            let header = encode(view(page), choice, &mut out);
            encoded.push((header, out));
        }
        encode_ns = encode_ns.min(start.elapsed().as_nanos());
        let start = Instant::now();
        for ((header, bytes), page) in encoded.iter().zip(pages) {
            black_box(decode(kind, *header, page.len(), bytes, LIMITS).expect("what was encoded"));
        }
        decode_ns = decode_ns.min(start.elapsed().as_nanos());
    }
    let bytes: usize = encoded.iter().map(|(_, bytes)| bytes.len()).sum();
    let header = encoded[0].0;
    println!(
        "{name:34} {:>10} {:>12} {:8.3} bits/value  encode {:7.1} M/s  decode {:7.1} M/s",
        header.encoding.name(),
        header.compressor.name(),
        bytes as f64 * 8.0 / count as f64,
        count as f64 * 1e3 / encode_ns as f64,
        count as f64 * 1e3 / decode_ns as f64,
    );
}

fn pages<T>(mut value: impl FnMut(usize, usize) -> T) -> Vec<Vec<T>> {
    (0..PAGES)
        .map(|page| (0..PAGE).map(|row| value(page, row)).collect())
        .collect()
}

#[expect(clippy::too_many_lines, reason = "a list of measurements")]
fn main() {
    let mut random = Random(1);
    let t0 = 1_704_067_200_000_000_000i64;
    let second = 1_000_000_000i64;
    let regular = pages(|page, row| t0 + (page * PAGE + row) as i64 * second);
    report("times, 1 s", ValueType::I64, &regular, |v| {
        PageValues::I64(v)
    });
    gaps(&mut random);
    let short = pages(|_, row| t0 + (row % 30) as i64 * second);
    report("times, series of 30 rows", ValueType::I64, &short, |v| {
        PageValues::I64(v)
    });
    let apart = pages(|_, row| {
        t0 + (row % 30) as i64 * second + (row / 30 * 7919 % 1000) as i64 * 1_000_000
    });
    report(
        "times, series of 30, own phases",
        ValueType::I64,
        &apart,
        |v| PageValues::I64(v),
    );
    let jitter = pages(|_, row| t0 + row as i64 * second + (random.next() % 20) as i64 * 1_000_000);
    report(
        "times, 1 s with 20 ms jitter",
        ValueType::I64,
        &jitter,
        |v| PageValues::I64(v),
    );

    let means: Vec<(f64, f64)> = (0..PAGES)
        .map(|_| {
            (
                20.0 + 10.0 * random.uniform(),
                40.0 + 20.0 * random.uniform(),
            )
        })
        .collect();
    let temperature =
        pages(|page, _| (means[page].0 + 5.0 * random.normal()).round_ties_even() as i32);
    report("temperature i32", ValueType::I32, &temperature, |v| {
        PageValues::I32(v)
    });
    let wide: Vec<Vec<i64>> = temperature
        .iter()
        .map(|page| page.iter().map(|v| i64::from(*v)).collect())
        .collect();
    report("temperature i64", ValueType::I64, &wide, |v| {
        PageValues::I64(v)
    });
    let humidity =
        pages(|page, _| ((means[page].1 + 10.0 * random.normal()) * 1e4).round_ties_even() / 1e4);
    report("humidity f64", ValueType::F64, &humidity, |v| {
        PageValues::F64(v)
    });
    let single: Vec<Vec<f32>> = humidity
        .iter()
        .map(|page| page.iter().map(|v| *v as f32).collect())
        .collect();
    report("humidity f32", ValueType::F32, &single, |v| {
        PageValues::F32(v)
    });
    let mut tenths = 0.0;
    let walk = pages(|_, _| {
        tenths += (random.normal() * 2.0).round_ties_even();
        tenths / 10.0
    });
    report("drifting tenths f64", ValueType::F64, &walk, |v| {
        PageValues::F64(v)
    });
    let converted: Vec<Vec<f64>> = walk
        .iter()
        .map(|page| page.iter().map(|v| (*v * 0.01).exp()).collect())
        .collect();
    report(
        "drifting, uneven steps f64",
        ValueType::F64,
        &converted,
        |v| PageValues::F64(v),
    );
    let noise = pages(|_, _| random.normal());
    report("noise f64", ValueType::F64, &noise, |v| PageValues::F64(v));
    let counter = pages(|page, row| (page * PAGE + row) as u64 * 1500 + random.next() % 64);
    report("counter u64", ValueType::U64, &counter, |v| {
        PageValues::U64(v)
    });
    let truths = pages(|_, _| random.next().is_multiple_of(3));
    report("random bool", ValueType::Bool, &truths, |v| {
        PageValues::Bool(v)
    });

    let names = ["running", "idle", "stopped", "fault: over temperature"];
    let mut offsets = vec![0i32];
    let mut data = Vec::new();
    for _ in 0..PAGE {
        data.extend_from_slice(names[(random.next() % 4) as usize].as_bytes());
        offsets.push(data.len() as i32);
    }

    let mut out = Vec::new();
    let header = encode(
        PageValues::Bytes {
            offsets: &offsets,
            data: &data,
        },
        EncodingChoice::default(),
        &mut out,
    );
    println!(
        "{:34} {:>10} {:>12} {:8.3} bits/value",
        "state string",
        header.encoding.name(),
        header.compressor.name(),
        out.len() as f64 * 8.0 / PAGE as f64,
    );

    each_encoding(&temperature, &humidity, &single);
    let wave = pages(|_, row| ((row % 1000) as f64 / 159.1).sin());
    report("wave of 1,000 f64", ValueType::F64, &wave, |v| {
        PageValues::F64(v)
    });
}

/// Times, some of which are missing, as differences and on grids.
fn gaps(random: &mut Random) {
    for present in [0.7, 0.1] {
        let mut time = 0;
        let times = pages(|_, _| {
            time += 1_000_000_000;
            while random.uniform() > present {
                time += 1_000_000_000;
            }
            time
        });
        for encoding in [Encoding::Delta, Encoding::Grid] {
            let name = format!("times, 1 s, {present} present");
            let codec = (encoding, Compressor::Uncompressed);
            report_one(&name, ValueType::I64, &times, codec, |v| PageValues::I64(v));
        }
    }
}

/// Every encoding and compressor on some of the pages.
fn each_encoding(temperature: &[Vec<i32>], humidity: &[Vec<f64>], single: &[Vec<f32>]) {
    const PART: usize = PAGES / 8;
    let (temperature, humidity) = (&temperature[..PART], &humidity[..PART]);
    let cold = EncodingChoice {
        goal: EncodingGoal::Small,
        ..EncodingChoice::default()
    };
    println!("\none encoding each, {PART} pages:");
    for encoding in Encoding::ALL {
        let codec = (encoding, Compressor::Uncompressed);
        if encoding.suits(ValueType::I32) {
            let name = "temperature i32";
            report_one(name, ValueType::I32, temperature, codec, |v| {
                PageValues::I32(v)
            });
        }
        if encoding.suits(ValueType::F64) {
            let name = "humidity f64";
            report_one(name, ValueType::F64, humidity, codec, |v| {
                PageValues::F64(v)
            });
        }
    }
    for compressor in Compressor::ALL {
        let codec = (Encoding::Plain, compressor);
        report_one("humidity f64", ValueType::F64, humidity, codec, |v| {
            PageValues::F64(v)
        });
    }
    println!("\ncold:");
    report_as("temperature i32", ValueType::I32, temperature, cold, |v| {
        PageValues::I32(v)
    });
    report_as("humidity f64", ValueType::F64, humidity, cold, |v| {
        PageValues::F64(v)
    });
    report_as("humidity f32", ValueType::F32, &single[..PART], cold, |v| {
        PageValues::F32(v)
    });
}
