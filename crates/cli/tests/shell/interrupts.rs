//! Ctrl-C stops the statement or clears the line, and the shell continues.

use super::server::ShellServer;
use super::terminal::Terminal;
use super::{MARIGRAM, run, weather};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Runs for hours.
const ENDLESS: &str = "SELECT count(*) FROM generate_series(1, 3000000000) a CROSS JOIN \
                       generate_series(1, 100000) b WHERE a.value + b.value = 7;";

const CTRL_C: &str = "\u{3}";

fn cancels_and_goes_on(mut shell: Terminal) {
    shell.keys(ENDLESS);
    shell.keys("\r");
    // The line break is sent when the statement starts.
    shell.wait_for("= 7;\n");
    shell.keys(CTRL_C);
    shell.wait_for("cancelled");
    shell.wait_for("> ");
    let answer = shell.ask("SELECT 'still ' || 'here' AS said;", "(1 row");
    assert!(answer.contains("still here"), "{answer}");
    shell.leave();
}

#[test]
fn ctrl_c_cancels_a_statement_of_an_open_directory() {
    let dir = weather();
    cancels_and_goes_on(Terminal::start(dir.path(), "--data data", &[]));
}

#[test]
fn ctrl_c_cancels_a_statement_of_a_server() {
    let dir = weather();
    let server = ShellServer::start(dir.path());
    cancels_and_goes_on(Terminal::start(
        dir.path(),
        &format!("--url {}", server.url),
        &[],
    ));
    // The server stops a statement that no client waits for; otherwise it would not end.
    assert!(server.terminate().success());
}

#[test]
fn ctrl_c_clears_the_line() {
    let dir = weather();
    let mut shell = Terminal::start(dir.path(), "--data data", &[]);
    shell.keys("SELECT nothing of this");
    shell.wait_for("of this");
    shell.keys(CTRL_C);
    shell.wait_for("> ");
    let answer = shell.ask("SELECT 'a ' || 'line' AS said;", "(1 row");
    assert!(
        answer.contains("a line") && !answer.contains("error"),
        "{answer}"
    );
    shell.leave();
}

/// Ctrl-C stops a script, which says what is left of its statement.
fn says_what_is_left(target: &[&str], dir: &Path) {
    let script = "\\warn begun\nCREATE TABLE half AS SELECT to_timestamp_seconds(a.value) AS time, b.value AS v FROM \
                 generate_series(1, 3000000000) a CROSS JOIN generate_series(1, 3) b;\nSELECT 1;\n";
    std::fs::write(dir.join("half.sql"), script).expect("the script is written");
    let mut child = Command::new(MARIGRAM)
        .args([&["sql"], target, &["-f", "half.sql"]].concat())
        .current_dir(dir)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut err = BufReader::new(child.stderr.take().expect("it has one"));
    let mut said = String::new();
    err.read_line(&mut said).expect("it is text");
    assert_eq!(said, "begun\n");
    // Long enough that the table is there; whatever happens by then, the answer is the same.
    std::thread::sleep(Duration::from_secs(3));
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-INT", &pid]).status();
    assert!(sent.expect("kill is there").success());
    err.read_to_string(&mut said).expect("it is text");
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(130), "{said}");
    assert!(said.contains("cancelled; there is no table half"), "{said}");
    let shown = run(dir, &[&["sql"], target, &["-c", "SHOW TABLES"]].concat());
    assert!(!shown.contains("half"), "{shown}");
}

#[test]
fn ctrl_c_says_what_is_left_of_a_table() {
    let dir = weather();
    says_what_is_left(&["--data", "data"], dir.path());
    let server = ShellServer::start(dir.path());
    says_what_is_left(&["--url", &server.url], dir.path());
}
