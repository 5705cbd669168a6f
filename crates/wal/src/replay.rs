//! Replay: reads the records of the log's files in order, and tells torn tails from corruption.
//!
//! A file was synced before the next one was made, so only the last file that holds records may
//! end in a torn write. There, everything from the first damage on was never acknowledged: pages
//! of an unsynced tail reach the disk in any order, so whole records may well follow a damaged one.

use crate::entry::WalEntry;
use crate::error::WalError;
use crate::file::{FORMAT_VERSION, HEADER_BYTES, WalHeader, check_header, file_name, header_bytes};
use crate::record::decode_record;
use marigram_codec::{ChecksummedPrefix, frame};
use marigram_env::{File, LogStore};
use marigram_model::LogOwner;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes read from a file at a time, at least.
const READ_BYTES: usize = 1 << 20;

/// The result of a replay, besides its entries.
#[derive(Clone, Debug, Default)]
pub struct ReplayReport {
    /// Whole records.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Where replay stopped early and why: the tail from there on was cut off.
    pub torn: Option<(PathBuf, u64, String)>,
    /// The files that hold records, by number: all of it is durable.
    pub files: BTreeMap<u64, ChecksummedPrefix>,
}

/// Takes each entry with its sequence.
pub(crate) type ApplyEntry<'a> = dyn FnMut(u64, WalEntry) -> Result<(), WalError> + 'a;

/// A file of the log as found on disk.
pub(crate) struct FoundWalFile {
    pub(crate) number: u64,
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<dyn File>,
    pub(crate) bytes: u64,
    /// The beginning of the file: its header, or as much of it as there is.
    header: Vec<u8>,
}

impl FoundWalFile {
    pub(crate) fn open(fs: &dyn LogStore, dir: &Path, number: u64) -> Result<Self, WalError> {
        let path = dir.join(file_name(number));
        let file = fs.open(&path).map_err(WalError::io(&path))?;
        let bytes = file.len().map_err(WalError::io(&path))?;
        let mut header = vec![0; bytes.min(HEADER_BYTES as u64) as usize];
        file.read_exact_at(&mut header, 0)
            .map_err(WalError::io(&path))?;
        header.truncate(header_bytes(&header));
        Ok(Self {
            number,
            path,
            file,
            bytes,
            header,
        })
    }

    pub(crate) fn has_records(&self) -> bool {
        self.bytes > header_bytes(&self.header) as u64
    }

    /// Refuses a file that was written for another shard or data directory. A header that is torn
    /// names none.
    pub(crate) fn check_owner(&self, owner: LogOwner) -> Result<(), WalError> {
        let WalHeader::Good { owner: found, .. } = check_header(&self.header, self.number) else {
            return Ok(());
        };
        match owner.refusal(found) {
            Some(reason) => Err(WalError::corrupt(&self.path, 0, reason)),
            None => Ok(()),
        }
    }

    /// Checks the header. It was durable before the next record or file was written, so one that
    /// is not whole is damage.
    pub(crate) fn check(&self) -> Result<(), WalError> {
        match check_header(&self.header, self.number) {
            WalHeader::Good { .. } => Ok(()),
            WalHeader::Damaged(reason) => Err(WalError::corrupt(&self.path, 0, reason)),
            WalHeader::Version(found) => Err(WalError::Version {
                path: self.path.clone(),
                found,
                supported: FORMAT_VERSION,
            }),
        }
    }

    /// Compares the file with what is durable of it.
    pub(crate) fn prove(&self, durable: ChecksummedPrefix) -> Result<(), WalError> {
        if self.bytes < durable.bytes {
            let reason = format!(
                "the file ends here, though {} bytes of it were made durable, as the shard's WITNESS \
                 says: its end is lost, or it was replaced by an older version",
                durable.bytes
            );
            return Err(WalError::corrupt(&self.path, self.bytes, reason));
        }
        let (mut read, mut buffer) = (ChecksummedPrefix::default(), Vec::new());
        while read.bytes < durable.bytes {
            buffer.resize(
                (durable.bytes - read.bytes).min(READ_BYTES as u64) as usize,
                0,
            );
            self.file
                .read_exact_at(&mut buffer, read.bytes)
                .map_err(WalError::io(&self.path))?;
            read.grow(&buffer);
        }
        if read == durable {
            return Ok(());
        }
        let reason = format!(
            "the checksum of the first {} bytes is not the one that the shard's WITNESS names: they \
             are damaged, or they were replaced by another file",
            durable.bytes
        );
        Err(WalError::corrupt(&self.path, 0, reason))
    }

    /// Replays the file. `is_last`: no later file has records, so the tail may be torn; then it
    /// is cut off.
    pub(crate) fn replay(
        &mut self,
        is_last: bool,
        sequence: &mut Option<u64>,
        apply: &mut ApplyEntry<'_>,
        report: &mut ReplayReport,
    ) -> Result<(), WalError> {
        if is_last {
            // Readers are about to see what is replayed, and other files will depend on it. After a
            // crash of the process alone, it may exist only in the kernel's cache.
            self.file.sync().map_err(WalError::io(&self.path))?;
        }
        let mut window = FileWindow::new(self);
        let mut whole = ChecksummedPrefix::new(&self.header);
        loop {
            let offset = window.offset();
            match window.next()? {
                NextRecord::End => break,
                NextRecord::Torn(reason) if is_last => {
                    report.torn = Some((self.path.clone(), offset, reason.to_owned()));
                    self.file
                        .truncate(offset)
                        .and_then(|()| self.file.sync())
                        .map_err(WalError::io(&self.path))?;
                    self.bytes = offset;
                    break;
                }
                NextRecord::Torn(reason) => {
                    return Err(WalError::corrupt(&self.path, offset, reason));
                }
                NextRecord::Record(record) => {
                    let decoded = decode_record(&record[frame::HEADER_BYTES..]);
                    let bytes = record.len() as u64;
                    whole.grow(record);
                    let (at, entry) = decoded
                        .map_err(|e| WalError::corrupt(&self.path, offset, e.to_string()))?;
                    if let Some(last) = *sequence
                        && at <= last
                    {
                        let reason = format!("sequence {at} stands after {last}");
                        return Err(WalError::corrupt(&self.path, offset, reason));
                    }
                    *sequence = Some(at);
                    report.records += 1;
                    report.bytes += bytes;
                    apply(at, entry)?;
                }
            }
        }
        report.files.insert(self.number, whole);
        Ok(())
    }
}

enum NextRecord<'a> {
    /// A whole frame.
    Record(&'a [u8]),
    Torn(&'static str),
    End,
}

/// A part of a file in memory, which moves along the file.
struct FileWindow {
    file: Arc<dyn File>,
    path: PathBuf,
    /// Bytes of the file.
    len: u64,
    bytes: Vec<u8>,
    /// Where in the file `bytes` begins.
    start: u64,
    /// Where in `bytes` the next record begins.
    at: usize,
}

impl FileWindow {
    fn new(found: &FoundWalFile) -> Self {
        Self {
            file: Arc::clone(&found.file),
            path: found.path.clone(),
            len: found.bytes,
            bytes: Vec::new(),
            start: found.header.len() as u64,
            at: 0,
        }
    }

    /// Where in the file the next record begins.
    fn offset(&self) -> u64 {
        self.start + self.at as u64
    }

    fn next(&mut self) -> Result<NextRecord<'_>, WalError> {
        let rest = self.len.saturating_sub(self.offset());
        if rest == 0 {
            return Ok(NextRecord::End);
        }
        self.fill(rest.min(frame::HEADER_BYTES as u64))?;
        let Some(len) = self.bytes[self.at..].first_chunk::<4>() else {
            return Ok(NextRecord::Torn("the record's header is cut off"));
        };
        let wanted = frame::HEADER_BYTES as u64 + u64::from(u32::from_le_bytes(*len));
        // No more is read than the file has, whatever a damaged length claims.
        self.fill(wanted.min(rest))?;
        let end = self.bytes.len().min(self.at + wanted as usize);
        Ok(match frame::read(&self.bytes[self.at..end]) {
            frame::FrameRead::Frame { len, .. } => {
                let start = self.at;
                self.at += len;
                NextRecord::Record(&self.bytes[start..self.at])
            }
            frame::FrameRead::Damaged(reason) => NextRecord::Torn(reason),
            frame::FrameRead::End => NextRecord::End,
        })
    }

    /// Reads until at least `wanted` bytes follow the start of the next record.
    fn fill(&mut self, wanted: u64) -> Result<(), WalError> {
        let have = self.bytes.len() - self.at;
        if have as u64 >= wanted {
            return Ok(());
        }
        self.start = self.offset();
        self.bytes.drain(..self.at);
        self.at = 0;
        let len = (self.len - self.start).min(wanted.max(READ_BYTES as u64));
        self.bytes.resize(len as usize, 0);
        let (into, from) = (&mut self.bytes[have..], self.start + have as u64);
        self.file
            .read_exact_at(into, from)
            .map_err(WalError::io(&self.path))
    }
}
