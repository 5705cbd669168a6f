//! The notices that clients receive with the results of statements.

use super::Database;
use super::service::{block_on, rows};
use marigram_service::Answer;
use marigram_service::Query;

impl Database {
    /// The notices of a statement.
    async fn notices_of(&mut self, sql: &str) -> Vec<String> {
        match self.sql.execute(&mut self.session, sql).await {
            Ok(Answer::Done { notices, .. }) => notices,
            Ok(Answer::Rows(_)) => panic!("{sql} has rows"),
            Err(error) => panic!("{sql}: {error}"),
        }
    }
}

/// Calls of TimescaleDB tell with their rows what Marigram does by itself.
#[test]
fn calls_that_change_tables_are_answered_with_notices() {
    block_on(async {
        let mut db = Database::open().await.unwrap();
        let made = "CREATE TABLE m (time TIMESTAMPTZ NOT NULL, dev TEXT, x DOUBLE)";
        db.sql.execute(&mut db.session, made).await.unwrap();
        for (sql, words) in [
            ("SELECT create_hypertable('m', 'time')", "has no tags yet"),
            (
                "CREATE INDEX ON m (dev, time DESC)",
                "became tags of 'm': dev",
            ),
            ("CREATE INDEX ON m (x)", "no index is needed"),
            (
                "SELECT add_retention_policy('m', INTERVAL '2 months')",
                "kept for 62d",
            ),
            (
                "CALL add_columnstore_policy('m', INTERVAL '7 days')",
                "cold_codec = 'auto'",
            ),
            ("SELECT add_reorder_policy('m', 'i')", "always sorted"),
            ("SELECT timescaledb_pre_restore()", "no preparation"),
            (
                "ALTER TABLE m SET (timescaledb.compress)",
                "always stored in columns",
            ),
        ] {
            let notices = match db.sql.execute(&mut db.session, sql).await {
                Ok(Answer::Done { notices, .. }) => notices,
                Ok(Answer::Rows(rows)) => rows.notices,
                Err(error) => panic!("{sql}: {error}"),
            };
            let is_there = notices.iter().any(|notice| notice.contains(words));
            assert!(is_there, "{sql}: {notices:?}");
        }
    });
}

#[test]
fn rows_that_replace_others_of_their_statement_are_told() {
    block_on(async {
        let mut db = Database::open().await.unwrap();
        let notices_of = db
            .notices_of("CREATE TABLE plain (time TIMESTAMP, x DOUBLE)")
            .await;
        assert_eq!(notices_of.len(), 1, "{notices_of:?}");
        assert!(
            notices_of[0].contains("has no TAG column"),
            "{notices_of:?}"
        );
        let notices_of = db
            .notices_of(
                "INSERT INTO plain VALUES ('2026-01-01', 1), ('2026-01-01', 2), ('2026-01-01', 3)",
            )
            .await;
        let expected = "2 of 3 rows replaced earlier ones of this statement with the same time; \
                        table 'plain' has no TAG column, so that it keeps one row for each time";
        assert_eq!(notices_of, [expected]);
        let notices_of = db
            .notices_of("CREATE TABLE t (time TIMESTAMP, dev TEXT TAG, site TEXT TAG, x DOUBLE)")
            .await;
        assert!(notices_of.is_empty(), "{notices_of:?}");
        let notices_of = db
            .notices_of(
                "INSERT INTO t VALUES ('2026-01-01', 'a', 's', 1), ('2026-01-01', 'b', 's', 2)",
            )
            .await;
        assert!(notices_of.is_empty(), "{notices_of:?}");
        let notices_of = db
            .notices_of(
                "INSERT INTO t VALUES ('2026-01-02', 'a', NULL, 1), ('2026-01-02', 'a', 's', 2), \
                 ('2026-01-01', 'a', NULL, 1), ('2026-01-02', 'a', NULL, 5)",
            )
            .await;
        let expected = "1 of 4 rows replaced an earlier one of this statement with the same time \
                        and the same tags (dev, site)";
        assert_eq!(notices_of, [expected]);
        // The same over several batches.
        let notices_of = db
            .notices_of(
                "INSERT INTO t SELECT to_timestamp(g % 30000), 'many', 's', g \
                 FROM generate_series(0, 39999) AS s(g)",
            )
            .await;
        let expected = "10000 of 40000 rows replaced earlier ones of this statement with the same \
                        time and the same tags (dev, site)";
        assert_eq!(notices_of, [expected]);
    });
}

#[test]
fn rows_that_replace_stored_ones_are_told() {
    block_on(async {
        let mut db = Database::open().await.unwrap();
        db.notices_of("CREATE TABLE t (time TIMESTAMP, dev TEXT TAG, x DOUBLE)")
            .await;
        let first = "INSERT INTO t VALUES ('2026-01-01', 'a', 1), ('2026-01-02', 'a', 2)";
        assert!(db.notices_of(first).await.is_empty());
        // In memory, then in a segment, and a row twice that is stored.
        for flush in [false, true] {
            if flush {
                db.notices_of("FLUSH").await;
            }
            assert_eq!(
                db.notices_of(
                    "INSERT INTO t VALUES ('2026-01-01', 'a', 3), ('2026-01-01', 'a', 4), \
                     ('2026-01-01', 'b', 5), ('2025-01-01', 'new', 5)",
                )
                .await,
                [format!(
                    "{} of 4 rows replaced earlier ones with the same time and the same tags (dev)",
                    if flush { 4 } else { 2 }
                )]
            );
        }
        let newer = "INSERT INTO t VALUES ('2026-02-01', 'a', 1), ('2026-01-03', 'b', 2)";
        assert!(db.notices_of(newer).await.is_empty());
        // What is deleted is not replaced.
        db.notices_of("DELETE FROM t WHERE dev = 'a'").await;
        assert!(db.notices_of(first).await.is_empty());
    });
}

#[test]
fn what_was_left_as_it_is_is_told() {
    block_on(async {
        let mut db = Database::open().await.unwrap();
        let create = "CREATE TABLE IF NOT EXISTS t (time TIMESTAMP, dev TEXT TAG, x DOUBLE)";
        assert!(db.notices_of(create).await.is_empty());
        assert_eq!(
            db.notices_of(create).await,
            ["'t' exists already, and was left as it is"]
        );
        assert_eq!(
            db.notices_of("DROP TABLE IF EXISTS u").await,
            ["table 'u' does not exist, and nothing was done"]
        );
        assert_eq!(
            db.notices_of("DROP VIEW IF EXISTS u").await,
            ["view 'u' does not exist, and nothing was done"]
        );
        db.done("INSERT INTO t VALUES ('2026-01-01', 'a', 1), ('2026-01-02', 'a', 2)")
            .await;
        assert_eq!(
            db.done("DELETE FROM t WHERE time < '2026-01-02'").await,
            "DELETE 1"
        );
        assert_eq!(db.done("TRUNCATE t").await, "TRUNCATE TABLE");
        assert_eq!(
            db.done("CREATE TABLE u AS SELECT * FROM t").await,
            "SELECT 0"
        );
        assert_eq!(
            db.done("CREATE VIEW v AS SELECT * FROM t").await,
            "CREATE VIEW"
        );
        assert_eq!(db.done("ALTER VIEW v RENAME TO w").await, "ALTER VIEW");
        let inferred = db
            .notices_of(
                "CREATE TABLE i AS SELECT to_timestamp(g / 2) AS time, \
                 CASE g % 2 WHEN 0 THEN 'a' ELSE 'b' END AS which, g \
                 FROM generate_series(0, 9) AS s(g)",
            )
            .await;
        assert_eq!(inferred.len(), 1, "{inferred:?}");
        assert!(
            inferred[0].contains("distinguish rows with the same time: which;"),
            "{inferred:?}"
        );
    });
}

/// A prepared statement sees the current definition of a view, and never its old plan.
#[test]
fn prepared_statements_follow_their_views() {
    block_on(async {
        let mut db = Database::open().await.unwrap();
        db.done("CREATE TABLE t (time TIMESTAMP, dev TEXT TAG, x DOUBLE)")
            .await;
        db.done("INSERT INTO t VALUES ('2026-01-01', 'a', 1), ('2026-01-02', 'a', 2)")
            .await;
        db.done("CREATE VIEW v AS SELECT time, x FROM t").await;
        let query = "SELECT x FROM v ORDER BY x";
        let prepared = db.sql.prepare(&db.session, query).await.unwrap();
        for (statement, expected) in [
            (None, ["1.0", "2.0"]),
            (
                Some("CREATE OR REPLACE VIEW v AS SELECT time, x * 10 AS x FROM t"),
                ["10.0", "20.0"],
            ),
            (Some("DROP VIEW v"), ["", ""]),
            (
                Some("CREATE VIEW v AS SELECT time, x + 1 AS x FROM t"),
                ["2.0", "3.0"],
            ),
        ] {
            if let Some(statement) = statement {
                db.done(statement).await;
            }
            for _ in 0..3 {
                let answer = db
                    .sql
                    .execute_prepared(&mut db.session, &*prepared, Vec::new())
                    .await;
                let Ok(answer) = answer else {
                    assert_eq!(expected, ["", ""], "{statement:?}");
                    continue;
                };
                let notices_of = rows(answer).await.unwrap();
                assert_eq!(notices_of.concat(), expected, "{statement:?}");
                assert_eq!(db.rows(query).await.concat(), expected, "{statement:?}");
            }
        }
    });
}

#[test]
fn fields_that_may_not_be_null_are_told_to_be_unchecked() {
    block_on(async {
        let mut db = Database::open().await.unwrap();
        let told = db
            .notices_of(
                "CREATE TABLE t (time TIMESTAMPTZ NOT NULL, dev TEXT TAG NOT NULL, \
                 a DOUBLE NOT NULL, b DOUBLE NULL, c BIGINT NOT NULL)",
            )
            .await;
        let expected = "NOT NULL is not checked: rows may have no value in a, c";
        assert_eq!(told, [expected]);
        let told = db
            .notices_of("CREATE TABLE u (time TIMESTAMPTZ NOT NULL, dev TEXT TAG, a DOUBLE)")
            .await;
        assert!(told.is_empty(), "{told:?}");
    });
}
