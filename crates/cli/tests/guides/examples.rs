//! Runs the commands of README and of the HTTP guides from top to bottom as they are written, and
//! checks the answers that the guides show.

use super::pages::{FencedBlock, GuideServer, assert_holds, checkout_folder, page};
use serde_json::Value;

#[test]
fn readme_runs_from_top_to_bottom() {
    let dir = checkout_folder();
    let mut server = None;
    let (mut run, mut not_run) = (0, 0);
    for block in page("README.md").iter().filter(|block| block.is_in("sh")) {
        if block.not_run.is_some() {
            not_run += 1;
            continue;
        }
        run += 1;
        if block.text.contains("marigram serve") {
            server = Some(GuideServer::start(dir.path(), &block.text));
            continue;
        }
        let server = server.as_ref().expect("the page starts one first");
        let out = server.answer_to(dir.path(), &block.text);
        if block.text.contains("/write?") {
            assert!(out.contains("204"), "line {}: {out}", block.line);
        }
    }
    // Whoever adds a block decides whether it runs.
    assert_eq!((run, not_run), (4, 3));
}

#[test]
fn the_guide_to_http_says_what_is_answered() {
    let dir = checkout_folder();
    let server = GuideServer::start(
        dir.path(),
        "marigram serve --data ./db --backup-dir ./backups",
    );
    let (run, _) = server.answers_of(dir.path(), &["docs/guides/http.md"]);
    assert_eq!(run, 3);
    let base = format!("'http://{}", server.http);
    let answers = [
        server.json(
            dir.path(),
            &format!(
                "{base}/api/v2/write?bucket=plant' --data-binary $'m a=1\\nm a=2 5\\nm a=x 6\\n'"
            ),
        ),
        server.json(dir.path(), &format!("{base}/api/v1/sql?db=plant' -d 'SELEC 1'")),
        server.json(
            dir.path(),
            &format!(
                "{base}/api/v1/sql?db=plant' -d 'SELECT station, max(temperature) AS max FROM weather \
                 GROUP BY station ORDER BY station'"
            ),
        ),
        server.json(
            dir.path(),
            &format!("-X POST {base}/api/v1/backup?dir=nightly&keep=30'"),
        ),
    ];
    let blocks = page("docs/guides/http.md").into_iter();
    let samples: Vec<FencedBlock> = blocks.filter(|block| block.is_in("json")).collect();
    assert_eq!(samples.len(), answers.len());
    for (sample, answer) in samples.iter().zip(&answers) {
        let told: Value = serde_json::from_str(&sample.text)
            .unwrap_or_else(|error| panic!("line {}: {error}", sample.line));
        alike(&told, answer, &format!("line {}", sample.line));
    }
    assert_eq!(answers[0]["stored"], 2);
    assert_eq!(answers[0]["rejected"], 1);
    let rows = serde_json::json!([["north", 21.5], ["south", 24.1]]);
    assert_eq!(answers[2]["rows"], rows);
}

/// What the commands of these pages print, on a server of their own.
fn answers_of(names: &[&str]) -> String {
    let dir = checkout_folder();
    let server = GuideServer::start(dir.path(), "marigram serve --data ./db");
    server.answers_of(dir.path(), names).1
}

#[test]
fn the_guide_to_influxdb_says_what_is_answered() {
    assert_holds(
        &answers_of(&["docs/guides/influxdb.md"]),
        &[
            r#""tags":{"station":"north"},"columns":["time","temperature"],"values":[["2024-01-01T00:00:00Z",21.5]]"#,
            r#""name":"weather","columns":["time","temperature"],"values":[["#,
            r#""rows":["#,
        ],
    );
}

/// The rows of its questions are those of the guide to InfluxDB.
#[test]
fn the_guide_to_influxql_says_what_is_answered() {
    assert_holds(
        &answers_of(&["docs/guides/influxdb.md", "docs/guides/influxql.md"]),
        &[
            r#""tags":{"station":"south"},"columns":["time","temperature"],"values":[["2024-01-01T00:00:00Z",24.1]]"#,
            "CREATE CONTINUOUS QUERY hourly ON greenhouse BEGIN SELECT mean(temperature)",
        ],
    );
}

#[test]
fn the_guide_to_influxdb_2_and_3_says_what_is_answered() {
    assert_holds(
        &answers_of(&["docs/guides/influxdb2.md"]),
        &[
            r#"{"time":"2024-01-01T00:00:00","temp":21.5}"#,
            r#""hum":35"#,
            r#""name":"plant2""#,
        ],
    );
}

#[test]
fn the_guide_to_flux_says_what_is_answered() {
    let all = answers_of(&["docs/guides/flux.md"]);
    let expected = ",result,table,_start,_stop,_time,_value,_field,_measurement,station\r\n\
                    ,_result,0,2024-01-01T00:00:00Z,2024-01-02T00:00:00Z,2024-01-01T01:00:00Z,22,\
                    temperature,weather,north\r\n\r\n";
    assert!(all.ends_with(expected), "{all}");
}

/// Whether a sample has exactly the keys of the answer, and values of the same kinds.
fn alike(told: &Value, answer: &Value, at: &str) {
    match (told, answer) {
        (Value::Object(told), Value::Object(answer)) => {
            let names = |object: &serde_json::Map<String, Value>| {
                let mut names: Vec<String> = object.keys().cloned().collect();
                names.sort();
                names
            };
            assert_eq!(names(told), names(answer), "{at}");
            for (name, value) in told {
                alike(value, &answer[name], &format!("{at}: {name}"));
            }
        }
        (Value::Array(told), Value::Array(answer)) => {
            if let (Some(told), Some(answer)) = (told.first(), answer.first()) {
                alike(told, answer, at);
            }
        }
        // A position is a number or null.
        (Value::Null, Value::Number(_)) | (Value::Number(_), Value::Null) => {}
        (told, answer) => assert_eq!(
            std::mem::discriminant(told),
            std::mem::discriminant(answer),
            "{at}: {told} and {answer}"
        ),
    }
}
