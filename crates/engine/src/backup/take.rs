//! Takes a backup.

use super::capture::{CapturedContents, CapturedDirectory, CapturedFile, capture};
use super::folder::{BackupFolder, OBJECTS};
use super::objects::{PIECE_BYTES_MAX, ReadableObject};
use super::record::{BackupInfo, BackupRecord, FileEntry, ObjectPiece};
use crate::catalog::LiveCatalog;
use crate::directory;
use crate::error::{EngineError, Result};
use crate::reference_file::CopyReference;
use crate::shard::Shard;
use crate::view::OpenSegment;
use marigram_env::{Env, ReadAt};
use marigram_segment::Segment;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// Bytes at the end of a segment, including its footer, that distinguish it from others with the
/// same name.
const MARK_BYTES: u64 = 4096;

/// Options of a backup.
#[derive(Clone, Copy, Debug, Default)]
pub struct BackupOptions {
    /// How many backups of this database the folder keeps, including the new one (`None`: all). At
    /// least 1.
    pub keep: Option<usize>,
}

/// A completed backup.
#[derive(Clone, Debug, Default)]
pub struct BackupReport {
    /// The backup.
    pub info: BackupInfo,
    /// Numbers of the older backups that were removed.
    pub pruned: Vec<u64>,
    /// Problems that do not make the backup incomplete.
    pub warnings: Vec<String>,
}

/// The source of a backup.
pub(crate) struct BackupOrigin<'a> {
    pub env: &'a Env,
    /// The data directory.
    pub dir: &'a Path,
    pub schemas: &'a LiveCatalog,
    pub shards: &'a [Shard],
    /// Copies the reference tables.
    pub reference: Option<CopyReference<'a>>,
}

/// Takes a backup into `folder`. It calls `flush` before the moment of the backup, so that little
/// of the data is in logs.
pub(crate) fn take(
    origin: &BackupOrigin<'_>,
    folder: &Path,
    options: BackupOptions,
    flush: impl FnOnce() -> Result<()>,
) -> Result<BackupReport> {
    if options.keep == Some(0) {
        let reason = "a backup always keeps itself: keep 1 or more";
        return Err(EngineError::Invalid(reason.to_owned()));
    }
    if folder.starts_with(origin.dir) {
        let reason = format!(
            "{} is inside the data directory: losing the one would lose the other",
            folder.display()
        );
        return Err(EngineError::Invalid(reason));
    }
    let lineage = directory::lineage(origin.env, origin.dir)?;
    let folder = BackupFolder::claim(origin.env, folder)?;
    let mut warnings = Vec::new();
    let known = known_segments(&folder, lineage, &mut warnings)?;
    if let Err(error) = flush() {
        warnings.push(format!(
            "not everything could be flushed ({error}); the log was backed up in its place"
        ));
    }
    let moment = capture(
        origin.env,
        origin.dir,
        origin.schemas,
        origin.shards,
        origin.reference,
    )?;
    let number = folder.numbers()?.last().map_or(1, |last| last + 1);
    let record = BackupRecord {
        info: BackupInfo {
            number,
            taken_ns: moment.taken_ns,
            shards: origin.shards.len(),
            rows: moment.rows,
            ..BackupInfo::default()
        },
        format: directory::FORMAT_VERSION,
        lineage,
        files: Vec::new(),
    };
    let info = match write(&folder, &known, moment, record) {
        Ok(info) => info,
        Err(error) => {
            // The files copied in vain may be what fills the disk.
            if let Err(error) = folder.tidy() {
                tracing::debug!(%error, "cannot remove files of a failed backup yet");
            }
            return Err(error);
        }
    };
    let mut pruned = Vec::new();
    if let Some(keep) = options.keep {
        match folder.prune(keep, lineage) {
            Ok(numbers) => pruned = numbers,
            Err(error) => warnings.push(format!("older backups were not removed: {error}")),
        }
    }
    if let Err(error) = folder.tidy() {
        warnings.push(format!(
            "objects that no backup names were not removed: {error}"
        ));
    }
    Ok(BackupReport {
        info,
        pruned,
        warnings,
    })
}

/// Pieces of segments in the folder, by path, length and mark.
type KnownObjects = HashMap<(String, u64, u64), ObjectPiece>;

/// The segments of the newest backup of the lineage: further segments of older backups are no
/// longer in the data directory.
fn known_segments(
    folder: &BackupFolder,
    lineage: u64,
    warnings: &mut Vec<String>,
) -> Result<KnownObjects> {
    for number in folder.numbers()?.into_iter().rev() {
        match folder.record(number) {
            Ok(record) if record.lineage == lineage => return Ok(segments_of(record)),
            Ok(_) => {}
            // The new backup does not need it, and is all the more important.
            Err(error) => warnings.push(format!("backup {number} cannot be read: {error}")),
        }
    }
    Ok(KnownObjects::new())
}

fn segments_of(record: BackupRecord) -> KnownObjects {
    let segment = |file: FileEntry| match (file.mark, file.pieces.as_slice()) {
        (Some(mark), [piece]) => Some(((file.path, file.bytes, mark), *piece)),
        _ => None,
    };
    record.files.into_iter().filter_map(segment).collect()
}

/// Stores the content of the moment, then the record that names it.
fn write(
    folder: &BackupFolder,
    known: &KnownObjects,
    moment: CapturedDirectory,
    mut record: BackupRecord,
) -> Result<BackupInfo> {
    for source in moment.sources {
        let stored = match &source.contents {
            CapturedContents::Appended(file) => store_pieces(folder, &source, &**file)?,
            CapturedContents::Segment(segment) => store_segment(folder, known, &source, segment)?,
        };
        record.info.files += 1;
        record.info.bytes += source.bytes;
        record.info.bytes_new += stored.bytes_new;
        record.files.push(FileEntry {
            path: source.name,
            bytes: source.bytes,
            mark: stored.mark,
            pieces: stored.pieces,
        });
    }
    folder.sync_names(OBJECTS)?;
    folder.write(&record)?;
    Ok(record.info)
}

/// The result of storing a file.
struct StoredFile {
    pieces: Vec<ObjectPiece>,
    mark: Option<u64>,
    bytes_new: u64,
}

fn store_pieces(
    folder: &BackupFolder,
    source: &CapturedFile,
    file: &dyn ReadAt,
) -> Result<StoredFile> {
    let from = ReadableObject {
        file,
        path: &source.path,
    };
    let mut stored = StoredFile {
        pieces: Vec::new(),
        mark: None,
        bytes_new: 0,
    };
    let mut at = 0;
    while at < source.bytes {
        let end = source.bytes.min(at + PIECE_BYTES_MAX);
        let (piece, is_new) = folder.store(&from, at..end)?;
        stored.bytes_new += if is_new { piece.bytes } else { 0 };
        stored.pieces.push(piece);
        at = end;
    }
    Ok(stored)
}

/// Stores a segment if the folder does not have it. The copy is read back and checked page by page:
/// a damaged segment must not become a backup, and an operator should learn about it.
fn store_segment(
    folder: &BackupFolder,
    known: &KnownObjects,
    source: &CapturedFile,
    segment: &OpenSegment,
) -> Result<StoredFile> {
    let file = segment.file();
    // A whole segment that stands in the place of another one is damage, too.
    let (bytes, pin) = (segment.meta.bytes, segment.meta.pin);
    Segment::from_file(Arc::clone(&file), &source.path)?.check_pin(bytes, pin)?;
    let mark = mark(&*file, source)?;
    let key = (source.name.clone(), source.bytes, mark);
    let stored = |piece: ObjectPiece, bytes_new| StoredFile {
        pieces: vec![piece],
        mark: Some(mark),
        bytes_new,
    };
    if let Some(piece) = known.get(&key)
        && folder.has(*piece)?
    {
        return Ok(stored(*piece, 0));
    }
    let from = ReadableObject {
        file: &*file,
        path: &source.path,
    };
    let unnamed = folder.write_object(&from, 0..source.bytes)?;
    let mut damage = None;
    Segment::verify(&*folder.blobs, &unnamed.name, &mut |error| {
        damage.get_or_insert(EngineError::from(error));
    });
    if let Some(error) = damage {
        folder.discard(&unnamed.name);
        // It is the source that is damaged: what was written was read back.
        return Err(match error {
            EngineError::Corrupt { offset, reason, .. } => EngineError::Corrupt {
                path: source.path.clone(),
                offset,
                reason,
            },
            other => other,
        });
    }
    let (piece, is_new) = folder.name(unnamed)?;
    Ok(stored(piece, if is_new { piece.bytes } else { 0 }))
}

/// The beginning of the SHA-256 of a segment's end. Path, length and lineage say already which
/// segment it is, unless somebody has copied a data directory by hand and uses both copies.
fn mark(file: &dyn ReadAt, source: &CapturedFile) -> Result<u64> {
    let bytes = source.bytes.min(MARK_BYTES);
    let mut end = vec![0; bytes as usize];
    file.read_exact_at(&mut end, source.bytes - bytes)
        .map_err(|error| EngineError::io(&source.path, error))?;
    let digest: [u8; 32] = Sha256::digest(&end).into();
    let mut mark = [0; 8];
    mark.copy_from_slice(&digest[..8]);
    Ok(u64::from_le_bytes(mark))
}
