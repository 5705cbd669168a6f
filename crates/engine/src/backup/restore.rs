//! Restore: turns a backup into a data directory.
//!
//! The file `RESTORING` exists durably in the directory from before the first file is written until
//! after the last; a directory with this file is not opened. Every file is checked on the way.
//!
//! A restored directory begins a lineage, so the headers of its manifests and logs are rewritten: they
//! name the new directory as their owner.

use super::folder::BackupFolder;
use super::record::{BackupInfo, BackupRecord, FileEntry};
use crate::directory::{self, DirectoryIdentity, RESTORING};
use crate::error::{EngineError, Result};
use crate::reference_file;
use crate::shard::segment_name;
use marigram_env::{BlobStore, Env};
use marigram_manifest::{CatalogState, Manifest, ManifestEdit, ManifestState, SegmentMeta};
use marigram_model::{LogOwner, TableId, TableSchema, TimeRange};
use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A backup that was restored.
#[derive(Clone, Debug, Default)]
pub struct RestoreReport {
    /// The backup.
    pub info: BackupInfo,
    /// Number of files written.
    pub files: usize,
    /// Size of the files, in bytes.
    pub bytes: u64,
}

/// A part of a table to restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestoreSelection {
    /// The table.
    pub table: TableId,
    /// Times of rows, ns.
    pub range: TimeRange,
}

/// Restores the backup `number` (`None`: the newest one) in the folder `from` as a data directory.
/// `into` must be empty, missing, or left over from an interrupted restore.
///
/// # Errors
/// If there is no such backup, `into` contains something, a file of the backup is damaged, or the
/// disk fails. The files written so far are then removed as far as possible; what remains is not a
/// data directory.
pub fn restore(env: &Env, from: &Path, number: Option<u64>, into: &Path) -> Result<RestoreReport> {
    restore_as(env, from, number, into, None)
}

/// Like [`restore()`], without the segments that contain nothing of what is wanted: a smaller
/// directory, correct for what is wanted and incomplete for everything else.
///
/// # Errors
/// As [`restore()`].
pub fn restore_part(
    env: &Env,
    from: &Path,
    number: Option<u64>,
    into: &Path,
    wanted: &[RestoreSelection],
) -> Result<RestoreReport> {
    restore_as(env, from, number, into, Some(wanted))
}

/// The tables in a backup, by id.
///
/// # Errors
/// If there is no such backup, or it cannot be read.
pub fn schemas(env: &Env, from: &Path, number: Option<u64>) -> Result<Vec<Arc<TableSchema>>> {
    let folder = BackupFolder::open(env, from)?;
    let record = find(&folder, from, number)?;
    let mut bytes = Vec::new();
    let catalog = record.files.iter().find(|file| file.path == "CATALOG");
    for piece in catalog.iter().flat_map(|file| &file.pieces) {
        folder.fetch(*piece, |part| {
            bytes.extend_from_slice(part);
            Ok(())
        })?;
    }
    let state = CatalogState::from_log(&from.join("CATALOG"), &bytes)?;
    Ok(state.tables.into_values().collect())
}

fn restore_as(
    env: &Env,
    from: &Path,
    number: Option<u64>,
    into: &Path,
    wanted: Option<&[RestoreSelection]>,
) -> Result<RestoreReport> {
    let folder = BackupFolder::open(env, from)?;
    let record = find(&folder, from, number)?;
    if record.format != directory::FORMAT_VERSION {
        return Err(EngineError::Invalid(format!(
            "backup {} is of a data directory with format {}; this Marigram has format {}",
            record.info.number,
            record.format,
            directory::FORMAT_VERSION
        )));
    }
    refuse_occupied(env, into)?;
    let _lock = directory::lock(env, into)?;
    clear(env, into)?;
    let restored = fill(env, &folder, &record, into, wanted);
    if restored.is_err()
        && let Err(error) = clear(env, into)
    {
        tracing::debug!(%error, "cannot remove files of a failed restore");
    }
    restored
}

/// The record of a backup; of the newest if no number is given.
fn find(folder: &BackupFolder, dir: &Path, number: Option<u64>) -> Result<BackupRecord> {
    let numbers = folder.numbers()?;
    let listed = || {
        let texts: Vec<String> = numbers.iter().map(u64::to_string).collect();
        texts.join(", ")
    };
    let found = match number {
        None => numbers.last().copied(),
        Some(number) => numbers.contains(&number).then_some(number),
    };
    match (found, number) {
        (Some(found), _) => folder.record(found),
        (None, Some(number)) if !numbers.is_empty() => Err(EngineError::Invalid(format!(
            "there is no backup {number} in {}; there are {}",
            dir.display(),
            listed()
        ))),
        (None, _) => Err(EngineError::Invalid(format!(
            "there is no backup in {}",
            dir.display()
        ))),
    }
}

/// Whether a name may exist in an empty directory, because it is not part of a database.
fn is_nothing(name: &str) -> bool {
    matches!(name, "LOCK" | "lost+found")
}

/// An error if the directory contains anything but the remains of a restore.
fn refuse_occupied(env: &Env, into: &Path) -> Result<()> {
    let io = |error| EngineError::io(into, error);
    if !env.fs.exists(into).map_err(io)? {
        return Ok(());
    }
    let names = env.fs.list(into).map_err(io)?;
    if names.iter().any(|name| name == RESTORING) {
        return Ok(());
    }
    match names.iter().find(|name| !is_nothing(name)) {
        None => Ok(()),
        Some(name) => Err(EngineError::Invalid(format!(
            "{} is not empty (it has {name}); restore into a directory that is empty or does not exist",
            into.display()
        ))),
    }
}

/// Removes the remains of a restore; the file that marks them comes last.
fn clear(env: &Env, into: &Path) -> Result<()> {
    let io = |error| EngineError::io(into, error);
    let names = env.fs.list(into).map_err(io)?;
    if !names.iter().any(|name| name == RESTORING) {
        return Ok(());
    }
    for name in names
        .iter()
        .filter(|name| !is_nothing(name) && *name != RESTORING)
    {
        let path = into.join(name);
        let removed = if name == "shards" || name == reference_file::FOLDER {
            env.fs.remove_dir_all(&path)
        } else {
            env.fs.remove(&path)
        };
        removed.map_err(|error| EngineError::io(&path, error))?;
    }
    env.fs.sync_dir(into).map_err(io)?;
    env.fs.remove(&into.join(RESTORING)).map_err(io)?;
    env.fs.sync_dir(into).map_err(io)
}

/// Writes the files of a backup into an empty directory.
fn fill(
    env: &Env,
    folder: &BackupFolder,
    record: &BackupRecord,
    into: &Path,
    wanted: Option<&[RestoreSelection]>,
) -> Result<RestoreReport> {
    let marker = into.join(RESTORING);
    let mark = || {
        let file = env.fs.create(&marker)?;
        file.append(b"a backup is being restored into this directory\n")?;
        file.sync()?;
        env.fs.sync_dir(into)
    };
    mark().map_err(|error| EngineError::io(&marker, error))?;
    let mut report = RestoreReport {
        info: record.info.clone(),
        ..RestoreReport::default()
    };
    let mut dirs = BTreeSet::new();
    let identity = DirectoryIdentity::new(env, record.info.shards);
    let is_segment = |file: &&FileEntry| file.mark.is_some();
    for file in record.files.iter().filter(|file| !is_segment(file)) {
        write_file(env, folder, file, into, identity.lineage, &mut dirs)?;
        report.files += 1;
        report.bytes += file.bytes;
    }
    let unwanted = match wanted {
        Some(wanted) => leave_out(env, record, into, wanted)?,
        None => HashSet::new(),
    };
    for shard in 0..record.info.shards {
        let dir = directory::shard_dir(into, shard).join("segments");
        env.fs
            .create_dir_all(&dir)
            .map_err(|error| EngineError::io(&dir, error))?;
    }
    let (blobs, mut prefixes) = (env.blob_store(into), BTreeSet::new());
    for file in record.files.iter().filter(is_segment) {
        if unwanted.contains(&file.path) {
            continue;
        }
        write_segment(&*blobs, folder, file)?;
        prefixes.extend(file.path.rsplit_once('/').map(|(prefix, _)| prefix));
        report.files += 1;
        report.bytes += file.bytes;
    }
    for prefix in prefixes {
        blobs
            .sync_names(prefix)
            .map_err(|error| EngineError::io(&blobs.location(prefix), error))?;
    }
    for dir in &dirs {
        env.fs
            .sync_dir(dir)
            .map_err(|error| EngineError::io(dir, error))?;
    }
    directory::write_identity(env, into, identity)?;
    let unmark = || {
        env.fs.remove(&marker)?;
        env.fs.sync_dir(into)
    };
    unmark().map_err(|error| EngineError::io(&marker, error))?;
    Ok(report)
}

/// A file of a shard whose header names an owner.
enum OwnedFile {
    Manifest(LogOwner),
    Wal(LogOwner),
}

impl OwnedFile {
    /// What `path` is in a directory of this lineage; `None` if it has no owner.
    fn from_path(path: &str, lineage: u64) -> Option<Self> {
        let (shard, name) = path.strip_prefix("shards/")?.split_once('/')?;
        let shard = shard.parse().ok()?;
        let owner = LogOwner { lineage, shard };
        if name == "MANIFEST" {
            return Some(Self::Manifest(owner));
        }
        name.starts_with("wal/").then_some(Self::Wal(owner))
    }
}

/// Writes a file, which is durable when it returns, except for its name. Collects the directories
/// whose names must be synced.
fn write_file(
    env: &Env,
    folder: &BackupFolder,
    entry: &FileEntry,
    into: &Path,
    lineage: u64,
    dirs: &mut BTreeSet<PathBuf>,
) -> Result<()> {
    let path = into.join(&entry.path);
    let io = |error| EngineError::io(&path, error);
    let parents = path.ancestors().skip(1);
    let inside = parents.take_while(|parent| parent.starts_with(into));
    let fresh: Vec<_> = inside.filter(|dir| !dirs.contains(*dir)).collect();
    if let Some(parent) = fresh.first() {
        env.fs.create_dir_all(parent).map_err(io)?;
    }
    let fresh: Vec<PathBuf> = fresh.into_iter().map(Path::to_owned).collect();
    dirs.extend(fresh);
    let file = env.fs.create(&path).map_err(io)?;
    match OwnedFile::from_path(&entry.path, lineage) {
        None => {
            for piece in &entry.pieces {
                folder.fetch(*piece, |bytes| file.append(bytes).map_err(io))?;
            }
        }
        // It is read whole when the directory is opened, too.
        Some(OwnedFile::Manifest(owner)) => {
            let mut bytes = Vec::new();
            for piece in &entry.pieces {
                folder.fetch(*piece, |part| {
                    bytes.extend_from_slice(part);
                    Ok(())
                })?;
            }
            let bytes = ManifestState::log_with_owner(&path, &bytes, owner)?;
            file.append(&bytes).map_err(io)?;
        }
        Some(OwnedFile::Wal(owner)) => {
            // The header is at the beginning of the first piece.
            let mut is_first = true;
            for piece in &entry.pieces {
                folder.fetch(*piece, |bytes| {
                    let owned = std::mem::take(&mut is_first)
                        .then(|| marigram_wal::with_owner(bytes, owner))
                        .flatten();
                    file.append(owned.as_deref().unwrap_or(bytes)).map_err(io)
                })?;
            }
        }
    }
    file.sync().map_err(io)
}

/// Writes a segment; durable when it returns, but for its name.
fn write_segment(blobs: &dyn BlobStore, folder: &BackupFolder, entry: &FileEntry) -> Result<()> {
    let io = |error| EngineError::io(&blobs.location(&entry.path), error);
    let mut upload = blobs.upload(&entry.path).map_err(io)?;
    for piece in &entry.pieces {
        folder.fetch(*piece, |bytes| upload.write(bytes).map_err(io))?;
    }
    upload.finish().map_err(io)
}

/// Takes the segments that nobody wants out of the manifests; gives their paths.
fn leave_out(
    env: &Env,
    record: &BackupRecord,
    into: &Path,
    wanted: &[RestoreSelection],
) -> Result<HashSet<String>> {
    let is_wanted = |meta: &SegmentMeta| {
        wanted.iter().any(|part| {
            meta.range.overlaps(part.range) && meta.tables.binary_search(&part.table).is_ok()
        })
    };
    let mut unwanted = HashSet::new();
    for shard in 0..record.info.shards {
        let (mut manifest, state) =
            Manifest::open(env.fs.clone(), &directory::shard_dir(into, shard))?;
        let removed: Vec<_> = state
            .segments
            .values()
            .filter(|meta| !is_wanted(meta))
            .map(|meta| meta.id)
            .collect();
        for id in &removed {
            unwanted.insert(segment_name(shard, *id));
        }
        if !removed.is_empty() {
            manifest.commit(&ManifestEdit {
                removed,
                ..ManifestEdit::default()
            })?;
        }
    }
    Ok(unwanted)
}
