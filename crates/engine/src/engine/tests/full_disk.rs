//! A full disk: what is refused is nowhere, now and after a restart; what was acknowledged stays; and
//! writing goes on when there is room.

use super::support::{DIR, GROW, World, batch, options, read, store};
use crate::{Engine, EngineError, EngineOptions, TableSpec};
use marigram_model::{FieldValueRef as V, WriteBatch};
use std::path::Path;

const DEVICES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

fn three_shards() -> EngineOptions {
    EngineOptions {
        shards: 3,
        ..options()
    }
}

/// A row of each device at `time`: rows in each shard.
fn of_all(time: i64) -> WriteBatch {
    let fields = [("x", V::F64(1.0)), ("s", V::String("some text"))];
    let rows: Vec<_> = DEVICES
        .iter()
        .map(|device| (*device, time, &fields[..]))
        .collect();
    batch("t", &rows)
}

/// A directory with a row of each device, closed without a flush.
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
        // Room comes back, and no restart is needed.
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
        engine.delete(
            "db",
            "t",
            &crate::TagFilter::All,
            marigram_model::TimeRange::ALL,
        ),
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

#[test]
fn a_catalog_that_finds_no_room_refuses_the_change_alone() {
    let world = World::new(1);
    let engine = world.open_db();
    store(&engine, "t", &[("a", 1, &[("x", V::F64(1.0))])]);
    world.fs.set_space(Some(10));
    let error = engine.create_database("other", false).unwrap_err();
    assert!(matches!(error, EngineError::Busy { .. }), "{error:?}");
    // The log has room that was set aside for it.
    store(&engine, "t", &[("a", 2, &[("x", V::F64(1.0))])]);
    world.fs.set_space(None);
    engine.create_database("other", false).unwrap();
    drop(engine);
    world.fs.crash();
    let engine = world.open();
    assert_eq!(engine.databases(), ["db", "other"]);
    assert_eq!(read(&engine, "t").len(), 2);
}
