//! Rollups: times that are not touched are as they were when the rollup last read them, whatever
//! was written, deleted, flushed, lost or reopened since.

use super::support::{Contents, DIR, GROW, World, batch, options, read, store};
use crate::{Durability, Engine, EngineError, EngineOptions, TableChange, TableSpec, TagFilter};
use marigram_model::{
    BatchBuilder, FieldType, FieldValueRef, Rollup, TableId, TagType, TagValue, TimeRange, TimeSet,
};
use std::collections::BTreeMap;
use std::path::Path;

const CELL_NS: i64 = 100;

/// Creates the rollup `r` of the table `t`.
fn create(engine: &Engine) -> TableId {
    let source = engine.table("db", "t").unwrap().id;
    let spec = TableSpec {
        name: "r".to_owned(),
        tags: vec![("dev".to_owned(), TagType::String)],
        fields: vec![("n".to_owned(), FieldType::I64)],
        rollup: Some(Rollup {
            source,
            query: "SELECT".to_owned(),
            cell_ns: CELL_NS,
            cell_origin_ns: 0,
            refresh_ns: 1,
            lag_ns: 0,
        }),
        ..TableSpec::default()
    };
    engine.create_table("db", &spec, false).unwrap().id
}

fn range(min: i64, max: i64) -> TimeRange {
    TimeRange { min, max }
}

/// What a rollup would contain: the rows of each cell when it last read them.
type ToldRows = BTreeMap<i64, Contents>;

fn cells(contents: &Contents) -> ToldRows {
    let mut told = ToldRows::new();
    for (key, row) in contents {
        let cell = told.entry(key.1.div_euclid(CELL_NS)).or_default();
        cell.insert(key.clone(), row.clone());
    }
    told
}

/// Refreshes the rollup for some times and moves its watermark.
fn refresh(engine: &Engine, rollup: TableId, taken: &TimeSet, through: i64, told: &mut ToldRows) {
    let before = engine.rollup_state(rollup).unwrap().progress;
    engine.begin_refresh(rollup, taken, through).unwrap();
    let now = cells(&read(engine, "t"));
    let is_told = |cell: i64| {
        let start = cell * CELL_NS;
        (start >= before.through_ns && start < through) || before.touched.contains(start)
    };
    told.retain(|cell, _| !is_told(*cell));
    told.extend(now.into_iter().filter(|(cell, _)| is_told(*cell)));
}

/// Checks that every cell that is not touched is as the rollup last read it.
fn check(engine: &Engine, rollup: TableId, told: &ToldRows, when: &str) {
    let progress = engine.rollup_state(rollup).unwrap().progress;
    let now = cells(&read(engine, "t"));
    let all = told.keys().chain(now.keys());
    for cell in all {
        let start = cell * CELL_NS;
        let is_known = start < progress.through_ns && !progress.touched.contains(start);
        assert!(
            !is_known || told.get(cell) == now.get(cell),
            "{when}: cell {cell} of {progress:?}: told {:?}, now {:?}",
            told.get(cell),
            now.get(cell)
        );
    }
}

fn history(seed: u64, options: &EngineOptions) {
    let world = World::new(seed);
    let open = || Engine::open(world.env(), Path::new(DIR), options.clone()).unwrap();
    let mut engine = open();
    engine.create_database("db", true).unwrap();
    let mut state = seed;
    let mut below = |end: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % end
    };
    store(&engine, "t", &[("a", 0, &[("x", FieldValueRef::I64(0))])]);
    let rollup = create(&engine);
    let (mut told, mut clock, mut seen) = (ToldRows::new(), 1_i64, 0);
    for step in 0..150 {
        let when = format!("seed {seed}, step {step}");
        match below(12) {
            0..=3 => {
                let rows: Vec<_> = (0..=below(8))
                    .map(|_| {
                        clock += below(30) as i64;
                        let late = if below(3) == 0 { below(900) as i64 } else { 0 };
                        let device = ["a", "b", "c"][below(3) as usize];
                        (device, clock - late, [("x", FieldValueRef::I64(step))])
                    })
                    .collect();
                let rows: Vec<_> = rows.iter().map(|row| (row.0, row.1, &row.2[..])).collect();
                store(&engine, "t", &rows);
            }
            4 => {
                let filter = match below(2) {
                    0 => TagFilter::All,
                    _ => TagFilter::In(0, vec![TagValue::String("a".to_owned())]),
                };
                let min = clock - below(1000) as i64;
                let times = range(min, min + below(150) as i64);
                engine.delete("db", "t", &filter, times).unwrap();
            }
            5 | 6 => engine.flush().unwrap(),
            7 => engine.compact().unwrap(),
            8 => {
                drop(engine);
                world.fs.crash();
                engine = open();
            }
            _ => {
                let progress = engine.rollup_state(rollup).unwrap().progress;
                let part = below(2) == 0;
                let taken = match progress.touched.ranges().first() {
                    Some(first) if part => TimeSet::from_range(*first),
                    _ => progress.touched.clone(),
                };
                let through = progress
                    .through_ns
                    .max((clock.div_euclid(CELL_NS)) * CELL_NS);
                let mut after = told.clone();
                refresh(&engine, rollup, &taken, through, &mut after);
                check(&engine, rollup, &told, &format!("{when}, refreshing"));
                match below(6) {
                    0 => engine.abort_refresh(rollup),
                    1 => {
                        // The rollup's rows may or may not exist: it does not cover these times.
                        drop(engine);
                        world.fs.crash();
                        engine = open();
                    }
                    late => {
                        if late == 2 {
                            let at = clock - below(500) as i64;
                            let row = ("c", at, &[("x", FieldValueRef::I64(-1))][..]);
                            store(&engine, "t", &[row]);
                        }
                        engine.finish_refresh(rollup).unwrap();
                        told = after;
                        seen += 1;
                    }
                }
            }
        }
        check(&engine, rollup, &told, &when);
    }
    assert!(seen > 5, "seed {seed}: the rollup was told {seen} times");
}

#[test]
fn what_is_not_touched_is_as_it_was_told() {
    for seed in 1..=24 {
        history(seed, &options());
    }
}

/// If the log is not synced, a power loss may lose rows, but never those that a rollup covers.
#[test]
fn a_rollup_tells_of_nothing_that_a_loss_of_power_takes() {
    let lazy = EngineOptions {
        durability: Durability::Os,
        ..options()
    };
    // In history 174 a compaction applies a delete, which a loss of power then takes.
    for seed in (100..=116).chain([174]) {
        history(seed, &lazy);
    }
}

#[test]
fn only_cells_of_late_rows_are_touched() {
    let world = World::new(1);
    let engine = world.open_db();
    let row = |time| ("a", time, &[("x", FieldValueRef::I64(1))][..]);
    store(&engine, "t", &[row(50)]);
    let rollup = create(&engine);
    let state = |engine: &Engine| engine.rollup_state(rollup).unwrap().progress;
    store(&engine, "t", &[row(20)]);
    assert_eq!(state(&engine).through_ns, i64::MIN);
    assert!(state(&engine).touched.is_empty());
    engine
        .begin_refresh(rollup, &TimeSet::default(), 1000)
        .unwrap();
    // Within the range of the current refresh: it may or may not have been read.
    store(&engine, "t", &[row(720)]);
    engine.finish_refresh(rollup).unwrap();
    store(&engine, "t", &[row(1000), row(150), row(2000), row(199)]);
    engine
        .delete("db", "t", &TagFilter::All, range(430, 510))
        .unwrap();
    let expected = [range(100, 199), range(400, 599), range(700, 799)];
    assert_eq!(state(&engine).touched.ranges(), expected);
    engine.flush().unwrap();
    engine.close().unwrap();
    let engine = world.open();
    assert_eq!(state(&engine).through_ns, 1000);
    assert_eq!(state(&engine).touched.ranges(), expected);
}

#[test]
fn nobody_but_a_refresh_writes_to_a_rollup() {
    let world = World::new(1);
    let engine = world.open_db();
    let rows = batch("r", &[("a", 1, &[("n", FieldValueRef::I64(1))])]);
    store(&engine, "t", &[("a", 1, &[("x", FieldValueRef::I64(1))])]);
    let rollup = create(&engine);
    let refused = |error: EngineError| {
        let text = error.to_string();
        assert!(text.contains("materialized view"), "{text}");
    };
    refused(engine.write("db", &rows, GROW).unwrap_err());
    refused(
        engine
            .delete("db", "r", &TagFilter::All, TimeRange::ALL)
            .unwrap_err(),
    );
    let add = TableChange::AddField("y".to_owned(), FieldType::I64);
    refused(engine.alter_table("db", "r", &add).unwrap_err());
    refused(engine.drop_table("db", "t", false).unwrap_err());
    assert_eq!(
        engine.write_refreshed("db", &rows).unwrap().stored,
        1,
        "a refresh writes"
    );
    engine.delete_refreshed(rollup, range(0, 9)).unwrap();
    assert!(read(&engine, "r").is_empty());
    engine
        .alter_table("db", "r", &TableChange::SetRefresh(5, 6))
        .unwrap();
    let changed = engine.table("db", "r").unwrap().rollup.clone().unwrap();
    assert_eq!((changed.refresh_ns, changed.lag_ns), (5, 6));
    engine.drop_table("db", "r", false).unwrap();
    assert!(engine.rollup_state(rollup).is_err());
    assert!(
        engine
            .begin_refresh(rollup, &TimeSet::default(), 1)
            .is_err()
    );
    engine.drop_table("db", "t", false).unwrap();
    let mut builder = BatchBuilder::new("r");
    let slot = builder.slot([]);
    builder.row(slot, 1);
    builder.field("n", FieldValueRef::I64(1));
    engine.write("db", &builder.finish(), GROW).unwrap();
}

#[test]
fn a_flush_amid_a_drop_of_the_database_does_not_fail() {
    let world = World::new(1);
    let engine = world.open_db();
    let row = |time| ("a", time, &[("x", FieldValueRef::I64(1))][..]);
    store(&engine, "t", &[row(50)]);
    let rollup = create(&engine);
    let touched = TimeSet::default();
    engine.begin_refresh(rollup, &touched, 1000).unwrap();
    engine.finish_refresh(rollup).unwrap();
    // The rollup must be refreshed, although the catalog no longer has it.
    store(&engine, "t", &[row(150)]);
    engine.inner().schemas.drop_database("db", false).unwrap();
    engine.flush().unwrap();
    engine.create_database("other", false).unwrap();
    engine.write("other", &batch("t", &[row(1)]), GROW).unwrap();
}
