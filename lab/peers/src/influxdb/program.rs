//! How InfluxDB is installed and started: on loopback only, without reports to its makers.

use crate::install::{Peer, PeerServer, debian, installed, program, run};
use anyhow::{Context, Result};
use marigram_lab_drivers::process::Program;
use std::path::Path;
use std::process::Command;

/// InfluxDB in the list of peers.
pub const PEER: Peer = Peer {
    name: "influxdb",
    about: "InfluxDB 1.x, from Debian; port 8086",
    install: |home| {
        let version = debian(home, "influxdb")?;
        run(Command::new(home.join("usr/bin/influxd")).arg("version"))?;
        Ok(version)
    },
    server: Some(PeerServer {
        port: 8086,
        program: |folder, data, port| server(folder, data, port, None),
    }),
};

/// An instance on `port`, with all its files under `data`. `memory_bytes` bounds its write cache;
/// `None`: no bound.
pub(super) fn server(
    folder: &Path,
    data: &Path,
    port: u16,
    memory_bytes: Option<u64>,
) -> Result<Program> {
    let home = installed(folder, "influxdb")?;
    let data = std::path::absolute(data)?;
    let file = data.join("influxdb.conf");
    std::fs::write(&file, configuration(&data, port, memory_bytes))
        .with_context(|| format!("writing {}", file.display()))?;
    let line = [
        home.join("usr/bin/influxd").display().to_string(),
        "run".to_owned(),
        "-config".to_owned(),
        file.display().to_string(),
    ];
    Ok(program(line, &data))
}

/// Settings that differ from InfluxDB's defaults: folders and loopback; no bounds on series, bodies
/// and the write cache, which would refuse rows; no log of requests. InfluxDB has no command to flush
/// or compact, so it flushes and compacts a shard two seconds after the last write, not ten minutes
/// and four hours after it.
fn configuration(data: &Path, port: u16, memory_bytes: Option<u64>) -> String {
    let data = data.display();
    // Half of the memory, because one snapshot of the cache is written while the next one fills.
    let cache_bytes = memory_bytes.map_or(0, |bytes| bytes / 2);
    format!(
        r#"reporting-disabled = true
bind-address = "127.0.0.1:0"

[meta]
dir = "{data}/meta"

[data]
dir = "{data}/data"
wal-dir = "{data}/wal"
query-log-enabled = false
cache-max-memory-size = {cache_bytes}
cache-snapshot-write-cold-duration = "2s"
compact-full-write-cold-duration = "2s"
max-series-per-database = 0
max-values-per-tag = 0

[coordinator]
write-timeout = "60s"

[http]
bind-address = "127.0.0.1:{port}"
log-enabled = false
max-body-size = 0

[monitor]
store-enabled = false

[subscriber]
enabled = false

[continuous_queries]
enabled = false
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::folder_with;

    #[test]
    fn influxdb_listens_on_loopback_and_reports_nothing() {
        let folder = folder_with("influxdb");
        let data = tempfile::tempdir().expect("a folder");
        let program = server(folder.path(), data.path(), 8001, Some(1 << 30)).expect("installed");
        assert!(program.line[0].ends_with("/influxdb/usr/bin/influxd"));
        let text = std::fs::read_to_string(&program.line[3]).expect("a file");
        let conf: toml::Table = text.parse().expect("valid TOML");
        assert_eq!(conf["reporting-disabled"].as_bool(), Some(true));
        assert_eq!(
            conf["http"]["bind-address"].as_str(),
            Some("127.0.0.1:8001")
        );
        assert_eq!(
            conf["data"]["cache-max-memory-size"].as_integer(),
            Some(1 << 29)
        );
        assert_eq!(
            conf["data"]["max-series-per-database"].as_integer(),
            Some(0)
        );
    }
}
