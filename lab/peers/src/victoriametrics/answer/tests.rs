//! Decodes answers in the server's form.

use super::super::metricsql::{cannot, requests};
use super::*;
use crate::sample;
use crate::write_history::TableHistory;

fn table() -> Table {
    sample::table(2)
}

/// Rows of the answer from `bodies`, one for each request of `select`.
fn answer(select: &Select, bodies: &[&str]) -> Vec<Vec<Cell>> {
    let history = TableHistory {
        first_ns: 1_609_459_200_000_000_000,
        last_ns: 1_609_459_319_000_000_000,
        nulls: false,
    };
    assert_eq!(cannot(&table(), select), None);
    let requests = requests(&table(), select, Some(history));
    assert_eq!(requests.len(), bodies.len(), "{requests:?}");
    let bodies = bodies.iter().map(|body| body.as_bytes().to_vec());
    let answered: Vec<_> = requests.into_iter().zip(bodies).collect();
    decode(&table(), select, &answered).expect("an answer").rows
}

fn word(text: &str) -> Cell {
    Cell::Text(text.to_owned())
}

fn time(ms: i64) -> Cell {
    Cell::Time(ms * MILLISECOND_NS)
}

fn vector(results: &str) -> String {
    format!(r#"{{"status":"success","data":{{"resultType":"vector","result":[{results}]}}}}"#)
}

#[test]
fn exported_fields_are_put_together_as_rows() {
    let select = Select::all(0, Selection::Rows(vec![1, 0]));
    let body = concat!(
        r#"{"metric":{"__name__":"t:celsius","dev":"a","site":"0"},"values":[68.8,-29],"timestamps":[1609459210000,1609459211001]}"#,
        "\n",
        r#"{"metric":{"__name__":"t:ok","dev":"a","site":"0"},"values":[1],"timestamps":[1609459210000]}"#,
        "\n",
    );
    assert_eq!(
        answer(&select, &[body]),
        [
            [
                word("a"),
                time(1_609_459_210_000),
                Cell::Number(1.0),
                Cell::Number(68.8)
            ],
            [
                word("a"),
                time(1_609_459_211_001),
                Cell::Null,
                Cell::Number(-29.0)
            ],
        ]
    );
    assert!(answer(&select, &[""]).is_empty());
}

#[test]
fn a_field_that_is_older_than_the_row_is_null_in_it() {
    let select = Select::all(0, Selection::Last(vec![0, 1]));
    let number = |field: &str, rollup: &str, value: &str| {
        format!(
            r#"{{"metric":{{"__name__":"t:{field}","dev":"a","site":"0","rollup":"{rollup}"}},"value":[1609459319,"{value}"]}}"#
        )
    };
    let body = vector(
        &[
            number("celsius", LAST, "39.4"),
            number("celsius", LAST_TIME, "1609459318.999"),
            number("ok", LAST, "1"),
            number("ok", LAST_TIME, "1609459317"),
        ]
        .join(","),
    );
    let expected = [[
        word("a"),
        time(1_609_459_318_999),
        Cell::Number(39.4),
        Cell::Null,
    ]];
    assert_eq!(answer(&select, &[&body]), expected);
    assert_eq!(numbers(body.as_bytes()), 4);
}

#[test]
fn means_of_groups_are_sums_over_counts() {
    let select = Select {
        by: vec![1],
        ..Select::all(
            0,
            Selection::Aggregates(vec![(Aggregate::Avg, 0), (Aggregate::Spread, 0)]),
        )
    };
    let sums = vector(
        r#"{"metric":{"site":"0","rollup":"count_over_time"},"value":[1609459319,"4"]},{"metric":{"site":"0","rollup":"sum_over_time"},"value":[1609459319,"10"]},{"metric":{"rollup":"count_over_time"},"value":[1609459319,"1"]},{"metric":{"rollup":"sum_over_time"},"value":[1609459319,"3"]}"#,
    );
    let greatest = vector(r#"{"metric":{"site":"0"},"value":[1609459319,"7"]}"#);
    let least = vector(r#"{"metric":{"site":"0"},"value":[1609459319,"-1.5"]}"#);
    assert_eq!(
        answer(&select, &[&sums, &greatest, &least]),
        [
            [Cell::Null, Cell::Number(3.0), Cell::Null],
            [word("0"), Cell::Number(2.5), Cell::Number(8.5)],
        ]
    );
}

#[test]
fn windows_are_named_by_their_start() {
    let mut select = Select {
        bucket_ns: Some(60_000 * MILLISECOND_NS),
        ..Select::all(0, Selection::Aggregates(vec![(Aggregate::Max, 0)]))
    };
    let body = r#"{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1609459259.999,"7"],[1609459319.999,"9"]]}]}}"#;
    let expected = [
        [time(1_609_459_200_000), Cell::Number(7.0)],
        [time(1_609_459_260_000), Cell::Number(9.0)],
    ];
    assert_eq!(answer(&select, &[body]), expected);
    // A window that is cut at its beginning keeps the name of the whole window.
    select.from_ns = Some(1_609_459_230_000_000_000);
    let cut = vector(r#"{"metric":{},"value":[1609459259.999,"7"]}"#);
    let rest = vector(r#"{"metric":{},"value":[1609459319.999,"9"]}"#);
    assert_eq!(answer(&select, &[&cut, &rest]), expected);
}

#[test]
fn what_is_no_answer_is_an_error() {
    let select = Select::all(0, Selection::Aggregates(vec![(Aggregate::Sum, 0)]));
    let request = || requests(&table(), &select, None).remove(0);
    for body in [
        "",
        r#"{"status":"error","data":{"result":[]}}"#,
        r#"{"status":"success","data":{"result":[{"metric":{},"value":[1,"much"]}]}}"#,
    ] {
        let answered = [(request(), body.as_bytes().to_vec())];
        decode(&table(), &select, &answered).expect_err(body);
    }
}

#[test]
fn merges_are_counted() {
    let text = b"vm_active_force_merges 1\nvm_active_merges{type=\"storage/big\"} 2\nvm_rows 7\n";
    assert_eq!(merges(text), 3);
    assert_eq!(merges(b""), 0);
}
