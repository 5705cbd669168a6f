//! The shell in a terminal, with the real binary; `script` (util-linux) provides the terminal.

#![allow(
    clippy::disallowed_methods,
    reason = "these tests are outside the database and use the machine as a person would"
)]

mod commands;
mod interrupts;
mod log;
mod server;
mod terminal;

use std::path::Path;
use std::process::{Command, Stdio};

/// The binary under test.
pub(crate) const MARIGRAM: &str = env!("CARGO_BIN_EXE_marigram");

/// A directory with a small database in `data`.
pub(crate) fn weather() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let long = "a note that goes on and on until it is wider than the sixty characters of a table";
    let csv = format!(
        "time,station,temp,note\n2026-01-01T00:00:00Z,north,4.5,{long}\n\
         2026-01-01T00:00:00Z,south,11.25,short\n2026-01-01T01:00:00Z,north,5.5,short\n"
    );
    std::fs::write(dir.path().join("weather.csv"), csv).expect("it is written");
    let import = [
        "import",
        "--data",
        "data",
        "--tags",
        "station",
        "weather.csv",
    ];
    run(dir.path(), &import);
    dir
}

/// Runs the binary in `dir`; it must succeed.
pub(crate) fn run(dir: &Path, arguments: &[&str]) -> String {
    let output = Command::new(MARIGRAM)
        .args(arguments)
        .current_dir(dir)
        .env_remove("MARIGRAM_DATA")
        .env_remove("MARIGRAM_URL")
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs");
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {err}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
