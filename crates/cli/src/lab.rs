//! `marigram lab`: the laboratory with its targets, which are the library in this process, Marigram's
//! server, and the peers.

mod embedded;

use anyhow::Result;
use clap::{Args, Subcommand};
use marigram_lab_peers::command::{Action, default_folder};
use std::path::PathBuf;
use std::process::ExitCode;

/// Measure Marigram and its peers.
#[derive(Args)]
pub(crate) struct Lab {
    /// Folder that peers are installed in [default: ~/.local/share/marigram/peers]
    #[arg(long, global = true, env = "MARIGRAM_PEERS")]
    peers: Option<PathBuf>,
    #[command(subcommand)]
    command: LabCommand,
}

#[derive(Subcommand)]
enum LabCommand {
    #[command(flatten)]
    Studies(marigram_lab::command::Command),
    /// Show the peers, install and start one, or stop it
    Peers {
        #[command(subcommand)]
        action: Option<Action>,
    },
}

impl Lab {
    /// Runs the command.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let folder = match self.peers {
            Some(folder) => std::path::absolute(folder)?,
            None => default_folder()?,
        };
        match self.command {
            LabCommand::Studies(command) => command.run(&kinds(), &folder)?,
            LabCommand::Peers { action } => marigram_lab_peers::command::run(folder, action)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Every kind of target.
fn kinds() -> Vec<marigram_lab::target::Kind> {
    let mut kinds = vec![embedded::KIND, marigram_lab::null::KIND];
    kinds.extend(marigram_lab_drivers::kinds());
    kinds.extend(marigram_lab_peers::kinds());
    kinds
}
