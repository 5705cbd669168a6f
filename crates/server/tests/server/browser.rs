//! What web pages may do over HTTP, rule by rule, with requests as browsers send them.

use crate::fake::{Fake, serve};
use crate::http::{Reply, ask, ask_as};
use marigram_server::{ServedDatabase, ServerConfig, ServerError, start};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Every path, and a missing one, with requests that would have an effect.
const REQUESTS: [(&str, &[u8]); 11] = [
    ("GET /health", b""),
    ("GET /ping", b""),
    ("HEAD /ping", b""),
    ("GET /metrics", b""),
    ("POST /write?db=main", b"m v=1 1"),
    ("POST /api/v2/write?bucket=main", b"m v=1 1"),
    ("POST /api/v1/sql", b"select none"),
    ("GET /api/v1/sql?q=select%20none", b""),
    ("POST /api/v1/backup", b""),
    ("GET /nowhere", b""),
    ("OPTIONS /write", b""),
];

fn untouched(fake: &Fake) {
    assert!(fake.lines.lock().unwrap().is_empty());
    assert!(fake.backups.lock().unwrap().is_empty());
    assert_eq!(fake.statements.load(Ordering::SeqCst), 0);
}

fn is_refused(reply: &Reply, what: &str) {
    assert_eq!(reply.status, 403, "{what}");
    assert_eq!(reply.header("Access-Control-Allow-Origin"), None, "{what}");
    if !what.contains("HEAD") {
        assert_eq!(reply.json()["error"]["code"], "forbidden", "{what}");
    }
}

async fn with_backups(
    change: impl FnOnce(&mut ServerConfig),
) -> (marigram_server::RunningServers, Arc<Fake>, SocketAddr) {
    let (running, fake) = serve(|config| {
        config.backup_dir = Some("/backups".into());
        change(config);
    })
    .await;
    let http = running.http_addr().unwrap();
    (running, fake, http)
}

#[tokio::test]
async fn pages_of_other_origins_are_refused_everywhere() {
    let (_running, fake, http) = with_backups(|_| {}).await;
    let port = http.port();
    let other_port = format!("Origin: http://127.0.0.1:{}", port ^ 1);
    let other_name = format!("Origin: http://localhost:{port}");
    for (line, body) in REQUESTS {
        for headers in [
            &["Origin: https://evil.example"][..],
            &["Origin: null"],
            &[other_port.as_str()],
            // The request's Host is another name of this machine.
            &[other_name.as_str()],
            &["Origin: "],
            &["Origin: \u{fe}"],
            &["Sec-Fetch-Site: cross-site"],
            &["Sec-Fetch-Site: same-site"],
            &["Sec-Fetch-Site: whatever"],
            &[
                "Sec-Fetch-Site: same-origin",
                "Origin: https://evil.example",
            ],
        ] {
            let host = format!("Host: 127.0.0.1:{port}");
            let headers = [&[host.as_str()], headers].concat();
            let reply = ask_as(http, line, &headers, body).await;
            is_refused(&reply, &format!("{line} {headers:?}"));
        }
    }
    untouched(&fake);
}

#[tokio::test]
async fn forms_and_beacons_of_other_pages_are_refused() {
    let (_running, fake, http) = with_backups(|_| {}).await;
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
    ] {
        let kind = format!("Content-Type: {kind}");
        for mark in [
            "Origin: http://localhost:3000",
            "Sec-Fetch-Site: cross-site",
        ] {
            let reply = ask(http, "POST /api/v1/sql", &[&kind, mark], b"create table t").await;
            is_refused(&reply, mark);
            let reply = ask(http, "POST /write?db=main", &[&kind, mark], b"m v=1 1").await;
            is_refused(&reply, mark);
        }
    }
    untouched(&fake);
    // A WebSocket begins as a GET with the page's origin.
    let headers = ["Origin: http://localhost:3000", "Upgrade: websocket"];
    let reply = ask(http, "GET /api/v1/sql", &headers, b"").await;
    is_refused(&reply, "WebSocket");
}

#[tokio::test]
async fn a_name_that_was_rebound_is_refused() {
    let (_running, fake, http) = with_backups(|_| {}).await;
    let port = http.port();
    for (line, body) in REQUESTS {
        for host in [
            "evil.example".to_owned(),
            format!("evil.example:{port}"),
            format!("127.0.0.1.evil.example:{port}"),
            format!("localhost.evil.example:{port}"),
            format!("0.0.0.0:{port}"),
            "10.9.8.7".to_owned(),
            "127.0.0.1@evil.example".to_owned(),
            String::new(),
        ] {
            // To the browser, the page has the same origin.
            let headers = [
                format!("Host: {host}"),
                format!("Origin: http://{host}"),
                "Sec-Fetch-Site: same-origin".to_owned(),
            ];
            let headers: Vec<_> = headers.iter().map(String::as_str).collect();
            let reply = ask_as(http, line, &headers, body).await;
            is_refused(&reply, &format!("{line} {host}"));
        }
    }
    // The target also names the host, and some servers give it precedence.
    let line = "POST http://evil.example/write?db=main";
    is_refused(&ask(http, line, &[], b"m v=1 1").await, line);
    let reply = ask_as(
        http,
        "POST http://localhost/write?db=main",
        &["Host: evil.example"],
        b"m v=1 1",
    )
    .await;
    is_refused(&reply, "Host: evil.example");
    // Two of them, or none, are not valid HTTP.
    for headers in [&[][..], &["Host: localhost", "Host: evil.example"]] {
        let reply = ask_as(http, "POST /write?db=main", headers, b"m v=1 1").await;
        assert_eq!(reply.status, 400, "{headers:?}");
    }
    let twice = ["Origin: http://a.example", "Origin: http://a.example"];
    assert_eq!(
        ask(http, "POST /write?db=main", &twice, b"m v=1 1")
            .await
            .status,
        400
    );
    untouched(&fake);
}

#[tokio::test]
async fn programs_and_pages_of_the_server_itself_pass() {
    let (_running, fake, http) = with_backups(|_| {}).await;
    let port = http.port();
    for host in [
        "localhost".to_owned(),
        format!("LOCALHOST:{port}"),
        "localhost:1".to_owned(),
        format!("127.0.0.1:{port}"),
        format!("127.1.2.3:{port}"),
        format!("[::1]:{port}"),
    ] {
        let named = format!("Host: {host}");
        let origin = format!("Origin: http://{}", host.to_lowercase());
        for headers in [
            &[named.as_str()][..],
            &[named.as_str(), origin.as_str()],
            &[named.as_str(), "Sec-Fetch-Site: none"],
            &[
                named.as_str(),
                "Sec-Fetch-Site: same-origin",
                origin.as_str(),
            ],
        ] {
            let reply = ask_as(http, "POST /write?db=main", headers, b"m v=1 1").await;
            assert_eq!(reply.status, 204, "{headers:?}");
            assert_eq!(reply.header("X-Content-Type-Options"), Some("nosniff"));
            let policy = reply.header("Cross-Origin-Resource-Policy");
            assert_eq!(policy, Some("same-origin"));
        }
    }
    assert_eq!(fake.lines.lock().unwrap().len(), 24);
    // HTTP 1.0, which health checks of load balancers use, has no Host.
    let mut old = TcpStream::connect(http).await.unwrap();
    old.write_all(b"GET /ping HTTP/1.0\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    old.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.0 204"), "{answer}");
}

#[tokio::test]
async fn hosts_and_origins_that_are_allowed_pass() {
    let (_running, fake, http) = with_backups(|config| {
        config.allowed_hosts = vec!["db.example.com".into(), "*.plant.example".into()];
        config.allowed_origins = vec![
            "https://grafana.example.com".into(),
            "http://localhost:*".into(),
        ];
    })
    .await;
    for host in ["db.example.com", "DB.example.com:8086", "a.plant.example"] {
        let reply = ask_as(http, "GET /ping", &[&format!("Host: {host}")], b"").await;
        assert_eq!(reply.status, 204, "{host}");
    }
    for host in ["plant.example", "example.com", "x.db.example.com"] {
        let reply = ask_as(http, "GET /ping", &[&format!("Host: {host}")], b"").await;
        is_refused(&reply, host);
    }
    for origin in ["https://grafana.example.com", "http://localhost:3000"] {
        let headers = [&format!("Origin: {origin}"), "Sec-Fetch-Site: cross-site"];
        let reply = ask(http, "POST /write?db=main", &headers, b"m v=1 1").await;
        assert_eq!(reply.status, 204, "{origin}");
        assert_eq!(reply.header("Access-Control-Allow-Origin"), Some(origin));
        assert_eq!(reply.header("Vary"), Some("Origin"));
        // The page can also read errors.
        let reply = ask(http, "POST /write", &headers, b"m v=1 1").await;
        assert_eq!(reply.status, 400);
        assert_eq!(reply.header("Access-Control-Allow-Origin"), Some(origin));
    }
    for origin in [
        "http://grafana.example.com",
        "https://grafana.example.com:8443",
        "https://grafana.example.com.evil.example",
        "http://127.0.0.1:3000",
        "null",
    ] {
        let reply = ask(
            http,
            "POST /write?db=main",
            &[&format!("Origin: {origin}")],
            b"m v=1 1",
        )
        .await;
        is_refused(&reply, origin);
    }
    assert_eq!(fake.lines.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn browsers_that_ask_first_are_answered() {
    let origin = "https://grafana.example.com";
    let (_running, fake, http) =
        with_backups(|config| config.allowed_origins = vec![origin.into()]).await;
    let asks = [
        "Access-Control-Request-Method: POST",
        "Access-Control-Request-Headers: authorization,content-encoding",
        "Access-Control-Request-Private-Network: true",
    ];
    for path in ["/write", "/api/v1/sql", "/api/v1/backup", "/metrics"] {
        let line = format!("OPTIONS {path}");
        let known = format!("Origin: {origin}");
        let headers = [&[known.as_str()], &asks[..]].concat();
        let reply = ask(http, &line, &headers, b"").await;
        assert_eq!(reply.status, 204, "{line}");
        for (name, value) in [
            ("Access-Control-Allow-Origin", origin),
            ("Access-Control-Allow-Methods", "GET, HEAD, POST"),
            (
                "Access-Control-Allow-Headers",
                "authorization,content-encoding",
            ),
            ("Access-Control-Allow-Private-Network", "true"),
            ("Vary", "Origin"),
        ] {
            assert_eq!(reply.header(name), Some(value), "{line} {name}");
        }
        let headers = [&["Origin: https://evil.example"], &asks[..]].concat();
        let reply = ask(http, &line, &headers, b"").await;
        is_refused(&reply, &line);
        assert_eq!(reply.header("Access-Control-Allow-Methods"), None);
        // Without an origin, OPTIONS is a method like any other.
        let reply = ask(http, &line, &asks, b"").await;
        assert_eq!(reply.status, 405, "{line}");
        assert!(reply.header("Allow").is_some(), "{line}");
    }
    untouched(&fake);
}

#[tokio::test]
async fn a_get_changes_nothing() {
    let (_running, fake, http) = with_backups(|_| {}).await;
    for line in [
        "GET /api/v1/sql?q=create%20table%20t",
        "HEAD /api/v1/sql?q=create%20table%20t",
        "GET /api/v1/sql?q=select%20none;create%20table%20t",
        "GET /api/v1/sql?q=set%20timeout%205;select%20none",
    ] {
        let reply = ask(http, line, &[], b"").await;
        assert_eq!(
            (reply.status, reply.header("Allow")),
            (405, Some("POST")),
            "{line}"
        );
    }
    let reply = ask(http, "GET /api/v1/sql?q=select%20none", &[], b"").await;
    assert_eq!(reply.status, 200);
    let reply = ask(http, "POST /api/v1/sql", &[], b"create table t").await;
    assert_eq!(reply.status, 200);
    for (line, allow) in [
        ("GET /write?db=main", "POST"),
        ("HEAD /write?db=main", "POST"),
        ("GET /api/v2/write?bucket=main", "POST"),
        ("GET /api/v1/backup", "POST"),
        ("POST /metrics", "GET,HEAD"),
        ("DELETE /api/v1/sql", "GET,HEAD,POST"),
    ] {
        let reply = ask(http, line, &[], b"").await;
        assert_eq!(
            (reply.status, reply.header("Allow")),
            (405, Some(allow)),
            "{line}"
        );
    }
    assert!(fake.lines.lock().unwrap().is_empty());
    assert!(fake.backups.lock().unwrap().is_empty());
}

#[tokio::test]
async fn rules_that_make_no_sense_are_refused_at_the_start() {
    let fake = Arc::new(Fake::default());
    for (hosts, origins, setting) in [
        (vec!["http://db".to_owned()], vec![], "allowed_hosts"),
        (vec![], vec!["db.example.com".to_owned()], "allowed_origins"),
    ] {
        let config = ServerConfig {
            http: None,
            postgres: None,
            allowed_hosts: hosts,
            allowed_origins: origins,
            ..ServerConfig::default()
        };
        let services = ServedDatabase {
            ingest: fake.clone(),
            query: fake.clone(),
            languages: fake.clone(),
            access: Arc::new(marigram_service::OpenAccess),
            status: fake.clone(),
            backup: fake.clone(),
        };
        let Err(error) = start(config, services).await else {
            panic!("it started")
        };
        assert!(matches!(error, ServerError::Setting { .. }));
        assert!(error.to_string().contains(setting), "{error}");
    }
}

#[tokio::test]
async fn what_is_not_postgresql_is_closed_at_once_and_unanswered() {
    let (running, _fake, _http) = with_backups(|_| {}).await;
    let address = running.postgres_addr().unwrap();
    for opening in [
        &b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"[..],
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999\r\n\r\nselect 1",
        b"OPTIONS * HTTP/1.1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        // TLS, and a browser that tries it first.
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"P",
    ] {
        let mut socket = TcpStream::connect(address).await.unwrap();
        socket.write_all(opening).await.unwrap();
        let mut answer = Vec::new();
        // Because of unread bytes, the system resets the connection instead of closing it.
        let _ = socket.read_to_end(&mut answer).await;
        assert!(answer.is_empty(), "{}", String::from_utf8_lossy(&answer));
        assert!(socket.try_write(b"more").is_err() || socket.try_write(b"x").is_err());
    }
}
