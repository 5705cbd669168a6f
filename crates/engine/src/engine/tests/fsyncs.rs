//! How many fsyncs each step takes: a change of how files are written must neither save one that
//! durability needs nor add one.

use super::support::{DIR, World, create_minutes, fill_minutes, options};
use crate::backup::{self, BackupOptions};
use crate::{Engine, EngineOptions};
use marigram_env::OpKind;
use std::path::Path;

const PARTITIONS: i64 = 5;

/// Syncs of files and of directories.
type Syncs = (u64, u64);

/// What `step` takes.
fn syncs(world: &World, step: impl FnOnce()) -> Syncs {
    let count = || {
        let count = |kind| world.fs.count(kind);
        (count(OpKind::Sync), count(OpKind::SyncDir))
    };
    let before = count();
    step();
    let after = count();
    (after.0 - before.0, after.1 - before.1)
}

#[test]
fn every_step_takes_as_many_fsyncs_as_durability_needs() {
    let world = World::new(1);
    let options = || EngineOptions {
        shards: 1,
        ..options()
    };
    let engine = world.open_with(options());
    engine.create_database("db", true).unwrap();
    create_minutes(&engine, "t");
    fill_minutes(&engine, "t", PARTITIONS, 1);
    let flush = syncs(&world, || engine.flush().unwrap());
    fill_minutes(&engine, "t", PARTITIONS, 0);
    engine.flush().unwrap();
    let compaction = syncs(&world, || {
        engine.compact_table("db", "t").unwrap();
    });
    let folder = Path::new("/backups");
    let take = || {
        let report = engine.backup(folder, BackupOptions::default()).unwrap();
        assert_eq!(report.warnings, [""; 0]);
    };
    let first_backup = syncs(&world, take);
    let second_backup = syncs(&world, take);
    drop(engine);
    let restore = syncs(&world, || {
        backup::restore(&world.env(), folder, None, Path::new("/restored")).unwrap();
    });
    let open = syncs(&world, || {
        drop(Engine::open(world.env(), Path::new(DIR), options()).unwrap());
    });
    assert_eq!(
        [
            flush,
            compaction,
            first_backup,
            second_backup,
            restore,
            open
        ],
        // Of the flush: one for each segment, one for the names of all of them, and those of the logs.
        [(9, 2), (10, 5), (11, 6), (1, 4), (11, 9), (1, 4)]
    );
}
