//! A field that gets another type keeps all of its values, or its type: through a power loss at any
//! operation, wherever the values stand.

use super::support::*;
use crate::{ConvertedColumn, Engine, EngineError, RetypeOutcome, RetypeRequest, TableSpec};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array};
use marigram_model::{
    ColumnCodec, Encoding, FieldType, FieldValue, FieldValueRef as V, Rollup, TagType, TimeRange,
};
use std::sync::Arc;

fn to_integers(values: &ArrayRef) -> ConvertedColumn {
    let floats = values.as_primitive::<Float64Type>();
    let fits = |value: f64| value.fract() == 0.0;
    let unfit = (0..floats.len()).filter(|row| floats.is_valid(*row) && !fits(floats.value(*row)));
    ConvertedColumn {
        unfit: unfit.collect(),
        values: Arc::new(
            floats
                .iter()
                .map(|value| value.map(|value| value as i64))
                .collect::<Int64Array>(),
        ),
    }
}

fn to_floats(values: &ArrayRef) -> ConvertedColumn {
    let whole = values.as_primitive::<Int64Type>().iter();
    ConvertedColumn {
        unfit: Vec::new(),
        values: Arc::new(
            whole
                .map(|value| value.map(|value| value as f64))
                .collect::<Float64Array>(),
        ),
    }
}

fn retype(engine: &Engine, column: &str) -> Result<RetypeOutcome, EngineError> {
    let request = RetypeRequest {
        column,
        kind: FieldType::I64,
        is_zoned: false,
        convert: &to_integers,
    };
    engine.retype_field("db", "t", &request)
}

/// A table with rows in the sequence and the unsequence space, overwritten, deleted, with and
/// without a value of `x`, in segments and in memory.
fn filled(world: &World) -> Engine {
    let engine = world.open_db();
    let spec = TableSpec {
        name: "t".to_owned(),
        tags: vec![("dev".to_owned(), TagType::String)],
        fields: vec![
            ("x".to_owned(), FieldType::F64),
            ("y".to_owned(), FieldType::F64),
        ],
        ..TableSpec::default()
    };
    engine.create_table("db", &spec, false).unwrap();
    let x = |value| vec![("x", V::F64(value))];
    for time in 10..15 {
        store(&engine, "t", &[("a", time, &x(1.0)), ("b", time, &x(2.0))]);
    }
    engine.flush().unwrap();
    store(&engine, "t", &[("a", 3, &x(3.0)), ("a", 11, &x(4.0))]);
    engine.flush().unwrap();
    store(&engine, "t", &[("a", 4, &x(5.0)), ("b", 20, &x(6.0))]);
    store(&engine, "t", &[("b", 21, &[("y", V::F64(0.5))])]);
    let range = TimeRange { min: 13, max: 13 };
    engine
        .delete("db", "t", &crate::TagFilter::All, range)
        .unwrap();
    engine
}

/// What the table holds if `x` has this type.
fn expected(kind: FieldType) -> Contents {
    let value = |value: f64| match kind {
        FieldType::I64 => FieldValue::I64(value as i64),
        _ => FieldValue::F64(value),
    };
    let mut rows = Contents::new();
    for (dev, time, x) in [
        ("a", 3, 3.0),
        ("a", 4, 5.0),
        ("a", 10, 1.0),
        ("a", 11, 4.0),
        ("a", 12, 1.0),
        ("a", 14, 1.0),
        ("b", 10, 2.0),
        ("b", 11, 2.0),
        ("b", 12, 2.0),
        ("b", 14, 2.0),
        ("b", 20, 6.0),
    ] {
        let fields = [("x".to_owned(), value(x))];
        rows.insert((dev.to_owned(), time), fields.into());
    }
    let y = [("y".to_owned(), FieldValue::F64(0.5))];
    rows.insert(("b".to_owned(), 21), y.into());
    rows
}

fn kind_of(engine: &Engine) -> FieldType {
    engine.table("db", "t").unwrap().field("x").unwrap().kind
}

#[test]
fn all_values_follow_wherever_they_stand_and_the_column_keeps_its_place() {
    let world = World::new(1);
    let engine = filled(&world);
    let done = retype(&engine, "x").unwrap();
    assert_eq!(done, RetypeOutcome::Done { values: 11 });
    let names = |engine: &Engine| -> Vec<String> {
        let table = engine.table("db", "t").unwrap();
        table.column_names().map(str::to_owned).collect()
    };
    assert_eq!(names(&engine), ["time", "dev", "x", "y"]);
    assert_eq!(read(&engine, "t"), expected(FieldType::I64));
    let snapshot = engine.snapshot("db", "t").unwrap();
    let id = snapshot.schema().field("x").unwrap().id;
    let newest = snapshot.last_rows(&snapshot.select(&crate::TagFilter::All), &[id]);
    let newest: usize = newest.unwrap().iter().map(|(_, rows)| rows.len()).sum();
    assert_eq!(newest, 2);
    drop(snapshot);
    // A column that comes later, and the type once more.
    store(&engine, "t", &[("c", 1, &[("z", V::Bool(true))])]);
    let back = RetypeRequest {
        column: "x",
        kind: FieldType::F64,
        is_zoned: false,
        convert: &to_floats,
    };
    engine.retype_field("db", "t", &back).unwrap();
    engine.flush().unwrap();
    engine.compact_table("db", "t").unwrap();
    let mut all = expected(FieldType::F64);
    let z = [("z".to_owned(), FieldValue::Bool(true))];
    all.insert(("c".to_owned(), 1), z.into());
    assert_eq!(read(&engine, "t"), all);
    assert_eq!(names(&engine), ["time", "dev", "x", "y", "z"]);
    assert_eq!(world.damage(), [""; 0]);
    drop(engine);
    world.fs.crash();
    assert_eq!(read(&world.open(), "t"), all);
}

#[test]
fn a_value_that_does_not_fit_is_named_and_nothing_changes() {
    let world = World::new(2);
    let engine = filled(&world);
    let half = |time| ("b", time, &[("x", V::F64(7.5))][..]);
    store(&engine, "t", &[half(12), half(2), half(30)]);
    let before = (read(&engine, "t"), engine.table("db", "t").unwrap());
    let Ok(RetypeOutcome::Unfit { count, first }) = retype(&engine, "x") else {
        panic!("7.5 is no integer");
    };
    assert_eq!(
        (count, first.time_ns, &first.value),
        (3, 2, &FieldValue::F64(7.5))
    );
    let tags = [("dev".to_owned(), FieldValue::String("b".to_owned()))];
    assert_eq!(first.tags, tags);
    assert_eq!(
        (read(&engine, "t"), engine.table("db", "t").unwrap()),
        before
    );
    // The table is open to writers again.
    store(&engine, "t", &[("a", 99, &[("x", V::F64(8.5))])]);
}

#[test]
fn fields_that_rollups_read_and_other_columns_are_refused() {
    let world = World::new(3);
    let engine = filled(&world);
    let source = engine.table("db", "t").unwrap().id;
    let rollup = TableSpec {
        name: "r".to_owned(),
        fields: vec![("m".to_owned(), FieldType::F64)],
        rollup: Some(Rollup {
            source,
            query: "SELECT avg(y) AS m FROM t".to_owned(),
            cell_ns: 10,
            cell_origin_ns: 0,
            refresh_ns: 1,
            lag_ns: 0,
        }),
        ..TableSpec::default()
    };
    engine.create_table("db", &rollup, false).unwrap();
    assert!(matches!(
        retype(&engine, "y"),
        Err(EngineError::Needed { .. })
    ));
    for column in ["dev", "time", "nothing"] {
        assert!(matches!(
            retype(&engine, column),
            Err(EngineError::NotFound { .. })
        ));
    }
    retype(&engine, "x").unwrap();
}

#[test]
fn an_encoding_that_does_not_suit_goes() {
    let world = World::new(4);
    let engine = filled(&world);
    let codec = ColumnCodec {
        encoding: Some(Encoding::Alp),
        ..ColumnCodec::default()
    };
    let set = crate::TableChange::SetCodec("x".to_owned(), codec);
    engine.alter_table("db", "t", &set).unwrap();
    retype(&engine, "x").unwrap();
    assert_eq!(
        engine
            .table("db", "t")
            .unwrap()
            .field("x")
            .unwrap()
            .codec
            .encoding,
        None
    );
}

#[test]
fn a_power_loss_at_any_operation_leaves_the_old_type_or_the_new_one() {
    let world = World::new(5);
    let engine = filled(&world);
    let first = world.fs.ops();
    retype(&engine, "x").unwrap();
    engine.flush().unwrap();
    let operations = world.fs.ops() - first;
    drop(engine);
    let mut seen = std::collections::BTreeSet::new();
    for at in 0..=operations {
        let world = World::new(100 + at);
        let engine = filled(&world);
        world.fs.crash_at(world.fs.ops() + at);
        let outcome = retype(&engine, "x");
        let _ = engine.flush();
        drop(engine);
        world.fs.crash();
        let engine = world.open();
        let kind = kind_of(&engine);
        assert!(outcome.is_err() || kind == FieldType::I64, "operation {at}");
        assert_eq!(read(&engine, "t"), expected(kind), "operation {at}");
        seen.insert(kind.to_string());
        engine.flush().unwrap();
        engine.compact_table("db", "t").unwrap();
        assert_eq!(read(&engine, "t"), expected(kind), "operation {at}");
        // Once more, if it had failed.
        if kind == FieldType::F64 {
            retype(&engine, "x").unwrap();
        }
        assert_eq!(
            read(&engine, "t"),
            expected(FieldType::I64),
            "operation {at}"
        );
        assert_eq!(world.damage(), [""; 0], "operation {at}");
    }
    assert_eq!(seen.len(), 2, "{seen:?}");
}
