//! Tests of the statements.

use super::*;

fn table() -> Table {
    let tags = [("devid", TagKind::Integer), ("devname", TagKind::Text)];
    let fields = [
        ("celsius", FieldKind::I32),
        ("rain", FieldKind::Bool),
        ("note", FieldKind::Text),
    ];
    Table::new("t", &tags, 1, &fields, Vec::new())
}

const PLAIN: Dialect = Dialect {
    time: "ts",
    literal: |ns| format!("{ns}"),
    bucket: |ns| format!("bucket({ns}, ts)"),
    last: Last::DistinctOn,
    integer_tags: true,
    aggregate,
};

const TEXT_TAGS: Dialect = Dialect {
    integer_tags: false,
    ..PLAIN
};

fn select_of(what: Selection) -> Select {
    Select::all(0, what)
}

#[test]
fn rows_with_every_condition() {
    let select = Select {
        devices: Devices::In(1, vec!["a".to_owned(), "o'b".to_owned()]),
        from_ns: Some(5),
        to_ns: Some(9),
        above: Some((0, 24.0)),
        descending: true,
        ..select_of(Selection::Rows(vec![0, 2]))
    };
    assert_eq!(
        statement(&PLAIN, &table(), &select),
        "SELECT devname, ts, celsius, note FROM t WHERE devname IN ('a', 'o''b') AND ts >= 5 \
         AND ts < 9 AND celsius > 24.0 ORDER BY ts DESC"
    );
}

#[test]
fn integer_tags_are_numbers_where_the_database_has_them() {
    let one = Select {
        devices: Devices::In(0, vec!["7".to_owned()]),
        ..select_of(Selection::Rows(vec![0]))
    };
    let below = Select {
        devices: Devices::Below(0, 10),
        ..select_of(Selection::Rows(vec![0]))
    };
    let rows = "SELECT devname, ts, celsius FROM t WHERE";
    let written = |dialect, select| statement(dialect, &table(), select);
    assert_eq!(written(&PLAIN, &one), format!("{rows} devid = 7"));
    assert_eq!(written(&TEXT_TAGS, &one), format!("{rows} devid = '7'"));
    assert_eq!(written(&PLAIN, &below), format!("{rows} devid < 10"));
    assert_eq!(
        written(&TEXT_TAGS, &below),
        format!("{rows} CAST(devid AS INT) < 10")
    );
}

#[test]
fn last_rows_in_each_form() {
    let select = Select {
        to_ns: Some(9),
        ..select_of(Selection::Last(vec![0]))
    };
    let written = |last| statement(&Dialect { last, ..PLAIN }, &table(), &select);
    assert_eq!(
        written(Last::DistinctOn),
        "SELECT DISTINCT ON (devname) devname, ts, celsius FROM t WHERE ts < 9 \
         ORDER BY devname, ts DESC"
    );
    assert_eq!(
        written(Last::LatestOn),
        "SELECT devname, ts, celsius FROM t WHERE ts < 9 LATEST ON ts PARTITION BY devname"
    );
    assert_eq!(
        written(Last::Clause(|key, time| format!(
            "LIMIT 1 BY {key}, {time}"
        ))),
        "SELECT devname, ts, celsius FROM t WHERE ts < 9 LIMIT 1 BY devname, ts"
    );
}

#[test]
fn aggregates_by_tag_and_window() {
    let select = Select {
        by: vec![1],
        bucket_ns: Some(60),
        descending: true,
        ..select_of(Selection::Aggregates(vec![
            (Aggregate::Count, 1),
            (Aggregate::Spread, 0),
        ]))
    };
    assert_eq!(
        statement(&PLAIN, &table(), &select),
        "SELECT devname, bucket(60, ts), count(rain), max(celsius) - min(celsius) FROM t \
         GROUP BY devname, bucket(60, ts) ORDER BY bucket(60, ts) DESC"
    );
    let alone = select_of(Selection::Aggregates(vec![
        (Aggregate::Sum, 0),
        (Aggregate::Avg, 0),
        (Aggregate::Min, 0),
        (Aggregate::Max, 0),
    ]));
    assert_eq!(
        statement(&PLAIN, &table(), &alone),
        "SELECT sum(celsius), avg(celsius), min(celsius), max(celsius) FROM t"
    );
}

#[test]
fn truth_values_count_as_numbers_and_text_does_not() {
    let of_field = |field| Select {
        above: Some((field, 0.5)),
        ..select_of(Selection::Aggregates(vec![(Aggregate::Max, field)]))
    };
    assert_eq!(
        statement(&PLAIN, &table(), &of_field(1)),
        "SELECT max(CAST(rain AS INT)) FROM t WHERE CAST(rain AS INT) > 0.5"
    );
    assert_eq!(cannot(&table(), &of_field(1)), None);
    assert!(cannot(&table(), &of_field(2)).is_some());
    let count = select_of(Selection::Aggregates(vec![(Aggregate::Count, 2)]));
    assert_eq!(cannot(&table(), &count), None);
}

#[test]
fn a_dialect_may_write_its_own_aggregates() {
    let select = select_of(Selection::Aggregates(vec![(Aggregate::Sum, 0)]));
    let wide = Dialect {
        aggregate: |_, field| format!("sum({}::float8)", field.name),
        ..PLAIN
    };
    assert_eq!(
        statement(&wide, &table(), &select),
        "SELECT sum(celsius::float8) FROM t"
    );
}
