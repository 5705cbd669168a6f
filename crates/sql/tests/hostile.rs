//! Hostile statements: deep trees (`deep`), large values (`large`), and nesting that makes planning
//! long (`nested`).
//!
//! Each set runs in its own process, so that an abort fails one test that names the statement, and
//! does not end all tests.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests start processes and use what the machine has"
)]

#[path = "hostile/deep.rs"]
mod deep;
#[path = "hostile/large.rs"]
mod large;
#[path = "hostile/nested.rs"]
mod nested;

use futures::StreamExt;
use marigram_engine::{Durability, Engine, EngineOptions};
use marigram_env::Env;
use marigram_service::{Answer, Identity, Query, ServiceError, Session};
use marigram_sql::{SqlOptions, SqlService};
use std::process::Command;

/// Set in a process that was started to run a set of cases.
const CHILD: &str = "MARIGRAM_HOSTILE_CHILD";
/// The memory that a database may use.
const MEMORY_BYTES: usize = 256 << 20;
/// The stack of a thread of a program that embeds the database.
const CALLER_STACK_BYTES: usize = 512 << 10;

/// Runs a test in its own process, on a thread with a small stack.
fn in_own_process(test: &str, cases: impl FnOnce() + Send + 'static) {
    if std::env::var_os(CHILD).is_some() {
        let caller = std::thread::Builder::new().stack_size(CALLER_STACK_BYTES);
        caller.spawn(cases).unwrap().join().unwrap();
        return;
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&child.stdout),
        String::from_utf8_lossy(&child.stderr),
    );
    let last: Vec<&str> = out.lines().rev().take(5).collect();
    let text: String = err.chars().take(4000).collect();
    assert!(
        child.status.success(),
        "{}: {last:#?}\n{text}",
        child.status
    );
    if std::env::var_os("MARIGRAM_HOSTILE_VERBOSE").is_some() {
        println!("{out}");
    }
}

struct Database {
    sql: SqlService,
    session: Session,
    _dir: tempfile::TempDir,
}

impl Database {
    /// A table with this many rows.
    fn open(rows: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = EngineOptions {
            shards: 2,
            durability: Durability::Os,
            memory_limit_bytes: MEMORY_BYTES,
            background_threads: 0,
            ..EngineOptions::default()
        };
        let engine = Engine::open(Env::real(), &dir.path().join("data"), options).unwrap();
        let sql = SqlService::new(engine, SqlOptions::default()).unwrap();
        let session =
            futures::executor::block_on(sql.session(None, &Identity::owner("tester"))).unwrap();
        let mut database = Self {
            sql,
            session,
            _dir: dir,
        };
        database
            .run("CREATE TABLE t (time TIMESTAMP, dev STRING TAG, s STRING, a BIGINT, x DOUBLE, b BOOL)")
            .unwrap();
        let insert = format!(
            "INSERT INTO t (time, dev, s, a, x, b) SELECT to_timestamp(value), 'd', 'text', value, \
             value, true FROM generate_series(1, {rows})"
        );
        database.run(&insert).unwrap();
        database
    }

    /// Runs a statement to its end; returns the number of rows.
    fn run(&mut self, sql: &str) -> Result<u64, ServiceError> {
        futures::executor::block_on(async {
            let answer = self.sql.execute(&mut self.session, sql).await?;
            count(answer).await
        })
    }

    /// The same through the extended protocol.
    fn prepared(&mut self, sql: &str) -> Result<u64, ServiceError> {
        futures::executor::block_on(async {
            let prepared = self.sql.prepare(&self.session, sql).await?;
            let none = Vec::new();
            let answer = self
                .sql
                .execute_prepared(&mut self.session, &*prepared, none)
                .await?;
            count(answer).await
        })
    }
}

async fn count(answer: Answer) -> Result<u64, ServiceError> {
    match answer {
        Answer::Done { rows, .. } => Ok(rows),
        Answer::Rows(mut rows) => {
            let mut count = 0;
            while let Some(batch) = rows.batches.next().await {
                count += batch?.num_rows() as u64;
            }
            Ok(count)
        }
    }
}
