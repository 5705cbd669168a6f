//! JSON Web Tokens, and InfluxDB 2's sign-in by cookie.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue may panic")]

use crate::access::{add_user, ask, basic, encoded, sql_anywhere};
use crate::server::ServeProcess;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::{SystemTime, UNIX_EPOCH};

const SECRET: &str = "a secret of the fleet";

fn web_token(claims: &str, secret: &str) -> String {
    let text = format!(
        "{}.{}",
        URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","typ":"JWT"}"#),
        URL_SAFE_NO_PAD.encode(claims)
    );
    let provider = rustls::crypto::ring::default_provider();
    let mut suites = provider
        .cipher_suites
        .iter()
        .filter_map(rustls::SupportedCipherSuite::tls13);
    let suite = suites.find(|suite| suite.common.hash_provider.output_len() == 32);
    // HMAC over the hash of the TLS library (RFC 2104).
    let hash = |bytes: &[u8]| {
        suite
            .unwrap()
            .common
            .hash_provider
            .hash(bytes)
            .as_ref()
            .to_vec()
    };
    let key = |pad: u8| {
        let mut key = [pad; 64];
        for (byte, own) in key.iter_mut().zip(secret.bytes()) {
            *byte ^= own;
        }
        key.to_vec()
    };
    let inner = hash(&[key(0x36), text.as_bytes().to_vec()].concat());
    let signature = hash(&[key(0x5c), inner].concat());
    format!("Bearer {text}.{}", URL_SAFE_NO_PAD.encode(signature))
}

#[test]
fn signed_tokens_stand_for_their_users() {
    let dir = tempfile::tempdir().unwrap();
    add_user(dir.path(), "root", &["--admin"]);
    add_user(dir.path(), "ann", &[]);
    let config = dir.path().join("config.toml");
    std::fs::write(&config, format!("jwt_secret = '{SECRET}'")).unwrap();
    let server = ServeProcess::start(dir.path(), &["--config", config.to_str().unwrap()]);
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let claims = |user: &str, end: u64| format!(r#"{{"username":"{user}","exp":{end}}}"#);
    let root = web_token(&claims("root", now + 600), SECRET);
    assert_eq!(
        sql_anywhere(&server, &root, "CREATE DATABASE plant").status,
        200
    );
    let target = format!("/query?q={}", encoded("SHOW DATABASES"));
    assert_eq!(ask(&server, ("GET", &target), &root, "").status, 200);
    // The rights are the user's.
    let ann = web_token(&claims("ann", now + 600), SECRET);
    assert_eq!(
        sql_anywhere(&server, &ann, "CREATE DATABASE other").status,
        403
    );
    for wrong in [
        web_token(&claims("root", now - 1), SECRET),
        web_token(&claims("root", now + 600), "another secret of it"),
        web_token(&claims("ghost", now + 600), SECRET),
        web_token(r#"{"username":"root"}"#, SECRET),
    ] {
        let reply = sql_anywhere(&server, &wrong, "SELECT 1");
        assert_eq!(reply.status, 401, "{}", reply.body);
        assert!(!reply.body.contains("ghost"), "{}", reply.body);
    }
    let root_again = basic("root", "rootroot");
    assert_eq!(
        sql_anywhere(&server, &root_again, "DROP USER ann").status,
        200
    );
    assert_eq!(sql_anywhere(&server, &ann, "SELECT 1").status, 401);
}

/// A request with raw headers; the status and the cookie that the answer sets.
fn send(server: &ServeProcess, line: &str, headers: &str) -> (u16, Option<String>) {
    let mut socket = TcpStream::connect(("127.0.0.1", server.http_port)).unwrap();
    let request =
        format!("{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n");
    socket.write_all(request.as_bytes()).unwrap();
    let lines: Vec<String> = BufReader::new(socket)
        .lines()
        .map_while(Result::ok)
        .collect();
    let status = lines[0].split(' ').nth(1).unwrap().parse().unwrap();
    let set = |line: &String| {
        let (name, value) = line.split_once(": ")?;
        let is_it = name.eq_ignore_ascii_case("set-cookie");
        is_it.then(|| value.split(';').next().unwrap().to_owned())
    };
    (status, lines.iter().find_map(set))
}

#[test]
fn a_cookie_stands_for_who_signed_in() {
    let dir = tempfile::tempdir().unwrap();
    add_user(dir.path(), "root", &["--admin"]);
    let server = ServeProcess::start(dir.path(), &[]);
    let with = |name: &str, value: &str| format!("{name}: {value}\r\n");
    let root = with("Authorization", &basic("root", "rootroot"));
    let wrong = with("Authorization", &basic("root", "wrong"));
    assert_eq!(send(&server, "POST /api/v2/signin", &wrong), (401, None));
    assert_eq!(send(&server, "POST /api/v2/signin", "").0, 401);
    let (status, cookie) = send(&server, "POST /api/v2/signin", &root);
    let cookie = with("Cookie", &cookie.expect("a cookie"));
    assert_eq!(status, 204);
    assert_eq!(send(&server, "GET /api/v2/buckets", &cookie).0, 200);
    assert_eq!(send(&server, "GET /api/v2/buckets", "").0, 401);
    // Nowhere else, and not for pages of other origins.
    assert_eq!(
        send(&server, "GET /api/v1/sql?q=SELECT%201", &cookie).0,
        401
    );
    let foreign = format!("{cookie}Origin: https://evil.example\r\n");
    assert_eq!(send(&server, "GET /api/v2/buckets", &foreign).0, 403);
    assert_eq!(send(&server, "POST /api/v2/signout", &cookie).0, 204);
    assert_eq!(send(&server, "GET /api/v2/buckets", &cookie).0, 401);
    // A new password ends what the old one began; a token begins nothing.
    let (_, cookie) = send(&server, "POST /api/v2/signin", &root);
    let cookie = with("Cookie", &cookie.expect("a cookie"));
    let changed = "ALTER USER root PASSWORD 'another one'";
    assert_eq!(
        sql_anywhere(&server, &basic("root", "rootroot"), changed).status,
        200
    );
    assert_eq!(send(&server, "GET /api/v2/buckets", &cookie).0, 401);
    let made = sql_anywhere(&server, &basic("root", "another one"), "CREATE TOKEN");
    let token = made.json()["rows"][0][1].as_str().unwrap().to_owned();
    let token = with("Authorization", &format!("Token {token}"));
    assert_eq!(send(&server, "POST /api/v2/signin", &token), (204, None));
}
