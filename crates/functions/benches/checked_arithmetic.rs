//! Measures what it costs that whole numbers do not wrap and floats do not overflow: statements with
//! DataFusion's own `+`, `-`, `*` and `sum`, and with ours, over the same rows.
//!
//! `cargo bench --workspace --bench checked_arithmetic`, or with a number of millions of rows and the name of a
//! statement after `--`. The rows are in memory, so nothing is decoded and the ratio is an upper limit for tables. One
//! thread; the two ways take turns, and the best of all rounds counts, so that other processes disturb
//! both alike.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a benchmark reads the machine's clock, and panics if its premises fail"
)]

use arrow::array::{ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch};
use arrow::util::pretty::pretty_format_batches;
use datafusion::datasource::MemTable;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use marigram_functions::arithmetic::CheckedArithmetic;
use std::sync::Arc;
use std::time::{Duration, Instant};

const BATCH_ROWS: usize = 8_192;
const ROUNDS: usize = 15;

/// What is measured, by name.
const STATEMENTS: [(&str, &str); 12] = [
    ("sum", "SELECT sum(a) FROM t"),
    ("sum of INT", "SELECT sum(i) FROM t"),
    ("sum by a field", "SELECT k, sum(a) FROM t GROUP BY k"),
    ("sum of a + b", "SELECT sum(a + b) FROM t"),
    ("sum of a - b", "SELECT sum(a - b) FROM t"),
    ("sum of a * b", "SELECT sum(a * b) FROM t"),
    ("sum of i * 3", "SELECT sum(i * 3) FROM t"),
    (
        "filter by a + b",
        "SELECT count(*) FROM t WHERE a + b > 100",
    ),
    ("sum of x + y", "SELECT sum(x + y) FROM t"),
    ("sum of x * 1.8 + 32", "SELECT sum(x * 1.8 + 32.0) FROM t"),
    (
        "filter by x * 1.8",
        "SELECT count(*) FROM t WHERE x * 1.8 > 10.0",
    ),
    (
        "window",
        "SELECT max(s) FROM (SELECT sum(a) OVER (ORDER BY k ROWS UNBOUNDED PRECEDING) AS s FROM few)",
    ),
];

/// A table of small numbers, some of them null, as sensors send them.
fn table(rows: usize) -> Arc<MemTable> {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    };
    let batches: Vec<RecordBatch> = (0..rows.div_ceil(BATCH_ROWS))
        .map(|_| {
            let a = (0..BATCH_ROWS).map(|_| random(100_000) as i64 - 50_000);
            let a: ArrayRef = Arc::new(Int64Array::from_iter_values(a));
            let b = (0..BATCH_ROWS).map(|_| (random(50) > 0).then(|| random(1_000) as i64));
            let b: ArrayRef = Arc::new(b.collect::<Int64Array>());
            let i = (0..BATCH_ROWS).map(|_| random(1_000) as i32);
            let i: ArrayRef = Arc::new(Int32Array::from_iter_values(i));
            let k = (0..BATCH_ROWS).map(|_| random(1_000) as i32);
            let k: ArrayRef = Arc::new(Int32Array::from_iter_values(k));
            let mut eighths = || -> ArrayRef {
                let values = (0..BATCH_ROWS).map(|_| random(1_000) as f64 / 8.0);
                Arc::new(Float64Array::from_iter_values(values))
            };
            let floats = [eighths(), eighths()];
            RecordBatch::try_from_iter_with_nullable([
                ("a", a, true),
                ("b", b, true),
                ("i", i, true),
                ("k", k, true),
                ("x", floats[0].clone(), true),
                ("y", floats[1].clone(), true),
            ])
            .unwrap()
        })
        .collect();
    Arc::new(MemTable::try_new(batches[0].schema(), vec![batches]).unwrap())
}

/// A session with DataFusion's arithmetic, or with ours.
fn session(is_checked: bool, tables: &[(&str, Arc<MemTable>)]) -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(1);
    let mut builder = SessionStateBuilder::new()
        .with_config(config)
        .with_default_features();
    if is_checked {
        builder = builder.with_analyzer_rule(Arc::new(CheckedArithmetic));
    }
    let mut state = builder.build();
    if is_checked {
        marigram_functions::register(&mut state).unwrap();
    }
    let context = SessionContext::new_with_state(state);
    for (name, table) in tables {
        context.register_table(*name, table.clone()).unwrap();
    }
    context
}

/// The time that a statement takes, and its rows as text, sorted.
async fn run(context: &SessionContext, statement: &str) -> (Duration, Vec<String>) {
    let start = Instant::now();
    let frame = context.sql(statement).await.unwrap();
    let batches = frame.collect().await.unwrap();
    let took = start.elapsed();
    let text = pretty_format_batches(&batches).unwrap().to_string();
    // Without the names of the columns.
    let mut rows: Vec<String> = text.lines().skip(3).map(str::to_owned).collect();
    rows.sort_unstable();
    (took, rows)
}

fn main() {
    let millions = std::env::args().find_map(|text| text.parse().ok());
    let asked = std::env::args().find(|text| STATEMENTS.iter().any(|(name, _)| name == text));
    let rows = millions.unwrap_or(8_usize) * 1_000_000;
    let tables = [("t", table(rows)), ("few", table(rows / 8))];
    let sessions = [session(false, &tables), session(true, &tables)];
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    println!("{rows} rows, best of {ROUNDS} rounds");
    println!(
        "{:<20} {:>10} {:>10} {:>7}",
        "", "wrapping", "checked", "ratio"
    );
    let statements = STATEMENTS.iter();
    for (name, statement) in
        statements.filter(|(name, _)| asked.as_ref().is_none_or(|asked| asked == name))
    {
        let mut best = [Duration::MAX; 2];
        let mut answers = [Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            for (way, context) in sessions.iter().enumerate() {
                let (took, answer) = runtime.block_on(run(context, statement));
                best[way] = best[way].min(took);
                answers[way] = answer;
            }
        }
        assert_eq!(answers[0], answers[1], "{statement}");
        let [wrapping, checked] = best.map(|best| best.as_secs_f64() * 1e3);
        let ratio = checked / wrapping;
        println!("{name:<20} {wrapping:>7.2} ms {checked:>7.2} ms {ratio:>7.3}");
    }
}
