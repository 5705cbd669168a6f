//! The log of a server as JSON: every line is an object, and contains what an operator looks for.

use super::MARIGRAM;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

#[test]
fn every_line_is_json_and_tells_the_start_refusals_and_slow_statements() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut server = Command::new(MARIGRAM)
        .args(["serve", "--data", "data", "--http", "127.0.0.1:0"])
        .args(["--postgres", "off", "--log-format", "json"])
        .args(["--slow-statement", "1ms", "--body-limit", "100KB"])
        .current_dir(dir.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut out = BufReader::new(server.stdout.take().expect("an output"));
    let mut url = String::new();
    let mut line = String::new();
    while !line.starts_with("Ctrl-C") {
        line.clear();
        assert!(out.read_line(&mut line).expect("it says something") > 0);
        if line.starts_with("  HTTP ") {
            url = line.trim_start_matches("  HTTP").trim().to_owned();
        }
    }
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .build()
        .into();
    let ask = |path: &str, body: &str| {
        let answer = agent.post(format!("{url}{path}")).send(body);
        answer.expect("it answers").status().as_u16()
    };
    let long = format!(
        "SELECT count(*), '{}' FROM generate_series(1, 3000000)",
        "ä".repeat(2000)
    );
    assert_eq!(ask("/api/v1/sql", &long), 200);
    assert_eq!(ask("/write?db=main", &"m a=1\n".repeat(50_000)), 413);
    assert_eq!(ask("/write?db=main", "m a=\n"), 400);
    let pid = server.id().to_string();
    let sent = Command::new("kill").args(["-TERM", &pid]).status();
    assert!(sent.expect("kill is there").success());
    let mut text = String::new();
    let mut log = server.stderr.take().expect("a log");
    log.read_to_string(&mut text).expect("it is text");
    assert!(server.wait().expect("it ends").success());
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .collect();
    let find = |message: &str| -> Vec<&serde_json::Value> {
        lines
            .iter()
            .filter(|line| line["message"] == message)
            .collect()
    };
    let ready = find("the server is ready");
    assert_eq!(ready.len(), 1, "{text}");
    assert_eq!(ready[0]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(ready[0]["postgres"], "off");
    assert!(ready[0]["memory_limit_bytes"].as_u64() > Some(0), "{text}");
    let slow = find("a slow statement");
    let slow = slow
        .iter()
        .find(|line| line["outcome"] == "done")
        .expect("one is told");
    assert_eq!(slow["rows"], 1);
    let statement = slow["statement"].as_str().expect("its text");
    assert!(
        statement.starts_with("SELECT count(*)") && statement.ends_with('…'),
        "{text}"
    );
    assert_eq!(statement.chars().count(), 1001);
    assert!(
        slow["peer"]
            .as_str()
            .is_some_and(|peer| peer.starts_with("127.0.0.1:")),
        "{text}"
    );
    let refused = find("a request was refused");
    let statuses: Vec<_> = refused
        .iter()
        .filter_map(|line| line["status"].as_u64())
        .collect();
    assert_eq!(statuses, [413, 400], "{text}");
    assert_eq!(find("stopped").len(), 1, "{text}");
}
