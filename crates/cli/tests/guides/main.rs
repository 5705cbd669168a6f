//! Checks README, the guides and `contrib` against the program: every name in them exists, every
//! existing option is named, and their examples run.

#![allow(
    clippy::disallowed_methods,
    reason = "these tests are outside the database and use the machine as a reader would"
)]

mod clients;
mod commands;
mod contrib;
mod examples;
mod options;
mod pages;
mod statements;

use std::path::{Path, PathBuf};

/// The binary under test.
pub(crate) const MARIGRAM: &str = env!("CARGO_BIN_EXE_marigram");

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    marigram_fixtures::root()
}

/// README and the guides, as names and texts.
pub(crate) fn pages() -> Vec<(String, String)> {
    let mut pages = vec!["README.md".to_owned()];
    let guides = std::fs::read_dir(root().join("docs/guides")).expect("there are guides");
    for entry in guides {
        let name = entry.expect("it can be listed").file_name();
        let name = name.to_string_lossy().into_owned();
        if Path::new(&name)
            .extension()
            .is_some_and(|kind| kind == "md")
        {
            pages.push(format!("docs/guides/{name}"));
        }
    }
    pages.sort();
    let read = |name: String| {
        let text = std::fs::read_to_string(root().join(&name)).expect("it can be read");
        (name, text)
    };
    pages.into_iter().map(read).collect()
}
