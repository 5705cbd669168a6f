//! Measures very many segments with few descriptors: the time of opening, queries and compaction,
//! and their memory.
//!
//! `(ulimit -n 256; many_segments DIR SEGMENTS OPEN_FILES)`; DIR must not exist.
#![allow(
    clippy::disallowed_methods,
    reason = "a measurement reads the machine's figures"
)]

use marigram_engine::backup::BackupOptions;
use marigram_engine::{
    Durability, Engine, EngineError, EngineOptions, ScanMetrics, ScanRequest, TableSpec, TagFilter,
    WriteOptions,
};
use marigram_env::Env;
use marigram_model::{BatchBuilder, FieldValueRef, TableOptions, TagValueRef, TimeRange};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

const PARTITION_NS: i64 = 60_000_000_000;
const BATCH_ROWS: i64 = 10_000;

fn proc_status(name: &str) -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(name));
    line.map_or_else(String::new, |line| {
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    })
}

fn tell(what: &str, since: Instant, engine: Option<&Engine>) {
    let descriptors = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let (resident, peak) = (proc_status("VmRSS:"), proc_status("VmHWM:"));
    let status = engine.map(Engine::status).unwrap_or_default();
    println!(
        "{what:<28} {:>8.3} s  {resident}, {peak}, {descriptors} descriptors, {} segments, {} opens",
        since.elapsed().as_secs_f64(),
        status.segments,
        status.file_opens,
    );
}

fn fill(engine: &Engine, segments: i64, shift_ns: i64) -> Result<(), EngineError> {
    for from in (0..segments).step_by(BATCH_ROWS as usize) {
        let mut builder = BatchBuilder::new("t");
        let slot = builder.slot([("dev", TagValueRef::String("a"))]);
        for at in from..segments.min(from + BATCH_ROWS) {
            builder.row(slot, at * PARTITION_NS + shift_ns);
            builder.field("x", FieldValueRef::F64(at as f64));
        }
        engine.write("db", &builder.finish(), WriteOptions { grow: true })?;
    }
    engine.flush()
}

fn count(engine: &Engine, range: TimeRange) -> Result<usize, EngineError> {
    let snapshot = engine.snapshot("db", "t")?;
    let request = ScanRequest {
        selection: snapshot.select(&TagFilter::All),
        range,
        columns: snapshot
            .schema()
            .fields
            .iter()
            .map(|field| field.id)
            .collect(),
        bounds: Vec::new(),
        batch_rows: 8192,
        partitions: 2,
        limit: None,
    };
    let mut rows = 0;
    for mut partition in snapshot.scan(&request, Arc::new(ScanMetrics::default()))? {
        while let Some(batch) = partition.next_rows()? {
            rows += batch.len();
        }
    }
    Ok(rows)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [dir, segments, open_files] = &arguments[..] else {
        return Err("many_segments DIR SEGMENTS OPEN_FILES".into());
    };
    let (dir, segments) = (Path::new(dir), segments.parse::<i64>()?);
    let options = EngineOptions {
        shards: 1,
        durability: Durability::Os,
        flush_age_max: None,
        background_threads: 0,
        open_files_max: open_files.parse()?,
        ..EngineOptions::default()
    };
    let open = || Engine::open(Env::real(), &dir.join("data"), options.clone());
    let started = Instant::now();
    let engine = open()?;
    engine.create_database("db", true)?;
    let table = TableOptions {
        partition_ns: PARTITION_NS,
        ..TableOptions::default()
    };
    let spec = TableSpec {
        name: "t".to_owned(),
        options: table,
        ..TableSpec::default()
    };
    engine.create_table("db", &spec, false)?;
    fill(&engine, segments, 1)?;
    tell("filled", started, Some(&engine));
    drop(engine);
    let started = Instant::now();
    let engine = open()?;
    tell("opened", started, Some(&engine));
    for what in ["first scan of everything", "second scan of everything"] {
        let started = Instant::now();
        let rows = count(&engine, TimeRange::ALL)?;
        tell(what, started, Some(&engine));
        assert_eq!(rows as i64, segments);
    }
    let middle = segments / 2 * PARTITION_NS;
    let one = TimeRange {
        min: middle,
        max: middle + 1,
    };
    let started = Instant::now();
    assert_eq!(count(&engine, one)?, 1);
    tell("scan of one partition", started, Some(&engine));
    let started = Instant::now();
    fill(&engine, segments.min(1000), 0)?;
    tell("late rows in 1,000, flushed", started, Some(&engine));
    let started = Instant::now();
    engine.compact_table("db", "t")?;
    tell("compacted", started, Some(&engine));
    let started = Instant::now();
    let report = engine.backup(&dir.join("backups"), BackupOptions::default())?;
    assert_eq!(report.info.rows as i64, segments + segments.min(1000));
    tell("backed up", started, Some(&engine));
    drop(engine);
    let started = Instant::now();
    let mut damage = Vec::new();
    Engine::verify(&Env::real(), &dir.join("data"), &mut |place| {
        damage.push(place);
    })?;
    tell("verified", started, None);
    assert!(damage.is_empty(), "{damage:?}");
    Ok(())
}
