//! Bad input gets a clear answer, and the good rows are stored.

use crate::server::ServeProcess;
use std::fmt::Write;

#[test]
fn bad_lines_are_named_and_good_ones_stored() {
    let dir = tempfile::tempdir().unwrap();
    let server = ServeProcess::start(dir.path(), &[]);
    let answer = server.write("m,host=a v=1 1\nm,host=b v= 2\nm,host=c v=3 3\n");
    assert_eq!(answer.status, 400);
    let body = answer.json();
    assert_eq!(
        (&body["stored"], &body["rejected"]),
        (&2.into(), &1.into()),
        "{body}"
    );
    assert_eq!(body["lines"][0]["line"], 2, "{body}");
    assert_eq!(
        server.csv("SELECT host FROM m ORDER BY host"),
        "host\na\nc\n"
    );

    let answer = server.write("m,host=d v=4 4\nm,host=e v=true 5\nm,host=f v=6 6\n");
    assert_eq!(answer.status, 400);
    let body = answer.json();
    assert_eq!(
        (&body["stored"], &body["lines"][0]["line"]),
        (&2.into(), &2.into()),
        "{body}"
    );
    let message = body["lines"][0]["message"].as_str().unwrap();
    assert!(
        message.contains('v') && message.contains("BOOLEAN"),
        "{message}"
    );
    assert_eq!(server.csv("SELECT count(*) AS n FROM m"), "n\n4\n");
}

#[test]
fn impossible_values_are_refused_row_by_row() {
    let dir = tempfile::tempdir().unwrap();
    let server = ServeProcess::start(dir.path(), &[]);
    assert_eq!(server.write("seed v=1 1").status, 204);
    let long = "x".repeat(300);
    let bad = [
        ("m v=1 9223372036854775808".to_owned(), "time"),
        ("m v=NaN 1".to_owned(), "NaN"),
        ("m,host= v=1 1".to_owned(), "empty"),
        (format!("m {long}=1 1"), "255"),
        (format!("{long} v=1 1"), "255"),
        ("m v=1i,v=2i 1".to_owned(), "v"),
    ];
    for (line, hint) in bad {
        let answer = server.write(&line);
        assert_eq!(answer.status, 400, "{line}: {}", answer.body);
        let body = answer.json();
        assert_eq!(
            (&body["stored"], &body["rejected"]),
            (&0.into(), &1.into()),
            "{body}"
        );
        let message = body["lines"][0]["message"].as_str().unwrap();
        assert!(message.contains(hint), "{line}: {message}");
    }
    assert_eq!(
        server.csv("SHOW TABLES").lines().count(),
        2,
        "they created no table"
    );
}

#[test]
fn unknown_names_are_named_with_a_place_and_a_suggestion() {
    let dir = tempfile::tempdir().unwrap();
    let server = ServeProcess::start(dir.path(), &[]);
    assert_eq!(server.write("temperature,host=a value=1 1").status, 204);
    let cases = [
        ("SELECT value FROM temperatur", "temperature"),
        ("SELECT valeu FROM temperature", "value"),
        ("SELECT mediam(value) FROM temperature", "median"),
        ("SELEC value FROM temperature", "SELEC"),
    ];
    for (sql, hint) in cases {
        let answer = server.sql(sql, "application/json");
        assert!(
            matches!(answer.status, 400 | 404),
            "{sql}: {} {}",
            answer.status,
            answer.body
        );
        let error = &answer.json()["error"];
        assert!(
            error["message"].as_str().unwrap().contains(hint),
            "{sql}: {error}"
        );
        assert!(error["position"].is_u64(), "{sql}: {error}");
    }
    let target = "/api/v1/sql?db=nowhere";
    let answer = server.request("POST", target, &[], b"SELECT 1 FROM t");
    assert_eq!(answer.status, 404, "{}", answer.body);
    assert!(answer.body.contains("nowhere"), "{}", answer.body);
}

#[test]
fn too_much_is_refused_whole() {
    let dir = tempfile::tempdir().unwrap();
    let server = ServeProcess::start(dir.path(), &["--body-limit", "100KB"]);
    assert_eq!(server.write("seed v=1 1").status, 204);
    let mut lines = String::new();
    for time in 0..10_000 {
        writeln!(lines, "m,host=a v={time} {time}").unwrap();
    }
    let answer = server.write(&lines);
    assert_eq!(answer.status, 413, "{}", answer.body);
    assert!(answer.body.contains("100"), "{}", answer.body);
    assert_eq!(
        server.csv("SHOW TABLES").lines().count(),
        2,
        "nothing is half-stored"
    );
}
