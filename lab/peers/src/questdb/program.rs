//! How QuestDB is installed and started: on loopback only, without reports to its makers.

use crate::install::{Peer, PeerServer, installed, program, run};
use anyhow::{Context, Result, ensure};
use marigram_lab_drivers::process::Program;
use std::path::Path;
use std::process::Command;

/// QuestDB in the list of peers.
pub const PEER: Peer = Peer {
    name: "questdb",
    about: "QuestDB, from Maven Central, needs Java 17; ports 9000, 9003, 9009, 8812",
    install,
    server: Some(PeerServer {
        port: 9000,
        program: |folder, data, port| server(folder, data, QuestDbPorts::around(port)?),
    }),
};

fn install(home: &Path) -> Result<String> {
    run(Command::new("java").arg("-version")).context("QuestDB needs Java 17")?;
    run(Command::new("mvn")
        .args(["-q", "dependency:copy"])
        .arg(format!("-Dartifact=org.questdb:questdb:{VERSION}"))
        .arg(format!("-DoutputDirectory={}", home.display()))
        .current_dir(home))?;
    let jar = home.join(jar());
    ensure!(jar.exists(), "mvn left no {}", jar.display());
    Ok(VERSION.to_owned())
}

/// Version of QuestDB that is installed.
const VERSION: &str = "9.3.4";

/// Name of QuestDB's jar.
fn jar() -> String {
    format!("questdb-{VERSION}.jar")
}

/// Ports of a QuestDB instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QuestDbPorts {
    /// HTTP: line protocol and SQL.
    pub http: u16,
    /// Line protocol over TCP.
    pub ilp: u16,
    /// PostgreSQL's protocol.
    pub postgres: u16,
    /// HTTP for health checks.
    pub min_http: u16,
}

impl QuestDbPorts {
    /// Ports at QuestDB's usual distances (9000, 9009, 8812, 9003) from `http`.
    fn around(http: u16) -> Result<Self> {
        let room = || format!("port {http} leaves no room for QuestDB's other ports");
        Ok(Self {
            http,
            ilp: http.checked_add(9).with_context(room)?,
            postgres: http.checked_sub(188).with_context(room)?,
            min_http: http.checked_add(3).with_context(room)?,
        })
    }
}

/// An instance on `ports`, with all its files under `data`.
pub(super) fn server(folder: &Path, data: &Path, ports: QuestDbPorts) -> Result<Program> {
    let home = installed(folder, "questdb")?;
    let data = std::path::absolute(data)?;
    let conf = data.join("conf");
    std::fs::create_dir_all(&conf).with_context(|| format!("making {}", conf.display()))?;
    let file = conf.join("server.conf");
    std::fs::write(&file, configuration(ports))
        .with_context(|| format!("writing {}", file.display()))?;
    let line = [
        "java".to_owned(),
        "-Xmx4g".to_owned(),
        "-cp".to_owned(),
        home.join(jar()).display().to_string(),
        "io.questdb.ServerMain".to_owned(),
        "-d".to_owned(),
        data.display().to_string(),
        // It survives the terminal that started it.
        "-n".to_owned(),
    ];
    Ok(program(line, &data))
}

fn configuration(ports: QuestDbPorts) -> String {
    let QuestDbPorts {
        http,
        ilp,
        postgres,
        min_http,
    } = ports;
    format!(
        "http.bind.to=127.0.0.1:{http}\n\
         http.min.net.bind.to=127.0.0.1:{min_http}\n\
         line.tcp.net.bind.to=127.0.0.1:{ilp}\n\
         pg.net.bind.to=127.0.0.1:{postgres}\n\
         telemetry.enabled=false\n\
         telemetry.disable.completely=true\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::folder_with;

    #[test]
    fn questdb_binds_every_port_to_loopback() {
        let folder = folder_with("questdb");
        let data = tempfile::tempdir().expect("a folder");
        let ports = QuestDbPorts::around(9000).expect("room");
        assert_eq!(
            (ports.ilp, ports.postgres, ports.min_http),
            (9009, 8812, 9003)
        );
        server(folder.path(), data.path(), ports).expect("installed");
        let text = std::fs::read_to_string(data.path().join("conf/server.conf")).expect("a file");
        assert_eq!(text.matches("=127.0.0.1:").count(), 4, "{text}");
        assert!(text.contains("telemetry.enabled=false\n"), "{text}");
        QuestDbPorts::around(100).expect_err("no room below");
    }
}
