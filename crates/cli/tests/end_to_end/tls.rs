//! Encrypted connections, with the real binary: its own commands, psql, channel binding, and a
//! certificate that changes.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue may panic")]

use crate::access::{add_user, basic, state_of};
use crate::certificates::CertificateAuthority;
use crate::server::{MARIGRAM, ServeProcess};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::process::{Command, Output};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_postgres::NoTls;
use tokio_postgres::config::{ChannelBinding as BindingRule, SslMode};
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream as PostgresTls};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

const SOON: Duration = Duration::from_secs(30);

/// A server with the user root and a certificate, and who signed it, as a file.
struct SecuredServer {
    server: ServeProcess,
    authority: CertificateAuthority,
    dir: tempfile::TempDir,
}

fn start(more: &[&str]) -> SecuredServer {
    let dir = tempfile::tempdir().unwrap();
    let authority = CertificateAuthority::new();
    let (certificate, key) = authority.issue().write(dir.path());
    std::fs::write(dir.path().join("ca.pem"), &authority.pem).unwrap();
    let data = dir.path().join("data");
    add_user(&data, "root", &["--admin"]);
    let (certificate, key) = (certificate.display().to_string(), key.display().to_string());
    let mut arguments = vec!["--tls-cert", &certificate, "--tls-key", &key];
    arguments.extend_from_slice(more);
    let server = ServeProcess::start(&data, &arguments);
    SecuredServer {
        server,
        authority,
        dir,
    }
}

impl SecuredServer {
    fn url(&self) -> String {
        format!("https://root:rootroot@localhost:{}", self.server.http_port)
    }

    /// Runs the command line against the server.
    fn command(&self, arguments: &[&str], ca: Option<&Path>) -> Output {
        let mut command = Command::new(MARIGRAM);
        command.args(arguments).args(["--url", &self.url()]);
        if let Some(ca) = ca {
            command.arg("--tls-ca").arg(ca);
        }
        command.output().unwrap()
    }

    fn postgres(&self) -> tokio_postgres::Config {
        let mut config = tokio_postgres::Config::new();
        config
            .host("127.0.0.1")
            .port(self.server.postgres_port)
            .user("root")
            .password("rootroot")
            .dbname("main")
            .ssl_mode(SslMode::Require);
        config
    }
}

fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

#[test]
fn every_command_speaks_to_an_encrypted_server() {
    let backups = tempfile::tempdir().unwrap();
    let secured = start(&["--backup-dir", backups.path().to_str().unwrap()]);
    let ca = secured.dir.path().join("ca.pem");
    let file = |name: &str| secured.dir.path().join(name).display().to_string();
    std::fs::write(
        file("in.csv"),
        "time,host,v\n2024-01-01,a,1\n2024-01-02,b,2\n",
    )
    .unwrap();
    for arguments in [
        vec![
            "sql",
            "-c",
            "CREATE TABLE t (time TIMESTAMP, v DOUBLE FIELD)",
        ],
        vec!["import", "--table", "m", "--tags", "host", &file("in.csv")],
        vec!["export", "--table", "m", &file("out.csv")],
        vec!["user", "list"],
        vec!["sql", "-c", "SELECT count(*) FROM m"],
    ] {
        let done = secured.command(&arguments, Some(&ca));
        assert!(done.status.success(), "{arguments:?}: {}", said(&done));
    }
    let exported = std::fs::read_to_string(file("out.csv")).unwrap();
    assert_eq!(exported.lines().count(), 3, "{exported}");
    let backup = secured.command(&["backup"], Some(&ca));
    assert!(backup.status.success(), "{}", said(&backup));
    // Without its authority, or with another one, the server is not believed.
    let foreign = secured.dir.path().join("foreign.pem");
    std::fs::write(&foreign, CertificateAuthority::new().pem).unwrap();
    for ca in [None, Some(foreign.as_path())] {
        let refused = secured.command(&["sql", "-c", "SELECT 1"], ca);
        let told = said(&refused);
        assert!(
            !refused.status.success() && told.contains("UnknownIssuer"),
            "{told}"
        );
        assert!(!told.contains("rootroot"), "{told}");
    }
    // A certificate that is no file of one is named.
    let wrong = secured.command(&["sql", "-c", "SELECT 1"], Some(Path::new("missing.pem")));
    assert!(said(&wrong).contains("missing.pem"), "{}", said(&wrong));
}

#[test]
fn psql_knows_whom_it_talks_to() {
    let has_psql = Command::new("psql").arg("--version").output();
    if !has_psql.is_ok_and(|version| version.status.success()) {
        eprintln!("psql is not installed: testing/clients/run runs it");
        return;
    }
    let secured = start(&[]);
    let psql = |mode: &str, ca: &str, more: &str| {
        let target = format!(
            "host=localhost port={} user=root dbname=main sslmode={mode} {more}",
            secured.server.postgres_port
        );
        let mut command = Command::new("psql");
        command
            .args(["-X", "-w", "-At", "-c", "SELECT 41 + 1", &target])
            .env("PGPASSWORD", "rootroot")
            .env("PGSSLROOTCERT", secured.dir.path().join(ca))
            .env("PGGSSENCMODE", "disable");
        command.output().unwrap()
    };
    let done = psql("verify-full", "ca.pem", "channel_binding=require");
    assert_eq!(
        String::from_utf8_lossy(&done.stdout).trim(),
        "42",
        "{done:?}"
    );
    std::fs::write(
        secured.dir.path().join("foreign.pem"),
        CertificateAuthority::new().pem,
    )
    .unwrap();
    assert!(!psql("verify-full", "foreign.pem", "").status.success());
    let refused = psql("disable", "ca.pem", "");
    assert!(
        said(&refused).contains("sslmode=require"),
        "{}",
        said(&refused)
    );
}

#[test]
fn a_signal_reads_the_certificate_again() {
    let secured = start(&[]);
    let next = CertificateAuthority::new();
    let ca = secured.dir.path().join("next.pem");
    std::fs::write(&ca, &next.pem).unwrap();
    next.issue().write(secured.dir.path());
    secured.server.signal("-HUP");
    let deadline = Instant::now() + SOON;
    while !secured
        .command(&["sql", "-c", "SELECT 1"], Some(&ca))
        .status
        .success()
    {
        assert!(Instant::now() < deadline, "the signal had no effect");
    }
    assert!(secured.server.terminate().success());
}

#[test]
fn commands_show_certificates_where_they_must() {
    let dir = tempfile::tempdir().unwrap();
    let clients = CertificateAuthority::new();
    let ca = dir.path().join("clients.pem");
    std::fs::write(&ca, &clients.pem).unwrap();
    let secured = start(&["--tls-client-ca", ca.to_str().unwrap()]);
    let server_ca = secured.dir.path().join("ca.pem");
    let own = clients.issue();
    let identity = dir.path().join("own.pem");
    std::fs::write(&identity, format!("{}{}", own.certificate, own.key)).unwrap();
    let sql = ["sql", "-c", "SELECT 1"];
    assert!(!secured.command(&sql, Some(&server_ca)).status.success());
    let mut with = sql.to_vec();
    with.extend_from_slice(&["--tls-identity", identity.to_str().unwrap()]);
    let done = secured.command(&with, Some(&server_ca));
    assert!(done.status.success(), "{}", said(&done));
}

#[test]
fn settings_of_certificates_are_checked_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let serve = |more: &[&str]| {
        let mut command = Command::new(MARIGRAM);
        command.args([
            "serve",
            "--http",
            "127.0.0.1:0",
            "--postgres",
            "off",
            "--data",
        ]);
        command.arg(dir.path().join("data")).args(more);
        let done = command.output().unwrap();
        assert!(!done.status.success());
        said(&done)
    };
    let told = serve(&["--tls-cert", "missing.pem", "--tls-key", "missing.pem"]);
    assert!(
        told.contains("tls_cert") && told.contains("missing.pem"),
        "{told}"
    );
    assert!(serve(&["--tls-cert", "a.pem"]).contains("tls_key"));
    assert!(serve(&["--tls-required", "true"]).contains("tls_cert"));
}

/// Connects the PostgreSQL client over rustls.
#[derive(Clone)]
struct RustlsConnector {
    config: ClientConfig,
    /// Binds to another certificate than the connection's, as somebody in between would.
    is_between: bool,
}

struct BoundStream {
    stream: TlsStream<TcpStream>,
    is_between: bool,
}

impl TlsConnect<TcpStream> for RustlsConnector {
    type Stream = BoundStream;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = std::io::Result<BoundStream>> + Send>>;

    fn connect(self, stream: TcpStream) -> Self::Future {
        Box::pin(async move {
            let name = ServerName::try_from("localhost").unwrap();
            let connector = TlsConnector::from(Arc::new(self.config));
            Ok(BoundStream {
                stream: connector.connect(name, stream).await?,
                is_between: self.is_between,
            })
        })
    }
}

impl PostgresTls for BoundStream {
    fn channel_binding(&self) -> ChannelBinding {
        let certificates = self.stream.get_ref().1.peer_certificates().unwrap();
        let mut certificate = certificates[0].to_vec();
        if self.is_between {
            certificate.push(0);
        }
        let provider = rustls::crypto::ring::default_provider();
        let mut suites = provider
            .cipher_suites
            .iter()
            .filter_map(rustls::SupportedCipherSuite::tls13);
        let suite = suites.find(|suite| suite.common.hash_provider.output_len() == 32);
        let hash = suite.unwrap().common.hash_provider.hash(&certificate);
        ChannelBinding::tls_server_end_point(hash.as_ref().to_vec())
    }
}

impl AsyncRead for BoundStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for BoundStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_is_bound_to_the_certificate() {
    let secured = start(&[]);
    let connect = |is_between: bool, rule: BindingRule| {
        let mut config = secured.postgres();
        config.channel_binding(rule);
        let connector = RustlsConnector {
            config: secured.authority.client(None),
            is_between,
        };
        let address = ("127.0.0.1", secured.server.postgres_port);
        async move {
            let socket = TcpStream::connect(address).await.unwrap();
            let (client, connection) = config.connect_raw(socket, connector).await?;
            tokio::spawn(connection);
            client.simple_query("SELECT 1").await
        }
    };
    connect(false, BindingRule::Require)
        .await
        .expect("it is bound");
    connect(false, BindingRule::Disable)
        .await
        .expect("it need not be");
    let error = connect(true, BindingRule::Require)
        .await
        .expect_err("somebody is between");
    assert_eq!(state_of(&error), "28P01", "{error:?}");
    // A client that knows no TLS gets nothing.
    let mut plain = secured.postgres();
    plain.ssl_mode(SslMode::Disable);
    let error = plain.connect(NoTls).await.err().expect("it is refused");
    assert_eq!(state_of(&error), "28000", "{error:?}");
    let answer = secured.server.request(
        "POST",
        "/api/v1/sql",
        &[("Authorization", &basic("root", "rootroot"))],
        b"SELECT 1",
    );
    assert_eq!(answer.status, 400);
    assert!(answer.body.contains("https://"), "{}", answer.body);
}

#[test]
fn a_listener_that_others_can_listen_to_is_told_of() {
    let dir = tempfile::tempdir().unwrap();
    add_user(&dir.path().join("data"), "root", &["--admin"]);
    let (certificate, key) = CertificateAuthority::new().issue().write(dir.path());
    let (certificate, key) = (certificate.display().to_string(), key.display().to_string());
    for (more, warns) in [
        (vec![], true),
        (vec!["--tls-cert", &certificate, "--tls-key", &key], false),
        (
            vec![
                "--tls-cert",
                &certificate,
                "--tls-key",
                &key,
                "--tls-required",
                "false",
            ],
            true,
        ),
    ] {
        let log = dir.path().join("log");
        let mut command = Command::new(MARIGRAM);
        command
            .args([
                "serve",
                "--http",
                "0.0.0.0:0",
                "--postgres",
                "off",
                "--data",
            ])
            .arg(dir.path().join("data"))
            .args(&more)
            .stdout(std::process::Stdio::null())
            .stderr(std::fs::File::create(&log).unwrap());
        let mut child = command.spawn().unwrap();
        let deadline = Instant::now() + SOON;
        let text = || std::fs::read_to_string(&log).unwrap();
        // The line comes right after this one.
        while !text().contains("the server is ready") {
            assert!(Instant::now() < deadline, "{}", text());
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_millis(300));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(
            text().contains("can be read on the network"),
            warns,
            "{more:?}: {}",
            text()
        );
    }
}

#[test]
fn certificates_that_nobody_else_signed() {
    for (certificate, advice) in [
        (CertificateAuthority::self_signed(), None),
        (CertificateAuthority::as_server(), Some("CA:FALSE")),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let (path, key) = certificate.write(dir.path());
        let data = dir.path().join("data");
        let (cert, key) = (path.display().to_string(), key.display().to_string());
        let server = ServeProcess::start(&data, &["--tls-cert", &cert, "--tls-key", &key]);
        let ask = |ca: Option<&str>| {
            let mut command = Command::new(MARIGRAM);
            let url = format!("https://localhost:{}", server.http_port);
            command.args(["sql", "-c", "SHOW DATABASES", "--url", &url]);
            command.args(ca.map(|ca| ["--tls-ca", ca]).into_iter().flatten());
            command.output().unwrap()
        };
        let answer = ask(Some(&cert));
        let said = String::from_utf8_lossy(&answer.stderr);
        match advice {
            None => assert!(answer.status.success(), "{said}"),
            Some(advice) => assert!(said.contains(advice), "{said}"),
        }
        let said = ask(None).stderr;
        let said = String::from_utf8_lossy(&said);
        assert!(
            said.contains("--tls-ca") || said.contains("CA:FALSE"),
            "{said}"
        );
    }
}
