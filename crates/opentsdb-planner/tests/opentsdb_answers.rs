//! Queries over stored points, whose answers follow from OpenTSDB's rules.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue may panic")]

use arrow::array::AsArray;
use arrow::datatypes::{Float64Type, Int64Type};
use futures::StreamExt;
use marigram_engine::{Durability, Engine, EngineOptions, WriteOptions};
use marigram_env::Env;
use marigram_opentsdb::{
    LastQuery, LookupQuery, ReadRequest, SERIES_KEY, SeriesHead, SeriesWriter, SuggestQuery,
    TelnetCommand, TsQuery,
};
use marigram_opentsdb_planner::OpenTsdbQueries;
use marigram_protocol::opentsdb::metric_batches;
use marigram_service::{
    Answer, Identity, Language, LanguageQuery, LanguageRequest, Result, ServiceError, Session,
};
use marigram_sql::{ReferenceStore, SqlOptions, SqlService};
use std::sync::Arc;

#[path = "opentsdb_answers/expressions.rs"]
mod expressions;
#[path = "opentsdb_answers/limits.rs"]
mod limits;

/// A database in memory, and a client's session.
struct Harness {
    engine: Engine,
    sql: SqlService,
    session: Session,
    _dir: tempfile::TempDir,
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let pairs = pairs.iter();
    pairs
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

impl Harness {
    /// A database with the points of these lines.
    fn new(memory_limit_bytes: usize, lines: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = EngineOptions {
            shards: 2,
            durability: Durability::Os,
            memory_limit_bytes,
            background_threads: 0,
            flush_age_max: None,
            ..EngineOptions::default()
        };
        let engine = Engine::open(Env::real(), &dir.path().join("data"), options).unwrap();
        engine.create_database("d", true).unwrap();
        let front_ends = vec![Arc::new(OpenTsdbQueries) as _];
        let reference = ReferenceStore::in_memory().unwrap();
        let sql = SqlService::with_front_ends(
            engine.clone(),
            reference,
            SqlOptions::default(),
            front_ends,
        )
        .unwrap();
        let new = Self {
            engine,
            sql,
            session: Session::new("d", Identity::owner("tester")),
            _dir: dir,
        };
        new.put(lines);
        new
    }

    fn put(&self, lines: &str) {
        let points = lines.lines().map(|line| {
            match TelnetCommand::parse(format!("put {line}").as_bytes()) {
                TelnetCommand::Put(Ok(point)) => point,
                other => panic!("{line}: {other:?}"),
            }
        });
        let points: Vec<_> = points.collect();
        for metric in metric_batches(&points) {
            let options = WriteOptions { grow: true };
            let report = self.engine.write("d", &metric.batch, options).unwrap();
            assert!(report.rejected.is_empty(), "{:?}", report.rejected);
        }
    }

    /// The answer to `m` in the times `start` to `end`, as `/api/query` gives it.
    async fn query(&self, start: &str, end: &str, m: &str) -> String {
        let given = pairs(&[("start", start), ("end", end), ("m", m)]);
        let query = TsQuery::from_parameters(&given).unwrap();
        self.ask(query)
            .await
            .unwrap_or_else(|error| error.to_string())
    }

    async fn ask(&self, query: TsQuery) -> Result<String> {
        let request = ReadRequest::Query(query.resolved(0).unwrap());
        let mut text = String::new();
        let mut writer = SeriesWriter::begin(false, false, &mut text);
        let mut answers = self.run(&request).await?;
        while let Some(answer) = answers.next().await {
            let Answer::Rows(mut rows) = answer.answer? else {
                panic!("an answer has rows");
            };
            let mut open = String::new();
            while let Some(batch) = rows.batches.next().await {
                let batch = batch?;
                let schema = batch.schema();
                let head = &schema.metadata()[SERIES_KEY];
                if *head != open {
                    open.clone_from(head);
                    let head: SeriesHead = serde_json::from_str(head).unwrap();
                    writer.series(&head, &mut text);
                }
                let times = batch.column(0).as_primitive::<Int64Type>();
                let values = batch.column(1).as_primitive::<Float64Type>();
                for (time, value) in times.values().iter().zip(values.values()) {
                    writer.point(*time, *value, &mut text);
                }
            }
        }
        writer.end(false, &mut text);
        Ok(text)
    }

    async fn run(&self, request: &ReadRequest) -> Result<marigram_service::StatementAnswers> {
        let request = LanguageRequest::new(Language::OpenTsdb, &request.to_text());
        self.sql.run(&self.session, request).await
    }

    /// The texts of an answer that is no series.
    async fn texts(&self, request: ReadRequest) -> Vec<String> {
        self.try_texts(request).await.unwrap()
    }

    /// The same, or why there is no answer.
    async fn try_texts(&self, request: ReadRequest) -> std::result::Result<Vec<String>, String> {
        let told = |error: ServiceError| error.to_string();
        let mut answers = self.run(&request).await.map_err(told)?;
        let mut texts = Vec::new();
        while let Some(answer) = answers.next().await {
            let Answer::Rows(mut rows) = answer.answer.map_err(told)? else {
                panic!("an answer has rows");
            };
            while let Some(batch) = rows.batches.next().await {
                let batch = batch.map_err(told)?;
                let column = batch.column(0).as_string::<i32>();
                texts.extend(column.iter().flatten().map(str::to_owned));
            }
        }
        Ok(texts)
    }
}

/// Two hosts with two CPUs; the second CPU of the second host has no point at 20 and no rack.
const LINES: &str = "\
cpu 3610 1 host=a cpu=0 rack=r1
cpu 3620 2 host=a cpu=0 rack=r1
cpu 3630 3 host=a cpu=0 rack=r1
cpu 3610 10 host=a cpu=1 rack=r1
cpu 3630 20 host=a cpu=1 rack=r1
cpu 3610 100 host=b cpu=0
cpu 3620 200.5 host=b cpu=0
mem 3610 7 host=a";

/// The points of an answer with one series, and its tags and aggregated tags.
fn series(tags: &str, aggregated: &str, dps: &str) -> String {
    format!(
        r#"{{"metric":"cpu","tags":{{{tags}}},"aggregateTags":[{aggregated}],"dps":{{{dps}}}}}"#
    )
}

#[tokio::test]
async fn series_are_grouped_and_interpolated() {
    let data = Harness::new(512 << 20, LINES);
    let query = |m| data.query("3600", "3700", m);
    // At 3620 the second CPU of a has 15 on its line; b has ended at 3630.
    let all = series(
        "\"rack\":\"r1\"",
        "\"cpu\",\"host\"",
        r#""3610":111,"3620":217.5,"3630":23"#,
    );
    assert_eq!(query("sum:cpu").await, format!("[{all}]"));
    let a = r#""host":"a","rack":"r1""#;
    let hosts = [
        series(a, "\"cpu\"", r#""3610":11,"3620":17,"3630":23"#),
        series(r#""cpu":"0","host":"b""#, "", r#""3610":100,"3620":200.5"#),
    ];
    assert_eq!(
        query("sum:cpu{host=*}").await,
        format!("[{}]", hosts.join(","))
    );
    assert_eq!(query("sum:cpu{host=a}").await, format!("[{}]", hosts[0]));
    assert_eq!(
        query("sum:cpu{host=a|b}").await,
        format!("[{}]", hosts.join(","))
    );
    // The same filter without groups.
    assert_eq!(query("sum:cpu{}{host=*}").await, format!("[{all}]"));
    let zero = series(a, "\"cpu\"", r#""3610":11,"3620":2,"3630":23"#);
    assert_eq!(query("zimsum:cpu{host=a}").await, format!("[{zero}]"));
    let none = [
        series(
            r#""cpu":"0","host":"a","rack":"r1""#,
            "",
            r#""3610":1,"3620":2,"3630":3"#,
        ),
        series(
            r#""cpu":"1","host":"a","rack":"r1""#,
            "",
            r#""3610":10,"3630":20"#,
        ),
    ];
    assert_eq!(
        query("none:cpu{}{host=a}").await,
        format!("[{}]", none.join(","))
    );
}

#[tokio::test]
async fn filters_select_series() {
    let data = Harness::new(512 << 20, LINES);
    let hosts = |m: &'static str| {
        let data = &data;
        async move {
            let answer = data.query("3600", "3700", m).await;
            let parsed: serde_json::Value = serde_json::from_str(&answer).unwrap();
            let series = parsed.as_array().unwrap().iter();
            let names =
                series.map(|series| series["tags"]["host"].as_str().unwrap_or("?").to_owned());
            names.collect::<Vec<_>>().join(",")
        }
    };
    assert_eq!(hosts("sum:cpu{host=wildcard(*)}").await, "a,b");
    assert_eq!(hosts("sum:cpu{host=iliteral_or(A|C)}").await, "a");
    assert_eq!(hosts("sum:cpu{host=not_literal_or(a)}").await, "b");
    assert_eq!(hosts("sum:cpu{host=not_iliteral_or(B)}").await, "a");
    assert_eq!(hosts("sum:cpu{host=regexp(^[b-z]$)}").await, "b");
    assert_eq!(hosts("sum:cpu{host=*}{rack=not_key()}").await, "b");
    assert_eq!(hosts("sum:cpu{host=*}{rack=*}").await, "a");
    assert_eq!(hosts("sum:cpu{host=*}{nothing=*}").await, "");
    assert_eq!(hosts("sum:cpu{host=*}{nothing=not_key()}").await, "a,b");
    assert_eq!(hosts("sum:explicit_tags:cpu{host=*,cpu=*}").await, "b");
    // Without filters there are no tags that a series may not have: one group of both hosts.
    assert_eq!(hosts("sum:explicit_tags:cpu").await, "?");
    assert_eq!(hosts("sum:cpu{host=nobody}").await, "");
    let wrong = data.query("3600", "3700", "sum:cpu{host=regexp([)}").await;
    assert!(wrong.contains("regular expression"), "{wrong}");
}

#[tokio::test]
async fn buckets_and_rates() {
    let data = Harness::new(512 << 20, LINES);
    let query = |m| data.query("3600", "3700", m);
    let a = r#""host":"a","rack":"r1""#;
    // The first CPU has 1 and 2 + 3 in its buckets of 20 s, the second 10 and 20.
    let sums = series(a, "\"cpu\"", r#""3600":11.0,"3620":25.0"#);
    assert_eq!(query("sum:20s-sum:cpu{host=a}").await, format!("[{sums}]"));
    let counts = series(a, "\"cpu\"", r#""3600":5.0"#);
    assert_eq!(
        query("sum:0all-count:cpu{host=a}").await,
        format!("[{counts}]")
    );
    // Each CPU gains 0.1 and 0.5 by second; the rate of the second holds from 3630 on.
    let rates = series(a, "\"cpu\"", r#""3620":0.1,"3630":0.6"#);
    assert_eq!(query("sum:rate:cpu{host=a}").await, format!("[{rates}]"));
    let filled = data
        .query("3600", "3660", "sum:20s-sum-null:cpu{host=b}")
        .await;
    let b = r#""cpu":"0","host":"b""#;
    let expected = series(
        b,
        "",
        r#""3600":100.0,"3620":200.5,"3640":null,"3660":null"#,
    );
    assert_eq!(filled, format!("[{expected}]"));
}

#[tokio::test]
async fn points_around_the_query_help_and_are_not_shown() {
    let data = Harness::new(512 << 20, LINES);
    let inner = data.query("3615", "3625", "sum:cpu{host=a}").await;
    let a = r#""host":"a","rack":"r1""#;
    assert_eq!(inner, format!("[{}]", series(a, "\"cpu\"", r#""3620":17"#)));
    assert_eq!(data.query("3640", "3700", "sum:cpu").await, "[]");
    assert_eq!(data.query("360000", "370000", "sum:cpu").await, "[]");
}

#[tokio::test]
async fn parts_follow_each_other_and_a_missing_metric_is_named() {
    let data = Harness::new(512 << 20, LINES);
    let given = pairs(&[
        ("start", "3600"),
        ("end", "3700"),
        ("m", "sum:mem"),
        ("m", "sum:mem{host=a}"),
        ("show_tsuids", "true"),
    ]);
    let answer = data
        .ask(TsQuery::from_parameters(&given).unwrap())
        .await
        .unwrap();
    let parsed: serde_json::Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(parsed.as_array().unwrap().len(), 2);
    assert_eq!(parsed[0], parsed[1]);
    assert_eq!(parsed[0]["tsuids"][0].as_str().unwrap().len(), 48);
    let missing = data.query("3600", "3700", "sum:nothing").await;
    assert_eq!(missing, "No such name for 'metrics': 'nothing'");
}

#[tokio::test]
async fn names_and_series_are_listed() {
    let data = Harness::new(512 << 20, LINES);
    let suggest = |kind: &'static str, prefix: &'static str, max: &'static str| {
        let given = pairs(&[("type", kind), ("q", prefix), ("max", max)]);
        data.texts(ReadRequest::Suggest(
            SuggestQuery::from_parameters(&given).unwrap(),
        ))
    };
    assert_eq!(suggest("metrics", "", "25").await, ["\"cpu\"", "\"mem\""]);
    assert_eq!(suggest("metrics", "m", "25").await, ["\"mem\""]);
    assert_eq!(suggest("tagk", "", "2").await, ["\"cpu\"", "\"host\""]);
    assert_eq!(
        suggest("tagv", "", "25").await,
        ["\"0\"", "\"1\"", "\"a\"", "\"b\"", "\"r1\""]
    );
    let given = pairs(&[("m", "cpu{host=a}"), ("limit", "1")]);
    let lookup = LookupQuery::from_parameters(&given).unwrap();
    let found = data.texts(ReadRequest::Lookup(lookup)).await;
    assert_eq!(found.len(), 2);
    assert!(found[0].contains(r#""host":"a""#), "{}", found[0]);
    assert_eq!(found[1], "2");
    let given = pairs(&[("timeseries", "cpu{host=b}"), ("timeseries", "mem")]);
    let last = LastQuery::from_parameters(&given, 0).unwrap();
    let points = data.texts(ReadRequest::Last(last)).await;
    let parsed: Vec<serde_json::Value> = points
        .iter()
        .map(|point| serde_json::from_str(point).unwrap())
        .collect();
    assert_eq!(parsed.len(), 2);
    assert_eq!(parsed[0]["timestamp"], 3_620_000);
    assert_eq!(parsed[0]["value"], "200.5");
    assert_eq!(parsed[1]["value"], "7");
}

#[tokio::test]
async fn tags_may_be_called_as_columns_of_plans_are() {
    // Sorted by tags, the second series comes first.
    let lines = "odd 3610 1 t=2 v=x k0=y s0=z _t=b __v=d\n\
                 odd 3610 2 t=1 v=x k0=y s0=z _t=b __v=d\n\
                 odd 3620 4 t=1 v=x k0=y s0=z _t=b __v=d";
    let data = Harness::new(512 << 20, lines);
    let last = LastQuery::from_parameters(&pairs(&[("timeseries", "odd")]), 0).unwrap();
    let points = data.texts(ReadRequest::Last(last)).await;
    let mut found: Vec<(String, i64, String)> = Vec::new();
    for point in &points {
        let point: serde_json::Value = serde_json::from_str(point).unwrap();
        let tags = &point["tags"];
        for (name, value) in [
            ("v", "x"),
            ("k0", "y"),
            ("s0", "z"),
            ("_t", "b"),
            ("__v", "d"),
        ] {
            assert_eq!(tags[name], value, "{point}");
        }
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        let time = point["timestamp"].as_i64().unwrap();
        found.push((text(&tags["t"]), time, text(&point["value"])));
    }
    found.sort();
    let expected = [("1", 3_620_000, "4"), ("2", 3_610_000, "1")];
    let expected = expected.map(|(t, time, value)| (t.to_owned(), time, value.to_owned()));
    assert_eq!(found, expected);
    let sums = data.query("3600", "3700", "sum:odd").await;
    assert!(sums.contains(r#""dps":{"3610":3,"3620":4}"#), "{sums}");
    let groups = data.query("3600", "3700", "sum:odd{t=*}").await;
    let first = groups.find(r#""dps":{"3610":2,"3620":4}"#);
    let second = groups.find(r#""dps":{"3610":1}"#);
    assert!(first.is_some() && first < second, "{groups}");
}
