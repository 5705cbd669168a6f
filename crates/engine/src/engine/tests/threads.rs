//! Many writers, and background threads.

use super::super::upkeep::flush_round;
use super::support::{GROW, World, batch, options, read};
use crate::{Engine, EngineOptions};
use marigram_model::FieldValueRef as V;

fn busy_writers(engine: &Engine, writers: usize, batches: i64) {
    std::thread::scope(|scope| {
        for writer in 0..writers {
            scope.spawn(move || {
                let device = format!("dev-{writer}");
                // Fields of other writers come and go, so that all grow one schema at once.
                for time in 0..batches {
                    let field = format!("f{}", (writer as i64 + time) % 8);
                    let row = batch("t", &[(&device, time, &[(&field, V::F64(time as f64))])]);
                    let report = engine.write("db", &row, GROW).unwrap();
                    assert_eq!(report.stored, 1);
                }
            });
        }
    });
}

#[test]
fn writers_share_commits_and_grow_one_schema_safely() {
    let world = World::new(1);
    let engine = world.open_db();
    busy_writers(&engine, 8, 50);
    assert_eq!(read(&engine, "t").len(), 400);
    assert_eq!(engine.table("db", "t").unwrap().fields.len(), 8);
    assert_eq!(engine.status().series, 8);
    drop(engine);
    world.fs.crash();
    let engine = world.open();
    assert_eq!(read(&engine, "t").len(), 400);
    assert_eq!(engine.status().series, 8);
}

#[test]
fn background_threads_flush_and_stop_with_the_last_handle() {
    let world = World::new(1);
    let busy = EngineOptions {
        flush_bytes_max: 4000,
        background_threads: 2,
        ..options()
    };
    let engine = world.open_with(busy.clone());
    engine.create_database("db", true).unwrap();
    busy_writers(&engine, 4, 200);
    assert_eq!(read(&engine, "t").len(), 800);
    let clone = engine.clone();
    drop(engine);
    assert_eq!(read(&clone, "t").len(), 800);
    // Opening again would fail on the lock if a thread still held the directory.
    drop(clone);
    let engine = world.open_with(busy);
    assert_eq!(read(&engine, "t").len(), 800);
    engine.close().unwrap();
    assert_eq!(world.damage(), Vec::<String>::new());
}

#[test]
fn a_shard_that_somebody_flushes_holds_up_no_other() {
    let world = World::new(1);
    let engine = world.open_db();
    for dev in 0..20 {
        let row = batch("t", &[(&format!("dev-{dev}"), 1, &[("f", V::I64(dev))])]);
        engine.write("db", &row, GROW).unwrap();
    }
    let inner = engine.inner();
    for shard in &inner.shards {
        assert!(shard.freeze().unwrap());
    }
    let waiting = || -> Vec<usize> {
        let shards = inner.shards.iter();
        shards
            .map(|shard| shard.state.read().frozen.len())
            .collect()
    };
    let flushing = inner.shards[0].flushing.lock();
    assert!(flush_round(inner));
    assert_eq!(waiting(), [1, 0]);
    assert!(!flush_round(inner));
    drop(flushing);
    assert!(flush_round(inner));
    assert_eq!(waiting(), [0, 0]);
    assert_eq!(read(&engine, "t").len(), 20);
}
