//! Tests of joins and answers. They are those of OpenTSDB 2.4.1, except where said.

use super::check::tests::{BEGIN, checked};
use super::join::JoinVariables;
use super::*;
use crate::reducer::SeriesPoint;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The series of a metric: host and points in seconds.
fn series(metric: &str, all: &[(&str, &[(i64, f64)])]) -> Arc<SeriesSet> {
    let one = |(host, points): &(&str, &[(i64, f64)])| {
        let points = points.iter();
        let points = points.map(|(second, value)| SeriesPoint {
            time_ms: (BEGIN + second) * 1000,
            value: *value,
        });
        let tags = [("host", *host), ("cpu", "0")].into_iter();
        let tags = tags.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let head = ExpressionHead {
            metrics: BTreeSet::from([metric.to_owned()]),
            tags: tags.collect(),
            aggregate_tags: BTreeSet::new(),
        };
        (head, points.collect())
    };
    Arc::new(SeriesSet {
        series: all.iter().map(one).collect(),
        query_keys: BTreeSet::from(["host".to_owned()]),
    })
}

/// The points that the original was given.
fn variables(fills: (f64, f64)) -> JoinVariables {
    let a = series(
        "pa",
        &[
            ("w1", &[(0, 1.5), (10, 2.5), (20, 3.5)]),
            ("w2", &[(0, 10.5), (10, 20.5), (30, 30.5)]),
        ],
    );
    let b = series(
        "pb",
        &[
            ("w1", &[(0, 1.25), (10, 2.25), (20, 0.0)]),
            ("w3", &[(0, 4.5)]),
        ],
    );
    let mut variables = JoinVariables::default();
    variables.add_metric("a", a, fills.0);
    variables.add_metric("b", b, fills.1);
    variables
}

/// The values of an expression, computed over `variables`.
fn joined(expression: Value, variables: &JoinVariables) -> Result<JoinedSeries, String> {
    let found = checked("expressions", json!([expression])).unwrap();
    let (mut join, mut table) =
        ExpressionJoin::new(&found.steps[0], variables).map_err(|fault| fault.message)?;
    while join.next_rows(&mut table) {}
    Ok(table)
}

fn rows(table: &JoinedSeries) -> Vec<(i64, Vec<f64>)> {
    let times = table.times.iter().enumerate();
    times
        .map(|(number, time)| (time / 1000 - BEGIN, table.row(number).to_vec()))
        .collect()
}

#[test]
fn a_union_has_all_series_and_an_intersection_the_common_ones() {
    let zeros = variables((0.0, 0.0));
    let union = joined(json!({"id": "e", "expr": "a + b"}), &zeros).unwrap();
    let expected = [
        (0, vec![2.75, 10.5, 4.5]),
        (10, vec![4.75, 20.5, 0.0]),
        (20, vec![3.5, 0.0, 0.0]),
        (30, vec![0.0, 30.5, 0.0]),
    ];
    assert_eq!(rows(&union), expected);
    let metrics: Vec<Vec<&str>> = union
        .heads
        .iter()
        .map(|head| head.metrics.iter().map(String::as_str).collect())
        .collect();
    assert_eq!(metrics, [vec!["pa", "pb"], vec!["pa"], vec!["pb"]]);
    let intersection = json!({"id": "e", "expr": "a + b", "join": {"operator": "intersection"}});
    let common = joined(intersection.clone(), &zeros).unwrap();
    // A series that is not common has no times.
    assert_eq!(
        rows(&common),
        [(0, vec![2.75]), (10, vec![4.75]), (20, vec![3.5])]
    );
    let mut others = zeros;
    others.add_metric("b", series("pb", &[("w9", &[(0, 1.0)])]), 0.0);
    let fault = joined(intersection.clone(), &others).unwrap_err();
    assert!(fault.starts_with("No intersections found"), "{fault}");
    for name in ["a", "b"] {
        others.add_metric(name, series("p", &[]), 0.0);
    }
    assert_eq!(
        joined(intersection, &others).unwrap(),
        JoinedSeries::default()
    );
}

#[test]
fn missing_values_are_those_of_the_policy_and_missing_series_zero() {
    let table = joined(
        json!({"id": "e", "expr": "a + b"}),
        &variables((f64::NAN, 100.0)),
    )
    .unwrap();
    let shown: Vec<String> = rows(&table)
        .into_iter()
        .map(|(second, values)| format!("{second} {values:?}"))
        .collect();
    let expected = [
        "0 [2.75, 10.5, 4.5]",
        "10 [4.75, 20.5, 100.0]",
        "20 [3.5, NaN, 100.0]",
        "30 [NaN, 30.5, 100.0]",
    ];
    assert_eq!(shown, expected);
}

#[test]
fn expressions_use_expressions_at_the_same_times() {
    // OpenTSDB answers "No more data" where the times differ.
    let mut known = variables((0.0, 0.0));
    let sum = joined(json!({"id": "e", "expr": "b + 1"}), &known).unwrap();
    assert_eq!(
        rows(&sum),
        [
            (0, vec![2.25, 5.5]),
            (10, vec![3.25, 1.0]),
            (20, vec![1.0, 1.0])
        ]
    );
    known.add_expression("b", Arc::new(sum), -1.0);
    let join = json!({"id": "e", "expr": "a * b", "join": {"operator": "union"}});
    let table = joined(join, &known).unwrap();
    let expected = [
        (0, vec![3.375, 0.0, 0.0]),
        (10, vec![8.125, 0.0, 0.0]),
        (20, vec![3.5, 0.0, 0.0]),
        (30, vec![0.0, 0.0, 0.0]),
    ];
    assert_eq!(rows(&table)[..3], expected[..3]);
    assert_eq!(rows(&table)[3].0, 30);
    // At 30 the other expression has no values.
    assert_eq!(rows(&table)[3].1, [-0.0, 0.0, -0.0]);
}

#[test]
fn series_may_be_compared_by_the_tags_of_the_query_only() {
    let mut known = variables((0.0, 0.0));
    let mut other = SeriesSet::clone(&series("pb", &[("w1", &[(0, 1.0)]), ("w2", &[(0, 2.0)])]));
    for (head, _) in &mut other.series {
        head.tags.remove("cpu");
        head.aggregate_tags.insert("cpu".to_owned());
    }
    known.add_metric("b", Arc::new(other), 0.0);
    let width = |join: Value| {
        let table = joined(json!({"id": "e", "expr": "a + b", "join": join}), &known).unwrap();
        table.heads.len()
    };
    assert_eq!(width(json!({"operator": "union"})), 4);
    assert_eq!(width(json!({"operator": "union", "useQueryTags": true})), 4);
    let by_host = json!({"operator": "union", "useQueryTags": true, "includeAggTags": false});
    assert_eq!(width(by_host), 2);
}

#[test]
fn outputs_are_written_as_opentsdb_writes_them() {
    let table = joined(
        json!({"id": "e", "expr": "a + b"}),
        &variables((f64::NAN, 0.0)),
    )
    .unwrap();
    let table = Arc::new(table);
    let write = |alias: Option<&str>, bytes: usize| {
        let output = ExpressionOutput {
            id: "e".to_owned(),
            alias: alias.map(str::to_owned),
        };
        let mut writer = OutputWriter::new(output, Arc::clone(&table));
        let mut all = String::new();
        loop {
            let mut piece = String::new();
            let has_more = writer.write(bytes, &mut piece);
            all.push_str(&piece);
            if !has_more {
                return all;
            }
        }
    };
    let expected =
        r#"{"id":"e","dps":[[1356998400000,2.75,10.5,4.5],[1356998410000,4.75,20.5,0.0],"#
            .to_owned()
            + r#"[1356998420000,3.5,"NaN",0.0],[1356998430000,"NaN",30.5,0.0]],"dpsMeta":{"#
            + r#""firstTimestamp":1356998400000,"lastTimestamp":1356998430000,"setCount":4,"series":3},"#
            + r#""meta":[{"index":0,"metrics":["timestamp"]},"#
            + r#"{"index":1,"metrics":["pa","pb"],"commonTags":{"cpu":"0","host":"w1"},"aggregatedTags":[]},"#
            + r#"{"index":2,"metrics":["pa"],"commonTags":{"cpu":"0","host":"w2"},"aggregatedTags":[]},"#
            + r#"{"index":3,"metrics":["pb"],"commonTags":{"cpu":"0","host":"w3"},"aggregatedTags":[]}]}"#;
    assert_eq!(write(None, usize::MAX), expected);
    assert_eq!(write(None, 1), expected);
    assert!(write(Some("A \"b\""), 1).starts_with(r#"{"id":"e","alias":"A \"b\"","dps":["#));
    let empty = Arc::new(JoinedSeries::default());
    let output = ExpressionOutput {
        id: "e".to_owned(),
        alias: None,
    };
    let mut text = String::new();
    assert!(!OutputWriter::new(output, empty).write(usize::MAX, &mut text));
    let expected = r#"{"id":"e","dps":[],"dpsMeta":{"firstTimestamp":0,"lastTimestamp":0,"setCount":0,"series":0}}"#;
    assert_eq!(text, expected);
}

#[test]
fn a_metric_is_shown_with_zeros() {
    let a = series("pa", &[("w1", &[(0, 1.5)]), ("w2", &[(10, 2.0)])]);
    let (mut join, mut table) = ExpressionJoin::of_metric(a);
    while join.next_rows(&mut table) {}
    assert_eq!(rows(&table), [(0, vec![1.5, 0.0]), (10, vec![0.0, 2.0])]);
}

type Points = BTreeMap<i64, f64>;

proptest! {
    /// A naive join: maps of values by time.
    #[test]
    fn joins_are_those_of_maps(
        a in proptest::collection::btree_map(0_u8..5, proptest::collection::btree_map(0_i64..30, -9.0_f64..9.0, 1..20), 0..5),
        b in proptest::collection::btree_map(0_u8..5, proptest::collection::btree_map(0_i64..30, -9.0_f64..9.0, 1..20), 0..5),
        is_union: bool, fill_a in -2.0_f64..2.0, fill_b in -2.0_f64..2.0,
    ) {
        let set = |all: &BTreeMap<u8, Points>| {
            let points: Vec<(String, Vec<(i64, f64)>)> = all.iter()
                .map(|(host, points)| (format!("h{host}"), points.iter().map(|(t, v)| (*t, *v)).collect()))
                .collect();
            let borrowed: Vec<(&str, &[(i64, f64)])> =
                points.iter().map(|(host, points)| (host.as_str(), points.as_slice())).collect();
            series("m", &borrowed)
        };
        let mut known = JoinVariables::default();
        known.add_metric("a", set(&a), fill_a);
        known.add_metric("b", set(&b), fill_b);
        let operator = if is_union { "union" } else { "intersection" };
        let found = joined(json!({"id": "e", "expr": "a - b * 2", "join": {"operator": operator}}), &known);
        // The series of the first variable, and then those that only the second one has.
        let others = b.keys().filter(|host| !a.contains_key(host));
        let hosts: Vec<u8> = a.keys().chain(others)
            .filter(|host| is_union || (a.contains_key(host) && b.contains_key(host)))
            .copied().collect();
        if hosts.is_empty() && !(a.is_empty() && b.is_empty()) {
            prop_assert!(found.is_err());
            return Ok(());
        }
        let times: BTreeSet<i64> = hosts.iter()
            .flat_map(|host| a.get(host).into_iter().chain(b.get(host)).flat_map(BTreeMap::keys))
            .copied().collect();
        let value = |all: &BTreeMap<u8, Points>, host: &u8, time: &i64, fill: f64| match all.get(host) {
            None => 0.0,
            Some(points) => points.get(time).copied().unwrap_or(fill),
        };
        let expected: Vec<(i64, Vec<f64>)> = times.iter().map(|time| (*time, hosts.iter()
            .map(|host| value(&a, host, time, fill_a) - value(&b, host, time, fill_b) * 2.0)
            .collect())).collect();
        prop_assert_eq!(rows(&found.unwrap()), expected);
    }

    #[test]
    fn any_body_is_a_request_or_none(body in proptest::collection::vec(any::<u8>(), 0..100), expr in ".{0,30}") {
        let _ = ExpressionQuery::from_json(&body).and_then(|query| query.check(0));
        let _ = checked("expressions", json!([{"id": "e", "expr": expr}]));
    }
}
