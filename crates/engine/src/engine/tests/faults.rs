//! Disks that fail: what is refused, what stays, what recovers.

use super::support::{DIR, GROW, World, batch, options, read, store, try_read};
use crate::{Engine, EngineError, EngineOptions};
use marigram_env::{FaultRepeat, OpKind, PlannedFault};
use marigram_model::{FieldValueRef as V, TimeRange};
use std::path::Path;

#[test]
fn a_directory_is_open_once() {
    let world = World::new(1);
    let engine = world.open_db();
    let again = Engine::open(world.env(), Path::new(DIR), options());
    assert!(
        again
            .unwrap_err()
            .to_string()
            .contains("open in another process")
    );
    engine.close().unwrap();
    assert!(matches!(engine.close(), Err(EngineError::Closed)));
    assert!(matches!(
        engine.snapshot("db", "t"),
        Err(EngineError::Closed)
    ));
    drop(world.open());
    drop(world.open());
}

#[test]
fn the_number_of_shards_stays_as_it_was_made() {
    let world = World::new(1);
    let engine = world.open_db();
    store(&engine, "t", &[("a", 1, &[("x", V::F64(1.0))])]);
    drop(engine);
    let engine = world.open_with(EngineOptions {
        shards: 7,
        ..options()
    });
    assert_eq!(engine.snapshot("db", "t").unwrap().views().len(), 2);
    assert_eq!(read(&engine, "t").len(), 1);
}

#[test]
fn a_failed_fsync_refuses_the_write_and_all_that_follow_and_reads_go_on() {
    let world = World::new(1);
    let engine = world.open_db();
    store(&engine, "t", &[("a", 1, &[("x", V::F64(1.0))])]);
    world.fs.fail(PlannedFault {
        kind: Some(OpKind::Sync),
        after: 0,
        repeat: FaultRepeat::Once,
    });
    let row = batch("t", &[("a", 2, &[("x", V::F64(2.0))])]);
    assert!(matches!(
        engine.write("db", &row, GROW),
        Err(EngineError::ReadOnly(_))
    ));
    assert!(matches!(
        engine.write("db", &row, GROW),
        Err(EngineError::ReadOnly(_))
    ));
    assert!(engine.status().read_only.is_some());
    assert_eq!(read(&engine, "t").len(), 1);
    drop(engine);
    world.fs.crash();
    let engine = world.open();
    assert!(read(&engine, "t").contains_key(&("a".to_owned(), 1)));
    assert_eq!(engine.status().read_only, None);
    store(&engine, "t", &[("a", 3, &[("x", V::F64(3.0))])]);
}

#[test]
fn a_flush_on_a_full_disk_loses_nothing_and_succeeds_when_there_is_space() {
    let world = World::new(1);
    let engine = world.open_db();
    for time in 0..200 {
        store(
            &engine,
            "t",
            &[("a", time, &[("x", V::F64(time as f64 / 7.0))])],
        );
    }
    world.fs.set_space(Some(200));
    assert!(engine.flush().is_err());
    assert!(engine.status().read_only.is_some());
    let row = batch("t", &[("a", 500, &[("x", V::F64(2.0))])]);
    assert!(matches!(
        engine.write("db", &row, GROW),
        Err(EngineError::ReadOnly(_))
    ));
    assert_eq!(read(&engine, "t").len(), 200);
    world.fs.set_space(None);
    assert!(engine.maintain().unwrap());
    assert_eq!(engine.status().read_only, None);
    store(&engine, "t", &[("a", 500, &[("x", V::F64(2.0))])]);
    assert_eq!(read(&engine, "t").len(), 201);
    assert_eq!(world.damage(), Vec::<String>::new());
}

#[test]
fn a_flipped_bit_in_a_segment_fails_what_touches_it_alone() {
    const DAY: i64 = marigram_model::DAY_NS;
    let world = World::new(1);
    let engine = world.open_db();
    for day in [1, 5] {
        store(&engine, "t", &[("a", day * DAY, &[("x", V::F64(1.0))])]);
    }
    engine.flush().unwrap();
    let segments = engine.segments();
    assert_eq!(segments.len(), 2);
    let damaged = segments.iter().find(|s| s.meta.range.min == DAY).unwrap();
    let bits = damaged.meta.bytes * 8;
    drop(engine);
    for (round, bit) in [bits / 3, bits - 40].into_iter().enumerate() {
        world.fs.flip_bit(&damaged.path, bit).unwrap();
        let engine = world.open();
        let error = try_read(&engine, "t", TimeRange::ALL).unwrap_err();
        let name = damaged.path.display().to_string();
        assert!(error.to_string().contains(&name), "{error}");
        let good = TimeRange {
            min: 2 * DAY,
            max: 9 * DAY,
        };
        assert_eq!(try_read(&engine, "t", good).unwrap().len(), 1 + round);
        store(
            &engine,
            "t",
            &[("a", (6 + round as i64) * DAY, &[("x", V::F64(1.0))])],
        );
        engine.flush().unwrap();
        assert!(world.damage().iter().any(|place| place.contains(&name)));
        drop(engine);
        world.fs.flip_bit(&damaged.path, bit).unwrap();
    }
}

#[test]
fn files_that_the_manifest_does_not_name_are_removed() {
    let world = World::new(1);
    let engine = world.open_db();
    store(&engine, "t", &[("a", 1, &[("x", V::F64(1.0))])]);
    engine.flush().unwrap();
    let segment = engine.segments()[0].path.clone();
    drop(engine);
    let stray = segment.with_file_name("0000009999.seg");
    let fs = world.env().fs;
    fs.create(&stray)
        .unwrap()
        .append(b"half a segment")
        .unwrap();
    drop(world.open());
    assert!(!fs.exists(&stray).unwrap());
    assert!(fs.exists(&segment).unwrap());
}

#[test]
fn a_catalog_that_cannot_be_written_refuses_writes_and_says_why() {
    let world = World::new(1);
    let engine = world.open_db();
    store(&engine, "t", &[("a", 1, &[("x", V::F64(1.0))])]);
    world.fs.fail(PlannedFault {
        kind: Some(OpKind::Append),
        after: 0,
        repeat: FaultRepeat::Once,
    });
    assert!(engine.create_database("other", false).is_err());
    assert!(engine.status().read_only.is_some());
    let row = batch("t", &[("a", 2, &[("x", V::F64(2.0))])]);
    assert!(matches!(
        engine.write("db", &row, GROW),
        Err(EngineError::ReadOnly(_))
    ));
    assert_eq!(read(&engine, "t").len(), 1);
    drop(engine);
    let engine = world.open();
    assert_eq!(engine.databases(), vec!["db"]);
    store(&engine, "t", &[("a", 2, &[("x", V::F64(2.0))])]);
}

#[test]
fn a_manifest_that_cannot_be_written_ends_writing_and_leaves_no_more_files() {
    // In a flush, the log's rotation, the segment and the series log are synced before the
    // manifest.
    let syncs = (0..20).find(|after| {
        let world = World::new(1);
        let engine = world.open_db();
        store(&engine, "t", &[("a", 1, &[("x", V::F64(1.0))])]);
        world.fs.fail(PlannedFault {
            kind: Some(OpKind::Sync),
            after: *after,
            repeat: FaultRepeat::Once,
        });
        drop(engine.flush());
        engine
            .status()
            .read_only
            .is_some_and(|reason| reason.contains("MANIFEST"))
    });
    let after = syncs.expect("one of the syncs of a flush is the manifest's");
    let world = World::new(1);
    let engine = world.open_db();
    store(&engine, "t", &[("a", 1, &[("x", V::F64(1.0))])]);
    world.fs.fail(PlannedFault {
        kind: Some(OpKind::Sync),
        after,
        repeat: FaultRepeat::Once,
    });
    assert!(engine.flush().is_err());
    let files = world.fs.snapshot(Path::new(DIR)).unwrap();
    for _ in 0..3 {
        assert!(engine.maintain().is_err());
        assert!(engine.compact().is_err());
    }
    assert!(world.fs.snapshot(Path::new(DIR)).unwrap() == files);
    assert_eq!(read(&engine, "t").len(), 1);
    drop(engine);
    world.fs.crash();
    assert_eq!(read(&world.open(), "t").len(), 1);
}
