//! The folder of backups: records in `backups/`, and the objects that they name in `objects/`.
//!
//! A backup exists if its record does. Records appear and disappear only by name (written under
//! another name and renamed; removed). Each step is durable before the next one relies on it.

use super::record::{BackupInfo, BackupRecord, BackupRecordError, ObjectDigest};
use crate::directory::sync_names_of;
use crate::error::{EngineError, Result};
use marigram_env::{Env, FileSystem, Lock};
use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The file that marks a folder of backups, and its content.
const MARKER: &str = "MARIGRAM-BACKUP";
const MARKER_NEW: &str = "MARIGRAM-BACKUP.new";
const MARKER_TEXT: &str = "marigram backups\nformat 1\n";
const LOCK: &str = "LOCK";
/// Names that may exist in a directory that is about to become a folder of backups.
const HARMLESS: [&str; 3] = [LOCK, MARKER_NEW, "lost+found"];

/// A folder of backups.
#[derive(Debug)]
pub(crate) struct BackupFolder {
    pub fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    /// Held by the process that changes the folder.
    _lock: Option<Box<dyn Lock>>,
}

/// Whether a directory is a folder of backups.
///
/// # Errors
/// If the disk fails.
pub fn is_backup(env: &Env, dir: &Path) -> Result<bool> {
    let marker = dir.join(MARKER);
    env.fs
        .exists(&marker)
        .map_err(|error| EngineError::io(&marker, error))
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
    pub fn open(env: &Env, dir: &Path) -> Result<Self> {
        if !is_backup(env, dir)? {
            let reason = format!(
                "{} is not a folder of backups: it has no file {MARKER}",
                dir.display()
            );
            return Err(EngineError::Invalid(reason));
        }
        check_version(env, dir)?;
        Ok(Self {
            fs: env.fs.clone(),
            dir: dir.to_owned(),
            _lock: None,
        })
    }

    /// Opens a folder for writing under its lock, and creates it if it is missing.
    pub fn claim(env: &Env, dir: &Path) -> Result<Self> {
        let fs = &env.fs;
        let io = |error| EngineError::io(dir, error);
        fs.create_dir_all(dir).map_err(io)?;
        let is_new = !is_backup(env, dir)?;
        if is_new {
            let names = fs.list(dir).map_err(io)?;
            // Subdirectories exist before the marker does: an interrupted claim left them.
            let ours =
                |name: &str| HARMLESS.contains(&name) || matches!(name, "objects" | "backups");
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
            fs: fs.clone(),
            dir: dir.to_owned(),
            _lock: Some(lock),
        };
        if is_new {
            // Before the marker, so that if the marker exists, the path to it is durable.
            sync_names_of(env, dir)?;
        }
        folder.make().map_err(io)?;
        Ok(folder)
    }

    /// Creates the missing parts of the folder, the marker last. All names in it are then durable.
    fn make(&self) -> std::io::Result<()> {
        for made in [self.objects(), self.backups()] {
            self.fs.create_dir_all(&made)?;
        }
        self.fs.sync_dir(&self.dir)?;
        if self.fs.exists(&self.dir.join(MARKER))? {
            return Ok(());
        }
        let new = self.dir.join(MARKER_NEW);
        let file = self.fs.create(&new)?;
        file.append(MARKER_TEXT.as_bytes())?;
        file.sync()?;
        self.fs.rename(&new, &self.dir.join(MARKER))?;
        self.fs.sync_dir(&self.dir)
    }

    /// The directory of objects.
    pub fn objects(&self) -> PathBuf {
        self.dir.join("objects")
    }

    /// The file of an object.
    pub fn object(&self, digest: ObjectDigest) -> PathBuf {
        self.objects().join(digest.to_string())
    }

    /// The directory of records.
    fn backups(&self) -> PathBuf {
        self.dir.join("backups")
    }

    fn record_path(&self, number: u64) -> PathBuf {
        self.backups().join(format!("{number:010}.backup"))
    }

    /// The numbers of the backups, ascending.
    pub fn numbers(&self) -> Result<Vec<u64>> {
        let dir = self.backups();
        let names = self
            .fs
            .list(&dir)
            .map_err(|error| EngineError::io(&dir, error))?;
        let number = |name: &String| name.strip_suffix(".backup")?.parse::<u64>().ok();
        let mut numbers: Vec<u64> = names.iter().filter_map(number).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// The record of a backup.
    pub fn record(&self, number: u64) -> Result<BackupRecord> {
        let path = self.record_path(number);
        let io = |error| EngineError::io(&path, error);
        let file = self.fs.open(&path).map_err(io)?;
        let mut bytes = vec![0; file.len().map_err(io)? as usize];
        file.read_exact_at(&mut bytes, 0).map_err(io)?;
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
    pub fn write(&self, record: &BackupRecord) -> Result<()> {
        let path = self.record_path(record.info.number);
        let new = path.with_extension("new");
        let write = || {
            let file = self.fs.create(&new)?;
            file.append(&record.encode())?;
            file.sync()?;
            self.fs.rename(&new, &path)?;
            self.fs.sync_dir(&self.backups())
        };
        write().map_err(|error| EngineError::io(&path, error))
    }

    /// Removes the records of all backups of a lineage except the newest `keep`; returns their
    /// numbers. Backups of other databases stay, and so do those with unreadable records, because
    /// their owner is unknown.
    pub fn prune(&self, keep: usize, lineage: u64) -> Result<Vec<u64>> {
        let mut numbers = self.numbers()?;
        numbers.retain(|number| {
            let record = self.record(*number);
            record.is_ok_and(|record| record.lineage == lineage)
        });
        numbers.truncate(numbers.len().saturating_sub(keep));
        for number in &numbers {
            let path = self.record_path(*number);
            self.fs
                .remove(&path)
                .map_err(|error| EngineError::io(&path, error))?;
        }
        Ok(numbers)
    }

    /// Removes what no backup names: objects of backups that were removed or never completed, and
    /// unfinished files. Removes nothing while a record cannot be read, because it may name them.
    pub fn tidy(&self) -> Result<()> {
        let mut named = HashSet::new();
        for number in self.numbers()? {
            for file in self.record(number)?.files {
                named.extend(file.pieces.iter().map(|piece| piece.digest.to_string()));
            }
        }
        // Removed records must not come back after their objects are gone.
        let backups = self.backups();
        let io = |path: &Path| {
            let path = path.to_owned();
            move |error| EngineError::io(&path, error)
        };
        self.fs.sync_dir(&backups).map_err(io(&backups))?;
        let unfinished = |name: &String| Path::new(name).extension() == Some("new".as_ref());
        for name in self.fs.list(&backups).map_err(io(&backups))? {
            if unfinished(&name) {
                let path = backups.join(name);
                self.fs.remove(&path).map_err(io(&path))?;
            }
        }
        let objects = self.objects();
        for name in self.fs.list(&objects).map_err(io(&objects))? {
            if !named.contains(&name) {
                let path = objects.join(name);
                self.fs.remove(&path).map_err(io(&path))?;
            }
        }
        Ok(())
    }
}

fn check_version(env: &Env, dir: &Path) -> Result<()> {
    let path = dir.join(MARKER);
    let io = |error| EngineError::io(&path, error);
    let file = env.fs.open(&path).map_err(io)?;
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
