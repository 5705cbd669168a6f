//! Runs the SQL of the guides, block by block as it is written.
//!
//! Text in square brackets is optional: a block with brackets runs once with their text and once
//! without. A statement with an ellipsis is a pattern rather than an example, and is skipped.

use super::MARIGRAM;
use super::pages::page;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Tables that the guides assume.
const TABLES: &str = "
    CREATE DATABASE IF NOT EXISTS plant;
    CREATE TABLE pump (time TIMESTAMP, dev TEXT TAG, unit BIGINT TAG, temp DOUBLE, rpm INT, note TEXT);
    INSERT INTO pump VALUES
        ('2024-01-01T00:00:00', 'a', 1, 81.5, 900, 'x'),
        ('2024-01-01T01:00:00', 'a', 1, 79.5, 910, NULL),
        ('2024-01-01T00:00:00', 'b', 2, 60.0, 700, NULL);
    CREATE TABLE kiln (time TIMESTAMP, dev TEXT TAG, heat DOUBLE);
    CREATE TABLE device (time TIMESTAMP, dev TEXT TAG, since TIMESTAMP);
    INSERT INTO device VALUES ('2024-01-01', 'a', '2024-01-01T00:30:00');
    CREATE TABLE reading (time TIMESTAMP, dev TEXT TAG, temp DOUBLE);
    CREATE TABLE setting (time TIMESTAMP, dev TEXT TAG, target DOUBLE);
    CREATE TABLE hourly (time TIMESTAMP, site TEXT TAG, avg_temp DOUBLE);
    FLUSH;
";

/// Statements to run before the examples of one block: they create tables of other blocks.
fn prelude(text: &str) -> &'static str {
    if text.contains("CREATE USER") {
        "CREATE USER root WITH PASSWORD 'horse' SUPERUSER;"
    } else if text.contains("CREATE DATABASE") {
        "DROP DATABASE plant;"
    } else if text.starts_with("CREATE TABLE") && text.contains(" pump (") {
        "DROP TABLE pump;"
    } else {
        ""
    }
}

/// Runs a script in a directory, on a database of its own; returns the error if there is one.
fn run(dir: &Path, script: &str) -> Result<(), String> {
    let mut child = Command::new(MARIGRAM)
        .args(["sql", "--data", "db", "--format", "csv", "-f", "-"])
        .current_dir(dir)
        .env_remove("MARIGRAM_DATA")
        .env_remove("MARIGRAM_URL")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut input = child.stdin.take().expect("it has an input");
    input.write_all(script.as_bytes()).expect("it reads");
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Creates the database, which `marigram sql` never does.
fn make(dir: &Path) {
    std::fs::write(dir.join("first.lp"), "first value=1 1\n").expect("it is written");
    let made = Command::new(MARIGRAM)
        .args(["import", "--data", "db", "first.lp"])
        .current_dir(dir)
        .output()
        .expect("the binary runs");
    assert!(made.status.success(), "{made:?}");
}

/// The text without the bracketed parts, or without the brackets alone.
fn settled(text: &str, with: bool) -> String {
    let (mut out, mut depth) = (String::new(), 0);
    for ch in text.chars() {
        match ch {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ if depth == 0 || with => out.push(ch),
            _ => {}
        }
    }
    assert_eq!(depth, 0, "brackets are not closed: {text}");
    out
}

/// The statements of a block that are examples. A statement ends at the end of a line.
fn examples(text: &str) -> String {
    let (mut examples, mut statement) = (String::new(), String::new());
    for line in text.lines() {
        let code = line.split_once("--").map_or(line, |(code, _)| code).trim();
        statement.push_str(code);
        statement.push('\n');
        if code.ends_with(';') {
            if !statement.contains('…') {
                examples.push_str(&statement);
            }
            statement.clear();
        }
    }
    examples
}

/// Runs all SQL blocks of a page; returns how many.
fn run_page(name: &str) -> usize {
    let mut count = 0;
    for block in page(name) {
        if !block.is_in("sql") || block.not_run.is_some() {
            continue;
        }
        count += 1;
        let forms = if block.text.contains('[') {
            vec![settled(&block.text, false), settled(&block.text, true)]
        } else {
            vec![block.text.clone()]
        };
        for text in forms {
            let dir = tempfile::tempdir().expect("a temporary directory");
            let csv = "time,dev,unit,temp,rpm,note\n2024-01-02T00:00:00,c,3,70.5,800,y\n";
            let files = [
                ("pumps.csv", csv.to_owned()),
                ("pump.csv", csv.replace(',', ";")),
            ];
            for (file, text) in files {
                std::fs::write(dir.path().join(file), text).expect("it is written");
            }
            let before = format!(
                "{TABLES}COPY pump TO 'pumps.parquet';{}",
                prelude(&block.text)
            );
            make(dir.path());
            run(dir.path(), &before).expect("the tables are made");
            if let Err(error) = run(dir.path(), &examples(&text)) {
                panic!("{name}, line {}: {error}\n{text}", block.line);
            }
        }
    }
    count
}

#[test]
fn the_statements_of_the_guide_to_sql_run() {
    assert!(run_page("docs/guides/sql.md") >= 18);
}

#[test]
fn the_statements_of_the_guide_to_timescaledb_run() {
    assert!(run_page("docs/guides/timescaledb.md") >= 5);
}

#[test]
fn the_statements_of_the_guide_to_the_command_line_run() {
    assert_eq!(run_page("docs/guides/command-line.md"), 1);
}

#[test]
fn the_statements_of_the_guide_to_security_run() {
    assert_eq!(run_page("docs/guides/security.md"), 1);
}

#[test]
fn what_may_be_left_out_is_left_out_or_not() {
    let text = "DROP TABLE [IF EXISTS] t, u; -- a note; with a semicolon\nSELECT … FROM t;\n";
    assert_eq!(examples(&settled(text, false)), "DROP TABLE  t, u;\n");
    assert_eq!(
        examples(&settled(text, true)),
        "DROP TABLE IF EXISTS t, u;\n"
    );
}
