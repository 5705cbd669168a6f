//! Compares the names of columns with those of PostgreSQL 15 (`golden/ask_column_names.py`),
//! wherever a client sees them.

use super::Database;
use super::service::block_on;
use arrow::array::Int64Array;
use marigram_service::{Answer, Query, ServiceError};
use std::sync::Arc;

/// Queries of the golden file that Marigram cannot answer because it lacks what they use.
const REFUSED: [&str; 7] = [
    "SELECT localtimestamp FROM t",
    "SELECT 'a'::character varying(3) FROM t",
    "SELECT 'a'::character FROM t",
    "SELECT ceiling(v) FROM t",
    "SELECT ARRAY(SELECT 1) FROM t",
    "SELECT (VALUES (1)) FROM t",
    "SELECT v, v, t.v, v::int, v AS v FROM t",
];

async fn open() -> Database {
    let mut db = Database::open().await.expect("it opens");
    db.done(
        "CREATE TABLE t (time TIMESTAMP, dev TEXT TAG, v DOUBLE PRECISION, n INT, \"Cap\" INT)",
    )
    .await;
    db.done(
        "INSERT INTO t VALUES ('2024-01-01 00:00:00', 'a', 1.5, 1, 1), \
         ('2024-01-01 01:00:00', 'b', 2.5, 2, 2)",
    )
    .await;
    db
}

/// The names of a result's columns, as its stream and all of its batches report them.
async fn names(db: &mut Database, sql: &str) -> Result<Vec<String>, ServiceError> {
    use futures::StreamExt;
    let Answer::Rows(mut rows) = db.sql.execute(&mut db.session, sql).await? else {
        panic!("{sql} has no rows");
    };
    let of = |schema: &arrow::datatypes::Schema| -> Vec<String> {
        let fields = schema.fields().iter();
        fields.map(|field| field.name().clone()).collect()
    };
    let names = of(&rows.schema);
    while let Some(batch) = rows.batches.next().await {
        assert_eq!(of(batch?.schema_ref()), names, "{sql}");
    }
    Ok(names)
}

#[test]
fn columns_are_called_as_postgresql_calls_them() {
    let text = include_str!("../golden/column_names.tsv");
    let mut wrong = Vec::new();
    block_on(async {
        let mut db = open().await;
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (sql, expected) = line.split_once('\t').unwrap();
            let expected: Vec<&str> = expected.split('\t').collect();
            // The second time the plan is cached; prepared statements report names before they run.
            for _ in 0..2 {
                match names(&mut db, sql).await {
                    Ok(names) if names == expected => {}
                    Ok(names) => wrong.push(format!("{sql}: {names:?}")),
                    Err(_) if REFUSED.contains(&sql) => {}
                    Err(error) => wrong.push(format!("{sql}: {error}")),
                }
            }
            if let Ok(prepared) = db.sql.prepare(&db.session, sql).await {
                let schema = prepared.schema().unwrap();
                let told = schema.fields().iter().map(|field| field.name().as_str());
                let told: Vec<&str> = told.collect();
                if told != expected {
                    wrong.push(format!("{sql}, prepared: {told:?}"));
                }
            }
        }
    });
    wrong.dedup();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn tables_and_views_have_the_names_that_answers_have() {
    block_on(async {
        let mut db = open().await;
        let query =
            "SELECT date_trunc('hour', time), dev, count(*), v::int FROM t GROUP BY 1, dev, v";
        let expected = ["date_trunc", "dev", "count", "v"];
        db.done(&format!("CREATE VIEW seen AS {query}")).await;
        db.done(&format!("CREATE TABLE made AS {query}")).await;
        db.done(
            "CREATE MATERIALIZED VIEW kept WITH (continuous) AS SELECT time_bucket('1 hour', time), \
             dev, max(v) FROM t GROUP BY 1, dev",
        )
        .await;
        assert_eq!(
            names(&mut db, "SELECT * FROM seen").await.unwrap(),
            expected
        );
        let mut made = names(&mut db, "SELECT * FROM made").await.unwrap();
        made.sort_unstable();
        assert_eq!(made, ["count", "date_trunc", "dev", "v"]);
        let kept = names(&mut db, "SELECT * FROM kept").await.unwrap();
        assert_eq!(kept, ["time_bucket", "dev", "max"]);
        let sql = "SELECT sum(count) FROM seen WHERE date_trunc >= '2024-01-01' AND v > 1";
        assert_eq!(names(&mut db, sql).await.unwrap(), ["sum"]);
        for repeated in [
            "CREATE VIEW twice AS SELECT count(*), count(v) FROM t",
            "CREATE MATERIALIZED VIEW twice WITH (continuous) AS SELECT time_bucket('1 hour', time), \
             max(v), max(n) FROM t GROUP BY 1",
        ] {
            let error = db
                .sql
                .execute(&mut db.session, repeated)
                .await
                .err()
                .unwrap();
            assert_eq!(error.sqlstate(), "42701", "{error}");
        }
    });
}

#[test]
fn a_name_of_several_columns_is_ambiguous() {
    block_on(async {
        let mut db = open().await;
        for sql in [
            "SELECT count FROM (SELECT count(*), count(v) FROM t) AS x",
            "SELECT x.a FROM (SELECT 1 AS a, 2 AS a) AS x",
        ] {
            let error = names(&mut db, sql).await.unwrap_err();
            assert_eq!(error.sqlstate(), "42702", "{error}");
            assert!(!error.to_string().contains('\u{1f}'), "{error}");
        }
    });
}

#[test]
fn names_of_columns_that_are_read_win_where_postgresql_lets_them() {
    block_on(async {
        let mut db = open().await;
        db.done("CREATE TABLE u (time TIMESTAMP, dev TEXT TAG, max INT)")
            .await;
        db.done("INSERT INTO u VALUES ('2024-01-01', 'a', 1), ('2024-01-02', 'a', 5)")
            .await;
        // `max` is the column in HAVING and in an expression of ORDER BY, but the result's column
        // in ORDER BY itself.
        let sql = "SELECT n FROM (SELECT dev, max(max), 7 AS n FROM u GROUP BY dev HAVING sum(max) = 6) AS x";
        assert_eq!(
            super::service::rows(db.sql.execute(&mut db.session, sql).await.unwrap())
                .await
                .unwrap(),
            [["7"]]
        );
        let sql = "SELECT max(max) FROM u GROUP BY time ORDER BY max DESC";
        let rows = db.sql.execute(&mut db.session, sql).await.unwrap();
        assert_eq!(super::service::rows(rows).await.unwrap(), [["5"], ["1"]]);
        // A generic plan keeps the names.
        let sql = "SELECT count(*) FROM u WHERE max > $1";
        for value in [0, 4, 3] {
            let prepared = db.sql.prepare(&db.session, sql).await.unwrap();
            let kind = prepared.parameters()[0].clone();
            let value = arrow::compute::cast(&Int64Array::from(vec![value]), &kind).unwrap();
            let mut session = db.session.clone();
            let answer =
                db.sql
                    .execute_prepared(&mut session, prepared.as_ref(), vec![Arc::clone(&value)]);
            let Answer::Rows(rows) = answer.await.unwrap() else {
                panic!("no rows");
            };
            assert_eq!(rows.schema.field(0).name(), "count");
        }
    });
}
