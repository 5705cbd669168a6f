//! InfluxDB's HTTP API 1.x: requests in every form, answers in every form, and errors.

use crate::fake::serve;
use crate::http::{Reply, ask};
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use std::io::Read;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

async fn post(http: SocketAddr, parameters: &str, headers: &[&str]) -> Reply {
    ask(http, &format!("POST /query?{parameters}"), headers, b"").await
}

/// Two series with the rows `from..to` and `5..`, as the database has them.
fn series(parts: &[(&str, std::ops::Range<i64>)]) -> Value {
    let row = |n: i64| {
        let text = (n % 2 == 0).then_some("<é>");
        let value = if n % 2 == 0 {
            json!(n / 2)
        } else {
            json!(n as f64 / 2.0)
        };
        json!([n * 500, value, text])
    };
    let parts = parts.iter().map(|(host, rows)| {
        let rows: Vec<_> = rows.clone().map(row).collect();
        json!({"name": "cpu", "tags": {"host": host}, "columns": ["time", "v", "s"], "values": rows})
    });
    parts.collect()
}

#[tokio::test]
async fn series_in_every_form() {
    let (running, _) = serve(|_| {}).await;
    let http = running.http_addr().unwrap();
    let reply = post(http, "q=SELECT+series;SHOW+NAMES&epoch=ms", &[]).await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("Content-Type"), Some("application/json"));
    assert!(reply.header("Content-Length").is_some(), "it is whole");
    assert!(reply.header("X-Influxdb-Version").is_some());
    let expected = json!({"results": [
        {"statement_id": 0, "series": series(&[("", 0..5), ("b,c", 5..8)])},
        {"statement_id": 1, "series": [{"columns": ["name"], "values": [["a"], ["b"]]}]},
    ]});
    assert_eq!(reply.json(), expected);
    let csv = post(
        http,
        "q=SELECT+series&epoch=s",
        &["Accept: application/csv"],
    )
    .await;
    assert_eq!(csv.header("Content-Type"), Some("text/csv"));
    let lines: Vec<_> = csv.text().lines().map(str::to_owned).collect();
    assert_eq!(lines[0], "name,tags,time,v,s");
    assert_eq!(lines[6], "cpu,\"host=b\\,c\",2,2.5,");
    let packed = post(http, "q=SHOW+NAMES", &["Accept: application/x-msgpack"]).await;
    assert_eq!(packed.header("Content-Type"), Some("application/x-msgpack"));
    assert!(
        packed
            .bytes()
            .starts_with(b"\x81\xa7results\x91\x82\xacstatement_id\x00")
    );
    let none = post(http, "q=SELECT+none;SHOW+NOTHING;CREATE+DATABASE+d", &[]).await;
    let expected = json!({"results": [
        {"statement_id": 0},
        {"statement_id": 1, "series": [{"columns": ["name"]}]},
        {"statement_id": 2, "messages": [{"level": "warning", "text": "this is a notice"}]},
    ]});
    assert_eq!(none.json(), expected);
    assert_eq!(post(http, "q=%20;%20;", &[]).await.text(), "{}\n");
}

#[tokio::test]
async fn long_answers_stream_and_are_packed() {
    let (running, fake) = serve(|_| {}).await;
    let http = running.http_addr().unwrap();
    let plain = post(http, "q=SELECT+many&epoch=ns", &[]).await;
    assert!(plain.header("Content-Length").is_none(), "it streams");
    let rows = |answer: &Value| -> usize {
        let series = answer["results"][0]["series"].as_array().unwrap();
        series
            .iter()
            .map(|series| series["values"].as_array().unwrap().len())
            .sum()
    };
    assert_eq!(rows(&plain.json()), 30_000);
    for parameters in [
        "q=SELECT+many&epoch=ns",
        "q=SELECT+many&epoch=ns&chunked=true",
    ] {
        let plain = post(http, parameters, &[]).await;
        let packed = post(http, parameters, &["Accept-Encoding: gzip"]).await;
        assert_eq!(packed.header("Content-Encoding"), Some("gzip"));
        let mut text = String::new();
        GzDecoder::new(packed.bytes())
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, plain.text());
    }
    let short = post(http, "q=SHOW+NAMES", &["Accept-Encoding: gzip"]).await;
    assert_eq!(short.header("Content-Encoding"), None);
    assert_eq!(fake.memory_taken.load(Ordering::SeqCst), 0);
    assert_eq!(fake.alive.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn chunks_are_documents_with_pieces_of_series() {
    let (running, _) = serve(|_| {}).await;
    let http = running.http_addr().unwrap();
    let parameters = "q=SELECT+series;SELECT+none&chunked=true&chunk_size=3&epoch=ms";
    let reply = post(http, parameters, &[]).await;
    let documents: Vec<Value> = reply
        .text()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let part = |host: &str, rows, is_cut: bool, has_more: bool| {
        let mut series = series(&[(host, rows)]);
        if is_cut {
            series[0]["partial"] = json!(true);
        }
        let mut result = json!({"statement_id": 0, "series": series});
        if has_more {
            result["partial"] = json!(true);
        }
        json!({"results": [result]})
    };
    let expected = vec![
        part("", 0..3, true, true),
        part("", 3..5, false, true),
        part("b,c", 5..8, false, false),
        json!({"results": [{"statement_id": 1}]}),
    ];
    assert_eq!(documents, expected);
}

#[tokio::test]
async fn a_chunk_is_sent_before_the_next_rows_are_there() {
    let (running, fake) = serve(|_| {}).await;
    let mut socket = TcpStream::connect(running.http_addr().unwrap())
        .await
        .unwrap();
    let request = "GET /query?q=SHOW+NAMES;SELECT+endless&chunked=true HTTP/1.1\r\n\
                   Host: localhost\r\n\r\n";
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("[\"b\"]") {
        let mut part = [0; 1024];
        let count = socket.read(&mut part).await.unwrap();
        assert!(count > 0, "it ended");
        seen.extend_from_slice(&part[..count]);
    }
    drop(socket);
    // Who leaves stops the statement.
    while fake.alive.load(Ordering::SeqCst) > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn requests_in_every_form() {
    let (running, _) = serve(|_| {}).await;
    let http = running.http_addr().unwrap();
    let names = json!({"results": [
        {"statement_id": 0, "series": [{"columns": ["name"], "values": [["a"], ["b"]]}]},
    ]});
    let form = "Content-Type: application/x-www-form-urlencoded";
    let raw = "Content-Type: application/vnd.influxql";
    let parts = "Content-Type: multipart/form-data; boundary=x";
    let body = "--x\r\nContent-Disposition: form-data; name=\"q\"; filename=\"q\"\r\n\r\n\
                SHOW NAMES\r\n--x--\r\n";
    for (line, header, body) in [
        ("GET /query?q=SHOW%20NAMES", "Accept: */*", ""),
        ("POST /query?q=SHOW+NAMES", "Accept: */*", ""),
        ("POST /query", form, "q=SHOW+NAMES"),
        ("POST /query?q=SHOW+NOTHING", form, "q=SHOW+NAMES"),
        ("POST /query", raw, "SHOW NAMES"),
        ("POST /query", parts, body),
        ("POST /query?q=SHOW+NAMES", "Content-Encoding: gzip", ""),
    ] {
        let reply = ask(http, line, &[header], body.as_bytes()).await;
        assert_eq!((reply.status, reply.json()), (200, names.clone()), "{line}");
    }
    for (parameters, header, user) in [
        ("", "Accept: */*", "http"),
        ("&u=ann&p=x", "Accept: */*", "ann"),
        ("", "Authorization: Basic Ym9iOng=", "bob"),
    ] {
        let reply = post(http, &format!("q=SHOW+USER{parameters}"), &[header]).await;
        let values = &reply.json()["results"][0]["series"][0]["values"];
        assert_eq!(values, &json!([[user]]));
    }
}

#[tokio::test]
async fn errors_of_requests_and_of_statements() {
    let (running, _) = serve(|config| config.body_limit = 1000).await;
    let http = running.http_addr().unwrap();
    let missing = post(http, "", &[]).await;
    assert_eq!(missing.status, 400);
    assert_eq!(
        missing.text(),
        "{\"error\":\"missing required parameter \\\"q\\\"\"}\n"
    );
    let header = missing.header("X-Influxdb-Error");
    assert_eq!(header, Some("missing required parameter \"q\""));
    let unread = post(http, "q=SELECT", &["Accept: text/csv"]).await;
    assert_eq!(
        (unread.status, unread.text()),
        (400, "error\nerror parsing query: found EOF\n")
    );
    let failed = post(http, "q=SHOW+NAMES;foo;SHOW+NAMES", &[]).await;
    assert_eq!(failed.status, 200);
    let results = failed.json()["results"].as_array().unwrap().clone();
    assert_eq!(results.len(), 2);
    let error = json!({"statement_id": 1, "error": "undefined function foo()"});
    assert_eq!(results[1], error);
    // What fails after rows were sent is told behind them.
    let broken = post(http, "q=SELECT+broken;SHOW+NAMES&epoch=ms", &[]).await;
    let result = json!({
        "statement_id": 0, "series": series(&[("", 0..1)]), "error": "page 7 is damaged",
    });
    assert_eq!(broken.json(), json!({"results": [result]}));
    let large = ask(http, "POST /query", &[], &[b'x'; 1001]).await;
    assert_eq!(large.status, 413);
    assert!(
        large.json()["error"]
            .as_str()
            .unwrap()
            .contains("1000 bytes")
    );
    for line in ["DELETE /query", "PUT /query?q=SHOW+NAMES"] {
        assert_eq!(ask(http, line, &[], b"").await.status, 405, "{line}");
    }
}

#[tokio::test]
async fn what_changes_something_needs_post() {
    let (running, _) = serve(|_| {}).await;
    let http = running.http_addr().unwrap();
    for (line, refused) in [
        ("GET /query?q=CREATE+DATABASE+d", true),
        ("POST /query?q=CREATE+DATABASE+d", false),
    ] {
        let reply = ask(http, line, &[], b"").await;
        let result = reply.json()["results"][0].clone();
        assert_eq!(
            (reply.status, result.get("error").is_some()),
            (200, refused),
            "{line}"
        );
    }
    let page = ["Origin: http://evil.example"];
    let refused = post(http, "q=CREATE+DATABASE+d", &page).await;
    assert_eq!(refused.status, 403);
}

#[tokio::test]
async fn a_statement_that_takes_too_long_is_stopped() {
    let (running, fake) = serve(|config| config.statement_timeout_ms = 200).await;
    let http = running.http_addr().unwrap();
    let reply = post(http, "q=SELECT+endless", &[]).await;
    let error = reply.json()["results"][0]["error"].to_string();
    assert!(error.contains("200 ms"), "{error}");
    assert_eq!(fake.alive.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn writes_are_answered_in_influxdbs_words() {
    let (running, fake) = serve(|config| config.write_creates_databases = false).await;
    let http = running.http_addr().unwrap();
    let write = async |parameters: &str, lines: &str| {
        let line = format!("POST /write?{parameters}");
        let reply = ask(http, &line, &[], lines.as_bytes()).await;
        let error = if reply.status == 204 {
            String::new()
        } else {
            reply.json()["error"].as_str().unwrap().to_owned()
        };
        (reply.status, error)
    };
    for (parameters, lines, status, error) in [
        ("db=d&rp=autogen&consistency=ALL", "m v=1 1", 204, ""),
        ("db=d", "", 204, ""),
        ("", "m v=1", 400, "database is required"),
        ("db=", "m v=1", 400, "database is required"),
        (
            "db=nowhere",
            "m v=1",
            404,
            "database not found: \"nowhere\"",
        ),
        ("db=d&rp=no", "m v=1", 500, "retention policy not found: no"),
        (
            "db=d&consistency=most",
            "m v=1",
            400,
            "invalid consistency level",
        ),
        ("db=d", "m", 400, "unable to parse 'm': missing fields"),
        (
            "db=d",
            "m v=1 1\nm v= 2\nm v=3 3",
            400,
            "partial write: unable to parse 'm v= 2': missing field value dropped=0",
        ),
        // The database refuses negative times.
        (
            "db=d",
            "m v=1 1\nm v= 2\nm v=3 -3\nm v=4 -4",
            400,
            "partial write: too old dropped=2",
        ),
    ] {
        let told = write(parameters, lines).await;
        assert_eq!(told, (status, error.to_owned()), "{parameters} {lines}");
    }
    fake.lines.lock().unwrap().clear();
    assert_eq!(write("db=d&rp=week", "m v=1 1").await.0, 204);
    assert_eq!(fake.lines.lock().unwrap()[0].1.table, "week.m");
    fake.read_only.store(true, Ordering::SeqCst);
    let refused = write("db=d", "m v=1").await;
    assert_eq!(refused, (503, "the disk is full".to_owned()));
}

#[tokio::test]
async fn ping_tells_the_version_if_asked() {
    let (running, _) = serve(|_| {}).await;
    let http = running.http_addr().unwrap();
    for line in [
        "GET /ping",
        "HEAD /ping",
        "GET /ping?wait_for_leader=1s&verbose=false",
    ] {
        assert_eq!(ask(http, line, &[], b"").await.status, 204, "{line}");
    }
    let verbose = ask(http, "GET /ping?verbose=true", &[], b"").await;
    assert_eq!(verbose.status, 200);
    assert!(verbose.json()["version"].is_string());
    assert_eq!(verbose.header("X-Influxdb-Build"), Some("OSS"));
}
