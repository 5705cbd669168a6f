//! Tables that change their columns: values follow their columns' numbers, through a power loss at
//! any moment, flushes and compactions.

use super::support::*;
use crate::{Engine, EngineError, TableChange, TableSpec};
use marigram_model::{FieldType, FieldValue, FieldValueRef as V, TagType, View};

fn spec(name: &str) -> TableSpec {
    TableSpec {
        name: name.to_owned(),
        tags: vec![("dev".to_owned(), TagType::String)],
        fields: vec![
            ("x".to_owned(), FieldType::F64),
            ("n".to_owned(), FieldType::I64),
        ],
        ..TableSpec::default()
    }
}

fn alter(engine: &Engine, table: &str, change: TableChange) -> Result<(), EngineError> {
    engine.alter_table("db", table, &change).map(drop)
}

/// The names of the fields with values, and the number of rows with a value of each.
fn carried(engine: &Engine, table: &str) -> Vec<(String, usize)> {
    let mut names = std::collections::BTreeMap::new();
    for fields in read(engine, table).into_values() {
        for name in fields.into_keys() {
            *names.entry(name).or_insert(0) += 1;
        }
    }
    names.into_iter().collect()
}

fn expect(engine: &Engine, table: &str, expected: &[(&str, usize)]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|(name, rows)| ((*name).to_owned(), *rows))
        .collect();
    assert_eq!(carried(engine, table), expected);
}

/// Whether segments contain a column with this number.
fn stand_in_segments(engine: &Engine, table: &str, column: u32) -> bool {
    let snapshot = engine.snapshot("db", table).unwrap();
    let id = snapshot.schema().id;
    let pages = snapshot
        .views()
        .iter()
        .flat_map(|view| view.pages(id, None));
    let mut pages = pages.map(Result::unwrap);
    pages.any(|page| page.column.0 == column)
}

#[test]
fn what_is_dropped_is_gone_wherever_it_stands_and_never_comes_back() {
    for (nth, flushes) in [false, true].into_iter().enumerate() {
        let world = World::new(nth as u64);
        let mut engine = world.open_db();
        engine.create_table("db", &spec("t"), false).unwrap();
        for time in 0..10 {
            store(
                &engine,
                "t",
                &[("a", time, &[("x", V::F64(1.5)), ("n", V::I64(time))])],
            );
        }
        if flushes {
            engine.flush().unwrap();
        }
        // The highest number, and a lower one.
        alter(&engine, "t", TableChange::DropField("n".to_owned())).unwrap();
        expect(&engine, "t", &[("x", 10)]);
        store(&engine, "t", &[("a", 20, &[("n", V::F64(0.5))])]);
        expect(&engine, "t", &[("n", 1), ("x", 10)]);
        alter(&engine, "t", TableChange::DropField("x".to_owned())).unwrap();
        // Dropped fields in the log do not indicate a lost catalog.
        drop(engine);
        world.fs.crash();
        engine = world.open();
        expect(&engine, "t", &[("n", 1)]);
        assert_eq!(
            read(&engine, "t").len(),
            11,
            "dropping a field must keep the rows"
        );
        engine.flush().unwrap();
        store(&engine, "t", &[("b", 30, &[("n", V::F64(2.5))])]);
        engine.compact_table("db", "t").unwrap();
        expect(&engine, "t", &[("n", 2)]);
        assert!(!stand_in_segments(&engine, "t", 1));
        assert!(!stand_in_segments(&engine, "t", 2));
        assert!(stand_in_segments(&engine, "t", 3));
        assert_eq!(world.damage(), [""; 0]);
        drop(engine);
        world.fs.crash();
        expect(&world.open(), "t", &[("n", 2)]);
    }
}

#[test]
fn names_follow_and_others_take_their_place() {
    let world = World::new(7);
    let engine = world.open_db();
    engine.create_table("db", &spec("t"), false).unwrap();
    store(
        &engine,
        "t",
        &[("a", 1, &[("x", V::F64(1.5)), ("n", V::I64(1))])],
    );
    let rename = |from: &str, to: &str| TableChange::RenameColumn(from.to_owned(), to.to_owned());
    alter(&engine, "t", rename("x", "y")).unwrap();
    alter(&engine, "t", rename("n", "x")).unwrap();
    alter(&engine, "t", rename("time", "at")).unwrap();
    alter(&engine, "t", TableChange::Rename("u".to_owned())).unwrap();
    engine.create_table("db", &spec("t"), false).unwrap();
    assert!(matches!(
        alter(&engine, "u", TableChange::Rename("t".to_owned())),
        Err(EngineError::AlreadyExists { .. })
    ));
    drop(engine);
    world.fs.crash();
    let engine = world.open();
    let row = read(&engine, "u").remove(&("a".to_owned(), 1)).unwrap();
    assert_eq!(row["x"], FieldValue::I64(1));
    assert_eq!(row["y"], FieldValue::F64(1.5));
    assert_eq!(engine.table("db", "u").unwrap().time_name, "at");
    assert!(read(&engine, "t").is_empty());
    for (from, to) in [
        ("x", "y"),
        ("x", "dev"),
        ("x", "at"),
        ("nothing", "z"),
        ("x", ""),
    ] {
        assert!(
            alter(&engine, "u", rename(from, to)).is_err(),
            "{from} to {to}"
        );
    }
}

#[test]
fn what_a_view_reads_stays_and_nobody_writes_to_a_view() {
    let world = World::new(9);
    let engine = world.open_db();
    let table = engine.create_table("db", &spec("t"), false).unwrap();
    let view = TableSpec {
        name: "v".to_owned(),
        view: Some(View {
            query: "SELECT * FROM t".to_owned(),
            columns: Vec::new(),
            reads: vec![table.id],
        }),
        ..TableSpec::default()
    };
    engine.create_table("db", &view, false).unwrap();
    let needed = |result: Result<(), EngineError>| {
        assert!(
            matches!(result, Err(EngineError::Needed { .. })),
            "{result:?}"
        );
    };
    needed(engine.drop_table("db", "t", false));
    needed(alter(&engine, "t", TableChange::Rename("u".to_owned())));
    needed(alter(&engine, "t", TableChange::DropField("x".to_owned())));
    let rename = TableChange::RenameColumn("x".to_owned(), "y".to_owned());
    needed(alter(&engine, "t", rename));
    let rows = batch("v", &[("a", 1, &[("x", V::F64(1.5))])]);
    assert!(engine.write("db", &rows, GROW).is_err());
    drop(engine);
    world.fs.crash();
    let engine = world.open();
    assert_eq!(engine.views().len(), 1);
    engine.drop_table("db", "v", false).unwrap();
    assert!(engine.views().is_empty());
    engine.drop_table("db", "t", false).unwrap();
}
