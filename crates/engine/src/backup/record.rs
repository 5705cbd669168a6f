//! Encodes and decodes the record of a backup: `docs/formats/backup.md`.
//!
//! A record is written once and never changed. Decoding never panics, and never allocates more
//! memory than the input justifies.

use marigram_codec::bytes::{BoundedReader, ReadError};
use marigram_codec::frame;
use std::fmt;

/// The version to write, and the highest that can be read.
const VERSION: u32 = 1;
const MAGIC: [u8; 8] = *b"MARIBACK";
/// Bytes of a digest (SHA-256).
const DIGEST_BYTES: usize = 32;
/// Bytes of a piece in a record.
const PIECE_BYTES: usize = DIGEST_BYTES + 8;

/// Summary of a backup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackupInfo {
    /// Its number in its folder, from 1.
    pub number: u64,
    /// The moment of its content, ns since the Unix epoch.
    pub taken_ns: i64,
    /// Number of shards of the data directory.
    pub shards: usize,
    /// Number of files of the data directory.
    pub files: usize,
    /// Size of the files, in bytes.
    pub bytes: u64,
    /// Bytes that this backup added to the folder; the others existed already.
    pub bytes_new: u64,
    /// Rows in segments. Rows that were only in the log are not counted.
    pub rows: u64,
}

/// A backup: its summary and its files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BackupRecord {
    pub info: BackupInfo,
    /// Version of the data directory's layout.
    pub format: u32,
    /// Lineage of the data directory; see `directory`.
    pub lineage: u64,
    pub files: Vec<FileEntry>,
}

/// A file of the data directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileEntry {
    /// Its path in the data directory, with `/` between the parts.
    pub path: String,
    pub bytes: u64,
    /// For a segment, a mark of the file's end, by which a later backup recognises it.
    pub mark: Option<u64>,
    /// The pieces of its content, in order.
    pub pieces: Vec<ObjectPiece>,
}

/// An object in the folder, and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObjectPiece {
    pub digest: ObjectDigest,
    pub bytes: u64,
}

/// SHA-256 of an object, which is also its name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ObjectDigest(pub [u8; DIGEST_BYTES]);

impl fmt::Display for ObjectDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ObjectDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why bytes are not a valid record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BackupRecordError {
    /// A newer Marigram wrote the record; its version.
    Newer(u32),
    /// The byte offset and the reason.
    Damaged(usize, String),
}

impl BackupRecord {
    /// Encodes the record as a file.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        frame::write(&[&MAGIC[..], &VERSION.to_le_bytes()].concat(), &mut out);
        let info = &self.info;
        let count = |count: usize| u32::try_from(count).expect("counts are far below 2^32");
        frame::write_with(&mut out, |out| {
            out.extend_from_slice(&info.number.to_le_bytes());
            out.extend_from_slice(&info.taken_ns.to_le_bytes());
            out.extend_from_slice(&self.format.to_le_bytes());
            out.extend_from_slice(&self.lineage.to_le_bytes());
            out.extend_from_slice(&count(info.shards).to_le_bytes());
            out.extend_from_slice(&count(self.files.len()).to_le_bytes());
            for number in [info.bytes, info.bytes_new, info.rows] {
                out.extend_from_slice(&number.to_le_bytes());
            }
        });
        for file in &self.files {
            frame::write_with(&mut out, |out| {
                out.extend_from_slice(&count(file.path.len()).to_le_bytes());
                out.extend_from_slice(file.path.as_bytes());
                out.extend_from_slice(&file.bytes.to_le_bytes());
                out.push(u8::from(file.mark.is_some()));
                if let Some(mark) = file.mark {
                    out.extend_from_slice(&mark.to_le_bytes());
                }
                out.extend_from_slice(&count(file.pieces.len()).to_le_bytes());
                for piece in &file.pieces {
                    out.extend_from_slice(&piece.digest.0);
                    out.extend_from_slice(&piece.bytes.to_le_bytes());
                }
            });
        }
        out
    }

    /// Decodes the record in a file.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, BackupRecordError> {
        let mut at = 0;
        let header = next(bytes, &mut at)?;
        let version = header
            .strip_prefix(&MAGIC)
            .and_then(|rest| rest.first_chunk::<4>())
            .ok_or_else(|| {
                BackupRecordError::Damaged(0, "this is not the record of a backup".to_owned())
            })?;
        match u32::from_le_bytes(*version) {
            VERSION => {}
            newer => return Err(BackupRecordError::Newer(newer)),
        }
        let damaged =
            |start| move |MalformedFrame(reason)| BackupRecordError::Damaged(start, reason);
        let start = at;
        let payload = next(bytes, &mut at)?;
        let (info, format, lineage) = head(payload).map_err(damaged(start))?;
        let files = info.files;
        let mut record = Self {
            info,
            format,
            lineage,
            files: Vec::new(),
        };
        for _ in 0..files {
            let start = at;
            let payload = next(bytes, &mut at)?;
            let file = file(BackupRecordReader::new(payload)).map_err(damaged(start))?;
            record.files.push(file);
        }
        if at == bytes.len() {
            return Ok(record);
        }
        let reason = format!("{} bytes follow the last file", bytes.len() - at);
        Err(BackupRecordError::Damaged(at, reason))
    }
}

/// The payload of the next frame.
fn next<'a>(bytes: &'a [u8], at: &mut usize) -> Result<&'a [u8], BackupRecordError> {
    let start = *at;
    match frame::read(&bytes[start..]) {
        frame::FrameRead::Frame { payload, len } => {
            *at += len;
            Ok(payload)
        }
        frame::FrameRead::End => Err(BackupRecordError::Damaged(
            start,
            "the file ends early".to_owned(),
        )),
        frame::FrameRead::Damaged(reason) => {
            Err(BackupRecordError::Damaged(start, reason.to_owned()))
        }
    }
}

/// What the first frame says: the backup, the format of the data directory, its lineage.
fn head(payload: &[u8]) -> Result<(BackupInfo, u32, u64), MalformedFrame> {
    let mut reader = BackupRecordReader::new(payload);
    let (number, taken_ns) = (reader.u64()?, reader.i64()?);
    let (format, lineage) = (reader.u32()?, reader.u64()?);
    let (shards, files) = (reader.u32()? as usize, reader.u32()? as usize);
    let info = BackupInfo {
        number,
        taken_ns,
        shards,
        files,
        bytes: reader.u64()?,
        bytes_new: reader.u64()?,
        rows: reader.u64()?,
    };
    reader.end()?;
    Ok((info, format, lineage))
}

fn file(mut reader: BackupRecordReader<'_>) -> Result<FileEntry, MalformedFrame> {
    let len = reader.u32()? as usize;
    let path = String::from_utf8_lossy(reader.take(len)?).into_owned();
    if !is_plain(&path) {
        return Err(MalformedFrame(format!(
            "'{path}' is no path in a data directory"
        )));
    }
    let bytes = reader.u64()?;
    let mark = match reader.byte()? {
        0 => None,
        _ => Some(reader.u64()?),
    };
    let count = reader.u32()? as usize;
    if count > reader.remaining() / PIECE_BYTES {
        return Err(MalformedFrame(format!(
            "{count} pieces of '{path}' do not fit"
        )));
    }
    let mut pieces = Vec::with_capacity(count);
    for _ in 0..count {
        pieces.push(ObjectPiece {
            digest: ObjectDigest(reader.array::<DIGEST_BYTES>()?),
            bytes: reader.u64()?,
        });
    }
    let sum = pieces
        .iter()
        .try_fold(0_u64, |sum, piece| sum.checked_add(piece.bytes));
    if sum != Some(bytes) {
        return Err(MalformedFrame(format!(
            "the pieces of '{path}' are not its length"
        )));
    }
    reader.end()?;
    Ok(FileEntry {
        path,
        bytes,
        mark,
        pieces,
    })
}

/// Whether a path stays within the directory that it is put into.
fn is_plain(path: &str) -> bool {
    let part = |part: &str| !part.is_empty() && part != "." && part != "..";
    path.split('/').all(part) && !path.contains(['\\', '\0'])
}

/// What is wrong with a frame's payload; whoever knows where the frame begins adds that.
struct MalformedFrame(String);

impl From<ReadError> for MalformedFrame {
    fn from(error: ReadError) -> Self {
        Self(error.reason().to_owned())
    }
}

/// Reads a frame's payload from its start.
type BackupRecordReader<'a> = BoundedReader<'a, MalformedFrame>;

#[cfg(test)]
mod tests;
