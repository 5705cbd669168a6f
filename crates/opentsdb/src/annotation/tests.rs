//! Tests of annotations. The words are those of OpenTSDB 2.4.1.

use super::*;
use proptest::prelude::*;

const NOW: i64 = 1_400_000_000_000;

fn change(body: &str) -> AnnotationChange {
    AnnotationChange::from_json(body.as_bytes()).unwrap()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let pairs = pairs.iter();
    pairs
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

#[test]
fn a_change_keeps_what_it_does_not_name_and_a_replacement_does_not() {
    let first = change(r#"{"startTime":1356998400,"description":"d1","endTime":1356998500}"#);
    let stored = first.applied(None, false);
    assert_eq!(
        stored.to_json(),
        r#"{"tsuid":"","description":"d1","notes":"","startTime":1356998400,"endTime":1356998500}"#
    );
    let second = change(r#"{"startTime":"1356998400","notes":"n","custom":{"a":"b","x":1}}"#);
    assert_eq!(
        second.applied(Some(&stored), false).to_json(),
        r#"{"tsuid":"","description":"d1","notes":"n","custom":{"a":"b","x":"1"},"startTime":1356998400,"endTime":1356998500}"#
    );
    assert_eq!(
        second.applied(Some(&stored), true).to_json(),
        r#"{"tsuid":"","description":"","notes":"n","custom":{"a":"b","x":"1"},"startTime":1356998400,"endTime":0}"#
    );
    let custom = second.applied(None, false);
    assert_eq!(
        Annotation::custom_of_text(&custom.custom_text()),
        custom.custom
    );
    assert_eq!(Annotation::custom_of_text(&stored.custom_text()), None);
    assert!(!change(r#"{"startTime":1356998400,"custom":null,"foo":1}"#).has_changes());
}

#[test]
fn seconds_and_milliseconds_of_an_instant_are_one_place() {
    let place = |body: &str| change(body).place();
    assert_eq!(
        place(r#"{"startTime":1356998400,"tsuid":"00ab"}"#),
        ("00AB".to_owned(), 1_356_998_400_000)
    );
    assert_eq!(
        place(r#"{"startTime":1356998400000}"#),
        (String::new(), 1_356_998_400_000)
    );
    let given = pairs(&[
        ("start_time", "2013/01/01-00:00:10"),
        ("end_time", "1356998500"),
        ("tsuid", "0A"),
        ("description", "d"),
        ("notes", "n"),
    ]);
    let of_url = AnnotationChange::from_parameters(&given, NOW).unwrap();
    let annotation = of_url.applied(None, false);
    assert_eq!(annotation.start_time, 1_356_998_410);
    assert_eq!(annotation.end_time, 1_356_998_500);
    assert_eq!(annotation.start_ms(), 1_356_998_410_000);
}

#[test]
fn faults_are_told_as_opentsdb_tells_them() {
    let start = |body: &str| change(body).check_start().unwrap_err().message;
    let missing = "The start timestamp has not been set";
    assert_eq!(start("{}"), missing);
    assert_eq!(start(r#"{"startTime":-5}"#), missing);
    assert!(start(r#"{"startTime":99999999999999}"#).starts_with("The start timestamp is after"));
    let of_url = |given: &[(&str, &str)]| {
        AnnotationChange::from_parameters(&pairs(given), NOW)
            .unwrap_err()
            .message
    };
    assert_eq!(of_url(&[]), "Missing start time");
    assert_eq!(
        of_url(&[("start_time", "x")]),
        "Invalid time: x. Invalid character 'x' in x"
    );
    let wrong = AnnotationChange::from_json(br#"{"tsuid":"xyz"}"#)
        .unwrap_err()
        .message;
    assert_eq!(wrong, "contains illegal character for hexBinary: xyz");
    let list = |body: &str| {
        AnnotationChange::list_from_json(body.as_bytes()).map_err(|fault| fault.message)
    };
    assert_eq!(list("").unwrap_err(), "Missing message content");
    assert_eq!(list("{").unwrap_err(), "Unable to parse the given JSON");
    assert_eq!(list(r#"[{"startTime":1},{}]"#).unwrap_err(), missing);
    assert_eq!(list("[]"), Ok(Vec::new()));
    let many = format!("[{}]", vec![r#"{"startTime":1}"#; 1001].join(","));
    assert_eq!(
        list(&many).unwrap_err(),
        "There are more than 1000 annotations"
    );
}

#[test]
fn deletions_name_series_or_all() {
    let of_body = |body: &str| {
        AnnotationDeletion::from_json(body.as_bytes(), NOW).map_err(|fault| fault.message)
    };
    let found = of_body(r#"{"startTime":1356998450,"endTime":"1356998460","tsuids":["0a"]}"#);
    let found = found.unwrap();
    assert_eq!(
        found.range,
        AnnotationRange {
            tsuids: vec!["0A".to_owned()],
            global: false,
            start_ms: 1_356_998_450_000,
            end_ms: 1_356_998_460_000,
        }
    );
    assert_eq!(
        found.answer(2),
        serde_json::json!({"tsuids": ["0a"], "global": false, "startTime": 1_356_998_450_000_i64,
            "endTime": 1_356_998_460_000_i64, "totalDeleted": 2})
    );
    for (body, expected) in [
        ("{}", "Missing the start time value"),
        (
            r#"{"startTime":"1356998400"}"#,
            "Missing the TSUIDs or global annotations flag",
        ),
        (
            r#"{"startTime":"x","global":true}"#,
            "Invalid time: x. Invalid character 'x' in x",
        ),
        (
            r#"{"startTime":2,"endTime":1,"global":"true"}"#,
            "The end timestamp cannot be less than the start timestamp",
        ),
        (
            r#"{"startTime":2,"tsuids":["zz"]}"#,
            "contains illegal character for hexBinary: zz",
        ),
    ] {
        assert_eq!(of_body(body), Err(expected.to_owned()));
    }
    let given = pairs(&[
        ("start_time", "1356998400"),
        ("global", ""),
        ("tsuids", "0A, 0B"),
    ]);
    let of_url = AnnotationDeletion::from_parameters(&given, NOW).unwrap();
    assert!(of_url.range.global);
    assert_eq!((of_url.range.tsuids.len(), of_url.range.end_ms), (2, NOW));
    let missing = AnnotationDeletion::from_parameters(&[], NOW).unwrap_err();
    assert_eq!(missing.message, "Missing parameter <code>start_time</code>");
    let listed = AnnotationRange::from_parameters(&given, NOW).unwrap();
    assert!(listed.global && listed.tsuids.is_empty());
    let missing = AnnotationRange::from_parameters(&[], NOW).unwrap_err();
    assert_eq!(missing.message, "Missing start time");
}

proptest! {
    #[test]
    fn any_body_is_an_annotation_or_none(body in proptest::collection::vec(any::<u8>(), 0..80), time in ".{0,20}") {
        let _ = AnnotationChange::from_json(&body);
        let _ = AnnotationChange::list_from_json(&body);
        let _ = AnnotationDeletion::from_json(&body, NOW);
        let given = pairs(&[("start_time", &time), ("end_time", &time), ("tsuid", &time), ("tsuids", &time)]);
        let _ = AnnotationChange::from_parameters(&given, NOW);
        let _ = AnnotationDeletion::from_parameters(&given, NOW);
    }
}
