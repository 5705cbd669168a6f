//! Tests of reading queries.

use super::*;
use proptest::prelude::*;

/// The only part of a query.
pub(crate) fn checked(m: &str, start_ms: i64, end_ms: i64) -> CheckedQuery {
    let query = TsQuery {
        start: Some(Scalar::Text(millisecond_text(start_ms))),
        end: Some(Scalar::Text(millisecond_text(end_ms))),
        m: vec![m.to_owned()],
        ..TsQuery::default()
    };
    query.check(0).expect("the query is right").remove(0)
}

const NOW: i64 = 1_400_000_000_000;

fn from_json(body: &str) -> Result<Vec<CheckedQuery>, String> {
    let query = TsQuery::from_json(body.as_bytes());
    query
        .and_then(|query| query.check(NOW))
        .map_err(|fault| fault.message)
}

#[test]
fn json_and_parameters_say_the_same() {
    let body = r#"{"msResolution":true,"start":1640966399999,"end":1640966650001,"queries":[
        {"downsample":"0all-last","metric":"g_0","aggregator":"none","rate":"true",
         "rateOptions":{"counter":true,"counterMax":100},
         "tags":{"sensor":"s_2|s_1"},"filters":[
         {"type":"wildcard","tagk":"device","filter":"d*","groupBy":true}]}],"unknown":[1]}"#;
    let json = from_json(body).unwrap();
    let parameters = [
        ("start", "1640966399999"),
        ("end", "1640966650001"),
        ("ms", "true"),
        ("arrays", "true"),
        (
            "m",
            "none:0all-last:rate{counter,100}:g_0{device=wildcard(d*),sensor=s_1|s_2}",
        ),
    ];
    let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let query = TsQuery::from_parameters(&parameters).unwrap();
    assert_eq!(json, query.check(NOW).unwrap());
    assert_eq!(json[0].group_keys(), ["device", "sensor"]);
    assert_eq!(
        (json[0].start_ms, json[0].end_ms),
        (1_640_966_399_999, 1_640_966_650_001)
    );
    // What is sent on means the same at another time.
    let resolved = query.resolved(NOW).unwrap();
    let text = serde_json::to_string(&resolved).unwrap();
    assert_eq!(from_json(&text).unwrap(), json);
}

#[test]
fn faults_are_told_as_opentsdb_tells_them() {
    for (body, expected) in [
        ("", "Missing message content"),
        ("{", "Unable to parse the given JSON"),
        ("{}", "Missing start time"),
        (r#"{"start":"1h-ago"}"#, "Missing queries"),
        (
            r#"{"start":2,"end":1}"#,
            "End time [1000] must be greater than the start time [2000]",
        ),
        (
            r#"{"start":"1h-ago","queries":[{}]}"#,
            "Missing the aggregation function",
        ),
        (
            r#"{"start":"1h-ago","queries":[{"aggregator":"what"}]}"#,
            "No such aggregation function: what",
        ),
        (
            r#"{"start":"1h-ago","queries":[{"aggregator":"sum"}]}"#,
            "Missing the metric or tsuids, provide at least one",
        ),
        (
            r#"{"start":"1h-ago","queries":[{"aggregator":"sum","tsuids":["00"]}]}"#,
            "Queries by TSUID are not supported",
        ),
        (
            r#"{"start":"1h-ago","delete":true}"#,
            "Deleting data is not enabled",
        ),
        (
            r#"{"start":"1h-ago","timezone":"Nowhere"}"#,
            "Invalid timezone: Nowhere",
        ),
    ] {
        assert_eq!(from_json(body), Err(expected.to_owned()), "{body}");
    }
    let of_url = |given: &[(&str, &str)]| {
        let given = given.iter();
        let given: Vec<_> = given
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        TsQuery::from_parameters(&given).unwrap_err().message
    };
    let start = ("start", "1h-ago");
    assert_eq!(
        of_url(&[("m", "sum:m")]),
        "Missing parameter <code>start</code>"
    );
    assert_eq!(
        of_url(&[("start", ""), ("m", "sum:m")]),
        "Missing parameter <code>start</code>"
    );
    assert_eq!(of_url(&[start]), "Missing sub queries");
    assert_eq!(of_url(&[start, ("m", "")]), "The query string was empty");
    let fill =
        r#"{"start":0,"queries":[{"aggregator":"sum","metric":"m","downsample":"1ms-sum-nan"}]}"#;
    assert!(
        from_json(fill)
            .unwrap_err()
            .starts_with("The query would fill")
    );
}

#[test]
fn a_query_has_a_bounded_number_of_filters_and_parts() {
    let filter = r#"{"type":"wildcard","tagk":"a","filter":"*"}"#;
    let of = |filters: usize, tags: usize| {
        let filters = vec![filter; filters].join(",");
        let tags: Vec<_> = (0..tags).map(|tag| format!("\"t{tag}\":1")).collect();
        from_json(&format!(
            r#"{{"start":0,"queries":[{{"aggregator":"sum","metric":"m","filters":[{filters}],"tags":{{{}}}}}]}}"#,
            tags.join(",")
        ))
    };
    assert_eq!(of(200, 56).unwrap()[0].filters.len(), 256);
    let fault = "There are more than 256 filters";
    for (filters, tags) in [(200, 57), (257, 0), (0, 257), (100_000, 0)] {
        assert_eq!(of(filters, tags).unwrap_err(), fault);
    }
    let braces = vec!["a=b"; 129].join(",");
    let m = format!("sum:m{{{braces}}}{{{braces}}}");
    assert_eq!(parse_m(&m).unwrap_err().message, fault);
    let queries = vec![r#"{"aggregator":"sum","metric":"m"}"#; 101].join(",");
    assert_eq!(
        from_json(&format!(r#"{{"start":0,"queries":[{queries}]}}"#)).unwrap_err(),
        "There are more than 100 queries"
    );
}

#[test]
fn long_texts_are_no_functions_and_no_intervals() {
    let long = "0".repeat(100_000);
    for (aggregator, downsample) in [
        (long.as_str(), "1m-avg"),
        ("sum", &format!("{long}all-avg")),
        ("sum", &format!("{long}1m-avg")),
        ("sum", &format!("1m-{long}")),
        ("sum", &format!("1m-avg-{long}")),
    ] {
        let fault = from_json(&format!(
            r#"{{"start":0,"queries":[{{"aggregator":"{aggregator}","metric":"m","downsample":"{downsample}"}}]}}"#
        ));
        assert!(fault.unwrap_err().len() < 200);
    }
}

proptest! {
    #[test]
    fn any_body_is_a_query_or_none(body in proptest::collection::vec(any::<u8>(), 0..100), m in ".{0,40}") {
        let _ = TsQuery::from_json(&body).and_then(|query| query.check(NOW));
        let pairs = [("start".to_owned(), "1h-ago".to_owned()), ("m".to_owned(), m)];
        let _ = TsQuery::from_parameters(&pairs).and_then(|query| query.check(NOW));
    }
}
