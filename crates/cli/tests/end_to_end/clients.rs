//! Common clients: psql and curl. CI must have them; elsewhere, the test of a missing one is
//! skipped with a message.

use crate::server::ServeProcess;
use std::process::{Command, Stdio};

/// Whether `program` can be run; in CI it must be.
pub(crate) fn have(program: &str) -> bool {
    let found = Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok();
    assert!(
        found || std::env::var_os("CI").is_none(),
        "{program} must be installed in CI"
    );
    if !found {
        eprintln!("{program} is not installed: its test is skipped");
    }
    found
}

fn psql(server: &ServeProcess, arguments: &[&str]) -> String {
    let output = Command::new("psql")
        .args([
            "-X",
            "-h",
            "127.0.0.1",
            "-p",
            &server.postgres_port.to_string(),
        ])
        .args(["-U", "me", "-d", "db", "-v", "ON_ERROR_STOP=1"])
        .args(arguments)
        .output()
        .expect("psql runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "psql {arguments:?}: {text}{error}");
    text
}

#[test]
fn psql_describes_and_queries() {
    if !have("psql") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let server = ServeProcess::start(dir.path(), &[]);
    assert_eq!(
        server
            .write("pump,site=north rpm=900i,temp=4.5 1000000000")
            .status,
        204
    );
    assert!(psql(&server, &["-c", "\\dt"]).contains("pump"));
    assert!(psql(&server, &["-c", "\\d"]).contains("pump"));
    let columns = psql(&server, &["-c", "\\d pump"]);
    for column in ["time", "site", "rpm", "temp"] {
        assert!(columns.contains(column), "{columns}");
    }
    assert!(psql(&server, &["-c", "\\l"]).contains("db"));
    let rows = psql(&server, &["-At", "-c", "SELECT site, rpm, temp FROM pump"]);
    assert_eq!(rows, "north|900|4.5\n");
    psql(
        &server,
        &[
            "-c",
            "INSERT INTO pump (time, site, rpm) VALUES ('2024-01-01', 'south', 7)",
        ],
    );
    let copied = psql(
        &server,
        &[
            "-At",
            "-c",
            "COPY (SELECT site FROM pump ORDER BY site) TO STDOUT",
        ],
    );
    assert_eq!(copied, "north\nsouth\n");
}

#[test]
fn curl_sends_gzip() {
    if !have("curl") || !have("gzip") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let server = ServeProcess::start(dir.path(), &[]);
    let script = format!(
        "printf 'm,host=a v=1 1\\nm,host=b v=2 2\\n' | gzip | curl -sS -o /dev/null \
         -w '%{{http_code}}' -H 'Content-Encoding: gzip' --data-binary @- \
         'http://127.0.0.1:{}/write?db=db'",
        server.http_port
    );
    let output = Command::new("sh")
        .args(["-c", &script])
        .output()
        .expect("sh runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "204");
    assert_eq!(server.csv("SELECT sum(v) AS s FROM m"), "s\n3.0\n");
}
