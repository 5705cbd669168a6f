//! Invalid or oversized input on both ports: each gets an answer or a closed connection, and the
//! server continues.

use crate::fake::serve;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A bound against a hang.
const SOON: Duration = Duration::from_mins(1);

/// Sends bytes and reads until the server closes the connection. Bytes that the server did not read
/// may reset it.
async fn sent(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut socket = TcpStream::connect(address).await.unwrap();
    let mut answer = Vec::new();
    let exchange = async {
        let _ = socket.write_all(bytes).await;
        let mut part = vec![0; 1 << 16];
        while let Ok(read @ 1..) = socket.read(&mut part).await {
            answer.extend_from_slice(&part[..read]);
        }
    };
    let ended = tokio::time::timeout(SOON, exchange).await;
    assert!(
        ended.is_ok(),
        "{} did not end",
        bytes[..bytes.len().min(60)].escape_ascii()
    );
    answer
}

fn status(answer: &[u8]) -> u16 {
    let text = String::from_utf8_lossy(answer);
    let status = text.split(' ').nth(1).and_then(|text| text.parse().ok());
    status.unwrap_or(0)
}

#[tokio::test]
async fn requests_over_http_that_are_none_are_client_errors() {
    let (running, fake) = serve(|config| config.http_idle_timeout_ms = 2_000).await;
    let http = running.http_addr().unwrap();
    let request = |line: &str, headers: &str| {
        format!("{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n")
    };
    let long_path = format!("GET /{}", "x".repeat(100_000));
    let long_query = format!("GET /api/v1/sql?q={}", "%20".repeat(100_000));
    let long_header = format!("X: {}\r\n", "y".repeat(1 << 20));
    let many_headers = "X: y\r\n".repeat(500);
    for (line, headers, allowed) in [
        (long_path.as_str(), "", &[414][..]),
        (&long_query, "", &[414]),
        ("GET /ping", &long_header, &[431]),
        ("GET /ping", &many_headers, &[431]),
        ("GET /ping", "X : y\r\n", &[400]),
        ("GET /ping", "X\r\n", &[400]),
        ("GET /\u{0}", "", &[400]),
        // A target that is a host, as in CONNECT.
        ("GET ping", "", &[400, 403]),
        ("G@T /ping", "", &[400, 405]),
        ("POST /write?db=main", "Content-Length: -1\r\n", &[400]),
        (
            "POST /write?db=main",
            "Content-Length: 1\r\nContent-Length: 2\r\n",
            &[400],
        ),
        (
            "POST /write?db=main",
            "Transfer-Encoding: nonsense\r\n",
            &[400],
        ),
        (
            "POST /write?db=%ff%fe%00",
            "Content-Length: 0\r\n",
            &[204, 400],
        ),
        (
            "POST /write?db=main&db=other",
            "Content-Length: 0\r\n",
            &[400],
        ),
        ("GET /api/v1/sql?q=select%20%zz", "", &[400]),
        ("GET /api/v1/sql?q=select%20%c3%28", "", &[400]),
        ("GET /%2e%2e/%2e%2e/etc/passwd", "", &[404]),
        ("GET //ping", "", &[404]),
        ("GET /ping%00", "", &[404]),
        ("GET /api/v1/sql?timeout_ms=-1&q=x", "", &[400]),
        (
            "GET /api/v1/sql?timeout_ms=99999999999999999999&q=x",
            "",
            &[400],
        ),
    ] {
        let answer = sent(http, request(line, headers).as_bytes()).await;
        let found = status(&answer);
        let what = format!("{line:.60} {headers:.60}");
        assert!(allowed.contains(&found), "{what}: {found}");
    }
    // A body that is not UTF-8, invalid chunks, and a wrong length.
    let post = |rest: &[u8]| {
        [
            &b"POST /api/v1/sql HTTP/1.1\r\nHost: localhost\r\n"[..],
            rest,
        ]
        .concat()
    };
    let close = b"Connection: close\r\nContent-Length: 2\r\n\r\n\xff\xfe";
    assert_eq!(status(&sent(http, &post(close)).await), 400);
    let chunk = b"Transfer-Encoding: chunked\r\n\r\nzz\r\n";
    assert_eq!(status(&sent(http, &post(chunk)).await), 400);
    let overflow = b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\n";
    assert_eq!(status(&sent(http, &post(overflow)).await), 400);
    // The classic way to smuggle a second request past a proxy.
    let both =
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n";
    assert!(matches!(status(&sent(http, &post(both)).await), 400));
    assert_eq!(fake.memory_taken.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn requests_in_a_row_are_answered_in_their_order() {
    let (running, _fake) = serve(|_| {}).await;
    let mut bytes = Vec::new();
    for at in 0..200 {
        let path = if at % 2 == 0 { "/ping" } else { "/nowhere" };
        bytes.extend_from_slice(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n").as_bytes());
        if at == 199 {
            bytes.extend_from_slice(b"Connection: close\r\n");
        }
        bytes.extend_from_slice(b"\r\n");
    }
    let answer = sent(running.http_addr().unwrap(), &bytes).await;
    let text = String::from_utf8_lossy(&answer);
    let found: Vec<u16> = text
        .split("HTTP/1.1 ")
        .skip(1)
        .map(|rest| rest[..3].parse().unwrap())
        .collect();
    let expected: Vec<u16> = (0..200).map(|at| [204, 404][at % 2]).collect();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn openings_of_sessions_that_are_none_end_the_connection() {
    let (running, _fake) = serve(|_| {}).await;
    let postgres = running.postgres_addr().unwrap();
    let opening = |length: u32, body: &[u8]| [&length.to_be_bytes()[..], body].concat();
    for (bytes, told) in [
        (opening(0, b"\0\x03\0\0"), true),
        (opening(7, b"\0\x03\0"), true),
        (opening(10_001, b"\0\x03\0\0"), true),
        (opening(8, b"\0\x02\0\0"), true),
        (opening(8, b"\0\x03\0\0"), true),
        (opening(13, b"\0\x03\0\0user\0"), true),
        (opening(14, b"\0\x03\0\0\xff\xfe\0\0\0\0"), true),
        (opening(8, b"\x04\xd2\x16\x2e"), true),
        (opening(12, b"\x04\xd2\x16\x2e\0\0\0\0"), true),
        // A cancel request for a connection that does not exist.
        (opening(16, b"\x04\xd2\x16\x2e\0\0\0\x01\0\0\0\x02"), false),
        (opening(0xff_ff_ff_ff, b"\0\x03\0\0"), false),
    ] {
        let answer = sent(postgres, &bytes).await;
        assert_eq!(
            answer.first() == Some(&b'E'),
            told,
            "{}",
            bytes.escape_ascii()
        );
    }
    let (client, connection) = {
        let config = format!(
            "host=127.0.0.1 port={} user=me dbname=main",
            postgres.port()
        );
        tokio_postgres::connect(&config, tokio_postgres::NoTls)
            .await
            .unwrap()
    };
    let connection = tokio::spawn(connection);
    client.simple_query("select types").await.unwrap();
    drop(client);
    connection.await.unwrap().unwrap();
}
