//! `marigram-bench`: ingest over three ways in, bytes a row and restart time, on standard set S.
//!
//! Each repetition starts from an empty directory. Client and server share the machine; what the
//! client sends is encoded before the clock starts. Every way in uses the default durability: a
//! row is acknowledged after its fsync.

#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark reads the machine's clock and disk, as a client does"
)]

mod paths;
mod report;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use marigram_lab::set_s::SetS;
use report::{Measured, Report};
use std::path::PathBuf;

/// Measures ingest, size on disk and restart on standard set S.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Rows in all.
    #[arg(long, default_value_t = 10_000_000)]
    rows: usize,
    /// Devices.
    #[arg(long, default_value_t = 1_000)]
    devices: usize,
    /// Repetitions of each way in.
    #[arg(long, default_value_t = 5)]
    repeat: usize,
    /// Ways in to measure, separated by commas.
    #[arg(long, value_delimiter = ',', default_value = "embedded,http,copy")]
    paths: Vec<String>,
    /// Folder for data directories; a temporary one unless given.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// The server's binary; the one beside this program unless given.
    #[arg(long)]
    marigram: Option<PathBuf>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    ensure!(
        arguments.devices > 0 && arguments.rows.is_multiple_of(arguments.devices),
        "--rows must be a multiple of --devices"
    );
    let beside = std::env::current_exe()?.with_file_name("marigram");
    let binary = arguments.marigram.clone().unwrap_or(beside);
    ensure!(
        binary.exists(),
        "{} is not there: build it with `cargo build --release --bin marigram`",
        binary.display()
    );
    let base = match &arguments.dir {
        Some(dir) => tempfile::tempdir_in(dir),
        None => tempfile::tempdir(),
    }
    .context("a folder for data directories")?;
    eprintln!(
        "making {} rows of {} devices",
        arguments.rows, arguments.devices
    );
    let set = SetS::generate(
        arguments.devices,
        arguments.rows / arguments.devices,
        20_240_101,
    );
    let mut report = Report::new(&set, arguments.repeat);
    for path in &arguments.paths {
        let mut runs: Vec<Measured> = Vec::new();
        for run in 0..arguments.repeat {
            let data = base.path().join(format!("{path}-{run}"));
            let measured = paths::measure(path, &set, &data, &binary)
                .with_context(|| format!("way in '{path}', repetition {}", run + 1))?;
            eprintln!("{path} {}: {measured}", run + 1);
            runs.push(measured);
            std::fs::remove_dir_all(&data)?;
        }
        report.add(path, runs);
    }
    println!("{report}");
    Ok(())
}
