//! The files of the log: their names and their headers (`docs/formats/wal.md`).

use crate::error::WalError;
use marigram_codec::{ChecksummedPrefix, crc32c};
use marigram_env::{File, LogStore};
use std::path::Path;
use std::sync::Arc;

/// The version of the format that is written, and the highest that is read.
pub const FORMAT_VERSION: u32 = 1;

pub(crate) const HEADER_BYTES: usize = 24;
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
) -> Result<(Arc<dyn File>, ChecksummedPrefix), WalError> {
    let path = dir.join(file_name(number));
    let header = header(number);
    let file = fs.create(&path).map_err(WalError::refused(&path))?;
    file.append(&header).map_err(WalError::refused(&path))?;
    file.sync().map_err(WalError::io(&path))?;
    fs.sync_dir(dir).map_err(WalError::io(dir))?;
    Ok((file, ChecksummedPrefix::new(&header)))
}

fn header(number: u64) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    bytes[12..20].copy_from_slice(&number.to_le_bytes());
    let checksum = crc32c([&bytes[..20]]);
    bytes[20..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// The header of a file, checked.
#[derive(Debug)]
pub(crate) enum WalHeader {
    Good,
    /// A later version.
    Version(u32),
    Damaged(&'static str),
}

/// Checks the first bytes of the file with this number.
pub(crate) fn check_header(bytes: &[u8], number: u64) -> WalHeader {
    let Some(bytes) = bytes.first_chunk::<HEADER_BYTES>() else {
        return WalHeader::Damaged("the file's header is cut off");
    };
    let word =
        |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    if bytes[..8] != MAGIC {
        return WalHeader::Damaged("the file does not begin as a log does");
    }
    if crc32c([&bytes[..20]]) != word(20) {
        return WalHeader::Damaged("the checksum of the file's header is wrong");
    }
    if word(8) != FORMAT_VERSION {
        return WalHeader::Version(word(8));
    }
    if bytes[12..20] != number.to_le_bytes() {
        return WalHeader::Damaged("the header is that of another file of the log");
    }
    WalHeader::Good
}
