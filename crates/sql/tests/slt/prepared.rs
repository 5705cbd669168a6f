//! Statements that are prepared once and executed with many values: the results equal those of the
//! same statement with literal values, and one plan serves for all.

use super::Database;
use super::service::{block_on, rows};
use arrow::array::{
    ArrayRef, Float64Array, Int64Array, StringArray, TimestampNanosecondArray, new_null_array,
};
use arrow::datatypes::DataType;
use marigram_service::{Prepared, Query};
use std::sync::Arc;

/// A parameter's value.
#[derive(Clone, Copy, Debug)]
enum Value {
    Text(&'static str),
    Int(i64),
    Float(f64),
    /// Nanoseconds.
    Time(i64),
    Null,
}

impl Value {
    fn array(self, kind: &DataType) -> ArrayRef {
        match self {
            Self::Text(text) => Arc::new(StringArray::from(vec![text])),
            Self::Int(number) => Arc::new(Int64Array::from(vec![number])),
            Self::Float(number) => Arc::new(Float64Array::from(vec![number])),
            Self::Time(ns) => Arc::new(TimestampNanosecondArray::from(vec![ns])),
            Self::Null => new_null_array(kind, 1),
        }
    }

    fn written_out(self) -> String {
        match self {
            Self::Text(text) => format!("'{text}'"),
            Self::Int(number) => number.to_string(),
            Self::Float(number) => format!("{number:?}"),
            Self::Time(ns) => format!("to_timestamp_nanos({ns})"),
            Self::Null => "NULL".to_owned(),
        }
    }
}

async fn ask(db: &mut Database, prepared: &dyn Prepared, values: &[Value]) -> Vec<Vec<String>> {
    let arrays = values.iter().zip(prepared.parameters());
    let arrays = arrays.map(|(value, kind)| value.array(kind)).collect();
    let sql = db.sql.clone();
    let answer = sql.execute_prepared(&mut db.session, prepared, arrays);
    let answer = answer.await.expect("the statement is carried out");
    rows(answer).await.expect("the rows come to their end")
}

async fn prepare(db: &Database, sql: &str) -> Arc<dyn Prepared> {
    let prepared = db.sql.prepare(&db.session, sql).await;
    prepared.unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// How often plans were cached, and operators reused.
fn counts(db: &Database) -> (u64, u64) {
    let usage = db.sql.plan_cache();
    (usage.hits, usage.template_hits)
}

/// A database with rows of four devices, including late and flushed rows.
async fn filled() -> Database {
    let mut db = Database::open().await.expect("a database is made");
    db.done("CREATE TABLE t (time TIMESTAMP, dev STRING TAG, unit BIGINT TAG, x DOUBLE)")
        .await;
    for range in ["500, 999", "0, 499"] {
        let rows = format!(
            "INSERT INTO t SELECT to_timestamp_nanos(i), 'd' || (i % 4), i % 3, i / 2.0 \
             FROM generate_series({range}) AS g(i)"
        );
        db.done(&rows).await;
        db.done("FLUSH").await;
    }
    db
}

/// Executes a prepared statement with several sets of values; returns how often the plan was cached
/// and operators were reused.
async fn agrees(db: &mut Database, sql: &str, sets: &[&[Value]]) -> (u64, u64) {
    let prepared = prepare(db, sql).await;
    let mut used = (0, 0);
    for values in sets {
        let before = counts(db);
        let found = ask(db, &*prepared, values).await;
        let after = counts(db);
        used = (used.0 + after.0 - before.0, used.1 + after.1 - before.1);
        let mut text = sql.to_owned();
        for (at, value) in values.iter().enumerate().rev() {
            text = text.replace(&format!("${}", at + 1), &value.written_out());
        }
        assert_eq!(found, db.rows(&text).await, "{sql} with {values:?}");
    }
    used
}

use Value::{Float, Int, Null, Text, Time};

#[test]
fn one_plan_serves_for_all_values() {
    block_on(async {
        let mut db = filled().await;
        let by_device: &[&[Value]] = &[
            &[Text("d0"), Time(100), Time(900)],
            &[Text("d1"), Time(200), Time(300)],
            &[Text("d2"), Time(0), Time(2000)],
            // No rows: an unknown device, and an empty range.
            &[Text("d7"), Time(1), Time(5)],
            &[Text("d3"), Time(400), Time(300)],
            // The earlier values again.
            &[Text("d0"), Time(100), Time(900)],
        ];
        // The location of the rows determines which operators sort them.
        let raw = "SELECT time, x FROM t WHERE dev = $1 AND time >= $2 AND time < $3 ORDER BY time";
        assert_eq!(agrees(&mut db, raw, by_device).await.0, 4);
        for select in [
            "SELECT count(*), max(x) FROM t WHERE dev = $1 AND time BETWEEN $2 AND $3",
            "SELECT time_bucket('100 ns', time) AS b, dev, avg(x) FROM t \
             WHERE dev = $1 AND time > $2 AND time <= $3 GROUP BY b, dev ORDER BY b",
            "SELECT dev, sum(x) AS s FROM t WHERE dev <> $1 AND $2 < time AND time <= $3 \
             GROUP BY dev HAVING count(*) > 1 ORDER BY dev",
        ] {
            let used = agrees(&mut db, select, by_device).await;
            assert_eq!(used, (4, 5), "{select}");
        }
        let select = "SELECT count(*) FROM t WHERE unit = $1";
        let units: &[&[Value]] = &[&[Int(0)], &[Int(1)], &[Int(2)], &[Int(i64::MAX)]];
        assert_eq!(agrees(&mut db, select, units).await, (2, 3));
    });
}

#[test]
fn a_parameter_that_never_changed_is_not_trusted_and_one_that_did_is() {
    block_on(async {
        let mut db = filled().await;
        let select = "SELECT count(*) FROM t WHERE dev = $1 AND time < $2";
        let sets: &[&[Value]] = &[
            &[Text("d0"), Time(100)],
            // This execution teaches that the time varies.
            &[Text("d0"), Time(200)],
            &[Text("d0"), Time(300)],
            // This execution teaches that the device varies.
            &[Text("d1"), Time(300)],
            &[Text("d2"), Time(400)],
        ];
        assert_eq!(agrees(&mut db, select, sets).await, (2, 4));
    });
}

#[test]
fn values_that_no_scan_answers_for_are_planned_by_themselves() {
    block_on(async {
        let mut db = filled().await;
        let select = "SELECT count(*) FROM t WHERE dev = $1 AND time < $2";
        let sets: &[&[Value]] = &[
            &[Null, Time(100)],
            &[Text("d0"), Time(100)],
            &[Text("d1"), Null],
            &[Text("d1"), Time(200)],
            &[Null, Null],
            &[Text("d2"), Time(300)],
        ];
        assert_eq!(agrees(&mut db, select, sets).await, (1, 2));
        // Parameters outside conditions, and conditions on fields.
        for (select, sets) in [
            (
                "SELECT x FROM t WHERE x > $1 ORDER BY x LIMIT 3",
                [&[Float(3.5)][..], &[Float(7.0)], &[Float(100.0)]],
            ),
            (
                "SELECT dev, count(*) FROM t GROUP BY dev HAVING max(x) > $1 ORDER BY dev",
                [&[Float(3.5)], &[Float(499.0)], &[Float(1000.0)]],
            ),
            (
                "SELECT x FROM t ORDER BY time LIMIT $1",
                [&[Int(1)], &[Int(2)], &[Int(0)]],
            ),
            (
                "SELECT count(*) FROM t WHERE dev IN (SELECT dev FROM t WHERE unit = $1)",
                [&[Int(1)], &[Int(2)], &[Int(9)]],
            ),
        ] {
            agrees(&mut db, select, &sets).await;
        }
        // The values determine the buckets to fill.
        let filled = "SELECT time_bucket_gapfill('100 ns', time) AS b, locf(max(x)) FROM t \
                      WHERE dev = $1 AND time >= $2 AND time < $3 GROUP BY b ORDER BY b";
        let sets: &[&[Value]] = &[
            &[Text("d0"), Time(0), Time(400)],
            &[Text("d1"), Time(500), Time(1500)],
            &[Text("d2"), Time(200), Time(1000)],
            &[Text("d2"), Time(2000), Time(2500)],
        ];
        agrees(&mut db, filled, sets).await;
    });
}

#[test]
fn what_is_written_and_what_becomes_of_the_table_is_seen() {
    block_on(async {
        let mut db = filled().await;
        let select = "SELECT count(*) FROM t WHERE dev = $1";
        let prepared = prepare(&db, select).await;
        for (dev, expected) in [("d0", "250"), ("d1", "250"), ("d2", "250")] {
            assert_eq!(ask(&mut db, &*prepared, &[Text(dev)]).await, [[expected]]);
        }
        db.done("INSERT INTO t VALUES (to_timestamp_nanos(5000), 'd2', 1, 1), (to_timestamp_nanos(5001), 'new', 1, 1)")
            .await;
        assert_eq!(ask(&mut db, &*prepared, &[Text("d2")]).await, [["251"]]);
        assert_eq!(ask(&mut db, &*prepared, &[Text("new")]).await, [["1"]]);
        db.done("ALTER TABLE t ADD y DOUBLE").await;
        assert_eq!(ask(&mut db, &*prepared, &[Text("d2")]).await, [["251"]]);
        db.done("DROP TABLE t").await;
        db.done("CREATE TABLE t (time TIMESTAMP, dev STRING, x DOUBLE)")
            .await;
        db.done("INSERT INTO t VALUES (to_timestamp_nanos(1), 'd2', 1)")
            .await;
        assert_eq!(ask(&mut db, &*prepared, &[Text("d2")]).await, [["1"]]);
        assert_eq!(ask(&mut db, &*prepared, &[Text("d1")]).await, [["0"]]);
    });
}
