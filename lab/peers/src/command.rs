//! `marigram lab peers`: installs, starts and stops peers.

use crate::manage::{PeerState, Peers};
use anyhow::{Context, Result};
use clap::Subcommand;
use marigram_lab::command::list::entry;
use std::path::PathBuf;

/// What `marigram lab peers` does; without an action, it lists the peers.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Install a peer from its package registry, and start it on loopback
    Up {
        /// Its name
        name: String,
    },
    /// Install a peer from its package registry; `run` starts instances of its own
    Install {
        /// Its name
        name: String,
    },
    /// Stop a peer that `up` started
    Down {
        /// Its name
        name: String,
    },
}

/// The folder that peers are installed in unless the command line names another. Fails without a
/// home directory.
pub fn default_folder() -> Result<PathBuf> {
    let data = match std::env::var_os("XDG_DATA_HOME").filter(|value| !value.is_empty()) {
        Some(data) => PathBuf::from(data),
        None => std::env::home_dir()
            .context("there is no home directory: say where peers go with --peers")?
            .join(".local/share"),
    };
    Ok(data.join("marigram/peers"))
}

/// Does `action` with the peers in `folder`, or lists them.
pub fn run(folder: PathBuf, action: Option<Action>) -> Result<()> {
    let peers = Peers::new(folder);
    match action {
        None => print!("{}", list(&peers.list())),
        Some(Action::Install { name }) => {
            peers.install(&name)?;
            println!("{name} is installed");
        }
        Some(Action::Up { name }) => {
            let running = peers.up(&name)?;
            match running.pid {
                Some(pid) => println!("{name} answers at {} (process {pid})", running.address),
                None => println!("{name} is installed; it runs in its client's process"),
            }
        }
        Some(Action::Down { name }) => {
            let was_running = peers.down(&name)?;
            let state = if was_running {
                "is stopped"
            } else {
                "was not running"
            };
            println!("{name} {state}");
        }
    }
    Ok(())
}

fn list(peers: &[PeerState]) -> String {
    let mut out = String::new();
    for peer in peers {
        let state = match (&peer.version, &peer.running) {
            (None, _) => "not installed".to_owned(),
            (Some(version), None) => format!("{version}, installed"),
            (Some(version), Some(running)) => format!("{version}, runs at {}", running.address),
        };
        entry(&mut out, peer.name, &format!("{} ({state})", peer.about));
    }
    out
}
