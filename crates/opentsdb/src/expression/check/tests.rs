//! Tests of requests. The faults are those of OpenTSDB 2.4.1.

use super::*;
use serde_json::{Value, json};

pub(crate) const BEGIN: i64 = 1_356_998_400;
const NOW: i64 = 1_400_000_000_000;

fn request() -> Value {
    json!({
        "time": {"start": BEGIN.to_string(), "end": (BEGIN + 100).to_string(), "aggregator": "sum"},
        "filters": [{"id": "f1", "tags": [
            {"type": "wildcard", "tagk": "host", "filter": "*", "groupBy": true}]}],
        "metrics": [
            {"id": "a", "metric": "pa", "filter": "f1"},
            {"id": "b", "metric": "pb", "filter": "f1", "fillPolicy": {"policy": "nan"}}],
        "expressions": [{"id": "e", "expr": "a + b"}],
    })
}

/// What a request means in which one part is another.
pub(crate) fn checked(part: &str, other: Value) -> Result<CheckedExpressions, String> {
    let mut body = request();
    body[part] = other;
    let query = ExpressionQuery::from_json(body.to_string().as_bytes());
    let query = query.and_then(|query| query.checked(NOW));
    query
        .and_then(|query| query.check(0))
        .map_err(|fault| fault.message)
}

#[test]
fn a_request_names_metrics_and_expressions() {
    let found = checked("name", json!("n")).unwrap();
    assert_eq!(found.metrics.len(), 2);
    let metric = &found.metrics[0];
    assert_eq!(
        (metric.id.as_str(), metric.query.metric.as_str()),
        ("a", "pa")
    );
    assert_eq!(metric.query.start_ms, BEGIN * 1000);
    assert!(metric.query.has_milliseconds && metric.fill == 0.0);
    assert_eq!(metric.query.group_keys(), ["host"]);
    assert!(found.metrics[1].fill.is_nan());
    let step = &found.steps[0];
    assert_eq!((step.join, step.uses_query_tags), (JoinKind::Union, false));
    assert!(step.includes_aggregate_tags && step.fill.is_nan());
    assert_eq!(found.outputs.len(), 1);
    // Outputs choose what is computed.
    let found = checked("outputs", json!([{"id": "b", "alias": "x"}, {"id": "zz"}])).unwrap();
    assert_eq!(found.metrics.len(), 1);
    assert!(found.steps.is_empty());
    assert_eq!(found.outputs[0].alias.as_deref(), Some("x"));
    // Without expressions, metrics are the outputs.
    let found = checked("expressions", json!(null)).unwrap();
    let ids: Vec<_> = found
        .outputs
        .iter()
        .map(|output| output.id.as_str())
        .collect();
    assert_eq!(ids, ["a", "b"]);
    let downsampled = json!({"start": "1", "aggregator": "max", "rate": true, "timezone": "UTC",
        "downsampler": {"interval": "1m", "aggregator": "avg", "fillPolicy": {"policy": "nan"}}});
    let query = &checked("time", downsampled).unwrap().metrics[0].query;
    assert!(query.downsample.is_some() && query.rate.is_some());
}

#[test]
fn expressions_are_computed_behind_those_that_they_use() {
    let expressions = json!([
        {"id": "z", "expr": "y * 2"}, {"id": "y", "expr": "x + b"}, {"id": "x", "expr": "a - 1"}]);
    let found = checked("expressions", expressions).unwrap();
    let ids: Vec<_> = found.steps.iter().map(|step| step.id.as_str()).collect();
    assert_eq!(ids, ["x", "y", "z"]);
    let ids: Vec<_> = found
        .outputs
        .iter()
        .map(|output| output.id.as_str())
        .collect();
    assert_eq!(ids, ["z", "y", "x"]);
    let fault = |expressions: Value| checked("expressions", expressions).unwrap_err();
    let both = json!([{"id": "x", "expr": "y + a"}, {"id": "y", "expr": "x + a"}]);
    assert_eq!(fault(both), "Circular reference found: x");
    let own = json!([{"id": "x", "expr": "x + a"}]);
    assert_eq!(fault(own), "Self referencing expression found: x");
}

/// Checks what is told of requests in which one part is another.
fn assert_faults(requests: Vec<((&str, Value), &str)>) {
    for ((part, other), expected) in requests {
        let fault = checked(part, other.clone()).err();
        assert_eq!(fault.as_deref(), Some(expected), "{part}: {other}");
    }
}

#[test]
fn faults_are_told_as_opentsdb_tells_them() {
    let metric = |changed: Value| {
        let mut metric = json!({"id": "a", "metric": "pa"});
        for (key, value) in changed.as_object().unwrap() {
            metric[key] = value.clone();
        }
        json!([metric])
    };
    let fill = |fill: Value| metric(json!({"fillPolicy": fill}));
    let time = |time: Value| ("time", time);
    assert_faults(vec![
        (time(json!(null)), "missing time"),
        (time(json!({"aggregator": "sum"})), "Missing start time"),
        (time(json!({"start": "1"})), "Invalid time"),
        (
            time(json!({"start": "1", "aggregator": "SUM"})),
            "No such aggregation function: SUM",
        ),
        (
            time(json!({"start": "1", "aggregator": "sum", "downsampler": {"interval": "1m"}})),
            "Invalid time",
        ),
        (("metrics", json!([])), "missing or empty metrics"),
        (
            ("metrics", metric(json!({"id": null}))),
            "Invalid metric at index 0",
        ),
        (
            ("metrics", metric(json!({"id": "a b"}))),
            "Invalid metric at index 0",
        ),
        (
            ("metrics", metric(json!({"id": "1"}))),
            "Invalid metric at index 0",
        ),
        (
            ("metrics", metric(json!({"metric": ""}))),
            "Invalid metric at index 0",
        ),
        (
            ("metrics", metric(json!({"timeOffset": "1h"}))),
            "Invalid metric at index 0",
        ),
        (
            ("metrics", metric(json!({"filter": "zz"}))),
            "unrecognized filter id zz in metric a",
        ),
        (
            (
                "metrics",
                json!([{"id": "a", "metric": "pa"}, {"id": "a", "metric": "pb"}]),
            ),
            "duplicated metric id: a",
        ),
        (
            ("metrics", fill(json!({"policy": "foo"}))),
            "Unrecognized fill policy: foo",
        ),
        (
            ("metrics", fill(json!({"policy": "zero", "value": 5}))),
            "The value for ZERO must be 0",
        ),
        (
            ("metrics", fill(json!({"policy": "nan", "value": 5}))),
            "The value for NONE and NAN must be NaN",
        ),
        (
            ("filters", json!([{"tags": []}])),
            "Invalid filter at index 0",
        ),
        (
            ("filters", json!([{"id": "f"}, {"id": "f"}])),
            "duplicated filter id: f",
        ),
    ]);
}

#[test]
fn faults_of_expressions_are_told_as_opentsdb_tells_them() {
    let expression = |expression: Value| ("expressions", json!([expression]));
    assert_faults(vec![
        (
            expression(json!({"expr": "a"})),
            "Invalid expression at index 0",
        ),
        (
            expression(json!({"id": "e"})),
            "Invalid expression at index 0",
        ),
        (
            expression(json!({"id": "a", "expr": "b"})),
            "Duplicated variable or expression id: a",
        ),
        (
            expression(json!({"id": "e", "expr": "a + nope"})),
            "Expression [a + nope] was missing input nope",
        ),
        (
            expression(json!({"id": "e", "expr": "a", "join": {}})),
            "The set operator cannot be null",
        ),
        (
            expression(json!({"id": "e", "expr": "a", "join": {"operator": "cross"}})),
            "Unrecognized set operator: cross",
        ),
        (
            ("outputs", json!(vec![json!({"id": "e"}); 101])),
            "There are more than 100 outputs",
        ),
    ]);
    for fine in [
        json!({"policy": "NAN", "value": "NaN"}),
        json!({"policy": "scalar", "value": 2.5}),
        json!({"value": 3}),
        json!({}),
        json!({"policy": "null"}),
    ] {
        let metrics =
            json!([{"id": "a", "metric": "m", "fillPolicy": fine}, {"id": "b", "metric": "m"}]);
        assert_eq!(checked("metrics", metrics).err(), None);
    }
    let body = ExpressionQuery::from_json(b"  ").unwrap_err();
    assert_eq!(body.message, "Missing message content");
    assert!(ExpressionQuery::from_json(b"[1").is_err());
}

#[test]
fn the_answer_repeats_the_request_with_its_defaults() {
    let query = ExpressionQuery::from_json(request().to_string().as_bytes()).unwrap();
    let shown = query.description();
    assert_eq!(shown["time"]["start"], BEGIN.to_string());
    assert_eq!(
        shown["expressions"][0]["join"],
        json!({"operator": "union", "useQueryTags": false, "includeAggTags": true})
    );
    assert_eq!(shown["outputs"], Value::Null);
}
