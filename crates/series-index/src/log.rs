//! The series on disk: an append-only log of (id, table, key). Layout: `docs/formats/series.md`.
//!
//! The manifest holds a [`LogPosition`]: which file is the log, and how many of its bytes are
//! valid. It is written after the bytes were synced. So damage within them is damage, and bytes
//! after them were never acknowledged. A log that is mostly dead is rewritten under another name.
//! The new file becomes the log when the manifest holds its position; until then, the old file
//! stays in force.

mod load;
mod position;
mod records;

pub use position::LogPosition;

use crate::error::SeriesError;
use crate::index::SeriesIndex;
use crate::keys::ColdKeys;
use load::load;
use marigram_codec::ChecksummedPrefix;
use marigram_env::{File, LogStore};
use marigram_model::{SeriesId, SeriesIdentity, TableId};
use records::{put_header, put_removed, put_series};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Number of series from which on rewriting a log is worthwhile.
const REWRITE_SERIES: usize = 1024;

/// The log of a shard's series, open for appending.
#[derive(Debug)]
pub struct SeriesLog {
    fs: Arc<dyn LogStore>,
    dir: PathBuf,
    file: Arc<dyn File>,
    position: LogPosition,
    /// The valid bytes.
    extent: ChecksummedPrefix,
    next: SeriesId,
    /// Entries of series in the file, including dead ones.
    held: usize,
    /// How much of the index's history of removals is in the log.
    removals: usize,
    /// Whether nothing may be appended to the file: it has an earlier version, or has bytes after
    /// the valid ones that may not be cut off.
    outdated: bool,
    /// The previous file, if the log was rewritten.
    replaced: Option<PathBuf>,
    poisoned: Option<String>,
}

/// What an [`identity`](SeriesLog::open) returns for a table: the key by which its series are
/// found, or that it was dropped.
type TableIdentities<'a> = &'a dyn Fn(TableId) -> Option<SeriesIdentity>;

/// Removes a file that nothing names.
pub type DiscardFile<'a> = &'a dyn Fn(&Path) -> std::io::Result<()>;

impl SeriesLog {
    /// Loads the log up to `valid` into an index and cuts off the rest (which was never
    /// acknowledged). Position 0 starts a new log. `identity` returns the key by which the series
    /// of a table are found; the series of a table for which it returns none are loaded as removed.
    ///
    /// # Errors
    /// `Corrupt` if valid bytes are missing or damaged.
    pub fn open(
        fs: Arc<dyn LogStore>,
        dir: &Path,
        valid: LogPosition,
        identity: TableIdentities<'_>,
    ) -> Result<(Self, SeriesIndex), SeriesError> {
        let discard: DiscardFile<'_> = &|path| fs.remove(path);
        Self::open_proved(fs.clone(), dir, valid, None, Some(discard), identity)
    }

    /// Like [`open`](Self::open), if the valid bytes have this `checksum` (`None`: it is unknown).
    /// Log files that never came into force, or no longer are, go to `discard`. Without a checksum,
    /// it is not certain that the position belongs to this log, so these files stay, and nothing is
    /// cut off.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_proved(
        fs: Arc<dyn LogStore>,
        dir: &Path,
        valid: LogPosition,
        checksum: Option<u32>,
        discard: Option<DiscardFile<'_>>,
        identity: TableIdentities<'_>,
    ) -> Result<(Self, SeriesIndex), SeriesError> {
        let mut path = dir.join(valid.file_name());
        let loaded = if valid.bytes() == 0 {
            None
        } else {
            Some(load(&*fs, &path, valid.bytes(), checksum, identity)?)
        };
        if let Some(discard) = discard {
            discard_others(&*fs, dir, loaded.is_some().then_some(&path), discard)?;
        }
        let mut position = valid;
        if loaded.is_none() && holds_something(&*fs, &path).map_err(io(&path))? {
            position = free_position(&*fs, dir, valid)?;
            path = dir.join(position.file_name());
        }
        let mut log = Self {
            dir: dir.to_owned(),
            position,
            extent: ChecksummedPrefix::default(),
            next: SeriesId(0),
            held: 0,
            removals: 0,
            outdated: false,
            replaced: None,
            poisoned: None,
            file: match &loaded {
                Some((file, _)) => file.clone(),
                None => fs.create(&path).map_err(io(&path))?,
            },
            fs,
        };
        let Some((file, loaded)) = loaded else {
            log.fs.sync_dir(dir).map_err(io(dir))?;
            return Ok((log, SeriesIndex::default()));
        };
        let has_tail = file.len().map_err(io(&path))? > valid.bytes();
        if has_tail && discard.is_some() {
            file.truncate(valid.bytes()).map_err(io(&path))?;
            file.sync().map_err(io(&path))?;
        }
        (log.extent, log.held) = (loaded.extent, loaded.held);
        log.outdated = loaded.outdated || (has_tail && discard.is_none());
        log.next = loaded.index.next_id();
        Ok((log, loaded.index))
    }

    /// The checksum of the valid bytes.
    #[must_use]
    pub fn checksum(&self) -> u32 {
        self.extent.checksum
    }

    /// Reads the log up to `valid` without changing anything; for tools.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn read(
        fs: &dyn LogStore,
        dir: &Path,
        valid: LogPosition,
        checksum: Option<u32>,
    ) -> Result<SeriesIndex, SeriesError> {
        if valid.bytes() == 0 {
            return Ok(SeriesIndex::default());
        }
        let path = dir.join(valid.file_name());
        let plain = |_| Some(SeriesIdentity::Plain);
        Ok(load(fs, &path, valid.bytes(), checksum, &plain)?.1.index)
    }

    /// The index in the bytes of a log; `path` is for messages.
    ///
    /// # Errors
    /// `Corrupt` with the offset of the damaged record, `Version` for a newer format.
    pub fn decode(path: &Path, bytes: &[u8]) -> Result<SeriesIndex, SeriesError> {
        let plain = |_| Some(SeriesIdentity::Plain);
        load::decode(path, bytes, &plain).map(|loaded| loaded.index)
    }

    /// Appends the index's series from the first one not yet logged up to `end` (exclusive), and
    /// the removals since the last append. Syncs, and returns the position to commit. `committed`
    /// is the position in the manifest: if it is that of this log, and most of the log is dead or
    /// its format is old, everything is written to a new file instead.
    ///
    /// # Errors
    /// `Io`; after it, every append fails (`Poisoned`).
    ///
    /// # Panics
    /// If `end` is beyond the end of the index.
    pub fn append(
        &mut self,
        index: &SeriesIndex,
        end: SeriesId,
        committed: LogPosition,
    ) -> Result<LogPosition, SeriesError> {
        assert!(
            end <= index.next_id(),
            "only series of the index can be logged"
        );
        if let Some(reason) = &self.poisoned {
            let path = self.dir.join(self.position.file_name());
            let reason = reason.clone();
            return Err(SeriesError::Poisoned { path, reason });
        }
        if committed == self.position
            && let Some(path) = &self.replaced
            && self.fs.remove(path).is_ok()
        {
            // If the removal fails, it is repeated when the log is next opened.
            self.replaced = None;
        }
        let written = if self.outdated || (committed == self.position && self.is_mostly_dead(index))
        {
            self.rewrite(index, end.max(self.next))
        } else {
            self.write(index, end)
        };
        if let Err(error) = &written {
            self.poisoned = Some(error.to_string());
        }
        written.map(|()| self.position)
    }

    fn is_mostly_dead(&self, index: &SeriesIndex) -> bool {
        self.held >= REWRITE_SERIES && index.live() < self.held / 2
    }

    /// Appends and syncs.
    fn write(&mut self, index: &SeriesIndex, end: SeriesId) -> Result<(), SeriesError> {
        let path = self.dir.join(self.position.file_name());
        let removals = index.retired_so_far();
        let known = |id: &&SeriesId| **id < self.next;
        let removed: Vec<SeriesId> = removals[self.removals..]
            .iter()
            .filter(known)
            .copied()
            .collect();
        if end <= self.next && removed.is_empty() {
            return Ok(());
        }
        let mut out = Vec::new();
        if self.position.bytes() == 0 {
            put_header(&mut out);
        }
        put_removed(&removed, &mut out);
        let mut writer = LogWriter {
            file: &*self.file,
            path: &path,
            extent: self.extent,
            held: 0,
        };
        writer.series(index, self.next, end, &mut out)?;
        let (extent, held) = (writer.extent, writer.held);
        // Series that were removed before they were logged are logged as removed, so only the other
        // removals remain.
        self.removals = removals.len();
        self.position = self.position.after(extent.bytes - self.extent.bytes);
        self.extent = extent;
        self.held += held;
        self.next = end.max(self.next);
        Ok(())
    }

    /// Writes all series up to `end` to a new file, under the next name, and continues there.
    fn rewrite(&mut self, index: &SeriesIndex, end: SeriesId) -> Result<(), SeriesError> {
        let position = free_position(&*self.fs, &self.dir, self.position)?;
        let path = self.dir.join(position.file_name());
        let file = self.fs.create(&path).map_err(io(&path))?;
        let mut out = Vec::new();
        put_header(&mut out);
        let mut writer = LogWriter {
            file: &*file,
            path: &path,
            extent: ChecksummedPrefix::default(),
            held: 0,
        };
        writer.series(index, SeriesId(0), end, &mut out)?;
        let (extent, held) = (writer.extent, writer.held);
        self.fs.sync_dir(&self.dir).map_err(io(&self.dir))?;
        self.replaced = Some(self.dir.join(self.position.file_name()));
        self.file = file;
        self.position = position.after(extent.bytes);
        self.extent = extent;
        self.held = held;
        self.removals = index.retired_so_far().len();
        self.next = end;
        self.outdated = false;
        Ok(())
    }
}

/// Writes records to a file.
struct LogWriter<'a> {
    file: &'a dyn File,
    path: &'a Path,
    /// The content of the file.
    extent: ChecksummedPrefix,
    held: usize,
}

impl LogWriter<'_> {
    /// Appends the bytes in `out`, then series from `first` up to `end`; syncs.
    fn series(
        &mut self,
        index: &SeriesIndex,
        first: SeriesId,
        end: SeriesId,
        out: &mut Vec<u8>,
    ) -> Result<(), SeriesError> {
        let (mut next, mut cold) = (first, ColdKeys::default());
        loop {
            if next < end {
                next = put_series(index, next, end, &mut cold, &mut self.held, out);
            }
            self.file.append(out).map_err(io(self.path))?;
            self.extent.grow(out);
            out.clear();
            if next >= end {
                return self.file.sync().map_err(io(self.path));
            }
        }
    }
}

/// The beginning of the next file with an unused name: an existing file may still be needed.
fn free_position(
    fs: &dyn LogStore,
    dir: &Path,
    after: LogPosition,
) -> Result<LogPosition, SeriesError> {
    let mut position = after.next_file();
    while position.file_name() != after.file_name() {
        let path = dir.join(position.file_name());
        if !fs.exists(&path).map_err(io(&path))? {
            break;
        }
        position = position.next_file();
    }
    Ok(position)
}

fn holds_something(fs: &dyn LogStore, path: &Path) -> std::io::Result<bool> {
    Ok(fs.exists(path)? && !fs.open(path)?.is_empty()?)
}

/// Discards all logs except the current one: those that were replaced, or never came into force. An
/// existing name may not be durable, so even an empty log gets a new file. Empty ones are removed
/// directly.
fn discard_others(
    fs: &dyn LogStore,
    dir: &Path,
    kept: Option<&PathBuf>,
    discard: DiscardFile<'_>,
) -> Result<(), SeriesError> {
    for name in fs.list(dir).map_err(io(dir))? {
        let path = dir.join(&name);
        if LogPosition::is_file_name(&name) && Some(&path) != kept {
            let is_empty = fs.open(&path).and_then(|file| file.is_empty());
            let gone = if is_empty.map_err(io(&path))? {
                fs.remove(&path)
            } else {
                discard(&path)
            };
            gone.map_err(io(&path))?;
        }
    }
    Ok(())
}

fn io(path: &Path) -> impl Fn(std::io::Error) -> SeriesError + use<'_> {
    move |source| SeriesError::Io {
        path: path.to_owned(),
        source,
    }
}
