//! Measures what InfluxQL costs before the first row is read: from the text of a small question to
//! the sources of its rows.
//!
//! `cargo bench --workspace --bench influxql_planning`. One thread; the median of all rounds counts. Ends
//! with status 1 if a question takes longer than 60 µs.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a benchmark reads the machine's clock, and panics if its premises fail"
)]

use datafusion::prelude::SessionContext;
use marigram_engine::{Durability, Engine, EngineOptions, WriteOptions};
use marigram_env::Env;
use marigram_influx::plan_select;
use marigram_protocol::lines::{LineLimits, Precision, parse};
use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

const ROUNDS: usize = 201;
const REPEATS: u32 = 20;
/// The longest time that a small question may take.
const BOUND: Duration = Duration::from_micros(60);

const QUESTIONS: [&str; 6] = [
    "SELECT usage_user FROM cpu WHERE hostname = 'host_1' AND time >= 0 AND time < 1h",
    "SELECT last(usage_user) FROM cpu WHERE hostname = 'host_1'",
    "SELECT max(usage_user) FROM cpu WHERE (hostname = 'host_1' OR hostname = 'host_2') AND time >= 0 AND \
     time < 1h GROUP BY time(1m)",
    "SELECT mean(usage_user), mean(usage_system) FROM cpu WHERE time >= 0 AND time < 12h \
     GROUP BY time(1h), hostname",
    "SELECT mean(m) FROM (SELECT max(usage_user) AS m FROM cpu WHERE time < 1h GROUP BY time(1m)) \
     WHERE time >= 0 AND time < 1h GROUP BY time(10m)",
    "SELECT * FROM cpu WHERE usage_user > 90.0 AND time >= 0 AND time < 1h",
];

fn main() {
    let dir = tempfile::tempdir().unwrap();
    let options = EngineOptions {
        shards: 2,
        durability: Durability::Os,
        background_threads: 0,
        flush_age_max: None,
        ..EngineOptions::default()
    };
    let engine = Engine::open(Env::real(), &dir.path().join("data"), options).unwrap();
    engine.create_database("d", true).unwrap();
    let mut lines = String::new();
    for host in 0..10 {
        let _ = write!(
            lines,
            "cpu,hostname=host_{host},region=eu usage_user={host}"
        );
        for field in [
            "system", "idle", "nice", "iowait", "irq", "softirq", "steal", "guest",
        ] {
            let _ = write!(lines, ",usage_{field}=1");
        }
        lines.push_str(" 1000000000\n");
    }
    let limits = LineLimits::default();
    let parsed = parse(lines.as_bytes(), Precision::Nanoseconds, 0, limits);
    for batch in &parsed.batches {
        let report = engine.write("d", batch, WriteOptions { grow: true });
        assert!(report.unwrap().rejected.is_empty());
    }
    let state = Arc::new(SessionContext::new().state());
    let mut is_slow = false;
    println!("{:>9}  question", "median");
    for question in QUESTIONS {
        let mut rounds: Vec<Duration> = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS {
            let begin = Instant::now();
            for _ in 0..REPEATS {
                plan_select(&engine, &state, "d", question).unwrap();
            }
            rounds.push(begin.elapsed() / REPEATS);
        }
        rounds.sort();
        let median = rounds[ROUNDS / 2];
        is_slow |= median > BOUND;
        println!("{:>6.1} µs  {question}", median.as_secs_f64() * 1e6);
    }
    // `cargo test --benches` builds without optimization, and only sees that it runs.
    if is_slow && std::env::args().any(|arg| arg == "--bench") {
        println!("a question takes more than {BOUND:?}");
        std::process::exit(1);
    }
}
