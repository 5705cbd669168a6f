//! A full disk: what is refused leaves no trace, now and after a restart; what was acknowledged
//! stays; and writes resume when there is space.

use super::super::upkeep::flush_round;
use super::support::{DIR, GROW, World, batch, options, read, store};
use crate::{Engine, EngineError, EngineOptions, TableSpec};
use marigram_model::{FieldValueRef as V, TableOptions, WriteBatch};
use std::path::Path;

const DEVICES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

fn three_shards() -> EngineOptions {
    EngineOptions {
        shards: 3,
        ..options()
    }
}

/// One row of each device at `time`, so that each shard has rows.
fn of_all(time: i64) -> WriteBatch {
    let fields = [("x", V::F64(1.0)), ("s", V::String("some text"))];
    let rows: Vec<_> = DEVICES
        .iter()
        .map(|device| (*device, time, &fields[..]))
        .collect();
    batch("t", &rows)
}

/// A directory with one row of each device, closed without a flush.
fn filled(seed: u64) -> World {
    let world = World::new(seed);
    let engine = world.open_with(three_shards());
    engine.create_database("db", true).unwrap();
    assert_eq!(
        engine.write("db", &of_all(1), GROW).unwrap().stored,
        DEVICES.len()
    );
    let shards = engine.snapshot("db", "t").unwrap();
    let holds_rows = |view: &crate::ShardView| !view.chunks.is_empty();
    assert!(
        shards
            .views()
            .iter()
            .filter(|view| holds_rows(view))
            .count()
            > 1
    );
    drop(shards);
    drop(engine);
    world
}

fn open(world: &World) -> Engine {
    Engine::open(world.env(), Path::new(DIR), three_shards()).unwrap()
}

#[test]
fn a_batch_is_stored_in_all_shards_or_in_none_however_little_room_there_is() {
    let (mut stored, mut refused) = (0, 0);
    for space in (0..2500).step_by(41) {
        let world = filled(space);
        world.fs.set_space(Some(space));
        let engine = open(&world);
        let mut expected = DEVICES.len();
        match engine.write("db", &of_all(2), GROW) {
            Ok(report) => {
                assert_eq!((report.stored, report.rejected.len()), (DEVICES.len(), 0));
                expected += DEVICES.len();
                stored += 1;
            }
            Err(error) => {
                assert!(matches!(error, EngineError::Busy { .. }), "{error:?}");
                refused += 1;
            }
        }
        assert_eq!(read(&engine, "t").len(), expected, "{space}");
        if space % 2 == 0 {
            drop(engine);
            world.fs.crash();
            assert_eq!(
                read(&open_with_room(&world), "t").len(),
                expected,
                "{space}"
            );
            continue;
        }
        // When there is space again, no restart is needed.
        world.fs.set_space(None);
        assert_eq!(engine.status().read_only, None);
        assert_eq!(
            engine.write("db", &of_all(3), GROW).unwrap().stored,
            DEVICES.len()
        );
        drop(engine);
        world.fs.crash();
        assert_eq!(read(&open(&world), "t").len(), expected + DEVICES.len());
        assert_eq!(world.damage(), Vec::<String>::new());
    }
    assert!(stored > 5 && refused > 5, "{stored} {refused}");
}

fn open_with_room(world: &World) -> Engine {
    world.fs.set_space(None);
    open(world)
}

#[test]
fn a_database_opens_on_a_full_disk_and_is_written_to_when_there_is_room() {
    let world = filled(1);
    world.fs.kill();
    world.fs.set_space(Some(0));
    let engine = open(&world);
    assert_eq!(read(&engine, "t").len(), DEVICES.len());
    for refused in [
        engine.write("db", &of_all(2), GROW).map(drop),
        engine
            .create_table(
                "db",
                &TableSpec {
                    name: "u".to_owned(),
                    ..TableSpec::default()
                },
                false,
            )
            .map(drop),
    ] {
        let error = refused.unwrap_err();
        assert!(matches!(error, EngineError::Busy { .. }), "{error:?}");
        assert!(error.to_string().contains("nothing was stored"), "{error}");
    }
    assert!(engine.flush().is_err());
    assert_eq!(read(&engine, "t").len(), DEVICES.len());
    world.fs.set_space(None);
    engine.flush().unwrap();
    assert_eq!(engine.status().read_only, None);
    assert_eq!(
        engine.write("db", &of_all(2), GROW).unwrap().stored,
        DEVICES.len()
    );
    drop(engine);
    world.fs.crash();
    assert_eq!(read(&open(&world), "t").len(), 2 * DEVICES.len());
    assert_eq!(world.damage(), Vec::<String>::new());
}

#[test]
fn a_log_larger_than_a_memtable_is_read_on_a_full_disk() {
    let world = World::new(1);
    let engine = world.open_db();
    for time in 0..400 {
        store(
            &engine,
            "t",
            &[("a", time, &[("s", V::String(&"x".repeat(500)))])],
        );
    }
    drop(engine);
    world.fs.kill();
    world.fs.set_space(Some(100));
    let tiny = EngineOptions {
        flush_bytes_max: 20_000,
        ..options()
    };
    let engine = world.open_with(tiny.clone());
    assert_eq!(read(&engine, "t").len(), 400);
    world.fs.set_space(None);
    assert!(engine.maintain().unwrap());
    assert_eq!(engine.status().read_only, None);
    store(&engine, "t", &[("a", 400, &[("s", V::String("y"))])]);
    engine.flush().unwrap();
    drop(engine);
    assert_eq!(read(&world.open_with(tiny), "t").len(), 401);
}

/// Writes until the disk is full; returns the number of rows stored.
fn fill_up(world: &World, engine: &Engine) -> usize {
    let mut stored = engine.write("db", &of_all(999), GROW).unwrap().stored;
    world.fs.set_space(Some(0));
    let text = "x".repeat(20_000);
    for time in 1000.. {
        let fields = [("s", V::String(&text))];
        let rows: Vec<_> = DEVICES
            .iter()
            .map(|device| (*device, time, &fields[..]))
            .collect();
        match engine.write("db", &batch("t", &rows), GROW) {
            Ok(report) => stored += report.stored,
            Err(EngineError::Busy { .. }) => break,
            Err(error) => panic!("{error}"),
        }
    }
    stored
}

#[test]
fn what_frees_room_is_done_on_a_full_disk() {
    let world = filled(3);
    let engine = open(&world);
    engine.create_database("other", false).unwrap();
    engine.write("other", &of_all(1), GROW).unwrap();
    let other_table = batch("u", &[("a", 1, &[("x", V::F64(1.0))])]);
    engine.write("db", &other_table, GROW).unwrap();
    engine.flush().unwrap();
    let segments = engine.status().segments;
    let stored = fill_up(&world, &engine);
    assert!(stored > 0);
    // Enough space to start new log files, but not to write segments.
    world.fs.set_space(Some(300));
    assert!(engine.flush().is_err());
    assert!(engine.status().read_only.is_some());
    world.fs.set_space(Some(0));
    assert!(engine.write("db", &of_all(2), GROW).is_err());

    let first = marigram_model::TimeRange { min: 1, max: 1 };
    engine
        .delete("db", "t", &crate::TagFilter::All, first)
        .unwrap();
    let schema = engine.table("db", "t").unwrap();
    let ttl = crate::TableChange::SetOptions(TableOptions {
        ttl_ns: Some(i64::MAX),
        ..schema.options.clone()
    });
    engine.alter_table("db", "t", &ttl).unwrap();
    engine.drop_table("db", "u", false).unwrap();
    engine.drop_database("other", false).unwrap();
    engine.retain().unwrap();
    assert!(engine.status().segments < segments, "files went");
    // The space from the reserve is only for such changes.
    assert!(engine.write("db", &of_all(2), GROW).is_err());
    assert_eq!(read(&engine, "t").len(), stored);
    assert!(engine.status().read_only.is_some());

    world.fs.set_space(None);
    engine.maintain().unwrap();
    engine.flush().unwrap();
    assert_eq!(engine.status().read_only, None);
    assert_eq!(
        engine.write("db", &of_all(2), GROW).unwrap().stored,
        DEVICES.len()
    );
    // The reserve has been restored: it works a second time.
    fill_up(&world, &engine);
    engine
        .delete("db", "t", &crate::TagFilter::All, first)
        .unwrap();
    engine.drop_table("db", "t", false).unwrap();
    drop(engine);
    world.fs.crash();
    let engine = open_with_room(&world);
    assert_eq!(engine.databases(), ["db"]);
    assert_eq!(engine.tables("db").unwrap().len(), 0);
    drop(engine);
    assert_eq!(world.damage(), Vec::<String>::new());
}

#[test]
fn a_flush_that_found_no_room_is_tried_again_after_a_pause() {
    let world = World::new(1);
    let engine = world.open_db();
    store(&engine, "t", &[("a", 1, &[("f", V::I64(1))])]);
    let inner = engine.inner();
    for shard in &inner.shards {
        shard.freeze().unwrap();
    }
    world.fs.set_space(Some(0));
    let operations_of_a_round = || {
        let before = world.fs.ops();
        inner.bell.press();
        assert!(!flush_round(inner));
        world.fs.ops() - before
    };
    assert!(operations_of_a_round() > 0);
    // A writer that finds no memory wakes the threads, which is no reason to retry.
    assert_eq!(operations_of_a_round(), 0);
    world.clock.advance(1_000_000_000);
    assert!(operations_of_a_round() > 0);
    // An explicit flush is always tried.
    world.fs.set_space(None);
    engine.flush().unwrap();
    assert_eq!(engine.status().read_only, None);
}

#[test]
fn a_failed_log_refuses_what_frees_room_too() {
    let world = filled(4);
    let engine = open(&world);
    engine.inner().context.health.fail("the log failed");
    for refused in [
        engine.drop_table("db", "t", false),
        engine.drop_database("db", false),
    ] {
        assert!(matches!(refused, Err(EngineError::ReadOnly(_))));
    }
}

#[test]
fn a_catalog_that_finds_no_room_refuses_the_change_alone() {
    let world = World::new(1);
    let engine = world.open_db();
    store(&engine, "t", &[("a", 1, &[("x", V::F64(1.0))])]);
    world.fs.set_space(Some(10));
    let error = engine.create_database("other", false).unwrap_err();
    assert!(matches!(error, EngineError::Busy { .. }), "{error:?}");
    // The log has space that was reserved for it.
    store(&engine, "t", &[("a", 2, &[("x", V::F64(1.0))])]);
    world.fs.set_space(None);
    engine.create_database("other", false).unwrap();
    drop(engine);
    world.fs.crash();
    let engine = world.open();
    assert_eq!(engine.databases(), ["db", "other"]);
    assert_eq!(read(&engine, "t").len(), 2);
}
