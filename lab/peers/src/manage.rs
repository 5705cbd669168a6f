//! The peers in a folder: which ones are installed, and instances that outlive the command that started
//! them. The folder's layout is described in [`crate::install`].

mod background;

use crate::catalog::PEERS;
use crate::install::{Peer, PeerServer, version};
use anyhow::{Context, Result, ensure};
use marigram_lab_drivers::wait::wait_until;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

/// How long a peer that `up` starts may take to listen.
const UP_MAX: Duration = Duration::from_mins(1);

/// How long a connection to loopback may take.
const CONNECT_MAX: Duration = Duration::from_secs(1);

/// A folder of installed peers.
#[derive(Clone, Debug)]
pub struct Peers {
    folder: PathBuf,
}

/// A peer, as `lab peers` lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerState {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is and where it comes from, in a line.
    pub about: &'static str,
    /// Its version, if it is installed.
    pub version: Option<String>,
    /// The instance that `up` started, while it runs.
    pub running: Option<Running>,
}

/// An instance that `up` started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// Its process; `None` for a peer that runs in its client's process.
    pub pid: Option<u32>,
    /// Where it listens, `127.0.0.1:8086`; empty for a peer that runs in its client's process.
    pub address: String,
}

fn find(name: &str) -> Result<Peer> {
    let peer = PEERS.into_iter().find(|peer| peer.name == name);
    peer.with_context(|| {
        let names = PEERS.map(|peer| peer.name).join(", ");
        format!("no peer is called {name}; there are {names}")
    })
}

impl Peers {
    /// The peers in `folder`, which does not need to exist yet.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// Every peer that can be installed.
    #[must_use]
    pub fn list(&self) -> Vec<PeerState> {
        let state = |peer: Peer| PeerState {
            name: peer.name,
            about: peer.about,
            version: version(&self.folder, peer.name),
            running: background::running(&self.folder.join(peer.name)),
        };
        PEERS.into_iter().map(state).collect()
    }

    /// Installs `name` unless it is installed. Says on stderr which commands it runs.
    pub fn install(&self, name: &str) -> Result<()> {
        let peer = find(name)?;
        if version(&self.folder, peer.name).is_some() {
            return Ok(());
        }
        let home = self.folder.join(peer.name);
        std::fs::create_dir_all(&home).with_context(|| format!("making {}", home.display()))?;
        let home = std::path::absolute(&home)?;
        let version = (peer.install)(&home)
            .with_context(|| format!("installing {} into {}", peer.name, home.display()))?;
        std::fs::write(home.join("version"), version).context("writing the version")
    }

    /// Installs `name` if necessary, and starts it on its usual ports; it outlives this process. An
    /// instance that runs already stays as it is.
    pub fn up(&self, name: &str) -> Result<Running> {
        let peer = find(name)?;
        self.install(name)?;
        match peer.server {
            Some(server) => self.start(name, server, server.port),
            None => Ok(Running {
                pid: None,
                address: String::new(),
            }),
        }
    }

    /// As [`Peers::up`], but on `port`; further ports of the peer keep their distance from it.
    pub fn up_at(&self, name: &str, port: u16) -> Result<Running> {
        let server = find(name)?.server;
        let server = server
            .with_context(|| format!("{name} runs in its client's process and has no port"))?;
        self.install(name)?;
        self.start(name, server, port)
    }

    fn start(&self, name: &str, server: PeerServer, port: u16) -> Result<Running> {
        let home = std::path::absolute(self.folder.join(name))?;
        if let Some(running) = background::running(&home) {
            return Ok(running);
        }
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        ensure!(
            TcpStream::connect_timeout(&address, CONNECT_MAX).is_err(),
            "somebody listens on {address} already: choose another port"
        );
        let data = home.join("data");
        std::fs::create_dir_all(&data).with_context(|| format!("making {}", data.display()))?;
        let mut program = (server.program)(&self.folder, &data, port)?;
        program.log = home.join("log");
        let running = background::start(&home, &program, &address.to_string())?;
        let silent = || {
            let end = program.log_end();
            let log = program.log.display();
            format!("{name} does not listen on {address}; the end of {log}: {end}")
        };
        let listens = wait_until(UP_MAX, Duration::from_millis(20), silent, || {
            let listens = TcpStream::connect_timeout(&address, CONNECT_MAX).is_ok();
            ensure!(
                listens || background::running(&home).is_some(),
                "{}",
                silent()
            );
            Ok(listens)
        });
        if listens.is_err() {
            background::stop(&home)?;
        }
        listens.map(|()| running)
    }

    /// Stops the instance that `up` started, and keeps its data. Returns whether there was one.
    pub fn down(&self, name: &str) -> Result<bool> {
        let peer = find(name)?;
        background::stop(&self.folder.join(peer.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_folder_has_no_peers_and_errors_say_what_to_do() {
        let folder = tempfile::tempdir().expect("a folder");
        let peers = Peers::new(folder.path());
        let list = peers.list();
        assert_eq!(list.len(), PEERS.len());
        let idle = |peer: &PeerState| peer.version.is_none() && peer.running.is_none();
        assert!(list.iter().all(idle));
        assert!(!peers.down("influxdb").expect("nothing to stop"));
        let error = peers.up("influx").expect_err("no such peer").to_string();
        assert!(error.contains("there are influxdb, "), "{error}");
    }

    #[test]
    fn a_version_file_makes_a_peer_installed() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = folder.path().join("duckdb");
        std::fs::create_dir(&home).expect("a folder");
        std::fs::write(home.join("version"), "2.0.0\n").expect("a file");
        let peers = Peers::new(folder.path());
        peers.install("duckdb").expect("nothing to do");
        let running = peers.up("duckdb").expect("nothing to start");
        assert_eq!(running.pid, None);
        assert_eq!(version(folder.path(), "duckdb").as_deref(), Some("2.0.0"));
        peers.up_at("duckdb", 5000).expect_err("it has no port");
    }
}
