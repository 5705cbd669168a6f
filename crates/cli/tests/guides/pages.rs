//! The blocks of README and the guides, and a server next to which their commands run as they are
//! written.
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
    language: String,
    /// What stands in it.
    pub(crate) text: String,
    /// Where it begins.
    pub(crate) line: usize,
    /// Why it is not run.
    pub(crate) not_run: Option<String>,
}

impl FencedBlock {
    /// Whether it is in this language.
    pub(crate) fn is_in(&self, language: &str) -> bool {
        self.language == language
    }

    /// Whether it holds commands that the tests run.
    pub(crate) fn is_run(&self) -> bool {
        self.is_in("sh") && self.not_run.is_none()
    }
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
    /// Host and port of HTTP.
    pub(crate) http: String,
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

    /// Runs commands; returns what they print, which has no error in it.
    pub(crate) fn answer_to(&self, dir: &Path, text: &str) -> String {
        let output = self.run(dir, text);
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{text}: {out}{err}");
        for error in ["\"error\"", "\"message\""] {
            assert!(!out.contains(error), "{text}: {out}");
        }
        out
    }

    /// Runs the commands of these pages, one block after the other; returns how many blocks ran, and
    /// what they print.
    pub(crate) fn answers_of(&self, dir: &Path, names: &[&str]) -> (usize, String) {
        let blocks = names.iter().flat_map(|name| page(name));
        let (mut count, mut all) = (0, String::new());
        for block in blocks.filter(FencedBlock::is_run) {
            count += 1;
            all += &self.answer_to(dir, &block.text);
        }
        (count, all)
    }

    /// The answer to a curl command, as JSON.
    pub(crate) fn json(&self, dir: &Path, arguments: &str) -> Value {
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

/// A directory with `marigram` in its `bin`.
pub(crate) fn guide_folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a temporary directory");
    std::fs::create_dir(dir.path().join("bin")).expect("it is made");
    link(Path::new(MARIGRAM), &dir.path().join("bin/marigram"));
    dir
}

/// The same with the sample data of a checkout.
pub(crate) fn checkout_folder() -> tempfile::TempDir {
    let dir = guide_folder();
    link(&root().join("data"), &dir.path().join("data"));
    dir
}

fn link(from: &Path, to: &Path) {
    std::os::unix::fs::symlink(from, to).expect("it is linked");
}

/// The blocks of a page.
pub(crate) fn page(name: &str) -> Vec<FencedBlock> {
    let pages = pages();
    let (_, text) = pages
        .iter()
        .find(|(page, _)| page == name)
        .expect("it is there");
    blocks(text)
}

/// Refuses answers that lack one of these texts.
pub(crate) fn assert_holds(answers: &str, expected: &[&str]) {
    for text in expected {
        assert!(answers.contains(text), "{text} is not in {answers}");
    }
}
