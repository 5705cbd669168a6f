//! Rounds of `kill -9` under writers over HTTP and PostgreSQL's protocol: acknowledged batches are
//! stored in full, refused ones leave nothing, and no row is stored twice.
//!
//! `MARIGRAM_KILL_ROUNDS=500` runs more rounds. The number of a round determines the moment of the
//! kill and the sizes of the batches.

use crate::server::{ServeProcess, request};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio_postgres::NoTls;

const ROUNDS: u64 = 3;
const HTTP_WRITERS: usize = 3;
const DEVICES: u64 = 16;
/// Rounds between two comparisons of all rounds.
const COMPARE_ALL_EVERY: u64 = 25;

/// What a client knows about a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BatchFate {
    Acknowledged,
    Refused,
    /// No answer arrived, or one that says that the outcome is unknown.
    Unknown,
}

/// A batch: its round, its sender and its number.
type Batch = (u64, String, u64);

/// The rows of a batch and its fate.
type BatchLedger = Mutex<HashMap<Batch, (u64, BatchFate)>>;

/// A pseudo-random number derived from two others.
fn mix(a: u64, b: u64) -> u64 {
    let mut x = (a << 32 | b).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03;
    for _ in 0..2 {
        x = (x ^ (x >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    }
    x ^ (x >> 32)
}

fn rows_of(round: u64, number: u64) -> u64 {
    [1, 7, 60, 400][mix(round, number) as usize % 4]
}

/// Whether the server must refuse a batch because its values have another type.
fn is_wrong(round: u64, number: u64) -> bool {
    mix(number, round).is_multiple_of(10)
}

fn lines(round: u64, writer: &str, number: u64) -> String {
    let mut lines = String::new();
    for row in 0..rows_of(round, number) {
        let value = if is_wrong(round, number) {
            "\"text\""
        } else {
            "1i"
        };
        let device = row % DEVICES;
        let time = number * 1_000 + row;
        writeln!(
            lines,
            "kills,round=r{round},writer={writer},device=d{device} batch={number}i,n={value} {time}"
        )
        .expect("writing to a string cannot fail");
    }
    lines
}

fn write_http(port: u16, round: u64, writer: &str, number: u64) -> BatchFate {
    let body = lines(round, writer, number);
    match request(
        port,
        "POST",
        "/write?db=db&precision=ms",
        &[],
        body.as_bytes(),
    ) {
        Ok(answer) if answer.status == 204 => BatchFate::Acknowledged,
        Ok(answer) if matches!(answer.status, 400 | 429 | 503) => BatchFate::Refused,
        Ok(_) | Err(_) => BatchFate::Unknown,
    }
}

fn insert(round: u64, writer: &str, number: u64) -> String {
    let mut sql = "INSERT INTO kills (time, round, writer, device, batch, n) VALUES ".to_owned();
    for row in 0..rows_of(round, number) {
        let value = if is_wrong(round, number) {
            "'text'"
        } else {
            "1"
        };
        let time = i64::try_from(number * 1_000 + row).expect("a time");
        let time = chrono::DateTime::from_timestamp_millis(time).expect("a time");
        let time = time.to_rfc3339();
        let comma = if row == 0 { "" } else { ", " };
        write!(
            sql,
            "{comma}('{time}', 'r{round}', '{writer}', 'd{}', {number}, {value})",
            row % DEVICES
        )
        .expect("writing to a string cannot fail");
    }
    sql
}

/// Writes over one connection until it closes.
async fn write_postgres(
    port: u16,
    round: u64,
    ledger: &BatchLedger,
    next: &mut u64,
    stop: &AtomicBool,
) {
    let config = format!("host=127.0.0.1 port={port} user=me dbname=db connect_timeout=5");
    let Ok((client, connection)) = tokio_postgres::connect(&config, NoTls).await else {
        tokio::time::sleep(Duration::from_millis(20)).await;
        return;
    };
    let connection = tokio::spawn(connection);
    while !stop.load(Ordering::Relaxed) {
        let number = *next;
        *next += 1;
        let sql = insert(round, "postgres", number);
        let fate = match client.batch_execute(&sql).await {
            Ok(()) => BatchFate::Acknowledged,
            // Classes 08, 40, 57 and XX mean that the outcome of the statement is unknown.
            Err(error) => match error.code().map(|code| &code.code()[..2]) {
                Some("08" | "40" | "57" | "XX") | None => BatchFate::Unknown,
                Some(_) => BatchFate::Refused,
            },
        };
        note(ledger, round, "postgres", number, fate);
        if client.is_closed() {
            break;
        }
    }
    drop(client);
    connection.abort();
}

fn note(ledger: &BatchLedger, round: u64, writer: &str, number: u64, fate: BatchFate) {
    let batch = (round, writer.to_owned(), number);
    let rows = rows_of(round, number);
    ledger
        .lock()
        .expect("no writer panics")
        .insert(batch, (rows, fate));
}

/// Runs the writers, and kills the process while they write.
fn live(server: &mut ServeProcess, round: u64, ledger: &BatchLedger) {
    let stop = AtomicBool::new(false);
    let (http, postgres) = (server.http_port, server.postgres_port);
    std::thread::scope(|scope| {
        for writer in 0..HTTP_WRITERS {
            let stop = &stop;
            scope.spawn(move || {
                let writer = format!("http{writer}");
                let mut number = 0;
                while !stop.load(Ordering::Relaxed) {
                    let fate = write_http(http, round, &writer, number);
                    note(ledger, round, &writer, number, fate);
                    number += 1;
                    if fate == BatchFate::Unknown {
                        std::thread::sleep(Duration::from_millis(5));
                    }
                }
            });
        }
        let stop = &stop;
        scope.spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            let runtime = runtime.expect("a runtime");
            let mut number = 0;
            while !stop.load(Ordering::Relaxed) {
                runtime.block_on(write_postgres(postgres, round, ledger, &mut number, stop));
            }
        });
        std::thread::sleep(Duration::from_millis(30 + mix(round, 0) % 400));
        server.kill_and_restart();
        std::thread::sleep(Duration::from_millis(mix(round, 1) % 50));
        stop.store(true, Ordering::Relaxed);
    });
}

/// Compares the stored rows of a round (`None`: of all rounds) with what the writers know; returns
/// the number of batches.
fn compare(server: &ServeProcess, round: Option<u64>, ledger: &BatchLedger) -> usize {
    let of_round = round.map_or_else(String::new, |round| format!("WHERE round = 'r{round}'"));
    let csv = server.csv(&format!(
        "SELECT round, writer, batch, count(*) AS n, \
         count(DISTINCT device || ' ' || CAST(time AS STRING)) AS once \
         FROM kills {of_round} GROUP BY round, writer, batch"
    ));
    let mut found: HashMap<Batch, u64> = HashMap::new();
    for line in csv.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let [round, writer, batch, rows, once] = cells[..] else {
            panic!("not five cells: {line}");
        };
        assert_eq!(rows, once, "a row is visible twice: {line}");
        let round = round[1..].parse().expect("a round");
        let batch = (round, writer.to_owned(), batch.parse().expect("a batch"));
        found.insert(batch, rows.parse().expect("a count"));
    }
    let ledger = ledger.lock().expect("no writer panics");
    let of_round = ledger
        .iter()
        .filter(|((at, ..), _)| round.is_none_or(|round| round == *at));
    let mut batches = 0;
    for (batch, (rows, fate)) in of_round {
        let there = found.remove(batch).unwrap_or(0);
        let is_right = match fate {
            BatchFate::Acknowledged => there == *rows,
            BatchFate::Refused => there == 0,
            BatchFate::Unknown => there <= *rows,
        };
        assert!(
            is_right,
            "{batch:?} of {rows} rows, {fate:?}: {there} are there"
        );
        batches += 1;
    }
    assert!(found.is_empty(), "nobody wrote {found:?}");
    batches
}

#[test]
fn acknowledged_rows_are_there_and_refused_ones_are_not_after_each_kill() {
    let rounds = std::env::var("MARIGRAM_KILL_ROUNDS").map_or(ROUNDS, |text| {
        text.parse().expect("MARIGRAM_KILL_ROUNDS is a number")
    });
    let dir = tempfile::tempdir().unwrap();
    let arguments = [
        "--flush-size",
        "512KB",
        "--flush-age",
        "1s",
        "--memory-limit",
        "256MB",
    ];
    let mut server = ServeProcess::start(dir.path(), &arguments);
    let seed = "kills,round=r0,writer=none,device=d batch=0i,n=1i 0";
    assert_eq!(server.write(seed).status, 204);
    let ledger = BatchLedger::default();
    let first = (0, "none".to_owned(), 0);
    ledger
        .lock()
        .expect("no writer panics")
        .insert(first, (1, BatchFate::Acknowledged));
    for round in 1..=rounds {
        live(&mut server, round, &ledger);
        assert!(compare(&server, Some(round), &ledger) > 0);
        if round.is_multiple_of(COMPARE_ALL_EVERY) || round == rounds {
            server.kill_and_restart();
            compare(&server, None, &ledger);
            let counts = count(&ledger);
            println!("round {round}: {counts:?} batches and rows by fate");
        }
    }
    let counts = count(&ledger);
    assert!(
        counts.contains_key("Acknowledged") && counts.contains_key("Refused"),
        "{counts:?}"
    );
}

/// Batches and rows by fate.
fn count(ledger: &BatchLedger) -> HashMap<String, (u64, u64)> {
    let mut counts: HashMap<String, (u64, u64)> = HashMap::new();
    for (rows, fate) in ledger.lock().expect("no writer panics").values() {
        let count = counts.entry(format!("{fate:?}")).or_default();
        *count = (count.0 + 1, count.1 + rows);
    }
    counts
}
