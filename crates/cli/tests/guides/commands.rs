//! Runs the commands of the guides to the command line, to backups and to PostgreSQL clients, block
//! by block as they are written, next to a server.
//!
//! Only paths differ: `/var/lib` and `/mnt` are folders of the test.

use super::pages::{FencedBlock, GuideServer, guide_folder, page};
use std::path::Path;
use std::process::Command;

/// The tables and rows on the server.
const SERVED: &str = "
    CREATE DATABASE plant;
    CREATE TABLE plant.pump (time TIMESTAMP, dev TEXT TAG, temp DOUBLE);
    INSERT INTO plant.pump VALUES ('2026-11-20 10:00', 'a', 1.5), ('2026-11-21 10:00', 'a', 2.5);
    CREATE TABLE machine (time TIMESTAMP, unit TEXT TAG, rpm DOUBLE);
    INSERT INTO machine VALUES ('2026-11-20 10:00', 'u1', 900);
    CREATE TABLE readings (time TIMESTAMP, device TEXT TAG, value DOUBLE);
";

/// Files that the guides mention.
const FILES: [(&str, &str); 7] = [
    (
        "machine.csv",
        "time,unit,rpm\n2026-11-20T10:00:00Z,u1,900\n2026-11-20T10:01:00Z,u2,901\n",
    ),
    (
        "measurements-1.csv",
        "time,device,v\n2026-11-20T10:00:00Z,d1,1.5\n",
    ),
    ("metrics.lp", "cpu,host=a busy=1.5 1763632800000000000\n"),
    ("export.lp", "cpu,host=b busy=2.5 1763632800000000000\n"),
    (
        "readings.csv",
        "time,device,value\n2026-11-20T10:00:00Z,d1,1.5\n",
    ),
    ("report.sql", "SELECT 1 AS one;\n"),
    ("marigram.toml", "data = './configured'\n"),
];

fn bash(dir: &Path, text: &str) {
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c", text])
        .env("PATH", format!("{}:{path}", dir.join("bin").display()))
        .current_dir(dir)
        .output()
        .expect("bash runs");
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}: {err}");
}

/// A directory with the files, a database that no process has open, and a server.
fn place() -> (tempfile::TempDir, GuideServer) {
    let dir = guide_folder();
    for folder in ["lib", "mnt/backups"] {
        std::fs::create_dir_all(dir.path().join(folder)).expect("it is made");
    }
    for (name, text) in FILES {
        std::fs::write(dir.path().join(name), text).expect("it is written");
    }
    bash(
        dir.path(),
        "gzip -k measurements-1.csv metrics.lp export.lp
         marigram import --data ./data --table machine --tags unit machine.csv
         marigram sql --data ./data -c FLUSH
         cp $(ls ./data/shards/*/segments/*.seg | head -1) one.seg",
    );
    let server = GuideServer::start(
        dir.path(),
        "marigram serve --data ./lib/marigram --backup-dir ./mnt/backups",
    );
    std::fs::write(dir.path().join("served.sql"), SERVED).expect("it is written");
    let made = "marigram sql --url http://127.0.0.1:8086 -f served.sql
                marigram backup --url http://127.0.0.1:8086";
    let output = server.run(dir.path(), made);
    assert!(output.status.success(), "{output:?}");
    (dir, server)
}

/// Runs the blocks of a page that are commands; returns how many ran.
fn run_page(name: &str) -> usize {
    let (dir, server) = place();
    let mut count = 0;
    for block in page(name).into_iter().filter(FencedBlock::is_run) {
        count += 1;
        let text = block
            .text
            .replace("/var/lib/", "./lib/")
            .replace("/mnt/", "./mnt/")
            .replace("/etc/", "./")
            .replace("./data/shards/0000/segments/0000000001.seg", "./one.seg")
            // The guide has more backups than this test.
            .replace("--at 41", "--at 1");
        let (serving, others): (Vec<&str>, Vec<&str>) = text
            .lines()
            .partition(|line| line.starts_with("marigram serve"));
        let output = server.run(dir.path(), &others.join("\n"));
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{name}, line {}: {told}\n{text}",
            block.line
        );
        // The page's server already runs.
        for command in serving
            .iter()
            .filter(|command| !command.contains("--backup-dir"))
        {
            drop(GuideServer::start(dir.path(), command));
        }
    }
    count
}

#[test]
fn the_commands_of_the_guide_to_the_command_line_run() {
    assert!(run_page("docs/guides/command-line.md") >= 7);
}

#[test]
fn the_commands_of_the_guide_to_backups_run() {
    assert!(run_page("docs/guides/backup.md") >= 5);
}

#[test]
fn the_commands_of_the_guide_to_postgresql_run() {
    assert_eq!(run_page("docs/guides/postgres.md"), 2);
}

#[test]
fn the_commands_of_the_guide_to_security_run() {
    assert_eq!(run_page("docs/guides/security.md"), 1);
}

#[test]
fn every_guide_with_commands_is_run_or_says_why_not() {
    let run = [
        "README",
        "backup",
        "command-line",
        "http",
        "postgres",
        "security",
        // These are run by the tests of `clients`.
        "telegraf",
        "grafana",
        "influxdb-migration",
        // These are run by the tests of `examples`.
        "influxdb",
        "influxdb2",
        "influxql",
        "flux",
    ];
    for (name, _) in super::pages() {
        let is_run = run.iter().any(|run| name.ends_with(&format!("{run}.md")));
        assert!(
            is_run || !page(&name).iter().any(FencedBlock::is_run),
            "{name}"
        );
    }
}
