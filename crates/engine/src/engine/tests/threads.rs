//! Many writers, and background threads.

use super::super::upkeep::flush_round;
use super::support::{GROW, World, batch, options, read, store};
use crate::shard::Shard;
use crate::{Engine, EngineOptions};
use marigram_model::FieldValueRef as V;
use parking_lot::MutexGuard;
use std::time::Duration;

fn busy_writers(engine: &Engine, writers: usize, batches: i64) {
    std::thread::scope(|scope| {
        for writer in 0..writers {
            scope.spawn(move || {
                let device = format!("dev-{writer}");
                // Fields of other writers appear in between, so that all writers grow one schema at
                // once.
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
    // Reopening would fail on the lock if a thread still held the directory.
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

/// Makes `work` wait for a lock of every shard, creates a table with rows in segments or frozen
/// memtables, and lets `work` continue: it must not mistake the table for a dropped one.
fn a_table_made_while_work_waits<L>(
    lock: impl for<'a> Fn(&'a Shard) -> MutexGuard<'a, L>,
    fill: impl Fn(&Engine),
    work: impl Fn(&Engine) + Sync,
) {
    let world = World::new(1);
    let engine = world.open_db();
    store(&engine, "t", &[("a", 1, &[("f", V::I64(1))])]);
    for shard in &engine.inner().shards {
        shard.freeze().unwrap();
    }
    std::thread::scope(|scope| {
        let held: Vec<_> = engine.inner().shards.iter().map(&lock).collect();
        let waiting = scope.spawn(|| work(&engine));
        // Long enough to reach the lock; if it is not, nothing is tested and nothing fails.
        std::thread::sleep(Duration::from_millis(100));
        assert!(!waiting.is_finished());
        fill(&engine);
        drop(held);
        waiting.join().unwrap();
    });
    engine.flush().unwrap();
    assert_eq!(read(&engine, "new").len(), 40);
    assert_eq!(read(&engine, "t").len(), 1);
}

/// Rows of a new table, in several batches.
fn fill_new(engine: &Engine, after: impl Fn(&Engine)) {
    for time in 0..4 {
        for dev in 0..10 {
            store(
                engine,
                "new",
                &[(&format!("d{dev}"), time, &[("g", V::I64(dev))])],
            );
        }
        after(engine);
    }
}

#[test]
fn a_flush_that_waits_knows_tables_made_meanwhile() {
    let freeze = |engine: &Engine| {
        for shard in &engine.inner().shards {
            shard.freeze().unwrap();
        }
    };
    let fill = |engine: &Engine| fill_new(engine, freeze);
    a_table_made_while_work_waits(
        |shard| shard.flushing.lock(),
        fill,
        |engine| {
            engine.flush().unwrap();
        },
    );
}

#[test]
fn maintenance_that_waits_knows_tables_made_meanwhile() {
    let fill = |engine: &Engine| fill_new(engine, |engine| engine.flush().unwrap());
    let works: [&(dyn Fn(&Engine) + Sync); 3] = [
        &|engine| engine.retain().unwrap(),
        &|engine| engine.compact().unwrap(),
        &|engine| assert!(engine.maintain().is_ok()),
    ];
    for work in works {
        a_table_made_while_work_waits(|shard| shard.maintenance.lock(), fill, work);
    }
}
