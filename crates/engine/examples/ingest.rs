//! Measures how fast batches of 10,000 rows are stored, durable each, in a new directory.
//!
//! `cargo run --release -p marigram-engine --example ingest -- DIR [WRITERS] [BATCHES] [os]`
//!
//! With `os` nothing is synced: what is measured then is the processor's part.

use arrow_array::{ArrayRef, Float64Array, Int32Array, StringArray};
use marigram_engine::{Durability, Engine, EngineOptions, WriteOptions};
use marigram_env::Env;
use marigram_model::{BatchField, BatchTag, WriteBatch};
use std::path::PathBuf;
use std::sync::Arc;

const ROWS: usize = 10_000;
const DEVICES: usize = 1000;

fn devices(writer: usize) -> ArrayRef {
    let names = (0..DEVICES).map(|device| Some(format!("writer-{writer}-device-{device}")));
    Arc::new(names.collect::<StringArray>())
}

fn batch(devices: &ArrayRef, number: usize) -> WriteBatch {
    let start = (number * (ROWS / DEVICES)) as i64;
    let temperature: Int32Array = (0..ROWS).map(|row| Some((row * 7 % 400) as i32)).collect();
    let humidity: Float64Array = (0..ROWS)
        .map(|row| Some((row % 977) as f64 / 10.0))
        .collect();
    WriteBatch {
        table: "climate".to_owned(),
        tags: vec![BatchTag {
            name: "device".to_owned(),
            values: devices.clone(),
        }],
        slot_count: DEVICES,
        slots: (0..ROWS).map(|row| (row % DEVICES) as u32).collect(),
        times: (0..ROWS)
            .map(|row| (start + (row / DEVICES) as i64) * 1_000_000_000)
            .collect(),
        fields: vec![
            BatchField {
                name: "temperature".to_owned(),
                values: Arc::new(temperature),
            },
            BatchField {
                name: "humidity".to_owned(),
                values: Arc::new(humidity),
            },
        ],
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let dir = PathBuf::from(arguments.next().ok_or("the data directory is missing")?);
    let writers: usize = arguments.next().map_or(Ok(4), |text| text.parse())?;
    let batches: usize = arguments.next().map_or(Ok(250), |text| text.parse())?;
    let durability = match arguments.next().as_deref() {
        Some("os") => Durability::Os,
        _ => Durability::Fsync,
    };
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
        let write = |writer: usize| {
            let engine = &engine;
            move || {
                let devices = devices(writer);
                for number in 0..batches {
                    let batch = batch(&devices, number);
                    if let Err(error) = engine.write("db", &batch, WriteOptions { grow: true }) {
                        eprintln!("{error}");
                    }
                }
            }
        };
        for writer in 0..writers {
            scope.spawn(write(writer));
        }
    });
    let rows = (writers * batches * ROWS) as f64;
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
