//! A soak of the server: a mixed load for a bounded time, in a control group that kills whoever
//! takes more memory than it may, with an eye on resident memory, descriptors, files and disk.
//!
//! It knows the binary by its command line and its HTTP alone, as a client does. Invariant: whatever
//! happens, the server that it started and the control group that it made are gone at the end.

#![allow(
    clippy::disallowed_methods,
    reason = "what is measured is a process of this machine over this machine's time"
)]

mod client;
mod group;
mod load;
mod plot;
mod sample;
mod server;
mod verdict;

pub use sample::ServerSample;
pub use verdict::{RequestTally, SoakVerdict};

use anyhow::{Context, Result, anyhow};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// How long the server may take after the load until it answers everything.
const IDLE_WAIT_MAX: Duration = Duration::from_mins(1);

/// What to do.
#[derive(Clone, Debug)]
pub struct SoakPlan {
    /// The binary `marigram`.
    pub binary: PathBuf,
    /// The server's data directory: made, and left behind.
    pub data: PathBuf,
    /// Where samples, plot and summary go; `None`: nowhere.
    pub out: Option<PathBuf>,
    /// The server's `memory_limit`, bytes.
    pub limit_bytes: usize,
    /// How long the load lasts.
    pub duration: Duration,
    /// Rows a second that the writers of the fleet try to send.
    pub rows_per_second: usize,
    /// Series that the writer of high cardinality makes at most.
    pub series_max: usize,
    /// Further arguments of `marigram serve`.
    pub arguments: Vec<String>,
}

/// Runs the load and says what came of it. An error is one of the harness: what the server did
/// wrong stands in the verdict.
///
/// # Errors
/// If the server does not start, or the machine does not let itself be asked.
pub fn run(plan: &SoakPlan) -> Result<SoakVerdict> {
    fs::create_dir_all(&plan.data).context("the data directory cannot be made")?;
    let group = group::ControlGroup::make(plan.limit_bytes / 10 * 11);
    let mut server = server::SoakServer::start(plan, group.as_ref())?;
    let client = client::SoakClient::new(server.port);
    let over = AtomicBool::new(false);
    let (samples, loaded, idle) = std::thread::scope(|scope| -> Result<_> {
        let sampler = scope.spawn(|| sample::watch(&server, group.as_ref(), &plan.data, &over));
        let loaded = load::run(&client, plan);
        let idle = idle_answers(&client);
        over.store(true, std::sync::atomic::Ordering::Release);
        let samples = sampler.join();
        let samples = samples.map_err(|_| anyhow!("the sampler panicked"))?;
        Ok((samples, loaded?, idle))
    })?;
    let verdict = SoakVerdict {
        limit_bytes: plan.limit_bytes,
        in_group: group.is_some(),
        oom_kills: group.as_ref().map_or(0, group::ControlGroup::oom_kills),
        ended: server.ended(),
        duration: plan.duration,
        idle_after: idle,
        rows_sent: loaded.rows_sent,
        rows_acknowledged: loaded.rows_acknowledged,
        rows_uncertain: loaded.rows_uncertain,
        rows_found: loaded.rows_found,
        tallies: loaded.tallies,
        samples,
    };
    server.stop();
    if let Some(out) = &plan.out {
        fs::create_dir_all(out)?;
        fs::write(out.join("samples.csv"), sample::csv(&verdict.samples))?;
        plot::draw(&verdict, &out.join("soak.svg"))?;
        fs::write(out.join("summary.txt"), verdict.to_string())?;
    }
    Ok(verdict)
}

/// How long after the load it took until the server answered one of everything without refusing;
/// `None` where it did not in time.
fn idle_answers(client: &client::SoakClient) -> Option<Duration> {
    let begun = Instant::now();
    while begun.elapsed() < IDLE_WAIT_MAX {
        if load::probes(client) {
            return Some(begun.elapsed());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    None
}
