//! Damage in segments: a query returns the right answer or an error that names the file, but never
//! a wrong answer; undamaged data stays readable; `verify` finds every flipped bit.
#![allow(clippy::unwrap_used, reason = "a test panics if its premises fail")]

use marigram_engine::{
    Engine, EngineError, EngineOptions, ScanRequest, TableSnapshot, WriteOptions,
};
use marigram_env::{DiskSnapshot, Env, LogStore, SimClock, SimFs};
use marigram_model::{FieldValue, TagValue, TimeRange};
use marigram_segment::SegmentOptions;
use marigram_testing::crash::to_batch;
use marigram_testing::oracle::{
    Oracle, OracleChange, OracleFilter, OracleRow, OracleRows, OracleTags, ReadError, Tolerance,
    WrittenRow, compare, last_rows, scan_rows,
};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const DIR: &str = "/data";
const DATABASE: &str = "plant";
const FLIPS: usize = 1_500;

fn options() -> EngineOptions {
    EngineOptions {
        shards: 1,
        flush_age_max: None,
        background_threads: 0,
        segment: SegmentOptions { row_group_rows: 64 },
        ..EngineOptions::default()
    }
}

fn open(fs: &SimFs) -> Engine {
    let env = Env::simulated(fs, &SimClock::new(1_700_000_000_000_000_000));
    Engine::open(env, Path::new(DIR), options())
        .expect("damage in a segment is found when it is read")
}

fn rows(devices: std::ops::Range<u32>, times: std::ops::Range<i64>) -> Vec<WrittenRow> {
    let each = |device: u32, at: i64| {
        let mut fields = OracleRow::from([
            (
                "level".to_owned(),
                FieldValue::I64(at * i64::from(device + 1) % 97),
            ),
            ("heat".to_owned(), FieldValue::F64((at % 31) as f64 / 10.0)),
        ]);
        if at % 3 > 0 {
            let state = ["on", "off", "unknown"][(at % 7 / 3) as usize];
            fields.insert("state".to_owned(), FieldValue::String(state.to_owned()));
        }
        let device = TagValue::String(format!("d{device}"));
        let tags = OracleTags::from([("device".to_owned(), device)]);
        WrittenRow {
            tags,
            time: at * 1_000_000_000,
            fields,
        }
    };
    devices
        .flat_map(|device| times.clone().map(move |at| each(device, at)))
        .collect()
}

/// A closed directory with four segments, and its expected content. Each flush has its own series,
/// except for the last one, which adds late rows.
fn build() -> (DiskSnapshot, Oracle) {
    let fs = SimFs::new(1);
    fs.create_dir_all(Path::new(DIR)).unwrap();
    let (engine, mut oracle) = (open(&fs), Oracle::default());
    engine.create_database(DATABASE, true).unwrap();
    let flushes = [
        ("pump", rows(0..3, 1000..1070)),
        ("pump", rows(3..40, 1000..1004)),
        ("valve", rows(0..2, 500..600)),
        ("pump", rows(1..2, 990..1010)),
    ];
    for (table, rows) in flushes {
        let report = engine.write(
            DATABASE,
            &to_batch(table, &rows),
            WriteOptions { grow: true },
        );
        assert_eq!(report.unwrap().stored, rows.len());
        oracle.apply(&OracleChange::Write {
            table: table.to_owned(),
            rows,
        });
        engine.flush().unwrap();
    }
    assert_eq!(engine.segments().len(), 4);
    engine.close().unwrap();
    (fs.snapshot(Path::new(DIR)).unwrap(), oracle)
}

fn scan(snapshot: &TableSnapshot, filter: &OracleFilter) -> Result<OracleRows, ReadError> {
    let request = ScanRequest {
        selection: snapshot.select(&filter.to_engine(snapshot.schema())),
        range: TimeRange::ALL,
        columns: snapshot
            .schema()
            .fields
            .iter()
            .map(|field| field.id)
            .collect(),
        bounds: Vec::new(),
        batch_rows: 1000,
        partitions: 1,
        limit: None,
    };
    scan_rows(snapshot, &request)
}

/// Checks one answer: it must be right, or an error that names the damaged file.
fn judge(
    read: Result<OracleRows, ReadError>,
    expected: &OracleRows,
    damaged: &Path,
    may_fail: bool,
) -> Result<(), String> {
    match read {
        Ok(found) => compare(expected, &found, Tolerance::NONE),
        Err(ReadError::Wrong(reason)) => Err(reason),
        Err(ReadError::Engine(EngineError::Corrupt { path, .. }))
            if path == damaged && may_fail =>
        {
            Ok(())
        }
        Err(ReadError::Engine(error)) => Err(format!("{error:?}, may fail: {may_fail}")),
    }
}

/// Queries each series separately. Only series with rows in the damaged segment may fail.
fn check_queries(
    engine: &Engine,
    oracle: &Oracle,
    damaged: &Path,
    touched: &BTreeSet<(String, OracleTags)>,
) -> Result<(), String> {
    for (name, table) in &oracle.tables {
        let snapshot = engine
            .snapshot(DATABASE, name)
            .map_err(|error| error.to_string())?;
        for (tags, rows) in &table.rows {
            let filter = OracleFilter::In("device".to_owned(), vec![tags["device"].clone()]);
            let may_fail = touched.contains(&(name.clone(), tags.clone()));
            let last: BTreeMap<_, _> = rows
                .last_key_value()
                .map(|(t, row)| (*t, row.clone()))
                .into_iter()
                .collect();
            let whole = OracleRows::from([(tags.clone(), rows.clone())]);
            let last = OracleRows::from([(tags.clone(), last)]);
            judge(scan(&snapshot, &filter), &whole, damaged, may_fail)
                .and_then(|()| judge(last_rows(&snapshot, &filter), &last, damaged, may_fail))
                .map_err(|reason| format!("{name} {tags:?}: {reason}"))?;
        }
    }
    Ok(())
}

/// The series with rows in each segment, by file name.
fn series_of_segments(
    files: &DiskSnapshot,
    oracle: &Oracle,
) -> BTreeMap<PathBuf, BTreeSet<(String, OracleTags)>> {
    let fs = SimFs::new(1);
    fs.restore(Path::new(DIR), files).unwrap();
    let engine = open(&fs);
    let pump = |devices: std::ops::Range<u32>| {
        rows(devices, 0..1)
            .into_iter()
            .map(|row| ("pump".to_owned(), row.tags))
    };
    let valve = rows(0..2, 0..1)
        .into_iter()
        .map(|row| ("valve".to_owned(), row.tags));
    let expected: [BTreeSet<_>; 4] = [
        pump(0..3).collect(),
        pump(3..40).collect(),
        valve.collect(),
        pump(1..2).collect(),
    ];
    let mut segments = engine.segments();
    segments.sort_by_key(|segment| segment.meta.id);
    assert_eq!(
        check_queries(&engine, oracle, Path::new(""), &BTreeSet::new()),
        Ok(())
    );
    segments
        .into_iter()
        .map(|segment| segment.path)
        .zip(expected)
        .collect()
}

#[test]
fn a_flipped_bit_in_a_segment_is_never_a_wrong_answer() {
    let (files, oracle) = build();
    let segments = series_of_segments(&files, &oracle);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
    let mut refused = 0;
    for at in 0..FLIPS {
        let (path, touched) = segments.iter().nth(at % segments.len()).unwrap();
        let fs = SimFs::new(1);
        fs.restore(Path::new(DIR), &files).unwrap();
        let bits = files[path.strip_prefix(DIR).unwrap()].len() as u64 * 8;
        // The structure of the file is at its ends.
        let bit = match at % 3 {
            0 => rng.random_range(0..bits),
            1 => rng.random_range(0..bits.min(64 * 8)),
            _ => rng.random_range(bits.saturating_sub(600 * 8)..bits),
        };
        fs.flip_bit(path, bit).unwrap();
        let place = format!("bit {bit} of {bits} of {}", path.display());

        let mut damage = Vec::new();
        let env = Env::simulated(&fs, &SimClock::new(0));
        Engine::verify(&env, Path::new(DIR), &mut |message| damage.push(message)).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(
            damage.iter().any(|message| message.contains(name)),
            "{place}: {damage:?}"
        );
        let others = damage
            .iter()
            .filter(|message| !message.contains(name))
            .count();
        assert_eq!(others, 0, "{place}: {damage:?}");

        let engine = open(&fs);
        let checked = check_queries(&engine, &oracle, path, touched);
        assert_eq!(checked, Ok(()), "{place}");
        // Compaction must not turn bad rows into good ones, nor drop what it cannot read.
        refused += u32::from(engine.compact().is_err());
        assert_eq!(
            check_queries(&engine, &oracle, path, touched),
            Ok(()),
            "{place}, compacted"
        );
    }
    assert!(refused > 0, "some compaction must find the damage");
}
