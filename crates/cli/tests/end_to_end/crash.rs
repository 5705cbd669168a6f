//! `kill -9` while several clients write; the clients retry what was not acknowledged.

use crate::server::{ServeProcess, request};
use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const CLIENTS: usize = 4;
const BATCH_ROWS: usize = 5_000;
const BATCHES_A_CLIENT: usize = 50;
const ROWS: usize = CLIENTS * BATCH_ROWS * BATCHES_A_CLIENT;

/// Batch `batch` of client `client`: 100 devices, one row per second each.
fn batch(client: usize, batch: usize) -> String {
    let mut lines = String::with_capacity(BATCH_ROWS * 60);
    for row in 0..BATCH_ROWS {
        let (device, second) = (
            client * 100 + row % 100,
            batch * (BATCH_ROWS / 100) + row / 100,
        );
        let value = device * 1_000_000 + second;
        writeln!(lines, "fleet,device=d{device} value={value}i {second}")
            .expect("writing to a string cannot fail");
    }
    lines
}

/// Sends every batch of a client until it is acknowledged.
fn send_all(port: u16, client: usize, acknowledged: &AtomicUsize) {
    for number in 0..BATCHES_A_CLIENT {
        let body = batch(client, number);
        loop {
            let target = "/write?db=db&precision=s";
            match request(port, "POST", target, &[], body.as_bytes()) {
                Ok(answer) if answer.status == 204 => break,
                Ok(answer) => assert!(
                    matches!(answer.status, 429 | 503),
                    "refused with {}: {}",
                    answer.status,
                    answer.body
                ),
                Err(_) => {}
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        acknowledged.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_million_rows_survive_three_kills_exactly_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = ServeProcess::start(dir.path(), &["--flush-size", "8MB"]);
    let port = server.http_port;
    let acknowledged = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let acknowledged = &acknowledged;
            scope.spawn(move || send_all(port, client, acknowledged));
        }
        for kill in 1..=3 {
            while acknowledged.load(Ordering::SeqCst) < kill * CLIENTS * BATCHES_A_CLIENT / 4 {
                std::thread::sleep(Duration::from_millis(2));
            }
            server.kill_and_restart();
        }
    });
    server.kill_and_restart();

    let counts = server.csv(
        "SELECT count(*) AS n, count(DISTINCT device) AS devices, \
         sum(value - 1000000 * CAST(substr(device, 2) AS BIGINT)) AS seconds FROM fleet",
    );
    let seconds = BATCHES_A_CLIENT * BATCH_ROWS / 100;
    let sum = 100 * CLIENTS * (seconds * (seconds - 1) / 2);
    assert_eq!(
        counts,
        format!("n,devices,seconds\n{ROWS},{},{sum}\n", 100 * CLIENTS)
    );
    let twice = server.csv(
        "SELECT count(*) AS n FROM \
         (SELECT device, time FROM fleet GROUP BY device, time HAVING count(*) > 1)",
    );
    assert_eq!(twice, "n\n0\n");
}
