//! How many fsyncs each step takes: a change of how files are written must neither save one that
//! durability needs nor add one.

use super::support::{DIR, World, options, store};
use crate::backup::{self, BackupOptions};
use crate::{Engine, EngineOptions, TableSpec};
use marigram_env::OpKind;
use marigram_model::{FieldValueRef as V, TableOptions};
use std::path::Path;

const PARTITION_NS: i64 = 60_000_000_000;
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

/// A row in each partition, `shift_ns` after its beginning.
fn fill(engine: &Engine, shift_ns: i64) {
    let fields = [("x", V::F64(shift_ns as f64))];
    let rows: Vec<_> = (0..PARTITIONS)
        .map(|at| ("a", at * PARTITION_NS + shift_ns, &fields[..]))
        .collect();
    store(engine, "t", &rows);
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
    let spec = TableSpec {
        name: "t".to_owned(),
        options: TableOptions {
            partition_ns: PARTITION_NS,
            ..TableOptions::default()
        },
        ..TableSpec::default()
    };
    engine.create_table("db", &spec, true).unwrap();
    fill(&engine, 1);
    let flush = syncs(&world, || engine.flush().unwrap());
    fill(&engine, 0);
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
