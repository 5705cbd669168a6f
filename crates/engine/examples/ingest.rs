//! Measures how fast standard set S is stored in columnar batches of 10,000 rows, each durable, in
//! a new directory: 1,000 devices with three tags and 10,000 rows each, one per second.
//!
//! `cargo run --release -p marigram-engine --example ingest -- DIR [WRITERS] [os]`
//!
//! With `os`, nothing is synced, so the result is only the processor's share. Values are drawn
//! before the clock starts; building batches counts.

use arrow_array::{ArrayRef, Float32Array, Int32Array, Int64Array, StringArray};
use marigram_engine::{Durability, Engine, EngineOptions, WriteOptions};
use marigram_env::Env;
use marigram_model::{BatchField, BatchTag, WriteBatch};
use std::path::PathBuf;
use std::sync::Arc;

const BATCH_ROWS: usize = 10_000;
const DEVICES: usize = 1000;
const DEVICE_ROWS: usize = 10_000;
/// Number of values drawn for each writer; batches start at different positions in them.
const DRAWN: usize = 1 << 20;

/// What one writer sends: some of the devices, with all their rows.
struct WriterShare {
    tags: Vec<BatchTag>,
    devices: usize,
    temperature: Vec<i32>,
    humidity: Vec<f32>,
}

impl WriterShare {
    fn new(writer: usize, writers: usize) -> Self {
        let ids = (DEVICES * writer / writers)..(DEVICES * (writer + 1) / writers);
        let numbers = |number: fn(usize) -> usize| -> ArrayRef {
            let numbers = ids.clone().map(|id| number(id) as i64);
            Arc::new(Int64Array::from_iter_values(numbers))
        };
        let names = ids.clone().map(|id| format!("device_{id:06}"));
        let tag = |name: &str, values| BatchTag {
            name: name.to_owned(),
            values,
        };
        let mut normal = normal(writer as u64);
        let mut means = normal.clone();
        let drawn: Vec<(f64, f64)> = (0..DRAWN)
            .map(|_| {
                let (temperature, humidity) = normal();
                (temperature * 5.0, humidity * 10.0)
            })
            .collect();
        let (temperature, humidity) = means();
        let (temperature, humidity) = (25.0 + temperature, 50.0 + humidity);
        Self {
            tags: vec![
                tag("devid", numbers(|id| id)),
                tag("devname", Arc::new(StringArray::from_iter_values(names))),
                tag("devgroup", numbers(|id| id % 100)),
            ],
            devices: ids.len(),
            temperature: drawn
                .iter()
                .map(|drawn| (temperature + drawn.0).round_ties_even() as i32)
                .collect(),
            humidity: drawn
                .iter()
                .map(|drawn| (((humidity + drawn.1) * 1e4).round_ties_even() / 1e4) as f32)
                .collect(),
        }
    }

    /// Rows `from..to` of the writer's share, second by second, device by device.
    fn batch(&self, from: usize, to: usize) -> WriteBatch {
        let first = from * 7919 % (DRAWN - BATCH_ROWS);
        let drawn = first..first + to - from;
        let (mut second, mut slot) = (from / self.devices, from % self.devices);
        let (mut slots, mut times) = (Vec::with_capacity(to - from), Vec::with_capacity(to - from));
        for _ in from..to {
            slots.push(slot as u32);
            times.push(second as i64 * 1_000_000_000);
            slot += 1;
            if slot == self.devices {
                (second, slot) = (second + 1, 0);
            }
        }
        let field = |name: &str, values| BatchField {
            name: name.to_owned(),
            values,
        };
        WriteBatch {
            table: "s".to_owned(),
            tags: self.tags.clone(),
            slot_count: self.devices,
            slots,
            times: times.into(),
            fields: vec![
                field(
                    "temperature",
                    Arc::new(Int32Array::from(self.temperature[drawn.clone()].to_vec())),
                ),
                field(
                    "humidity",
                    Arc::new(Float32Array::from(self.humidity[drawn].to_vec())),
                ),
            ],
        }
    }
}

/// Draws pairs of normally distributed numbers (Box, Muller 1958).
fn normal(seed: u64) -> impl FnMut() -> (f64, f64) + Clone {
    let mut state = seed;
    let mut uniform = move || {
        // SplitMix64.
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    };
    move || {
        let radius = (-2.0 * (1.0 - uniform()).ln()).sqrt();
        let (sine, cosine) = (std::f64::consts::TAU * uniform()).sin_cos();
        (radius * sine, radius * cosine)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let dir = PathBuf::from(arguments.next().ok_or("the data directory is missing")?);
    let writers: usize = arguments.next().map_or(Ok(4), |text| text.parse())?;
    let durability = match arguments.next().as_deref() {
        Some("os") => Durability::Os,
        _ => Durability::Fsync,
    };
    let parts: Vec<WriterShare> = (0..writers)
        .map(|writer| WriterShare::new(writer, writers))
        .collect();
    let env = Env::real();
    let clock = env.clock.clone();
    let engine = Engine::open(
        env,
        &dir,
        EngineOptions {
            durability,
            ..EngineOptions::default()
        },
    )?;
    engine.create_database("db", true)?;
    let started_ns = clock.monotonic_ns();
    std::thread::scope(|scope| {
        for part in &parts {
            let engine = &engine;
            scope.spawn(move || {
                let rows = part.devices * DEVICE_ROWS;
                for from in (0..rows).step_by(BATCH_ROWS) {
                    let batch = part.batch(from, rows.min(from + BATCH_ROWS));
                    if let Err(error) = engine.write("db", &batch, WriteOptions { grow: true }) {
                        eprintln!("{error}");
                    }
                }
            });
        }
    });
    let rows = (DEVICES * DEVICE_ROWS) as f64;
    let report = |what: &str, started_ns: u64| {
        let seconds = (clock.monotonic_ns() - started_ns) as f64 / 1e9;
        println!(
            "{what}: {seconds:.2} s, {:.2} M rows/s",
            rows / seconds / 1e6
        );
    };
    report("written", started_ns);
    engine.flush()?;
    report("and flushed", started_ns);
    let status = engine.status();
    println!(
        "{} syncs, {} flushes, {} late rows",
        status.wal_syncs, status.flushes, status.rows_late
    );
    println!(
        "{:.2} bytes a row on disk",
        status.segment_bytes as f64 / rows
    );
    engine.close()?;
    Ok(())
}
