//! The folder of a store in memory.
//!
//! SQLite's own databases in memory have no snapshots: a reader would block the writer. So a store in memory is a
//! file in a folder of its own, on a file system in memory where there is one, and the folder goes with the store.
//! A process that is killed leaves its folder; the next one that makes such a folder removes it.

use crate::error::{Result, file_error};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const PREFIX: &str = "marigram-reference-";
/// A folder whose owner has not locked it yet is at most this old.
const UNLOCKED_AGE_MAX: Duration = Duration::from_mins(1);

/// A folder that is removed when it is dropped.
#[derive(Debug)]
pub(crate) struct ScratchFolder {
    path: PathBuf,
    /// Locked for as long as the folder is in use.
    _lock: File,
}

impl ScratchFolder {
    /// Makes a folder.
    pub(crate) fn create() -> Result<Self> {
        let memory = Path::new("/dev/shm");
        if memory.is_dir()
            && let Ok(folder) = Self::create_in(memory)
        {
            return Ok(folder);
        }
        Self::create_in(&std::env::temp_dir())
    }

    fn create_in(parent: &Path) -> Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        remove_abandoned(parent);
        let process = std::process::id();
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = parent.join(format!("{PREFIX}{process}-{number}"));
            match fs::create_dir(&path) {
                Ok(()) => {
                    let lock = lock(&path).map_err(|error| file_error(&path, &error))?;
                    return Ok(Self { path, _lock: lock });
                }
                // Left by a process that had the same id.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(file_error(&path, &error)),
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        // What stays is removed by the next process.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Creates and locks the file that says that a folder is in use.
#[expect(
    clippy::disallowed_methods,
    reason = "a folder in memory is no storage of the database"
)]
fn lock(folder: &Path) -> std::io::Result<File> {
    let file = File::create(folder.join("lock"))?;
    file.try_lock()?;
    Ok(file)
}

/// Removes the folders of processes that were killed.
fn remove_abandoned(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let age = entry.metadata().and_then(|metadata| metadata.modified());
        let age = age.ok().and_then(|modified| modified.elapsed().ok());
        if is_ours && age.is_some_and(|age| age > UNLOCKED_AGE_MAX) {
            remove_unless_locked(&entry.path());
        }
    }
}

fn remove_unless_locked(folder: &Path) {
    if let Ok(_lock) = lock(folder) {
        let _ = fs::remove_dir_all(folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_goes_with_its_owner_or_after_it() {
        let parent = tempfile::tempdir().unwrap();
        let folder = ScratchFolder::create_in(parent.path()).unwrap();
        let path = folder.path().to_owned();
        remove_unless_locked(&path);
        assert!(path.is_dir());
        drop(folder);
        assert!(!path.exists());
        let abandoned = parent.path().join(format!("{PREFIX}1-1"));
        fs::create_dir(&abandoned).unwrap();
        remove_abandoned(parent.path());
        assert!(abandoned.is_dir(), "it may be about to be locked");
        remove_unless_locked(&abandoned);
        assert!(!abandoned.exists());
    }
}
