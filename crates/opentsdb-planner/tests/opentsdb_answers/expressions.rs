//! Expressions and annotations over stored points.

use super::{Harness, LINES, pairs};
use futures::StreamExt;
use marigram_engine::WriteOptions;
use marigram_opentsdb::{
    AnnotationChange, AnnotationQuery, AnnotationRange, ExpressionQuery, ReadRequest, TsQuery,
    series_uid,
};
use marigram_protocol::opentsdb::annotation_batch;
use serde_json::{Value, json};

/// The outputs of a request.
async fn outputs(data: &Harness, request: Value) -> Result<Vec<Value>, String> {
    let query = ExpressionQuery::from_json(request.to_string().as_bytes()).unwrap();
    let query = query.checked(0).map_err(|fault| fault.message)?;
    let texts = data.try_texts(ReadRequest::Expressions(query)).await?;
    let all = format!("[{}]", texts.concat());
    Ok(serde_json::from_str(&all).unwrap_or_else(|error| panic!("{error}: {all}")))
}

fn request(expressions: Value) -> Value {
    json!({
        "time": {"start": "3600", "end": "3700", "aggregator": "sum"},
        "filters": [{"id": "f", "tags": [
            {"type": "wildcard", "tagk": "host", "filter": "*", "groupBy": true}]}],
        "metrics": [
            {"id": "a", "metric": "cpu", "filter": "f"},
            {"id": "b", "metric": "mem", "filter": "f", "fillPolicy": {"policy": "nan"}}],
        "expressions": expressions,
    })
}

#[tokio::test]
async fn expressions_compute_with_the_series_of_metrics() {
    let data = Harness::new(512 << 20, LINES);
    let doubled = request(json!([{"id": "e", "expr": "a * 2"}]));
    let found = outputs(&data, doubled).await.unwrap();
    // Host a has 11, 17 and 23, host b 100 and 200.5.
    let dps = json!([
        [3_610_000, 22.0, 200.0],
        [3_620_000, 34.0, 401.0],
        [3_630_000, 46.0, 0.0]
    ]);
    assert_eq!(found[0]["dps"], dps);
    let meta = &found[0]["meta"];
    assert_eq!(
        meta[1],
        json!({"index": 1, "metrics": ["cpu"], "commonTags": {"host": "a", "rack": "r1"},
            "aggregatedTags": ["cpu"]})
    );
    assert_eq!(meta[2]["commonTags"], json!({"cpu": "0", "host": "b"}));
    let joined = |operator: &str| {
        let join = json!({"operator": operator, "useQueryTags": true, "includeAggTags": false});
        request(json!([{"id": "e", "expr": "a + b", "join": join}]))
    };
    let found = outputs(&data, joined("intersection")).await.unwrap();
    let dps = json!([[3_610_000, 18.0], [3_620_000, "NaN"], [3_630_000, "NaN"]]);
    assert_eq!(found[0]["dps"], dps);
    assert_eq!(found[0]["meta"][1]["metrics"], json!(["cpu", "mem"]));
    let found = outputs(&data, joined("union")).await.unwrap();
    assert_eq!(found[0]["dps"][0], json!([3_610_000, 18.0, 100.0]));
    assert_eq!(found[0]["dpsMeta"]["series"], 2);
}

#[tokio::test]
async fn expressions_use_each_other_and_outputs_choose() {
    let data = Harness::new(512 << 20, LINES);
    let mut nested = request(json!([
        {"id": "x", "expr": "e - 1"}, {"id": "e", "expr": "a > 20 ? a : 0"}]));
    nested["outputs"] = json!([{"id": "x", "alias": "X"}, {"id": "a"}, {"id": "x"}]);
    let found = outputs(&data, nested).await.unwrap();
    let ids: Vec<&Value> = found.iter().map(|output| &output["id"]).collect();
    assert_eq!(ids, ["x", "a", "x"]);
    assert_eq!(found[0]["alias"], "X");
    let dps = json!([
        [3_610_000, -1.0, 99.0],
        [3_620_000, -1.0, 199.5],
        [3_630_000, 22.0, -1.0]
    ]);
    assert_eq!(found[0]["dps"], dps);
    assert_eq!(found[2]["dps"], dps);
    assert_eq!(found[1]["dps"][2], json!([3_630_000, 23.0, 0.0]));
    // Downsampled, and as rates.
    let mut sums = request(json!([{"id": "e", "expr": "a"}]));
    sums["time"]["downsampler"] = json!({"interval": "20s", "aggregator": "sum"});
    sums["time"]["rate"] = json!(true);
    let found = outputs(&data, sums).await.unwrap();
    assert_eq!(found[0]["dps"], json!([[3_620_000, 0.7, 5.025]]));
}

#[tokio::test]
async fn what_cannot_be_computed_is_told() {
    let data = Harness::new(512 << 20, LINES);
    let apart = json!([{"id": "e", "expr": "a + b", "join": {"operator": "intersection"}}]);
    let fault = outputs(&data, request(apart)).await.unwrap_err();
    assert!(fault.starts_with("No intersections found"), "{fault}");
    let mut missing = request(json!([{"id": "e", "expr": "a"}]));
    missing["metrics"][0]["metric"] = json!("nothing");
    let fault = outputs(&data, missing).await.unwrap_err();
    assert_eq!(fault, "No such name for 'metrics': 'nothing'");
    let mut empty = request(json!([{"id": "e", "expr": "a + b"}]));
    empty["time"] = json!({"start": "1", "end": "2", "aggregator": "sum"});
    let found = outputs(&data, empty).await.unwrap();
    assert_eq!(found[0]["dps"], json!([]));
    assert_eq!(found[0]["dpsMeta"]["series"], 0);
}

#[tokio::test]
async fn expressions_that_do_not_fit_in_memory_are_refused() {
    let lines: Vec<String> = (0..80_000)
        .map(|at| format!("big {} {at} host=h{}", 3600 + at / 20, at % 4000))
        .collect();
    let data = Harness::new(48 << 20, &lines.join("\n"));
    let mut all = request(json!([{"id": "e", "expr": "a"}]));
    all["metrics"] = json!([{"id": "a", "metric": "big", "filter": "f"}]);
    all["time"]["end"] = json!("7700");
    // 4000 series at 4000 times are 128 MB.
    let query = ExpressionQuery::from_json(all.to_string().as_bytes()).unwrap();
    let request = ReadRequest::Expressions(query.checked(0).unwrap());
    let mut answers = data.run(&request).await.unwrap();
    let error = answers.next().await.unwrap().answer.err().unwrap();
    assert_eq!(error.sqlstate(), "53200", "{error}");
    drop(answers);
    all["metrics"] = json!([{"id": "a", "metric": "big"}]);
    let found = outputs(&data, all).await.unwrap();
    assert_eq!(found[0]["dpsMeta"]["setCount"], 4000);
}

fn annotate(data: &Harness, bodies: &[Value]) {
    let annotations: Vec<_> = bodies
        .iter()
        .map(|body| {
            let change = AnnotationChange::from_json(body.to_string().as_bytes());
            change.unwrap().applied(None, false)
        })
        .collect();
    let options = WriteOptions { grow: true };
    let batch = annotation_batch(&annotations);
    let report = data.engine.write("d", &batch, options).unwrap();
    assert!(report.rejected.is_empty(), "{:?}", report.rejected);
}

#[tokio::test]
async fn annotations_stand_with_their_series() {
    let data = Harness::new(512 << 20, LINES);
    let tsuid = |cpu: &str| series_uid("cpu", [("host", "a"), ("cpu", cpu), ("rack", "r1")]);
    let query = |more: &'static [(&'static str, &'static str)]| {
        let given = [
            &[("start", "3600"), ("end", "3700"), ("m", "sum:cpu{host=*}")],
            more,
        ]
        .concat();
        let query = TsQuery::from_parameters(&pairs(&given)).unwrap();
        let data = &data;
        async move {
            let answer = data.ask(query).await.unwrap();
            serde_json::from_str::<Value>(&answer).unwrap()
        }
    };
    let bare = query(&[]).await;
    assert_eq!(bare[0]["annotations"], Value::Null);
    annotate(
        &data,
        &[
            json!({"startTime": 3630, "tsuid": tsuid("0"), "description": "second"}),
            json!({"startTime": 3610, "tsuid": tsuid("1").to_lowercase(), "notes": "first",
                "custom": {"k": "v"}}),
            json!({"startTime": 3650, "description": "all", "endTime": 3660}),
            json!({"startTime": 3701, "tsuid": tsuid("0"), "description": "after"}),
            json!({"startTime": 3620, "tsuid": "00", "description": "of no series"}),
        ],
    );
    let shown = query(&[]).await;
    let expected = json!([
        {"tsuid": tsuid("1"), "description": "", "notes": "first", "custom": {"k": "v"},
            "startTime": 3610, "endTime": 0},
        {"tsuid": tsuid("0"), "description": "second", "notes": "", "startTime": 3630, "endTime": 0}]);
    assert_eq!(shown[0]["annotations"], expected);
    assert_eq!(shown[0]["dps"], bare[0]["dps"]);
    assert_eq!(shown[1], bare[1]);
    let global = query(&[("global_annotations", "true")]).await;
    assert_eq!(global[0]["annotations"], expected);
    for group in [&global[0], &global[1]] {
        assert_eq!(group["globalAnnotations"][0]["description"], "all");
    }
    let none = query(&[("global_annotations", ""), ("no_annotations", "")]).await;
    assert_eq!(none, bare);
    let texts = |query: AnnotationQuery| data.texts(ReadRequest::Annotations(query));
    let all = AnnotationRange {
        tsuids: vec![tsuid("0")],
        global: true,
        start_ms: 3_600_000,
        end_ms: 3_701_000,
    };
    let found = texts(AnnotationQuery::Range(all)).await;
    let found: Vec<Value> = found
        .iter()
        .map(|text| serde_json::from_str(text).unwrap())
        .collect();
    let descriptions: Vec<&Value> = found.iter().map(|note| &note["description"]).collect();
    assert_eq!(descriptions, ["second", "all", "after"]);
    let places = vec![(tsuid("0"), 3_630_000), (String::new(), 3_630_000)];
    assert_eq!(texts(AnnotationQuery::Places(places)).await.len(), 1);
}
