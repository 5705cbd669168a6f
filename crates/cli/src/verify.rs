//! `marigram verify`: reads every byte of a data directory, or of a folder of backups, and checks
//! every checksum.

use crate::terminal;
use anyhow::{Result, bail};
use clap::Args;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// Check a data directory or a folder of backups.
#[derive(Args)]
pub(crate) struct Verify {
    /// Data directory, or folder of backups
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

impl Verify {
    /// Runs the command. Exits with status 1 if something is damaged.
    pub(crate) fn run(self) -> Result<ExitCode> {
        run(&self.dir)
    }
}

/// Verifies a directory and reports the result.
pub(crate) fn run(dir: &Path) -> Result<ExitCode> {
    if !dir.is_dir() {
        bail!("there is no directory {}", dir.display());
    }
    let begin = Instant::now();
    let mut damaged = 0u64;
    marigram::verify(dir, &mut |message| {
        damaged += 1;
        outln!("{message}");
    })?;
    let (files, bytes) = size(dir);
    let read = format!(
        "{} in {} read in {}",
        terminal::bytes(bytes),
        terminal::counted(files, "file"),
        terminal::span(begin.elapsed())
    );
    if damaged == 0 {
        outln!("{read}: everything is whole");
        return Ok(ExitCode::SUCCESS);
    }
    outln!("{read}: {} damaged", terminal::counted(damaged, "place"));
    erroutln!(
        "Rows elsewhere stay readable. Restore a damaged file from a backup, or delete the \
             affected time range."
    );
    Ok(ExitCode::FAILURE)
}

/// Files below a directory and their bytes.
pub(crate) fn size(dir: &Path) -> (u64, u64) {
    let Ok(entries) = fs::read_dir(dir) else {
        return (0, 0);
    };
    entries
        .flatten()
        .fold((0, 0), |(files, bytes), entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => {
                let (more_files, more_bytes) = size(&entry.path());
                (files + more_files, bytes + more_bytes)
            }
            Ok(metadata) => (files + 1, bytes + metadata.len()),
            Err(_) => (files, bytes),
        })
}
