//! OpenTSDB's protocols on one port: telnet and HTTP, right and wrong.

use crate::fake::{Fake, serve, services};
use crate::http::ask;
use arrow::array::AsArray;
use arrow::datatypes::Float64Type;
use async_trait::async_trait;
use flate2::Compression;
use flate2::write::GzEncoder;
use marigram_access::{AccessRights, PasswordVerifiers};
use marigram_server::{RunningServers, ServedDatabase, ServerConfig, start};
use marigram_service::{Authentication, Identity, OpenAccess, ServiceError};
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A bound against a hang.
const SOON: Duration = Duration::from_mins(1);

fn address(running: &RunningServers) -> SocketAddr {
    running.address("opentsdb").unwrap()
}

/// Sends lines and `exit`, and reads all replies.
async fn telnet(address: SocketAddr, lines: &[u8]) -> String {
    let mut socket = TcpStream::connect(address).await.unwrap();
    let mut replies = Vec::new();
    let exchange = async {
        socket.write_all(lines).await.unwrap();
        socket.write_all(b"exit\n").await.unwrap();
        socket.read_to_end(&mut replies).await.unwrap();
    };
    assert!(tokio::time::timeout(SOON, exchange).await.is_ok());
    String::from_utf8_lossy(&replies).into_owned()
}

/// The points that were stored: metric, seconds and value.
fn stored(fake: &Arc<Fake>) -> Vec<(String, i64, f64)> {
    let lines = fake.lines.lock().unwrap();
    let mut points = Vec::new();
    for (database, batch) in lines.iter() {
        assert_eq!(database, "main");
        let values = batch.fields[0].values.as_primitive::<Float64Type>();
        for (row, time) in batch.times.iter().enumerate() {
            points.push((batch.table.clone(), time / 1_000_000_000, values.value(row)));
        }
    }
    points
}

#[tokio::test]
async fn points_come_by_telnet_and_faults_are_told() {
    let (running, fake) = serve(|_| {}).await;
    let lines = b"put a 1000 1 host=x\nput a notatime 1 host=x\nversion\nput\n\
                  put b 2000000000000 2.5 host=x\nfly\nhelp\r\nput a 1001 nan host=x\ndropcaches\n";
    let replies = telnet(address(&running), lines).await;
    let replies: Vec<&str> = replies.lines().collect();
    assert_eq!(
        replies[0],
        "put: invalid value: Invalid character 'n' in notatime"
    );
    assert!(replies[1].starts_with("net.opentsdb 2.4.0"), "{replies:?}");
    assert_eq!(
        replies[2],
        "put: illegal argument: not enough arguments (need least 4, got 0)"
    );
    assert_eq!(replies[3], "unknown command: fly.  Try `help'.");
    assert!(replies[4].starts_with("available commands: ") && replies[4].contains("put"));
    assert_eq!(
        replies[5],
        "put: invalid value: Invalid character 'n' in nan"
    );
    assert_eq!(replies[6], "Caches dropped.");
    let expected = [
        ("a".to_owned(), 1000, 1.0),
        ("b".to_owned(), 2_000_000_000, 2.5),
    ];
    assert_eq!(stored(&fake), expected);
    let stats = telnet(address(&running), b"stats\n").await;
    assert!(
        stats.contains("marigram_series ") && stats.contains(" 7 shard=0"),
        "{stats}"
    );
    fake.read_only.store(true, Ordering::SeqCst);
    let refused = telnet(address(&running), b"put a 1000 1 host=x\n").await;
    assert_eq!(refused, "put: storage error: the disk is full\n");
}

#[tokio::test]
async fn lines_come_in_any_parts() {
    let (running, fake) = serve(|_| {}).await;
    let mut socket = TcpStream::connect(address(&running)).await.unwrap();
    for part in [
        "p",
        "ut a 10",
        "00 1 host=x\nput a 1001",
        " 2 host=x\n",
        "put half",
    ] {
        socket.write_all(part.as_bytes()).await.unwrap();
        socket.flush().await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    drop(socket);
    let both = [("a".to_owned(), 1000, 1.0), ("a".to_owned(), 1001, 2.0)];
    let arrives = async {
        while stored(&fake).len() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(SOON, arrives).await.is_ok());
    assert_eq!(stored(&fake), both);
}

#[tokio::test]
async fn points_come_as_json() {
    let (running, fake) = serve(|_| {}).await;
    let address = address(&running);
    let put = |target: &'static str, body: &'static str| async move {
        let headers = ["Content-Type: application/x-www-form-urlencoded"];
        let reply = ask(
            address,
            &format!("POST {target}"),
            &headers,
            body.as_bytes(),
        )
        .await;
        (reply.status, reply.text().to_owned())
    };
    let good = r#"{"metric":"a","timestamp":1000,"value":6,"tags":{"host":"x"}}"#;
    assert_eq!(put("/api/put", good).await, (204, String::new()));
    let both = r#"[{"metric":"a","timestamp":1001,"value":"6.5","tags":{"host":"x"}},{"metric":"a","timestamp":1001,"value":"x","tags":{"host":"x"}}]"#;
    let (status, text) = put("/api/put?summary", both).await;
    assert_eq!(
        (status, text.as_str()),
        (400, r#"{"failed":1,"success":1}"#)
    );
    let (status, text) = put("/api/put/?details", both).await;
    assert_eq!(status, 400);
    assert!(
        text.contains(r#""error":"Unable to parse value to a number""#),
        "{text}"
    );
    assert!(text.contains(r#""success":1"#), "{text}");
    let (status, text) = put("/api/v1/put", both).await;
    assert_eq!(status, 400);
    assert!(
        text.contains("One or more data points had errors"),
        "{text}"
    );
    assert!(text.contains(r#""code":400"#), "{text}");
    let (status, text) = put("/api/put?summary=true", "[]").await;
    assert_eq!(status, 400);
    assert!(text.contains("No datapoints found in content"), "{text}");
    let (status, text) = put("/api/put?sync&sync_timeout=500&summary", "[null]").await;
    assert_eq!(
        (status, text.as_str()),
        (400, r#"{"failed":1,"success":0,"timeouts":0}"#)
    );
    assert_eq!(stored(&fake).len(), 4);
    let (status, text) = put("/api/put", "blah").await;
    assert_eq!(status, 400);
    assert_eq!(
        text,
        r#"{"error":{"code":400,"message":"The JSON must start as an object or an array"}}"#
    );
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(good.as_bytes()).unwrap();
    let packed = gzip.finish().unwrap();
    let headers = ["Content-Encoding: gzip"];
    let reply = ask(address, "POST /api/put?sync", &headers, &packed).await;
    assert_eq!(reply.status, 204);
    assert_eq!(stored(&fake).len(), 5);
    fake.read_only.store(true, Ordering::SeqCst);
    let reply = ask(address, "POST /api/put", &[], good.as_bytes()).await;
    assert_eq!(reply.status, 503);
    assert_eq!(reply.json()["error"]["code"], 503);
}

#[tokio::test]
async fn the_server_tells_of_itself() {
    let (running, _) = serve(|_| {}).await;
    let address = address(&running);
    let get = |target: &'static str| async move {
        let reply = ask(address, &format!("GET {target}"), &[], b"").await;
        (reply.status, reply.json())
    };
    let (status, names) = get("/api/aggregators").await;
    assert_eq!(status, 200);
    for name in ["sum", "none", "p99", "ep999r7", "zimsum", "mimmin"] {
        assert!(names.as_array().unwrap().contains(&name.into()), "{name}");
    }
    assert_eq!(get("/api/version").await.1["version"], "2.4.0");
    assert_eq!(get("/version").await.0, 200);
    let filters = get("/api/config/filters").await.1;
    assert!(filters["literal_or"]["examples"].is_string());
    assert_eq!(
        get("/api/config").await.1["tsd.http.query.allow_delete"],
        "false"
    );
    assert_eq!(get("/api/stats").await.1[0]["metric"], "marigram_series");
    assert_eq!(get("/api/dropcaches").await.1["status"], "200");
    let (status, uids) = get("/api/uid/assign?metric=a,b&tagk=host").await;
    assert_eq!(status, 200);
    assert_eq!(uids["metric"]["a"].as_str().unwrap().len(), 16);
    assert_eq!(get("/api/query/gexp").await.0, 501);
    let (status, unknown) = get("/api/nothing").await;
    assert_eq!((status, &unknown["error"]["code"]), (404, &404.into()));
    let (status, wrong) = get("/api/put").await;
    assert_eq!(
        (status, &wrong["error"]["message"]),
        (405, &"Method not allowed".into())
    );
    let reply = ask(address, "DELETE /api/query?start=1&m=sum:a", &[], b"").await;
    assert_eq!(reply.status, 400);
    let (status, missing) = get("/api/query?m=sum:a").await;
    assert_eq!(
        (status, &missing["error"]["message"]),
        (400, &"Missing parameter <code>start</code>".into())
    );
    let (status, newer) = get("/api/v2/version").await;
    assert_eq!((status, &newer["error"]["code"]), (501, &501.into()));
    let (status, missing) = get("/api/suggest?type=").await;
    assert_eq!(
        (status, &missing["error"]["message"]),
        (400, &"Missing parameter <code>type</code>".into())
    );
    let reply = ask(address, "POST /api/suggest", &[], b"{}").await;
    assert_eq!(reply.json()["error"]["message"], "Missing 'type' parameter");
    let reply = ask(address, "POST /api/suggest", &[], b"").await;
    assert_eq!(reply.json()["error"]["message"], "Missing message content");
    let (status, wrong) = get("/api/query?start=1h-ago&m=what:a").await;
    assert_eq!(status, 400);
    assert_eq!(
        wrong["error"]["message"],
        "No such aggregation function: what"
    );
    assert!(
        wrong["error"]["details"]
            .as_str()
            .unwrap()
            .contains("zimsum")
    );
}

#[tokio::test]
async fn hostile_input_is_answered_or_closed() {
    let (running, fake) = serve(|config| {
        config.http_idle_timeout_ms = 300;
        config.body_limit = 1000;
    })
    .await;
    let address = address(&running);
    let garbage: Vec<u8> = (0..10_000_u32)
        .map(|at| (at * 7 % 251) as u8 | 0x80)
        .collect();
    for bytes in [
        &b"\n\n\r\n\n"[..],
        b"\0\0\0\n",
        &[&garbage[..], b"\n"].concat(),
        b"put \xff\xfe 1 1 a=b\n",
        &[b"put a ".as_slice(), &b"9".repeat(40_000), b" 1 h=x\n"].concat(),
        &[b"put a 1 1 ".as_slice(), &b"h=x ".repeat(9000), b"\n"].concat(),
    ] {
        telnet(address, bytes).await;
    }
    let long = [&b"x".repeat(20_000)[..], b"\nversion\n"].concat();
    let replies = telnet(address, &long).await;
    assert!(
        replies.starts_with("error: a line has more than"),
        "{replies}"
    );
    assert!(replies.contains("net.opentsdb"), "{replies}");
    // A client that says nothing at all.
    let mut silent = TcpStream::connect(address).await.unwrap();
    let mut rest = Vec::new();
    let ends = tokio::time::timeout(SOON, silent.read_to_end(&mut rest)).await;
    assert!(ends.is_ok());
    // HTTP that is none, and bodies that are too large.
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(b"GARBAGE\r\n\r\n").await.unwrap();
    let ends = tokio::time::timeout(SOON, socket.read_to_end(&mut rest)).await;
    assert!(ends.is_ok());
    let reply = ask(address, "POST /api/put", &[], &[b' '; 2000]).await;
    assert_eq!(reply.status, 413);
    assert_eq!(reply.json()["error"]["code"], 413);
    let deep = "[".repeat(900);
    let reply = ask(address, "POST /api/put", &[], deep.as_bytes()).await;
    assert_eq!(reply.status, 400);
    let reply = ask(address, "POST /api/query", &[], deep.as_bytes()).await;
    assert_eq!(reply.status, 400);
    assert!(stored(&fake).is_empty());
    // The server goes on.
    telnet(address, b"put a 1000 1 host=x\n").await;
    assert_eq!(stored(&fake).len(), 1);
}

#[tokio::test]
async fn connections_beyond_the_limit_are_told() {
    let (running, _) = serve(|config| config.connections_max = 1).await;
    let address = address(&running);
    let mut first = TcpStream::connect(address).await.unwrap();
    first.write_all(b"version\n").await.unwrap();
    let mut byte = [0];
    first.read_exact(&mut byte).await.unwrap();
    let second = telnet(address, b"version\n").await;
    assert!(second.contains("connections_max"), "{second}");
    // HTTP has places of its own.
    assert_eq!(ask(address, "GET /api/version", &[], b"").await.status, 200);
    running.shutdown(Duration::from_secs(10)).await;
    let mut rest = Vec::new();
    let ends = tokio::time::timeout(SOON, first.read_to_end(&mut rest)).await;
    assert!(ends.is_ok());
}

#[tokio::test]
async fn points_beyond_the_memory_for_requests_are_stored_in_parts() {
    let (running, fake) = serve(|config| config.buffered_bytes_max = 128 << 10).await;
    let tags: Vec<_> = (10..70).map(|tag| format!("t{tag}=1")).collect();
    let tags = tags.join(" ");
    // 500 points of 5 KB each: one read holds more of them than fit.
    let lines: Vec<_> = (1000..1500)
        .map(|time| format!("put a {time} 1 {tags}\n"))
        .collect();
    let replies = telnet(address(&running), lines.concat().as_bytes()).await;
    assert_eq!(replies, "");
    let times = stored(&fake).into_iter().map(|(_, time, _)| time);
    assert!(times.eq(1000..1500));
    assert_eq!(fake.memory_taken.load(Ordering::SeqCst), 0);
}

/// A database with users, none of whom logs in.
struct WithUsers;

#[async_trait]
impl Authentication for WithUsers {
    fn is_open(&self) -> bool {
        false
    }

    fn rights(&self, identity: &Identity) -> Result<Arc<AccessRights>, ServiceError> {
        OpenAccess.rights(identity)
    }

    async fn check_password(&self, user: &str, password: &str) -> Result<Identity, ServiceError> {
        OpenAccess.check_password(user, password).await
    }

    fn check_token(&self, token: &str) -> Option<Identity> {
        OpenAccess.check_token(token)
    }

    fn user_number(&self, user: &str) -> u64 {
        OpenAccess.user_number(user)
    }

    fn verifiers(&self, user: &str) -> PasswordVerifiers {
        OpenAccess.verifiers(user)
    }
}

#[tokio::test]
async fn a_client_that_does_not_log_in_is_disconnected_whatever_it_sends() {
    let fake = Arc::new(Fake::default());
    let services = ServedDatabase {
        access: Arc::new(WithUsers),
        ..services(&fake)
    };
    let config = ServerConfig {
        opentsdb: Some("127.0.0.1:0".parse().unwrap()),
        ..ServerConfig::default()
    };
    let running = start(config, services).await.unwrap();
    let connect = || async { TcpStream::connect(address(&running)).await.unwrap() };
    let mut known = connect().await;
    known.write_all(b"auth root right\n").await.unwrap();
    let (mut reading, mut writing) = connect().await.into_split();
    let mut replies = Vec::new();
    let talk = async {
        // Until the server takes no more.
        while writing.write_all(b"version\n").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        std::future::pending::<()>().await;
    };
    let told = async {
        tokio::select! {
            _ = reading.read_to_end(&mut replies) => {}
            () = talk => {}
        }
    };
    assert!(tokio::time::timeout(SOON, told).await.is_ok());
    let replies = String::from_utf8_lossy(&replies);
    assert!(replies.contains("error: no auth was sent for too long"));
    // One that did log in stays.
    known.write_all(b"exit\n").await.unwrap();
    let mut rest = String::new();
    known.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "AUTH_SUCCESS\r\n");
}
