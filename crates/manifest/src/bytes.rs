//! Numbers and text as bytes: little-endian, texts and lists with their length before them.
//!
//! Invariant: reading never panics, and never reserves more memory than bytes are left.

use marigram_codec::bytes::{BoundedReader, ReadError};
use std::fmt;

/// What is wrong with the bytes of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MalformedRecord(pub(crate) String);

impl fmt::Display for MalformedRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

pub(crate) fn malformed<T>(reason: impl Into<String>) -> Result<T, MalformedRecord> {
    Err(MalformedRecord(reason.into()))
}

impl From<ReadError> for MalformedRecord {
    fn from(error: ReadError) -> Self {
        Self(error.reason().to_owned())
    }
}

/// Reads a record from its start.
pub(crate) type RecordReader<'a> = BoundedReader<'a, MalformedRecord>;

/// Appends the length of a list (u32).
pub(crate) fn put_count(len: usize, out: &mut Vec<u8>) {
    let len = u32::try_from(len).expect("lists of a record are far shorter than 2^32");
    out.extend_from_slice(&len.to_le_bytes());
}

/// Appends a text with its length.
pub(crate) fn put_text(text: &str, out: &mut Vec<u8>) {
    put_count(text.len(), out);
    out.extend_from_slice(text.as_bytes());
}
