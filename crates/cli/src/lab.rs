//! `marigram lab`: the laboratory, with the embedded library as an additional target.

mod embedded;

use anyhow::Result;
use clap::Args;
use std::process::ExitCode;

/// Measure Marigram and its peers.
#[derive(Args)]
pub struct Lab {
    #[command(flatten)]
    lab: marigram_lab::command::Lab,
}

impl Lab {
    /// Runs the command.
    pub fn run(self) -> Result<ExitCode> {
        self.lab.run(&[embedded::KIND])?;
        Ok(ExitCode::SUCCESS)
    }
}
