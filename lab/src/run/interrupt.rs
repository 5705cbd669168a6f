//! Ctrl-C: ends the current run, stops what it started, and removes its folders.

use anyhow::{Context, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Watches for SIGINT and SIGTERM from now on. The first signal sets the flag, the second ends the
/// process at once.
pub(super) fn watch() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("watching for ctrl-C")?;
    let (interrupt, terminate) = {
        let _inside = runtime.enter();
        (
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
        )
    };
    std::thread::Builder::new()
        .name("lab-signals".to_owned())
        .spawn(move || runtime.block_on(wait(interrupt, terminate, &flag)))?;
    Ok(stop)
}

async fn wait(mut interrupt: Signal, mut terminate: Signal, flag: &AtomicBool) {
    loop {
        let got = tokio::select! {
            got = interrupt.recv() => got,
            got = terminate.recv() => got,
        };
        if got.is_none() {
            return;
        }
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        eprintln!("\nending the run at hand; once more leaves at once");
    }
}
