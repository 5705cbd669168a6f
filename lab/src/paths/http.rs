//! HTTP: line protocol in batches of 5,000 lines over four connections.

use super::process::Process;
use super::{CREATE, Ingested};
use anyhow::{Result, anyhow, ensure};
use marigram_lab::set_s::SetS;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const CONNECTIONS: usize = 4;
const BATCH_LINES: usize = 5_000;

/// Writes the set; also says how long a restart takes.
pub fn ingest(set: &SetS, data: &Path, binary: &Path) -> Result<Ingested> {
    let bodies: Vec<String> = (0..set.len())
        .step_by(BATCH_LINES)
        .map(|from| set.lines("s", from, (from + BATCH_LINES).min(set.len())))
        .collect();
    let mut server = Process::start(binary, data)?;
    // Line protocol carries tags as text.
    server.sql(
        &CREATE
            .replace("devid BIGINT TAG, ", "")
            .replace("BIGINT TAG", "STRING TAG"),
    )?;
    let url = server.url("/write?db=main&precision=s");
    let next = AtomicUsize::new(0);
    let send = || -> Result<()> {
        let agent = ureq::Agent::new_with_defaults();
        while let Some(body) = bodies.get(next.fetch_add(1, Ordering::Relaxed)) {
            let answer = agent.post(&url).send(body)?;
            ensure!(answer.status() == 204, "answer {}", answer.status());
        }
        Ok(())
    };
    let start = Instant::now();
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(send)).collect();
        clients
            .into_iter()
            .try_for_each(|client| client.join().map_err(|_| anyhow!("a client panicked"))?)
    })?;
    let ingest = start.elapsed();
    let (restart, replayed) = server.restart()?;
    Ok(Ingested {
        ingest,
        flush: Duration::ZERO,
        restart,
        replayed,
    })
}
