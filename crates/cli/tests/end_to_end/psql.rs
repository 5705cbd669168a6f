//! psql's commands that describe what a database has: each of them answers, and none fails.

use crate::server::ServeProcess;
use std::fmt::Write;
use std::process::Command;

/// The commands, by lines. Each is sent as it stands.
const COMMANDS: &str = r"
\d
\d+
\d r
\d+ r
\d v
\d+ v
\d r*
\d pg_class
\d pg_catalog.pg_type
\dt
\dt+
\dt r
\dt+ public.*
\dtvmsE
\di
\di+
\dv
\dv+
\dm
\dm+
\dn
\dn+
\dnS+
\du
\du+
\dg
\dg+
\dp
\dpS
\ddp
\dx
\dx+
\dX
\df
\df+
\df abs
\dfa
\dfn
\dfp
\dft
\dfw
\da
\da+
\dT
\dT+
\dTS
\dT+ int4
\dd
\dd r
\do
\dO
\dO+
\dOS
\db
\db+
\dc
\dc+
\dcS
\dC
\dC+
\dD
\dD+
\dE
\des
\des+
\det
\det+
\deu
\deu+
\dew
\dew+
\dF
\dF+
\dFd
\dFd+
\dFp
\dFp+
\dFt
\dFt+
\dl
\dl+
\dL
\dL+
\dLS
\dP
\dP+
\dPi
\dPt
\drds
\dRp
\dRp+
\dRs
\dRs+
\ds
\ds+
\dS
\dS+
\dSt
\dy
\dy+
\dA
\dA+
\dAc
\dAc+
\dAf
\dAf+
\dAo
\dAo+
\dAp
\dAp+
\dconfig
\dconfig+
\dconfig TimeZone
\l
\l+
\l main
\sv v
\sv+ v
\z
\z r
\conninfo
\encoding
";

/// What psql says to a script.
fn psql(server: &ServeProcess, arguments: &[&str]) -> (String, String) {
    let port = server.postgres_port.to_string();
    let output = Command::new("psql")
        .args(["-X", "-h", "127.0.0.1", "-U", "me", "-d", "main", "-p"])
        .arg(&port)
        .args(arguments)
        .output()
        .expect("psql runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn psql_describes_everything() {
    if !crate::clients::have("psql") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let server = ServeProcess::start(dir.path(), &[]);
    let setup = [
        "CREATE TABLE r (time TIMESTAMP, dev TEXT TAG, temp DOUBLE PRECISION)",
        "CREATE VIEW v AS SELECT dev, temp FROM r",
    ];
    for sql in setup {
        psql(&server, &["-c", sql]);
    }
    let mut faults = String::new();
    for command in COMMANDS.lines().filter(|line| !line.is_empty()) {
        let (_, error) = psql(&server, &["-c", command]);
        if error.contains("ERROR") || error.contains("invalid command") {
            writeln!(faults, "{command}: {error}").unwrap();
        }
    }
    assert!(faults.is_empty(), "{faults}");
    // Functions have no text, and the error says so.
    let (_, error) = psql(&server, &["-c", "\\sf abs"]);
    assert!(error.contains("built in"), "{error}");
}

#[test]
fn copy_of_a_change_changes_nothing() {
    if !crate::clients::have("psql") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let server = ServeProcess::start(dir.path(), &[]);
    psql(&server, &["-c", "CREATE TABLE r (time TIMESTAMP, v REAL)"]);
    psql(&server, &["-c", "INSERT INTO r VALUES ('2024-01-01', 1)"]);
    for sql in [
        "COPY (DELETE FROM r) TO STDOUT",
        "COPY (INSERT INTO r VALUES ('2024-01-02', 1)) TO STDOUT",
        "COPY (DROP TABLE r) TO STDOUT",
    ] {
        let (_, error) = psql(&server, &["-c", sql]);
        assert!(error.contains("ERROR"), "{sql}: {error}");
    }
    assert_eq!(psql(&server, &["-Atc", "SELECT count(*) FROM r"]).0, "1\n");
    // ROLLBACK undoes nothing, and says so.
    let script = "BEGIN; INSERT INTO r VALUES ('2024-01-03', 1); ROLLBACK";
    let (_, notice) = psql(&server, &["-c", script]);
    assert!(notice.contains("stays changed"), "{notice}");
    let (_, notice) = psql(&server, &["-c", "BEGIN; SELECT * FROM r; ROLLBACK"]);
    assert_eq!(notice, "");
}

#[test]
fn settings_of_a_startup_that_cannot_be_are_refused() {
    if !crate::clients::have("psql") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let server = ServeProcess::start(dir.path(), &[]);
    for (options, is_refused) in [
        ("client_encoding=LATIN1", true),
        ("client_encoding=UTF8", false),
        ("options=-cdatestyle=german", true),
        ("options=-cstatement_timeout=soon", true),
        ("options=-ctimezone=Mars/Olympus", true),
        ("options=-cnothing=1", false),
        ("application_name=x", false),
    ] {
        let port = server.postgres_port;
        let to = format!("host=127.0.0.1 port={port} user=me dbname=main {options}");
        let output = Command::new("psql")
            .args(["-X", "-Atc", "SELECT 1", &to])
            .output()
            .expect("psql runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(!output.status.success(), is_refused, "{options}: {said}");
    }
}
