//! A server that was sent hostile statements is idle afterwards, and ends when it is told to.

use crate::server::{ServeProcess, request};
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Requests may finish for 10 s; the rest is for a busy machine.
const END_MAX: Duration = Duration::from_secs(30);
const IDLE_MAX: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(500);
/// A look at an idle server finds fewer hundredths of a second of processor time.
const IDLE_TICKS: u64 = 10;
const LEVELS: usize = 60;

/// The processor time that a process has used, in hundredths of a second.
fn processor_ticks(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("it runs");
    let (_, fields) = stat.rsplit_once(')').expect("a name");
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = |at: usize| fields[at].parse::<u64>().expect("a number");
    ticks(11) + ticks(12)
}

fn becomes_idle(server: &ServeProcess) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < IDLE_MAX {
        let before = processor_ticks(server.process());
        std::thread::sleep(LOOK);
        if processor_ticks(server.process()) - before < IDLE_TICKS {
            return true;
        }
    }
    false
}

/// Statements that planning took for ever for, and one whose planning takes some time.
fn hostile() -> Vec<String> {
    let nested = |begin: &str, before: &str, middle: &str, after: &str| {
        let (before, after) = (before.repeat(LEVELS), after.repeat(LEVELS));
        format!("{begin}{before}{middle}{after}")
    };
    let wide: Vec<String> = (0..300)
        .map(|at| format!("(SELECT max(v) + {at} FROM m u WHERE u.v = m.v)"))
        .collect();
    vec![
        nested("SELECT ", "(SELECT ", "1", ")"),
        nested("SELECT 1 WHERE ", "EXISTS (SELECT 1 WHERE ", "true", ")"),
        nested("SELECT 1 ORDER BY ", "(SELECT ", "1", ")"),
        nested("SELECT ", "row(", "1", ")"),
        nested("SELECT ", "(", "1", " BETWEEN 1 AND 2)::INT"),
        format!("SELECT {} FROM m", wide.join(", ")),
        "SELECT count(*) FROM generate_series(1, 1000000000) a, generate_series(1, 1000000000) b"
            .to_owned(),
    ]
}

#[test]
fn a_server_is_idle_after_hostile_statements_and_ends_on_sigterm() {
    let dir = tempfile::tempdir().unwrap();
    let server = ServeProcess::start(dir.path(), &[]);
    assert_eq!(server.write("m,host=a v=1 1\n").status, 204);
    for sql in hostile() {
        let target = "/api/v1/sql?db=db&timeout_ms=700";
        let answer = server.request("POST", target, &[], sql.as_bytes());
        println!("{} {}", answer.status, &sql[..sql.len().min(60)]);
        assert!(
            becomes_idle(&server),
            "it works on after {}: {sql}",
            answer.body
        );
    }
    for sql in hostile() {
        let mut left = TcpStream::connect(("127.0.0.1", server.http_port)).unwrap();
        let length = sql.len();
        let head = format!(
            "POST /api/v1/sql?db=db HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n"
        );
        left.write_all(head.as_bytes()).unwrap();
        left.write_all(sql.as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(200));
        drop(left);
        assert!(
            becomes_idle(&server),
            "it works on after its client left: {sql}"
        );
    }
    let begun = Instant::now();
    assert!(server.terminate().success());
    assert!(begun.elapsed() < END_MAX, "{:?}", begun.elapsed());
}

#[test]
fn a_statement_without_end_does_not_keep_a_server_from_ending() {
    let dir = tempfile::tempdir().unwrap();
    let server = ServeProcess::start(dir.path(), &[]);
    let port = server.http_port;
    let endless = hostile().pop().unwrap();
    let client = std::thread::spawn(move || {
        let target = "/api/v1/sql?db=db";
        request(port, "POST", target, &[], endless.as_bytes()).map(|answer| answer.status)
    });
    std::thread::sleep(Duration::from_millis(500));
    let begun = Instant::now();
    assert!(server.terminate().success());
    assert!(begun.elapsed() < END_MAX, "{:?}", begun.elapsed());
    let answer = client.join().unwrap();
    assert!(!matches!(answer, Ok(200)), "{answer:?}");
}
