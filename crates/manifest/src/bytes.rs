//! Numbers and text as bytes: little-endian, texts and lists with their length before them.
//!
//! Invariant: reading never panics, and never reserves more memory than bytes are left.

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

/// Reads a record from its start.
#[derive(Debug)]
pub(crate) struct RecordReader<'a> {
    rest: &'a [u8],
}

impl<'a> RecordReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Fails if bytes are left over.
    pub(crate) fn finish(self) -> Result<(), MalformedRecord> {
        if self.rest.is_empty() {
            return Ok(());
        }
        malformed(format!(
            "{} bytes are left over at the record's end",
            self.rest.len()
        ))
    }

    /// Whether nothing is left.
    pub(crate) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], MalformedRecord> {
        let Some((array, rest)) = self.rest.split_first_chunk::<N>() else {
            return malformed("the record ends early");
        };
        self.rest = rest;
        Ok(*array)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, MalformedRecord> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, MalformedRecord> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, MalformedRecord> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, MalformedRecord> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn i64(&mut self) -> Result<i64, MalformedRecord> {
        self.array().map(i64::from_le_bytes)
    }

    /// A truth value: one byte, 0 or 1.
    pub(crate) fn flag(&mut self) -> Result<bool, MalformedRecord> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            other => malformed(format!("{other} stands where only 0 or 1 may")),
        }
    }

    /// The length (u32) of a list whose items take at least `item_bytes` each.
    pub(crate) fn count(&mut self, item_bytes: usize) -> Result<usize, MalformedRecord> {
        let count = self.u32()? as usize;
        if count > self.rest.len() / item_bytes {
            return malformed(format!(
                "a list of {count} items does not fit into the record"
            ));
        }
        Ok(count)
    }

    /// Bytes with their length before them, to be read on their own.
    pub(crate) fn part(&mut self) -> Result<RecordReader<'a>, MalformedRecord> {
        let len = self.count(1)?;
        let (part, rest) = self.rest.split_at(len);
        self.rest = rest;
        Ok(RecordReader { rest: part })
    }

    pub(crate) fn text(&mut self) -> Result<String, MalformedRecord> {
        match str::from_utf8(self.part()?.rest) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => malformed("a text is not UTF-8"),
        }
    }
}

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
