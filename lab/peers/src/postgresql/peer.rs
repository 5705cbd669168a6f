//! How PostgreSQL is found and started: as the system has it, on loopback only.

use super::cluster::{Cluster, programs};
use crate::install::{Peer, PeerServer, installed, run};
use anyhow::Result;
use marigram_lab_drivers::process::Program;
use std::path::Path;
use std::process::Command;

/// PostgreSQL in the list of peers.
pub const PEER: Peer = Peer {
    name: "postgresql",
    about: "PostgreSQL, as the system has it; port 5432",
    install,
    server: Some(PeerServer {
        port: 5432,
        program: server,
    }),
};

fn install(home: &Path) -> Result<String> {
    let folder = programs(home.parent().unwrap_or(home))?;
    let version = run(Command::new(folder.join("postgres")).arg("--version"))?;
    let version = version.trim().trim_start_matches("postgres (PostgreSQL) ");
    Ok(version.to_owned())
}

/// An instance on `port`, with its cluster under `data`; the user is `postgres`, without a password.
fn server(folder: &Path, data: &Path, port: u16) -> Result<Program> {
    installed(folder, "postgresql")?;
    let data = std::path::absolute(data)?;
    let cluster = Cluster::find(folder, &data, "cluster")?;
    cluster.init("postgres")?;
    Ok(cluster.program(port, &[], &data.join("log")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_installed_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = server(folder.path(), folder.path(), 1).expect_err("not installed");
        assert!(
            error.to_string().contains("peers install postgresql"),
            "{error}"
        );
    }
}
