//! Logins over PostgreSQL's protocol that are not what they should be: said again by somebody who
//! listened, too long, too slow, or never finished.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue may panic")]

use crate::access::{add_user, basic, sql_anywhere, state_of};
use crate::server::ServeProcess;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_postgres::NoTls;

const SOON: Duration = Duration::from_mins(1);

/// Idle connections of the test, if the limit on open files allows them.
const IDLE_WANTED: u64 = 10_000;

fn start(dir: &tempfile::TempDir, more: &[&str]) -> ServeProcess {
    add_user(dir.path(), "root", &["--admin"]);
    ServeProcess::start(dir.path(), more)
}

/// Passes one connection on to `port`, and keeps what its client sends.
async fn listening_between(port: u16) -> (u16, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let own = listener.local_addr().unwrap().port();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let keeps = heard.clone();
    tokio::spawn(async move {
        let (client, _) = listener.accept().await.unwrap();
        let server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = server.into_split();
        tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut to_client).await });
        let mut bytes = [0; 4096];
        while let Ok(read) = from_client.read(&mut bytes).await {
            if read == 0 || to_server.write_all(&bytes[..read]).await.is_err() {
                break;
            }
            keeps.lock().unwrap().extend_from_slice(&bytes[..read]);
        }
    });
    (own, heard)
}

/// All that the server answers to these bytes.
async fn answer(server: &ServeProcess, bytes: &[u8]) -> String {
    let address = ("127.0.0.1", server.postgres_port);
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    let read = socket.read_to_end(&mut answer);
    let _ = tokio::time::timeout(SOON, read).await.expect("it ends");
    String::from_utf8_lossy(&answer).into_owned()
}

fn startup() -> Vec<u8> {
    let mut startup = b"\0\0\0\0\0\x03\0\0user\0root\0database\0main\0\0".to_vec();
    startup[3] = u8::try_from(startup.len()).unwrap();
    startup
}

/// A message with an answer to the authentication request.
fn password_message(body: &[u8]) -> Vec<u8> {
    let mut message = vec![b'p'];
    message.extend_from_slice(&u32::try_from(body.len() + 4).unwrap().to_be_bytes());
    message.extend_from_slice(body);
    message
}

fn initial(mechanism: &str, data: &[u8]) -> Vec<u8> {
    let mut body = mechanism.as_bytes().to_vec();
    body.push(0);
    body.extend_from_slice(&i32::try_from(data.len()).unwrap().to_be_bytes());
    body.extend_from_slice(data);
    password_message(&body)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_was_heard_opens_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(&dir, &[]);
    let (port, heard) = listening_between(server.postgres_port).await;
    let config = format!("host=127.0.0.1 port={port} user=root password=rootroot dbname=main");
    let (client, connection) = tokio_postgres::connect(&config, NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    client.simple_query("SELECT 41 + 1").await.unwrap();
    drop(client);
    connection.await.unwrap().unwrap();
    let heard = heard.lock().unwrap().clone();
    assert!(String::from_utf8_lossy(&heard).contains("SELECT 41 + 1"));
    let answer = answer(&server, &heard).await;
    assert!(
        answer.contains("28P01") && !answer.contains("42\0"),
        "{answer:?}"
    );
    assert!(!answer.contains("rootroot"));
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_are_no_login_end_the_connection() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(&dir, &[]);
    let first = b"n,,n=,r=abcdefgh";
    let mut long = b"n,,n=,r=".to_vec();
    long.resize(9_000, b'x');
    let mut messages = vec![
        initial(
            "SCRAM-SHA-256-PLUS",
            b"p=tls-server-end-point,,n=,r=abcdefgh",
        ),
        initial("PLAIN", b"\0root\0rootroot"),
        initial("SCRAM-SHA-256", b"y,a=other,n=,r=abcdefgh"),
        initial("SCRAM-SHA-256", b"n,,n=,r="),
        initial("SCRAM-SHA-256", b"\xff\xfe"),
        initial("SCRAM-SHA-256", &long),
        password_message(b"rootroot\0"),
        b"Q\0\0\0\x0dSELECT 1\0".to_vec(),
        // One that claims to be larger than anything before a login may be.
        b"p\x7f\xff\xff\xff".to_vec(),
    ];
    // The second message is not the proof.
    for second in ["", "c=biws,r=abcdefgh,p=", "c=biws,r=x,p=AAAA", "p=AAAA"] {
        let mut both = initial("SCRAM-SHA-256", first);
        both.extend_from_slice(&password_message(second.as_bytes()));
        messages.push(both);
    }
    for message in messages {
        let mut bytes = startup();
        bytes.extend_from_slice(&message);
        bytes.extend_from_slice(b"Q\0\0\0\x12SELECT 41 + 1\0");
        let answer = answer(&server, &bytes).await;
        let is_refused = answer.contains("28P01") || answer.contains("08P01");
        assert!(
            is_refused && !answer.contains("42\0"),
            "{message:?}: {answer:?}"
        );
    }
    // The others are served meanwhile.
    let reply = sql_anywhere(&server, &basic("root", "rootroot"), "SELECT 1");
    assert_eq!(reply.status, 200, "{}", reply.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_users_answers_beside_many_that_say_nothing() {
    let limits = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limits.maximum,
        maximum: limits.maximum,
    };
    // If the system refuses, there are fewer of them.
    let _ = setrlimit(Resource::Nofile, raised);
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    // The server keeps a quarter of its descriptors for each protocol.
    let idle = IDLE_WANTED.min(limit / 5);
    let dir = tempfile::tempdir().unwrap();
    let server = start(&dir, &["--connections-max", &(idle + 100).to_string()]);
    let mut held = Vec::new();
    for number in 0..idle {
        let port = if number % 10 == 0 {
            server.postgres_port
        } else {
            server.http_port
        };
        held.push(TcpStream::connect(("127.0.0.1", port)).await.unwrap());
    }
    eprintln!("{idle} connections say nothing");
    let reply = sql_anywhere(&server, &basic("root", "rootroot"), "SELECT 1");
    assert_eq!(reply.status, 200, "{}", reply.body);
    let config = format!(
        "host=127.0.0.1 port={} user=root password=rootroot dbname=main",
        server.postgres_port
    );
    let (client, connection) = tokio_postgres::connect(&config, NoTls).await.unwrap();
    tokio::spawn(connection);
    client.simple_query("SELECT 1").await.unwrap();
    let wrong = config.replace("password=rootroot", "password=wrong");
    let error = tokio_postgres::connect(&wrong, NoTls)
        .await
        .err()
        .expect("refused");
    assert_eq!(state_of(&error), "28P01");
    assert_eq!(held.len() as u64, idle);
}
