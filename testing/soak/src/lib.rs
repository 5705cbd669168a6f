//! A soak test of the server: a mixed load for a limited time, in a control group that kills a
//! process that exceeds its memory. It watches resident memory, descriptors, files and disk.
//!
//! It knows the binary only through its command line and HTTP, like a client. Invariant: whatever
//! happens, the server and the control group that it created are gone at the end.

#![allow(
    clippy::disallowed_methods,
    reason = "it measures a process on this machine over time"
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

/// How long after the load the server may take until it answers everything.
const IDLE_WAIT_MAX: Duration = Duration::from_mins(1);

/// What to run.
#[derive(Clone, Debug)]
pub struct SoakPlan {
    /// The binary `marigram`.
    pub binary: PathBuf,
    /// The server's data directory: it is created and remains.
    pub data: PathBuf,
    /// Folder for samples, plot and summary; `None` writes none.
    pub out: Option<PathBuf>,
    /// The server's `memory_limit`, bytes.
    pub limit_bytes: usize,
    /// How long the load lasts.
    pub duration: Duration,
    /// Rows per second that the writers of the fleet try to send.
    pub rows_per_second: usize,
    /// Most series that the high-cardinality writer creates.
    pub series_max: usize,
    /// Further arguments of `marigram serve`.
    pub arguments: Vec<String>,
}

/// Runs the load and returns the verdict. Errors concern only the harness: the verdict contains
/// what the server did wrong.
///
/// # Errors
/// If the server does not start, or the system cannot be queried.
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

/// How long after the load the server took until it answered one request of each kind without
/// refusing; `None` if it did not in time.
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
