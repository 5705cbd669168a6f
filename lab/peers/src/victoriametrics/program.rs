//! How VictoriaMetrics is installed and started: on loopback only.

use crate::install::{Peer, PeerServer, debian, installed, program, run};
use anyhow::Result;
use marigram_lab_drivers::process::Program;
use std::path::Path;
use std::process::Command;

/// VictoriaMetrics in the list of peers.
pub const PEER: Peer = Peer {
    name: "victoriametrics",
    about: "VictoriaMetrics, from Debian; port 8428",
    install: |home| {
        let version = debian(home, "victoria-metrics")?;
        run(Command::new(home.join("usr/bin/victoria-metrics")).arg("-version"))?;
        Ok(version)
    },
    server: Some(PeerServer {
        port: 8428,
        program: |folder, data, port| server(folder, data, port, None),
    }),
};

/// An instance on `port`, with all its files under `data`. Of a machine with `memory_bytes` it would
/// use 60 % for caches by default, so it is told to use as much.
pub(super) fn server(
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
    line.extend(SETTINGS.map(str::to_owned));
    line.extend(memory_bytes.map(|bytes| format!("-memory.allowedBytes={}", bytes / 10 * 6)));
    Ok(program(line, &data))
}

/// Settings that differ from the defaults.
const SETTINGS: [&str; 12] = [
    // The default is one month, and older rows are refused.
    "-retentionPeriod=100y",
    // Names of tables and fields contain no colon, so `a_b` + `c` differs from `a` + `b_c`.
    "-influxMeasurementFieldSeparator=:",
    // A row that is sent twice counts once, as it does in other databases.
    "-dedup.minScrapeInterval=1ms",
    // Answers come from data, not from earlier answers.
    "-search.disableCache",
    // By default, the newest rows would be adjusted away.
    "-search.maxStepForPointsAdjustment=1ms",
    // By default, these bounds would refuse some questions.
    "-search.maxUniqueTimeseries=100000000",
    "-search.maxSamplesPerQuery=1000000000000",
    "-search.maxSamplesPerSeries=1000000000",
    "-search.maxPointsPerTimeseries=100000000",
    "-search.maxQueryLen=64MiB",
    "-search.maxQueryDuration=10m",
    "-search.maxQueueDuration=10m",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::folder_with;

    #[test]
    fn victoria_metrics_takes_its_settings_as_arguments() {
        let folder = folder_with("victoriametrics");
        let data = Path::new("/nowhere");
        let program = server(folder.path(), data, 8002, Some(1000)).expect("installed");
        let has = |argument: &str| program.line.iter().any(|part| part == argument);
        assert!(has("-httpListenAddr=127.0.0.1:8002"));
        assert!(has("-storageDataPath=/nowhere/storage"));
        assert!(has("-memory.allowedBytes=600"));
    }
}
