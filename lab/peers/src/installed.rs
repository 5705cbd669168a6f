//! Peers: installed from package registries into a folder of their own, and started on loopback.
//!
//! ```text
//! FOLDER/NAME/version   written last, when the peer was seen to work: an installation without it
//!                       is begun again
//! FOLDER/NAME/data      data of the instance that `up` starts; drivers bring folders of their own
//! FOLDER/NAME/pid       process of that instance and its start time; FOLDER/NAME/log what it says
//! ```
//!
//! Nothing is installed into the system, and every setting of a registry (mirrors, credentials) is
//! the user's own, because their tools do the fetching: `apt-get`, `pip`, `mvn`.

mod background;
mod install;
mod postgres;
mod programs;
mod tool;

pub use postgres::postgresql;
pub use programs::{QuestDbPorts, influxdb, python, questdb, victoria_metrics};

use anyhow::{Context, Result, bail, ensure};
use marigram_lab_drivers::process::{Program, end_of};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a peer that `up` starts may take to listen.
const UP_MAX: Duration = Duration::from_mins(1);

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
    /// Its version, when it is installed.
    pub version: Option<String>,
    /// The instance that `up` started, while it lives.
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

/// What the laboratory knows about a peer.
#[derive(Clone, Copy, Debug)]
struct Peer {
    name: &'static str,
    about: &'static str,
    /// Its usual port; `None`: it runs in its client's process.
    port: Option<u16>,
}

const PEERS: [Peer; 6] = [
    Peer {
        name: "influxdb",
        about: "InfluxDB 1.x, from Debian; port 8086",
        port: Some(8086),
    },
    Peer {
        name: "victoriametrics",
        about: "VictoriaMetrics, from Debian; port 8428",
        port: Some(8428),
    },
    Peer {
        name: "questdb",
        about: "QuestDB, from Maven Central, needs Java 17; ports 9000, 9003, 9009, 8812",
        port: Some(9000),
    },
    Peer {
        name: "duckdb",
        about: "DuckDB, from PyPI, runs in its client's process",
        port: None,
    },
    Peer {
        name: "chdb",
        about: "ClickHouse as a library, from PyPI, runs in its client's process",
        port: None,
    },
    Peer {
        name: "postgresql",
        about: "PostgreSQL, as the system has it; port 5432",
        port: Some(5432),
    },
];

fn find(name: &str) -> Result<Peer> {
    let found = PEERS.into_iter().find(|peer| peer.name == name);
    found.with_context(|| {
        let names = PEERS.map(|peer| peer.name).join(", ");
        format!("no peer is called {name}; there are {names}")
    })
}

/// Version of `name` as installed in `folder`; `None` when it is not installed.
#[must_use]
pub fn version(folder: &Path, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(folder.join(name).join("version")).ok()?;
    Some(text.trim().to_owned())
}

/// The folder of the peer `name`; fails, saying what to do, unless it is installed in `folder`.
pub fn installed(folder: &Path, name: &str) -> Result<PathBuf> {
    ensure!(
        version(folder, name).is_some(),
        "{name} is not installed in {}: run `marigram lab peers install {name}`",
        folder.display()
    );
    // Programs run in folders of their own, where a relative path would lead nowhere.
    let home = folder.join(name);
    std::path::absolute(&home).with_context(|| format!("the path {}", home.display()))
}

impl Peers {
    /// The peers in `folder`, which need not exist yet.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// Every peer that the laboratory knows.
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

    /// Installs `name` unless it is installed already; says on stderr which commands it runs.
    pub fn install(&self, name: &str) -> Result<()> {
        let peer = find(name)?;
        if version(&self.folder, peer.name).is_some() {
            return Ok(());
        }
        let home = self.folder.join(peer.name);
        std::fs::create_dir_all(&home).with_context(|| format!("making {}", home.display()))?;
        let home = std::path::absolute(&home)?;
        let version = install::install(peer.name, &home)
            .with_context(|| format!("installing {} into {}", peer.name, home.display()))?;
        std::fs::write(home.join("version"), version).context("keeping the version")
    }

    /// Installs `name` if need be and starts it on its usual ports; it outlives this process. An
    /// instance that runs already is left alone.
    pub fn up(&self, name: &str) -> Result<Running> {
        let port = find(name)?.port;
        self.start(name, port)
    }

    /// As [`Peers::up`], but on `port`; further ports of the peer keep their distance to it.
    pub fn up_at(&self, name: &str, port: u16) -> Result<Running> {
        ensure!(
            find(name)?.port.is_some(),
            "{name} runs in its client's process and has no port"
        );
        self.start(name, Some(port))
    }

    fn start(&self, name: &str, port: Option<u16>) -> Result<Running> {
        self.install(name)?;
        let home = std::path::absolute(self.folder.join(name))?;
        if let Some(running) = background::running(&home) {
            return Ok(running);
        }
        let Some(port) = port else {
            return Ok(Running {
                pid: None,
                address: String::new(),
            });
        };
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        ensure!(
            TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_err(),
            "somebody listens on {address} already: choose another port"
        );
        let data = home.join("data");
        std::fs::create_dir_all(&data).with_context(|| format!("making {}", data.display()))?;
        let mut program = self.program(name, &data, port)?;
        program.log = home.join("log");
        let running = background::start(&home, &program, &address.to_string())?;
        let deadline = Instant::now() + UP_MAX;
        while TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_err() {
            let alive = background::running(&home).is_some();
            if !alive || Instant::now() > deadline {
                background::stop(&home)?;
                bail!(
                    "{name} does not listen on {address}; the end of {}: {}",
                    program.log.display(),
                    end_of(&program.log)
                );
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(running)
    }

    fn program(&self, name: &str, data: &Path, port: u16) -> Result<Program> {
        match name {
            "influxdb" => influxdb(&self.folder, data, port, None),
            "victoriametrics" => victoria_metrics(&self.folder, data, port, None),
            "questdb" => questdb(&self.folder, data, QuestDbPorts::around(port)?),
            "postgresql" => postgresql(&self.folder, data, port),
            _ => bail!("{name} is not a server"),
        }
    }

    /// Stops the instance that `up` started, and keeps its data; whether there was one.
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
        let error = python(folder.path(), "duckdb").expect_err("not installed");
        let error = error.to_string();
        assert!(
            error.contains("run `marigram lab peers install duckdb`"),
            "{error}"
        );
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
        let python = python(folder.path(), "duckdb").expect("installed");
        assert!(
            python.ends_with("duckdb/bin/python"),
            "{}",
            python.display()
        );
        peers.up_at("duckdb", 5000).expect_err("it has no port");
    }
}
