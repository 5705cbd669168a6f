//! Whether a directory holds a database, may become one, or belongs to something else.

use crate::remote::RemoteServer;
use crate::tls_trust::TlsTrust;
use anyhow::{Context, Result, bail};
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::time::Duration;

/// What to do if there is no database yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfMissing {
    /// Create one, if the directory is missing or empty.
    Create,
    /// Fail with a message.
    Fail,
}

/// Files of which a database has at least one. A damaged database may have lost `MARIGRAM`; the
/// engine then says what to do.
const OURS: [&str; 4] = ["MARIGRAM", "CATALOG", "shards", "RESTORING"];

/// The file that a process locks while it has a directory open. A server writes its HTTP address
/// into it. Readers trust the address only while the file is locked.
const LOCK: &str = "LOCK";

/// Longest address, in bytes.
const ADDRESS_BYTES_MAX: u64 = 200;

/// How long to wait for a server's answer.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// Entries of a directory that still counts as empty.
const NOTHING: [&str; 3] = ["LOCK", "lost+found", "spill"];

/// Whether `dir` holds a database.
pub(crate) fn holds_database(dir: &Path) -> bool {
    OURS.iter().any(|name| dir.join(name).exists())
}

/// Checks that `dir` may be opened; prints a notice to stderr if that creates a new database.
///
/// # Errors
/// If there is no database and none may be created: a mistyped path must not become one.
pub(crate) fn check(dir: &Path, if_missing: IfMissing) -> Result<()> {
    if holds_database(dir) {
        return Ok(());
    }
    if if_missing == IfMissing::Fail {
        let what = if dir.exists() {
            "there is no database in"
        } else {
            "there is no directory"
        };
        bail!(
            "{what} {}; marigram serve and marigram import create one",
            dir.display()
        );
    }
    check_room(dir)?;
    erroutln!("creating a new database in {}", dir.display());
    Ok(())
}

/// Checks that a database can be created in `dir`: it is missing or empty.
///
/// # Errors
/// If it is neither, or cannot be listed.
pub(crate) fn check_room(dir: &Path) -> Result<()> {
    match fs::read_dir(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        entries => {
            let entries = entries.with_context(|| format!("cannot list {}", dir.display()))?;
            for entry in entries {
                let name = entry?.file_name();
                let name = name.to_string_lossy();
                if !NOTHING.contains(&name.as_ref()) && !name.starts_with('.') {
                    bail!(
                        "{} holds no database but other files ({name}); give an empty directory, \
                         or one that does not exist",
                        dir.display()
                    );
                }
            }
        }
    }
    Ok(())
}

/// Writes the server's HTTP address into the lock file that this process holds, so that whoever
/// finds the directory open can report it.
pub(crate) fn tell_address(dir: &Path, url: Option<String>) {
    let text = url.map_or_else(String::new, |url| format!("{url}\n"));
    if let Err(error) = fs::write(dir.join(LOCK), text) {
        tracing::debug!(%error, "cannot write the server's address into the lock file");
    }
}

/// The address of the server that has a directory open and answers; `None` if there is none.
pub(crate) fn server_of(dir: &Path) -> Option<String> {
    let mut text = String::new();
    let lock = fs::File::open(dir.join(LOCK)).ok()?;
    // If the lock can be taken, its content is stale.
    if lock.try_lock().is_ok() {
        return None;
    }
    let mut lock = lock.take(ADDRESS_BYTES_MAX);
    lock.read_to_string(&mut text).ok()?;
    let url = text.trim().to_owned();
    if url.starts_with("https://") {
        // Which certificate it must show, this process cannot know.
        return Some(url);
    }
    let remote = RemoteServer::new(&url, &TlsTrust::default()).ok()?;
    remote.answers(ANSWER_MAX).then_some(url)
}

/// The error for a directory that cannot be opened; if a server has it open, it says what to do.
pub(crate) fn not_opened(dir: &Path, error: marigram::Error, instead: &str) -> anyhow::Error {
    let context = match server_of(dir) {
        Some(url) => format!(
            "a server has {} open; give {instead}--url {url} instead of --data {}",
            dir.display(),
            dir.display()
        ),
        None => format!("cannot open the data directory {}", dir.display()),
    };
    anyhow::Error::new(error).context(context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_missing_or_empty_directory_becomes_a_database() {
        let dir = tempfile::tempdir().unwrap();
        let (dir, missing) = (dir.path(), dir.path().join("new"));
        assert!(check(&missing, IfMissing::Create).is_ok());
        assert!(check(&missing, IfMissing::Fail).is_err());
        assert!(check(dir, IfMissing::Create).is_ok());
        assert!(check(dir, IfMissing::Fail).is_err());
        fs::write(dir.join("notes.txt"), "x").unwrap();
        let error = check(dir, IfMissing::Create).unwrap_err().to_string();
        assert!(error.contains("notes.txt"), "{error}");
        fs::write(dir.join("MARIGRAM"), "x").unwrap();
        assert!(check(dir, IfMissing::Fail).is_ok());
    }
}
