//! Answers that a real InfluxDB 1.6.7 gave, compared as text: each file in `answers/` has statements,
//! each with the answer of `/query?epoch=ns` behind it, over the rows of `answers/rows.lines` or of a file
//! of its name.

mod support;

use support::Harness;

const ROWS: &str = include_str!("answers/rows.lines");

async fn compare(file: &str) {
    compare_over(ROWS, file).await;
}

async fn compare_over(rows: &str, file: &str) {
    let harness = Harness::new();
    harness.write(rows);
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

#[tokio::test]
async fn fields_named_as_tags_and_the_order_of_series() {
    let rows = include_str!("answers/names.lines");
    compare_over(rows, include_str!("answers/names.txt")).await;
}
