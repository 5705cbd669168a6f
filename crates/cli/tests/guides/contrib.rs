//! Runs the queries of the example dashboard in `contrib/grafana`, with Grafana's macros replaced, next to a
//! server that has rows as Telegraf sends them.

use super::pages::{GuideServer, guide_folder};
use marigram_fixtures::text;
use serde_json::Value;

const ROWS: &str = "curl -sS 'http://127.0.0.1:8086/write?db=telegraf' --data-binary '
cpu,host=alpha,cpu=cpu-total usage_user=1.5,usage_system=2.5,usage_iowait=0.5
mem,host=alpha used_percent=40.5
disk,host=alpha,path=/ used_percent=61.5
events,host=alpha title=\"start\",text=\"it runs\",tags=\"boot\"'";

/// What Grafana puts in place of its macros and variables.
const MACROS: [(&str, &str); 12] = [
    (
        "$__timeGroupAlias(time, $__interval)",
        "time_bucket('10 seconds', time) AS time",
    ),
    ("$__timeFilter(time)", "time >= now() - INTERVAL '1 hour'"),
    ("$timeFilter", "time >= now() - 1h"),
    ("$__interval", "10s"),
    ("v.defaultBucket", "\"telegraf\""),
    ("v.timeRangeStart", "-1h"),
    ("v.timeRangeStop", "now()"),
    ("v.windowPeriod", "10s"),
    ("${host:regex}", "alpha"),
    ("($host)", "('alpha')"),
    ("^$host$", "^alpha$"),
    ("$host", "alpha"),
];

/// The queries in a dashboard: the data source of each, and its text.
fn queries(of: &Value, found: &mut Vec<(String, String)>) {
    match of {
        Value::Object(members) => {
            let text = ["rawSql", "query"]
                .iter()
                .find_map(|name| of[*name].as_str());
            if let (Some(source), Some(text)) = (of["datasource"]["uid"].as_str(), text) {
                found.push((source.to_owned(), text.to_owned()));
            }
            members.values().for_each(|member| queries(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| queries(item, found)),
        _ => {}
    }
}

#[test]
fn the_queries_of_the_example_dashboard_run() {
    let dir = guide_folder();
    let server = GuideServer::start(dir.path(), "marigram serve --data ./db");
    server.answer_to(dir.path(), ROWS);
    let dashboard = text("contrib/grafana/dashboards/hosts.json");
    let dashboard = serde_json::from_str(&dashboard).expect("a dashboard is JSON");
    let mut found = Vec::new();
    queries(&dashboard, &mut found);
    assert_eq!(found.len(), 7, "{found:?}");
    for (source, query) in found {
        let mut query = query;
        for (name, value) in MACROS {
            query = query.replace(name, value);
        }
        std::fs::write(dir.path().join("query"), &query).expect("it can be written");
        let (command, value) = match source.as_str() {
            "marigram-influxql" => (
                "curl -sS -G 'http://127.0.0.1:8086/query?db=telegraf' --data-urlencode q@query",
                "alpha",
            ),
            "marigram-flux" => (
                "curl -sS 'http://127.0.0.1:8086/api/v2/query?org=any' -H 'Content-Type: \
                 application/vnd.flux' --data-binary @query",
                "40.5",
            ),
            "marigram-sql" => (
                "curl -sS 'http://127.0.0.1:8086/api/v1/sql?db=telegraf' --data-binary @query",
                "alpha",
            ),
            other => panic!("a data source {other}"),
        };
        let value = if query.contains("\"events\"") {
            "it runs"
        } else {
            value
        };
        let answer = server.answer_to(dir.path(), command);
        assert!(answer.contains(value), "{query}\n{answer}");
    }
}

#[test]
fn each_query_names_a_provisioned_data_source() {
    let sources = text("contrib/grafana/provisioning/datasources/marigram.yaml");
    let dashboard = text("contrib/grafana/dashboards/hosts.json");
    let dashboard = serde_json::from_str(&dashboard).expect("a dashboard is JSON");
    let mut found = Vec::new();
    queries(&dashboard, &mut found);
    for (source, query) in found {
        let line = format!("uid: {source}");
        assert!(sources.lines().any(|found| found.trim() == line), "{query}");
    }
}
