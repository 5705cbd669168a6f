//! The files of the log: their names and their headers (`docs/formats/wal.md`).

use crate::error::WalError;
use marigram_codec::{ChecksummedPrefix, crc32c};
use marigram_env::{File, LogStore};
use marigram_model::LogOwner;
use std::path::Path;
use std::sync::Arc;

/// The version of the format that is written, and the highest that is read.
pub const FORMAT_VERSION: u32 = 3;

/// Bytes of the header that is written.
pub(crate) const HEADER_BYTES: usize = 24 + LogOwner::BYTES;
/// Bytes of the header of version 1, which names no owner.
const HEADER_1_BYTES: usize = 24;
const MAGIC: [u8; 8] = *b"MARIGWAL";

/// Name of the file with this number.
#[must_use]
pub fn file_name(number: u64) -> String {
    format!("{number:010}.wal")
}

/// The number in a file's name; `None` for a name that the log does not give.
pub(crate) fn file_number(name: &str) -> Option<u64> {
    let number = name.strip_suffix(".wal")?.parse().ok()?;
    (file_name(number) == name).then_some(number)
}

/// Creates a file with a header, durable with its name, and returns it with the checksum of its
/// contents. `Full` if there is no space or no descriptor for it; the log is unaffected then.
pub(crate) fn create(
    fs: &dyn LogStore,
    dir: &Path,
    number: u64,
    owner: Option<LogOwner>,
) -> Result<(Arc<dyn File>, ChecksummedPrefix), WalError> {
    let path = dir.join(file_name(number));
    let header = header(number, owner);
    let file = fs.create(&path).map_err(WalError::refused(&path))?;
    file.append(&header).map_err(WalError::refused(&path))?;
    file.sync().map_err(WalError::io(&path))?;
    fs.sync_dir(dir).map_err(WalError::io(dir))?;
    Ok((file, ChecksummedPrefix::new(&header)))
}

fn header(number: u64, owner: Option<LogOwner>) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    bytes[12..20].copy_from_slice(&number.to_le_bytes());
    bytes[20..HEADER_BYTES - 4].copy_from_slice(&LogOwner::to_bytes(owner));
    let checksum = crc32c([&bytes[..HEADER_BYTES - 4]]);
    bytes[HEADER_BYTES - 4..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// The first bytes of a file for another owner: a restored log belongs to its new directory. `None`
/// if they do not begin with a sound header that names an owner; then they stay as they are.
#[must_use]
pub fn with_owner(head: &[u8], owner: LogOwner) -> Option<Vec<u8>> {
    let (found, rest) = head.split_first_chunk::<HEADER_BYTES>()?;
    let number = u64_at(found, 12);
    match check_header(found, number) {
        WalHeader::Good {
            bytes: HEADER_BYTES,
            ..
        } => Some([&header(number, Some(owner))[..], rest].concat()),
        _ => None,
    }
}

/// The header of a file, checked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WalHeader {
    Good {
        /// Its length.
        bytes: usize,
        /// The owner that it names.
        owner: Option<LogOwner>,
    },
    /// A later version.
    Version(u32),
    Damaged(&'static str),
}

/// The length of the header that the first bytes of a file announce.
pub(crate) fn header_bytes(bytes: &[u8]) -> usize {
    match bytes.first_chunk::<12>() {
        Some(start) if start[..8] == MAGIC && u32_at(start, 8) == 1 => HEADER_1_BYTES,
        _ => HEADER_BYTES,
    }
}

/// Checks the first bytes of the file with this number.
pub(crate) fn check_header(bytes: &[u8], number: u64) -> WalHeader {
    let len = header_bytes(bytes);
    let Some(bytes) = bytes.get(..len) else {
        return WalHeader::Damaged("the file's header is cut off");
    };
    if bytes[..8] != MAGIC {
        return WalHeader::Damaged("the file does not begin as a log does");
    }
    if crc32c([&bytes[..len - 4]]) != u32_at(bytes, len - 4) {
        return WalHeader::Damaged("the checksum of the file's header is wrong");
    }
    if u32_at(bytes, 8) > FORMAT_VERSION || u32_at(bytes, 8) == 0 {
        return WalHeader::Version(u32_at(bytes, 8));
    }
    if u64_at(bytes, 12) != number {
        return WalHeader::Damaged("the header is that of another file of the log");
    }
    let owner = match bytes[20..].first_chunk() {
        Some(owner) if len == HEADER_BYTES => LogOwner::from_bytes(*owner),
        _ => None,
    };
    WalHeader::Good { bytes: len, owner }
}

/// The number at `at`, which must be inside.
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}
