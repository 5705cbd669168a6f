//! The series on disk: `SERIES`, an append-only log of (id, table, key). Layout:
//! `docs/formats/series.md`.
//!
//! The manifest says how many of the log's bytes are valid. It says so after the bytes were synced;
//! so damage within them is damage, and what stands behind them was never acknowledged.

use crate::error::SeriesError;
use crate::index::SeriesIndex;
use marigram_codec::frame;
use marigram_env::{File, FileSystem};
use marigram_model::{SeriesId, TableId};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MAGIC: [u8; 8] = *b"MARISERI";
const VERSION: u32 = 1;
/// Stands in a record in the place of the table of a series whose table was dropped.
const GONE: u32 = u32::MAX;
/// Payload from which on a record is closed, bytes.
const RECORD_BYTES: usize = 1 << 20;

/// The log of a shard's series under append.
#[derive(Debug)]
pub struct SeriesLog {
    path: PathBuf,
    file: Arc<dyn File>,
    bytes: u64,
    next: SeriesId,
    poisoned: Option<String>,
}

impl SeriesLog {
    /// Loads the first `valid_bytes` into an index and cuts off the rest (never acknowledged).
    /// With 0 valid bytes the log is begun anew.
    ///
    /// # Errors
    /// `Corrupt` if the valid bytes are not all there or do not hold what was written.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "logs and manifests are opened alike"
    )]
    pub fn open(
        fs: Arc<dyn FileSystem>,
        dir: &Path,
        valid_bytes: u64,
    ) -> Result<(Self, SeriesIndex), SeriesError> {
        let path = dir.join("SERIES");
        if valid_bytes == 0 {
            // A name that stands already may not be durable, and syncing again need not help.
            if fs.exists(&path).map_err(io(&path))? {
                fs.remove(&path).map_err(io(&path))?;
            }
            let file = fs.create(&path).map_err(io(&path))?;
            fs.sync_dir(dir).map_err(io(dir))?;
            let log = Self {
                path,
                file,
                bytes: 0,
                next: SeriesId(0),
                poisoned: None,
            };
            return Ok((log, SeriesIndex::default()));
        }
        let corrupt = |offset, reason: String| {
            Err(SeriesError::Corrupt {
                path: path.clone(),
                offset,
                reason,
            })
        };
        if !fs.exists(&path).map_err(io(&path))? {
            return corrupt(
                0,
                format!("the file is missing; {valid_bytes} bytes should be there"),
            );
        }
        let file = fs.open(&path).map_err(io(&path))?;
        let len = file.len().map_err(io(&path))?;
        if len < valid_bytes {
            return corrupt(
                len,
                format!("the file ends here; {valid_bytes} bytes should be there"),
            );
        }
        let mut bytes = vec![0; usize::try_from(valid_bytes).map_err(|_| SeriesError::Full)?];
        file.read_exact_at(&mut bytes, 0).map_err(io(&path))?;
        let index = Self::decode(&path, &bytes)?;
        if len > valid_bytes {
            file.truncate(valid_bytes).map_err(io(&path))?;
            file.sync().map_err(io(&path))?;
        }
        let next = index.next_id();
        Ok((
            Self {
                path,
                file,
                bytes: valid_bytes,
                next,
                poisoned: None,
            },
            index,
        ))
    }

    /// The index that the bytes of a log hold; `path` is for messages.
    ///
    /// # Errors
    /// `Corrupt` with the offset of the record that is wrong, `Version` for a newer format.
    pub fn decode(path: &Path, bytes: &[u8]) -> Result<SeriesIndex, SeriesError> {
        let corrupt = |offset: usize, reason: &str| SeriesError::Corrupt {
            path: path.to_owned(),
            offset: offset as u64,
            reason: reason.to_owned(),
        };
        let mut index = SeriesIndex::default();
        index.reserve(total(bytes));
        let mut at = 0;
        loop {
            let (payload, len) = match frame::read(&bytes[at..]) {
                frame::Read::Frame { payload, len } => (payload, len),
                frame::Read::End => return Ok(index),
                frame::Read::Damaged(reason) => return Err(corrupt(at, reason)),
            };
            if at == 0 {
                let version = payload
                    .strip_prefix(&MAGIC)
                    .and_then(|rest| rest.try_into().ok());
                let found = version.map(u32::from_le_bytes);
                let found = found.ok_or_else(|| corrupt(0, "this is no SERIES of Marigram"))?;
                if found != VERSION {
                    let (path, supported) = (path.to_owned(), VERSION);
                    return Err(SeriesError::Version {
                        path,
                        found,
                        supported,
                    });
                }
            } else {
                replay(payload, &mut index).map_err(|reason| corrupt(at, &reason))?;
            }
            at += len;
        }
    }

    /// Appends series of the index from the first one not yet logged up to `end` (exclusive),
    /// syncs, and returns the log's new valid length.
    ///
    /// # Errors
    /// `Io`; after it nothing more can be appended (`Poisoned`).
    ///
    /// # Panics
    /// If `end` is beyond the index.
    pub fn append(&mut self, index: &SeriesIndex, end: SeriesId) -> Result<u64, SeriesError> {
        assert!(
            end <= index.next_id(),
            "only series of the index can be logged"
        );
        if let Some(reason) = &self.poisoned {
            let (path, reason) = (self.path.clone(), reason.clone());
            return Err(SeriesError::Poisoned { path, reason });
        }
        if end <= self.next {
            return Ok(self.bytes);
        }
        let written = self.write(index, end);
        match written {
            Ok(bytes) => {
                self.bytes += bytes;
                self.next = end;
                Ok(self.bytes)
            }
            Err(error) => {
                self.poisoned = Some(error.to_string());
                Err(error)
            }
        }
    }

    /// Appends and syncs; returns the number of bytes.
    fn write(&self, index: &SeriesIndex, end: SeriesId) -> Result<u64, SeriesError> {
        let mut out = Vec::new();
        if self.bytes == 0 {
            frame::write(&[&MAGIC[..], &VERSION.to_le_bytes()].concat(), &mut out);
        }
        let mut next = self.next.0;
        let mut total = 0;
        while next < end.0 {
            next = put_record(index, next, end.0, &mut out);
            self.file.append(&out).map_err(io(&self.path))?;
            total += out.len() as u64;
            out.clear();
        }
        self.file.sync().map_err(io(&self.path))?;
        Ok(total)
    }
}

/// Appends one record with series from `first` up to `end` at most; returns where it stopped.
fn put_record(index: &SeriesIndex, first: u32, end: u32, out: &mut Vec<u8>) -> u32 {
    let mut payload = first.to_le_bytes().to_vec();
    let mut next = first;
    while next < end && payload.len() < RECORD_BYTES {
        let id = SeriesId(next);
        let table = index.table_of(id).map_or(GONE, |table| table.0);
        let key = index.key(id).unwrap_or_default();
        let len = u32::try_from(key.len()).expect("keys are far shorter than 4 GiB");
        payload.extend_from_slice(&table.to_le_bytes());
        payload.extend_from_slice(&len.to_le_bytes());
        payload.extend_from_slice(key);
        next += 1;
    }
    frame::write(&payload, out);
    next
}

/// Series in all records, roughly where some are damaged.
fn total(log: &[u8]) -> usize {
    let (mut rest, mut total) = (log, 0);
    while let Some(len) = rest.first_chunk::<4>() {
        let record = &rest[..rest
            .len()
            .min(frame::HEADER_BYTES + u32::from_le_bytes(*len) as usize)];
        total += count(record.get(frame::HEADER_BYTES..).unwrap_or_default());
        rest = &rest[record.len()..];
    }
    total
}

/// Series in a record; the wrong number, but no more than there are bytes for, in a damaged one.
fn count(payload: &[u8]) -> usize {
    let mut rest = payload.get(4..).unwrap_or_default();
    let mut count = 0;
    while let Some(len) = rest.get(4..).and_then(<[u8]>::first_chunk::<4>) {
        count += 1;
        rest = rest
            .get(8 + u32::from_le_bytes(*len) as usize..)
            .unwrap_or_default();
    }
    count
}

/// Adds the series of a record to the index.
fn replay(payload: &[u8], index: &mut SeriesIndex) -> Result<(), String> {
    const SHORT: &str = "the record ends early";
    let (first, mut rest) = payload.split_first_chunk::<4>().ok_or(SHORT)?;
    let first = u32::from_le_bytes(*first);
    if first != index.next_id().0 {
        return Err(format!(
            "series {first} follows, where {} should",
            index.next_id()
        ));
    }
    while !rest.is_empty() {
        let (table, after) = rest.split_first_chunk::<4>().ok_or(SHORT)?;
        let (len, after) = after.split_first_chunk::<4>().ok_or(SHORT)?;
        let len = u32::from_le_bytes(*len) as usize;
        let (key, after) = after.split_at_checked(len).ok_or(SHORT)?;
        let (id, table) = (index.next_id(), TableId(u32::from_le_bytes(*table)));
        let added = match table.0 {
            GONE if key.is_empty() => index.insert_gone(id),
            _ => index.insert(id, table, key),
        };
        added.map_err(|error| error.to_string())?;
        rest = after;
    }
    Ok(())
}

fn io(path: &Path) -> impl Fn(std::io::Error) -> SeriesError + use<'_> {
    move |source| SeriesError::Io {
        path: path.to_owned(),
        source,
    }
}
