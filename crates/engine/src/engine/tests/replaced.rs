//! Rows that take the place of stored ones are known before they are written.

use super::support::*;
use crate::{Engine, ReplacedCount};
use marigram_model::FieldValueRef as V;

const ALL: u64 = u64::MAX;

fn replaced(engine: &Engine, keys: &[(&str, i64)], most: u64) -> ReplacedCount {
    let fields: &[(&str, V<'_>)] = &[("x", V::F64(0.5))];
    let rows: Vec<Row<'_>> = keys
        .iter()
        .map(|(dev, time)| (*dev, *time, fields))
        .collect();
    let found = engine.replaced_by("db", &batch("t", &rows), most).unwrap();
    ReplacedCount {
        scanned: 0,
        ..found
    }
}

fn exactly(rows: &[u32]) -> ReplacedCount {
    ReplacedCount {
        rows: rows.to_vec(),
        is_partial: false,
        scanned: 0,
    }
}

#[test]
fn rows_of_segments_memtables_and_late_ones_are_found_and_deleted_ones_are_not() {
    let world = World::new(11);
    let engine = world.open_db();
    let row = |dev, time| (dev, time, &[("x", V::F64(1.5))][..]);
    for time in 0..50 {
        store(&engine, "t", &[row("a", 10 * time), row("b", 10 * time)]);
    }
    engine.flush().unwrap();
    // Late, flushed; then late in memory; then newer ones in memory.
    store(&engine, "t", &[row("a", 5)]);
    engine.flush().unwrap();
    store(&engine, "t", &[row("b", 7), row("c", 1000)]);
    let asked = [
        ("a", 5),
        ("a", 6),
        ("b", 7),
        ("b", 490),
        ("b", 491),
        ("c", 1000),
        ("c", 10),
        ("new", 10),
        ("a", 2000),
    ];
    let before = replaced(&engine, &asked, ALL);
    assert_eq!(before, exactly(&[0, 2, 3, 5]));
    engine.compact().unwrap();
    assert_eq!(replaced(&engine, &asked, ALL), before);
    engine
        .delete(
            "db",
            "t",
            &crate::TagFilter::All,
            marigram_model::TimeRange { min: 0, max: 8 },
        )
        .unwrap();
    assert_eq!(replaced(&engine, &asked, ALL), exactly(&[3, 5]));
    drop(engine);
    world.fs.crash();
    assert_eq!(replaced(&world.open(), &asked, ALL), exactly(&[3, 5]));
}

#[test]
fn the_bound_is_said_and_newer_rows_read_nothing() {
    let world = World::new(12);
    let engine = world.open_db();
    for time in 0..20_000 {
        if time % 1000 == 0 {
            let rows: Vec<Row<'_>> = (time..time + 1000)
                .map(|time| ("a", time, &[("x", V::F64(1.5))][..]))
                .collect();
            store(&engine, "t", &rows);
        }
    }
    let partial = replaced(&engine, &[("a", 0), ("a", 19_999)], 1000);
    assert!(partial.is_partial && partial.rows == [0], "{partial:?}");
    // Newer than the last row of its series, and newer than everything.
    assert_eq!(replaced(&engine, &[("a", 20_000)], 0), exactly(&[]));
    store(&engine, "t", &[("b", 90_000, &[("x", V::F64(1.5))])]);
    assert_eq!(replaced(&engine, &[("a", 20_000)], 0), exactly(&[]));
    assert_eq!(replaced(&engine, &[("z", 5)], 0), exactly(&[]));
}
