//! 100,000 raw rows of standard set S out of a running server: by Arrow Flight SQL, and by the
//! PostgreSQL protocol in binary. Processor time of the server and of the client, and wall time.
//!
//! `cargo bench --workspace --bench raw_rows` prints a table; the line `ratio` compares the two.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a benchmark measures real time, and panics if it cannot go on"
)]

use arrow_flight::sql::client::FlightSqlServiceClient;
use futures::{StreamExt, TryStreamExt};
use marigram_lab::generate::SourceSpec;
use marigram_lab::line_protocol;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tokio_postgres::NoTls;
use tonic::transport::{Channel, Endpoint};

/// 1,000 devices with 1,000 rows each, of which one group has a tenth.
const DEVICES: usize = 1000;
const ROWS: usize = 1000;
const ANSWER_ROWS: usize = 100_000;
const ROUNDS: usize = 15;

struct BenchServer {
    child: Child,
    http: u16,
    postgres: u16,
    flight: u16,
    _data: tempfile::TempDir,
}

impl Drop for BenchServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.local_addr().unwrap().port()
}

fn start() -> BenchServer {
    let data = tempfile::tempdir().unwrap();
    let (http, postgres, flight) = (free_port(), free_port(), free_port());
    let at = |port| format!("127.0.0.1:{port}");
    let child = Command::new(env!("CARGO_BIN_EXE_marigram"))
        .args(["serve", "--log", "error", "--data"])
        .arg(data.path())
        .args(["--http", &at(http), "--postgres", &at(postgres)])
        .args(["--flight", &at(flight)])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let server = BenchServer {
        child,
        http,
        postgres,
        flight,
        _data: data,
    };
    let deadline = Instant::now() + Duration::from_secs(30);
    while ureq::get(&format!("http://127.0.0.1:{http}/health"))
        .call()
        .is_err()
    {
        assert!(Instant::now() < deadline, "the server does not answer");
        std::thread::sleep(Duration::from_millis(20));
    }
    server
}

/// Stores the set; returns the table and its columns.
fn load(server: &BenchServer) -> (String, Vec<String>) {
    let spec = SourceSpec::SetS {
        devices: DEVICES,
        rows: ROWS,
    };
    let source = spec.build(1);
    let table = &source.tables()[0];
    for rows in source.stream(0, 1, 50_000) {
        let body = line_protocol::encode(table, &rows, 1);
        let url = format!("http://127.0.0.1:{}/write?db=main", server.http);
        ureq::post(&url).send(&body[..]).unwrap();
    }
    let url = format!("http://127.0.0.1:{}/api/v1/sql", server.http);
    ureq::post(&url).send("FLUSH").unwrap();
    let tags = table.tags.iter().map(|tag| tag.name.clone());
    let fields = table.fields.iter().map(|field| field.name.clone());
    (table.name.clone(), tags.chain(fields).collect())
}

/// Processor time of a process so far; `self` for this one.
fn processor_time(process: &str) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let after_name = stat.rsplit_once(')').unwrap().1;
    let words: Vec<u64> = after_name
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    // utime and stime are words 14 and 15 of the line, in hundredths of a second. The state between
    // the name and the first number is no number.
    Duration::from_millis((words[10] + words[11]) * 10)
}

#[derive(Default)]
struct Measured {
    wall_ms: Vec<f64>,
    server: Duration,
    client: Duration,
}

impl Measured {
    fn median_ms(&mut self) -> f64 {
        self.wall_ms.sort_by(f64::total_cmp);
        self.wall_ms[self.wall_ms.len() / 2]
    }
}

async fn by_flight(client: &mut FlightSqlServiceClient<Channel>, sql: &str) -> usize {
    let info = client.execute(sql.to_owned(), None).await.unwrap();
    let ticket = info.endpoint[0].ticket.clone().unwrap();
    let batches = client.do_get(ticket).await.unwrap();
    batches
        .try_fold(0, |rows, batch| {
            std::future::ready(Ok(rows + batch.num_rows()))
        })
        .await
        .unwrap()
}

async fn by_postgres(client: &tokio_postgres::Client, sql: &str) -> usize {
    let none: [&i64; 0] = [];
    let rows = client.query_raw(sql, none).await.unwrap();
    rows.fold(0, |count, row| {
        assert!(row.is_ok());
        std::future::ready(count + 1)
    })
    .await
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let server = start();
    let (table, columns) = load(&server);
    let sql = format!(
        "SELECT time, {} FROM {table} WHERE devgroup = (SELECT min(devgroup) FROM {table})",
        columns.join(", ")
    );
    let all = format!(
        "SELECT time, {} FROM {table} LIMIT {ANSWER_ROWS}",
        columns.join(", ")
    );
    let uri = format!("http://127.0.0.1:{}", server.flight);
    let channel = Endpoint::from_shared(uri).unwrap().connect().await.unwrap();
    let mut flight = FlightSqlServiceClient::new(channel);
    let config = format!(
        "host=127.0.0.1 port={} user=me dbname=main",
        server.postgres
    );
    let (postgres, connection) = tokio_postgres::connect(&config, NoTls).await.unwrap();
    tokio::spawn(connection);
    let pid = server.child.id().to_string();
    println!("{ROUNDS} rounds, one client; medians of wall time, means of processor time, ms");
    println!("| answer | rows | interface | wall | server | client |");
    println!("|---|---|---|---|---|---|");
    for (what, sql) in [("one group", &sql), ("LIMIT", &all)] {
        let mut measured = [Measured::default(), Measured::default()];
        let mut rows = [0, 0];
        for round in 0..=ROUNDS {
            for way in 0..2 {
                let before = (processor_time(&pid), processor_time("self"));
                let begin = Instant::now();
                rows[way] = if way == 0 {
                    by_flight(&mut flight, sql).await
                } else {
                    by_postgres(&postgres, sql).await
                };
                let wall = begin.elapsed();
                // The first round warms caches.
                if round > 0 {
                    let measured = &mut measured[way];
                    measured.wall_ms.push(wall.as_secs_f64() * 1e3);
                    measured.server += processor_time(&pid).saturating_sub(before.0);
                    measured.client += processor_time("self").saturating_sub(before.1);
                }
            }
        }
        let mean = |time: Duration| time.as_secs_f64() * 1e3 / ROUNDS as f64;
        for (way, name) in ["Flight SQL", "PostgreSQL, binary"].into_iter().enumerate() {
            let measured = &mut measured[way];
            println!(
                "| {what} | {} | {name} | {:.1} | {:.1} | {:.1} |",
                rows[way],
                measured.median_ms(),
                mean(measured.server),
                mean(measured.client)
            );
        }
        let [flight, postgres] = &mut measured;
        println!(
            "| {what} | | ratio | {:.2} | {:.2} | {:.2} |",
            flight.median_ms() / postgres.median_ms(),
            mean(flight.server) / mean(postgres.server),
            mean(flight.client) / mean(postgres.client)
        );
    }
}
