//! HTTP: writes, answers, and the errors for bad input.

use crate::fake::serve;
use arrow::ipc::reader::StreamReader;
use flate2::Compression;
use flate2::write::GzEncoder;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};
use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// An HTTP answer. `whole` is false if the connection broke before the end of the body.
pub(crate) struct Reply {
    pub status: u16,
    head: String,
    body: Vec<u8>,
    whole: bool,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.body
    }

    pub(crate) fn text(&self) -> &str {
        str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines();
        let mut found = lines.filter_map(|line| line.split_once(": "));
        found
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }
}

/// Sends a request on a connection of its own.
pub(crate) async fn ask(address: SocketAddr, line: &str, headers: &[&str], body: &[u8]) -> Reply {
    let headers = [&["Host: localhost"], headers].concat();
    ask_as(address, line, &headers, body).await
}

/// The same, with only these headers.
pub(crate) async fn ask_as(
    address: SocketAddr,
    line: &str,
    headers: &[&str],
    body: &[u8],
) -> Reply {
    let mut socket = TcpStream::connect(address).await.unwrap();
    let mut request = format!("{line} HTTP/1.1\r\nConnection: close\r\n");
    for header in headers {
        request.push_str(header);
        request.push_str("\r\n");
    }
    if !body.is_empty() {
        request.push_str("Content-Length: ");
        request.push_str(&body.len().to_string());
        request.push_str("\r\n");
    }
    request.push_str("\r\n");
    socket.write_all(request.as_bytes()).await.unwrap();
    socket.write_all(body).await.unwrap();
    let mut bytes = Vec::new();
    socket.read_to_end(&mut bytes).await.unwrap();
    let end = bytes
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap();
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let raw = &bytes[end + 4..];
    let (body, whole) = if head
        .to_ascii_lowercase()
        .contains("transfer-encoding: chunked")
    {
        unchunk(raw)
    } else {
        (raw.to_vec(), true)
    };
    Reply {
        status,
        head,
        body,
        whole,
    }
}

fn unchunk(mut raw: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    loop {
        let Some(end) = raw.windows(2).position(|two| two == b"\r\n") else {
            return (body, false);
        };
        let size = usize::from_str_radix(std::str::from_utf8(&raw[..end]).unwrap(), 16).unwrap();
        if size == 0 {
            return (body, true);
        }
        let Some(chunk) = raw.get(end + 2..end + 2 + size) else {
            return (body, false);
        };
        body.extend_from_slice(chunk);
        raw = &raw[(end + 4 + size).min(raw.len())..];
    }
}

async fn sql(address: SocketAddr, sql: &str, accept: &str) -> Reply {
    let accept = format!("Accept: {accept}");
    ask(
        address,
        "POST /api/v1/sql?db=main",
        &[&accept],
        sql.as_bytes(),
    )
    .await
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A client whose answer has no end; its first bytes are there.
async fn endless_rows(http: SocketAddr) -> TcpStream {
    let mut client = TcpStream::connect(http).await.unwrap();
    let request = "GET /api/v1/sql?q=select%20endless HTTP/1.1\r\nHost: localhost\r\n\r\n";
    client.write_all(request.as_bytes()).await.unwrap();
    client.readable().await.unwrap();
    client
}

#[tokio::test]
async fn health_ping_and_metrics() {
    let (running, fake) = serve(|_| {}).await;
    let http = running.http_addr().unwrap();
    let health = ask(http, "GET /health", &[], b"").await;
    assert_eq!(
        (health.status, &health.json()["status"]),
        (200, &json!("pass"))
    );
    assert_eq!(ask(http, "GET /ping", &[], b"").await.status, 204);
    assert_eq!(ask(http, "HEAD /ping", &[], b"").await.status, 204);
    fake.read_only.store(true, Ordering::SeqCst);
    let health = ask(http, "GET /health", &[], b"").await;
    assert_eq!(health.status, 503);
    assert_eq!(
        health.json()["message"],
        "writes are refused: the disk is full"
    );
    let metrics = ask(http, "GET /metrics", &[], b"").await;
    let text = String::from_utf8(metrics.body).unwrap();
    assert!(text.contains("marigram_series{shard=\"0\"} 7\n"), "{text}");
    let counted = "marigram_server_requests_total{route=\"/ping\",status=\"204\"} 2\n";
    assert!(text.contains(counted), "{text}");
}

#[tokio::test]
async fn lines_are_stored() {
    let (running, fake) = serve(|_| {}).await;
    let http = running.http_addr().unwrap();
    let lines = b"m,d=1 v=1 1\nm,d=2 v=2 2\n";
    let target = "POST /write?db=plant&precision=s&rp=autogen&consistency=all&u=a&p=b";
    assert_eq!(ask(http, target, &[], lines).await.status, 204);
    let target = "POST /api/v2/write?bucket=plant/autogen&org=o&precision=ms";
    let headers = ["Content-Encoding: gzip", "Authorization: Token x"];
    assert_eq!(ask(http, target, &headers, &gzip(lines)).await.status, 204);
    let stored = fake.lines.lock().unwrap();
    let times: Vec<_> = stored
        .iter()
        .map(|(db, batch)| (db.as_str(), batch.times.to_vec()))
        .collect();
    assert_eq!(
        times,
        [
            ("plant", vec![1_000_000_000, 2_000_000_000]),
            ("plant", vec![1_000_000, 2_000_000])
        ]
    );
}

#[tokio::test]
async fn good_lines_are_stored_and_bad_ones_named() {
    let (running, fake) = serve(|_| {}).await;
    let http = running.http_addr().unwrap();
    // Line 2 is malformed; the database refuses line 4.
    let lines = b"m v=1 1\nm v= 2\nm v=3 3\nm v=4 -4\n";
    let reply = ask(http, "POST /api/v2/write?bucket=main", &[], lines).await;
    let answer = reply.json();
    assert_eq!(reply.status, 400, "{answer}");
    assert_eq!(
        (&answer["stored"], &answer["rejected"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(answer["code"], "invalid");
    assert_eq!(
        (&answer["lines"][0]["line"], &answer["lines"][1]["line"]),
        (&json!(2), &json!(4))
    );
    assert_eq!(answer["lines"][1]["message"], "too old");
    let message = answer["error"].as_str().unwrap();
    assert!(message.starts_with("partial write: 2 rows stored, 2 lines refused; line 2"));
    assert_eq!(fake.lines.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn bad_writes_say_what_is_wrong() {
    let (running, fake) = serve(|config| {
        config.body_limit = 1000;
        config.unpacked_limit = 2000;
    })
    .await;
    let http = running.http_addr().unwrap();
    let message = |reply: &Reply| reply.json()["message"].as_str().unwrap().to_owned();
    let reply = ask(http, "POST /api/v2/write", &[], b"m v=1").await;
    assert_eq!(reply.status, 400);
    assert!(message(&reply).contains("'bucket'"));
    let reply = ask(
        http,
        "POST /api/v2/write?bucket=a&precision=days",
        &[],
        b"m v=1",
    )
    .await;
    assert_eq!(reply.status, 400);
    assert!(message(&reply).contains("ns"));
    let reply = ask(
        http,
        "POST /api/v2/write?bucket=a",
        &["Content-Encoding: br"],
        b"m v=1",
    )
    .await;
    assert_eq!(reply.status, 415);
    let reply = ask(
        http,
        "POST /api/v2/write?bucket=a",
        &["Content-Encoding: gzip"],
        b"m v=1",
    )
    .await;
    assert_eq!(reply.status, 400);
    let reply = ask(http, "POST /api/v2/write?bucket=a", &[], &vec![b'x'; 1001]).await;
    assert_eq!(reply.status, 413);
    assert!(message(&reply).contains("1000 bytes"));
    let bomb = gzip(&vec![b' '; 100_000]);
    let reply = ask(
        http,
        "POST /api/v2/write?bucket=a",
        &["Content-Encoding: gzip"],
        &bomb,
    )
    .await;
    assert_eq!(reply.status, 413);
    fake.read_only.store(true, Ordering::SeqCst);
    let reply = ask(http, "POST /api/v2/write?bucket=a", &[], b"m v=1").await;
    assert_eq!(
        (reply.status, message(&reply).as_str()),
        (503, "the disk is full")
    );
    assert!(reply.header("Retry-After").is_some());
    assert!(fake.lines.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_client_that_sends_first_and_reads_later_gets_its_refusal() {
    let (running, fake) = serve(|config| config.body_limit = 1000).await;
    let http = running.http_addr().unwrap();
    // More bytes than the buffers of both sockets can hold.
    let body = vec![b'#'; 32 << 20];
    for (line, header, status) in [
        ("POST /write?db=a", "Accept: */*", 413),
        ("POST /write?db=a", "Content-Encoding: br", 415),
        ("POST /write", "Accept: */*", 400),
        ("POST /api/v1/sql?db=a", "Accept: */*", 413),
        ("POST /nowhere", "Accept: */*", 404),
        ("DELETE /write", "Accept: */*", 405),
    ] {
        let reply = ask(http, line, &[header], &body).await;
        assert_eq!(reply.status, status, "{line}");
    }
    // A body without a length in the head is treated the same.
    let mut socket = TcpStream::connect(http).await.unwrap();
    let head = "POST /write?db=a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    socket.write_all(head.as_bytes()).await.unwrap();
    let chunk = [b"10000\r\n", &body[..0x10000], b"\r\n"].concat();
    for _ in 0..100 {
        socket.write_all(&chunk).await.unwrap();
    }
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).await.unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 413 "));
    assert!(fake.lines.lock().unwrap().is_empty());
}

#[tokio::test]
async fn what_is_over_a_limit_may_come_again() {
    let (running, fake) = serve(|config| config.requests_max = 1).await;
    let http = running.http_addr().unwrap();
    fake.memory_full.store(true, Ordering::SeqCst);
    let reply = ask(http, "POST /api/v2/write?bucket=a", &[], b"m v=1").await;
    assert_eq!(
        (reply.status, reply.header("Retry-After")),
        (503, Some("1"))
    );
    // The request waits for memory that is released in time.
    let soon = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        fake.memory_full.store(false, Ordering::SeqCst);
    };
    let (reply, ()) = tokio::join!(
        ask(http, "POST /api/v2/write?bucket=a", &[], b"m v=1"),
        soon
    );
    assert_eq!(reply.status, 204);
    assert_eq!(fake.memory_taken.load(Ordering::SeqCst), 0);
    // A body that could never fit into the memory for requests is too large, which is no reason to
    // retry.
    let large = vec![b'#'; 33 << 20];
    let reply = ask(http, "POST /api/v2/write?bucket=a", &[], &large).await;
    assert_eq!(reply.status, 413);
    // The limit is not fixed at startup: the database itself may meanwhile need more.
    fake.memory_max.store(1 << 20, Ordering::SeqCst);
    for (size, status) in [((1 << 19) + 1, 413), (1 << 19, 204)] {
        let body = [b"m v=1\n", &vec![b'#'; size - 6][..]].concat();
        let packed = gzip(&body);
        for (body, header) in [(body, "Accept: */*"), (packed, "Content-Encoding: gzip")] {
            let reply = ask(http, "POST /api/v2/write?bucket=a", &[header], &body).await;
            assert_eq!(reply.status, status, "{header}");
            if status == 413 {
                let message = reply.json()["message"].to_string();
                assert!(message.contains("524288 bytes"), "{message}");
                assert!(message.contains("memory_limit"), "{message}");
            }
        }
    }
    fake.memory_max.store(64 << 20, Ordering::SeqCst);
    // A query whose rows still stream takes the only slot.
    let _endless = endless_rows(http).await;
    let reply = ask(http, "POST /api/v2/write?bucket=a", &[], b"m v=1").await;
    assert_eq!(
        (reply.status, reply.header("Retry-After")),
        (503, Some("1"))
    );
    assert_eq!(reply.json()["code"], "unavailable");
}

#[tokio::test]
async fn a_client_that_leaves_stops_its_query() {
    let (running, fake) = serve(|_| {}).await;
    let endless = endless_rows(running.http_addr().unwrap()).await;
    assert_eq!(fake.alive.load(Ordering::SeqCst), 1);
    drop(endless);
    while fake.alive.load(Ordering::SeqCst) > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn rows_in_every_form() {
    let (running, _fake) = serve(|_| {}).await;
    let http = running.http_addr().unwrap();
    let reply = sql(http, "create table t; select types", "application/json").await;
    let answer = reply.json();
    assert_eq!(
        answer["columns"][1],
        json!({"name": "tag", "type": "string"})
    );
    assert_eq!(
        answer["rows"][0],
        json!([
            "1970-01-01T00:00:01.500000000Z",
            "d_1",
            1.5,
            i64::MAX,
            u64::MAX,
            true,
            "a,\"b\"\tc"
        ])
    );
    assert_eq!(
        (&answer["rows"][1][1], &answer["row_count"]),
        (&json!(null), &json!(2))
    );
    assert!(answer["elapsed_ms"].is_number());

    let reply = sql(http, "select types", "text/csv").await;
    let text = String::from_utf8(reply.body).unwrap();
    let expected = "time,tag,f,big,huge,ok,text\n\
        1970-01-01T00:00:01.500000000Z,d_1,1.5,9223372036854775807,18446744073709551615,true,\
        \"a,\"\"b\"\"\tc\"\n\
        1970-01-01T00:00:00.000000000Z,,,-9223372036854775808,0,false,\"\"\n";
    assert_eq!(
        text.replace(",\"\"\n", ",\n"),
        expected.replace(",\"\"\n", ",\n")
    );

    let reply = sql(http, "select many", "application/vnd.apache.arrow.stream").await;
    let reader = StreamReader::try_new(&reply.body[..], None).unwrap();
    let rows: usize = reader.map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!(rows, 30_000);

    let reply = sql(http, "select many", "application/vnd.apache.parquet").await;
    assert_eq!(
        reply.header("Content-Type"),
        Some("application/vnd.apache.parquet")
    );
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(reply.body)).unwrap();
    let rows: usize = reader
        .build()
        .unwrap()
        .map(|batch| batch.unwrap().num_rows())
        .sum();
    assert_eq!(rows, 30_000);

    let reply = sql(http, "select none", "*/*").await;
    assert_eq!(reply.json()["rows"], json!([]));
    let reply = sql(http, "create table t", "*/*").await;
    assert_eq!(
        (reply.status, &reply.json()["tag"]),
        (200, &json!("CREATE TABLE"))
    );
    assert_eq!(sql(http, "select types", "image/png").await.status, 406);
}

#[tokio::test]
async fn errors_are_a_status_or_a_broken_connection() {
    let (running, _fake) = serve(|_| {}).await;
    let http = running.http_addr().unwrap();
    let reply = sql(http, "create table t; select bad", "*/*").await;
    assert_eq!(reply.status, 400);
    assert_eq!(
        (
            &reply.json()["error"]["code"],
            &reply.json()["error"]["position"]
        ),
        (&json!("invalid"), &json!(24))
    );
    assert_eq!(sql(http, "select broken at once", "*/*").await.status, 500);
    // A short answer is complete before its status is sent.
    assert_eq!(sql(http, "select broken", "*/*").await.status, 500);
    let types = sql(http, "select types", "*/*").await;
    assert!(types.header("content-length").is_some() && types.whole);
    let reply = sql(http, "select broken far away", "*/*").await;
    assert_eq!((reply.status, reply.whole), (200, false));
    assert!(sql(http, "select many", "*/*").await.whole);
    let reply = ask(
        http,
        "GET /api/v1/sql?db=nowhere&q=select%20types",
        &[],
        b"",
    )
    .await;
    assert_eq!(
        (reply.status, &reply.json()["error"]["code"]),
        (404, &json!("not_found"))
    );
    assert_eq!(ask(http, "POST /api/v1/sql", &[], b" ").await.status, 400);
    let endless = |timeout_ms: u32| {
        let line = format!("GET /api/v1/sql?timeout_ms={timeout_ms}&q=select%20endless");
        async move { ask(http, &line, &[], b"").await }
    };
    assert_eq!(endless(20).await.status, 503);
    let reply = endless(2000).await;
    assert_eq!(reply.status, 200);
    assert!(!reply.whole, "the timeout ends the rows");
    // One that commits ends by itself.
    let line = "POST /api/v1/sql?timeout_ms=20";
    let reply = ask(http, line, &[], b"write slowly").await;
    assert_eq!(reply.status, 200, "{}", reply.json());
    let reply = ask(http, line, &[], b"write on and on").await;
    assert_eq!(reply.status, 503);
    let reply = ask(http, "GET /wrong", &[], b"").await;
    assert_eq!(reply.status, 404);
    assert!(
        reply.json()["error"]["message"]
            .as_str()
            .unwrap()
            .contains("/api/v1/sql")
    );
    assert_eq!(ask(http, "DELETE /write", &[], b"").await.status, 405);
}

#[tokio::test]
async fn shutdown_waits_for_the_grace_and_no_longer() {
    let (running, fake) = serve(|_| {}).await;
    let http = running.http_addr().unwrap();
    let _endless = endless_rows(http).await;
    running.shutdown(Duration::from_millis(10)).await;
    assert_eq!(fake.alive.load(Ordering::SeqCst), 0);
    assert!(TcpStream::connect(http).await.is_err());
}

#[tokio::test]
async fn an_address_in_use_is_named() {
    let (running, fake) = serve(|_| {}).await;
    let taken = running.http_addr();
    let services = marigram_server::ServedDatabase {
        ingest: fake.clone(),
        query: fake.clone(),
        languages: fake.clone(),
        access: std::sync::Arc::new(marigram_service::OpenAccess),
        status: fake.clone(),
        backup: fake.clone(),
    };
    let config = marigram_server::ServerConfig {
        http: taken,
        postgres: None,
        ..Default::default()
    };
    let Err(error) = marigram_server::start(config, services).await else {
        panic!("it started")
    };
    let message = error.to_string();
    assert!(message.contains(&taken.unwrap().to_string()), "{message}");
    assert!(message.contains("--http"), "{message}");
}

#[tokio::test]
async fn backups_go_where_the_operator_allows() {
    let (running, fake) = serve(|_| {}).await;
    let http = running.http_addr().unwrap();
    let refused = ask(http, "POST /api/v1/backup", &[], b"").await;
    assert_eq!(refused.status, 400);
    let message = refused.json()["error"]["message"].to_string();
    assert!(message.contains("--backup-dir"), "{message}");

    let (running, allowed) = serve(|config| config.backup_dir = Some("/backups".into())).await;
    let http = running.http_addr().unwrap();
    let outside = ask(http, "POST /api/v1/backup?dir=../etc", &[], b"").await;
    assert_eq!(outside.status, 400);
    let taken = ask(http, "POST /api/v1/backup?dir=night&keep=7", &[], b"").await;
    assert_eq!(taken.status, 200);
    let told = taken.json();
    assert_eq!(told["number"], 1);
    assert_eq!(told["dir"], "/backups/night");
    assert_eq!(told["bytes"], 1u64 << 60);
    let bad = ask(http, "POST /api/v1/backup?keep=many", &[], b"").await;
    assert_eq!(bad.status, 400);
    assert_eq!(ask(http, "GET /api/v1/backup", &[], b"").await.status, 405);
    assert!(fake.backups.lock().unwrap().is_empty());
    let asked = allowed.backups.lock().unwrap().clone();
    assert_eq!(asked, [("/backups/night".into(), Some(7))]);
}

#[tokio::test]
async fn a_server_whose_places_are_all_taken_tells_how_it_is() {
    let (running, fake) = serve(|config| config.connections_max = 1).await;
    let http = running.http_addr().unwrap();
    let endless = endless_rows(http).await;
    for (line, status) in [
        ("GET /health", 200),
        ("GET /ping", 204),
        ("GET /metrics", 200),
    ] {
        assert_eq!(ask(http, line, &[], b"").await.status, status, "{line}");
    }
    let refused = ask(http, "POST /write?db=a", &[], b"m v=1").await;
    assert_eq!(refused.status, 503);
    assert_eq!(refused.json()["error"]["code"], "too_many_connections");
    assert!(refused.header("Retry-After").is_some());
    assert_eq!(refused.header("Connection"), Some("close"));
    assert!(fake.lines.lock().unwrap().is_empty());
    drop(endless);
    // Its slot is free as soon as the server notices.
    let free = async { while ask(http, "POST /write?db=a", &[], b"m v=1").await.status != 204 {} };
    tokio::time::timeout(Duration::from_secs(30), free)
        .await
        .unwrap();
}

#[tokio::test]
async fn silent_connections_do_not_keep_health_checks_waiting() {
    // The idle time is far beyond the test's bound.
    let (running, _fake) = serve(|config| {
        config.http_idle_timeout_ms = 600_000;
        config.connections_max = 4;
    })
    .await;
    let http = running.http_addr().unwrap();
    let mut endless = endless_rows(http).await;
    let mut silent = Vec::new();
    for at in 0..90 {
        let mut socket = TcpStream::connect(http).await.unwrap();
        if at % 3 == 0 {
            // The beginning of a head is no request.
            socket.write_all(b"GET /he").await.unwrap();
        }
        silent.push(socket);
    }
    let mut answered = TcpStream::connect(http).await.unwrap();
    let request = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
    answered.write_all(request.as_bytes()).await.unwrap();
    let health = async {
        assert_eq!(ask(http, "GET /health", &[], b"").await.status, 200);
        assert_eq!(
            ask(http, "POST /write?db=a", &[], b"m v=1").await.status,
            204
        );
    };
    let soon = tokio::time::timeout(Duration::from_mins(1), health).await;
    assert!(soon.is_ok(), "others wait for silent connections");
    let mut bytes = vec![0; 1 << 16];
    let end = async { while endless.read(&mut bytes).await.is_ok_and(|read| read > 0) {} };
    let ended = tokio::time::timeout(Duration::from_millis(300), end).await;
    assert!(ended.is_err(), "a busy connection stays open");
    drop((silent, answered));
}

#[tokio::test]
async fn an_unknown_time_zone_is_an_error_of_the_request() {
    let (running, _fake) = serve(|_| {}).await;
    let http = running.http_addr().unwrap();
    for (zone, status) in [
        ("Europe/Berlin", 200),
        ("%2B02:00", 200),
        ("", 200),
        ("Nowhere/City", 400),
    ] {
        for method in ["GET", "POST"] {
            let target = format!("{method} /api/v1/sql?q=select%20none&tz={zone}");
            let reply = ask(http, &target, &[], b"select none").await;
            assert_eq!(reply.status, status, "{target}");
            if status == 400 {
                let error = &reply.json()["error"];
                assert!(error["message"].to_string().contains("Nowhere/City"));
                assert!(error["position"].is_null());
            }
        }
    }
}

#[tokio::test]
async fn a_connection_that_asks_for_nothing_is_closed_and_one_that_waits_for_rows_is_not() {
    let (running, fake) = serve(|config| {
        config.http_idle_timeout_ms = 200;
        config.connections_max = 2;
    })
    .await;
    let http = running.http_addr().unwrap();
    // A query whose rows stream for longer than that.
    let mut endless = endless_rows(http).await;
    // A head that arrives byte by byte and never ends.
    let mut slow = TcpStream::connect(http).await.unwrap();
    while slow.write_all(b"G").await.is_ok() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Its slot is free again, although both slots were taken.
    let written = ask(http, "POST /write?db=a", &[], b"m v=1").await;
    assert_eq!(written.status, 204);
    let mut bytes = vec![0; 1 << 16];
    let end = async { while endless.read(&mut bytes).await.is_ok_and(|read| read > 0) {} };
    let ended = tokio::time::timeout(Duration::from_millis(500), end).await;
    assert!(ended.is_err(), "an answer in progress keeps its connection");
    assert_eq!(fake.alive.load(Ordering::SeqCst), 1);
}
