//! Joins of inputs that do not fit in the memory of queries: they are sorted and merged on disk, and
//! give the rows that a hash join would give.
#![allow(clippy::unwrap_used, reason = "a test panics if its premises fail")]

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use futures::StreamExt;
use marigram_engine::{Durability, Engine, EngineOptions};
use marigram_env::Env;
use marigram_service::{Answer, Identity, Query, ServiceError, Session};
use marigram_sql::{SqlOptions, SqlService};
use tokio::runtime::{Builder, Runtime};

const MEMORY_LIMIT: usize = 64 << 20;
/// Rows of each table; the two share those of the second half.
const ROWS: i64 = 800_000;
const DEVICES: i64 = 40;

struct Database {
    sql: SqlService,
    session: Session,
    clients: Runtime,
    _dir: tempfile::TempDir,
}

impl Database {
    fn open(memory_limit_bytes: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = EngineOptions {
            shards: 2,
            durability: Durability::Os,
            memory_limit_bytes,
            ..EngineOptions::default()
        };
        let engine = Engine::open(Env::real(), &dir.path().join("data"), options).unwrap();
        let options = SqlOptions {
            spill_dir: Some(dir.path().to_owned()),
            ..SqlOptions::default()
        };
        let sql = SqlService::new(engine, options).unwrap();
        let clients = Builder::new_multi_thread().enable_all().build().unwrap();
        let session = clients
            .block_on(sql.session(None, &Identity::owner("tester")))
            .unwrap();
        let database = Self {
            sql,
            session,
            clients,
            _dir: dir,
        };
        for (table, from) in [("l", 0), ("r", ROWS / 2)] {
            database.rows(&format!(
                "CREATE TABLE {table} (time TIMESTAMP, device STRING TAG, v BIGINT)"
            ));
            // In parts: an INSERT holds its rows until it has stored them.
            for part in (0..ROWS).step_by(50_000) {
                let (first, last) = (from + part, from + (part + 50_000).min(ROWS) - 1);
                database.rows(&format!(
                    "INSERT INTO {table} SELECT to_timestamp_seconds(1700000000 + value / {DEVICES}), \
                     concat('device-', (value % {DEVICES})::text), value \
                     FROM generate_series({first}, {last})"
                ));
            }
        }
        database.rows("FLUSH");
        database
    }

    fn ask(&self, statement: &str) -> Result<Vec<Vec<Option<i64>>>, ServiceError> {
        let mut session = self.session.clone();
        self.clients.block_on(async {
            let Answer::Rows(mut rows) = self.sql.execute(&mut session, statement).await? else {
                return Ok(Vec::new());
            };
            let mut all = Vec::new();
            while let Some(batch) = rows.batches.next().await {
                let batch = batch?;
                for row in 0..batch.num_rows() {
                    let values = batch.columns().iter().map(|column| {
                        let column = column.as_primitive_opt::<Int64Type>()?;
                        column.iter().nth(row).flatten()
                    });
                    all.push(values.collect());
                }
            }
            Ok(all)
        })
    }

    /// The rows of a statement of BIGINT columns that must not fail.
    fn rows(&self, statement: &str) -> Vec<Vec<Option<i64>>> {
        let rows = self.ask(statement);
        rows.unwrap_or_else(|error| panic!("{statement}: {error}"))
    }

    /// The plan of a statement as text.
    fn plan(&self, statement: &str) -> String {
        let mut session = self.session.clone();
        self.clients.block_on(async {
            let explain = format!("EXPLAIN {statement}");
            let answer = self.sql.execute(&mut session, &explain).await.unwrap();
            let Answer::Rows(mut rows) = answer else {
                panic!("EXPLAIN has rows");
            };
            let mut text = String::new();
            while let Some(batch) = rows.batches.next().await {
                for column in batch.unwrap().columns() {
                    text.extend(column.as_string::<i32>().iter().flatten());
                }
            }
            text
        })
    }
}

/// The sum of the numbers from `first` to before `end`.
fn sum(first: i64, end: i64) -> i64 {
    (first + end - 1) * (end - first) / 2
}

#[test]
fn joins_of_large_inputs_spill_and_give_the_same_rows() {
    let database = Database::open(MEMORY_LIMIT);
    let (half, both) = (ROWS / 2, sum(ROWS / 2, ROWS));
    let on = "l.device = r.device AND l.time = r.time";
    let row = |values: &[i64]| vec![values.iter().copied().map(Some).collect::<Vec<_>>()];
    let cases = [
        ("JOIN", row(&[half, both, both])),
        ("LEFT JOIN", row(&[ROWS, sum(0, ROWS), both])),
        ("RIGHT JOIN", row(&[ROWS, both, sum(half, half + ROWS)])),
        (
            "FULL JOIN",
            row(&[ROWS + half, sum(0, ROWS), sum(half, half + ROWS)]),
        ),
    ];
    for (join, expected) in cases {
        let sql = format!("SELECT count(*), sum(l.v), sum(r.v) FROM l {join} r ON {on}");
        let plan = database.plan(&sql);
        assert!(plan.contains("SortMergeJoin"), "{plan}");
        assert_eq!(database.rows(&sql), expected, "{join}");
    }
    for (condition, expected) in [("", both), ("NOT", sum(0, half))] {
        let sql = format!(
            "SELECT count(*), sum(v) FROM l WHERE {condition} EXISTS (SELECT 1 FROM r WHERE {on})"
        );
        let plan = database.plan(&sql);
        assert!(plan.contains("SortMergeJoin"), "{plan}");
        assert_eq!(database.rows(&sql), row(&[half, expected]), "{condition}");
    }
    // A small input is hashed, whatever the size of the other.
    let sql = format!("SELECT count(*) FROM l JOIN (SELECT * FROM r LIMIT 100) r ON {on}");
    let plan = database.plan(&sql);
    assert!(!plan.contains("SortMergeJoin"), "{plan}");
    // A join that must hold an input is refused, with what holds the memory, and others go on.
    let sql = "SELECT count(*) FROM l JOIN r ON l.v::double = r.v::double";
    match database.ask(sql) {
        Ok(rows) => assert_eq!(rows, row(&[half])),
        Err(error) => {
            let text = error.to_string();
            assert_eq!(error.sqlstate(), "53200", "{text}");
            assert!(text.contains("queries use"), "{text}");
        }
    }
    assert_eq!(database.rows("SELECT count(*) FROM l"), row(&[ROWS]));
}
