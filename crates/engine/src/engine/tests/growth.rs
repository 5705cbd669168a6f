//! Tables that grow, and the treatment of bad rows.

use super::support::{GROW, World, batch, read, store};
use crate::{EngineError, TableChange, TableSpec, WriteOptions};
use marigram_model::{
    BatchBuilder, FieldType, FieldValueRef as V, RetentionPolicies, RetentionPolicy, TableOptions,
    TagType, TagValueRef,
};

#[test]
fn tables_tags_and_fields_appear_as_they_are_written() {
    let world = World::new(1);
    let engine = world.open_db();
    store(&engine, "t", &[("a", 1, &[("x", V::F64(1.0))])]);
    store(
        &engine,
        "t",
        &[("a", 2, &[("y", V::I64(7)), ("x", V::F64(2.0))])],
    );
    drop(engine);
    let engine = world.open();
    let table = engine.table("db", "t").unwrap();
    let fields: Vec<_> = table
        .fields
        .iter()
        .map(|f| (f.name.as_str(), f.kind))
        .collect();
    assert_eq!(fields, vec![("x", FieldType::F64), ("y", FieldType::I64)]);
    assert_eq!(read(&engine, "t").len(), 2);
}

#[test]
fn without_leave_to_grow_what_is_missing_is_named_with_what_was_meant() {
    let world = World::new(1);
    let engine = world.open_db();
    store(&engine, "trucks", &[("a", 1, &[("speed", V::F64(1.0))])]);
    let fixed = WriteOptions { grow: false };
    let error = engine
        .write("db", &batch("truck", &[("a", 1, &[])]), fixed)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "table 'truck' does not exist; did you mean 'trucks'?"
    );
    let rows = batch("trucks", &[("a", 1, &[("sped", V::F64(1.0))])]);
    let error = engine.write("db", &rows, fixed).unwrap_err();
    assert_eq!(
        error.to_string(),
        "field 'sped' does not exist; did you mean 'speed'?"
    );
    let error = engine.write("dc", &rows, GROW).unwrap_err();
    assert!(matches!(
        error,
        EngineError::NotFound {
            kind: "database",
            ..
        }
    ));
}

#[test]
fn a_row_of_the_wrong_type_is_named_and_the_others_are_stored() {
    let world = World::new(1);
    let engine = world.open_db();
    store(&engine, "t", &[("a", 1, &[("x", V::F64(1.0))])]);
    let rows = batch(
        "t",
        &[
            ("a", 2, &[("x", V::F64(2.0))]),
            ("b", 3, &[("x", V::I64(3)), ("new", V::F64(1.0))]),
            ("", 4, &[("x", V::F64(4.0))]),
            ("c", 5, &[]),
            ("d", 6, &[("x", V::F64(6.0)), ("dev", V::F64(1.0))]),
        ],
    );
    let report = engine.write("db", &rows, GROW).unwrap();
    assert_eq!(report.stored, 1);
    let reasons: Vec<_> = report
        .rejected
        .iter()
        .map(|r| (r.row, r.reason.as_str()))
        .collect();
    assert_eq!(
        reasons,
        vec![
            (
                1,
                "field 'x' is BIGINT here, and the field in the table is DOUBLE"
            ),
            (2, "tag 'dev' has an empty value; leave the tag out instead"),
            (
                3,
                "the row has no value in any field, and a table stores no such row"
            ),
            (
                4,
                "'dev' is a field here (DOUBLE), and a tag (STRING) of table 't'"
            ),
        ]
    );
    assert_eq!(read(&engine, "t").len(), 2);
    assert!(engine.table("db", "t").unwrap().field("new").is_none());
    assert_eq!(engine.status().rows_rejected, 4);
    assert_eq!(engine.status().series, 1);
}

#[test]
fn a_name_of_two_types_goes_by_the_first_and_two_forms_of_one_column_unite() {
    let world = World::new(1);
    let engine = world.open_db();
    let mixed = &[
        ("a", 1, &[("x", V::I64(1))][..]),
        ("a", 2, &[("x", V::U64(2))]),
        ("a", 3, &[("x", V::F64(3.0))]),
    ];
    let report = engine.write("db", &batch("t", mixed), GROW).unwrap();
    assert_eq!(report.stored, 2);
    assert_eq!(report.rejected[0].row, 2);
    let rows = read(&engine, "t");
    assert_eq!(
        rows[&("a".to_owned(), 2)]["x"],
        marigram_model::FieldValue::I64(2)
    );
}

#[test]
fn values_convert_to_the_declared_type_where_nothing_is_lost() {
    let world = World::new(1);
    let engine = world.open_db();
    let spec = TableSpec {
        name: "t".to_owned(),
        tags: vec![("dev".to_owned(), TagType::String)],
        fields: vec![
            ("i".to_owned(), FieldType::I32),
            ("u".to_owned(), FieldType::U64),
            ("f".to_owned(), FieldType::F32),
            ("w".to_owned(), FieldType::Timestamp),
            ("b".to_owned(), FieldType::Bytes),
        ],
        ..TableSpec::default()
    };
    engine.create_table("db", &spec, false).unwrap();
    let good = [
        ("i", V::I64(-5)),
        ("u", V::I64(5)),
        ("f", V::F64(0.5)),
        ("w", V::I64(9)),
        ("b", V::String("z")),
    ];
    let rows = batch(
        "t",
        &[
            ("a", 1, &good),
            ("a", 2, &[("i", V::I64(1 << 40))]),
            ("a", 3, &[("u", V::I64(-1))]),
            ("a", 4, &[("f", V::F64(1e300))]),
        ],
    );
    let report = engine.write("db", &rows, GROW).unwrap();
    assert_eq!(report.stored, 1);
    assert_eq!(
        report.rejected.iter().map(|r| r.row).collect::<Vec<_>>(),
        vec![1, 2, 3]
    );
    assert!(
        report.rejected[0].reason.contains("'i' is INT"),
        "{}",
        report.rejected[0].reason
    );
    assert_eq!(read(&engine, "t").values().next().unwrap().len(), 5);
}

#[test]
fn typed_tags_take_their_canonical_text() {
    let world = World::new(1);
    let engine = world.open_db();
    let spec = TableSpec {
        name: "t".to_owned(),
        tags: vec![("unit".to_owned(), TagType::I64)],
        ..TableSpec::default()
    };
    engine.create_table("db", &spec, false).unwrap();
    let mut builder = BatchBuilder::new("t");
    for text in ["7", "07", "seven"] {
        let slot = builder.slot([("unit", TagValueRef::String(text))]);
        builder.row(slot, 1);
        builder.field("x", V::F64(1.0));
    }
    let slot = builder.slot([("unit", TagValueRef::I64(7))]);
    builder.row(slot, 2);
    builder.field("x", V::F64(2.0));
    let report = engine.write("db", &builder.finish(), GROW).unwrap();
    assert_eq!(
        report.rejected.iter().map(|r| r.row).collect::<Vec<_>>(),
        vec![1, 2]
    );
    assert_eq!(engine.status().series, 1);
}

#[test]
fn names_out_of_bounds_reject_their_rows_alone() {
    let world = World::new(1);
    let engine = world.open_db();
    let long = "x".repeat(300);
    let rows = batch(
        "t",
        &[
            ("a", 1, &[(long.as_str(), V::F64(1.0))]),
            ("a", 2, &[("x", V::F64(1.0))]),
        ],
    );
    let report = engine.write("db", &rows, GROW).unwrap();
    assert_eq!((report.stored, report.rejected.len()), (1, 1));
    assert!(
        report.rejected[0].reason.contains("300 bytes"),
        "{}",
        report.rejected[0].reason
    );
}

#[test]
fn a_table_is_not_made_for_rows_that_are_all_rejected() {
    let world = World::new(1);
    let engine = world.open_db();
    let report = engine
        .write("db", &batch("t", &[("", 1, &[("x", V::F64(1.0))])]), GROW)
        .unwrap();
    assert_eq!((report.stored, report.rejected.len()), (0, 1));
    assert!(engine.table("db", "t").is_err());
}

#[test]
fn rows_older_than_the_ttl_are_rejected_and_outlived_partitions_are_dropped() {
    const MINUTE: i64 = 60_000_000_000;
    let world = World::new(1);
    let engine = world.open_db();
    let options = TableOptions {
        partition_ns: MINUTE,
        ttl_ns: Some(10 * MINUTE),
        ..TableOptions::default()
    };
    let spec = TableSpec {
        name: "t".to_owned(),
        options,
        ..TableSpec::default()
    };
    engine.create_table("db", &spec, false).unwrap();
    world.clock.jump(100 * MINUTE);
    store(&engine, "t", &[("a", 95 * MINUTE, &[("x", V::F64(1.0))])]);
    store(&engine, "t", &[("a", 99 * MINUTE, &[("x", V::F64(2.0))])]);
    let old = batch("t", &[("a", 89 * MINUTE, &[("x", V::F64(0.0))])]);
    let report = engine.write("db", &old, GROW).unwrap();
    assert!(
        report.rejected[0].reason.contains("ttl"),
        "{}",
        report.rejected[0].reason
    );
    engine.flush().unwrap();
    assert_eq!(engine.segments().len(), 2);
    engine.retain().unwrap();
    assert_eq!(engine.segments().len(), 2);
    world.clock.jump(107 * MINUTE);
    engine.retain().unwrap();
    assert_eq!(engine.segments().len(), 1);
    assert_eq!(read(&engine, "t").len(), 1);
}

#[test]
fn tables_and_databases_are_dropped_with_their_rows() {
    let world = World::new(1);
    let engine = world.open_db();
    store(&engine, "t", &[("a", 1, &[("x", V::F64(1.0))])]);
    engine.flush().unwrap();
    store(&engine, "t", &[("a", 2, &[("x", V::F64(1.0))])]);
    engine.drop_table("db", "t", false).unwrap();
    assert!(engine.snapshot("db", "t").is_err());
    store(&engine, "t", &[("a", 3, &[("x", V::F64(3.0))])]);
    assert_eq!(read(&engine, "t").len(), 1);
    drop(engine);
    world.fs.crash();
    let engine = world.open();
    assert_eq!(read(&engine, "t").len(), 1);
    engine.flush().unwrap();
    engine.retain().unwrap();
    engine.compact().unwrap();
    assert_eq!(read(&engine, "t").len(), 1);
    assert_eq!(
        engine.segments().iter().map(|s| s.meta.rows).sum::<u64>(),
        1
    );
    engine.drop_database("db", false).unwrap();
    assert!(engine.databases().is_empty());
    assert!(engine.drop_database("db", false).is_err());
    engine.drop_database("db", true).unwrap();
}

#[test]
fn columns_are_added_and_settings_changed_by_alter() {
    let world = World::new(1);
    let engine = world.open_db();
    store(&engine, "t", &[("a", 1, &[("x", V::F64(1.0))])]);
    let add = TableChange::AddField("y".to_owned(), FieldType::I64);
    engine.alter_table("db", "t", &add).unwrap();
    assert!(matches!(
        engine.alter_table("db", "t", &add),
        Err(EngineError::AlreadyExists { kind: "column", .. })
    ));
    let tag = TableChange::AddTag("site".to_owned(), TagType::String);
    assert_eq!(engine.alter_table("db", "t", &tag).unwrap().tags.len(), 2);
    let bad = TableOptions {
        partition_ns: 1,
        ..TableOptions::default()
    };
    assert!(
        engine
            .alter_table("db", "t", &TableChange::SetOptions(bad))
            .is_err()
    );
    store(&engine, "t", &[("a", 1, &[("y", V::I64(2))])]);
    assert_eq!(read(&engine, "t").values().next().unwrap().len(), 2);
}

#[test]
fn tables_that_writes_make_have_the_settings_of_their_retention_policy() {
    let world = World::new(1);
    let engine = world.open_db();
    let hour_ns = RetentionPolicy::DURATION_NS_MIN;
    let policies = engine.retention_policies("db").unwrap();
    assert_eq!(*policies, RetentionPolicies::default());
    assert!(engine.retention_policies("no such").is_err());
    let add = |policies: &mut RetentionPolicies| {
        policies.policies.push(RetentionPolicy {
            name: "short".to_owned(),
            duration_ns: Some(2 * hour_ns),
            shard_duration_ns: hour_ns,
            replicas: 1,
            plain: false,
        });
        Ok::<_, EngineError>(())
    };
    engine.change_retention_policies("db", add).unwrap();
    let refused = engine.change_retention_policies("db", add).unwrap_err();
    assert!(matches!(refused, EngineError::Schema(_)), "two of one name");
    let now_ns = world.env().clock.now_ns();
    for table in ["t", "short.t"] {
        store(&engine, table, &[("a", now_ns, &[("x", V::F64(1.0))])]);
    }
    let old = batch(
        "short.new",
        &[("a", now_ns - 3 * hour_ns, &[("x", V::F64(1.0))])],
    );
    let report = engine.write("db", &old, GROW).unwrap();
    assert_eq!((report.stored, report.rejected.len()), (0, 1), "too old");
    drop(engine);
    let engine = world.open();
    assert_eq!(engine.retention_policies("db").unwrap().policies.len(), 2);
    let options = |table| engine.table("db", table).unwrap().options.clone();
    assert_eq!(options("t"), TableOptions::default());
    assert_eq!(options("short.t").ttl_ns, Some(2 * hour_ns));
    assert_eq!(options("short.t").partition_ns, hour_ns);
    engine.drop_database("db", false).unwrap();
    engine.create_database("db", false).unwrap();
    assert_eq!(engine.retention_policies("db").unwrap().policies.len(), 1);
}
