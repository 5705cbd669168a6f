//! Encrypted connections: who gets one, who does not, and what slow and broken handshakes take from
//! others.

#![allow(
    clippy::disallowed_methods,
    reason = "these tests use files and clocks as an operator and a client do"
)]

use crate::certificates::{CertificateAuthority, SignedCertificate};
use crate::fake::{Fake, serve};
use marigram_server::{ClientCertificates, RunningServers, ServerConfig, TlsSettings, TlsVersion};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ProtocolVersion};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A bound against hangs.
const SOON: Duration = Duration::from_secs(30);

const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
const REQUEST: &[u8] =
    b"GET /api/v1/sql?q=select%20types HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

struct TlsServers {
    running: RunningServers,
    _fake: Arc<Fake>,
    authority: CertificateAuthority,
    dir: tempfile::TempDir,
}

fn settings(dir: &Path, own: &SignedCertificate) -> TlsSettings {
    let (certificate, key) = own.write(dir);
    TlsSettings {
        certificate,
        key,
        client_ca: None,
        client_certificates: ClientCertificates::Required,
        is_required: true,
        version_min: TlsVersion::V1_2,
    }
}

async fn start(change: impl FnOnce(&mut TlsSettings, &mut ServerConfig)) -> TlsServers {
    let authority = CertificateAuthority::new();
    start_with(&authority.issue(), authority, change).await
}

async fn start_with(
    own: &SignedCertificate,
    authority: CertificateAuthority,
    change: impl FnOnce(&mut TlsSettings, &mut ServerConfig),
) -> TlsServers {
    let dir = tempfile::tempdir().unwrap();
    let mut tls = settings(dir.path(), own);
    let (running, fake) = serve(|config| {
        change(&mut tls, config);
        config.tls = Some(tls);
    })
    .await;
    TlsServers {
        running,
        _fake: fake,
        authority,
        dir,
    }
}

impl TlsServers {
    fn http(&self) -> SocketAddr {
        self.running.http_addr().unwrap()
    }

    fn postgres(&self) -> SocketAddr {
        self.running.postgres_addr().unwrap()
    }
}

async fn encrypt(socket: TcpStream, config: ClientConfig) -> io::Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from("localhost").unwrap();
    let connect = TlsConnector::from(Arc::new(config)).connect(name, socket);
    tokio::time::timeout(SOON, connect).await?
}

/// The answer to a request over HTTPS.
async fn ask(address: SocketAddr, config: ClientConfig) -> io::Result<String> {
    let socket = TcpStream::connect(address).await?;
    let mut stream = encrypt(socket, config).await?;
    stream.write_all(REQUEST).await?;
    let mut answer = String::new();
    let read = stream.read_to_string(&mut answer);
    tokio::time::timeout(SOON, read).await??;
    Ok(answer)
}

/// Everything that a server sends on a plain connection that sent `first`.
async fn plain(address: SocketAddr, first: &[u8]) -> Vec<u8> {
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(first).await.unwrap();
    let mut answer = Vec::new();
    // A reset instead of an end is fine: there is an answer, or there is none.
    let read = socket.read_to_end(&mut answer);
    let _ = tokio::time::timeout(SOON, read).await.expect("it ends");
    answer
}

fn startup() -> Vec<u8> {
    let mut startup = b"\0\0\0\0\0\x03\0\0user\0me\0database\0main\0\0".to_vec();
    startup[3] = u8::try_from(startup.len()).unwrap();
    startup
}

/// Connects as libpq does: asks for encryption first.
async fn connect_postgres(
    address: SocketAddr,
    config: ClientConfig,
) -> io::Result<TlsStream<TcpStream>> {
    let mut socket = TcpStream::connect(address).await?;
    socket.write_all(&SSL_REQUEST).await?;
    let answer = socket.read_u8().await?;
    assert_eq!(answer, b'S');
    encrypt(socket, config).await
}

/// Logs in and runs a query; returns all bytes of the answer.
async fn query_postgres(mut stream: TlsStream<TcpStream>) -> io::Result<Vec<u8>> {
    stream.write_all(&startup()).await?;
    stream.write_all(b"Q\0\0\0\x11select types\0").await?;
    stream.write_all(b"X\0\0\0\x04").await?;
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    tokio::time::timeout(SOON, read).await??;
    Ok(answer)
}

fn is_served(answer: &[u8]) -> bool {
    answer.windows(3).any(|part| part == b"d_1")
}

#[tokio::test]
async fn both_listeners_encrypt() {
    let servers = start(|_, _| {}).await;
    let answer = ask(servers.http(), servers.authority.client(None))
        .await
        .unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.contains("d_1"),
        "{answer}"
    );
    let client = servers.authority.client(None);
    let stream = connect_postgres(servers.postgres(), client).await.unwrap();
    assert!(is_served(&query_postgres(stream).await.unwrap()));
    // Direct: TLS is the first that is said, and the protocol is named.
    let mut client = servers.authority.client(None);
    client.alpn_protocols = vec![b"postgresql".to_vec()];
    let socket = TcpStream::connect(servers.postgres()).await.unwrap();
    let stream = encrypt(socket, client).await.unwrap();
    assert!(is_served(&query_postgres(stream).await.unwrap()));
    let socket = TcpStream::connect(servers.postgres()).await.unwrap();
    let unnamed = encrypt(socket, servers.authority.client(None))
        .await
        .unwrap();
    let answer = query_postgres(unnamed).await.unwrap_or_default();
    assert!(
        !is_served(&answer),
        "a direct connection names its protocol"
    );
}

#[tokio::test]
async fn without_encryption_nothing_is_served_where_it_is_required() {
    let servers = start(|_, _| {}).await;
    let answer = String::from_utf8(plain(servers.http(), REQUEST).await).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 400") && answer.contains("https://"),
        "{answer}"
    );
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(
        head.contains(&format!("Content-Length: {}", body.len())),
        "{answer}"
    );
    let mut opening = startup();
    opening.extend_from_slice(b"Q\0\0\0\x11select types\0");
    let answer = plain(servers.postgres(), &opening).await;
    let text = String::from_utf8_lossy(&answer);
    assert!(text.contains("28000") && text.contains("sslmode"), "{text}");
    assert!(!is_served(&answer));
}

#[tokio::test]
async fn without_encryption_clients_are_served_where_it_is_not_required() {
    let servers = start(|tls, _| tls.is_required = false).await;
    let answer = plain(servers.http(), REQUEST).await;
    assert!(answer.starts_with(b"HTTP/1.1 200") && is_served(&answer));
    let mut opening = startup();
    opening.extend_from_slice(b"Q\0\0\0\x11select types\0X\0\0\0\x04");
    assert!(is_served(&plain(servers.postgres(), &opening).await));
    let answer = ask(servers.http(), servers.authority.client(None))
        .await
        .unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn what_was_sent_before_the_handshake_is_not_believed() {
    let servers = start(|tls, _| tls.is_required = false).await;
    let mut bytes = SSL_REQUEST.to_vec();
    bytes.extend_from_slice(&startup());
    bytes.extend_from_slice(b"Q\0\0\0\x11select types\0");
    let answer = plain(servers.postgres(), &bytes).await;
    assert!(!is_served(&answer));
    let text = String::from_utf8_lossy(&answer);
    assert!(text.contains("08P01"), "{text}");
}

#[tokio::test]
async fn clients_recognise_a_server_that_is_not_theirs() {
    let servers = start(|_, _| {}).await;
    let foreign = CertificateAuthority::new();
    let error = ask(servers.http(), foreign.client(None)).await.unwrap_err();
    assert!(error.to_string().contains("UnknownIssuer"), "{error}");
    let authority = CertificateAuthority::new();
    let expired = authority.issue_expired();
    let servers = start_with(&expired, authority, |_, _| {}).await;
    let error = ask(servers.http(), servers.authority.client(None))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("xpired"), "{error}");
}

#[tokio::test]
async fn clients_show_certificates_where_they_must() {
    for (rule, may_show_none) in [
        (ClientCertificates::Required, false),
        (ClientCertificates::Optional, true),
    ] {
        let clients = CertificateAuthority::new();
        let dir = tempfile::tempdir().unwrap();
        let ca = dir.path().join("clients.pem");
        std::fs::write(&ca, &clients.pem).unwrap();
        let servers = start(|tls, _| {
            tls.client_ca = Some(ca);
            tls.client_certificates = rule;
        })
        .await;
        let foreign = CertificateAuthority::new();
        for (own, is_right) in [
            (None, may_show_none),
            (Some(clients.issue()), true),
            (Some(clients.issue_expired()), false),
            (Some(foreign.issue()), false),
        ] {
            let client = || servers.authority.client(own.as_ref());
            let answer = ask(servers.http(), client()).await;
            let is_served_http = answer.is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"));
            assert_eq!(is_served_http, is_right, "{rule:?}");
            let answer = match connect_postgres(servers.postgres(), client()).await {
                Ok(stream) => query_postgres(stream).await.unwrap_or_default(),
                Err(_) => Vec::new(),
            };
            assert_eq!(is_served(&answer), is_right, "{rule:?}");
        }
    }
}

#[tokio::test]
async fn the_lowest_version_is_a_setting() {
    let tls12: &[&rustls::SupportedProtocolVersion] = &[&rustls::version::TLS12];
    for (min, speaks_12) in [(TlsVersion::V1_2, true), (TlsVersion::V1_3, false)] {
        let servers = start(|tls, _| tls.version_min = min).await;
        let old = servers.authority.client_of(None, tls12);
        assert_eq!(ask(servers.http(), old).await.is_ok(), speaks_12, "{min:?}");
        let socket = TcpStream::connect(servers.http()).await.unwrap();
        let stream = encrypt(socket, servers.authority.client(None))
            .await
            .unwrap();
        let version = stream.get_ref().1.protocol_version();
        assert_eq!(version, Some(ProtocolVersion::TLSv1_3));
    }
}

#[tokio::test]
async fn a_certificate_is_replaced_while_connections_go_on() {
    let servers = start(|_, _| {}).await;
    let client = servers.authority.client(None);
    let before = connect_postgres(servers.postgres(), client).await.unwrap();
    // Broken files change nothing.
    std::fs::write(servers.dir.path().join("cert.pem"), "nonsense").unwrap();
    servers.running.reload_tls().await;
    ask(servers.http(), servers.authority.client(None))
        .await
        .unwrap();
    // Nor do files that do not belong together.
    let next = CertificateAuthority::new();
    let renewed = next.issue();
    std::fs::write(servers.dir.path().join("cert.pem"), &renewed.certificate).unwrap();
    servers.running.reload_tls().await;
    ask(servers.http(), servers.authority.client(None))
        .await
        .unwrap();
    renewed.write(servers.dir.path());
    servers.running.reload_tls().await;
    assert!(
        ask(servers.http(), servers.authority.client(None))
            .await
            .is_err()
    );
    ask(servers.http(), next.client(None)).await.unwrap();
    let stream = connect_postgres(servers.postgres(), next.client(None))
        .await
        .unwrap();
    assert!(is_served(&query_postgres(stream).await.unwrap()));
    assert!(
        is_served(&query_postgres(before).await.unwrap()),
        "it goes on"
    );
}

#[tokio::test]
async fn a_changed_file_is_noticed_without_a_signal() {
    let servers = start(|_, _| {}).await;
    let next = CertificateAuthority::new();
    next.issue().write(servers.dir.path());
    let deadline = Instant::now() + SOON;
    while ask(servers.http(), next.client(None)).await.is_err() {
        assert!(
            Instant::now() < deadline,
            "the new certificate is not in use"
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn unfinished_handshakes_hold_no_places() {
    let servers = start(|_, config| config.connections_max = 2).await;
    let (mut slow, mut silent) = (Vec::new(), Vec::new());
    for address in [servers.http(), servers.postgres()] {
        // More than there are places, and more than may be opening.
        for number in 0..300 {
            let mut socket = TcpStream::connect(address).await.unwrap();
            let first: &[u8] = match number % 4 {
                0 => b"",
                1 => b"\x16",
                2 => b"\x16\x03\x01\x02\x00\x01\x00",
                _ => b"\x16\x03\x01\xff\xff",
            };
            // The server may have ended it to make room.
            let _ = socket.write_all(first).await;
            // One that says nothing has as long as any client until its startup message.
            match number % 4 {
                0 => silent.push(socket),
                _ => slow.push(socket),
            }
        }
    }
    let begin = Instant::now();
    let answer = ask(servers.http(), servers.authority.client(None))
        .await
        .unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let client = servers.authority.client(None);
    let stream = connect_postgres(servers.postgres(), client).await.unwrap();
    assert!(is_served(&query_postgres(stream).await.unwrap()));
    assert!(begin.elapsed() < SOON);
    // They end by themselves.
    for mut socket in slow {
        let mut rest = Vec::new();
        let read = socket.read_to_end(&mut rest);
        let _ = tokio::time::timeout(2 * SOON, read).await.expect("it ends");
    }
}

#[tokio::test]
async fn a_broken_handshake_ends_at_once() {
    let servers = start(|_, _| {}).await;
    for bytes in [
        &b"\x16\x03\x01\x00\x05hello"[..],
        b"\x16\xff\xff\xff\xff\xff\xff",
        vec![0x16; 20_000].as_slice(),
    ] {
        let begin = Instant::now();
        let answer = plain(servers.http(), bytes).await;
        // An alert, or nothing; never a page.
        assert!(answer.len() < 20, "{answer:?}");
        let mut opening = SSL_REQUEST.to_vec();
        let mut socket = TcpStream::connect(servers.postgres()).await.unwrap();
        socket.write_all(&opening).await.unwrap();
        assert_eq!(socket.read_u8().await.unwrap(), b'S');
        socket.write_all(bytes).await.unwrap();
        opening.clear();
        let read = socket.read_to_end(&mut opening);
        let _ = tokio::time::timeout(SOON, read).await.expect("it ends");
        assert!(begin.elapsed() < Duration::from_secs(8), "it did not wait");
    }
}

#[tokio::test]
async fn settings_that_make_no_certificate_are_named() {
    let authority = CertificateAuthority::new();
    let (one, other) = (authority.issue(), authority.issue());
    let dir = tempfile::tempdir().unwrap();
    let good = settings(dir.path(), &one);
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let (no_key, empty) = (file("other.pem", &other.key), file("empty.pem", ""));
    for (tls, setting) in [
        (
            TlsSettings {
                certificate: dir.path().join("missing"),
                ..good.clone()
            },
            "tls_cert",
        ),
        (
            TlsSettings {
                certificate: empty.clone(),
                ..good.clone()
            },
            "tls_cert",
        ),
        (
            TlsSettings {
                key: empty.clone(),
                ..good.clone()
            },
            "tls_key",
        ),
        (
            TlsSettings {
                key: no_key,
                ..good.clone()
            },
            "tls_key",
        ),
        (
            TlsSettings {
                client_ca: Some(empty),
                ..good.clone()
            },
            "tls_client_ca",
        ),
    ] {
        let services = crate::fake::services(&Arc::new(Fake::default()));
        let config = ServerConfig {
            http: None,
            postgres: None,
            tls: Some(tls),
            ..ServerConfig::default()
        };
        let Err(error) = marigram_server::start(config, services).await else {
            panic!("it started")
        };
        let text = error.to_string();
        assert!(text.starts_with(setting), "{text}");
        assert!(!text.contains("PRIVATE KEY-"), "{text}");
    }
}
