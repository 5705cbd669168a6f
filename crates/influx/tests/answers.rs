//! Answers that a real InfluxDB 1.6.7 gave, compared as text: each file in `answers/` has statements,
//! each with the answer of `/query?epoch=ns` behind it, over the rows of `answers/rows.lines` or of a file
//! of its name.

mod support;

use std::fmt::Write as _;
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
            let _ = writeln!(wrong, "{statement}\n  ours   {answer}\n  theirs {expected}");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// The chain was as deep a tree as it is long, and each level looked at all below it.
#[tokio::test]
async fn long_chains_of_or_are_answered_at_once() {
    let harness = Harness::new();
    harness.write(ROWS);
    let hosts: Vec<String> = (0..16_000).map(|at| format!("host = 'h{at}'")).collect();
    let condition = format!("host = 'a' OR {}", hosts.join(" OR "));
    let begun = std::time::Instant::now();
    let answer = harness
        .ask(&format!("SELECT count(v) FROM cpu WHERE {condition}"))
        .await;
    let took = begun.elapsed();
    let short = "SELECT count(v) FROM cpu WHERE host = 'a'";
    assert_eq!(answer, harness.ask(short).await);
    assert!(took < std::time::Duration::from_secs(30), "{took:?}");
    for (operand, operator, operands) in [
        ("v", " OR 1 < ", 100_000),
        ("v", " AND 1 < ", 5_000),
        ("v", " + ", 100_000),
    ] {
        let chain = vec![operand; operands].join(operator);
        let answer = harness
            .ask(&format!("SELECT v FROM cpu WHERE 2 < v AND (1 < {chain})"))
            .await;
        assert!(answer.contains("operands in a row"), "{answer}");
    }
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
async fn limits_and_groups_of_subqueries() {
    let rows = include_str!("answers/limits.lines");
    compare_over(rows, include_str!("answers/limits.txt")).await;
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

/// More rows than a batch of the scan has: their order must last up to the answer.
#[tokio::test]
async fn many_rows_of_many_series_stay_in_order() {
    let harness = Harness::new();
    let hosts = ["a", "b", "c", "d", "e"];
    let kinds = ["x", "y", "z"];
    for (place, host) in hosts.iter().enumerate() {
        let line = |row: usize| {
            let (time, kind) = (row * hosts.len() + place, kinds[row % 3]);
            format!("m,host={host},kind={kind} v={row} {time}\n")
        };
        harness.write(&(0..20_000).map(line).collect::<String>());
    }
    for (statement, series) in [
        ("SELECT v FROM m GROUP BY host", 5),
        ("SELECT v FROM m WHERE v >= 0 GROUP BY host, kind", 15),
        ("SELECT v FROM m GROUP BY kind ORDER BY time DESC", 3),
        ("SELECT count(v) FROM m GROUP BY kind, host", 15),
        (
            "SELECT mean(w) FROM (SELECT v AS w FROM m GROUP BY *) GROUP BY kind",
            3,
        ),
    ] {
        for _ in 0..3 {
            let answer = harness.ask(statement).await;
            assert_eq!(answer.matches("\"tags\"").count(), series, "{statement}");
        }
    }
}

/// What SHOW collects counts as memory of the statement: here 4,000 keys of 8 KB at a limit of 64 MB.
#[tokio::test]
async fn show_of_more_keys_than_fit_into_memory_is_refused() {
    let harness = Harness::with_memory(64 << 20);
    for host in 0..4_000 {
        harness.write(&format!("m,host={host:0>8000} v=1 1"));
    }
    for statement in ["SHOW SERIES", "SHOW TAG VALUES WITH KEY = host"] {
        let answer = harness.ask(statement).await;
        assert!(answer.contains("memory"), "{statement}: {answer:.200}");
    }
    let answer = harness.ask("SHOW SERIES EXACT CARDINALITY").await;
    assert!(answer.contains("[4000]"), "{answer:.200}");
    let answer = harness.ask("SHOW MEASUREMENTS").await;
    assert!(answer.contains("\"m\""), "{answer:.200}");
}
