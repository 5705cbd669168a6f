//! Measures memory while it writes standard set S and runs aggregates over it in a loop.
//!
//! `cargo run --release -p marigram --example memory_ceiling -- DIR [DEVICES] [ROWS] [LIMIT]`
//!
//! The default is S100M (10,000 devices × 10,000 rows) under 512 MB. The limit covers the whole
//! process, including this program's own rows, as in the server.

#![expect(
    clippy::disallowed_methods,
    reason = "it measures this machine's memory over time"
)]

#[path = "../tests/ceiling/workload.rs"]
mod workload;

use marigram::{ByteSize, Durability, OpenOptions};
use std::path::PathBuf;
use workload::{Plan, QUESTIONS, run};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let dir = PathBuf::from(arguments.next().ok_or("the data directory is missing")?);
    let mut number = |default: usize| match arguments.next() {
        Some(text) => text
            .parse()
            .map_err(|_| format!("'{text}' is not a number")),
        None => Ok(default),
    };
    let (devices, rows) = (number(10_000)?, number(10_000)?);
    let limit: ByteSize = arguments.next().unwrap_or("512MB".to_owned()).parse()?;
    let plan = Plan {
        devices,
        rows,
        batch_rows: 10_000,
        writers: 2,
        questions: 4,
        options: OpenOptions::default()
            .durability(Durability::Fsync)
            .memory_limit(limit.0)
            .whole_process(true),
    };
    let outcome = run(&dir, &plan)?;
    let mb = |bytes: usize| bytes as f64 / 1e6;
    println!(
        "{} rows in {:.1} s, {:.2} M rows/s; {} writes had to be retried",
        outcome.rows,
        outcome.seconds,
        outcome.rows as f64 / outcome.seconds / 1e6,
        outcome.refused,
    );
    println!(
        "limit {:.0} MB; resident {:.0} MB before, at most {:.0} MB ({:.3} of the limit); accounted \
         at most {:.0} MB",
        mb(limit.0),
        mb(outcome.resident_before),
        mb(outcome.resident_max),
        outcome.resident_max as f64 / limit.0 as f64,
        mb(outcome.accounted_max),
    );
    for (name, peak, refusals) in &outcome.memory {
        println!(
            "{name:>14}: at most {:>6.1} MB, refused {refusals} times",
            mb(*peak)
        );
    }
    for ((name, _), answers) in QUESTIONS.iter().zip(outcome.answers).take(plan.questions) {
        println!("{answers} answers to '{name}'");
    }
    for failure in &outcome.failures {
        println!("FAILED: {failure}");
    }
    println!(
        "sent (rows, sum) {:?}, found {:?}",
        outcome.sent, outcome.found
    );
    if outcome.sent != outcome.found || !outcome.failures.is_empty() {
        return Err("rows or answers are missing".into());
    }
    Ok(())
}
