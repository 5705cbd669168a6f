//! Statements that never end by themselves, each run twice at the same time, while a dashboard
//! sends queries.
//!
//! Each must end with an answer, an error or its timeout, long before it would end by itself;
//! memory must stay bounded; and short queries must still be answered. No bound measures speed:
//! each distinguishes "continues" from "is stuck", even on a slow and busy machine.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test may read the clock and what the machine tells of this process, and panic"
)]

#[path = "runaway/accounted.rs"]
mod accounted;
#[path = "runaway/kinds.rs"]
mod kinds;
#[path = "runaway/stopped_writes.rs"]
mod stopped_writes;

use futures::StreamExt;
use kinds::runaways;
use marigram_engine::{Durability, Engine, EngineOptions};
use marigram_env::Env;
use marigram_service::{Answer, Identity, Query, ServiceError, Session};
use marigram_sql::{SqlOptions, SqlService};
use std::fmt::Write as _;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};

/// The timeout of the statements, and the time by which they must have ended.
const TIMEOUT: Duration = Duration::from_secs(1);
const END_MAX: Duration = Duration::from_secs(20);
/// The number of short queries to answer while a statement runs until its timeout.
const ANSWERS_MIN: usize = 3;
/// The number of short queries that may be refused before that many are answered.
const REFUSED_MAX: usize = 20;
const MEMORY_LIMIT: usize = 256 << 20;
/// The limit of resident memory, including the test itself, plans, values in flight and what the
/// allocator retains.
const RESIDENT_MAX: usize = 1 << 30;
/// Set in a process that was started to run a test.
const CHILD: &str = "MARIGRAM_RUNAWAY_CHILD";

/// Runs a test in its own process, whose allocator retains as little as a server's.
fn in_own_process(test: &str, work: impl FnOnce()) {
    if std::env::var_os(CHILD).is_some() {
        return work();
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .env("MALLOC_ARENA_MAX", "2")
        .status()
        .unwrap();
    assert!(child.success(), "{child}");
}

struct Database {
    engine: Engine,
    sql: SqlService,
    session: Session,
    clients: Runtime,
    _dir: tempfile::TempDir,
}

impl Database {
    /// A table with 20 devices and 20,000 rows.
    fn open() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = EngineOptions {
            shards: 2,
            durability: Durability::Os,
            memory_limit_bytes: MEMORY_LIMIT,
            flush_age_max: None,
            background_threads: 0,
            ..EngineOptions::default()
        };
        let engine = Engine::open(Env::real(), &dir.path().join("data"), options).unwrap();
        let options = SqlOptions {
            spill_dir: Some(dir.path().to_owned()),
            ..SqlOptions::default()
        };
        let sql = SqlService::new(engine.clone(), options).unwrap();
        let clients = Builder::new_multi_thread().enable_all().build().unwrap();
        let session = clients
            .block_on(sql.session(None, &Identity::owner("tester")))
            .unwrap();
        let database = Self {
            engine,
            sql,
            session,
            clients,
            _dir: dir,
        };
        for statement in [
            "CREATE TABLE t (time TIMESTAMP, device STRING TAG, v DOUBLE)",
            "CREATE TABLE sink (time TIMESTAMP, device STRING TAG, v DOUBLE)",
            "INSERT INTO t SELECT to_timestamp_seconds(1700000000 + value), \
             concat('d', (value % 20)::text), value::double FROM generate_series(1, 20000)",
            "FLUSH",
        ] {
            database.must(statement);
        }
        database
    }

    /// Runs a statement that must not fail, and counts its rows.
    fn must(&self, statement: &str) -> usize {
        let asked = ask(&self.sql, &self.session, statement);
        let answered = self.clients.block_on(asked);
        answered.unwrap_or_else(|error| panic!("{statement}: {error}"))
    }
}

/// Runs a statement and counts its rows.
async fn ask(sql: &SqlService, session: &Session, statement: &str) -> Result<usize, ServiceError> {
    let mut session = session.clone();
    match sql.execute(&mut session, statement).await? {
        Answer::Rows(mut rows) => {
            let mut count = 0;
            while let Some(batch) = rows.batches.next().await {
                count += batch?.num_rows();
            }
            Ok(count)
        }
        Answer::Done { .. } => Ok(0),
    }
}

/// Short queries: one with a cached plan, one that is planned each time, one over all rows.
fn question(number: usize) -> String {
    match number % 3 {
        0 => "SELECT last(v, time) FROM t WHERE device = 'd7'".to_owned(),
        1 => format!("SELECT device, avg(v) FROM t WHERE v > {number} GROUP BY device"),
        _ => "SELECT device, max(v), count(*) FROM t GROUP BY device ORDER BY device".to_owned(),
    }
}

/// Sends short queries until it is told to stop.
struct Dashboard {
    stop: Arc<AtomicBool>,
    answers: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<Result<(), ServiceError>>,
}

impl Dashboard {
    fn start(database: &Database) -> Self {
        let (stop, answers) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let (sql, session) = (database.sql.clone(), database.session.clone());
        let (until, count) = (Arc::clone(&stop), Arc::clone(&answers));
        let task = database.clients.spawn(async move {
            let (mut number, mut refused) = (0, 0);
            while !until.load(Ordering::Relaxed) {
                match ask(&sql, &session, &question(number)).await {
                    Ok(_) => _ = count.fetch_add(1, Ordering::Relaxed),
                    // Memory is short for a moment: the client is told to try again, and usually
                    // gets an answer.
                    Err(ServiceError::Busy { .. }) => refused += 1,
                    Err(error) => return Err(error),
                }
                assert!(refused <= count.load(Ordering::Relaxed) + REFUSED_MAX);
                number += 1;
            }
            Ok(())
        });
        Self {
            stop,
            answers,
            task,
        }
    }

    fn answers(&self) -> usize {
        self.answers.load(Ordering::Relaxed)
    }

    fn stop(self, database: &Database) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = async { tokio::time::timeout(END_MAX, self.task).await };
        let ended = database.clients.block_on(ended);
        ended
            .expect("short questions are answered")
            .unwrap()
            .expect("without an error");
    }
}

/// Resets the [peak](resident_peak), on machines that support this.
fn forget_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// The largest resident memory since the reset, bytes; 0 on machines that do not report it.
fn resident_peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok());
    kib.unwrap_or(0) * 1024
}

/// The processor time of the process, in hundredths of a second; 0 on machines that do not report
/// it.
fn spent() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
    let fields = after.split_whitespace();
    fields
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<u64>().ok())
        .sum()
}

/// All runaways, or those whose name contains `MARIGRAM_RUNAWAY`.
fn chosen() -> Vec<(&'static str, String)> {
    let mut all = runaways();
    if let Ok(part) = std::env::var("MARIGRAM_RUNAWAY") {
        all.retain(|(name, _)| name.contains(&part));
    }
    all
}

/// Waits until the process is idle.
fn wait_for_quiet() {
    let begin = Instant::now();
    loop {
        let before = spent();
        std::thread::sleep(Duration::from_millis(500));
        if spent() - before <= 10 {
            return;
        }
        assert!(
            begin.elapsed() < 3 * END_MAX,
            "something that nobody waits for keeps the machine busy"
        );
    }
}

#[test]
fn runaways_end_and_short_questions_go_on_beside_them() {
    let test = "runaways_end_and_short_questions_go_on_beside_them";
    in_own_process(test, each_runaway_beside_a_dashboard);
}

fn each_runaway_beside_a_dashboard() {
    let database = Database::open();
    let session = Session {
        statement_timeout: Some(TIMEOUT),
        ..database.session.clone()
    };
    let alone = Dashboard::start(&database);
    std::thread::sleep(TIMEOUT);
    eprintln!("nothing: {} answers in {TIMEOUT:.1?}", alone.answers());
    alone.stop(&database);
    for (name, sql) in chosen() {
        forget_peak();
        let dashboard = Dashboard::start(&database);
        let begin = Instant::now();
        let run = |_| {
            let (service, session, sql) = (database.sql.clone(), session.clone(), sql.clone());
            database
                .clients
                .spawn(async move { ask(&service, &session, &sql).await })
        };
        let both: Vec<_> = (0..2).map(run).collect();
        let ended = database.clients.block_on(async {
            tokio::time::timeout(END_MAX, futures::future::join_all(both)).await
        });
        let (took, answers) = (begin.elapsed(), dashboard.answers());
        let ended = ended.unwrap_or_else(|_| panic!("{name} does not end; {answers} answers"));
        let (memory, mut told) = (resident_peak(), String::new());
        for result in ended {
            match result.unwrap() {
                Ok(rows) => _ = write!(told, "{rows} rows; "),
                Err(ServiceError::Internal(error)) => panic!("{name}: {error}"),
                Err(error) => {
                    let text: String = error.to_string().chars().take(60).collect();
                    _ = write!(told, "{} {text}; ", error.sqlstate());
                }
            }
        }
        eprintln!(
            "{name}: {took:.1?}, {answers} answers, {} MiB, {told}",
            memory >> 20
        );
        if took >= TIMEOUT {
            assert!(
                answers >= ANSWERS_MIN,
                "{name}: {answers} short answers in {took:?}"
            );
        }
        assert!(memory < RESIDENT_MAX, "{name}: {memory} bytes are resident");
        dashboard.stop(&database);
    }
    wait_for_quiet();
}

/// A client that disconnects, as after PostgreSQL's cancel request, stops its statement.
#[test]
fn what_nobody_waits_for_stops() {
    let database = Database::open();
    for (name, sql) in chosen() {
        eprintln!("{name}");
        let (service, session) = (database.sql.clone(), database.session.clone());
        let asking = async move { ask(&service, &session, &sql).await };
        let gone = async { tokio::time::timeout(Duration::from_millis(150), asking).await };
        let _ = database.clients.block_on(gone);
    }
    wait_for_quiet();
}

/// Results that nobody reads do not block other statements.
#[test]
fn answers_that_are_not_read_hold_up_nobody() {
    let database = Database::open();
    let mut unread = Vec::new();
    for number in 0..60 {
        let statement = match number % 3 {
            0 => "SELECT * FROM t",
            1 => "SELECT * FROM t a, generate_series(1, 1000)",
            _ => "SELECT * FROM t ORDER BY v",
        };
        let asked = async {
            let mut session = database.session.clone();
            database.sql.execute(&mut session, statement).await
        };
        match database.clients.block_on(asked) {
            Ok(answer) => unread.push(answer),
            Err(ServiceError::Busy { .. }) => {}
            Err(error) => panic!("{number}: {error}"),
        }
    }
    assert!(unread.len() > 40, "{} answers began", unread.len());
    let dashboard = Dashboard::start(&database);
    let begin = Instant::now();
    while dashboard.answers() < 30 && begin.elapsed() < END_MAX {
        std::thread::sleep(Duration::from_millis(10));
    }
    eprintln!("{} answers in {:.1?}", dashboard.answers(), begin.elapsed());
    assert!(dashboard.answers() >= 30);
    dashboard.stop(&database);
    drop(unread);
    wait_for_quiet();
}
