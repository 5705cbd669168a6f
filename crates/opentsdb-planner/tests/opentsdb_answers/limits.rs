//! Queries at the limits of what is planned and held.

use super::{Harness, LINES, pairs};
use marigram_opentsdb::TsQuery;
use marigram_service::ServiceError;

#[tokio::test]
async fn as_many_filters_as_a_query_may_have_are_planned() {
    let data = Harness::new(512 << 20, LINES);
    let filter = r#"{"type":"iwildcard","tagk":"host","filter":"A*"}"#;
    let filters = vec![filter; 256].join(",");
    let body = format!(
        r#"{{"start":3600,"end":3700,"queries":[{{"aggregator":"zimsum","metric":"cpu","filters":[{filters}]}}]}}"#
    );
    let answer = data.ask(TsQuery::from_json(body.as_bytes()).unwrap()).await;
    let answer = answer.unwrap();
    assert!(
        answer.contains(r#""dps":{"3610":11,"3620":2,"3630":23}"#),
        "{answer}"
    );
}

#[tokio::test]
async fn a_group_that_does_not_fit_in_memory_is_refused() {
    let lines: Vec<String> = (0..60_000)
        .map(|at| format!("big {} {at} host=h{}", 3600 + at / 20, at % 20))
        .collect();
    let data = Harness::new(48 << 20, &lines.join("\n"));
    // Half a million buckets of each series.
    let m = "sum:9ms-sum-zero:big";
    let given = pairs(&[("start", "3600"), ("end", "7100"), ("m", m)]);
    let error = data
        .ask(TsQuery::from_parameters(&given).unwrap())
        .await
        .unwrap_err();
    let is_memory = match &error {
        ServiceError::Busy { .. } => true,
        other => other.sqlstate() == "53200",
    };
    assert!(is_memory, "{error:?}");
    let answer = data.query("3600", "7100", "sum:0all-count:big").await;
    assert!(answer.contains(r#""3600":60000.0"#), "{answer}");
}
