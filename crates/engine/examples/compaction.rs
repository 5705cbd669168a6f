//! Measures the cost and the benefit of compaction: rows of the standard set arrive, some of them
//! late, while compaction runs; then everything is moved to its place.
//!
//! `cargo run --release -p marigram-engine --example compaction -- DIR [DEVICES] [ROWS] [LATE_PERCENT]
//! [POLICY] [FLUSH_KIB]`
//!
//! ROWS is the number of rows of each device, one per second. A late row arrives after a random
//! part of all rows that follow it, so late rows can be anywhere. POLICY is `balance`,
//! `inner_cross`, `cross_inner`, or `none`, which compacts nothing before all rows have arrived.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int32Type};
use arrow_array::{ArrayRef, Float32Array, Int32Array, StringArray};
use marigram_engine::{
    CompactionPolicy, Durability, Engine, EngineOptions, ScanMetrics, ScanRequest, TagFilter,
    WriteOptions,
};
use marigram_env::{Clock, Env};
use marigram_model::{BatchField, BatchTag, ColumnId, TimeRange, WriteBatch};
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

const BATCH_ROWS: usize = 10_000;
const SECOND_NS: i64 = 1_000_000_000;
/// Midnight, so that up to a day of rows is one partition.
const START_NS: i64 = 1_704_067_200 * SECOND_NS;

/// What to measure.
struct MeasurementPlan {
    dir: PathBuf,
    devices: u32,
    rows: u32,
    late_percent: u64,
    /// `None` compacts nothing before all rows have arrived.
    policy: Option<CompactionPolicy>,
    flush_bytes: usize,
}

impl MeasurementPlan {
    fn read() -> Result<Self, Box<dyn Error>> {
        let given: Vec<String> = std::env::args().skip(1).collect();
        let number = |at: usize, default: u32| given.get(at).map_or(Ok(default), |n| n.parse());
        let policy = match given.get(4).map(String::as_str) {
            Some("none") => None,
            Some(name) => {
                let mut all = CompactionPolicy::ALL.into_iter();
                Some(all.find(|p| p.name() == name).ok_or("no such policy")?)
            }
            None => Some(CompactionPolicy::default()),
        };
        Ok(Self {
            dir: given.first().ok_or("the data directory is missing")?.into(),
            devices: number(1, 1000)?,
            rows: number(2, 10_000)?,
            late_percent: number(3, 10)?.into(),
            policy,
            flush_bytes: number(5, 64 << 10)? as usize * 1024,
        })
    }

    fn options(&self) -> EngineOptions {
        EngineOptions {
            durability: Durability::Os,
            memory_limit_bytes: 2 << 30,
            flush_bytes_max: self.flush_bytes,
            background_threads: usize::from(self.policy.is_some()) * 2,
            compaction: self.policy.unwrap_or_default(),
            ..EngineOptions::default()
        }
    }
}

/// A pseudo-random number derived from two others.
fn mix(a: u64, b: u64) -> u64 {
    let mut x = (a << 32 | b).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03;
    for _ in 0..2 {
        x = (x ^ (x >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    }
    x ^ (x >> 32)
}

/// Approximately normal with mean 0 and standard deviation 1: a sum of four uniform numbers.
fn normal(seed: u64) -> f64 {
    let part = |at: u32| f64::from((seed >> (16 * at)) as u16) / 65_536.0 - 0.5;
    (0..4).map(part).sum::<f64>() * 3f64.sqrt()
}

/// Rows that arrive, as device and second.
struct RowArrivals {
    devices: ArrayRef,
    count: u32,
    rows: Vec<(u32, u32)>,
}

impl RowArrivals {
    fn batch(&self, rows: &[(u32, u32)]) -> WriteBatch {
        let value = |(device, second): &(u32, u32), what: u64| {
            let mean = (mix(u64::from(*device), what) % 1000) as f64 / 1000.0;
            (
                mean,
                normal(mix(u64::from(*device) << 8 | what, u64::from(*second))),
            )
        };
        let temperature: Int32Array = rows
            .iter()
            .map(|row| value(row, 1))
            .map(|(mean, noise)| Some((20.0 + mean * 10.0 + noise * 5.0).round() as i32))
            .collect();
        let humidity: Float32Array = rows
            .iter()
            .map(|row| value(row, 2))
            .map(|(mean, noise)| {
                Some((((40.0 + mean * 20.0 + noise * 10.0) * 1e4).round() / 1e4) as f32)
            })
            .collect();
        let field = |name: &str, values: ArrayRef| BatchField {
            name: name.to_owned(),
            values,
        };
        let time = |row: &(u32, u32)| START_NS + i64::from(row.1) * SECOND_NS;
        WriteBatch {
            table: "climate".to_owned(),
            tags: vec![BatchTag {
                name: "devname".to_owned(),
                values: self.devices.clone(),
            }],
            slot_count: self.count as usize,
            slots: rows.iter().map(|row| row.0).collect(),
            times: rows.iter().map(time).collect(),
            fields: vec![
                field("temperature", Arc::new(temperature)),
                field("humidity", Arc::new(humidity)),
            ],
        }
    }

    fn write(&mut self, engine: &Engine, all: bool) -> Result<(), Box<dyn Error>> {
        while self.rows.len() >= BATCH_ROWS || (all && !self.rows.is_empty()) {
            let rest = self.rows.split_off(self.rows.len().min(BATCH_ROWS));
            let batch = self.batch(&self.rows);
            engine.write("db", &batch, WriteOptions { grow: true })?;
            self.rows = rest;
        }
        Ok(())
    }
}

fn ingest(plan: &MeasurementPlan, engine: &Engine) -> Result<(), Box<dyn Error>> {
    let names = (0..plan.devices).map(|device| Some(format!("device_{device:06}")));
    let mut arrivals = RowArrivals {
        devices: Arc::new(names.collect::<StringArray>()),
        count: plan.devices,
        rows: Vec::new(),
    };
    // Late rows by the second in which they arrive.
    let mut held: Vec<Vec<(u32, u32)>> = vec![Vec::new(); plan.rows as usize + 1];
    for second in 0..plan.rows {
        for device in 0..plan.devices {
            let chance = mix(u64::from(device) ^ 0xABCD_EF00, u64::from(second));
            if chance % 100 < plan.late_percent {
                let after = (chance >> 32) % u64::from(plan.rows - second) + 1;
                held[second as usize + after as usize].push((device, second));
            } else {
                arrivals.rows.push((device, second));
            }
        }
        arrivals.rows.append(&mut held[second as usize]);
        arrivals.write(engine, false)?;
    }
    arrivals.rows.append(&mut held[plan.rows as usize]);
    arrivals.write(engine, true)
}

/// Sums both fields of all rows; returns rows and ms, the best of three.
fn aggregate(engine: &Engine, clock: &dyn Clock) -> Result<(u64, f64), Box<dyn Error>> {
    let mut best = (0, f64::MAX);
    for _ in 0..3 {
        let started_ns = clock.monotonic_ns();
        let snapshot = engine.snapshot("db", "climate")?;
        let request = ScanRequest {
            selection: snapshot.select(&TagFilter::All),
            range: TimeRange::ALL,
            columns: vec![ColumnId(1), ColumnId(2)],
            bounds: Vec::new(),
            batch_rows: 8192,
            partitions: 1,
            limit: None,
        };
        let (mut rows, mut sum) = (0, 0.0);
        for mut partition in snapshot.scan(&request, Arc::new(ScanMetrics::default()))? {
            while let Some(batch) = partition.next_rows()? {
                rows += batch.len() as u64;
                let temperature = batch.columns[0].as_primitive::<Int32Type>().values();
                let humidity = batch.columns[1].as_primitive::<Float32Type>().values();
                sum += temperature.iter().map(|v| i64::from(*v)).sum::<i64>() as f64;
                sum += humidity.iter().map(|v| f64::from(*v)).sum::<f64>();
            }
        }
        std::hint::black_box(sum);
        let ms = (clock.monotonic_ns() - started_ns) as f64 / 1e6;
        best = (rows, best.1.min(ms));
    }
    Ok(best)
}

fn report(what: &str, engine: &Engine, clock: &dyn Clock) -> Result<(), Box<dyn Error>> {
    let status = engine.status();
    let (rows, ms) = aggregate(engine, clock)?;
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    println!(
        "{what}: write amplification {:.2}; flushed {:.1} MiB, compactions wrote {:.1} MiB (copied \
         {:.1}), read {:.1}, moved {:.1}; {} segments, {:.2} bytes a row; {} late of {} rows; \
         {rows} rows summed in {ms:.0} ms",
        status.write_amplification,
        mib(status.flushed_bytes),
        mib(status.compacted_bytes),
        mib(status.compaction_copied_bytes),
        mib(status.compaction_read_bytes),
        mib(status.compaction_moved_bytes),
        status.segments,
        status.segment_bytes as f64 / rows.max(1) as f64,
        status.rows_late,
        status.rows_written,
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let plan = MeasurementPlan::read()?;
    let env = Env::real();
    let clock = env.clock.clone();
    let engine = Engine::open(env, &plan.dir, plan.options())?;
    engine.create_database("db", true)?;
    let started_ns = clock.monotonic_ns();
    ingest(&plan, &engine)?;
    engine.flush()?;
    let seconds = (clock.monotonic_ns() - started_ns) as f64 / 1e9;
    let rows = f64::from(plan.devices) * f64::from(plan.rows);
    println!(
        "{} devices, {} rows each, {} % late, {}: stored and flushed in {seconds:.1} s, {:.2} M \
         rows/s",
        plan.devices,
        plan.rows,
        plan.late_percent,
        plan.policy.map_or("no compaction", CompactionPolicy::name),
        rows / seconds / 1e6
    );
    report("as it came", &engine, &*clock)?;
    if plan.policy.is_some() {
        while engine.maintain()? {}
        report("nothing more due", &engine, &*clock)?;
    }
    let started_ns = clock.monotonic_ns();
    let done = engine.compact_table("db", "climate")?;
    let seconds = (clock.monotonic_ns() - started_ns) as f64 / 1e9;
    println!("the table in {seconds:.1} s: {done:?}");
    report("all in its place", &engine, &*clock)?;
    engine.close()?;
    Ok(())
}
