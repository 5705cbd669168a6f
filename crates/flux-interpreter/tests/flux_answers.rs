//! Scripts and their tables, as data: `answers/*.txt`. A file begins with line protocol (times in
//! seconds), up to a line `===`. Then come scripts, each up to `---`, and their tables up to `===`.
//! The tables follow from Flux's specification and the documentation of its functions.

mod support;

use std::fs;
use std::path::Path;
use support::FluxHarness;

async fn check(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/answers")
        .join(name);
    let text = fs::read_to_string(&path).expect(name);
    let mut parts = text.split("===\n");
    let database = FluxHarness::new(512 << 20);
    database.write(parts.next().expect("lines"));
    let (mut wrong, mut cases) = (String::new(), 0);
    for part in parts.filter(|part| !part.trim().is_empty()) {
        let (script, expected) = part.split_once("---\n").expect(part);
        let answer = database.ask(script).await;
        cases += 1;
        if answer.trim() != expected.trim() {
            wrong.push_str(&format!("{script}---\n{answer}=== expected:\n{expected}\n"));
        }
    }
    assert!(cases > 0, "{name} has no scripts");
    assert!(wrong.is_empty(), "{name}:\n{wrong}");
}

#[tokio::test]
async fn reading_and_filtering() {
    check("read.txt").await;
}

#[tokio::test]
async fn aggregates_and_windows() {
    check("aggregates.txt").await;
}

#[tokio::test]
async fn columns_and_groups() {
    check("columns.txt").await;
}

#[tokio::test]
async fn sequences_of_rows() {
    check("sequences.txt").await;
}

#[tokio::test]
async fn expressions_and_packages() {
    check("expressions.txt").await;
}

#[tokio::test]
async fn errors_name_the_function_and_its_place() {
    check("errors.txt").await;
}

#[tokio::test]
async fn a_script_without_enough_memory_fails_and_the_next_one_runs() {
    let database = FluxHarness::new(48 << 20);
    let lines: Vec<String> = (0..200_000).map(|n| format!("m v={n} {n}")).collect();
    for lines in lines.chunks(20_000) {
        database.write(&lines.join("\n"));
    }
    let script = "from(bucket: \"d\") |> range(start: 0, stop: 200000) |> sort()";
    let answer = database.ask(script).await;
    assert!(
        answer.starts_with("! ") && answer.contains("memory"),
        "{answer:.300}"
    );
    let script = "from(bucket: \"d\") |> range(start: 0, stop: 10) |> count()";
    assert!(database.ask(script).await.contains(" 10"), "it runs");
}
