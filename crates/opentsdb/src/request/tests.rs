//! Tests of requests as text.

use super::*;
use crate::annotation::AnnotationRange;

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let pairs = pairs.iter();
    pairs
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

#[test]
fn requests_come_back_from_their_text() {
    let query = TsQuery::from_parameters(&pairs(&[("start", "1h-ago"), ("m", "sum:m{host=*}")]));
    let suggest =
        SuggestQuery::from_parameters(&pairs(&[("type", "tagk"), ("q", "ho"), ("max", "3")]));
    let lookup = LookupQuery::from_parameters(&pairs(&[("m", "m{host=a|b}")]));
    let body = r#"{"queries":[{"metric":"m","tags":{"host":"a"}}],"backScan":24}"#;
    let last = LastQuery::from_json(body.as_bytes(), 86_400_000_000).unwrap();
    assert_eq!(last.since_ms, 86_313_600_000);
    let range = AnnotationRange {
        tsuids: vec!["0A".to_owned()],
        global: true,
        start_ms: 1000,
        end_ms: 2000,
    };
    let places = vec![("0A".to_owned(), 1000), (String::new(), 2000)];
    let body = r#"{"time":{"start":"1h-ago","aggregator":"sum"},"metrics":[{"id":"a","metric":"m","fillPolicy":{"policy":"nan","value":"NaN"}}],
        "expressions":[{"id":"e","expr":"a + 1","join":{"operator":"union"}}]}"#;
    let expressions = ExpressionQuery::from_json(body.as_bytes());
    let expressions = expressions.and_then(|query| query.checked(86_400_000_000));
    for request in [
        ReadRequest::Expressions(expressions.unwrap()),
        ReadRequest::Annotations(AnnotationQuery::Range(range)),
        ReadRequest::Annotations(AnnotationQuery::Places(places)),
        ReadRequest::Query(query.unwrap()),
        ReadRequest::Suggest(suggest.unwrap()),
        ReadRequest::Lookup(lookup.unwrap()),
        ReadRequest::Last(last),
    ] {
        assert_eq!(ReadRequest::from_text(&request.to_text()), Ok(request));
    }
    assert!(ReadRequest::from_text("{}").is_err());
}

#[test]
fn what_is_missing_is_named() {
    assert!(SuggestQuery::from_parameters(&pairs(&[("q", "a")])).is_err());
    assert!(SuggestQuery::from_parameters(&pairs(&[("type", "x")])).is_err());
    // OpenTSDB 2.4.1 takes a number below 1 for no limit.
    for max in ["0", "-1"] {
        let query = SuggestQuery::from_parameters(&pairs(&[("type", "tagk"), ("max", max)]));
        assert_eq!(query.unwrap().max, SUGGESTED_MAX);
    }
    let lookup = |given: &[(&str, &str)]| {
        let query = LookupQuery::from_parameters(&pairs(given));
        query.unwrap_err().message
    };
    assert_eq!(lookup(&[]), "Missing parameter <code>m</code>");
    assert_eq!(lookup(&[("m", "")]), "Missing parameter <code>m</code>");
    assert_eq!(lookup(&[("m", "m{a=b")]), "Unable to parse query");
    assert_eq!(
        lookup(&[("m", "m"), ("limit", "x")]),
        "Unable to convert 'limit' to a valid number"
    );
    let last = |given: &[(&str, &str)]| {
        let query = LastQuery::from_parameters(&pairs(given), 0);
        query.unwrap_err().message
    };
    assert_eq!(
        last(&[("timeseries", "m{a=b}"), ("back_scan", "x")]),
        "Unable to parse back_scan parameter"
    );
    assert_eq!(
        last(&[("timeseries", "")]),
        "Metric cannot be null or empty"
    );
    for (body, expected) in [
        ("", "Missing message content"),
        ("{}", "Missing sub queries"),
        (r#"{"queries":[{}]}"#, "Metric cannot be null or empty"),
        (
            r#"{"queries":[{"tsuids":["00"]}]}"#,
            "Queries by TSUID are not supported",
        ),
    ] {
        let fault = LastQuery::from_json(body.as_bytes(), 0).unwrap_err();
        assert_eq!(fault.message, expected);
    }
    assert!(LastQuery::from_parameters(&pairs(&[("back_scan", "1")]), 0).is_err());
    assert!(LastQuery::from_json(b"{}", 0).is_err());
    let tags: BTreeMap<_, _> = (0..257).map(|tag| (format!("t{tag}"), "a")).collect();
    let many = serde_json::json!({"queries": [{"metric": "m", "tags": tags}]});
    assert_eq!(
        LastQuery::from_json(many.to_string().as_bytes(), 0).map_err(|fault| fault.message),
        Err("There are more than 256 filters".to_owned())
    );
    let any =
        LookupQuery::from_json(br#"{"tags":[{"key":"host","value":"*"},{"key":"*","value":"x"}]}"#);
    let any = any.unwrap();
    assert_eq!((any.series.metric.as_str(), any.series.tags.len()), ("", 1));
}
