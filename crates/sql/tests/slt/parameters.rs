//! The types of parameters: those that a statement determines, and those that a client names.

use super::Database;
use super::service::{block_on, rows};
use arrow::array::{
    ArrayRef, Decimal128Array, Float64Array, Int64Array, IntervalMonthDayNanoArray, ListArray,
    StringArray,
};
use arrow::datatypes::{
    DataType, Int32Type, Int64Type, IntervalMonthDayNano, IntervalUnit, Schema,
};
use marigram_service::{Answer, Query};
use std::sync::Arc;

async fn ask(db: &mut Database, sql: &str, values: Vec<ArrayRef>) -> Vec<Vec<String>> {
    let prepared = db.sql.prepare(&db.session, sql).await;
    let prepared = prepared.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let service = db.sql.clone();
    let answer = service.execute_prepared(&mut db.session, prepared.as_ref(), values);
    let answer = answer
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    rows(answer)
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error}"))
}

fn longs(values: &[Option<i64>]) -> ArrayRef {
    let list = Some(values.to_vec());
    Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>([list]))
}

#[test]
fn types_are_those_that_the_statement_tells() {
    block_on(async {
        let mut db = Database::open().await.unwrap();
        db.done("CREATE TABLE t (time TIMESTAMP, dev TEXT TAG, n BIGINT, v DOUBLE)")
            .await;
        db.done("INSERT INTO t VALUES ('2024-01-01', 'a', 1, 1.5), ('2024-01-02', 'b', 2, 2.5)")
            .await;
        let list = |of: DataType| DataType::new_list(of, true);
        for (sql, expected) in [
            ("SELECT $1::int", DataType::Int32),
            ("SELECT $1::bigint + 1", DataType::Int64),
            ("SELECT $1::int[]", list(DataType::Int32)),
            ("SELECT $1::text[]", list(DataType::Utf8)),
            (
                "SELECT count(*) FROM t WHERE n = ANY($1)",
                list(DataType::Int64),
            ),
            (
                "SELECT count(*) FROM t WHERE dev = ANY($1)",
                list(DataType::Utf8),
            ),
            (
                "SELECT count(*) FROM t WHERE v = ANY($1::float8[])",
                list(DataType::Float64),
            ),
            (
                "SELECT count(*) FROM t WHERE n <> ALL($1)",
                list(DataType::Int64),
            ),
            ("SELECT count(*) FROM t WHERE n = $1", DataType::Int64),
            ("SELECT count(*) FROM t LIMIT $1", DataType::Int64),
        ] {
            let prepared = db.sql.prepare(&db.session, sql).await;
            let prepared = prepared.unwrap_or_else(|error| panic!("{sql}: {error}"));
            let told = &prepared.parameters()[0];
            let is_same = match (told, &expected) {
                (DataType::List(told), DataType::List(expected)) => {
                    told.data_type() == expected.data_type()
                        || told.data_type().is_string() && expected.data_type().is_string()
                }
                (told, expected) => told == expected,
            };
            assert!(is_same, "{sql}: {told}");
        }
    });
}

#[test]
fn arrays_are_parameters() {
    block_on(async {
        let mut db = Database::open().await.unwrap();
        db.done("CREATE TABLE t (time TIMESTAMP, dev TEXT TAG, n BIGINT)")
            .await;
        db.done("INSERT INTO t VALUES ('2024-01-01', 'a', 1), ('2024-01-02', 'b', 2)")
            .await;
        let sql = "SELECT n FROM t WHERE n = ANY($1) ORDER BY n";
        for _ in 0..3 {
            assert_eq!(
                ask(&mut db, sql, vec![longs(&[Some(1), Some(7)])]).await,
                [["1"]]
            );
            assert_eq!(
                ask(&mut db, sql, vec![longs(&[Some(2), Some(1)])]).await,
                [["1"], ["2"]]
            );
            assert!(ask(&mut db, sql, vec![longs(&[])]).await.is_empty());
        }
        let devs: ArrayRef = Arc::new(ListArray::new(
            Arc::new(arrow::datatypes::Field::new_list_field(
                DataType::Utf8,
                true,
            )),
            arrow::buffer::OffsetBuffer::from_lengths([1]),
            Arc::new(StringArray::from(vec!["b"])),
            None,
        ));
        let sql = "SELECT n FROM t WHERE dev = ANY($1)";
        assert_eq!(ask(&mut db, sql, vec![devs]).await, [["2"]]);
        let ints: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>([Some(
            vec![Some(3), None, Some(4)],
        )]));
        let sql = "SELECT u FROM unnest($1::int[]) AS u";
        assert_eq!(
            ask(&mut db, sql, vec![ints]).await,
            [["3"], ["NULL"], ["4"]]
        );
    });
}

#[test]
fn types_that_a_client_names_hold_where_the_statement_tells_none() {
    block_on(async {
        let mut db = Database::open().await.unwrap();
        for (kind, expected) in [
            (DataType::Int32, DataType::Int32),
            (DataType::Boolean, DataType::Boolean),
            (DataType::Null, DataType::Utf8),
        ] {
            let sql = "SELECT $1";
            let prepared = db
                .sql
                .prepare_typed(&db.session, sql, &[kind])
                .await
                .unwrap();
            assert_eq!(prepared.parameters(), [expected]);
        }
        // A type that the statement determines takes precedence.
        let sql = "SELECT $1::bigint";
        let named = [DataType::Int32];
        let prepared = db
            .sql
            .prepare_typed(&db.session, sql, &named)
            .await
            .unwrap();
        assert_eq!(prepared.parameters(), [DataType::Int64]);
        assert_eq!(
            ask(&mut db, sql, vec![Arc::new(Int64Array::from(vec![7]))]).await,
            [["7"]]
        );
    });
}

#[test]
fn intervals_and_exact_numbers_that_a_client_names_hold_beside_times_and_integers() {
    block_on(async {
        let mut db = Database::open().await.unwrap();
        db.done("CREATE TABLE p (time TIMESTAMP, n BIGINT, v DOUBLE)")
            .await;
        db.done(
            "INSERT INTO p VALUES ('2024-01-01 00:00', 2, 0.5), ('2024-01-01 02:00', 3, 123.5)",
        )
        .await;
        let interval = DataType::Interval(IntervalUnit::MonthDayNano);
        let exact = DataType::Decimal128(38, 18);
        let hour = IntervalMonthDayNano::new(0, 0, 3_600_000_000_000);
        let hour: ArrayRef = Arc::new(IntervalMonthDayNanoArray::from(vec![hour]));
        let half = Decimal128Array::from(vec![2_500_000_000_000_000_000]);
        let half: ArrayRef = Arc::new(half.with_precision_and_scale(38, 18).unwrap());
        let float: ArrayRef = Arc::new(Float64Array::from(vec![2.5]));
        let cases: [(&str, &DataType, DataType, &ArrayRef, &[&str]); 8] = [
            (
                "SELECT n FROM p WHERE time > TIMESTAMP '2024-01-01 02:30' - $1",
                &interval,
                interval.clone(),
                &hour,
                &["3"],
            ),
            (
                "SELECT n FROM p WHERE time + $1 = '2024-01-01 01:00'",
                &interval,
                interval.clone(),
                &hour,
                &["2"],
            ),
            (
                "SELECT count(*) FROM p GROUP BY time_bucket($1, time)",
                &interval,
                interval.clone(),
                &hour,
                &["1", "1"],
            ),
            (
                "SELECT count(*) FROM generate_series('2024-01-01 00:00'::timestamp, '2024-01-01 02:00', $1)",
                &interval,
                interval.clone(),
                &hour,
                &["3"],
            ),
            (
                "SELECT n FROM p WHERE n > $1",
                &exact,
                exact.clone(),
                &half,
                &["3"],
            ),
            (
                "SELECT n FROM p WHERE n BETWEEN $1 AND 9",
                &exact,
                exact.clone(),
                &half,
                &["3"],
            ),
            (
                "SELECT n + $1 FROM p ORDER BY 1",
                &exact,
                DataType::Float64,
                &float,
                &["4.5", "5.5"],
            ),
            // Beside a float, it is one, and keeps all of its digits.
            (
                "SELECT n FROM p WHERE v > $1",
                &exact,
                DataType::Float64,
                &float,
                &["3"],
            ),
        ];
        for (sql, named, planned, value, rows) in cases {
            let named = [named.clone()];
            let prepared = db.sql.prepare_typed(&db.session, sql, &named).await;
            let prepared = prepared.unwrap_or_else(|error| panic!("{sql}: {error}"));
            assert_eq!(prepared.parameters(), [planned], "{sql}");
            let service = db.sql.clone();
            let values = vec![value.clone()];
            let answer = service.execute_prepared(&mut db.session, prepared.as_ref(), values);
            let answer = answer
                .await
                .unwrap_or_else(|error| panic!("{sql}: {error}"));
            let shown = super::service::rows(answer).await;
            let shown = shown.unwrap_or_else(|error| panic!("{sql}: {error}"));
            assert_eq!(shown.concat(), rows, "{sql}");
        }
    });
}

#[test]
fn exact_numbers_that_a_client_names_keep_their_decimal_places() {
    block_on(async {
        let mut db = Database::open().await.unwrap();
        let named = [DataType::Decimal128(38, 18)];
        for (sql, value, shown) in [
            ("SELECT $1", Some("1.50"), "1.50"),
            ("SELECT $1", Some("-1e-11"), "-0.00000000001"),
            (
                "SELECT $1",
                Some("12345678901234567890123456789012345678901"),
                "12345678901234567890123456789012345678901",
            ),
            ("SELECT $1", None, "NULL"),
            ("SELECT round($1, 1)", Some("1.25"), "1.3"),
            ("SELECT round($1)", Some("2.5"), "3"),
            ("SELECT abs($1)", Some("-0.10"), "0.10"),
            ("SELECT pg_typeof($1)", Some("7"), "numeric"),
            (
                "SELECT x FROM (SELECT $1 AS x) AS s WHERE x > 1",
                Some("1.5"),
                "1.5",
            ),
        ] {
            let prepared = db.sql.prepare_typed(&db.session, sql, &named).await;
            let prepared = prepared.unwrap_or_else(|error| panic!("{sql}: {error}"));
            assert_eq!(prepared.parameters(), [DataType::Utf8], "{sql}");
            let schema = prepared.schema().unwrap();
            let is_number = schema.field(0).data_type().is_decimal();
            assert!(is_number || sql.contains("pg_typeof"), "{sql}: {schema}");
            let service = db.sql.clone();
            let values: Vec<ArrayRef> = vec![Arc::new(StringArray::from(vec![value]))];
            let answer = service.execute_prepared(&mut db.session, prepared.as_ref(), values);
            let answer = answer
                .await
                .unwrap_or_else(|error| panic!("{sql}: {error}"));
            let found = rows(answer)
                .await
                .unwrap_or_else(|error| panic!("{sql}: {error}"));
            assert_eq!(found, [[shown]], "{sql} of {value:?}");
        }
        let prepared = db.sql.prepare_typed(&db.session, "SELECT $1", &named).await;
        let prepared = prepared.unwrap();
        let service = db.sql.clone();
        let values: Vec<ArrayRef> = vec![Arc::new(StringArray::from(vec!["many"]))];
        let session = &mut db.session;
        let answer = service.execute_prepared(session, prepared.as_ref(), values);
        assert_eq!(answer.await.err().unwrap().sqlstate(), "22P02");
    });
}

#[test]
fn the_types_of_columns_are_told_as_they_will_be() {
    block_on(async {
        let mut db = Database::open().await.unwrap();
        db.done("CREATE TABLE c (time TIMESTAMP, dev TEXT TAG, i INT, f REAL, n BIGINT, v DOUBLE)")
            .await;
        db.done("INSERT INTO c VALUES ('2024-01-01', 'a', 3, 2.5, 4, 1.5)")
            .await;
        for sql in [
            "SELECT CASE WHEN v = 1.5 THEN i ELSE 0 END FROM c",
            "SELECT CASE WHEN v = 1.5 THEN i ELSE n END FROM c",
            "SELECT CASE WHEN v = 1.5 THEN f ELSE 1.0 END FROM c",
            "SELECT max(CASE WHEN v = 1.5 THEN i ELSE n END) FROM c",
            "SELECT i FROM c UNION ALL SELECT 0",
            "SELECT i FROM c UNION ALL SELECT n FROM c",
            "SELECT i FROM c UNION SELECT v FROM c",
            "SELECT x + 1 FROM (SELECT i AS x FROM c UNION ALL SELECT n FROM c) u",
            "SELECT dev FROM c UNION ALL SELECT 'b'",
            "SELECT coalesce(i, n), greatest(i, v), nullif(i, n) FROM c",
        ] {
            let prepared = db.sql.prepare(&db.session, sql).await.unwrap();
            let told = prepared.schema().unwrap();
            let service = db.sql.clone();
            let answer = service.execute_prepared(&mut db.session, prepared.as_ref(), Vec::new());
            let Answer::Rows(rows) = answer.await.unwrap() else {
                panic!("{sql} has rows");
            };
            let types = |schema: &Schema| -> Vec<DataType> {
                let fields = schema.fields().iter();
                fields.map(|field| field.data_type().clone()).collect()
            };
            assert_eq!(types(&told), types(&rows.schema), "{sql}");
        }
    });
}

#[test]
fn texts_become_arrays() {
    block_on(async {
        let mut db = Database::open().await.unwrap();
        for (sql, expected) in [
            ("SELECT '{1,2}'::int[]", "[1, 2]"),
            ("SELECT CAST('{1,NULL}' AS bigint[])", "[1, NULL]"),
            ("SELECT '{}'::text[]", "[]"),
            ("SELECT '{\"a,b\",c}'::text[]", "[a,b, c]"),
            ("SELECT cardinality('{1.5,2.5,3}'::float8[])", "3"),
            ("SELECT 2 = ANY('{1,2}'::int[])", "true"),
        ] {
            assert_eq!(db.rows(sql).await, [[expected]], "{sql}");
        }
        for sql in ["SELECT '1,2'::int[]", "SELECT '{{1},{2}}'::int[]"] {
            let error = db.sql.execute(&mut db.session, sql).await.err().unwrap();
            assert_eq!(error.sqlstate(), "22P02", "{sql}: {error}");
        }
    });
}

#[test]
fn numbers_are_times_only_where_they_are_plausible() {
    block_on(async {
        let mut db = Database::open().await.unwrap();
        db.done("CREATE TABLE t (time TIMESTAMP, dev TEXT TAG, v DOUBLE)")
            .await;
        let insert = "INSERT INTO t VALUES ($1, 'a', 1)";
        let prepared = db.sql.prepare(&db.session, insert).await.unwrap();
        for seconds in [1_735_689_600_i64, 1_735_689_600_000] {
            let number: ArrayRef = Arc::new(Int64Array::from(vec![seconds]));
            let service = db.sql.clone();
            let session = &mut db.session;
            let done = service.execute_prepared(session, prepared.as_ref(), vec![number]);
            done.await.expect("it is a time");
        }
        let all = "SELECT time FROM t ORDER BY time";
        let found = ask(&mut db, all, Vec::new()).await;
        assert_eq!(found, [["2025-01-01T00:00:00"]]);
        let numbers: [ArrayRef; 2] = [
            Arc::new(Int64Array::from(vec![5])),
            Arc::new(Float64Array::from(vec![1_735_689_600.5])),
        ];
        for number in numbers {
            let service = db.sql.clone();
            let session = &mut db.session;
            let answer = service.execute_prepared(session, prepared.as_ref(), vec![number]);
            let error = answer.await.err().expect("it is no time");
            assert_eq!(error.sqlstate(), "42804", "{error}");
        }
        assert_eq!(ask(&mut db, all, Vec::new()).await.len(), 1);
    });
}
