//! What logins cost writers: rows a second over HTTP, alone and beside 2,000 logins a second.
//! `cargo run --release --example logins_beside_writers -- path/to/marigram [SECONDS]`

#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measurement is outside the database: it reads the clock and prints"
)]

use anyhow::{Context, Result, bail};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const HTTP: &str = "http://127.0.0.1:18186";
const WRITERS: u64 = 2;
const LINES: u64 = 5_000;
const LOGIN_THREADS: u64 = 2;
const LOGINS_A_SECOND: u64 = 2_000;
const ROUNDS: u64 = 4;

/// The server; it ends with this.
struct MeasuredServer(Child);

impl Drop for MeasuredServer {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(binary: &Path, dir: &Path) -> Result<MeasuredServer> {
    let mut add = Command::new(binary)
        .args([
            "user",
            "add",
            "root",
            "--admin",
            "--password-file",
            "-",
            "--data",
        ])
        .arg(dir)
        .stdin(Stdio::piped())
        .spawn()?;
    let mut stdin = add.stdin.take().context("a pipe")?;
    writeln!(stdin, "correct horse")?;
    drop(stdin);
    if !add.wait()?.success() {
        bail!("the user was not added");
    }
    let child = Command::new(binary)
        .args([
            "serve",
            "--http",
            "127.0.0.1:18186",
            "--postgres",
            "off",
            "--data",
        ])
        .arg(dir)
        .stdout(Stdio::null())
        .spawn()?;
    let server = MeasuredServer(child);
    let deadline = Instant::now() + Duration::from_secs(30);
    while agent().get(format!("{HTTP}/ping")).call().is_err() {
        if Instant::now() > deadline {
            bail!("the server does not answer");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(server)
}

fn agent() -> ureq::Agent {
    let config = ureq::Agent::config_builder().http_status_as_error(false);
    config.build().into()
}

/// `root:correct horse` in base64.
const BASIC: &str = "Basic cm9vdDpjb3JyZWN0IGhvcnNl";

/// What was done, until it is told to stop.
#[derive(Clone, Default)]
struct LoadCounts {
    stop: Arc<AtomicBool>,
    rows: Arc<AtomicU64>,
    logins: Arc<AtomicU64>,
    failures: Arc<AtomicU64>,
}

fn write_rows(writer: u64, round: u64, counts: &LoadCounts) {
    let agent = agent();
    let mut time = round * 1_000_000_000;
    while !counts.stop.load(Ordering::Relaxed) {
        let mut body = String::new();
        for line in 0..LINES {
            let series = line % 1000;
            // Writing to a String cannot fail.
            let _ = writeln!(
                body,
                "m,host=w{writer}h{series} a={}.5,b={}i {}",
                line,
                time,
                time + line / 1000
            );
        }
        time += LINES;
        let request = agent
            .post(format!("{HTTP}/write?db=load&precision=ms"))
            .header("Authorization", BASIC);
        match request.send(&body) {
            Ok(answer) if answer.status() == 204 => {
                counts.rows.fetch_add(LINES, Ordering::Relaxed);
            }
            _ => {
                counts.failures.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

fn log_in(counts: &LoadCounts) {
    let agent = agent();
    let pause = Duration::from_secs(LOGIN_THREADS) / LOGINS_A_SECOND as u32;
    let mut next = Instant::now();
    while !counts.stop.load(Ordering::Relaxed) {
        let request = agent.get(format!("{HTTP}/api/v2/me"));
        match request.header("Authorization", BASIC).call() {
            Ok(mut answer) if answer.status() == 200 => {
                let _ = answer.body_mut().read_to_vec();
                counts.logins.fetch_add(1, Ordering::Relaxed);
            }
            _ => {
                counts.failures.fetch_add(1, Ordering::Relaxed);
            }
        }
        next += pause;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}

/// Rows and logins a second of one round.
fn measure(round: u64, with_logins: bool, seconds: u64) -> Result<(f64, f64)> {
    let counts = LoadCounts::default();
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let counts = counts.clone();
            scope.spawn(move || write_rows(writer, round, &counts));
        }
        if with_logins {
            for _ in 0..LOGIN_THREADS {
                let counts = counts.clone();
                scope.spawn(move || log_in(&counts));
            }
        }
        std::thread::sleep(Duration::from_secs(seconds));
        counts.stop.store(true, Ordering::Relaxed);
    });
    let took = begin.elapsed().as_secs_f64();
    let failures = counts.failures.load(Ordering::Relaxed);
    if failures > 0 {
        bail!("{failures} requests failed");
    }
    let rate = |count: &AtomicU64| count.load(Ordering::Relaxed) as f64 / took;
    Ok((rate(&counts.rows), rate(&counts.logins)))
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let binary = arguments
        .next()
        .context("give the path of the binary marigram")?;
    let seconds = arguments.next().map_or(Ok(10), |text| text.parse())?;
    let dir = tempfile::tempdir()?;
    let _server = start(Path::new(&binary), dir.path())?;
    measure(0, true, 3)?;
    let mut sums = [0.0; 2];
    for round in 1..=2 * ROUNDS {
        let with_logins = round % 2 == 0;
        let (rows, logins) = measure(round, with_logins, seconds)?;
        println!("{rows:>9.0} rows/s beside {logins:>6.0} logins/s");
        sums[usize::from(with_logins)] += rows;
    }
    println!("with logins / without: {:.3}", sums[1] / sums[0]);
    Ok(())
}
