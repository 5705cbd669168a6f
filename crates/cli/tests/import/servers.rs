//! An import through a server does what an import into a directory does: refused rows are counted and
//! named, all others are stored.

use crate::{CommandOutput, ImportFixture, marigram};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// `marigram serve` on a fixture's database; killed when dropped.
struct ImportServer {
    child: Child,
    url: String,
}

impl ImportServer {
    fn start(place: &ImportFixture) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_marigram"))
            .args(["serve", "--data", place.data(), "--http", "127.0.0.1:0"])
            .args(["--postgres", "off", "--log", "error"])
            .env_remove("MARIGRAM_DATA")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let out = child.stdout.take().expect("it has an output");
        let mut lines = BufReader::new(out).lines().map_while(Result::ok);
        let url = lines.find_map(|line| {
            let at = line.find("http://").filter(|_| line.contains("HTTP "))?;
            Some(line[at..].trim().to_owned())
        });
        let url = url.expect("it says its address");
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, url }
    }

    fn import(&self, database: &str, arguments: &[&str]) -> CommandOutput {
        let mut all = vec!["import", "--url", &self.url, "-d", database];
        all.extend(arguments);
        marigram(&all)
    }

    fn csv(&self, database: &str, sql: &str) -> String {
        let all = [
            "sql", "--url", &self.url, "-d", database, "--format", "csv", "-c", sql,
        ];
        let said = marigram(&all);
        assert!(said.ok, "{sql}: {}", said.err);
        said.out
    }

    /// Runs a statement of InfluxQL.
    fn influx(&self, statement: &str) {
        let body = format!("q={statement}").replace(' ', "+");
        let host = self.url.trim_start_matches("http://");
        let mut stream = TcpStream::connect(host).expect("the server listens");
        let request = format!(
            "POST /query HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/x-www-form-urlencoded\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).expect("it is sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it is answered");
        assert!(
            answer.contains(" 200 ") && !answer.contains("\"error\""),
            "{answer}"
        );
    }
}

impl Drop for ImportServer {
    fn drop(&mut self) {
        // It may have ended already, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Rows of the last hours as CSV and as lines; the rows in `old` are older than a month.
fn rows(count: usize, old: &[usize]) -> (String, String) {
    let now_s = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("a clock")
        .as_secs();
    let (mut csv, mut lines) = ("time,dev,v\n".to_owned(), String::new());
    for at in 0..count {
        let time = if old.contains(&at) {
            1_500_000_000 + at as u64
        } else {
            now_s - at as u64
        };
        let _ = writeln!(csv, "{time},d{},{at}.5", at % 7);
        let _ = writeln!(lines, "tt,dev=d{} v={at}.5 {time}000000000", at % 7);
    }
    (csv, lines)
}

#[test]
fn rows_that_a_server_refuses_are_named_and_the_others_stored() {
    let place = ImportFixture::new();
    let server = ImportServer::start(&place);
    let create =
        "CREATE TABLE tt (time TIMESTAMP TIME, dev STRING TAG, v DOUBLE) WITH (ttl = '30d')";
    let (csv, lines) = rows(25_000, &[5, 21_000]);
    let files = [place.file("tt.csv", &csv), place.file("tt.lp", &lines)];
    for (database, file, first) in [("one", &files[0], 7), ("two", &files[1], 6)] {
        server.csv("main", &format!("CREATE DATABASE {database}"));
        server.csv(database, create);
        let said = server.import(database, &[file]);
        assert!(!said.ok, "{}", said.out);
        let counts = "25000 rows read, 24998 stored, 0 replaced, 2 refused";
        assert!(
            said.out.replace(',', "").contains(&counts.replace(',', "")),
            "{}",
            said.out
        );
        for line in [first, first + 20_995] {
            let named = format!("line {line}: ");
            assert!(said.err.contains(&named), "{named}: {}", said.err);
        }
        assert!(said.err.contains("ttl"), "{}", said.err);
        assert_eq!(
            server.csv(database, "SELECT count(*) AS n FROM tt"),
            "n\n24998\n"
        );
        let again = server.import(database, &[file]);
        assert!(
            again
                .out
                .replace(',', "")
                .contains("24998 stored 24998 replaced 2 refused"),
            "{}",
            again.out
        );
    }
}

#[test]
fn values_of_another_type_are_refused_row_by_row() {
    let place = ImportFixture::new();
    let server = ImportServer::start(&place);
    let text = "ty,dev=a v=1,s=\"two\nlines\" 1767225600000000000\nty,dev=a v=\"x\" 1767225601000000000\n\
                ty,dev=a v=3 1767225602000000000\n";
    let file = place.file("ty.lp", text);
    let said = server.import("main", &[&file]);
    assert!(!said.ok);
    assert!(
        said.out
            .contains("3 rows read, 2 stored, 0 replaced, 1 refused"),
        "{}",
        said.out
    );
    assert!(
        said.err.contains("line 3: ") && said.err.contains('v'),
        "{}",
        said.err
    );
    assert_eq!(
        server.csv("main", "SELECT v FROM ty ORDER BY time"),
        "v\n1.0\n3.0\n"
    );
}

#[test]
fn tables_of_an_import_inherit_the_retention_of_their_database() {
    let place = ImportFixture::new();
    let server = ImportServer::start(&place);
    server.influx("CREATE DATABASE kept WITH DURATION 30d NAME month");
    let (csv, _) = rows(3, &[]);
    let file = place.file("tt.csv", &csv);
    let said = server.import("kept", &[&file]);
    assert!(said.ok, "{}{}", said.out, said.err);
    server.csv("kept", "CREATE TABLE copied AS SELECT * FROM tt");
    server.csv(
        "kept",
        "CREATE TABLE own (time TIMESTAMP TIME, v DOUBLE) WITH (ttl = 'none')",
    );
    // The default policy does not decide where the rows of a table go.
    server.influx("CREATE RETENTION POLICY week ON kept DURATION 7d REPLICATION 1 DEFAULT");
    let file = place.file("later.csv", &csv);
    let said = server.import("kept", &[&file]);
    assert!(said.ok, "{}{}", said.out, said.err);
    for (table, kept) in [
        ("tt", "30d"),
        ("copied", "30d"),
        ("own", "none"),
        ("later", "30d"),
    ] {
        let shown = server.csv("kept", &format!("SHOW CREATE TABLE {table}"));
        assert!(shown.contains(&format!("ttl = '{kept}'")), "{shown}");
    }
    assert_eq!(
        server.csv("kept", "SELECT count(*) AS n FROM later"),
        "n\n3\n"
    );
}
