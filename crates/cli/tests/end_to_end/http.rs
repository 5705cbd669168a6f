//! The HTTP interfaces: line protocol in, SQL out, health and metrics.

use crate::server::{MARIGRAM, ServeProcess};
use flate2::{Compression, write::GzEncoder};
use std::collections::BTreeSet;
use std::io::Write;
use std::process::Command;

#[test]
fn line_protocol_goes_in_and_sql_comes_out() {
    let dir = tempfile::tempdir().unwrap();
    let server = ServeProcess::start(dir.path(), &[]);
    assert_eq!(server.request("GET", "/ping", &[], b"").status, 204);

    let answer = server.write("pump,site=north,unit=7 rpm=900i,temp=4.5 1000000000\n");
    assert_eq!((answer.status, answer.body.as_str()), (204, ""));

    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(b"pump,site=south rpm=901i 2\npump,site=south rpm=902i 3")
        .unwrap();
    let body = gzip.finish().unwrap();
    let target = "/api/v2/write?bucket=db&precision=s";
    assert_eq!(
        server
            .request("POST", target, &[("Content-Encoding", "gzip")], &body)
            .status,
        204
    );

    let table = server.csv("SELECT time, site, unit, rpm, temp FROM pump ORDER BY time");
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[0], "time,site,unit,rpm,temp");
    assert_eq!(lines.len(), 4, "{table}");
    assert!(lines[1].ends_with(",north,7,900,4.5"), "{table}");
    assert!(lines[3].ends_with(",south,,902,"), "{table}");

    let json = server.sql(
        "SELECT count(*) AS n, max(rpm) AS rpm FROM pump",
        "application/json",
    );
    assert_eq!(
        json.json()["rows"],
        serde_json::json!([[3, 902]]),
        "{}",
        json.body
    );

    let arrow = server.sql("SELECT * FROM pump", "application/vnd.apache.arrow.stream");
    assert_eq!(arrow.status, 200);
    let parquet = server.sql("SELECT * FROM pump", "application/vnd.apache.parquet");
    assert!(parquet.body.starts_with("PAR1") && parquet.body.ends_with("PAR1"));

    let health = server.request("GET", "/health", &[], b"");
    assert_eq!(
        (health.status, &health.json()["status"]),
        (200, &serde_json::json!("pass"))
    );
    let metrics = server.request("GET", "/metrics", &[], b"").body;
    assert!(
        metrics.contains("marigram_rows_written_total 3"),
        "{metrics}"
    );
}

#[test]
fn a_clean_end_is_quick_and_a_second_process_is_kept_out() {
    let dir = tempfile::tempdir().unwrap();
    let server = ServeProcess::start(dir.path(), &[]);
    assert_eq!(server.write("m,host=a v=1 1\nm,host=b v=2 2").status, 204);

    let second = Command::new(MARIGRAM)
        .args([
            "serve",
            "--http",
            "127.0.0.1:0",
            "--postgres",
            "127.0.0.1:0",
            "--data",
        ])
        .arg(dir.path())
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&second.stderr);
    assert!(!second.status.success());
    assert!(
        message.contains("LOCK") || message.contains("another process"),
        "{message}"
    );

    assert!(server.terminate().success(), "SIGTERM ends with status 0");
    let server = ServeProcess::start(dir.path(), &[]);
    assert_eq!(
        server.csv("SELECT host, v FROM m ORDER BY host"),
        "host,v\na,1.0\nb,2.0\n"
    );
    let metrics = server.request("GET", "/metrics", &[], b"").body;
    assert!(
        metrics.contains("marigram_recovery_wal_bytes 0"),
        "nothing to replay: {metrics}"
    );
}

/// The type, name and labels of each metric: `counter marigram_rows_total{database,table}`.
fn metric_shapes(text: &str) -> BTreeSet<String> {
    let mut kind = "";
    let mut shapes = BTreeSet::new();
    for line in text.lines() {
        if let Some(named) = line.strip_prefix("# TYPE ") {
            kind = named.rsplit(' ').next().expect(line);
        } else if !line.starts_with('#') {
            let (metric, _) = line.rsplit_once(' ').expect(line);
            let (name, labels) = metric.split_once('{').unwrap_or((metric, ""));
            let labels = labels
                .split("\",")
                .filter_map(|label| label.split_once('='));
            let labels: Vec<&str> = labels.map(|(label, _)| label).collect();
            shapes.insert(format!("{kind} {name}{{{}}}", labels.join(",")));
        }
    }
    shapes
}

#[test]
fn metrics_keep_their_names_and_labels() {
    let dir = tempfile::tempdir().unwrap();
    let server = ServeProcess::start(dir.path(), &[]);
    assert_eq!(server.write("m,host=a v=1 1").status, 204);
    server.csv("SELECT * FROM m");
    let metrics = server.request("GET", "/metrics", &[], b"").body;
    assert!(metrics.ends_with("# EOF\n"), "{metrics}");
    let shapes = metric_shapes(&metrics);
    let lost: Vec<&str> = include_str!("metrics.txt")
        .lines()
        .filter(|line| !line.is_empty() && !shapes.contains(*line))
        .collect();
    assert!(lost.is_empty(), "{lost:#?} are not in {shapes:#?}");
}
