//! OpenTSDB's clients against the real binary: points by telnet and by HTTP, queries, users.

use crate::access::add_user_with;
use crate::server::{ServeProcess, ServerResponse, free_port, request};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// A server that takes OpenTSDB's clients, and their port.
fn start(data: &std::path::Path) -> (ServeProcess, u16) {
    let port = free_port();
    let address = format!("127.0.0.1:{port}");
    let server = ServeProcess::start(data, &["--opentsdb", &address]);
    (server, port)
}

/// Sends lines and reads all replies.
fn telnet(port: u16, lines: &str) -> String {
    let mut socket = TcpStream::connect(("127.0.0.1", port)).expect("the server answers");
    let minute = Some(Duration::from_mins(1));
    socket.set_read_timeout(minute).expect("the server answers");
    socket
        .write_all(lines.as_bytes())
        .expect("the server answers");
    socket.write_all(b"exit\n").expect("the server answers");
    socket
        .shutdown(Shutdown::Write)
        .expect("the server answers");
    let mut replies = String::new();
    socket
        .read_to_string(&mut replies)
        .expect("the server answers");
    replies
}

fn ask(port: u16, method: &str, target: &str, body: &Value) -> ServerResponse {
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    request(port, method, target, &[], body.as_bytes()).expect("the server answers")
}

fn get(port: u16, target: &str) -> Value {
    let answer = ask(port, "GET", target, &Value::Null);
    assert_eq!(answer.status, 200, "{target}: {}", answer.body);
    answer.json()
}

#[test]
fn points_come_in_and_queries_answer() {
    let dir = tempfile::tempdir().unwrap();
    let (mut server, port) = start(dir.path());
    let lines = "put sys.cpu 1356998400 1 host=web01 dc=lga\n\
                 put sys.cpu 1356998460 3 host=web01 dc=lga\n\
                 put sys.cpu 1356998520 5 host=web01 dc=lga\n";
    assert_eq!(telnet(port, lines), "");
    let points = json!([
        {"metric": "sys.cpu", "timestamp": 1_356_998_400, "value": 10, "tags": {"host": "web02", "dc": "lga"}},
        {"metric": "sys.cpu", "timestamp": 1_356_998_520_000_i64, "value": "30.5", "tags": {"host": "web02", "dc": "lga"}},
    ]);
    let answer = ask(port, "POST", "/api/put?details", &points);
    assert_eq!(
        answer.json(),
        json!({"success": 2, "failed": 0, "errors": []})
    );
    // What was acknowledged survives.
    server.kill_and_restart();

    let range = "start=2013/01/01-00:00:00&end=1356998600";
    // At 460 the second host has 20.25 on its line.
    let sum = get(port, &format!("/api/query?{range}&m=sum:sys.cpu"));
    assert_eq!(
        sum,
        json!([{
            "metric": "sys.cpu", "tags": {"dc": "lga"}, "aggregateTags": ["host"],
            "dps": {"1356998400": 11, "1356998460": 23.25, "1356998520": 35.5},
        }])
    );
    let hosts = get(
        port,
        &format!("/api/query?{range}&m=max:1m-avg:sys.cpu{{host=*}}&arrays"),
    );
    assert_eq!(hosts[0]["tags"], json!({"host": "web01", "dc": "lga"}));
    assert_eq!(
        hosts[0]["dps"],
        json!([
            [1_356_998_400, 1.0],
            [1_356_998_460, 3.0],
            [1_356_998_520, 5.0]
        ])
    );
    assert_eq!(
        hosts[1]["dps"],
        json!([[1_356_998_400, 10.0], [1_356_998_520, 30.5]])
    );
    // As a benchmark's client asks.
    let body = json!({
        "msResolution": true, "start": 1_356_998_399_999_i64, "end": 1_356_998_520_001_i64,
        "queries": [{"downsample": "0all-last", "metric": "sys.cpu", "aggregator": "none",
                     "tags": {"host": "web02|web01", "dc": "lga"}}],
    });
    let last = ask(port, "POST", "/api/query", &body).json();
    assert_eq!(last[0]["dps"], json!({"1356998399999": 5.0}));
    assert_eq!(last[1]["dps"], json!({"1356998399999": 30.5}));
    let rate = get(
        port,
        &format!("/api/query?{range}&m=sum:rate:sys.cpu{{host=web01}}"),
    );
    assert_eq!(rate[0]["dps"]["1356998460"], json!(2.0 / 60.0));

    assert_eq!(
        get(port, "/api/suggest?type=metrics&q=sys"),
        json!(["sys.cpu"])
    );
    assert_eq!(
        get(port, "/api/suggest?type=tagv&q=web&max=1"),
        json!(["web01"])
    );
    let lookup = get(port, "/api/search/lookup?m=sys.cpu{host=web02}");
    assert_eq!(
        (&lookup["type"], &lookup["totalResults"]),
        (&json!("LOOKUP"), &json!(1))
    );
    assert_eq!(
        lookup["results"][0]["tags"],
        json!({"host": "web02", "dc": "lga"})
    );
    let newest = get(port, "/api/query/last?timeseries=sys.cpu{host=web02}");
    assert_eq!(newest[0]["timestamp"], json!(1_356_998_520_000_i64));
    assert_eq!(newest[0]["value"], "30.5");
    let missing = ask(
        port,
        "GET",
        "/api/query?start=1h-ago&m=sum:nothing",
        &Value::Null,
    );
    assert_eq!(missing.status, 400);
    assert_eq!(
        missing.json()["error"]["message"],
        "No such name for 'metrics': 'nothing'"
    );
    // The points are rows of a table.
    let sql = "SELECT host, max(value) AS most FROM \"sys.cpu\" WHERE host = 'web02' GROUP BY host";
    let target = "/api/v1/sql?db=main";
    let rows = server.request("POST", target, &[("Accept", "text/csv")], sql.as_bytes());
    assert_eq!(rows.body.replace("\r\n", "\n"), "host,most\nweb02,30.5\n");
}

#[test]
fn users_log_in_by_either_protocol() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    add_user_with(&data, "root", "correct horse", &["--admin"]);
    let (_server, port) = start(&data);
    let line = "put m 1356998400 1 host=a\n";
    let refused = telnet(port, line);
    assert!(refused.starts_with("put: not authorized"), "{refused}");
    let stored = telnet(port, &format!("auth root correct horse\n{line}"));
    assert_eq!(stored, "AUTH_SUCCESS\r\n");
    let begin = Instant::now();
    let wrong = telnet(port, &format!("auth root wrong\n{line}"));
    assert_eq!(wrong, "AUTH_FAIL\r\n");
    assert!(
        begin.elapsed() >= Duration::from_millis(100),
        "a failure is answered late"
    );

    let query = "/api/query?start=1356998400&end=1356998500&m=sum:m";
    let nobody = ask(port, "GET", query, &Value::Null);
    assert_eq!(nobody.status, 401);
    assert_eq!(nobody.json()["error"]["code"], 401);
    // root:correct horse
    let basic = [("Authorization", "Basic cm9vdDpjb3JyZWN0IGhvcnNl")];
    let known = request(port, "GET", query, &basic, b"").unwrap();
    assert_eq!(known.json()[0]["dps"], json!({"1356998400": 1}));
}

/// The numbers of the series of a metric, by host.
fn tsuid(port: u16, metric: &str, host: &str) -> String {
    let found = get(
        port,
        &format!("/api/search/lookup?m={metric}%7Bhost={host}%7D"),
    );
    let tsuid = found["results"][0]["tsuid"].as_str();
    tsuid.expect("the series is there").to_owned()
}

#[test]
fn annotations_stay_change_and_go() {
    let dir = tempfile::tempdir().unwrap();
    let (mut server, port) = start(dir.path());
    assert_eq!(
        telnet(
            port,
            "put m 1356998400 1 host=a\nput m 1356998400 2 host=b\n"
        ),
        ""
    );
    let series = tsuid(port, "m", "a");
    let note = |fields: Value| ask(port, "POST", "/api/annotation", &fields);
    let on_series = json!({"startTime": 1_356_998_410, "tsuid": series, "description": "deploy"});
    assert_eq!(note(on_series.clone()).status, 200);
    let changed = note(json!({"startTime": 1_356_998_410_000_i64, "tsuid": series, "notes": "v2"}));
    assert_eq!(changed.json()["description"], "deploy");
    for second in [20, 30, 40] {
        let fields =
            json!({"startTime": 1_356_998_400 + second, "description": format!("g{second}")});
        assert_eq!(note(fields).status, 200);
    }
    server.kill_and_restart();

    let query = "/api/query?start=1356998400&end=1356998500&m=sum:m%7Bhost=*%7D&global_annotations";
    let answer = get(port, query);
    assert_eq!(answer[0]["annotations"][0]["description"], "deploy");
    assert_eq!(answer[0]["annotations"][0]["notes"], "v2");
    assert_eq!(answer[1]["annotations"], Value::Null);
    let globals = answer[1]["globalAnnotations"].as_array().unwrap();
    assert_eq!(globals.len(), 3);
    let one = get(port, "/api/annotation?start_time=1356998420");
    assert_eq!(one["description"], "g20");
    let listed = get(
        port,
        "/api/annotations?start_time=1356998425&end_time=1356998500",
    );
    assert_eq!(listed.as_array().unwrap().len(), 2);
    let gone = ask(
        port,
        "DELETE",
        "/api/annotation?start_time=1356998420",
        &Value::Null,
    );
    assert_eq!(gone.status, 204);
    let missing = ask(
        port,
        "GET",
        "/api/annotation?start_time=1356998420",
        &Value::Null,
    );
    assert_eq!(missing.status, 404);
    let all = json!({"startTime": "1356998400", "endTime": "1356998500", "global": true, "tsuids": [series]});
    let deleted = ask(port, "DELETE", "/api/annotation/bulk", &all);
    assert_eq!(deleted.json()["totalDeleted"], 3);
    let answer = get(port, query);
    assert_eq!(answer[0]["annotations"], Value::Null);
    assert_eq!(answer[0]["dps"]["1356998400"], 1);
}

#[test]
fn expressions_are_computed() {
    let dir = tempfile::tempdir().unwrap();
    let (_server, port) = start(dir.path());
    let lines = "put used 1356998400 30 host=a\nput used 1356998460 45 host=a\n\
                 put total 1356998400 60 host=a\nput total 1356998460 60 host=a\n\
                 put used 1356998400 5 host=b\nput total 1356998400 50 host=b\n";
    assert_eq!(telnet(port, lines), "");
    let filters = json!([{"id": "f", "tags": [
        {"type": "wildcard", "tagk": "host", "filter": "*", "groupBy": true}]}]);
    let request = json!({
        "time": {"start": "1356998400", "end": "1356998500", "aggregator": "sum"},
        "filters": filters,
        "metrics": [{"id": "u", "metric": "used", "filter": "f"}, {"id": "t", "metric": "total", "filter": "f"}],
        "expressions": [{"id": "percent", "expr": "u / t * 100", "join": {"operator": "intersection"}}],
        "outputs": [{"id": "percent", "alias": "used in percent"}],
    });
    let answer = ask(port, "POST", "/api/query/exp", &request);
    assert_eq!(answer.status, 200, "{}", answer.body);
    let answer = answer.json();
    let output = &answer["outputs"][0];
    assert_eq!(output["alias"], "used in percent");
    let dps = json!([
        [1_356_998_400_000_i64, 50.0, 10.0],
        [1_356_998_460_000_i64, 75.0, 0.0]
    ]);
    assert_eq!(output["dps"], dps);
    assert_eq!(output["meta"][2]["commonTags"], json!({"host": "b"}));
    assert_eq!(
        answer["query"]["expressions"][0]["join"]["useQueryTags"],
        false
    );
    // Many points come in several pieces.
    let points: Vec<Value> = (0..5000)
        .map(|at| json!({"metric": "many", "timestamp": 1_356_998_400 + at, "value": at, "tags": {"host": "a"}}))
        .collect();
    assert_eq!(ask(port, "POST", "/api/put", &json!(points)).status, 204);
    let request = json!({
        "time": {"start": "1356998400", "end": "1357009400", "aggregator": "sum"},
        "metrics": [{"id": "a", "metric": "many"}],
        "expressions": [{"id": "e", "expr": "a + 0.5"}],
    });
    let answer = ask(port, "POST", "/api/query/exp", &request).json();
    let dps = answer["outputs"][0]["dps"].as_array().unwrap();
    assert_eq!(dps.len(), 5000);
    assert_eq!(dps[4999], json!([1_357_003_399_000_i64, 4999.5]));
}
