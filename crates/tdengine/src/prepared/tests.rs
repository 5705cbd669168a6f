//! Tests of prepared statements.

use super::*;
use crate::parse_statement;
use proptest::prelude::*;
use std::borrow::Cow;

fn insert(sql: &str) -> PreparedInsert {
    match PreparedSql::parse(sql).unwrap() {
        PreparedSql::Insert(insert) => insert,
        PreparedSql::Other(pieces) => panic!("{pieces:?}"),
    }
}

fn text(text: &str) -> BoundValue<'_> {
    BoundValue::Text(Cow::Borrowed(text))
}

#[test]
fn an_insert_is_filled() {
    let insert = insert("insert into ? using `St` tags(?, 'x') (ts, V) values(?, ?);");
    let places = [
        PreparedPlace::TableName,
        PreparedPlace::Tag(0),
        PreparedPlace::Column(0),
        PreparedPlace::Column(1),
    ];
    assert_eq!(insert.places(), places);
    assert_eq!(insert.described(), Some("`St`"));
    let mut out = "INSERT INTO ".to_owned();
    let tags = [text("it's")];
    insert.begin_table(Some("db.D 1"), &tags, &mut out).unwrap();
    let mut values = vec![BoundValue::Float(0.5), BoundValue::Integer(1)];
    let mut next = || values.pop().ok_or_else(too_many);
    insert.row(&mut next, &mut out).unwrap();
    let sql = "INSERT INTO `db`.`D 1` USING `St` TAGS ('it\\'s','x') (`ts`,`v`) VALUES (1,0.5)";
    assert_eq!(out, sql);
    assert!(parse_statement(&out).is_ok());
    assert!(insert.row(&mut next, &mut out).is_err());
    assert!(insert.begin_table(Some("d"), &[], &mut out).is_err());
    assert!(insert.begin_table(None, &tags, &mut out).is_err());
    assert!(insert.begin_table(Some(""), &tags, &mut out).is_err());
    let hostile = "`d` VALUES (1); DROP DATABASE d";
    assert!(insert.begin_table(Some(hostile), &tags, &mut out).is_err());
}

#[test]
fn tbname_among_columns_is_a_table() {
    let insert = insert("insert into db.st (tbname, ts, v, place) values (?, ?, ?, ?)");
    let insert = insert.with_using(&|name| name == "place");
    let places = [
        PreparedPlace::TableName,
        PreparedPlace::Tag(0),
        PreparedPlace::Column(0),
        PreparedPlace::Column(1),
    ];
    assert_eq!(insert.places(), places);
    let mut out = "INSERT INTO ".to_owned();
    insert
        .begin_table(Some("d1"), &[text("x")], &mut out)
        .unwrap();
    assert_eq!(
        out,
        "INSERT INTO `d1` USING db.st (`place`) TAGS ('x') (`ts`,`v`) VALUES "
    );
}

#[test]
fn other_statements_are_filled() {
    let sql = "select '?', `?` from t where a > ? and b = ? -- ?";
    let PreparedSql::Other(pieces) = PreparedSql::parse(sql).unwrap() else {
        panic!("no INSERT");
    };
    assert_eq!(pieces.len(), 3);
    let values = [BoundValue::Integer(5), text("x' or '1'='1")];
    let filled = filled_text(&pieces, &values).unwrap();
    let expected = "select '?', `?` from t where a > 5 and b = 'x\\' or \\'1\\'=\\'1' -- ?";
    assert_eq!(filled, expected);
    assert!(filled_text(&pieces, &values[..1]).is_err());
}

#[test]
fn other_forms_of_insert_are_refused() {
    for sql in [
        "insert into t values (?), (?)",
        "insert into t values (? + 1)",
        "insert into t values (1 + ?)",
        "insert into t values (?",
        "insert into t values ()",
        "insert into ? ? values (?)",
        "insert into t values (?) u values (?)",
        "insert into t select 1",
        "insert",
    ] {
        assert!(PreparedSql::parse(sql).is_err(), "{sql}");
    }
    let fixed = insert("insert into t values (now, ?, f(1, 2))");
    assert_eq!(fixed.places(), [PreparedPlace::Column(1)]);
}

proptest! {
    #[test]
    fn no_text_panics(sql in "(insert into |select )?([a-z`?(),;. ]|values|using|tags|'){0,30}") {
        let _ = PreparedSql::parse(&sql);
    }
}
