//! Scripts and their tables, as data: `answers/*.txt`. A file begins with line protocol (times in
//! seconds), up to a line `===`. Then come scripts, each up to `---`, and their tables up to `===`.
//! The tables follow from Flux's specification and the documentation of its functions.

mod support;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use support::FluxHarness;

async fn check(name: &str) {
    let text = marigram_fixtures::text(&format!("crates/flux-interpreter/tests/answers/{name}"));
    let mut parts = text.split("===\n");
    let database = FluxHarness::new(512 << 20);
    database.write(parts.next().expect("lines"));
    let (mut wrong, mut cases) = (String::new(), 0);
    for part in parts.filter(|part| !part.trim().is_empty()) {
        let (script, expected) = part.split_once("---\n").expect(part);
        let answer = database.ask(script).await;
        cases += 1;
        if answer.trim() != expected.trim() {
            wrong.extend([script, "---\n", &answer, "=== expected:\n", expected, "\n"]);
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
    // A stream for each of eight columns holds all rows at once.
    let part = |name: usize| format!("data |> set(key: \"k\", value: \"{name}\")");
    let parts: Vec<String> = (0..8).map(part).collect();
    let script = format!(
        "data = from(bucket: \"d\") |> range(start: 0, stop: 200000)\nunion(tables: [{}])",
        parts.join(", ")
    );
    let script = script.as_str();
    let answer = database.ask(script).await;
    assert!(
        answer.starts_with("! ") && answer.contains("memory"),
        "{answer:.300}"
    );
    let script = "from(bucket: \"d\") |> range(start: 0, stop: 10) |> count()";
    assert!(database.ask(script).await.contains(" 10"), "it runs");
}

/// Sources, functions behind them, and values, of which random scripts are made.
const SOURCES: [&str; 4] = [
    "from(bucket: \"d\") |> range(start: 0, stop: 60)",
    "from(bucket: \"d\") |> range(start: -9999y)",
    "array.from(rows: [{_time: 1970-01-01T00:00:01Z, _value: 1.5, t: \"a\"}, {_value: -2.0}])",
    "array.from(rows: [{_time: 1970-01-01T00:00:01Z, _value: 9223372036854775807}])",
];
const FUNCTIONS: [&str; 36] = [
    "filter(fn: (r) => r._value > VALUE)",
    "filter(fn: (r) => not exists r.t or r.t =~ /a/ or r._field == VALUE)",
    "map(fn: (r) => ({r with _value: r._value * VALUE}))",
    "map(fn: (r) => ({x: VALUE}))",
    "map(fn: (r) => r)",
    "group()",
    "group(columns: [\"_value\", \"t\"])",
    "group(columns: [\"_time\"], mode: \"except\")",
    "window(every: VALUE)",
    "window(every: 10s, period: VALUE, createEmpty: true)",
    "aggregateWindow(every: VALUE, fn: mean)",
    "aggregateWindow(every: 20s, fn: last, offset: VALUE)",
    "aggregateWindow(every: 1mo, fn: (column, tables=<-) => tables |> quantile(q: 0.9, column: column))",
    "sum()",
    "mean()",
    "count()",
    "mode()",
    "spread()",
    "stddev()",
    "median()",
    "min()",
    "last()",
    "distinct(column: \"t\")",
    "sort(columns: [\"t\", \"_value\"], desc: true)",
    "limit(n: VALUE)",
    "tail(n: 1, offset: 1)",
    "keep(columns: [\"_value\", \"_time\"])",
    "drop(columns: [\"_value\"])",
    "rename(columns: {_value: \"_time\"})",
    "pivot(rowKey: [\"_time\"], columnKey: [\"t\"], valueColumn: \"_value\")",
    "difference(nonNegative: true)",
    "derivative(unit: VALUE)",
    "increase()",
    "movingAverage(n: VALUE)",
    "timeShift(duration: VALUE)",
    "fill(value: VALUE)",
];
const VALUES: [&str; 12] = [
    "0",
    "-1",
    "9223372036854775807",
    "1.5",
    "\"a\"",
    "1970-01-01T00:00:00Z",
    "1ns",
    "-1h",
    "1000y",
    "inf",
    "true",
    "1mo",
];

#[test]
fn random_scripts_give_tables_or_errors() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let _entered = runtime.enter();
    let database = FluxHarness::new(512 << 20);
    database.write("m,t=a v=1,n=1i 0\nm,t=a v=2 10\nm v=4 25\nw t=true,_value=\"x\" 5");
    let calls = (
        prop::sample::select(FUNCTIONS.to_vec()),
        prop::sample::select(VALUES.to_vec()),
    );
    let script = (
        prop::sample::select(SOURCES.to_vec()),
        prop::collection::vec(calls, 0..5),
    );
    let mut runner = TestRunner::new(Config::with_cases(400));
    let run = runner.run(&script, |(source, calls)| {
        let calls = calls
            .iter()
            .map(|(call, value)| call.replace("VALUE", value));
        let calls: Vec<String> = calls.collect();
        let script = [vec![source.to_owned()], calls].concat().join(" |> ");
        let script = format!("import \"array\"\n{script}");
        let answer = runtime.block_on(database.ask(&script));
        let is_broken = answer.contains("panic") || answer.contains("internal");
        prop_assert!(!is_broken, "{}: {}", script, answer);
        Ok(())
    });
    run.expect("no script breaks anything");
}
