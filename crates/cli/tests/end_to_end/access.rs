//! Who may come in, and what each may do: every role, on every listener, with every kind of
//! statement.

use crate::server::{MARIGRAM, ServeProcess, ServerResponse};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

/// What a statement needs in the database `plant`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Need {
    Read,
    Write,
    Define,
    Administer,
}
use Need::{Administer, Define, Read, Write as Store};

/// Users, with what they may do; the password of each is its name twice.
pub(crate) const ROLES: [(&str, &[Need]); 5] = [
    ("root", &[Read, Store, Define, Administer]),
    ("definer", &[Read, Store, Define]),
    ("writer", &[Store]),
    ("reader", &[Read]),
    ("nobody", &[]),
];

pub(crate) const SQL: [(Need, &str); 29] = [
    (Read, "SELECT count(*) FROM plant.m"),
    (Read, "SELECT host, max(v) FROM plant.m GROUP BY host"),
    (Read, "SELECT * FROM plant.seen"),
    (Read, "SELECT 1 WHERE EXISTS (SELECT 1 FROM plant.m)"),
    (Read, "EXPLAIN SELECT * FROM plant.m"),
    (Read, "SUMMARIZE plant.m"),
    (Read, "SHOW TABLES FROM plant"),
    (Read, "SHOW COLUMNS FROM plant.m"),
    (Read, "SHOW SERIES FROM plant.m"),
    (Read, "SHOW CREATE TABLE plant.m"),
    (
        Store,
        "INSERT INTO plant.m (time, host, v) VALUES ('2024-01-03', 'x', 1)",
    ),
    (Store, "DELETE FROM plant.m WHERE host = 'x'"),
    (Store, "TRUNCATE plant.scratch"),
    (
        Define,
        "CREATE TABLE IF NOT EXISTS plant.n (time TIMESTAMP, v DOUBLE FIELD)",
    ),
    (Define, "CREATE OR REPLACE VIEW plant.w AS SELECT * FROM m"),
    (Define, "ALTER TABLE plant.scratch SET (ttl = '10d')"),
    (Define, "DROP TABLE IF EXISTS plant.missing"),
    (Define, "SELECT create_hypertable('plant.scratch', 'time')"),
    (
        Define,
        "SELECT drop_chunks('plant.scratch', INTERVAL '1 year')",
    ),
    (Read, "SELECT show_chunks('plant.m')"),
    (Read, "SELECT hypertable_size('plant.m')"),
    (
        Define,
        "CREATE MATERIALIZED VIEW IF NOT EXISTS plant.days WITH (continuous) AS \
         SELECT time_bucket('1 day', time) AS day, max(v) AS v FROM plant.m GROUP BY 1",
    ),
    (Store, "REFRESH MATERIALIZED VIEW plant.days"),
    (Administer, "CREATE DATABASE IF NOT EXISTS d2"),
    (Administer, "FLUSH"),
    (Administer, "SHOW COMPACTIONS"),
    (
        Administer,
        "CREATE USER IF NOT EXISTS reader WITH PASSWORD 'x'",
    ),
    (Administer, "GRANT READ ON d2 TO root"),
    (Administer, "ALTER USER root SUPERUSER"),
];

const INFLUXQL: [(Need, &str); 28] = [
    (Read, "SELECT count(v) FROM m"),
    (Read, "SELECT * FROM (SELECT v FROM plant..m)"),
    (Read, "SHOW MEASUREMENTS"),
    (Read, "SHOW TAG VALUES FROM m WITH KEY = host"),
    (Read, "SHOW RETENTION POLICIES"),
    (Read, "EXPLAIN SELECT v FROM m"),
    (Read, "SHOW SERIES"),
    (Read, "SHOW TAG KEYS"),
    (Read, "SHOW FIELD KEYS FROM m"),
    (Read, "SHOW SERIES CARDINALITY FROM m"),
    (Read, "SHOW MEASUREMENT EXACT CARDINALITY"),
    (Read, "SHOW MEASUREMENTS WITH MEASUREMENT =~ plant../.*/"),
    (Read, "SHOW CONTINUOUS QUERIES"),
    (Read, "SHOW QUERIES"),
    (Store, "DROP SERIES FROM m WHERE host = 'x'"),
    (Store, "DROP RETENTION POLICY nix ON plant"),
    (
        Define,
        "CREATE CONTINUOUS QUERY q ON plant BEGIN SELECT max(v) INTO hours FROM m GROUP BY time(1h) END",
    ),
    (Define, "DROP CONTINUOUS QUERY nix ON plant"),
    (Administer, "DROP MEASUREMENT nix"),
    (Administer, "SHOW STATS"),
    (Administer, "SHOW DIAGNOSTICS"),
    (
        Administer,
        "CREATE RETENTION POLICY p ON d2 DURATION 1d REPLICATION 1",
    ),
    (Store, "DELETE FROM m WHERE host = 'x'"),
    (Administer, "SHOW USERS"),
    (Administer, "SHOW GRANTS FOR reader"),
    (Administer, "CREATE DATABASE d2"),
    (Administer, "GRANT READ ON d2 TO root"),
    (Administer, "SHOW SHARDS"),
];

pub(crate) fn password_of(user: &str) -> String {
    format!("{user}{user}")
}

pub(crate) fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

pub(crate) fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        write!(encoded, "%{byte:02X}").expect("a text takes it");
    }
    encoded
}

/// Sends a request with credentials.
pub(crate) fn ask(
    server: &ServeProcess,
    line: (&str, &str),
    authorization: &str,
    body: &str,
) -> ServerResponse {
    let headers = [("Authorization", authorization)];
    server.request(line.0, line.1, &headers, body.as_bytes())
}

pub(crate) fn sql_as(server: &ServeProcess, authorization: &str, sql: &str) -> ServerResponse {
    ask(server, ("POST", "/api/v1/sql?db=plant"), authorization, sql)
}

/// Runs SQL where the client may do anything.
pub(crate) fn sql_anywhere(
    server: &ServeProcess,
    authorization: &str,
    sql: &str,
) -> ServerResponse {
    ask(server, ("POST", "/api/v1/sql"), authorization, sql)
}

/// Adds a user to a data directory, as an operator does.
pub(crate) fn add_user(dir: &Path, name: &str, options: &[&str]) {
    add_user_with(dir, name, &password_of(name), options);
}

/// Adds a user with a password.
pub(crate) fn add_user_with(dir: &Path, name: &str, password: &str, options: &[&str]) {
    let mut command = Command::new(MARIGRAM);
    command.args(["user", "add", name, "--password-file", "-", "--data"]);
    command.arg(dir).args(options);
    let mut child = command
        .stdin(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    writeln!(stdin, "{password}").expect("the command reads");
    drop(stdin);
    assert!(child.wait().expect("it ends").success());
}

/// A server with the users of [`ROLES`], a table and a view in `plant`, and a table in `vault`.
pub(crate) fn start(dir: &Path) -> ServeProcess {
    start_with(dir, &[])
}

/// The same with options.
pub(crate) fn start_with(dir: &Path, options: &[&str]) -> ServeProcess {
    add_user(dir, "root", &["--admin"]);
    let server = ServeProcess::start(dir, options);
    let root = basic("root", &password_of("root"));
    let all = "CREATE DATABASE plant; CREATE DATABASE vault; \
        CREATE TABLE plant.m (time TIMESTAMP, host STRING TAG, v DOUBLE FIELD); \
        CREATE TABLE plant.scratch (time TIMESTAMP, v DOUBLE FIELD); \
        CREATE TABLE vault.secrets (time TIMESTAMP, v DOUBLE FIELD); \
        INSERT INTO plant.m VALUES ('2024-01-01', 'a', 1), ('2024-01-02', 'b', 2); \
        INSERT INTO vault.secrets VALUES ('2024-01-01', 42); \
        CREATE VIEW plant.seen AS SELECT host, v FROM m; \
        CREATE USER definer WITH PASSWORD 'definerdefiner'; \
        CREATE USER writer WITH PASSWORD 'writerwriter'; \
        CREATE USER reader WITH PASSWORD 'readerreader'; \
        CREATE USER nobody WITH PASSWORD 'nobodynobody'; \
        CREATE ROLE crew; GRANT READ ON plant TO crew; GRANT crew TO reader; \
        GRANT INSERT ON DATABASE plant TO writer; GRANT ALL ON plant TO definer";
    let reply = ask(&server, ("POST", "/api/v1/sql"), &root, all);
    assert_eq!(reply.status, 200, "{}", reply.body);
    server
}

pub(crate) async fn connect(
    server: &ServeProcess,
    user: &str,
    password: &str,
    database: &str,
) -> Result<Client, tokio_postgres::Error> {
    let config = format!(
        "host=127.0.0.1 port={} user={user} password={password} dbname={database}",
        server.postgres_port
    );
    let (client, connection) = tokio_postgres::connect(&config, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

pub(crate) fn state_of(error: &tokio_postgres::Error) -> &str {
    error.code().map_or("", |code| code.code())
}

#[test]
fn every_role_may_do_what_it_was_granted_over_http() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path());
    let root = basic("root", &password_of("root"));
    for (role, held) in ROLES {
        let made = sql_as(&server, &root, &format!("CREATE TOKEN FOR {role}"));
        let token = made.json()["rows"][0][1]
            .as_str()
            .expect("a token")
            .to_owned();
        let by_password = basic(role, &password_of(role));
        for authorization in [by_password, format!("Token {token}")] {
            check_role_over_http(&server, role, held, &authorization);
        }
    }
}

/// What one role may do over HTTP, by its password or its token.
fn check_role_over_http(server: &ServeProcess, role: &str, held: &[Need], authorization: &str) {
    // Whoever may do nothing in the database does not learn whether a statement is one.
    let check = |way: &str, need: Need, statement: &str, reply: &ServerResponse| {
        let wanted = if held.contains(&need) { 200 } else { 403 };
        let (status, body) = (reply.status, &reply.body);
        assert_eq!(status, wanted, "{role}, {way}, {statement}: {body}");
    };
    for (need, statement) in SQL {
        let reply = sql_as(server, authorization, statement);
        check("/api/v1/sql", need, statement, &reply);
        let body = serde_json::json!({"db": "plant", "q": statement}).to_string();
        let line = ("POST", "/api/v3/query_sql");
        check(
            "query_sql",
            need,
            statement,
            &ask(server, line, authorization, &body),
        );
    }
    for (need, statement) in INFLUXQL {
        let target = format!("/query?db=plant&q={}", encoded(statement));
        let line = ("POST", target.as_str());
        check(
            "/query",
            need,
            statement,
            &ask(server, line, authorization, ""),
        );
        let body = serde_json::json!({"db": "plant", "q": statement}).to_string();
        let line = ("POST", "/api/v3/query_influxql");
        check(
            "query_influxql",
            need,
            statement,
            &ask(server, line, authorization, &body),
        );
    }
    for target in [
        "/write?db=plant",
        "/api/v2/write?bucket=plant&org=o",
        "/api/v3/write_lp?db=plant",
    ] {
        let reply = ask(server, ("POST", target), authorization, "m,host=x v=1 1");
        let wanted = if held.contains(&Store) { 204 } else { 403 };
        assert_eq!(reply.status, wanted, "{role}, {target}: {}", reply.body);
    }
    let fresh = ("POST", "/write?db=fresh");
    let reply = ask(server, fresh, authorization, "m v=1 1");
    let wanted = if held.contains(&Administer) { 204 } else { 403 };
    assert_eq!(reply.status, wanted, "{role} makes a database");
    let reply = ask(server, ("GET", "/api/v2/buckets"), authorization, "");
    assert_eq!(reply.status, 200, "{role}: {}", reply.body);
    let sees = reply.body.contains("\"plant\"");
    let may_see = held.contains(&Read) || held.contains(&Store);
    assert_eq!(sees, may_see, "{role}: {}", reply.body);
    let reply = ask(server, ("POST", "/api/v1/backup"), authorization, "");
    let wanted = if held.contains(&Administer) { 400 } else { 403 };
    assert_eq!(
        reply.status, wanted,
        "{role} takes a backup: {}",
        reply.body
    );
    check_role_by_flux(server, role, held, authorization);
}

/// What one role may read by Flux.
fn check_role_by_flux(server: &ServeProcess, role: &str, held: &[Need], authorization: &str) {
    for bucket in ["plant", "unknown"] {
        let script = format!("from(bucket: \"{bucket}\") |> range(start: 0)");
        let body = serde_json::json!({"query": script}).to_string();
        let reply = ask(server, ("POST", "/api/v2/query"), authorization, &body);
        let wanted = match (held.contains(&Read), bucket) {
            (true, "plant") => 200,
            (_, "unknown") if held.contains(&Administer) => 404,
            _ => 403,
        };
        let (status, body) = (reply.status, &reply.body);
        assert_eq!(status, wanted, "{role} reads {bucket}: {body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_role_may_do_what_it_was_granted_over_postgresql() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path());
    for (role, held) in ROLES {
        let client = match connect(&server, role, &password_of(role), "plant").await {
            Ok(client) => client,
            Err(error) => {
                assert!(held.is_empty(), "{role}: {error}");
                assert_eq!(state_of(&error), "42501");
                continue;
            }
        };
        assert!(!held.is_empty(), "{role} came in");
        for (need, statement) in SQL {
            let wanted = if held.contains(&need) { "" } else { "42501" };
            let simple = client.simple_query(statement).await;
            let state = simple.as_ref().err().map_or("", state_of);
            assert_eq!(state, wanted, "{role}: {statement}: {simple:?}");
            let extended = client.query(statement, &[]).await;
            let state = extended.as_ref().err().map_or("", state_of);
            assert_eq!(state, wanted, "{role}, extended: {statement}: {extended:?}");
        }
        let copy = client
            .copy_in::<_, &[u8]>("COPY m (time, host, v) FROM STDIN")
            .await;
        assert_eq!(copy.is_ok(), held.contains(&Store), "{role}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_who_proves_who_it_is_comes_in() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path());
    let lines = [
        ("POST", "/api/v1/sql"),
        ("POST", "/query?q=SHOW%20DATABASES"),
        ("POST", "/write?db=plant"),
        ("GET", "/api/v2/buckets"),
        ("GET", "/metrics"),
        ("POST", "/api/v3/query_sql"),
        ("POST", "/api/v1/backup"),
    ];
    for (method, target) in lines {
        let reply = server.request(method, target, &[], b"SELECT 1");
        assert_eq!(reply.status, 401, "{target}: {}", reply.body);
    }
    // One each: every failure is answered later than the one before.
    let wrong = [
        basic("root", "wrong"),
        basic("ghost", "ghostghost"),
        basic("crew", ""),
        "Token mgt_wrong".to_owned(),
        "Bearer root".to_owned(),
        "Bearer eyJhbGciOiJub25lIn0.eyJ1c2VybmFtZSI6InJvb3QifQ.".to_owned(),
        "Digest x".to_owned(),
    ];
    for (authorization, line) in wrong.iter().zip(lines) {
        let reply = ask(&server, line, authorization, "SELECT 1");
        assert_eq!(
            reply.status, 401,
            "{authorization}, {line:?}: {}",
            reply.body
        );
    }
    // InfluxDB's other ways, and paths that need nobody.
    let by_url = "/query?u=root&p=rootroot&q=SHOW%20USERS";
    assert_eq!(server.request("GET", by_url, &[], b"").status, 200);
    let token_pair = "Token root:rootroot";
    assert_eq!(sql_as(&server, token_pair, "SELECT 1").status, 200);
    for open in ["/health", "/ping", "/ready"] {
        assert!(server.request("GET", open, &[], b"").status < 300, "{open}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_users_ends_what_was_there_before() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path());
    let root = basic("root", &password_of("root"));
    for (user, password) in [("root", "wrong"), ("ghost", "ghostghost"), ("crew", "x")] {
        let error = connect(&server, user, password, "plant")
            .await
            .expect_err("refused");
        assert_eq!(state_of(&error), "28P01", "{user}: {error:?}");
        let message = error.as_db_error().expect("the server says it").message();
        let expected = format!("password authentication failed for user \"{user}\"");
        assert_eq!(message, expected);
    }
    let client = connect(&server, "reader", "readerreader", "plant")
        .await
        .expect("she comes in");
    let count = "SELECT count(*) FROM m";
    client.simple_query(count).await.expect("she may");
    let prepared = client.prepare(count).await.expect("she may");
    assert_eq!(
        sql_as(&server, &root, "REVOKE crew FROM reader").status,
        200
    );
    let error = client.simple_query(count).await.expect_err("no longer");
    assert_eq!(state_of(&error), "42501");
    let error = client.query(&prepared, &[]).await.expect_err("no longer");
    assert_eq!(state_of(&error), "42501");
    assert_eq!(sql_as(&server, &root, "DROP USER reader").status, 200);
    let error = client
        .simple_query("SELECT 1")
        .await
        .expect_err("she is gone");
    assert_eq!(state_of(&error), "28P01");
    assert_eq!(
        sql_as(&server, &basic("reader", "readerreader"), "SELECT 1").status,
        401
    );
    // Somebody else who gets the name does not bring the old connection back.
    let reborn = "CREATE USER reader WITH PASSWORD 'somebodyelse' SUPERUSER";
    assert_eq!(sql_as(&server, &root, reborn).status, 200);
    let error = client.simple_query(count).await.expect_err("still gone");
    assert_eq!(state_of(&error), "28P01");
    let others = connect(&server, "reader", "somebodyelse", "plant").await;
    let others = others.expect("the other one comes in");
    others.simple_query(count).await.expect("and may");
}

#[test]
fn users_who_only_write_delete_through_influxdbs_api() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path());
    let writer = basic("writer", "writerwriter");
    let delete = r#"{"start":"2024-01-01T00:00:00Z","stop":"2024-01-01T00:00:01Z","predicate":"_measurement=\"m\""}"#;
    let line = ("POST", "/api/v2/delete?org=o&bucket=plant");
    let reply = ask(&server, line, &writer, delete);
    assert_eq!(reply.status, 204, "{}", reply.body);
    let root = basic("root", &password_of("root"));
    let left = sql_as(&server, &root, "SELECT count(*) FROM m");
    assert_eq!(left.json()["rows"][0][0], 1);
    let seen = ask(&server, ("GET", "/api/v2/buckets"), &writer, "");
    let names: Vec<_> = seen.json()["buckets"].as_array().expect("a list").clone();
    let names: Vec<_> = names.iter().map(|bucket| bucket["name"].clone()).collect();
    assert_eq!(names, ["plant"]);
    let foreign = ("POST", "/api/v2/delete?org=o&bucket=vault");
    assert_eq!(ask(&server, foreign, &writer, delete).status, 403);
}

#[test]
fn tokens_have_scope_and_end() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path());
    let root = basic("root", &password_of("root"));
    let made = |authorization: &str, sql: &str| {
        let reply = sql_as(&server, authorization, sql);
        assert_eq!(reply.status, 200, "{sql}: {}", reply.body);
        let row = reply.json()["rows"][0].clone();
        let text = row[1].as_str().expect("a token").to_owned();
        (row[0].as_u64().expect("a number"), text)
    };
    let read = "SELECT count(*) FROM plant.m";
    let (number, token) = made(&root, "CREATE TOKEN READ ON plant COMMENT 'dashboard'");
    for scheme in ["Token", "Bearer"] {
        let bearer = format!("{scheme} {token}");
        assert_eq!(sql_as(&server, &bearer, read).status, 200);
        assert_eq!(
            sql_as(&server, &bearer, "TRUNCATE plant.scratch").status,
            403
        );
        assert_eq!(
            sql_as(&server, &bearer, "SELECT * FROM vault.secrets").status,
            403
        );
        assert_eq!(sql_as(&server, &bearer, "CREATE TOKEN").status, 403);
    }
    let (_, short) = made(&root, "CREATE TOKEN EXPIRES IN '1s'");
    let short = format!("Token {short}");
    assert_eq!(sql_as(&server, &short, read).status, 200);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    assert_eq!(sql_as(&server, &short, read).status, 401);
    // Everyone has tokens of their own, and sees no others.
    let reader = basic("reader", &password_of("reader"));
    let (own, of_reader) = made(&reader, "CREATE TOKEN ALL ON plant, ALL ON vault");
    let of_reader = format!("Token {of_reader}");
    assert_eq!(sql_as(&server, &of_reader, read).status, 200);
    assert_eq!(
        sql_as(&server, &of_reader, "TRUNCATE plant.scratch").status,
        403
    );
    assert_eq!(
        sql_as(&server, &of_reader, "SELECT * FROM vault.secrets").status,
        403
    );
    let shown = sql_as(&server, &reader, "SHOW TOKENS").json()["rows"].clone();
    assert_eq!(shown.as_array().expect("rows").len(), 1, "{shown}");
    // A user who is kept out is kept out with every proof.
    for (option, status) in [("NOLOGIN", 401), ("LOGIN", 200)] {
        let change = format!("ALTER USER reader {option}");
        assert_eq!(sql_as(&server, &root, &change).status, 200);
        assert_eq!(sql_as(&server, &of_reader, read).status, status, "{option}");
    }
    let drop_others = format!("DROP TOKEN {number}");
    assert_eq!(sql_as(&server, &reader, &drop_others).status, 404);
    assert_eq!(
        sql_as(&server, &reader, &format!("DROP TOKEN {own}")).status,
        200
    );
    assert_eq!(sql_as(&server, &of_reader, read).status, 401);
    let change = "ALTER USER reader WITH PASSWORD 'other'";
    assert_eq!(sql_as(&server, &reader, change).status, 200);
    assert_eq!(sql_as(&server, &reader, read).status, 401);
    assert_eq!(sql_as(&server, &basic("reader", "other"), read).status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_tells_of_what_one_may_not_see() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path());
    let root = basic("root", &password_of("root"));
    let (reader, definer) = (
        basic("reader", &password_of("reader")),
        basic("definer", &password_of("definer")),
    );
    let secret = "SELECT * FROM vault.secrets";
    // Its plan is cached now, for administrators.
    for _ in 0..3 {
        assert_eq!(sql_as(&server, &root, secret).status, 200);
    }
    for statement in [
        secret,
        "EXPLAIN SELECT * FROM vault.secrets",
        "SELECT * FROM vault.public.secrets",
        "SELECT * FROM vault.marigram_series.secrets",
        "SELECT * FROM vault.information_schema.tables",
        "SHOW TABLES FROM vault",
        "SHOW CREATE TABLE vault.secrets",
        "USE vault",
        "CREATE VIEW stolen AS SELECT * FROM vault.secrets",
        "CREATE TABLE stolen AS SELECT * FROM vault.secrets",
        "INSERT INTO m SELECT time, 'x', v FROM vault.secrets",
        "CREATE MATERIALIZED VIEW plant.stolen AS SELECT time_bucket('1h', time) AS t, max(v) AS v \
         FROM vault.secrets GROUP BY 1",
        "DROP DATABASE vault",
    ] {
        for client in [&reader, &definer] {
            let reply = sql_as(&server, client, statement);
            assert_ne!(reply.status, 200, "{statement}: {}", reply.body);
            // The same words for a database that does not exist.
            let other = statement.replace("vault", "ghost");
            let told = sql_as(&server, client, &other).body;
            assert_eq!(reply.body.replace("vault", "ghost"), told, "{statement}");
            assert!(!reply.body.contains("42"), "{}", reply.body);
        }
    }
    for statement in [
        "SHOW DATABASES",
        "SELECT datname FROM pg_database",
        "SELECT * FROM information_schema.schemata",
        "SELECT * FROM information_schema.tables",
        "SELECT table_catalog FROM information_schema.columns",
        "SELECT relname FROM pg_class",
        "SELECT * FROM secrets",
        "SELECT * FROM secret",
        "SHOW USERS",
    ] {
        let told = sql_as(&server, &reader, statement).body;
        for hidden in ["vault", "'secrets'", "\"secrets\"", "root"] {
            let is_asked = statement.contains(hidden.trim_matches(['\'', '"']));
            assert!(is_asked || !told.contains(hidden), "{statement}: {told}");
        }
    }
    let reply = ask(&server, ("POST", "/query?q=SHOW%20DATABASES"), &reader, "");
    assert!(
        reply.body.contains("plant") && !reply.body.contains("vault"),
        "{}",
        reply.body
    );
    let metrics = ask(&server, ("GET", "/metrics"), &reader, "");
    assert!(metrics.status == 200 && !metrics.body.contains("vault"));
    // psql connects to a database of the user's name where none is named.
    let client = connect(&server, "reader", "readerreader", "reader")
        .await
        .expect("she comes in");
    let rows = client
        .simple_query("SELECT current_database()")
        .await
        .expect("rows");
    let named = rows.iter().any(
        |message| matches!(message, SimpleQueryMessage::Row(row) if row.get(0) == Some("plant")),
    );
    assert!(named, "the only one she may see: {rows:?}");
    let error = connect(&server, "reader", "readerreader", "vault")
        .await
        .expect_err("refused");
    assert_eq!(state_of(&error), "42501");
}

/// A view's query may hold values.
#[test]
fn only_who_may_read_rows_sees_the_queries_of_views() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path());
    for (role, sees) in [("root", true), ("reader", true), ("writer", false)] {
        let client = basic(role, &password_of(role));
        for statement in [
            "SELECT viewname, definition FROM pg_views",
            "SELECT table_name, definition FROM information_schema.views",
            "SELECT relname, pg_get_viewdef(oid) FROM pg_class WHERE relname = 'seen'",
        ] {
            let reply = sql_as(&server, &client, statement);
            let told = (
                reply.body.contains("seen"),
                reply.body.contains("SELECT host"),
            );
            assert_eq!(told, (true, sees), "{role}: {statement}: {}", reply.body);
        }
    }
}

#[test]
fn passwords_are_neither_logged_nor_stored() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path());
    let root = basic("root", &password_of("root"));
    for statement in [
        "CREATE USER eve WITH PASSWORD 'hunter2hunter2'",
        "CREATE USER eve WITH PASSWORD 'hunter2hunter2'",
        "CREATE USER adam WITH PASSWORD 'hunter2hunter2' CREATEDB",
    ] {
        let _ = sql_as(&server, &root, statement);
    }
    let _ = sql_as(&server, &basic("eve", "hunter2hunter2 "), "SELECT 1");
    assert!(server.terminate().success());
    for file in walk(dir.path()) {
        let bytes = std::fs::read(&file).expect("it can be read");
        let found = bytes.windows(7).any(|part| part == b"hunter2");
        assert!(!found, "{}", file.display());
    }
}

/// The files below a directory.
fn walk(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(walk(&path));
        } else {
            files.push(path);
        }
    }
    files
}

#[test]
fn users_outlast_a_restart_and_a_lost_catalog_lets_nobody_in() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let server = start(&data);
    let backups = dir.path().join("backups");
    assert!(server.terminate().success());
    let taken = Command::new(MARIGRAM)
        .args(["backup", "--data"])
        .args([&data, &backups])
        .output()
        .unwrap();
    assert!(taken.status.success(), "{taken:?}");
    let server = ServeProcess::start(&data, &[]);
    let root = basic("root", &password_of("root"));
    assert_eq!(sql_as(&server, &root, "SELECT 1").status, 200);
    assert_eq!(sql_as(&server, "", "SELECT 1").status, 401);
    assert!(server.terminate().success());
    for file in ["CATALOG", "CATALOG.copy"] {
        std::fs::remove_file(data.join(file)).unwrap();
    }
    let refused = Command::new(MARIGRAM)
        .args([
            "serve",
            "--http",
            "127.0.0.1:0",
            "--postgres",
            "127.0.0.1:0",
            "--data",
        ])
        .arg(&data)
        .output()
        .unwrap();
    assert!(!refused.status.success());
    let restored = dir.path().join("restored");
    let done = Command::new(MARIGRAM)
        .arg("restore")
        .args([&backups, &restored])
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    let server = ServeProcess::start(&restored, &[]);
    assert_eq!(sql_as(&server, &root, "SELECT 1").status, 200);
    assert_eq!(sql_as(&server, "", "SELECT 1").status, 401);
}

#[test]
fn without_users_only_this_machine_is_served() {
    let dir = tempfile::tempdir().unwrap();
    let serve = |address: &str| {
        Command::new(MARIGRAM)
            .args([
                "serve",
                "--http",
                address,
                "--postgres",
                "127.0.0.1:0",
                "--data",
            ])
            .arg(dir.path())
            .output()
            .unwrap()
    };
    let refused = serve("0.0.0.0:0");
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success() && told.contains("marigram user add"),
        "{told}"
    );
    // The first user ends the openness, also for who created it.
    let server = ServeProcess::start(dir.path(), &[]);
    assert_eq!(sql_as(&server, "", "CREATE DATABASE plant").status, 404);
    let line = ("POST", "/api/v1/sql");
    let first = "CREATE USER bob WITH PASSWORD 'bobbob'";
    assert_eq!(ask(&server, line, "", first).status, 200);
    let grant = ("POST", "/query?q=GRANT%20ALL%20PRIVILEGES%20TO%20bob");
    assert_eq!(ask(&server, grant, "", "").status, 200);
    assert_eq!(
        ask(&server, line, "", "SELECT 1").status,
        200,
        "as in InfluxDB"
    );
    assert_eq!(ask(&server, line, "", "DROP USER bob").status, 200);
    let first = "CREATE USER ann WITH PASSWORD 'annann' SUPERUSER";
    assert_eq!(ask(&server, line, "", first).status, 200);
    assert_eq!(ask(&server, line, "", "SELECT 1").status, 401);
    assert_eq!(
        ask(&server, line, &basic("ann", "annann"), "SELECT 1").status,
        200
    );
    // The last one leaves it open again.
    assert_eq!(
        ask(&server, line, &basic("ann", "annann"), "DROP USER ann").status,
        200
    );
    assert_eq!(ask(&server, line, "", "SELECT 1").status, 200);
}
