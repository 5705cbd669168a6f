//! `soak`: runs the mixed load for the requested time; see the library.

#![allow(clippy::print_stdout, reason = "a command line prints")]

use anyhow::{Result, bail};
use clap::Parser;
use marigram_soak::{SoakPlan, run};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Loads a server for a while, in a control group if possible, and watches its memory.
#[derive(Parser)]
struct Arguments {
    /// The binary under test
    #[arg(long, default_value = "target/release/marigram")]
    binary: PathBuf,
    /// Data directory of the server; must be new
    #[arg(long)]
    data: PathBuf,
    /// Folder for samples.csv, soak.svg and summary.txt
    #[arg(long)]
    out: Option<PathBuf>,
    /// The server's `memory_limit`, MiB
    #[arg(long, default_value_t = 256)]
    limit_mib: usize,
    /// How long the load lasts
    #[arg(long, default_value_t = 60, env = "MARIGRAM_SOAK_SECONDS")]
    seconds: u64,
    /// Rows per second that the writers of the fleet try to send
    #[arg(long, default_value_t = 20_000)]
    rows_per_second: usize,
    /// Most series that the high-cardinality writer creates
    #[arg(long, default_value_t = 400_000)]
    series: usize,
    /// Further arguments of `marigram serve`
    #[arg(last = true)]
    serve: Vec<String>,
}

fn main() -> Result<ExitCode> {
    let given = Arguments::parse();
    let occupied = std::fs::read_dir(&given.data).is_ok_and(|mut dir| dir.next().is_some());
    if occupied {
        bail!(
            "{} is not empty: give a new directory",
            given.data.display()
        );
    }
    let verdict = run(&SoakPlan {
        binary: given.binary,
        data: given.data,
        out: given.out,
        limit_bytes: given.limit_mib << 20,
        duration: Duration::from_secs(given.seconds),
        rows_per_second: given.rows_per_second,
        series_max: given.series,
        arguments: given.serve,
    })?;
    println!("{verdict}");
    let faults = verdict.faults();
    Ok(if faults.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
