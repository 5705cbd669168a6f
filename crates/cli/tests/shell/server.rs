//! A server on the database of a test, and what other commands report while it runs.

use super::{MARIGRAM, weather};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

/// `marigram serve` on `data`; killed when dropped.
pub(crate) struct ShellServer {
    child: Child,
    pub(crate) url: String,
}

impl ShellServer {
    /// Starts it on free ports, and waits until it prints its address.
    pub(crate) fn start(dir: &Path) -> Self {
        let mut child = Command::new(MARIGRAM)
            .args(["serve", "--data", "data", "--http", "127.0.0.1:0"])
            .args(["--postgres", "off", "--log", "error"])
            .current_dir(dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let out = child.stdout.take().expect("it has an output");
        let mut url = None;
        for line in BufReader::new(out).lines() {
            let line = line.expect("it says something");
            if let Some(at) = line.find("http://").filter(|_| line.contains("HTTP ")) {
                url = Some(line[at..].trim().to_owned());
            }
            if line.starts_with("Ctrl-C") {
                break;
            }
        }
        let url = url.expect("it says its address");
        Self { child, url }
    }

    /// Stops it cleanly.
    pub(crate) fn terminate(mut self) -> ExitStatus {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(sent.expect("kill is there").success());
        self.child.wait().expect("it ends")
    }
}

impl Drop for ShellServer {
    fn drop(&mut self) {
        // It may have ended already, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn commands_on_a_directory_that_a_server_has_open_say_its_url() {
    let dir = weather();
    let server = ShellServer::start(dir.path());
    let commands: [&[&str]; 4] = [
        &["sql", "--data", "data", "-c", "SELECT 1"],
        &["import", "--data", "data", "weather.csv"],
        &["export", "--data", "data", "--table", "weather", "-"],
        &["backup", "backups", "--data", "data"],
    ];
    for arguments in commands {
        let mut arguments = arguments.to_vec();
        if arguments[0] == "export" {
            arguments.extend(["--format", "csv"]);
        }
        let output = Command::new(MARIGRAM)
            .args(&arguments)
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .output()
            .expect("the binary runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{arguments:?}");
        let advice = format!("--url {}", server.url);
        assert!(said.contains(&advice), "{arguments:?}: {said}");
    }
    // After it has ended, its address in the lock file is not trusted.
    assert!(server.terminate().success());
    super::run(dir.path(), &["sql", "--data", "data", "-c", "SELECT 1"]);
}

#[test]
fn an_import_over_url_stores_what_line_protocol_cannot_hold() {
    let dir = weather();
    let sql = "CREATE TABLE odd (time TIMESTAMP, tag STRING TAG, f DOUBLE FIELD, g REAL FIELD, \
               y BYTES FIELD, t TIMESTAMP FIELD, u BIGINT UNSIGNED FIELD, s STRING FIELD); \
               INSERT INTO odd VALUES \
               ('2026-01-01T00:00:00.000000001Z', 'a', 'NaN'::DOUBLE, 1.5, X'00ff', NULL, 7, 'it''s'), \
               ('2026-01-01T00:00:01Z', 'a', 'Infinity'::DOUBLE, '-Infinity'::REAL, NULL, NULL, NULL, NULL), \
               ('2026-01-01T00:00:02Z', 'a', 1e300, NULL, X'', '2026-01-01', NULL, 'x'), \
               ('2026-01-01T00:00:03Z', 'b', 2.5, NULL, NULL, NULL, 8, 'plain')";
    let data = ["sql", "--data", "data", "-c", sql];
    super::run(dir.path(), &data);
    super::run(
        dir.path(),
        &["export", "--data", "data", "--table", "odd", "odd.csv"],
    );
    let server = ShellServer::start(dir.path());
    let url = server.url.as_str();
    let import = ["import", "--url", url, "--table", "again", "odd.csv"];
    let said = super::run(dir.path(), &import);
    assert!(
        said.contains("4 rows read, 4 stored, 0 replaced, 0 refused"),
        "{said}"
    );
    let of = |table: &str| {
        let query = format!("SELECT * FROM {table} ORDER BY time");
        super::run(
            dir.path(),
            &["sql", "--url", url, "--format", "csv", "-c", &query],
        )
    };
    let first = of("odd");
    assert!(first.contains("NaN") && first.contains("00ff"), "{first}");
    assert_eq!(of("again"), first);
}

#[test]
fn a_backup_does_not_go_into_a_data_directory() {
    let dir = weather();
    let other = weather();
    let inside = other.path().join("data/backups").display().to_string();
    let output = Command::new(MARIGRAM)
        .args(["backup", &inside, "--data", "data"])
        .current_dir(dir.path())
        .output()
        .expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("choose a folder outside it"),
        "{said}"
    );
}

#[test]
fn files_are_tables_here_and_not_for_clients_of_a_server() {
    let dir = weather();
    let query = "SELECT count(*) AS n FROM 'weather.csv' WHERE station = 'north'";
    let ask = |target: &[&str]| {
        Command::new(MARIGRAM)
            .args(["sql", "--format", "csv", "-c", query])
            .args(target)
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .output()
            .expect("the binary runs")
    };
    let output = ask(&["--data", "data"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "n\n2\n");
    let server = ShellServer::start(dir.path());
    let output = ask(&["--url", &server.url]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("weather.csv"),
        "{said}"
    );
}
