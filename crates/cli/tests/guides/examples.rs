//! Runs the commands of README and of the HTTP guide from top to bottom as they are written, and
//! checks the answers that the guide shows.
//!
//! A block that is not run says so in a comment before it: `<!-- not run: REASON -->`. Only ports
//! differ from the pages, so that the tests do not collide with running servers.

use super::{MARIGRAM, pages, root};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// A fenced block of a page.
pub(crate) struct FencedBlock {
    pub(crate) language: String,
    pub(crate) text: String,
    pub(crate) line: usize,
    /// Why it is not run.
    pub(crate) not_run: Option<String>,
}

fn blocks(text: &str) -> Vec<FencedBlock> {
    let mut blocks: Vec<FencedBlock> = Vec::new();
    let (mut is_open, mut not_run) = (false, None);
    for (at, line) in text.lines().enumerate() {
        if let Some(language) = line.strip_prefix("```") {
            is_open = !is_open;
            if is_open {
                blocks.push(FencedBlock {
                    language: language.to_owned(),
                    text: String::new(),
                    line: at + 1,
                    not_run: not_run.take(),
                });
            }
        } else if is_open {
            let block = blocks.last_mut().expect("one is open");
            block.text.push_str(line);
            block.text.push('\n');
        } else {
            let reason = line.strip_prefix("<!-- not run: ");
            not_run = reason.map(|reason| reason.trim_end_matches("-->").trim().to_owned());
        }
    }
    assert!(!is_open, "a block is not closed");
    blocks
}

/// A server that is killed when dropped.
pub(crate) struct GuideServer {
    child: Child,
    http: String,
    postgres: String,
}

impl GuideServer {
    /// Runs the command of a page, on free ports.
    pub(crate) fn start(dir: &Path, command: &str) -> Self {
        let command = command.trim().trim_start_matches("marigram");
        let mut child = Command::new("bash")
            .args(["-c", &format!("exec '{MARIGRAM}'{command} --log error")])
            .env("MARIGRAM_HTTP", "127.0.0.1:0")
            .env("MARIGRAM_POSTGRES", "127.0.0.1:0")
            .current_dir(dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let out = child.stdout.take().expect("it has an output");
        let (mut http, mut postgres) = (String::new(), String::new());
        for line in BufReader::new(out).lines() {
            let line = line.expect("it says something");
            if line.starts_with("  HTTP ") {
                http = line
                    .trim_start_matches("  HTTP")
                    .trim()
                    .replace("http://", "");
            }
            if line.starts_with("  PostgreSQL ") {
                let address = line.trim_start_matches("  PostgreSQL").trim();
                let port = address.trim_end_matches("/main").rsplit(':').next();
                port.unwrap_or_default().clone_into(&mut postgres);
            }
            if line.starts_with("Ctrl-C") {
                break;
            }
        }
        Self {
            child,
            http,
            postgres,
        }
    }

    /// Runs commands of a page against this server.
    pub(crate) fn run(&self, dir: &Path, text: &str) -> Output {
        let text = text
            .replace("127.0.0.1:8086", &self.http)
            .replace("-p 5432", &format!("-p {}", self.postgres))
            .replace("port=5432", &format!("port={}", self.postgres));
        let bin = dir.join("bin");
        let path = std::env::var("PATH").unwrap_or_default();
        Command::new("bash")
            .args(["-euo", "pipefail", "-c", &text])
            .env("PATH", format!("{}:{path}", bin.display()))
            .env("PGHOST", "127.0.0.1")
            .env("PGPORT", &self.postgres)
            .env("PGDATABASE", "main")
            .env_remove("MARIGRAM_DATA")
            .env_remove("MARIGRAM_URL")
            .current_dir(dir)
            .stdin(Stdio::null())
            .output()
            .expect("bash runs")
    }

    /// The answer to a curl command, as JSON.
    fn json(&self, dir: &Path, arguments: &str) -> Value {
        let output = self.run(dir, &format!("curl -sS {arguments}"));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }
}

impl Drop for GuideServer {
    fn drop(&mut self) {
        // It may have ended already, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A directory with the other files of a checkout.
fn place() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a temporary directory");
    std::fs::create_dir(dir.path().join("bin")).expect("it is made");
    let link = |from: &Path, to: &str| {
        std::os::unix::fs::symlink(from, dir.path().join(to)).expect("it is linked");
    };
    link(Path::new(MARIGRAM), "bin/marigram");
    link(&root().join("data"), "data");
    dir
}

pub(crate) fn page(name: &str) -> Vec<FencedBlock> {
    let pages = pages();
    let (_, text) = pages
        .iter()
        .find(|(page, _)| page == name)
        .expect("it is there");
    blocks(text)
}

#[test]
fn readme_runs_from_top_to_bottom() {
    let dir = place();
    let mut server = None;
    let (mut run, mut not_run) = (0, 0);
    for block in page("README.md")
        .iter()
        .filter(|block| block.language == "sh")
    {
        if block.not_run.is_some() {
            not_run += 1;
            continue;
        }
        run += 1;
        if block.text.contains("marigram serve") {
            server = Some(GuideServer::start(dir.path(), &block.text));
            continue;
        }
        let server = server.as_ref().expect("the page starts one first");
        let output = server.run(dir.path(), &block.text);
        let (out, err) = (
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        );
        assert!(output.status.success(), "line {}: {out}{err}", block.line);
        if block.text.contains("/write?") {
            assert!(out.contains("204"), "line {}: {out}", block.line);
        }
    }
    // Whoever adds a block decides whether it runs.
    assert_eq!((run, not_run), (4, 3));
}

#[test]
fn the_guide_to_http_says_what_is_answered() {
    let dir = place();
    let server = GuideServer::start(
        dir.path(),
        "marigram serve --data ./db --backup-dir ./backups",
    );
    let blocks = page("docs/guides/http.md");
    let mut run = 0;
    for block in blocks.iter().filter(|block| block.language == "sh") {
        if block.not_run.is_none() {
            run += 1;
            let output = server.run(dir.path(), &block.text);
            let out = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "line {}: {out}", block.line);
            assert!(!out.contains("\"error\""), "line {}: {out}", block.line);
        }
    }
    assert_eq!(run, 3);
    let base = format!("'http://{}", server.http);
    let answers = [
        server.json(
            dir.path(),
            &format!(
                "{base}/api/v2/write?bucket=plant' --data-binary $'m a=1\\nm a=2 5\\nm a=x 6\\n'"
            ),
        ),
        server.json(dir.path(), &format!("{base}/api/v1/sql?db=plant' -d 'SELEC 1'")),
        server.json(
            dir.path(),
            &format!(
                "{base}/api/v1/sql?db=plant' -d 'SELECT station, max(temperature) AS max FROM weather \
                 GROUP BY station ORDER BY station'"
            ),
        ),
        server.json(
            dir.path(),
            &format!("-X POST {base}/api/v1/backup?dir=nightly&keep=30'"),
        ),
    ];
    let samples: Vec<&FencedBlock> = blocks
        .iter()
        .filter(|block| block.language == "json")
        .collect();
    assert_eq!(samples.len(), answers.len());
    for (sample, answer) in samples.iter().zip(&answers) {
        let told: Value = serde_json::from_str(&sample.text)
            .unwrap_or_else(|error| panic!("line {}: {error}", sample.line));
        alike(&told, answer, &format!("line {}", sample.line));
    }
    assert_eq!(answers[0]["stored"], 2);
    assert_eq!(answers[0]["rejected"], 1);
    let rows = serde_json::json!([["north", 21.5], ["south", 24.1]]);
    assert_eq!(answers[2]["rows"], rows);
}

#[test]
fn the_guide_to_influxdb_says_what_is_answered() {
    let dir = place();
    let server = GuideServer::start(dir.path(), "marigram serve --data ./db");
    let mut all = String::new();
    for block in page("docs/guides/influxdb.md")
        .iter()
        .filter(|block| block.language == "sh")
    {
        let output = server.run(dir.path(), &block.text);
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "line {}: {out}", block.line);
        assert!(!out.contains("\"error\""), "line {}: {out}", block.line);
        all += &out;
    }
    for answer in [
        r#""tags":{"station":"north"},"columns":["time","temperature"],"values":[["2024-01-01T00:00:00Z",21.5]]"#,
        r#""name":"weather","columns":["time","temperature"],"values":[["#,
        r#""rows":["#,
    ] {
        assert!(all.contains(answer), "{answer} is not in {all}");
    }
}

/// The rows of its questions are those of the guide to InfluxDB.
#[test]
fn the_guide_to_influxql_says_what_is_answered() {
    let dir = place();
    let server = GuideServer::start(dir.path(), "marigram serve --data ./db");
    let mut all = String::new();
    let blocks = [
        page("docs/guides/influxdb.md"),
        page("docs/guides/influxql.md"),
    ];
    for block in blocks
        .iter()
        .flatten()
        .filter(|block| block.language == "sh")
    {
        let output = server.run(dir.path(), &block.text);
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "line {}: {out}", block.line);
        assert!(!out.contains("\"error\""), "line {}: {out}", block.line);
        all += &out;
    }
    for answer in [
        r#""tags":{"station":"south"},"columns":["time","temperature"],"values":[["2024-01-01T00:00:00Z",24.1]]"#,
        "CREATE CONTINUOUS QUERY hourly ON plant BEGIN SELECT mean(temperature)",
    ] {
        assert!(all.contains(answer), "{answer} is not in {all}");
    }
}

#[test]
fn the_guide_to_influxdb_2_and_3_says_what_is_answered() {
    let dir = place();
    let server = GuideServer::start(dir.path(), "marigram serve --data ./db");
    let mut all = String::new();
    for block in page("docs/guides/influxdb2.md")
        .iter()
        .filter(|block| block.language == "sh")
    {
        let output = server.run(dir.path(), &block.text);
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "line {}: {out}", block.line);
        assert!(!out.contains("\"error\""), "line {}: {out}", block.line);
        assert!(!out.contains("\"message\""), "line {}: {out}", block.line);
        all += &out;
    }
    for answer in [
        r#"{"time":"2024-01-01T00:00:00","temp":21.5}"#,
        r#""hum":35"#,
        r#""name":"plant2""#,
    ] {
        assert!(all.contains(answer), "{answer} is not in {all}");
    }
}

#[test]
fn the_guide_to_flux_says_what_is_answered() {
    let dir = place();
    let server = GuideServer::start(dir.path(), "marigram serve --data ./db");
    let mut all = String::new();
    for block in page("docs/guides/flux.md")
        .iter()
        .filter(|block| block.language == "sh")
    {
        let output = server.run(dir.path(), &block.text);
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "line {}: {out}", block.line);
        all += &out;
    }
    let expected = ",result,table,_start,_stop,_time,_value,_field,_measurement,station\r\n\
                    ,_result,0,2024-01-01T00:00:00Z,2024-01-02T00:00:00Z,2024-01-01T01:00:00Z,22,\
                    temperature,weather,north\r\n\r\n";
    assert!(all.ends_with(expected), "{all}");
}

/// Whether a sample has exactly the keys of the answer, and values of the same kinds.
fn alike(told: &Value, answer: &Value, at: &str) {
    match (told, answer) {
        (Value::Object(told), Value::Object(answer)) => {
            let names = |object: &serde_json::Map<String, Value>| {
                let mut names: Vec<String> = object.keys().cloned().collect();
                names.sort();
                names
            };
            assert_eq!(names(told), names(answer), "{at}");
            for (name, value) in told {
                alike(value, &answer[name], &format!("{at}: {name}"));
            }
        }
        (Value::Array(told), Value::Array(answer)) => {
            if let (Some(told), Some(answer)) = (told.first(), answer.first()) {
                alike(told, answer, at);
            }
        }
        // A position is a number or null.
        (Value::Null, Value::Number(_)) | (Value::Number(_), Value::Null) => {}
        (told, answer) => assert_eq!(
            std::mem::discriminant(told),
            std::mem::discriminant(answer),
            "{at}: {told} and {answer}"
        ),
    }
}
