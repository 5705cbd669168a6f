//! The folder of backups: records in `backups/`, and the objects that they name in `objects/`.
//!
//! A backup exists when its record does. Records come and go whole (put; deleted), each step durable
//! before the next one relies on it.
//!
//! All of it is in a blob store but the lock, and the directories that are made before the lock is
//! taken.

use super::record::{BackupInfo, BackupRecord, BackupRecordError};
use crate::directory::sync_names_of;
use crate::error::{EngineError, Result};
use marigram_env::{BlobStore, Env, Lock, PutMode, UNFINISHED};
use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The file that marks a folder of backups, and its content.
const MARKER: &str = "MARIGRAM-BACKUP";
const MARKER_TEXT: &str = "marigram backups\nformat 1\n";
const LOCK: &str = "LOCK";
/// Names that may stand in a folder that is about to become one of backups, besides unfinished
/// markers.
const HARMLESS: [&str; 2] = [LOCK, "lost+found"];
/// Prefixes of objects and of records.
pub(super) const OBJECTS: &str = "objects";
const BACKUPS: &str = "backups";

/// A folder of backups.
#[derive(Debug)]
pub(crate) struct BackupFolder {
    pub blobs: Arc<dyn BlobStore>,
    /// Held by who changes the folder.
    _lock: Option<Box<dyn Lock>>,
}

/// Whether a directory is a folder of backups.
///
/// # Errors
/// If the disk fails.
pub fn is_backup(env: &Env, dir: &Path) -> Result<bool> {
    let marker = dir.join(MARKER);
    let head = env.blob_store(dir).head(MARKER);
    Ok(head
        .map_err(|error| EngineError::io(&marker, error))?
        .is_some())
}

/// The backups of a folder by number, oldest first; for one with an unreadable record, the reason.
///
/// # Errors
/// If `dir` is not a folder of backups, or the disk fails.
pub fn list(env: &Env, dir: &Path) -> Result<Vec<(u64, Result<BackupInfo>)>> {
    let folder = BackupFolder::open(env, dir)?;
    let numbers = folder.numbers()?.into_iter();
    let read = |number| (number, folder.record(number).map(|record| record.info));
    Ok(numbers.map(read).collect())
}

impl BackupFolder {
    /// Opens a folder for reading.
    pub(super) fn open(env: &Env, dir: &Path) -> Result<Self> {
        if !is_backup(env, dir)? {
            let reason = format!(
                "{} is not a folder of backups: it has no file {MARKER}",
                dir.display()
            );
            return Err(EngineError::Invalid(reason));
        }
        check_version(env, dir)?;
        Ok(Self {
            blobs: env.blob_store(dir),
            _lock: None,
        })
    }

    /// Opens a folder for writing under its lock, and creates it if it is missing.
    pub(super) fn claim(env: &Env, dir: &Path) -> Result<Self> {
        let fs = &env.fs;
        let io = |error| EngineError::io(dir, error);
        fs.create_dir_all(dir).map_err(io)?;
        let is_new = !is_backup(env, dir)?;
        if is_new {
            let names = fs.list(dir).map_err(io)?;
            // Subdirectories stand before the marker does: a claim that was cut short left them.
            let ours = |name: &str| {
                HARMLESS.contains(&name)
                    || [OBJECTS, BACKUPS].contains(&name)
                    || is_marker_new(name)
            };
            if let Some(foreign) = names.iter().find(|name| !ours(name)) {
                let reason = format!(
                    "{} is not empty (it has {foreign}) and is not a folder of backups; choose another",
                    dir.display()
                );
                return Err(EngineError::Invalid(reason));
            }
        } else {
            check_version(env, dir)?;
        }
        let path = dir.join(LOCK);
        let lock = fs.lock(&path).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock => EngineError::Busy {
                reason: format!("another backup into {} is running", dir.display()),
                retry_after: Duration::from_mins(1),
            },
            _ => EngineError::io(&path, error),
        })?;
        let folder = Self {
            blobs: env.blob_store(dir),
            _lock: Some(lock),
        };
        if is_new {
            // Before the marker, so that if the marker exists, the path to it is durable.
            sync_names_of(env, dir)?;
        }
        for made in [OBJECTS, BACKUPS] {
            fs.create_dir_all(&dir.join(made)).map_err(io)?;
        }
        fs.sync_dir(dir).map_err(io)?;
        folder.mark().map_err(io)?;
        Ok(folder)
    }

    /// Puts the marker, if it is missing.
    fn mark(&self) -> std::io::Result<()> {
        if self.blobs.head(MARKER)?.is_some() {
            return Ok(());
        }
        let text = MARKER_TEXT.as_bytes();
        self.blobs.put(MARKER, text, PutMode::Overwrite)
    }

    /// An error of the store about a name.
    pub(super) fn io(&self, name: &str, error: std::io::Error) -> EngineError {
        EngineError::io(&self.blobs.location(name), error)
    }

    /// Names below a prefix, without it, ascending.
    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        let blobs = self.blobs.list(prefix);
        let blobs = blobs.map_err(|error| self.io(prefix, error))?;
        Ok(blobs
            .iter()
            .map(|blob| blob.base_name().to_owned())
            .collect())
    }

    fn delete(&self, name: &str) -> Result<()> {
        self.blobs
            .delete(name)
            .map_err(|error| self.io(name, error))
    }

    /// Makes the present names below a prefix durable.
    pub(super) fn sync_names(&self, prefix: &str) -> Result<()> {
        self.blobs
            .sync_names(prefix)
            .map_err(|error| self.io(prefix, error))
    }

    /// The numbers of the backups, ascending.
    pub(super) fn numbers(&self) -> Result<Vec<u64>> {
        let names = self.list(BACKUPS)?;
        let number = |name: &String| name.strip_suffix(".backup")?.parse::<u64>().ok();
        let mut numbers: Vec<u64> = names.iter().filter_map(number).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// The record of a backup.
    pub(super) fn record(&self, number: u64) -> Result<BackupRecord> {
        let name = record_name(number);
        let path = self.blobs.location(&name);
        let bytes = self.blobs.open(&name).and_then(|file| {
            let mut bytes = vec![0; file.len()? as usize];
            file.read_exact_at(&mut bytes, 0)?;
            Ok(bytes)
        });
        let bytes = bytes.map_err(|error| EngineError::io(&path, error))?;
        let corrupt = |offset: usize, reason: String| EngineError::Corrupt {
            path: path.clone(),
            offset: offset as u64,
            reason,
        };
        let record = BackupRecord::decode(&bytes).map_err(|unreadable| match unreadable {
            BackupRecordError::Newer(version) => EngineError::Invalid(format!(
                "{} has format version {version}, which this Marigram does not read: use a newer \
                 one",
                path.display()
            )),
            BackupRecordError::Damaged(offset, reason) => corrupt(offset, reason),
        })?;
        if record.info.number != number {
            let reason = format!("it is the record of backup {}", record.info.number);
            return Err(corrupt(0, reason));
        }
        Ok(record)
    }

    /// Makes a backup exist. Its objects must be durable.
    pub(super) fn write(&self, record: &BackupRecord) -> Result<()> {
        let name = record_name(record.info.number);
        self.blobs
            .put(&name, &record.encode(), PutMode::Overwrite)
            .map_err(|error| self.io(&name, error))
    }

    /// Removes the records of all backups of a lineage except the newest `keep`; returns their
    /// numbers. Backups of other databases stay, and so do those with unreadable records, because
    /// their owner is unknown.
    pub(super) fn prune(&self, keep: usize, lineage: u64) -> Result<Vec<u64>> {
        let mut numbers = self.numbers()?;
        numbers.retain(|number| {
            let record = self.record(*number);
            record.is_ok_and(|record| record.lineage == lineage)
        });
        numbers.truncate(numbers.len().saturating_sub(keep));
        for number in &numbers {
            self.delete(&record_name(*number))?;
        }
        Ok(numbers)
    }

    /// Removes what no backup names: objects of backups that were removed or never completed, and
    /// unfinished files. Removes nothing while a record cannot be read, because it may name them.
    pub(super) fn tidy(&self) -> Result<()> {
        let mut named = HashSet::new();
        for number in self.numbers()? {
            for file in self.record(number)?.files {
                named.extend(file.pieces.iter().map(|piece| piece.digest.to_string()));
            }
        }
        // Records that were removed must stay away once their objects are.
        self.sync_names(BACKUPS)?;
        for name in self.list(BACKUPS)? {
            if name.ends_with(UNFINISHED) {
                self.delete(&format!("{BACKUPS}/{name}"))?;
            }
        }
        for name in self.list(OBJECTS)? {
            if !named.contains(&name) {
                self.delete(&format!("{OBJECTS}/{name}"))?;
            }
        }
        Ok(())
    }
}

fn record_name(number: u64) -> String {
    format!("{BACKUPS}/{number:010}.backup")
}

/// Whether a name is that of a marker in the making.
fn is_marker_new(name: &str) -> bool {
    name.starts_with(MARKER) && name.ends_with(UNFINISHED)
}

fn check_version(env: &Env, dir: &Path) -> Result<()> {
    let path = dir.join(MARKER);
    let io = |error| EngineError::io(&path, error);
    let file = env.blob_store(dir).open(MARKER).map_err(io)?;
    let mut bytes = vec![0; file.len().map_err(io)?.min(4096) as usize];
    file.read_exact_at(&mut bytes, 0).map_err(io)?;
    if bytes == MARKER_TEXT.as_bytes() {
        return Ok(());
    }
    let reason = format!(
        "{} does not say 'format 1': the folder is of another Marigram, or the file is damaged",
        path.display()
    );
    Err(EngineError::Invalid(reason))
}
