//! COPY to files and back, and the files that it must not use.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::Database;
use super::service::block_on;
use marigram_service::{Answer, Query, ServiceError};
use marigram_sql::SqlOptions;
use std::path::Path;

const ROWS: &str = "INSERT INTO t VALUES
    ('2024-01-01 00:00:00.001', 'a', 1, true, 1, -5, 1.5, 'x', '2024-02-01 00:00:00'),
    ('2024-01-01 00:00:00.002', 'a', 1, NULL, 2, NULL, 'NaN', 'ü', NULL),
    ('2024-01-01 00:00:00.001', NULL, 2, false, NULL, 7, NULL, '', NULL),
    ('2024-01-01 00:00:00.001', 'b', 10, false, 3, 9223372036854775807, -0.0, NULL, NULL)";
const TABLE: &str = "(time TIMESTAMP, dev STRING TAG, unit BIGINT TAG, b BOOLEAN, i INT, l BIGINT,
    d DOUBLE, s STRING, at TIMESTAMP)";

async fn open(dir: &Path, options: SqlOptions) -> Database {
    let options = SqlOptions {
        copy_dir: options.copy_dir.or_else(|| Some(dir.to_owned())),
        ..options
    };
    Database::open_as(256 << 20, options).await.unwrap()
}

async fn error(db: &mut Database, sql: &str) -> String {
    match db.sql.execute(&mut db.session, sql).await {
        Err(error @ ServiceError::Internal(_)) => panic!("{sql}: {error}"),
        Err(error) => format!("{}: {error}", error.sqlstate()),
        Ok(_) => panic!("{sql} should fail"),
    }
}

#[test]
fn rows_come_back_from_every_form_of_file() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let mut db = open(dir.path(), SqlOptions::default()).await;
        db.done(&format!("CREATE TABLE t {TABLE}")).await;
        db.done(ROWS).await;
        let all = "ORDER BY dev NULLS FIRST, unit, time";
        let expected = db.rows(&format!("SELECT * FROM t {all}")).await;
        for form in ["csv", "parquet", "tsfile"] {
            assert_eq!(db.done(&format!("COPY t TO 't.{form}'")).await, "COPY 4");
            db.done(&format!("CREATE TABLE back_{form} {TABLE}")).await;
            let copy = format!("COPY back_{form} FROM 't.{form}'");
            assert_eq!(db.done(&copy).await, "COPY 4");
            let mut found = db.rows(&format!("SELECT * FROM back_{form} {all}")).await;
            if form == "csv" {
                // CSV does not distinguish an empty text from a null.
                assert_eq!(found[0][7], "NULL");
                found[0][7].clone_from(&expected[0][7]);
            }
            assert_eq!(found, expected, "{form}");
        }
    });
}

#[test]
fn a_query_is_copied_with_its_time_and_tags() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let mut db = open(dir.path(), SqlOptions::default()).await;
        db.done(&format!("CREATE TABLE t {TABLE}")).await;
        db.done(ROWS).await;
        let copy = "COPY (SELECT dev AS device, time AS seen, d * 2 AS twice FROM t WHERE d > 0)
            TO 'q' STORED AS tsfile OPTIONS (tags 'device', table 'twice', precision 'us')";
        assert_eq!(db.done(copy).await, "COPY 2");
        db.done("CREATE TABLE twice (time TIMESTAMP, device STRING TAG, twice DOUBLE)")
            .await;
        let copy = "COPY twice FROM 'q' (FORMAT tsfile, PRECISION us)";
        assert_eq!(db.done(copy).await, "COPY 2");
        let found = db
            .rows("SELECT device, twice FROM twice ORDER BY time")
            .await;
        assert_eq!(found, [["a", "3.0"], ["a", "NaN"]]);
    });
}

#[test]
fn csv_without_a_header_is_read_in_the_order_of_columns() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("x.csv"), "2024-01-01;a;1\n2024-01-02;;7\n").unwrap();
        let mut db = open(dir.path(), SqlOptions::default()).await;
        db.done("CREATE TABLE t (time TIMESTAMP, dev STRING TAG, x DOUBLE, y DOUBLE)")
            .await;
        let copy = "COPY t FROM 'x.csv' WITH (HEADER false, DELIMITER ';')";
        assert_eq!(db.done(copy).await, "COPY 2");
        let found = db.rows("SELECT dev, x FROM t ORDER BY time").await;
        assert_eq!(found, [["a", "1.0"], ["NULL", "7.0"]]);
    });
}

#[test]
fn columns_of_a_file_without_a_header_are_in_the_declared_order() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("x.csv"), "1,a,2024-01-01\n7,b,2024-01-02\n").unwrap();
        let mut db = open(dir.path(), SqlOptions::default()).await;
        db.done("CREATE TABLE t (x DOUBLE, dev STRING TAG, time TIMESTAMP)")
            .await;
        let copy = "COPY t FROM 'x.csv' WITH (HEADER false)";
        assert_eq!(db.done(copy).await, "COPY 2");
        let found = db.rows("SELECT dev, x FROM t ORDER BY time").await;
        assert_eq!(found, [["a", "1.0"], ["b", "7.0"]]);
        // The second time, its rows replace the first ones.
        let Ok(Answer::Done { notices, .. }) = db.sql.execute(&mut db.session, copy).await else {
            panic!("COPY has no rows")
        };
        let expected =
            "2 of 2 rows replaced earlier ones with the same time and the same tags (dev)";
        assert_eq!(notices, [expected]);
        for form in ["csv", "parquet", "tsfile"] {
            assert_eq!(db.done(&format!("COPY t TO 't.{form}'")).await, "COPY 2");
            db.done("TRUNCATE t").await;
            let copy = format!("COPY t FROM 't.{form}'");
            assert_eq!(db.done(&copy).await, "COPY 2", "{form}");
            let found = db.rows("SELECT dev, x FROM t ORDER BY time").await;
            assert_eq!(found, [["a", "1.0"], ["b", "7.0"]], "{form}");
        }
    });
}

#[test]
fn numbers_that_would_be_rounded_are_refused() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let mut db = open(dir.path(), SqlOptions::default()).await;
        db.done("CREATE TABLE f (time TIMESTAMP, x DOUBLE, l BIGINT)")
            .await;
        db.done("INSERT INTO f VALUES ('2024-01-01', 5, 1), ('2024-01-02', 5.5, 2), ('2024-01-03', -0.0, 3),
            ('2024-01-04', NULL, 9007199254740993)")
            .await;
        db.done("CREATE TABLE w (time TIMESTAMP, x BIGINT, l DOUBLE)")
            .await;
        for (day, number) in [("02", "5.5"), ("04", "9007199254740993")] {
            let copy =
                format!("COPY (SELECT * FROM f WHERE time = '2024-01-{day}') TO 'f.parquet'");
            assert_eq!(db.done(&copy).await, "COPY 1");
            let found = error(&mut db, "COPY w FROM 'f.parquet'").await;
            assert!(
                found.contains(&format!("{number} is no")),
                "{number}: {found}"
            );
        }
        let copy = "COPY (SELECT * FROM f WHERE x = 5 OR x = 0) TO 'f.parquet'";
        assert_eq!(db.done(copy).await, "COPY 2");
        assert_eq!(db.done("COPY w FROM 'f.parquet'").await, "COPY 2");
        let found = db.rows("SELECT x, l FROM w ORDER BY time").await;
        assert_eq!(found, [["5", "1.0"], ["0", "3.0"]]);
    });
}

#[test]
fn times_that_would_be_cut_are_refused() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let mut db = open(dir.path(), SqlOptions::default()).await;
        db.done("CREATE TABLE t (time TIMESTAMP, x DOUBLE)").await;
        db.done("INSERT INTO t VALUES ('2024-01-01 00:00:00.0005', 1), ('2024-01-02', 2)")
            .await;
        let found = error(&mut db, "COPY t TO 't.tsfile'").await;
        assert!(
            found.starts_with("22008: 1 of 2 rows have times"),
            "{found}"
        );
        assert!(!dir.path().join("t.tsfile").exists());
        let copy = "COPY t TO 't.tsfile' OPTIONS (precision 'us')";
        assert_eq!(db.done(copy).await, "COPY 2");
    });
}

#[test]
fn files_elsewhere_are_not_touched() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let mut db = Database::open().await.unwrap();
        db.done("CREATE TABLE t (time TIMESTAMP, x DOUBLE)").await;
        for sql in [
            "COPY t TO 'x.tsfile'",
            "COPY t TO 'x.csv'",
            "COPY t FROM 'x.csv'",
            "EXPLAIN COPY t TO 'x.csv'",
        ] {
            assert!(error(&mut db, sql).await.starts_with("42501"), "{sql}");
        }
        let mut db = open(dir.path(), SqlOptions::default()).await;
        db.done("CREATE TABLE t (time TIMESTAMP, x DOUBLE)").await;
        for sql in [
            "COPY t TO '/tmp/x.tsfile'",
            "COPY t TO '../x.csv'",
            "COPY t FROM '/etc/passwd' (FORMAT csv)",
            "EXPLAIN COPY t TO 'x.csv'",
            "CREATE EXTERNAL TABLE e STORED AS CSV LOCATION 'x.csv'",
        ] {
            assert!(error(&mut db, sql).await.starts_with("42501"), "{sql}");
        }
    });
}

#[test]
fn what_is_wrong_with_a_copy_is_said() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("x.csv"), "time,y\n2024-01-01,1\n").unwrap();
        std::fs::write(dir.path().join("z.csv"), "time,x\n2024-01-01,one\n").unwrap();
        std::fs::write(dir.path().join("x.tsfile"), "no").unwrap();
        let mut db = open(dir.path(), SqlOptions::default()).await;
        db.done("CREATE TABLE t (time TIMESTAMP, x DOUBLE)").await;
        for (sql, expected) in [
            ("COPY t FROM 'x.csv'", "has no column 'y'"),
            ("COPY t FROM 'z.csv'", "column 'x'"),
            ("COPY t FROM 'x.tsfile'", "not a whole TsFile"),
            ("COPY t FROM 'missing.csv'", "missing.csv"),
            ("COPY t FROM 'x'", "does not imply a file format"),
            ("COPY t FROM 'x.csv' (colour red)", "no option 'colour'"),
            ("COPY u FROM 'x.csv'", "u"),
            (
                "COPY t TO 'x.tsfile' OPTIONS (tags 'y')",
                "column 'y' does not exist",
            ),
        ] {
            let found = error(&mut db, sql).await;
            assert!(found.contains(expected), "{sql}: {found}");
        }
    });
}

#[test]
fn names_of_files_mean_what_they_say() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let mut db = open(dir.path(), SqlOptions::default()).await;
        db.done("CREATE TABLE t (time TIMESTAMP, x DOUBLE)").await;
        db.done("INSERT INTO t VALUES ('2024-01-01', 1), ('2024-01-02', 2)")
            .await;
        db.done("CREATE TABLE back (time TIMESTAMP, x DOUBLE)")
            .await;
        // What each name would match if it were a pattern.
        for other in ["axb", "ab", "a b", "a"] {
            for form in ["csv", "parquet", "tsfile"] {
                std::fs::write(dir.path().join(format!("{other}.{form}")), "no rows").unwrap();
            }
        }
        for name in [
            "a*b", "a?b", "a[xyz]b", "[ab]", "a%20b", "a b", "a#b", "a+b", "ü{a,b}", "a%b", "*",
            "a\"b", "a\\b", "a~1", "-", "a=b", "%2e%2e",
        ] {
            for form in ["csv", "parquet", "tsfile"] {
                let file = format!("{name}.{form}");
                let copy = format!("COPY t TO '{file}'");
                assert_eq!(db.done(&copy).await, "COPY 2", "{file}");
                assert!(dir.path().join(&file).is_file(), "{file}");
                let copy = format!("COPY back FROM '{file}'");
                assert_eq!(db.done(&copy).await, "COPY 2", "{file}");
            }
            let file = format!("{name}.x*y");
            let copy = format!("COPY t TO '{file}' STORED AS csv");
            assert_eq!(db.done(&copy).await, "COPY 2", "{file}");
            let copy = format!("COPY back FROM '{file}' (FORMAT csv)");
            assert_eq!(db.done(&copy).await, "COPY 2", "{file}");
        }
        for other in ["axb.csv", "ab.parquet", "a.csv"] {
            let kept = std::fs::read_to_string(dir.path().join(other)).unwrap();
            assert_eq!(kept, "no rows", "{other}");
        }
        for (name, code) in [("a\0b.csv", "22021"), (&*"n".repeat(300), "42622")] {
            let found = error(&mut db, &format!("COPY t TO '{name}.csv'")).await;
            assert!(found.starts_with(code), "{found}");
            let found = error(&mut db, &format!("COPY back FROM '{name}.csv'")).await;
            assert!(found.starts_with(code), "{found}");
        }
    });
}
