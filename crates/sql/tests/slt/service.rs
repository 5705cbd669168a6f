//! Tests that SQL logic tests cannot express: prepared statements, metrics of a scan, cancellation,
//! memory.

use super::{Database, to_texts};
use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray, TimestampNanosecondArray};
use arrow::datatypes::DataType;
use futures::StreamExt;
use marigram_service::{Answer, Identity, Query, Result, ServiceError};
use marigram_sql::SqlOptions;
use std::sync::Arc;

pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    // No tokio runtime: the service brings its own.
    futures::executor::block_on(work)
}

pub(crate) async fn rows(answer: Answer) -> Result<Vec<Vec<String>>> {
    let Answer::Rows(mut rows) = answer else {
        panic!("the statement has rows")
    };
    let mut texts = Vec::new();
    while let Some(batch) = rows.batches.next().await {
        texts.extend(to_texts(&batch?));
    }
    Ok(texts)
}

impl Database {
    pub(crate) async fn rows(&mut self, sql: &str) -> Vec<Vec<String>> {
        let answer = self.sql.execute(&mut self.session, sql).await;
        rows(answer.unwrap_or_else(|error| panic!("{sql}: {error}")))
            .await
            .expect("the rows come to their end")
    }

    pub(crate) async fn done(&mut self, sql: &str) -> String {
        match self.sql.execute(&mut self.session, sql).await {
            Ok(Answer::Done { tag, .. }) => tag,
            Ok(Answer::Rows(_)) => panic!("{sql} has rows"),
            Err(error) => panic!("{sql}: {error}"),
        }
    }
}

#[test]
fn parameters_are_typed_and_bound() {
    block_on(async {
        let mut db = Database::open().await.unwrap();
        db.done("CREATE TABLE t (time TIMESTAMP, dev STRING TAG, unit BIGINT TAG, x DOUBLE)")
            .await;
        let sql = db.sql.clone();
        let insert = "INSERT INTO t (time, dev, unit, x) VALUES ($1, $2, $3, $4)";
        let insert = sql.prepare(&db.session, insert).await.unwrap();
        let time = DataType::Timestamp(arrow::datatypes::TimeUnit::Nanosecond, None);
        let types = [time, DataType::Utf8, DataType::Int64, DataType::Float64];
        assert_eq!(insert.parameters(), types);
        assert!(insert.schema().is_none());
        for at in 0..10 {
            let values: Vec<ArrayRef> = vec![
                Arc::new(TimestampNanosecondArray::from(vec![at])),
                Arc::new(StringArray::from(vec![Some(format!("d{}", at % 2))])),
                Arc::new(Int64Array::from(vec![None::<i64>])),
                Arc::new(Float64Array::from(vec![at as f64])),
            ];
            let answer = sql
                .execute_prepared(&mut db.session, &*insert, values)
                .await
                .unwrap();
            assert!(matches!(answer, Answer::Done { tag, rows: 1, .. } if tag == "INSERT 0 1"));
        }
        let select = "SELECT time, x FROM t WHERE dev = $1 AND x > $2 ORDER BY time LIMIT 2";
        let select = sql.prepare(&db.session, select).await.unwrap();
        assert_eq!(select.parameters(), [DataType::Utf8, DataType::Float64]);
        assert_eq!(select.schema().unwrap().fields().len(), 2);
        let values = || -> Vec<ArrayRef> {
            vec![
                Arc::new(StringArray::from(vec!["d1"])),
                Arc::new(Float64Array::from(vec![2.0])),
            ]
        };
        let answer = sql
            .execute_prepared(&mut db.session, &*select, values())
            .await
            .unwrap();
        let found: Vec<_> = rows(answer)
            .await
            .unwrap()
            .into_iter()
            .map(|r| r[1].clone())
            .collect();
        assert_eq!(found, ["3.0", "5.0"]);
        let limited = "SELECT x FROM t ORDER BY x LIMIT $1 OFFSET $2";
        let limited = sql.prepare(&db.session, limited).await.unwrap();
        assert_eq!(limited.parameters(), [DataType::Int64, DataType::Int64]);
        let numbers = [2, 3].map(|n| Arc::new(Int64Array::from(vec![n])) as ArrayRef);
        let answer = sql
            .execute_prepared(&mut db.session, &*limited, numbers.into())
            .await
            .unwrap();
        assert_eq!(rows(answer).await.unwrap(), [["3.0"], ["4.0"]]);
        // A prepared statement sees what is written after it, and survives a new column.
        db.done("INSERT INTO t VALUES ('1969-01-01', 'd1', NULL, 7.5)")
            .await;
        db.done("ALTER TABLE t ADD y DOUBLE").await;
        let answer = sql
            .execute_prepared(&mut db.session, &*select, values())
            .await
            .unwrap();
        assert_eq!(rows(answer).await.unwrap()[0][1], "7.5");
        // And reports when its table is gone.
        db.done("DROP TABLE t").await;
        let gone = sql
            .execute_prepared(&mut db.session, &*select, values())
            .await;
        assert!(matches!(
            gone,
            Err(ServiceError::Invalid {
                sqlstate: "42P01",
                ..
            })
        ));
        let few = sql.prepare(&db.session, "SELECT $1 + 1").await.unwrap();
        let few = sql.execute_prepared(&mut db.session, &*few, vec![]).await;
        assert!(matches!(
            few,
            Err(ServiceError::Invalid {
                sqlstate: "08P01",
                ..
            })
        ));
    });
}

#[test]
fn show_can_be_prepared() {
    block_on(async {
        let mut db = Database::open().await.unwrap();
        let sql = db.sql.clone();
        let show = sql.prepare(&db.session, "SHOW DATABASES").await.unwrap();
        assert_eq!(show.schema().unwrap().field(0).name(), "database_name");
        let answer = sql
            .execute_prepared(&mut db.session, &*show, vec![])
            .await
            .unwrap();
        assert_eq!(rows(answer).await.unwrap(), [["main"]]);
    });
}

/// The value of a metric in the text of EXPLAIN ANALYZE, which writes 12,390 as `12.39 K`.
fn metric(plan: &str, name: &str) -> f64 {
    let start = plan
        .find(&format!("{name}="))
        .unwrap_or_else(|| panic!("no {name} in {plan}"));
    let text = &plan[start + name.len() + 1..];
    let text = &text[..text.find([',', ']']).unwrap_or(text.len())];
    let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
    let scale = match unit {
        "" => 1.0,
        "K" => 1e3,
        "M" => 1e6,
        "B" => 1e9,
        other => panic!("unit {other} of {name} in {plan}"),
    };
    number
        .parse::<f64>()
        .unwrap_or_else(|_| panic!("{name} in {plan}"))
        * scale
}

#[test]
fn explain_analyze_tells_what_was_read_and_what_not() {
    block_on(async {
        let mut db = Database::open().await.unwrap();
        db.done("CREATE TABLE t (time TIMESTAMP, dev STRING TAG, x DOUBLE, y DOUBLE)")
            .await;
        db.done(
            "INSERT INTO t SELECT to_timestamp_nanos(i * 1000000), 'd' || (i % 4), i, -i \
             FROM generate_series(0, 199999) AS g(i)",
        )
        .await;
        db.done("FLUSH").await;
        let known = db.rows("EXPLAIN ANALYZE SELECT sum(x) FROM t").await;
        assert!(metric(&known[0][1], "pages_answered") > 0.0, "{known:?}");
        assert!(metric(&known[0][1], "bytes_read") < 1.0, "{known:?}");
        for stage in ["selecting", "planning", "reading", "merging", "reducing"] {
            let shown = format!("time_{stage}=");
            assert!(known[0][1].contains(&shown), "{stage} of {known:?}");
            let scan = db.rows("EXPLAIN ANALYZE SELECT x FROM t").await;
            let is_there = stage != "reducing";
            assert_eq!(scan[0][1].contains(&shown), is_there, "{stage} of {scan:?}");
        }
        let all = db.rows("EXPLAIN ANALYZE SELECT median(x) FROM t").await;
        let all = &all[0][1];
        assert_eq!(
            (metric(all, "series_total"), metric(all, "series_selected")),
            (4.0, 4.0)
        );
        assert!(metric(all, "segments_total") > 0.0);
        let one = "EXPLAIN ANALYZE SELECT sum(x) FROM t WHERE dev = 'd1' AND time < '1970-01-01T00:00:20Z'";
        let one = db.rows(one).await;
        let one = &one[0][1];
        assert_eq!(
            (metric(one, "series_total"), metric(one, "series_selected")),
            (4.0, 1.0)
        );
        assert!(metric(one, "pages_pruned") > 0.0, "{one}");
        assert!(
            metric(one, "bytes_read") < metric(all, "bytes_read") / 4.0,
            "{one}"
        );
        let values = "EXPLAIN ANALYZE SELECT count(*) FROM t WHERE x > 199000";
        let values = db.rows(values).await;
        assert!(
            metric(&values[0][1], "bytes_read") < metric(all, "bytes_read") / 2.0,
            "{values:?}"
        );
    });
}

#[test]
fn a_reader_that_goes_away_ends_the_query_and_others_go_on() {
    block_on(async {
        let mut db = Database::open().await.unwrap();
        let endless =
            "SELECT a.value FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b";
        for _ in 0..20 {
            let answer = db.sql.execute(&mut db.session, endless).await.unwrap();
            let Answer::Rows(mut rows) = answer else {
                panic!("rows")
            };
            assert!(rows.batches.next().await.unwrap().is_ok());
        }
        assert_eq!(db.rows("SELECT 1").await, [["1"]]);
    });
}

#[test]
fn a_query_that_needs_too_much_memory_says_so() {
    block_on(async {
        let mut db = Database::open_with(24 << 20).await.unwrap();
        let hungry = "SELECT array_length(array_agg(a.value || 'padding padding padding')) \
                      FROM generate_series(1, 3000000) a";
        let error = match db.sql.execute(&mut db.session, hungry).await {
            Ok(answer) => rows(answer).await.unwrap_err(),
            Err(error) => error,
        };
        let ServiceError::Busy { message, .. } = error else {
            panic!("{error:?}")
        };
        assert!(message.contains("memory"), "{message}");
        // Operators that can spill do so.
        let sorted = "SELECT count(*), min(v) FROM (SELECT a.value || 'x' AS v \
                      FROM generate_series(1, 400000) a ORDER BY 1 OFFSET 5)";
        assert_eq!(db.rows(sorted).await.len(), 1);
        assert_eq!(db.rows("SELECT 1").await, [["1"]]);
    });
}

#[test]
fn a_session_is_in_a_database_that_exists() {
    block_on(async {
        let db = Database::open().await.unwrap();
        assert_eq!(
            db.sql
                .session(None, &Identity::owner("u"))
                .await
                .unwrap()
                .database,
            "main"
        );
        let error = db
            .sql
            .session(Some("mian"), &Identity::owner("u"))
            .await
            .unwrap_err();
        assert!(
            matches!(&error, ServiceError::NotFound(m, "3D000") if m.contains("'main'")),
            "{error}"
        );
    });
}

#[test]
fn segments_are_shown_with_their_space_and_rows() {
    block_on(async {
        let mut db = Database::open().await.unwrap();
        db.done("CREATE TABLE t (time TIMESTAMP, x DOUBLE)").await;
        db.done("CREATE TABLE other (time TIMESTAMP, x DOUBLE)")
            .await;
        for at in ['5', '1'] {
            db.done(&format!(
                "INSERT INTO t VALUES ('2024-01-01T0{at}:00:00', 1)"
            ))
            .await;
            db.done("FLUSH").await;
        }
        let shown = db.rows("SHOW SEGMENTS FROM t").await;
        let mut found: Vec<_> = shown
            .iter()
            .map(|r| (r[2].as_str(), r[5].as_str(), &*r[7]))
            .collect();
        found.sort_unstable();
        let expected = [
            ("sequence", "2024-01-01T05:00:00", "1"),
            ("unsequence", "2024-01-01T01:00:00", "1"),
        ];
        assert_eq!(found, expected);
        assert_eq!(
            db.rows("SHOW SEGMENTS FROM other").await,
            Vec::<Vec<String>>::new()
        );
        assert_eq!(db.rows("SHOW SEGMENTS").await.len(), 2);
        // Row groups, pages (time and one field), nulls, encodings; and nothing is damaged.
        let late = shown.iter().find(|row| row[2] == "unsequence").unwrap();
        assert_eq!([&*late[11], &*late[12], &*late[14]], ["1", "2", "0"]);
        assert!(late[15].split(' ').count() >= 1 && late[15] != "NULL");
        assert_eq!(late[16], "NULL");
    });
}

#[test]
fn pages_are_streamed_and_can_be_prepared() {
    block_on(async {
        let mut db = Database::open().await.unwrap();
        db.done("CREATE TABLE t (time TIMESTAMP, x BIGINT) WITH (page_size = '1KiB')")
            .await;
        let insert = "INSERT INTO t SELECT to_timestamp_nanos(i * 1000000000), i \
                      FROM generate_series(1, 200000) AS g(i)";
        db.done(insert).await;
        db.done("FLUSH").await;
        // 200,000 rows in three partitions, 128 a page, two columns.
        let all = db.rows("SHOW PAGES FROM t").await;
        assert!(all.len() > 2 * 200_000 / 128, "{}", all.len());
        let stored: u64 = all.iter().map(|row| row[7].parse::<u64>().unwrap()).sum();
        assert_eq!(stored, 400_000);
        assert_eq!(db.rows("SHOW PAGES FROM t LIMIT 1500").await.len(), 1500);
        let sql = db.sql.clone();
        let prepared = sql
            .prepare(&db.session, "SHOW PAGES FROM t LIMIT 3")
            .await
            .unwrap();
        assert_eq!(prepared.schema().unwrap().fields().len(), all[0].len());
        let answer = sql
            .execute_prepared(&mut db.session, &*prepared, Vec::new())
            .await
            .unwrap();
        assert_eq!(rows(answer).await.unwrap(), all[..3]);
    });
}

#[test]
fn compactions_are_shown_with_what_they_did() {
    block_on(async {
        let mut db = Database::open().await.unwrap();
        db.done("CREATE TABLE t (time TIMESTAMP, x DOUBLE)").await;
        for at in ['5', '1'] {
            let time = format!("2024-01-01T0{at}:00:00");
            db.done(&format!("INSERT INTO t VALUES ('{time}', 1)"))
                .await;
            db.done("FLUSH").await;
        }
        let done = db.rows("COMPACT TABLE t").await;
        let counts: Vec<_> = [0, 1, 2, 6].iter().map(|at| &*done[0][*at]).collect();
        assert_eq!(counts, ["1", "2", "1", "2"], "{done:?}");
        let shown = db.rows("SHOW COMPACTIONS").await;
        let named: Vec<_> = shown
            .iter()
            .map(|row| (&*row[2], &*row[4], &*row[10]))
            .collect();
        assert_eq!(named, [("table", "done", "2")], "{shown:?}");
    });
}

#[test]
fn a_statement_is_planned_once_and_never_answers_from_the_past() {
    block_on(async {
        let mut db = Database::open().await.unwrap();
        db.done("CREATE TABLE t (time TIMESTAMP, dev STRING TAG, x DOUBLE)")
            .await;
        let count = "SELECT count(*), sum(x) FROM t";
        for at in 1..=3 {
            db.done(&format!(
                "INSERT INTO t VALUES (to_timestamp_nanos({at}), 'a', {at})"
            ))
            .await;
            let rows = db.rows(count).await;
            assert_eq!(rows[0][0], at.to_string(), "data are looked at anew");
        }
        let usage = db.sql.plan_cache();
        assert_eq!((usage.hits, usage.plans), (2, 1));
        // Statements that depend on the moment, or on foreign tables, are planned each time.
        for sql in [
            "SELECT count(*) FROM t WHERE time < now()",
            "SELECT random() < 2",
            "SELECT count(*) FROM information_schema.tables",
            "EXPLAIN SELECT count(*) FROM t",
        ] {
            db.rows(sql).await;
            db.rows(sql).await;
        }
        assert_eq!(db.sql.plan_cache().hits, 2);
        // Another table with the same name is a different table, even for plans that do not read
        // it.
        let nothing = "SELECT x FROM t WHERE false";
        assert!(db.rows(nothing).await.is_empty());
        db.done("DROP TABLE t").await;
        for sql in [count, nothing] {
            let answer = db.sql.execute(&mut db.session, sql).await;
            assert!(answer.is_err(), "{sql}");
        }
        db.done("CREATE TABLE t (time TIMESTAMP, dev STRING TAG, x BIGINT)")
            .await;
        assert_eq!(db.rows(count).await, [["0", "NULL"]]);
        db.done("ALTER TABLE t ADD COLUMN y DOUBLE").await;
        assert_eq!(db.rows("SELECT * FROM t").await, Vec::<Vec<String>>::new());
        for at in 0..1000 {
            db.rows(&format!("SELECT count(*) + {at} FROM t")).await;
        }
        assert_eq!(db.sql.plan_cache().plans, 256);
    });
}

#[test]
fn a_statement_that_is_prepared_again_is_of_the_tables_and_the_session_of_now() {
    block_on(async {
        let mut db = Database::open().await.unwrap();
        db.done("CREATE TABLE t (time TIMESTAMP, dev STRING TAG, x DOUBLE)")
            .await;
        db.done(
            "INSERT INTO t VALUES (to_timestamp_nanos(1), 'a', 1), (to_timestamp_nanos(2), 'b', 2)",
        )
        .await;
        let (sql, mut session) = (db.sql.clone(), db.session.clone());
        let whole = "SELECT * FROM t WHERE x > 1";
        let by_parameter = "SELECT x FROM t WHERE dev = $1";
        let parameter =
            |dev: &str| -> Vec<ArrayRef> { vec![Arc::new(StringArray::from(vec![dev]))] };
        for _ in 0..2 {
            let prepared = sql.prepare(&session, whole).await.unwrap();
            assert_eq!(prepared.schema().unwrap().fields().len(), 3);
            let answer = sql.execute_prepared(&mut session, &*prepared, Vec::new());
            assert_eq!(rows(answer.await.unwrap()).await.unwrap().len(), 1);
            for (dev, x) in [("a", "1.0"), ("b", "2.0")] {
                let prepared = sql.prepare(&session, by_parameter).await.unwrap();
                let answer = sql.execute_prepared(&mut session, &*prepared, parameter(dev));
                assert_eq!(rows(answer.await.unwrap()).await.unwrap(), [[x]]);
            }
        }
        let old = sql.prepare(&session, whole).await.unwrap();
        db.done("ALTER TABLE t ADD COLUMN y DOUBLE").await;
        let prepared = sql.prepare(&session, whole).await.unwrap();
        assert_eq!(prepared.schema().unwrap().fields().len(), 4);
        let answer = sql.execute_prepared(&mut session, &*old, Vec::new()).await;
        assert_eq!(rows(answer.unwrap()).await.unwrap()[0].len(), 4);
        // A function that depends on one session does not affect another.
        let setting = "SELECT current_setting('TimeZone'), session_user FROM t LIMIT 1";
        for (zone, user) in [("UTC", "one"), ("Asia/Kolkata", "another")] {
            (session.time_zone, session.identity.user) = (zone.to_owned(), user.to_owned());
            let prepared = sql.prepare(&session, setting).await.unwrap();
            let answer = sql.execute_prepared(&mut session, &*prepared, Vec::new());
            assert_eq!(rows(answer.await.unwrap()).await.unwrap(), [[zone, user]]);
        }
        // Names are looked up in the session's database.
        db.done("CREATE DATABASE other").await;
        session.database = "other".to_owned();
        assert!(sql.prepare(&session, whole).await.is_err());
        db.done("DROP TABLE t").await;
        assert!(sql.prepare(&db.session, whole).await.is_err());
    });
}

/// A table of 4 devices with 400,000 rows.
async fn many_rows(db: &mut Database) {
    db.done("CREATE TABLE t (time TIMESTAMP, dev STRING TAG, x DOUBLE)")
        .await;
    db.done(
        "INSERT INTO t SELECT to_timestamp_nanos(i * 1000000), 'd' || (i % 4), i \
         FROM generate_series(0, 399999) AS g(i)",
    )
    .await;
    db.done("FLUSH").await;
}

#[test]
fn groups_that_do_not_fit_into_memory_are_done_by_operators_that_spill() {
    block_on(async {
        let mut db = Database::open_with(48 << 20).await.unwrap();
        many_rows(&mut db).await;
        let sql = "SELECT count(*), sum(n), sum(s) FROM (SELECT time_bucket('1 ms', time) AS b, dev, \
                   count(*) AS n, sum(x) AS s, min(x), max(x), stddev(x) FROM t GROUP BY b, dev)";
        let plan = db.rows(&format!("EXPLAIN {sql}")).await;
        assert!(format!("{plan:?}").contains("SeriesAggregate"), "{plan:?}");
        let rows = db.rows(sql).await;
        assert_eq!(rows, [["400000", "400000", "79999800000.0"]]);
        let done = db.rows(&format!("EXPLAIN ANALYZE {sql}")).await;
        assert_eq!(metric(&done[0][1], "handed_over"), 1.0, "{done:?}");
    });
}

#[test]
fn an_aggregate_ends_at_its_timeout() {
    block_on(async {
        let mut db = Database::open().await.unwrap();
        many_rows(&mut db).await;
        // The same aggregate a million times over, each with a scan of its own: this takes over an
        // hour, so that no machine finishes before the timeout.
        let sql = "WITH RECURSIVE again AS (SELECT 0 AS n, 0.0 AS m UNION ALL SELECT n + 1, a.m \
                   FROM again, (SELECT median(x) AS m FROM t) AS a WHERE n < 1000000) \
                   SELECT max(m) FROM again";
        let plan = db.rows(&format!("EXPLAIN {sql}")).await;
        assert!(format!("{plan:?}").contains("SeriesAggregate"), "{plan:?}");
        db.done("SET statement_timeout = 1").await;
        let error = match db.sql.execute(&mut db.session, sql).await {
            Ok(answer) => rows(answer).await.unwrap_err(),
            Err(error) => error,
        };
        assert!(matches!(error, ServiceError::Cancelled(_)), "{error:?}");
        db.done("SET statement_timeout = 0").await;
        assert_eq!(db.rows("SELECT count(*) FROM t").await, [["400000"]]);
    });
}

#[test]
fn a_session_that_only_reads_changes_nothing() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let options = SqlOptions {
            copy_dir: Some(dir.path().to_owned()),
            ..SqlOptions::default()
        };
        let mut db = Database::open_as(256 << 20, options).await.unwrap();
        db.done("CREATE TABLE t (time TIMESTAMP, v DOUBLE)").await;
        db.done("INSERT INTO t VALUES ('2024-01-01', 1)").await;
        db.done("COPY t TO 'x.csv'").await;
        db.done(
            "CREATE MATERIALIZED VIEW m WITH (continuous) AS SELECT time_bucket('1h', time) AS b, \
             avg(v) AS v FROM t GROUP BY b",
        )
        .await;
        let mut reader = db
            .sql
            .read_only_session(None, &Identity::owner("reader"))
            .await
            .unwrap();
        assert!(reader.read_only);
        let before = reader.clone();
        for sql in [
            "INSERT INTO t VALUES ('2024-01-02', 2)",
            "INSERT INTO t SELECT * FROM t",
            "DELETE FROM t WHERE time < '2025-01-01'",
            "UPDATE t SET v = 2",
            "CREATE DATABASE other",
            "DROP DATABASE main",
            "CREATE TABLE u (time TIMESTAMP, v DOUBLE)",
            "ALTER TABLE t ADD COLUMN w DOUBLE",
            "ALTER TABLE t SET (ttl = '1s')",
            "DROP TABLE t",
            "DROP TABLE IF EXISTS nothing",
            "CREATE MATERIALIZED VIEW m2 WITH (continuous) AS SELECT time_bucket('1h', time) AS b, \
             avg(v) AS v FROM t GROUP BY b",
            "ALTER MATERIALIZED VIEW m SET (lag = '1h')",
            "DROP MATERIALIZED VIEW m",
            "REFRESH MATERIALIZED VIEW m",
            "COPY t TO 'y.csv'",
            "COPY t TO 'y.tsfile'",
            "COPY t FROM 'x.csv'",
            "FLUSH",
            "COMPACT",
            "COMPACT TABLE t",
            "SET timezone = 'Europe/Berlin'",
            "RESET timezone",
            "USE main",
            "EXPLAIN ANALYZE INSERT INTO t VALUES ('2024-01-02', 2)",
        ] {
            let Err(refused) = db.sql.execute(&mut reader, sql).await else {
                panic!("{sql} was done")
            };
            assert!(
                matches!(refused, ServiceError::ChangesRefused(_)),
                "{sql}: {refused:?}"
            );
            // The same statement, prepared by a session that is allowed to run it.
            if let Ok(prepared) = db.sql.prepare(&db.session, sql).await {
                let done = db
                    .sql
                    .execute_prepared(&mut reader, &*prepared, Vec::new())
                    .await;
                let Err(refused) = done else {
                    panic!("{sql} was done")
                };
                assert!(
                    matches!(refused, ServiceError::ChangesRefused(_)),
                    "{sql}: {refused:?}"
                );
            }
            assert_eq!(reader, before, "{sql}");
        }
        assert!(!dir.path().join("y.csv").exists());
        for sql in [
            "SELECT count(*) FROM t",
            "WITH x AS (SELECT v FROM t) SELECT * FROM x UNION ALL SELECT 2",
            "SHOW TABLES",
            "SHOW SERIES FROM t",
            "SHOW PAGES FROM t",
            "EXPLAIN ANALYZE SELECT * FROM t",
            "BEGIN",
        ] {
            // Twice, because the second may use a cached plan.
            for _ in 0..2 {
                if let Err(error) = db.sql.execute(&mut reader, sql).await {
                    panic!("{sql}: {error}");
                }
            }
        }
        assert_eq!(
            db.rows("SELECT count(*), sum(v) FROM t").await,
            [["1", "1.0"]]
        );
        assert_eq!(db.rows("SHOW DATABASES").await, [["main"]]);
    });
}

#[test]
fn a_session_that_only_reads_does_not_make_the_default_database() {
    block_on(async {
        let mut db = Database::open().await.unwrap();
        db.done("CREATE DATABASE other").await;
        db.done("USE other").await;
        db.done("DROP DATABASE main").await;
        let missing = db
            .sql
            .read_only_session(None, &Identity::owner("u"))
            .await
            .unwrap_err();
        assert!(
            matches!(missing, ServiceError::NotFound(_, "3D000")),
            "{missing:?}"
        );
        assert_eq!(db.rows("SHOW DATABASES").await, [["other"]]);
        assert_eq!(
            db.sql
                .session(None, &Identity::owner("u"))
                .await
                .unwrap()
                .database,
            "main"
        );
    });
}
