//! The audit log, with the real binary: what is in it, and that no password and no token is, nor in the
//! server's own log.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue may panic")]

use crate::access::{add_user, ask, basic, encoded, password_of, sql_anywhere, sql_as};
use crate::server::ServeProcess;
use serde_json::Value;
use std::path::{Path, PathBuf};
use tokio_postgres::NoTls;

/// A part of every secret of this test.
const MARK: &str = "Zq9vXw7k";

struct AuditedServer {
    server: ServeProcess,
    dir: tempfile::TempDir,
}

impl AuditedServer {
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        add_user(&data, "root", &["--admin"]);
        let audit = dir.path().join("audit.jsonl");
        let backups = dir.path().join("backups");
        let server = ServeProcess::start_logged(
            &data,
            &[
                "--audit-log",
                audit.to_str().unwrap(),
                "--backup-dir",
                backups.to_str().unwrap(),
                "--log",
                "trace,hyper=info",
                "--slow-statement",
                "1ms",
            ],
            &dir.path().join("log"),
        );
        Self { server, dir }
    }

    /// Stops the server; what is in the audit log and in the other one.
    fn stop(self) -> (Vec<Value>, String) {
        let Self { server, dir } = self;
        assert!(server.terminate().success());
        let read = |path: PathBuf| std::fs::read_to_string(path).unwrap();
        let audit = read(dir.path().join("audit.jsonl"));
        let log = read(dir.path().join("log")) + &audit;
        let lines = audit
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        (lines.collect(), log)
    }

    async fn connect(
        &self,
        user: &str,
        password: &str,
    ) -> Result<tokio_postgres::Client, tokio_postgres::Error> {
        let config = format!(
            "host=127.0.0.1 port={} user={user} password={password} dbname=main",
            self.server.postgres_port
        );
        let (client, connection) = tokio_postgres::connect(&config, NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }
}

fn is_at(line: &Value, wanted: &[(&str, &str)]) -> bool {
    wanted.iter().all(|(name, value)| line[*name] == *value)
}

/// Does something of each kind, and what root, reader and ghost may not.
async fn act(audited: &AuditedServer) {
    let server = &audited.server;
    let root = basic("root", &password_of("root"));
    for sql in [
        "CREATE DATABASE plant",
        "CREATE USER reader WITH PASSWORD 'readerreader'",
        "GRANT READ ON plant TO reader",
        "CREATE TABLE plant.m (time TIMESTAMP, host STRING TAG, v DOUBLE FIELD)",
        "INSERT INTO plant.m VALUES ('2024-01-01', 'a', 1)",
        "SELECT * FROM plant.m",
    ] {
        assert_eq!(sql_anywhere(server, &root, sql).status, 200, "{sql}");
    }
    // Rows that need a table and a column; those that fit create nothing.
    for (path, lines) in [
        ("/write?db=plant", "fresh,host=a v=1 1"),
        ("/write?db=plant", "fresh,host=a v=2 2"),
        ("/write?db=plant", "fresh,host=a,site=x v=2,n=3i 3"),
        ("/api/v2/write?bucket=plant", "second v=1 1"),
        ("/api/v3/write_lp?db=plant", "third v=1 1"),
    ] {
        let status = ask(server, ("POST", path), &root, lines).status;
        assert_eq!(status, 204, "{path} {lines}");
    }
    let reader = basic("reader", "readerreader");
    assert_eq!(sql_as(server, &reader, "DROP TABLE m").status, 403);
    let write = ("POST", "/write?db=plant");
    assert_eq!(ask(server, write, &reader, "m v=1 1").status, 403);
    let wrong = basic("reader", "wrong");
    assert_eq!(sql_anywhere(server, &wrong, "SELECT 1").status, 401);
    let target = format!(
        "/query?db=plant&q={}",
        encoded("DELETE FROM m WHERE host = 'a'")
    );
    assert_eq!(ask(server, ("POST", &target), &root, "").status, 200);
    let backup = ask(server, ("POST", "/api/v1/backup"), &root, "");
    assert_eq!(backup.status, 200, "{}", backup.body);
    let client = audited.connect("reader", "readerreader").await;
    assert!(client.is_err(), "reader may do nothing in main");
    assert!(audited.connect("ghost", "ghost").await.is_err());
    let client = audited.connect("root", "rootroot").await.unwrap();
    client.simple_query("TRUNCATE plant.m").await.unwrap();
    client.query("DROP TABLE plant.m", &[]).await.unwrap();
    drop(client);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_did_what_is_in_the_audit_log() {
    let audited = AuditedServer::start();
    act(&audited).await;
    let (lines, _) = audited.stop();
    let (http, postgres) = (("listener", "http"), ("listener", "postgres"));
    let (done, refused) = (("outcome", "done"), ("outcome", "refused"));
    let (by_root, by_reader) = (("user", "root"), ("user", "reader"));
    let created = |statement| {
        let (action, database) = (("action", "definition"), ("database", "plant"));
        vec![
            action,
            done,
            by_root,
            http,
            database,
            ("statement", statement),
        ]
    };
    for wanted in [
        vec![("action", "login"), done, by_root, http],
        vec![("action", "login"), done, by_reader, http],
        vec![("action", "login"), refused, by_reader, http],
        vec![("action", "login"), refused, ("user", "ghost"), postgres],
        vec![("action", "login"), done, by_root, postgres],
        vec![
            ("action", "definition"),
            done,
            by_root,
            ("statement", "CREATE DATABASE plant"),
        ],
        vec![
            ("action", "users"),
            done,
            by_root,
            ("statement", "CREATE USER reader …"),
        ],
        vec![("action", "grant"), done, by_root],
        vec![
            ("action", "definition"),
            refused,
            by_reader,
            ("database", "plant"),
            ("error", "42501"),
        ],
        vec![
            ("action", "request"),
            refused,
            by_reader,
            ("statement", "/write"),
        ],
        vec![
            ("action", "delete"),
            done,
            http,
            ("statement", "DELETE FROM m WHERE host = 'a'"),
        ],
        vec![
            ("action", "delete"),
            done,
            postgres,
            ("statement", "TRUNCATE plant.m"),
        ],
        vec![
            ("action", "definition"),
            done,
            postgres,
            ("statement", "DROP TABLE plant.m"),
        ],
        vec![("action", "backup"), done, by_root, http],
        created("CREATE TABLE fresh (host STRING TAG, v DOUBLE FIELD)"),
        created("ALTER TABLE fresh ADD site STRING TAG, ADD n BIGINT FIELD"),
        created("CREATE TABLE second (v DOUBLE FIELD)"),
        created("CREATE TABLE third (v DOUBLE FIELD)"),
    ] {
        let found = lines.iter().any(|line| is_at(line, &wanted));
        assert!(found, "{wanted:?} is not in {lines:#?}");
    }
    let told = |text: &str| lines.iter().any(|line| line.to_string().contains(text));
    assert!(!told("INSERT") && !told("SELECT"), "{lines:#?}");
    let of_fresh = lines
        .iter()
        .filter(|line| line.to_string().contains("fresh"));
    assert_eq!(of_fresh.count(), 2, "{lines:#?}");
    for line in &lines {
        let address = line["address"].as_str().expect("an address");
        assert!(address.starts_with("127.0.0.1:"), "{line}");
        let time = line["time"].as_str().expect("a time");
        assert!(time.starts_with("20") && time.ends_with('Z'), "{line}");
    }
    let of_root = [("action", "login"), by_root, http];
    let logins = lines.iter().filter(|line| is_at(line, &of_root));
    assert_eq!(logins.count(), 1, "logins of each request are one");
}

/// Statements with a secret in them: right ones, wrong ones, and what no parser takes.
fn statements() -> Vec<String> {
    let mut all = Vec::new();
    for (at, form) in ["'{}'", "\"{}\"", "{}", "$${}$$", "E'{}'"]
        .iter()
        .enumerate()
    {
        let secret = form.replace("{}", &format!("{MARK}{at}"));
        for before in [
            format!("CREATE USER u{at} WITH PASSWORD"),
            format!("CREATE USER u{at} WITH PASWORD"),
            format!("CREATE ROLE r{at} LOGIN PASSWORD"),
            format!("ALTER USER u{at} PASSWORD"),
            format!("ALTER USER u{at} IDENTIFIED BY"),
            format!("SET PASSWORD FOR u{at} ="),
            format!("SET PASSWORD FOR \"u{at}\" ="),
            "SET PASSWORD FOR ghost".to_owned(),
            "PREPARE p AS ALTER USER ghost PASSWORD".to_owned(),
            "EXPLAIN CREATE USER x PASSWORD".to_owned(),
            "SELECT 1; ALTER USER ghost PASSWORD".to_owned(),
            "CREATE USER root PASSWORD".to_owned(),
            "CREAT USER root PASWORD".to_owned(),
        ] {
            all.push(format!("{before} {secret}"));
            all.push(format!("{before} {secret} trailing nonsense ("));
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn no_password_and_no_token_is_in_a_log() {
    let audited = AuditedServer::start();
    let server = &audited.server;
    let root = basic("root", &password_of("root"));
    let made = sql_anywhere(server, &root, "CREATE TOKEN COMMENT 'a dashboard'");
    let token = made.json()["rows"][0][1].as_str().unwrap().to_owned();
    let bearer = format!("Bearer {token}");
    assert_eq!(
        sql_anywhere(server, &bearer, "CREATE DATABASE plant").status,
        200
    );
    let reader = "CREATE USER reader WITH PASSWORD 'readerreader'";
    assert_eq!(sql_anywhere(server, &root, reader).status, 200);
    let reader = basic("reader", "readerreader");
    let client = audited.connect("root", "rootroot").await.unwrap();
    for statement in statements() {
        // Whether they are done is not the question.
        for authorization in [&root, &reader] {
            sql_anywhere(server, authorization, &statement);
            let target = format!("/query?q={}", encoded(&statement));
            ask(server, ("POST", &target), authorization, "");
        }
        let _ = client.simple_query(&statement).await;
        let _ = client.query(&statement, &[]).await;
    }
    let in_url = format!("/query?u=root&p={MARK}&q=SHOW%20DATABASES");
    assert_eq!(server.request("GET", &in_url, &[], b"").status, 401);
    let wrong = format!("Token mgt_{MARK}");
    assert_eq!(sql_anywhere(server, &wrong, "SELECT 1").status, 401);
    assert!(audited.connect("root", MARK).await.is_err());
    drop(client);
    let (lines, log) = audited.stop();
    assert!(lines.len() > 50, "{lines:#?}");
    for secret in [
        MARK,
        &MARK.to_lowercase(),
        &token,
        "readerreader",
        "rootroot",
    ] {
        let found = log.lines().find(|line| line.contains(secret));
        assert_eq!(found, None, "{secret} is in a log");
    }
}

#[test]
fn an_audit_log_that_cannot_be_written_is_told_of_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let missing = Path::new("missing/folder/audit.jsonl");
    let done = std::process::Command::new(crate::server::MARIGRAM)
        .args([
            "serve",
            "--http",
            "127.0.0.1:0",
            "--postgres",
            "off",
            "--audit-log",
        ])
        .arg(dir.path().join(missing))
        .arg("--data")
        .arg(dir.path().join("data"))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&done.stderr);
    assert!(
        !done.status.success() && told.contains("audit_log"),
        "{told}"
    );
}
