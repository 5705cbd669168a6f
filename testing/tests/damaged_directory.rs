//! Removes, truncates, swaps, ages and flips every file of a data directory in turn. The directory
//! then opens and answers correctly, or is refused with an error that names the file. When the file
//! is put back, everything is there again.
//!
//! `MARIGRAM_DAMAGED_DIRECTORIES=10000` damages more directories, `MARIGRAM_DAMAGED_SEED=7` uses a
//! single build.
#![allow(clippy::unwrap_used, reason = "a test panics if its premises fail")]
#![allow(clippy::disallowed_methods, reason = "tests print how long they took")]

use marigram_codec::frame;
use marigram_engine::{Engine, EngineOptions, TableSpec, WriteOptions};
use marigram_env::{DiskSnapshot, Env, LogStore, SimClock, SimFs};
use marigram_model::{FieldType, FieldValue, Rollup, TagType, TagValue, TimeRange};
use marigram_testing::crash::to_batch;
use marigram_testing::oracle::{
    Oracle, OracleChange, OracleFilter, OracleRow, OracleRows, OracleTags, ReadError, Tolerance,
    WrittenRow, compare, observe,
};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const DIR: &str = "/data";
const DATABASE: &str = "plant";
const SHARDS: usize = 2;
const START_NS: i64 = 1_700_000_000_000_000_000;
/// Damaged directories in a normal test run.
const DIRECTORIES: u64 = 600;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// A data directory, its expected content, and its earlier states.
struct BuiltDirectory {
    files: DiskSnapshot,
    older: Vec<DiskSnapshot>,
    truth: BTreeMap<String, OracleRows>,
}

fn options() -> EngineOptions {
    EngineOptions {
        shards: SHARDS,
        flush_age_max: None,
        background_threads: 0,
        trash_retention: Duration::from_hours(24),
        ..EngineOptions::default()
    }
}

fn env(fs: &SimFs) -> Env {
    env_at(fs, START_NS)
}

fn env_at(fs: &SimFs, start_ns: i64) -> Env {
    let clock = SimClock::new(start_ns);
    clock.advance(fs.ops());
    Env::simulated(fs, &clock)
}

fn open(fs: &SimFs) -> marigram_engine::Result<Engine> {
    Engine::open(env(fs), Path::new(DIR), options())
}

fn rows(
    rng: &mut Xoshiro256PlusPlus,
    devices: u32,
    times: std::ops::Range<i64>,
) -> Vec<WrittenRow> {
    let mut rows = Vec::new();
    for device in 0..devices {
        for at in times.clone() {
            let level = FieldValue::I64(rng.random_range(0..1_000));
            let heat = FieldValue::F64(f64::from(rng.random_range(0..100)) / 4.0);
            let device = TagValue::String(format!("d{device}"));
            rows.push(WrittenRow {
                tags: OracleTags::from([("device".to_owned(), device)]),
                time: START_NS + at * 60_000_000_000,
                fields: OracleRow::from([("level".to_owned(), level), ("heat".to_owned(), heat)]),
            });
        }
    }
    rows
}

/// Writes rows to several tables, some of them late, deletes some, flushes most, and closes the
/// directory or not.
fn build(seed: u64) -> BuiltDirectory {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let fs = SimFs::new(seed);
    fs.create_dir_all(Path::new(DIR)).unwrap();
    // Two directories never have the same time of creation.
    let env = env_at(&fs, START_NS + seed as i64 * 1_000_000);
    let mut engine = Engine::open(env, Path::new(DIR), options()).unwrap();
    let (mut oracle, mut older) = (Oracle::default(), Vec::new());
    engine.create_database(DATABASE, true).unwrap();
    engine.create_database("spare", true).unwrap();
    if rng.random_bool(0.7) {
        note_reference_tables(&fs, &engine);
    }
    let steps = rng.random_range(5..9);
    for step in 0..steps {
        let table = ["pump", "valve", "tank"][rng.random_range(0..3)];
        let devices = rng.random_range(1..7);
        let from = if rng.random_bool(0.3) { -30 } else { step * 50 };
        let change = if rng.random_bool(0.2) && oracle.tables.contains_key(table) {
            let min = START_NS + rng.random_range(-20..200) * 60_000_000_000;
            OracleChange::Delete {
                table: table.to_owned(),
                filter: OracleFilter::All,
                range: TimeRange {
                    min,
                    max: min + 600_000_000_000,
                },
            }
        } else {
            let last = from + rng.random_range(1..25);
            let rows = rows(&mut rng, devices, from..last);
            OracleChange::Write {
                table: table.to_owned(),
                rows,
            }
        };
        match &change {
            OracleChange::Write { table, rows } => {
                let batch = to_batch(table, rows);
                let report = engine.write(DATABASE, &batch, WriteOptions { grow: true });
                assert_eq!(report.unwrap().stored, rows.len());
            }
            OracleChange::Delete { table, range, .. } => {
                let all = marigram_engine::TagFilter::All;
                engine.delete(DATABASE, table, &all, *range).unwrap();
            }
            _ => unreachable!("nothing else is drawn"),
        }
        oracle.apply(&change);
        older.push(fs.snapshot(Path::new(DIR)).unwrap());
        if step == 1 {
            let (name, table) = oracle.tables.first_key_value().unwrap();
            assert!(!table.rows.is_empty());
            let view = TableSpec {
                name: "view".to_owned(),
                tags: vec![("device".to_owned(), TagType::String)],
                fields: vec![("level".to_owned(), FieldType::I64)],
                rollup: Some(Rollup {
                    source: engine.table(DATABASE, name).unwrap().id,
                    query: "SELECT 1".to_owned(),
                    cell_ns: 60_000_000_000,
                    cell_origin_ns: 0,
                    refresh_ns: 60_000_000_000,
                    lag_ns: 0,
                }),
                ..TableSpec::default()
            };
            engine.create_table(DATABASE, &view, true).unwrap();
        }
        match rng.random_range(0..6) {
            0..3 if step + 1 < steps => engine.flush().unwrap(),
            3 => engine.compact().unwrap(),
            4 => {
                drop(engine);
                fs.kill();
                engine = open(&fs).unwrap();
            }
            _ => {}
        }
    }
    if rng.random_bool(0.3) {
        engine.close().unwrap();
    }
    drop(engine);
    fs.kill();
    let mut truth: BTreeMap<String, OracleRows> = oracle
        .tables
        .iter()
        .map(|(name, table)| {
            (
                name.clone(),
                table.select(&OracleFilter::All, TimeRange::ALL),
            )
        })
        .collect();
    truth.insert("view".to_owned(), OracleRows::new());
    let files = fs.snapshot(Path::new(DIR)).unwrap();
    BuiltDirectory {
        files,
        older,
        truth,
    }
}

/// A file in the place of that of the reference tables: the engine only knows whether it is there.
fn note_reference_tables(fs: &SimFs, engine: &Engine) {
    let folder = Path::new(DIR).join("reference");
    fs.create_dir_all(&folder).unwrap();
    let file = fs.create(&folder.join("tables.db")).unwrap();
    file.append(&[7; 100]).unwrap();
    file.sync().unwrap();
    engine.note_reference_tables().unwrap();
}

/// Damage to a directory: the changed files (`None`: removed), and a description.
struct DirectoryDamage {
    what: String,
    changes: Vec<(PathBuf, Option<Vec<u8>>)>,
}

impl DirectoryDamage {
    fn one(path: &Path, what: &str, bytes: Option<Vec<u8>>) -> Self {
        let what = format!("{} {what}", path.display());
        let changes = vec![(path.to_owned(), bytes)];
        Self { what, changes }
    }
}

/// The ends of the file's records.
fn boundaries(path: &Path, bytes: &[u8]) -> Vec<usize> {
    let name = path.file_name().unwrap().to_str().unwrap();
    let mut at = match name {
        "MARIGRAM" => {
            let line_ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
            return line_ends.map(|(at, _)| at + 1).collect();
        }
        "WITNESS" => return (36..bytes.len()).step_by(36).collect(),
        _ => match path.extension().and_then(|extension| extension.to_str()) {
            Some("wal") => 36,
            Some("seg") => 16,
            _ => 0,
        },
    };
    let mut ends = vec![at];
    while let Some(rest) = bytes.get(at..)
        && let frame::FrameRead::Frame { len, .. } = frame::read(rest)
    {
        at += len;
        ends.push(at);
    }
    ends
}

/// Whether two files could be mistaken for one another by their names.
fn are_siblings(one: &Path, other: &Path) -> bool {
    one.file_name() == other.file_name()
        || (one.extension().is_some() && one.extension() == other.extension())
}

/// Files of another directory in place of a shard's own, together with its witness, or without one:
/// nothing but the headers tells whose they are.
fn strangers(built: &BuiltDirectory, stranger: &BuiltDirectory) -> Vec<DirectoryDamage> {
    let mut all = Vec::new();
    for shard in 0..SHARDS {
        let dir = PathBuf::from(format!("shards/{shard:04}"));
        let theirs: Vec<(PathBuf, Option<Vec<u8>>)> = stranger
            .files
            .iter()
            .filter(|(path, bytes)| {
                path.starts_with(&dir) && built.files.get(*path).is_some_and(|own| own != *bytes)
            })
            .map(|(path, bytes)| (path.clone(), Some(bytes.clone())))
            .collect();
        let witness = dir.join("WITNESS");
        for (path, bytes) in &theirs {
            let is_log = path.ends_with("MANIFEST")
                || path.extension().is_some_and(|extension| extension == "wal");
            if !is_log || !built.files.contains_key(&witness) {
                continue;
            }
            let name = path.display();
            all.push(DirectoryDamage {
                what: format!("{name} is that of another directory, without witness"),
                changes: vec![(path.clone(), bytes.clone()), (witness.clone(), None)],
            });
            if let Some(their_witness) = stranger.files.get(&witness) {
                all.push(DirectoryDamage {
                    what: format!("{name} and its witness are those of another directory"),
                    changes: vec![
                        (path.clone(), bytes.clone()),
                        (witness.clone(), Some(their_witness.clone())),
                    ],
                });
            }
        }
        if theirs.iter().any(|(path, _)| path.ends_with("MANIFEST")) {
            all.push(DirectoryDamage {
                what: format!("all of {} are those of another directory", dir.display()),
                changes: theirs,
            });
        }
    }
    all
}

/// All of a shard, with its witness, as it was earlier: only the data directory's witness tells.
fn older_shards(built: &BuiltDirectory) -> Vec<DirectoryDamage> {
    let mut all = Vec::new();
    for shard in 0..SHARDS {
        let dir = PathBuf::from(format!("shards/{shard:04}"));
        for (at, age) in built.older.iter().enumerate() {
            let paths: BTreeSet<&PathBuf> = age.keys().chain(built.files.keys()).collect();
            let changes = paths
                .into_iter()
                .filter(|path| path.starts_with(&dir) && age.get(*path) != built.files.get(*path))
                .map(|path| (path.clone(), age.get(path).cloned()));
            all.push(DirectoryDamage {
                what: format!("all of {} is its own version {at}", dir.display()),
                changes: changes.collect(),
            });
        }
    }
    all.retain(|damage| !damage.changes.is_empty());
    all
}

/// Every kind of damage to every file, as far as they are enumerated.
fn damages(
    built: &BuiltDirectory,
    stranger: &BuiltDirectory,
    rng: &mut Xoshiro256PlusPlus,
) -> Vec<DirectoryDamage> {
    let mut all = strangers(built, stranger);
    all.extend(older_shards(built));
    for (path, bytes) in &built.files {
        if path.ends_with("LOCK") {
            continue;
        }
        all.push(DirectoryDamage::one(path, "is removed", None));
        let mut ends: BTreeSet<usize> = boundaries(path, bytes).into_iter().collect();
        ends.extend([0, bytes.len().saturating_sub(1)]);
        ends.extend((0..2).map(|_| rng.random_range(0..=bytes.len())));
        for end in ends.into_iter().filter(|end| *end < bytes.len()) {
            let cut = bytes[..end].to_vec();
            let what = format!("is cut to {end} of {} bytes", bytes.len());
            all.push(DirectoryDamage::one(path, &what, Some(cut)));
        }
        for _ in 0..3.min(bytes.len()) {
            let mut flipped = bytes.clone();
            let bit = rng.random_range(0..bytes.len() * 8);
            flipped[bit / 8] ^= 1 << (bit % 8);
            all.push(DirectoryDamage::one(
                path,
                &format!("has bit {bit} flipped"),
                Some(flipped),
            ));
        }
        for (other, theirs) in built.files.range(path.clone()..).skip(1) {
            if are_siblings(path, other) && theirs != bytes {
                all.push(DirectoryDamage {
                    what: format!("{} is swapped with {}", path.display(), other.display()),
                    changes: vec![
                        (path.clone(), Some(theirs.clone())),
                        (other.clone(), Some(bytes.clone())),
                    ],
                });
            }
        }
        if let Some(theirs) = stranger.files.get(path).filter(|theirs| *theirs != bytes) {
            all.push(DirectoryDamage::one(
                path,
                "is that of another directory",
                Some(theirs.clone()),
            ));
        }
        let mut ages: Vec<&Vec<u8>> = built.older.iter().filter_map(|age| age.get(path)).collect();
        ages.dedup();
        for (at, age) in ages.into_iter().filter(|age| *age != bytes).enumerate() {
            all.push(DirectoryDamage::one(
                path,
                &format!("is its own version {at}"),
                Some(age.clone()),
            ));
        }
    }
    all
}

fn restored(files: &DiskSnapshot) -> SimFs {
    let fs = SimFs::new(1);
    fs.restore(Path::new(DIR), files).unwrap();
    fs
}

/// Whether everything can be read and is right; an error if something is wrong rather than refused.
fn judge(
    engine: &Engine,
    truth: &BTreeMap<String, OracleRows>,
) -> Result<Result<(), String>, String> {
    let observed = match observe(engine, DATABASE) {
        Ok(observed) => observed,
        Err(ReadError::Engine(error)) => return Ok(Err(error.to_string())),
        Err(ReadError::Wrong(reason)) => return Err(reason),
    };
    let names: Vec<_> = observed.tables.keys().collect();
    if names != truth.keys().collect::<Vec<_>>() {
        return Err(format!("there are the tables {names:?}"));
    }
    if engine.databases() != [DATABASE, "spare"] {
        return Err(format!("there are the databases {:?}", engine.databases()));
    }
    for (name, rows) in truth {
        compare(rows, &observed.tables[name].rows, Tolerance::NONE)
            .map_err(|reason| format!("table {name}: {reason}"))?;
    }
    Ok(Ok(()))
}

/// The outcome for a damaged directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum DamageOutcome {
    Right,
    RefusedToOpen,
    RefusedToRead,
}

fn check(built: &BuiltDirectory, damage: &DirectoryDamage) -> Result<DamageOutcome, String> {
    let mut files = built.files.clone();
    for (path, bytes) in &damage.changes {
        match bytes {
            Some(bytes) => files.insert(path.clone(), bytes.clone()),
            None => files.remove(path),
        };
    }
    let mut told = Vec::new();
    Engine::verify(&env(&restored(&files)), Path::new(DIR), &mut |place| {
        told.push(place);
    })
    .map_err(|error| format!("verify: {error}"))?;
    let fs = restored(&files);
    let names_file = |text: &str| {
        let named = |path: &PathBuf| text.contains(path.file_name().unwrap().to_str().unwrap());
        damage.changes.iter().any(|(path, _)| named(path))
    };
    let (outcome, error) = match open(&fs) {
        Err(error) => (DamageOutcome::RefusedToOpen, error.to_string()),
        Ok(engine) => {
            let judged = judge(&engine, &built.truth)?;
            // Maintenance must not make the damage permanent.
            let _ = engine.compact();
            let _ = engine.flush();
            let again = judge(&engine, &built.truth)?;
            drop(engine);
            fs.kill();
            if let (Ok(()), Ok(())) = (&judged, &again) {
                let engine = open(&fs).map_err(|error| format!("opened again: {error}"))?;
                judge(&engine, &built.truth)?.map_err(|error| format!("opened again: {error}"))?;
                return Ok(DamageOutcome::Right);
            }
            (DamageOutcome::RefusedToRead, judged.and(again).unwrap_err())
        }
    };
    if !names_file(&error) {
        return Err(format!("the error does not name the file: {error}"));
    }
    if !told.iter().any(|place| names_file(place)) {
        return Err(format!("verify tells only {told:?}, and opening {error}"));
    }
    fs.kill();
    for (path, _) in &damage.changes {
        let at = Path::new(DIR).join(path);
        let Some(bytes) = built.files.get(path) else {
            if fs.exists(&at).unwrap() {
                fs.remove(&at).unwrap();
            }
            continue;
        };
        // An age that had no file in a folder had no folder either.
        fs.create_dir_all(at.parent().unwrap()).unwrap();
        let original = fs.create(&at).unwrap();
        original.append(bytes).unwrap();
        original.sync().unwrap();
    }
    let engine = open(&fs).map_err(|again| format!("{error}; put back: {again}"))?;
    judge(&engine, &built.truth)?.map_err(|again| format!("{error}; put back: {again}"))?;
    Ok(outcome)
}

#[test]
fn a_damaged_directory_opens_right_or_refuses_and_loses_nothing() {
    let start = Instant::now();
    let wanted = number("MARIGRAM_DAMAGED_DIRECTORIES").unwrap_or(DIRECTORIES);
    let only = number("MARIGRAM_DAMAGED_SEED");
    let (mut outcomes, mut failures) = (BTreeMap::<DamageOutcome, u64>::new(), Vec::new());
    let mut seed = only.unwrap_or(0);
    loop {
        let (built, stranger) = (build(seed), build(seed + 1_000_000));
        let whole = DirectoryDamage {
            what: String::new(),
            changes: Vec::new(),
        };
        assert_eq!(
            check(&built, &whole),
            Ok(DamageOutcome::Right),
            "seed {seed}, undamaged"
        );
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        for damage in damages(&built, &stranger, &mut rng) {
            match check(&built, &damage) {
                Ok(outcome) => *outcomes.entry(outcome).or_default() += 1,
                Err(reason) => failures.push(format!("seed {seed}, {}: {reason}", damage.what)),
            }
        }
        seed += 1;
        let done: u64 = outcomes.values().sum();
        if only.is_some() || done + failures.len() as u64 >= wanted {
            println!(
                "{done} damaged directories of {seed} builds in {:.1?}: {outcomes:?}",
                start.elapsed()
            );
            break;
        }
    }
    let shown: Vec<&str> = failures.iter().take(40).map(String::as_str).collect();
    assert!(
        failures.is_empty(),
        "{} failed:\n{}",
        failures.len(),
        shown.join("\n")
    );
    assert!(
        outcomes.len() == 3,
        "every outcome must occur: {outcomes:?}"
    );
}
