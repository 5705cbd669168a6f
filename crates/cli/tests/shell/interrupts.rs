//! Ctrl-C stops the statement or clears the line, and the shell continues.

use super::server::ShellServer;
use super::terminal::Terminal;
use super::weather;

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
