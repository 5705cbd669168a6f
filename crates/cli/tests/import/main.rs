//! `marigram import` and `marigram export` with the real binary, as a person with files uses them.

#![allow(
    clippy::disallowed_methods,
    reason = "these tests are outside the database and use the machine as a person would"
)]

mod contents;
mod devices;
mod directories;
mod headers;
mod hostile;
mod json;
mod messy;
mod mixtures;
mod number_times;
mod numbers;
mod plans;
mod repeated_hours;
mod replacing;
mod said;
mod same_times;
mod servers;
mod texts;
mod time_guesses;
mod time_parts;
mod values;

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The output of a command.
pub(crate) struct CommandOutput {
    pub(crate) ok: bool,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs the binary without a terminal.
pub(crate) fn marigram(arguments: &[&str]) -> CommandOutput {
    let output: Output = Command::new(env!("CARGO_BIN_EXE_marigram"))
        .args(arguments)
        .env_remove("MARIGRAM_DATA")
        .env_remove("MARIGRAM_URL")
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs");
    CommandOutput {
        ok: output.status.success(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A database in a temporary directory, and a folder for files next to it.
pub(crate) struct ImportFixture {
    dir: tempfile::TempDir,
    data: String,
}

impl ImportFixture {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let data = dir.path().join("data").display().to_string();
        Self { dir, data }
    }

    pub(crate) fn data(&self) -> &str {
        &self.data
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    /// Writes a file.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).expect("it is written");
        path
    }

    pub(crate) fn import(&self, arguments: &[&str]) -> CommandOutput {
        let mut all = vec!["import", "--data", &self.data];
        all.extend(arguments);
        marigram(&all)
    }

    /// The answer to a query, as CSV.
    pub(crate) fn csv(&self, sql: &str) -> String {
        let said = marigram(&["sql", "--data", &self.data, "--format", "csv", "-c", sql]);
        assert!(said.ok, "{sql}: {}", said.err);
        said.out
    }

    /// Names, types and roles of a table's columns.
    pub(crate) fn columns(&self, table: &str) -> String {
        let answer = self.csv(&format!("SHOW COLUMNS FROM \"{table}\""));
        let lines = answer.lines().skip(1).map(|line| {
            let mut cells = line.split(',');
            let mut next = || cells.next().unwrap_or_default();
            format!("{} {} {}", next(), next(), next())
        });
        lines.collect::<Vec<_>>().join("; ")
    }

    pub(crate) fn exists(&self) -> bool {
        Path::new(&self.data).exists()
    }
}

/// Imports a file without options; returns its times, and what was said.
pub(crate) fn times_of(text: &str) -> (String, String) {
    let place = ImportFixture::new();
    let file = place.file("m.csv", text);
    let said = place.import(&[&file]);
    assert!(said.ok, "{text}\n{}{}", said.out, said.err);
    let columns = place.columns("m");
    let time = columns.split(' ').next().unwrap_or_default();
    let times = place.csv(&format!("SELECT \"{time}\" AS t FROM m ORDER BY 1"));
    let times: Vec<&str> = times.lines().skip(1).collect();
    (times.join(" "), said.err)
}

/// Imports a file with options; returns why it fails.
pub(crate) fn refused(text: &str, options: &[&str]) -> String {
    refused_file("m.csv", text, options)
}

/// The same with a name of the file.
pub(crate) fn refused_file(name: &str, text: &str, options: &[&str]) -> String {
    let place = ImportFixture::new();
    let file = place.file(name, text);
    let said = place.import(&[options, &[&file]].concat());
    assert!(!said.ok, "{text}\n{}{}", said.out, said.err);
    assert!(!place.exists(), "{text}");
    said.err
}
