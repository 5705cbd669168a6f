//! Segments whose files are missing or too short: opening reports them, and the rest works.

use super::support::{
    DIR, PARTITION_NS, World, create_minutes, fill_minutes, options, read, store, try_read,
};
use crate::{Engine, EngineOptions};
use marigram_env::LogStore as _;
use marigram_model::{FieldValueRef as V, TimeRange};
use std::path::{Path, PathBuf};

fn one_shard() -> EngineOptions {
    EngineOptions {
        shards: 1,
        ..options()
    }
}

/// Three segments of `kept` and of `lost`, one row each in each of three partitions.
fn filled(world: &World) -> Engine {
    let engine = world.open_with(one_shard());
    engine.create_database("db", true).unwrap();
    for table in ["kept", "lost"] {
        create_minutes(&engine, table);
        fill_minutes(&engine, table, 3, 0);
        engine.flush().unwrap();
    }
    engine
}

fn files_of(engine: &Engine, table: &str) -> Vec<PathBuf> {
    let id = engine.snapshot("db", table).unwrap().schema().id;
    let segments = engine.segments().into_iter();
    let holding = segments.filter(|segment| segment.meta.tables == [id]);
    holding.map(|segment| segment.path).collect()
}

#[test]
fn a_start_finds_what_is_missing_or_too_short_without_reading() {
    let world = World::new(1);
    let engine = filled(&world);
    assert_eq!(engine.status().segments_damaged, 0);
    let files = files_of(&engine, "lost");
    assert_eq!(files.len(), 3);
    drop(engine);
    world.fs.remove(&files[0]).unwrap();
    let file = world.fs.open(&files[2]).unwrap();
    file.truncate(file.len().unwrap() - 1).unwrap();
    drop(file);

    let engine = world.open_with(one_shard());
    assert_eq!(engine.status().segments_damaged, 2);
    assert_eq!(read(&engine, "kept").len(), 3);
    assert!(try_read(&engine, "lost", TimeRange::ALL).is_err());
    let whole = TimeRange {
        min: PARTITION_NS,
        max: 2 * PARTITION_NS - 1,
    };
    assert_eq!(try_read(&engine, "lost", whole).unwrap().len(), 1);
    // What is no longer needed is not damage.
    engine.drop_table("db", "lost", false).unwrap();
    while engine.status().segments_damaged > 0 {
        let before = engine.status().segments;
        engine.maintain().unwrap();
        assert!(
            engine.status().segments < before,
            "dropping segments must end"
        );
    }
    drop(engine);
    let left = world.fs.list(&Path::new(DIR).join("shards/0000/segments"));
    assert_eq!(left.unwrap().len(), 3);
}

#[test]
fn the_start_counts_what_it_replayed() {
    let world = World::new(2);
    let engine = world.open_db();
    let fields = [("x", V::F64(1.0))];
    store(&engine, "t", &[("a", 1, &fields), ("b", 1, &fields)]);
    engine.flush().unwrap();
    store(&engine, "t", &[("a", 2, &fields)]);
    drop(engine);
    let status = world.open().status();
    assert_eq!(status.recovery_rows, 1);
    assert!(status.recovery_wal_bytes > 0);
}
