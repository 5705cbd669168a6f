//! Many segments and few descriptors: everything works, and a shortage is temporary.

use super::support::{
    DIR, GROW, World, batch, create_minutes, fill_minutes, options, read, try_read,
};
use crate::backup::BackupOptions;
use crate::{Engine, EngineError, EngineOptions, Holder};
use marigram_env::LogStore as _;
use marigram_model::{FieldValueRef as V, TimeRange};
use std::path::{Path, PathBuf};

fn few_files() -> EngineOptions {
    EngineOptions {
        shards: 1,
        open_files_max: 4,
        ..options()
    }
}

/// An engine with a table whose partitions are a minute wide.
fn engine(world: &World) -> Engine {
    let engine = world.open_with(few_files());
    engine.create_database("db", true).unwrap();
    create_minutes(&engine, "t");
    engine
}

fn segment_files(world: &World) -> usize {
    let names = world.fs.list(&Path::new(DIR).join("shards/0000/segments"));
    names.unwrap().len()
}

#[test]
fn thousands_of_segments_work_with_sixteen_descriptors() {
    const SEGMENTS: i64 = 2000;
    let world = World::new(1);
    world.fs.set_open_files_max(16);
    let db = engine(&world);
    fill_minutes(&db, "t", SEGMENTS, 1);
    db.flush().unwrap();
    assert_eq!(db.segments().len(), SEGMENTS as usize);
    assert_eq!(read(&db, "t").len(), SEGMENTS as usize);
    drop(db);
    let db = world.open_with(few_files());
    assert_eq!(read(&db, "t").len(), SEGMENTS as usize);
    // Late rows in each partition, which compaction moves to their place.
    fill_minutes(&db, "t", SEGMENTS, 0);
    db.flush().unwrap();
    assert_eq!(read(&db, "t").len(), 2 * SEGMENTS as usize);
    db.compact_table("db", "t").unwrap();
    assert_eq!(db.segments().len(), SEGMENTS as usize);
    assert_eq!(segment_files(&world), SEGMENTS as usize);
    assert_eq!(read(&db, "t").len(), 2 * SEGMENTS as usize);
    let report = db.backup(Path::new("/backups"), BackupOptions::default());
    assert_eq!(report.unwrap().info.rows, 2 * SEGMENTS as u64);
    drop(db);
    assert_eq!(world.damage(), Vec::<String>::new());
    assert_eq!(world.fs.open_files(), 0);
}

#[test]
fn a_reader_of_an_old_version_opens_its_files_again_until_it_is_done() {
    let world = World::new(1);
    let db = engine(&world);
    fill_minutes(&db, "t", 20, 1);
    db.flush().unwrap();
    let old = db.snapshot("db", "t").unwrap();
    let paths: Vec<PathBuf> = db.segments().into_iter().map(|info| info.path).collect();
    fill_minutes(&db, "t", 20, 0);
    db.flush().unwrap();
    db.compact_table("db", "t").unwrap();
    assert!(paths.iter().all(|path| world.fs.exists(path).unwrap()));
    assert_eq!(super::support::rows_of(&old).unwrap().len(), 20);
    drop(old);
    assert!(!paths.iter().any(|path| world.fs.exists(path).unwrap()));
    assert_eq!(segment_files(&world), 20);
}

#[test]
fn what_an_open_snapshot_held_is_removed_by_the_next_owner_alone() {
    let world = World::new(1);
    let db = engine(&world);
    fill_minutes(&db, "t", 3, 1);
    db.flush().unwrap();
    let old = db.snapshot("db", "t").unwrap();
    fill_minutes(&db, "t", 3, 0);
    db.flush().unwrap();
    db.compact_table("db", "t").unwrap();
    db.close().unwrap();
    let next = world.open_with(few_files());
    let before = segment_files(&world);
    assert_eq!(before, 3);
    drop(old);
    assert_eq!(segment_files(&world), before);
    assert_eq!(read(&next, "t").len(), 6);
}

#[test]
fn a_shortage_of_descriptors_fails_what_needs_one_and_passes() {
    let world = World::new(1);
    let db = engine(&world);
    fill_minutes(&db, "t", 20, 1);
    db.flush().unwrap();
    world.fs.set_open_files_max(0);
    let error = try_read(&db, "t", TimeRange::ALL).unwrap_err();
    assert!(matches!(error, EngineError::Busy { .. }), "{error:?}");
    assert!(error.to_string().contains("ulimit"), "{error}");
    // The log is open, so rows are stored. A flush needs files, and is retried.
    fill_minutes(&db, "t", 20, 2);
    assert!(db.flush().is_err());
    fill_minutes(&db, "t", 20, 3);
    world.fs.set_open_files_max(usize::MAX);
    db.flush().unwrap();
    assert_eq!(db.status().read_only, None);
    assert_eq!(read(&db, "t").len(), 60);
    drop(db);
    world.fs.crash();
    assert_eq!(read(&world.open_with(few_files()), "t").len(), 60);
}

#[test]
fn a_directory_that_finds_no_descriptors_opens_when_there_are_some() {
    let world = World::new(1);
    let db = engine(&world);
    fill_minutes(&db, "t", 20, 1);
    db.flush().unwrap();
    fill_minutes(&db, "t", 20, 2);
    drop(db);
    for files in 0..8 {
        world.fs.set_open_files_max(files);
        drop(Engine::open(world.env(), Path::new(DIR), few_files()));
    }
    world.fs.set_open_files_max(usize::MAX);
    assert_eq!(read(&world.open_with(few_files()), "t").len(), 40);
    assert_eq!(world.damage(), Vec::<String>::new());
}

#[test]
fn footers_in_memory_are_counted_and_bounded() {
    let world = World::new(1);
    let db = engine(&world);
    fill_minutes(&db, "t", 3000, 1);
    db.flush().unwrap();
    drop(db);
    let small = EngineOptions {
        memory_limit_bytes: 16 << 20,
        ..few_files()
    };
    let db = world.open_with(small);
    db.status();
    let counted = || db.memory().used_by(Holder::SegmentIndex);
    let unread = counted();
    assert!(
        unread > 3000 * 200,
        "{unread}: entries of the manifest are counted"
    );
    assert_eq!(read(&db, "t").len(), 3000);
    let held = counted();
    db.status();
    let after = counted();
    assert!(held > unread);
    assert!(after <= unread + (16 << 20) / 8, "{unread} {held} {after}");
    let day = batch("t", &[("a", 1, &[("x", V::F64(1.0))])]);
    db.write("db", &day, GROW).unwrap();
}
