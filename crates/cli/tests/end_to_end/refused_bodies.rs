//! A request that is refused while its body is still on the way: the client sees the answer, whatever the
//! size of the body, and the connection is not used again.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue may panic")]

use crate::access::{add_user, basic};
use crate::server::{MARIGRAM, ServeProcess};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output};

/// Bytes of a large body.
const LARGE: usize = 10 << 20;

fn marigram(arguments: &[&str]) -> Output {
    Command::new(MARIGRAM)
        .args(arguments)
        .env_remove("MARIGRAM_DATA")
        .output()
        .unwrap()
}

/// A script of statements with bodies of `bytes` each.
fn script(dir: &Path, bytes: usize) -> String {
    let path = dir.join(format!("{bytes}.sql"));
    let text = format!("SELECT '{}';\n", "x".repeat(bytes));
    std::fs::write(&path, text.repeat(3)).unwrap();
    path.display().to_string()
}

#[test]
fn a_refused_login_is_told_whatever_was_sent() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    add_user(&data, "root", &["--admin"]);
    add_user(&data, "ann", &[]);
    let server = ServeProcess::start(&data, &[]);
    let host = format!("127.0.0.1:{}", server.http_port);
    for bytes in [10, 100 << 10, LARGE] {
        let file = script(dir.path(), bytes);
        // Nobody, and a wrong password, which is answered later each time.
        for login in ["", "root:wrong@"] {
            let rounds = if login.is_empty() && bytes < LARGE {
                5
            } else {
                1
            };
            for _ in 0..rounds {
                let url = format!("http://{login}{host}");
                let said = marigram(&["sql", "--url", &url, "--keep-going", "-f", &file]);
                let text = String::from_utf8_lossy(&said.stderr);
                assert!(!said.status.success());
                assert!(!text.contains("disconnected"), "{bytes} bytes: {text}");
                let told = text.matches("credentials").count() + text.matches("password").count();
                assert!(told >= 3, "{bytes} bytes: {text}");
            }
        }
    }
    let csv = dir.path().join("m.csv");
    std::fs::write(&csv, "time,v\n2026-01-01,1\n").unwrap();
    let url = format!("http://ann:annann@{host}");
    let said = marigram(&["import", "--url", &url, "-y", csv.to_str().unwrap()]);
    let text = String::from_utf8_lossy(&said.stderr);
    assert!(!said.status.success());
    assert!(
        text.contains("not authorized") || text.contains("permission"),
        "{text}"
    );
}

#[test]
fn the_answer_says_that_the_connection_closes() {
    let dir = tempfile::tempdir().unwrap();
    add_user(dir.path(), "root", &["--admin"]);
    let server = ServeProcess::start(dir.path(), &[]);
    let answer = |authorization: &str, length: usize| {
        let mut socket = TcpStream::connect(("127.0.0.1", server.http_port)).unwrap();
        let head = format!(
            "POST /api/v1/sql HTTP/1.1\r\nHost: localhost\r\nAuthorization: {authorization}\r\n\
             Content-Type: application/sql\r\nContent-Length: {length}\r\n\r\n"
        );
        socket.write_all(head.as_bytes()).unwrap();
        // The answer comes before the body, and the body is taken nevertheless.
        let part = vec![b' '; 1 << 20];
        for _ in 0..length / part.len() {
            socket.write_all(&part).unwrap();
        }
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        answer.to_ascii_lowercase()
    };
    let refused = answer(&basic("root", "wrong"), LARGE);
    assert!(refused.starts_with("http/1.1 401"), "{refused}");
    assert!(refused.contains("\r\nconnection: close\r\n"), "{refused}");
    let large = answer(&basic("root", "rootroot"), 200 << 20);
    assert!(large.starts_with("http/1.1 413"), "{large}");
    assert!(large.contains("\r\nconnection: close\r\n"), "{large}");
}
