//! How each peer is started: its command and its configuration. Everything listens on loopback
//! only, and reports to nobody.

use super::installed;
use anyhow::{Context, Result};
use marigram_lab_drivers::process::Program;
use std::path::{Path, PathBuf};

/// Version of QuestDB that is installed.
pub(super) const QUESTDB: &str = "9.3.4";

/// Name of QuestDB's jar.
pub(super) fn jar() -> String {
    format!("questdb-{QUESTDB}.jar")
}

/// Ports of a QuestDB instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuestDbPorts {
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
    pub(super) fn around(http: u16) -> Result<Self> {
        let room = || format!("port {http} leaves no room for QuestDB's other ports");
        Ok(Self {
            http,
            ilp: http.checked_add(9).with_context(room)?,
            postgres: http.checked_sub(188).with_context(room)?,
            min_http: http.checked_add(3).with_context(room)?,
        })
    }
}

/// An instance of InfluxDB on `port`, everything it keeps under `data`. `memory_bytes` bounds its
/// write cache; `None`: no bound.
pub fn influxdb(
    folder: &Path,
    data: &Path,
    port: u16,
    memory_bytes: Option<u64>,
) -> Result<Program> {
    let home = installed(folder, "influxdb")?;
    let data = std::path::absolute(data)?;
    let file = data.join("influxdb.conf");
    std::fs::write(&file, influxdb_conf(&data, port, memory_bytes))
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
/// and the write cache, which would refuse rows; no logging of requests; and a shard that has not been
/// written to for two seconds (instead of ten minutes and four hours) is flushed and compacted,
/// since there is no command for it.
fn influxdb_conf(data: &Path, port: u16, memory_bytes: Option<u64>) -> String {
    let data = data.display();
    // Half of it: a snapshot of the cache is written while the next one fills.
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

/// An instance of VictoriaMetrics on `port`, everything it keeps under `data`. `memory_bytes` is
/// what it may believe the machine has: it takes 60 % of that for caches, as by default.
pub fn victoria_metrics(
    folder: &Path,
    data: &Path,
    port: u16,
    memory_bytes: Option<u64>,
) -> Result<Program> {
    let home = installed(folder, "victoriametrics")?;
    let data = std::path::absolute(data)?;
    let mut line = vec![
        home.join("usr/bin/victoria-metrics").display().to_string(),
        format!("-storageDataPath={}", data.join("storage").display()),
        format!("-httpListenAddr=127.0.0.1:{port}"),
    ];
    line.extend(VICTORIA_METRICS.map(str::to_owned));
    line.extend(memory_bytes.map(|bytes| format!("-memory.allowedBytes={}", bytes / 10 * 6)));
    Ok(program(line, &data))
}

/// Settings that differ from VictoriaMetrics' defaults.
const VICTORIA_METRICS: [&str; 12] = [
    // One month otherwise, and older rows are refused.
    "-retentionPeriod=100y",
    // Nothing else in a table's or a field's name has a colon, so `a_b` + `c` is not `a` + `b_c`.
    "-influxMeasurementFieldSeparator=:",
    // A row that is sent twice counts once, as it does everywhere else.
    "-dedup.minScrapeInterval=1ms",
    // Answers come from data, not from earlier answers.
    "-search.disableCache",
    // The newest rows are not smoothed away.
    "-search.maxStepForPointsAdjustment=1ms",
    // Bounds that would refuse a question.
    "-search.maxUniqueTimeseries=100000000",
    "-search.maxSamplesPerQuery=1000000000000",
    "-search.maxSamplesPerSeries=1000000000",
    "-search.maxPointsPerTimeseries=100000000",
    "-search.maxQueryLen=64MiB",
    "-search.maxQueryDuration=10m",
    "-search.maxQueueDuration=10m",
];

/// An instance of QuestDB, everything it keeps under `data`.
pub fn questdb(folder: &Path, data: &Path, ports: QuestDbPorts) -> Result<Program> {
    let home = installed(folder, "questdb")?;
    let data = std::path::absolute(data)?;
    let conf = data.join("conf");
    std::fs::create_dir_all(&conf).with_context(|| format!("making {}", conf.display()))?;
    let file = conf.join("server.conf");
    std::fs::write(&file, questdb_conf(ports))
        .with_context(|| format!("writing {}", file.display()))?;
    let line = [
        "java".to_owned(),
        "-Xmx4g".to_owned(),
        "-cp".to_owned(),
        home.join(jar()).display().to_string(),
        "io.questdb.ServerMain".to_owned(),
        "-d".to_owned(),
        data.display().to_string(),
        // It does not end with the terminal that started it.
        "-n".to_owned(),
    ];
    Ok(program(line, &data))
}

fn questdb_conf(ports: QuestDbPorts) -> String {
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

/// The interpreter of the virtual environment in which `package` (`duckdb`, `chdb`) is installed.
pub fn python(folder: &Path, package: &str) -> Result<PathBuf> {
    Ok(installed(folder, package)?.join("bin/python"))
}

/// `line`, run in `data`, with its log there.
pub(super) fn program(line: impl Into<Vec<String>>, data: &Path) -> Program {
    Program {
        line: line.into(),
        environment: Vec::new(),
        folder: data.to_path_buf(),
        log: data.join("log"),
        cores: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_with(name: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join(name)).expect("a folder");
        std::fs::write(folder.path().join(name).join("version"), "1").expect("a file");
        folder
    }

    #[test]
    fn influxdb_listens_on_loopback_and_reports_nothing() {
        let folder = folder_with("influxdb");
        let data = tempfile::tempdir().expect("a folder");
        let program = influxdb(folder.path(), data.path(), 8001, Some(1 << 30)).expect("installed");
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

    #[test]
    fn victoria_metrics_takes_its_settings_as_arguments() {
        let folder = folder_with("victoriametrics");
        let data = Path::new("/nowhere");
        let program = victoria_metrics(folder.path(), data, 8002, Some(1000)).expect("installed");
        let has = |argument: &str| program.line.iter().any(|part| part == argument);
        assert!(has("-httpListenAddr=127.0.0.1:8002"));
        assert!(has("-storageDataPath=/nowhere/storage"));
        assert!(has("-memory.allowedBytes=600"));
    }

    #[test]
    fn questdb_binds_every_port_to_loopback() {
        let folder = folder_with("questdb");
        let data = tempfile::tempdir().expect("a folder");
        let ports = QuestDbPorts::around(9000).expect("room");
        assert_eq!(
            (ports.ilp, ports.postgres, ports.min_http),
            (9009, 8812, 9003)
        );
        questdb(folder.path(), data.path(), ports).expect("installed");
        let text = std::fs::read_to_string(data.path().join("conf/server.conf")).expect("a file");
        assert_eq!(text.matches("=127.0.0.1:").count(), 4, "{text}");
        assert!(text.contains("telemetry.enabled=false\n"), "{text}");
        QuestDbPorts::around(100).expect_err("no room below");
    }
}
