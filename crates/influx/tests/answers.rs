//! Compares answers with those of a real InfluxDB 1.6.7, as text: each file in `answers/` contains
//! statements, each followed by the answer of `/query?epoch=ns`, over the rows of
//! `answers/rows.lines`.

mod support;

use support::Harness;

const ROWS: &str = include_str!("answers/rows.lines");

async fn compare(file: &str) {
    let harness = Harness::new();
    harness.write(ROWS);
    let mut wrong = String::new();
    for pair in file.split("\n\n") {
        let Some((statement, expected)) = pair.trim().split_once('\n') else {
            continue;
        };
        let answer = harness.ask(statement).await;
        if answer != expected {
            wrong += &format!("{statement}\n  ours   {answer}\n  theirs {expected}\n");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[tokio::test]
async fn raw_rows() {
    compare(include_str!("answers/raw.txt")).await;
}

#[tokio::test]
async fn aggregates() {
    compare(include_str!("answers/aggregates.txt")).await;
}

#[tokio::test]
async fn selectors() {
    compare(include_str!("answers/selectors.txt")).await;
}

#[tokio::test]
async fn transformations() {
    compare(include_str!("answers/transformations.txt")).await;
}

#[tokio::test]
async fn subqueries() {
    compare(include_str!("answers/subqueries.txt")).await;
}

#[tokio::test]
async fn show() {
    compare(include_str!("answers/show.txt")).await;
}

#[tokio::test]
async fn statements() {
    compare(include_str!("answers/statements.txt")).await;
}
