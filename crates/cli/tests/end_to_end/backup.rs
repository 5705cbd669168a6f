//! Backups of a running server: under writes, through kills, and restored again.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::server::{MARIGRAM, ServeProcess, request};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Devices of the fleet; each sends one row per second.
const DEVICES: u64 = 50;
/// Noon of 2026-11-20, s since the epoch.
const NOON_S: u64 = 1_795_176_000;

fn marigram(arguments: &[&str]) -> Output {
    Command::new(MARIGRAM)
        .args(arguments)
        .env_remove("MARIGRAM_URL")
        .env_remove("MARIGRAM_DATA")
        .output()
        .expect("the binary starts")
}

/// The output of a command that must succeed.
fn done(arguments: &[&str]) -> String {
    let output = marigram(arguments);
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    );
    assert!(output.status.success(), "{arguments:?}: {out}{err}");
    out
}

/// The error output of a command that must fail.
fn failed(arguments: &[&str]) -> String {
    let output = marigram(arguments);
    assert!(!output.status.success(), "{arguments:?} succeeded");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn second(number: u64) -> String {
    use std::fmt::Write;
    let mut lines = String::new();
    for device in 0..DEVICES {
        let time = NOON_S + number;
        writeln!(lines, "fleet,device=d{device} value={number}i {time}").expect("it is a string");
    }
    lines
}

/// Sends the rows of one second until they are acknowledged.
fn send(port: u16, number: u64) {
    loop {
        let body = second(number);
        let sent = request(
            port,
            "POST",
            "/write?db=db&precision=s",
            &[],
            body.as_bytes(),
        );
        if sent.is_ok_and(|answer| answer.status == 204) {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The number of rows and the last second in a table of a data directory.
fn contents(dir: &Path) -> (u64, u64) {
    let dir = dir.to_str().unwrap();
    let sql = "SELECT count(*) AS n, max(value) AS last, count(DISTINCT device) AS d FROM fleet";
    let csv = done(&[
        "sql", "--data", dir, "-d", "db", "-c", sql, "--format", "csv",
    ]);
    let row: Vec<u64> = csv
        .lines()
        .nth(1)
        .unwrap()
        .split(',')
        .map(|number| number.parse().unwrap())
        .collect();
    assert_eq!(row[2], DEVICES, "{csv}");
    (row[0], row[1])
}

fn listed(folder: &Path) -> Vec<String> {
    let list = done(&["backup", "--list", folder.to_str().unwrap()]);
    list.lines().map(str::to_owned).collect()
}

#[test]
fn a_server_is_backed_up_under_writes_and_kills_and_restored() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let text = |name: &str| at(name).to_str().unwrap().to_owned();
    let (data, allowed) = (at("data"), at("backups"));
    let settings = ["--backup-dir", allowed.to_str().unwrap(), "--shards", "2"];
    let mut server = ServeProcess::start(&data, &settings);
    let port = server.http_port;
    let url = format!("http://127.0.0.1:{port}");
    let (written, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut least = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0.. {
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                send(port, number);
                written.store(number + 1, Ordering::SeqCst);
            }
        });
        let wait_for = |seconds| {
            while written.load(Ordering::SeqCst) < seconds {
                std::thread::sleep(Duration::from_millis(2));
            }
        };
        for backup in 1..=3 {
            wait_for(backup * 40);
            least.push(written.load(Ordering::SeqCst));
            let told = done(&["backup", "night", "--url", &url]);
            assert!(told.contains(&format!("backup {backup} in")), "{told}");
            if backup == 2 {
                // The kill falls into the middle of a backup, which may or may not complete.
                let client = scope.spawn(|| marigram(&["backup", "night", "--url", &url]));
                server.kill_and_restart();
                let _ = client.join();
                let numbers = listed(&at("backups/night")).len();
                if numbers == 3 {
                    return stop.store(true, Ordering::SeqCst);
                }
            }
        }
        stop.store(true, Ordering::SeqCst);
    });
    let folder = text("backups/night");
    assert_eq!(listed(&at("backups/night")).len(), 3);
    done(&["backup", "--verify", &folder]);
    let verified = done(&["verify", &folder]);
    assert!(verified.contains("everything is whole"), "{verified}");

    for (at_number, least) in least.iter().enumerate() {
        let number = (at_number + 1).to_string();
        let into = text(&format!("restored-{number}"));
        done(&["restore", &folder, &into, "--at", &number]);
        let (rows, last) = contents(Path::new(&into));
        // Only whole seconds, except the one that was being written to two shards.
        assert!(last + 1 >= *least, "{last} < {least}");
        assert!(
            rows > last * DEVICES && rows <= (last + 1) * DEVICES,
            "{rows}, {last}"
        );
        assert!(failed(&["restore", &folder, &into]).contains("not empty"));
    }
    let outside = failed(&["backup", "../elsewhere", "--url", &url]);
    assert!(outside.contains("is not inside"), "{outside}");
    let now = format!("n\n{}\n", written.load(Ordering::SeqCst) * DEVICES);
    assert_eq!(server.csv("SELECT count(*) AS n FROM fleet"), now);
}

#[test]
fn a_deleted_day_comes_back_and_later_rows_stay() {
    let dir = tempfile::tempdir().unwrap();
    let text = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (data, folder) = (text("data"), text("backups"));
    // A shell does not create a database; an import does.
    std::fs::write(text("first.lp"), "other x=1 1\n").unwrap();
    done(&["import", "--data", &data, &text("first.lp")]);
    let sql = |statement: &str| done(&["sql", "--data", &data, "-c", statement, "--format", "csv"]);
    sql(
        "CREATE TABLE pump (time TIMESTAMP, unit STRING TAG, flow REAL FIELD, n INT FIELD)
         WITH (partition = '6h')",
    );
    for (day, n) in [("19", 1), ("20", 2), ("21", 3)] {
        for hour in ["01", "13"] {
            sql(&format!(
                "INSERT INTO pump VALUES ('2026-11-{day}T{hour}:00:00Z', 'a', 1.1, {n}), \
                 ('2026-11-{day}T{hour}:00:00Z', 'b', CAST('NaN' AS REAL), {n})"
            ));
        }
    }
    let before = sql("SELECT * FROM pump ORDER BY unit, time");
    done(&["backup", &folder, "--data", &data]);
    sql("DELETE FROM pump WHERE time >= '2026-11-20T00:00:00Z' AND time < '2026-11-21T00:00:00Z'");
    sql("INSERT INTO pump (time, unit, n) VALUES ('2026-11-22T01:00:00Z', 'a', 4)");
    assert_ne!(sql("SELECT * FROM pump ORDER BY unit, time"), before);

    let part = [
        "restore",
        &folder,
        "--partition",
        "2026-11-20",
        "--table",
        "main.pump",
    ];
    let bring = |more: &[&str]| done(&[&part[..], more].concat());
    let told = bring(&["--into", &data]);
    assert!(told.contains("main.pump: 4 rows stored"), "{told}");
    let then = sql("SELECT * FROM pump WHERE time < '2026-11-22T00:00:00Z' ORDER BY unit, time");
    assert_eq!(then, before);
    assert_eq!(sql("SELECT count(*) AS n FROM pump"), "n\n13\n");

    // Restore into a new database, with the table's own types, the partition of a single moment.
    let fresh = text("fresh");
    let moment = [
        "restore",
        &folder,
        "--partition",
        "2026-11-20T15:00:00Z",
        "--into",
        &fresh,
    ];
    assert!(done(&moment).contains("main.pump: 2 rows stored"));
    let shown = done(&[
        "sql",
        "--data",
        &fresh,
        "-c",
        "SHOW CREATE TABLE pump",
        "--format",
        "csv",
    ]);
    assert!(
        shown.contains("REAL FIELD") && shown.contains("partition = '6h'"),
        "{shown}"
    );

    // Restore into a server, including values that line protocol cannot hold.
    let server = ServeProcess::start(&dir.path().join("served"), &[]);
    let url = format!("http://127.0.0.1:{}", server.http_port);
    let output = marigram(&[&part[..], &["--url", &url]].concat());
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    );
    assert!(out.contains("main.pump: 4 rows stored"), "{out}{err}");
    assert!(!err.contains("refused"), "{out}{err}");

    let unknown = failed(&[
        "restore",
        &folder,
        "--partition",
        "2026-11-20",
        "--table",
        "x.y",
        "--into",
        &fresh,
    ]);
    assert!(unknown.contains("main.pump"), "{unknown}");
    let nowhere = failed(&["backup", &format!("{data}/inside"), "--data", &data]);
    assert!(
        nowhere.contains("is inside the data directory"),
        "{nowhere}"
    );
    let refused = failed(&["backup", "--url", &url]);
    assert!(refused.contains("--backup-dir"), "{refused}");
}
