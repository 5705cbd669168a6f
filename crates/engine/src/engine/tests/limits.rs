//! The memory ceiling.

use super::support::{GROW, World, options, read};
use crate::{Engine, EngineError, EngineOptions, Holder};
use marigram_env::{FaultRepeat, OpKind, PlannedFault};
use marigram_model::{BatchBuilder, FieldValueRef as V, TagValueRef, WriteBatch};

fn wide_batch(start: i64, rows: i64) -> WriteBatch {
    let mut builder = BatchBuilder::new("t");
    let slot = builder.slot([("dev", TagValueRef::String("a"))]);
    for time in start..start + rows {
        builder.row(slot, time);
        builder.field("x", V::F64(time as f64));
    }
    builder.finish()
}

fn small(world: &World) -> Engine {
    let options = EngineOptions {
        memory_limit_bytes: 2 << 20,
        flush_bytes_max: 1 << 30,
        ..options()
    };
    let engine = world.open_with(options);
    engine.create_database("db", true).unwrap();
    engine
}

#[test]
fn at_the_ceiling_memtables_are_flushed_and_writing_goes_on() {
    let world = World::new(1);
    let engine = small(&world);
    for round in 0..40 {
        engine
            .write("db", &wide_batch(round * 10_000, 10_000), GROW)
            .unwrap();
        let (used, limit) = (engine.memory().used(), engine.memory().limit());
        assert!(used <= limit, "{used} of {limit} bytes in round {round}");
    }
    assert!(engine.status().flushes > 0);
    assert_eq!(read(&engine, "t").len(), 400_000);
}

#[test]
fn where_no_room_can_be_made_writes_are_refused_whole() {
    let world = World::new(1);
    let engine = small(&world);
    engine.write("db", &wide_batch(0, 10_000), GROW).unwrap();
    let memory = engine.memory().clone();
    let all = memory.limit();
    memory.grow(Holder::Query, all);
    // Above the reserve for writes, and there is no other memory.
    let refused = engine
        .write("db", &wide_batch(10_000, 20_000), GROW)
        .unwrap_err();
    assert!(matches!(refused, EngineError::Busy { .. }), "{refused}");
    assert_eq!(memory.used_by(Holder::Memtable), 0);
    let usage = memory.usage(Holder::Memtable);
    assert!(usage.waits > 0 && usage.refusals > 0, "{usage:?}");
    // Within it, writes continue however much queries hold.
    for round in 1..6 {
        let batch = wide_batch(round * 10_000, 10_000);
        engine.write("db", &batch, GROW).unwrap();
    }
    memory.shrink(Holder::Query, all);
    assert_eq!(read(&engine, "t").len(), 60_000);
    let huge = engine
        .write("db", &wide_batch(0, 200_000), GROW)
        .unwrap_err();
    assert!(matches!(huge, EngineError::Invalid(_)), "{huge}");
}

#[test]
fn rows_that_a_reader_still_holds_stay_counted_after_their_flush() {
    let world = World::new(1);
    let engine = world.open_db();
    engine.write("db", &wide_batch(0, 1000), GROW).unwrap();
    let snapshot = engine.snapshot("db", "t").unwrap();
    let other = engine.snapshot("db", "t").unwrap();
    let bytes = engine.memory().used_by(Holder::Memtable);
    engine.flush().unwrap();
    assert_eq!(engine.memory().used_by(Holder::Memtable), bytes);
    drop(snapshot);
    assert_eq!(engine.memory().used_by(Holder::Memtable), bytes);
    drop(other);
    assert_eq!(engine.memory().used_by(Holder::Memtable), 0);
}

#[test]
fn memory_of_a_refused_write_is_given_back() {
    let world = World::new(1);
    let engine = small(&world);
    engine.write("db", &wide_batch(0, 1000), GROW).unwrap();
    let used = engine.memory().used_by(Holder::Memtable);
    world.fs.fail(PlannedFault {
        kind: Some(OpKind::Append),
        after: 0,
        repeat: FaultRepeat::Once,
    });
    assert!(engine.write("db", &wide_batch(5000, 1000), GROW).is_err());
    assert_eq!(engine.memory().used_by(Holder::Memtable), used);
}

#[test]
fn recovery_of_a_long_log_stays_under_the_ceiling() {
    let world = World::new(1);
    let engine = world.open_db();
    for round in 0..40 {
        engine
            .write("db", &wide_batch(round * 10_000, 10_000), GROW)
            .unwrap();
    }
    drop(engine);
    let engine = small(&world);
    assert!(engine.memory().used() <= engine.memory().limit());
    assert!(engine.status().recovery_wal_bytes > 0);
    assert_eq!(read(&engine, "t").len(), 400_000);
    world.fs.crash();
    drop(engine);
    assert_eq!(read(&small(&world), "t").len(), 400_000);
}
