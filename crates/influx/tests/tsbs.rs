//! The IoT queries of the Time Series Benchmark Suite, compared with the answers of a real InfluxDB, floats
//! to 1e-9 of their size. `MARIGRAM_TSBS` names a folder with `iot.influx.gz` (line protocol),
//! `queries/NAME.influx.sql` and `expected/NAME.influx.json`; without it there is nothing to compare.

mod support;

use flate2::read::GzDecoder;
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::io::Read;
use std::path::Path;
use support::Harness;

/// The lines that are written at once.
const BATCH_LINES: usize = 10_000;
/// The number of answers in the folder.
const ANSWERS: usize = 39;

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[expect(clippy::disallowed_methods, reason = "the lines are on the real disk")]
fn load(harness: &Harness, folder: &Path) {
    let packed = fs::read(folder.join("iot.influx.gz")).expect("the lines");
    let mut lines = String::new();
    let mut unpacked = GzDecoder::new(&packed[..]);
    unpacked.read_to_string(&mut lines).expect("text");
    let lines: Vec<&str> = lines.lines().collect();
    for batch in lines.chunks(BATCH_LINES) {
        harness.write(&batch.join("\n"));
    }
    harness.flush();
}

/// Turns the times of an answer into nanoseconds, as ours are.
fn in_nanoseconds(answer: &mut Value) {
    let results = answer["results"].as_array_mut().expect("results");
    for result in results {
        let Some(series) = result.get_mut("series").and_then(Value::as_array_mut) else {
            continue;
        };
        for rows in series
            .iter_mut()
            .filter_map(|series| series.get_mut("values"))
        {
            for row in rows.as_array_mut().into_iter().flatten() {
                let time: jiff::Timestamp =
                    row[0].as_str().expect("a time").parse().expect("a time");
                row[0] = Value::from(i64::try_from(time.as_nanosecond()).expect("a time"));
            }
        }
    }
}

fn same(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Number(ours), Value::Number(theirs)) => {
            let (ours, theirs) = (ours.as_f64(), theirs.as_f64());
            ours.zip(theirs).is_some_and(|(ours, theirs)| {
                (ours - theirs).abs() <= 1e-9 * ours.abs().max(theirs.abs())
            })
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| same(a, b))
        }
        (Value::Object(ours), Value::Object(theirs)) => {
            let is_there = |(key, value): (&String, &Value)| {
                theirs.get(key).is_some_and(|other| same(value, other))
            };
            ours.len() == theirs.len() && ours.iter().all(is_there)
        }
        _ => ours == theirs,
    }
}

#[tokio::test]
async fn answers_are_those_of_influxdb() {
    let Some(folder) = std::env::var_os("MARIGRAM_TSBS") else {
        return;
    };
    let folder = Path::new(&folder);
    let harness = Harness::new();
    load(&harness, folder);
    let queries = fs::read_dir(folder.join("queries")).expect("queries");
    let mut names: Vec<String> = queries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| Some(name.strip_suffix(".influx.sql")?.to_owned()))
        .collect();
    names.sort();
    assert_eq!(names.len(), ANSWERS);
    let mut wrong = String::new();
    for name in &names {
        let query = read(&folder.join(format!("queries/{name}.influx.sql")));
        let mut expected =
            serde_json::from_str(&read(&folder.join(format!("expected/{name}.influx.json"))))
                .expect("JSON");
        in_nanoseconds(&mut expected);
        let answer = harness.ask(&query).await;
        let ours: Value = serde_json::from_str(&answer).expect("JSON");
        if !same(&ours, &expected) {
            _ = writeln!(
                wrong,
                "{name}\n  ours   {answer:.1000}\n  theirs {expected}"
            );
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
