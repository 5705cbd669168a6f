//! Reads a log record by record, so that only one record is in memory at a time.

use super::records::{LoadProgress, MAGIC, VERSION};
use super::{TableIdentities, io};
use crate::error::SeriesError;
use crate::index::{BulkIndex, SeriesIndex};
use marigram_codec::{ChecksummedPrefix, frame};
use marigram_env::{File, LogStore};
use marigram_model::TagKey;
use std::path::Path;
use std::sync::Arc;

/// The previous version, whose records hold canonical keys.
const VERSION_1: u32 = 1;

/// An index loaded from a log.
pub(super) struct LoadedIndex {
    pub index: SeriesIndex,
    /// The bytes that were read.
    pub extent: ChecksummedPrefix,
    /// Entries of series in the log, including dead ones.
    pub held: usize,
    /// Whether the log has an earlier version.
    pub outdated: bool,
}

/// The source of a log's bytes.
trait LogSource {
    /// Fills `buf` from `offset`; all of it must exist.
    fn read(&self, buf: &mut [u8], offset: u64) -> std::io::Result<()>;
}

impl LogSource for &[u8] {
    fn read(&self, buf: &mut [u8], offset: u64) -> std::io::Result<()> {
        let from = self.get(offset as usize..).unwrap_or_default();
        let from = from
            .get(..buf.len())
            .ok_or(std::io::ErrorKind::UnexpectedEof)?;
        buf.copy_from_slice(from);
        Ok(())
    }
}

impl LogSource for Arc<dyn File> {
    fn read(&self, buf: &mut [u8], offset: u64) -> std::io::Result<()> {
        self.read_exact_at(buf, offset)
    }
}

/// Loads the first `valid_bytes` of a file.
pub(super) fn load(
    fs: &dyn LogStore,
    path: &Path,
    valid_bytes: u64,
    checksum: Option<u32>,
    identity: TableIdentities<'_>,
) -> Result<(Arc<dyn File>, LoadedIndex), SeriesError> {
    let corrupt = |offset, reason| {
        let path = path.to_owned();
        Err(SeriesError::Corrupt {
            path,
            offset,
            reason,
        })
    };
    if !fs.exists(path).map_err(io(path))? {
        let reason = format!(
            "the file is missing; {valid_bytes} bytes should be there: put it back, or restore a backup \
             (marigram restore BACKUPS NEW_DIR)"
        );
        return corrupt(0, reason);
    }
    let file = fs.open(path).map_err(io(path))?;
    let len = file.len().map_err(io(path))?;
    if len < valid_bytes {
        let reason = format!("the file ends here; {valid_bytes} bytes should be there");
        return corrupt(len, reason);
    }
    let loaded = read(path, &file, valid_bytes, identity)?;
    if checksum.is_some_and(|checksum| checksum != loaded.extent.checksum) {
        let reason = format!(
            "the checksum of the first {valid_bytes} bytes is not the one that the manifest names: \
             it was replaced by another file"
        );
        return corrupt(0, reason);
    }
    Ok((file, loaded))
}

/// Loads the bytes of a log.
pub(super) fn decode(
    path: &Path,
    bytes: &[u8],
    identity: TableIdentities<'_>,
) -> Result<LoadedIndex, SeriesError> {
    read(path, &bytes, bytes.len() as u64, identity)
}

fn read(
    path: &Path,
    source: &dyn LogSource,
    len: u64,
    identity: TableIdentities<'_>,
) -> Result<LoadedIndex, SeriesError> {
    let mut loading = LoadProgress {
        index: BulkIndex::default(),
        held: 0,
        identity,
        key: TagKey::default(),
    };
    let (mut at, mut version, mut buffer) = (0, VERSION, Vec::new());
    let mut extent = ChecksummedPrefix::default();
    while at < len {
        let corrupt = |reason: String| SeriesError::Corrupt {
            path: path.to_owned(),
            offset: at,
            reason,
        };
        fill(source, at, len, &mut buffer).map_err(io(path))?;
        let payload = match frame::read(&buffer) {
            frame::FrameRead::Frame { payload, .. } => payload,
            frame::FrameRead::End => break,
            frame::FrameRead::Damaged(reason) => return Err(corrupt(reason.to_owned())),
        };
        if at == 0 {
            version = read_version(path, payload)?;
        } else {
            let replayed = match version {
                VERSION_1 => loading.replay_v1(payload),
                _ => loading.replay(payload),
            };
            replayed.map_err(corrupt)?;
        }
        at += buffer.len() as u64;
        extent.grow(&buffer);
    }
    let held = loading.held;
    let index = loading.index.finish();
    let index = index.map_err(|error| SeriesError::Corrupt {
        path: path.to_owned(),
        offset: at,
        reason: format!("the log ends here, and is not a log: {error}"),
    })?;
    Ok(LoadedIndex {
        index,
        extent,
        held,
        outdated: version != VERSION,
    })
}

/// Reads the frame at `at` into `buffer`, or as much of it as there is.
fn fill(source: &dyn LogSource, at: u64, len: u64, buffer: &mut Vec<u8>) -> std::io::Result<()> {
    let head = (len - at).min(frame::HEADER_BYTES as u64);
    buffer.resize(head as usize, 0);
    source.read(buffer, at)?;
    let Some(payload) = buffer
        .first_chunk::<4>()
        .map(|len| u32::from_le_bytes(*len))
    else {
        return Ok(());
    };
    let whole = (len - at).min(frame::HEADER_BYTES as u64 + u64::from(payload));
    buffer.resize(whole as usize, 0);
    source.read(&mut buffer[head as usize..], at + head)
}

fn read_version(path: &Path, payload: &[u8]) -> Result<u32, SeriesError> {
    let version = payload
        .strip_prefix(&MAGIC)
        .and_then(|rest| rest.try_into().ok())
        .map(u32::from_le_bytes);
    match version {
        Some(version @ (VERSION_1 | VERSION)) => Ok(version),
        Some(found) => Err(SeriesError::Version {
            path: path.to_owned(),
            found,
            supported: VERSION,
        }),
        None => Err(SeriesError::Corrupt {
            path: path.to_owned(),
            offset: 0,
            reason: "this is not a SERIES file of Marigram".to_owned(),
        }),
    }
}
