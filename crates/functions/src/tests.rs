//! Tests of aggregates in parts: rows in any order, in several partitions, merged, and converted to
//! states of single rows give the same results as one partition in order.

use super::aggregate::AggregateDescription;
use super::arguments::{ConstantArguments, TIME};
use super::mode::Mode;
use super::over_time::OverTime;
use arrow::array::{
    Array, ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampNanosecondArray,
    UInt64Array,
};
use arrow::datatypes::DataType;
use arrow::util::pretty::pretty_format_batches;
use datafusion::datasource::MemTable;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::EmitTo;
use datafusion::prelude::{SessionConfig, SessionContext};
use std::sync::Arc;

const ROWS: u64 = 3_000;

/// Pseudo-random numbers.
fn scattered(row: u64) -> u64 {
    let mixed = row.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 20
}

/// A batch of numbered rows: groups, times of which some are equal, and values of which some are
/// null.
fn batch(rows: &[u64]) -> RecordBatch {
    let time = |row: u64| (row != 17).then_some((row / 2 * 2) as i64 * 1_000_000_000);
    let x = |row: u64| (row % 11 != 3).then(|| (scattered(row) % 1_000) as f64 / 8.0);
    let n = |row: u64| (row % 7 != 2).then(|| (scattered(row) % 100) as i64 - 50);
    let s = |row: u64| (row % 5 != 1).then(|| format!("s{}", scattered(row) % 9));
    let rows = || rows.iter().copied();
    let columns: Vec<(&str, ArrayRef)> = vec![
        (
            "time",
            Arc::new(rows().map(time).collect::<TimestampNanosecondArray>()),
        ),
        (
            "g",
            Arc::new(
                rows()
                    .map(|row| Some((scattered(row) % 500) as i64))
                    .collect::<Int64Array>(),
            ),
        ),
        (
            "h",
            Arc::new(
                rows()
                    .map(|row| Some((row % 3) as i64))
                    .collect::<Int64Array>(),
            ),
        ),
        ("x", Arc::new(rows().map(x).collect::<Float64Array>())),
        ("n", Arc::new(rows().map(n).collect::<Int64Array>())),
        (
            "u",
            Arc::new(
                rows()
                    .map(|row| Some((1 << 63) + row * 3))
                    .collect::<UInt64Array>(),
            ),
        ),
        ("s", Arc::new(rows().map(s).collect::<StringArray>())),
    ];
    RecordBatch::try_from_iter_with_nullable(
        columns
            .into_iter()
            .map(|(name, column)| (name, column, true)),
    )
    .unwrap()
}

async fn answer(config: SessionConfig, partitions: Vec<Vec<RecordBatch>>, sql: &str) -> String {
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_default_features()
        .build();
    let context = SessionContext::new_with_state(state);
    let mut state = context.state();
    super::register(&mut state).unwrap();
    let context = SessionContext::new_with_state(state);
    let schema = partitions[0][0].schema();
    let table = MemTable::try_new(schema, partitions).unwrap();
    context.register_table("t", Arc::new(table)).unwrap();
    let batches = context.sql(sql).await.unwrap().collect().await.unwrap();
    pretty_format_batches(&batches).unwrap().to_string()
}

#[tokio::test]
async fn rows_in_parts_and_out_of_order_answer_the_same() {
    let functions = "spread(x), spread(n), mode(x), mode(s), increase(n, time), increase(u, time), \
        rate(x, time), delta(x, time), delta(u, time), derivative(n, time, '1m'), \
        integral(x, time), twa(x, time), twa(n, time, 'locf'), elapsed(time), top_n(s, 3), \
        bottom_n(x, 7), histogram(n, -40, 40, 5), lttb(time, x, 9), \
        increase(n, time) FILTER (WHERE x > 50), mode(s) FILTER (WHERE n < 0)";
    let in_order = vec![vec![batch(&(0..ROWS).collect::<Vec<_>>())]];
    let mut rows: Vec<u64> = (0..ROWS).collect();
    rows.sort_by_key(|row| scattered(row + ROWS));
    let parts: Vec<Vec<RecordBatch>> = rows
        .chunks(701)
        .map(|part| part.chunks(97).map(batch).collect())
        .collect();
    for group in ["", "h", "g"] {
        let sql = match group {
            "" => format!("SELECT {functions} FROM t"),
            g => format!("SELECT {g}, {functions} FROM t GROUP BY {g} ORDER BY {g}"),
        };
        let one = SessionConfig::new().with_target_partitions(1);
        let expected = answer(one, in_order.clone(), &sql).await;
        for probe_rows in [0, 100_000] {
            let mut config = SessionConfig::new()
                .with_target_partitions(4)
                .with_batch_size(64);
            let execution = &mut config.options_mut().execution;
            // Either states of single rows are passed on from the first row, or never.
            execution.skip_partial_aggregation_probe_rows_threshold = probe_rows;
            execution.skip_partial_aggregation_probe_ratio_threshold = 0.0;
            let found = answer(config, parts.clone(), &sql).await;
            assert_eq!(
                found, expected,
                "by '{group}', with {probe_rows} rows to probe"
            );
        }
    }
}

#[tokio::test]
async fn no_rows_are_no_error() {
    let functions = "mode(s), top_n(x, 2), lttb(time, x, 3), twa(x, time), histogram(x, 0, 1, 1), \
        spread(u), delta(x, time)";
    let nothing = || vec![vec![batch(&[])], vec![batch(&[])]];
    let config = || SessionConfig::new().with_target_partitions(4);
    let sql = format!("SELECT h, {functions} FROM t GROUP BY h");
    let found = answer(config(), nothing(), &sql).await;
    let rows = found.lines().filter(|line| line.starts_with('|')).skip(1);
    assert_eq!(rows.count(), 0, "{found}");
    let sql = format!("SELECT {functions} FROM t");
    let found = answer(config(), nothing(), &sql).await;
    let rows = found.lines().filter(|line| line.starts_with('|')).skip(1);
    assert_eq!(rows.count(), 1, "{found}");
}

#[test]
fn what_groups_hold_is_counted_and_given_back() {
    let rows = batch(&(0..ROWS).collect::<Vec<_>>());
    let column = |name: &str| ArrayRef::clone(rows.column_by_name(name).unwrap());
    let groups: Vec<usize> = (0..ROWS as usize).map(|row| row % 10).collect();
    let constants = ConstantArguments {
        function: "",
        expressions: &[],
    };
    let increase = OverTime::Increase.fold(&[DataType::UInt64, TIME], &constants, false);
    let mode = Mode.fold(&[DataType::Utf8], &constants, false);
    let cases = [
        (
            increase.unwrap(),
            vec![column("u"), column("time")],
            ROWS as usize * 16,
        ),
        (mode.unwrap(), vec![column("s")], 10 * 9 * 32),
    ];
    for (fold, columns, least) in cases {
        let mut many = fold.many();
        many.update_batch(&columns, &groups, None, 10).unwrap();
        let held = many.size();
        assert!(held >= least, "{held} bytes are counted");
        let states = many.state(EmitTo::First(5)).unwrap();
        let left = many.size();
        assert!(left < held * 2 / 3, "{left} bytes are left of {held}");
        many.merge_batch(&states, &[0, 1, 2, 3, 4], 5).unwrap();
        assert!(many.size() >= left, "{} bytes after {left}", many.size());
        assert_eq!(many.evaluate(EmitTo::All).unwrap().len(), 5);
        assert!(many.size() < 1_000, "{} bytes are left", many.size());
    }
}

#[test]
fn every_function_is_registered_under_all_its_names() {
    let mut state = SessionStateBuilder::new().with_default_features().build();
    super::register(&mut state).unwrap();
    for name in [
        "time_weighted_avg",
        "time_weight",
        "twa",
        "max_n",
        "min_n",
        "top_n",
        "lttb",
    ] {
        assert!(state.aggregate_functions().contains_key(name), "{name}");
    }
    for name in [
        "difference",
        "diff",
        "moving_avg",
        "moving_average",
        "mavg",
        "event_id",
    ] {
        assert!(state.window_functions().contains_key(name), "{name}");
    }
    // Of DataFusion's own functions, only those are replaced whose answers differ from PostgreSQL's,
    // or which hold memory that is not accounted.
    let replaced = [
        "sum",
        "avg",
        "mean",
        "min",
        "max",
        "bit_xor",
        "array_agg",
        "string_agg",
        "listagg",
        "percentile_cont",
        "quantile_cont",
    ];
    let mut ours = SessionStateBuilder::new().build();
    super::register(&mut ours).unwrap();
    let theirs = SessionStateBuilder::new().with_default_features().build();
    for (name, our) in ours.aggregate_functions() {
        let their = theirs.aggregate_functions().get(name);
        let is_replaced = their.is_some_and(|their| !Arc::ptr_eq(our, their));
        assert_eq!(is_replaced, replaced.contains(&name.as_str()), "{name}");
    }
    let all = ours.aggregate_functions().keys();
    for name in all.chain(theirs.aggregate_functions().keys()) {
        assert!(super::is_aggregate_name(name), "{name}");
    }
    assert!(!super::is_aggregate_name("abs"));
    for name in ours.window_functions().keys() {
        assert!(!theirs.window_functions().contains_key(name), "{name}");
    }
}
