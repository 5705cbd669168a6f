//! Cached statements: which thread runs them, and when their operators are reused.

use super::Database;
use super::service::block_on;
use marigram_service::Query;

const DEVICES: &str = "CREATE TABLE t (time TIMESTAMP, dev STRING TAG, site STRING TAG, x DOUBLE)";

/// How often operators were reused, and how many statements ran inline.
fn counts(db: &Database) -> (u64, u64) {
    let usage = db.sql.plan_cache();
    (usage.template_hits, usage.inline_statements)
}

#[test]
fn short_statements_are_carried_out_by_who_asks() {
    block_on(async {
        let mut db = Database::open().await.unwrap();
        db.done(DEVICES).await;
        db.done("INSERT INTO t SELECT to_timestamp_nanos(i), 'd' || (i % 4), 's', i FROM generate_series(1, 200) AS g(i)")
            .await;
        for sql in [
            "SELECT count(*) FROM t",
            "SELECT x FROM t WHERE dev = 'd1' AND time > '1970-01-01'",
            "SELECT DISTINCT ON (dev) dev, x FROM t ORDER BY dev, time DESC",
            "SELECT time_bucket('1 s', time) b, avg(x) FROM t WHERE dev = 'd2' GROUP BY b",
            "SELECT dev, max(x) FROM t GROUP BY dev ORDER BY dev",
            "SELECT dev, max(x) AS m FROM t GROUP BY dev HAVING max(x) > 198 ORDER BY m DESC",
            "SELECT x FROM t WHERE dev = 'd1' AND x > 50",
            "SELECT 7",
        ] {
            let first = db.rows(sql).await;
            let (_, before) = counts(&db);
            for time in 1..=3 {
                assert_eq!(db.rows(sql).await, first, "{sql}");
                assert_eq!(counts(&db).1, before + time, "{sql}");
            }
        }
        // Statements that read many rows or several tables, or are not cached, run on other
        // threads.
        db.done("INSERT INTO t SELECT to_timestamp_nanos(i), 'd1', 's', i FROM generate_series(1000, 99999) AS g(i)")
            .await;
        let before = counts(&db).1;
        for sql in [
            "SELECT x FROM t WHERE dev = 'd1'",
            "SELECT count(*) FROM t a JOIN t b ON a.time = b.time WHERE a.dev = 'd0'",
            "SELECT count(*) FROM t WHERE x < (SELECT avg(x) FROM t)",
            "SELECT count(*) FROM generate_series(1, 5)",
        ] {
            let first = db.rows(sql).await;
            assert_eq!(db.rows(sql).await, first, "{sql}");
            assert_eq!(db.rows(sql).await, first, "{sql}");
        }
        assert_eq!(counts(&db).1, before);
    });
}

/// What `EXPLAIN ANALYZE` says about inline execution.
async fn inline(db: &mut Database, sql: &str) -> String {
    let shown = db.rows(&format!("EXPLAIN ANALYZE {sql}")).await;
    let last = shown.last().expect("a row");
    assert_eq!(last[0], "Execution");
    last[1].clone()
}

#[test]
fn explain_analyze_says_why_a_statement_does_not_run_inline() {
    block_on(async {
        let mut db = Database::open().await.unwrap();
        db.done(DEVICES).await;
        db.done(&DEVICES.replace(" t ", " many ")).await;
        db.done("INSERT INTO t SELECT to_timestamp_nanos(i), 'd' || (i % 2000), 's', i FROM generate_series(1, 8000) AS g(i)")
            .await;
        db.done("INSERT INTO many SELECT to_timestamp_nanos(i), 'd' || i, 's', i FROM generate_series(1, 5000) AS g(i)")
            .await;
        let yes = "inline: yes";
        for (sql, expected) in [
            ("SELECT 7", yes),
            ("SELECT count(*) FROM t", yes),
            ("SELECT x FROM t WHERE dev = 'd1'", yes),
            (
                "SELECT DISTINCT ON (dev) dev, x FROM t WHERE dev IN ('d1', 'd2') ORDER BY dev, time DESC",
                yes,
            ),
            ("SELECT sum(x) FROM many WHERE dev = 'd77'", yes),
            ("SELECT random()", "inline: no (its plan is not cached)"),
            (
                "SELECT repeat(dev, 2) FROM t WHERE dev = 'd1'",
                "inline: no (it has a function that may take long for a row)",
            ),
            (
                "SELECT count(*) FROM t a JOIN t b ON a.time = b.time",
                "inline: no (it does not read one table in a chain)",
            ),
            (
                "SELECT sum(x) FROM many WHERE dev LIKE 'd4_77'",
                "inline: no (5000 series in the table, at most 4096)",
            ),
            (
                "SELECT dev, max(x) FROM t GROUP BY dev",
                "inline: no (2000 series, at most 1024)",
            ),
            (
                "SELECT row_number() OVER (ORDER BY time) FROM t WHERE dev = 'd1'",
                "inline: no (it does not read one table in a chain)",
            ),
        ] {
            assert_eq!(inline(&mut db, sql).await, expected, "{sql}");
        }
        // These are decided by rows, and by what is read.
        db.done("INSERT INTO t SELECT to_timestamp_nanos(i), 'd1', 's', i FROM generate_series(10000, 99999) AS g(i)")
            .await;
        let rows = inline(&mut db, "SELECT x FROM t").await;
        assert!(
            rows.ends_with("series, at most 64)") || rows.ends_with("partitions, at most 1)"),
            "{rows}"
        );
        let read = "SELECT sum(x) FROM t WHERE x > 5";
        let more = "inline: no (it has more to read than its plan shows)";
        assert_eq!(inline(&mut db, read).await, more);
        // The other formats are one document.
        let shown = db.rows("EXPLAIN (ANALYZE, FORMAT PGJSON) SELECT 7").await;
        assert!(!format!("{shown:?}").contains("inline:"), "{shown:?}");
    });
}

#[test]
fn operators_are_used_again_with_the_data_of_the_moment() {
    block_on(async {
        let mut db = Database::open().await.unwrap();
        db.done(DEVICES).await;
        let count = "SELECT count(*), max(x) FROM t WHERE site = 's'";
        let ordered = "SELECT x FROM t WHERE site = 's' ORDER BY time";
        let sorted = "SELECT dev, x FROM t WHERE site = 's' AND x > 0 ORDER BY x DESC";
        let newest = "SELECT x FROM t WHERE site = 's' ORDER BY time DESC LIMIT 2";
        // One series, whose rows arrive in order of time; then two, which must be sorted; then one.
        let steps: [(&str, &str, &[&str]); 4] = [
            (
                "INSERT INTO t VALUES (to_timestamp_nanos(2), 'a', 's', 2)",
                "a",
                &["2.0"],
            ),
            (
                "INSERT INTO t VALUES (to_timestamp_nanos(3), 'b', 's', 3), (to_timestamp_nanos(5), 'b', 's', 5)",
                "b",
                &["2.0", "3.0", "5.0"],
            ),
            (
                "INSERT INTO t VALUES (to_timestamp_nanos(4), 'a', 's', 4), (to_timestamp_nanos(1), 'b', 's', 1)",
                "b",
                &["1.0", "2.0", "3.0", "4.0", "5.0"],
            ),
            ("DELETE FROM t WHERE dev = 'b'", "a", &["2.0", "4.0"]),
        ];
        for (change, top, expected) in steps {
            let change = db.sql.execute(&mut db.session, change).await;
            assert!(change.is_ok());
            for _ in 0..3 {
                let rows = db.rows(ordered).await;
                assert_eq!(rows.concat(), *expected);
                let last = expected[expected.len() - 1];
                let all = expected.len().to_string();
                assert_eq!(db.rows(count).await, [[&all, last]]);
                let rows = db.rows(sorted).await;
                assert_eq!(
                    (rows.len(), &*rows[0][0], &*rows[0][1]),
                    (expected.len(), top, last)
                );
                let rows = db.rows(newest).await;
                let two: Vec<&str> = expected.iter().rev().take(2).copied().collect();
                assert_eq!(rows.concat(), two);
            }
        }
        assert!(counts(&db).0 > 12, "{:?}", counts(&db));
        // Cached operators hold no version of the table.
        db.done("DROP TABLE t").await;
        assert!(db.sql.execute(&mut db.session, count).await.is_err());
        db.done(DEVICES).await;
        assert_eq!(db.rows(count).await, [["0", "NULL"]]);
    });
}

#[test]
fn operators_that_are_used_again_can_spill() {
    block_on(async {
        let mut db = Database::open_with(48 << 20).await.unwrap();
        db.done(DEVICES).await;
        db.done(
            "INSERT INTO t SELECT to_timestamp_nanos(i * 1000000), 'd' || (i % 4), 's', i \
             FROM generate_series(0, 399999) AS g(i)",
        )
        .await;
        db.done("FLUSH").await;
        let sql = "SELECT time_bucket('1 ms', time) AS b, dev, count(*) AS n, sum(x) AS s, min(x), \
                   max(x), stddev(x) FROM t GROUP BY b, dev";
        for _ in 0..3 {
            let rows = db.rows(sql).await;
            let sum: f64 = rows.iter().map(|row| row[3].parse::<f64>().unwrap()).sum();
            assert_eq!((rows.len(), sum), (400_000, 79_999_800_000.0));
        }
        assert_eq!(counts(&db).0, 2);
        let done = db.rows(&format!("EXPLAIN ANALYZE {sql}")).await;
        assert!(done[0][1].contains("handed_over=1,"), "{done:?}");
        // The operators that it replaces sort in the same way.
        let ordered = format!("SELECT b, dev, n, s FROM ({sql}) ORDER BY dev DESC, b");
        for _ in 0..2 {
            let rows = db.rows(&ordered).await;
            let key = |row: &[String]| (std::cmp::Reverse(row[1].clone()), row[0].clone());
            assert!(rows.windows(2).all(|pair| key(&pair[0]) < key(&pair[1])));
            assert_eq!(rows.len(), 400_000);
        }
        let done = db.rows(&format!("EXPLAIN ANALYZE {ordered}")).await;
        assert!(done[0][1].contains("handed_over=1,"), "{done:?}");
        assert!(!done[0][1].contains("SortExec"), "{done:?}");
    });
}

#[test]
fn a_table_of_many_series_has_short_statements_too() {
    block_on(async {
        let mut db = Database::open().await.unwrap();
        db.done(DEVICES).await;
        db.done("INSERT INTO t SELECT to_timestamp_nanos(i), 'd' || (i % 5000), 's' || (i % 2), i FROM generate_series(1, 10000) AS g(i)")
            .await;
        let short = [
            (
                "SELECT count(*), sum(x) FROM t",
                vec!["10000", "50005000.0"],
            ),
            (
                "SELECT count(*), min(x) FROM t WHERE time > '1970-01-01T00:00:00.000009990Z'",
                vec!["10", "9991.0"],
            ),
            ("SELECT sum(x) FROM t WHERE dev = 'd77'", vec!["5154.0"]),
            (
                "SELECT sum(x) FROM t WHERE dev IN ('d1', 'd2') AND x > 5",
                vec!["10003.0"],
            ),
            (
                "SELECT x FROM t WHERE dev = 'd7' ORDER BY time",
                vec!["7.0", "5007.0"],
            ),
        ];
        for (sql, expected) in short {
            for time in 0..3 {
                let before = counts(&db).1;
                let rows: Vec<String> = db.rows(sql).await.into_iter().flatten().collect();
                assert_eq!(rows, expected, "{sql}");
                assert_eq!(counts(&db).1 - before, u64::from(time > 0), "{sql}");
            }
        }
        // Statements that process each series run on other threads.
        let before = counts(&db).1;
        for sql in [
            "SELECT sum(x) FROM t WHERE dev LIKE 'd4_77'",
            "SELECT count(*) FROM (SELECT dev, max(x) FROM t GROUP BY dev)",
            "SELECT DISTINCT ON (dev) dev, x FROM t ORDER BY dev, time DESC",
        ] {
            let first = db.rows(sql).await;
            assert_eq!(db.rows(sql).await, first, "{sql}");
        }
        assert_eq!(counts(&db).1, before);
    });
}
