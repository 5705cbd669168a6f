//! A file that is read at any place, with a bound on how much is read of it.
//!
//! A whole file is read by visiting every byte about once. An index that leads to the same bytes
//! again and again would make a small file endless, so what is visited is counted.

use crate::bytes::Cursor;
use crate::error::{PartError, PartResult, Result, TsFileError};
use std::io::{Read, Seek, SeekFrom};

/// Bytes that are read to find out how long a header is.
const HEADER_BYTES: usize = 512;

/// The file, its length, and how much may yet be read.
pub(super) struct FileInput<R> {
    inner: R,
    len: u64,
    left: u64,
}

impl<R: Read + Seek> FileInput<R> {
    pub(super) fn new(mut inner: R) -> Result<Self> {
        let len = inner.seek(SeekFrom::End(0))?;
        Ok(Self {
            inner,
            len,
            left: len.saturating_mul(2).saturating_add(1 << 16),
        })
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// `len` bytes at `offset`. They are asked for after it is known that the file has them.
    pub(super) fn read(&mut self, offset: u64, len: u64) -> Result<Vec<u8>> {
        self.visit(offset, len)?;
        self.fetch(offset, len as usize)
    }

    fn visit(&mut self, offset: u64, len: u64) -> Result<()> {
        if offset.checked_add(len).is_none_or(|end| end > self.len) {
            return Err(PartError::Wrong("it leads past the end of the file").with_offset(offset));
        }
        self.left = self.left.checked_sub(len).ok_or_else(|| {
            PartError::Wrong("the index leads to the same bytes again and again")
                .with_offset(offset)
        })?;
        Ok(())
    }

    fn fetch(&mut self, offset: u64, len: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        self.inner.seek(SeekFrom::Start(offset))?;
        self.inner
            .read_exact(&mut bytes)
            .map_err(|error| match error.kind() {
                std::io::ErrorKind::UnexpectedEof => PartError::Short.with_offset(offset),
                _ => TsFileError::Io(error),
            })?;
        Ok(bytes)
    }

    /// What `parse` reads from the bytes between `offset` and `end`, and how many it took.
    pub(super) fn header<T>(
        &mut self,
        offset: u64,
        end: u64,
        parse: impl Fn(&mut Cursor<'_>) -> PartResult<T>,
    ) -> Result<(T, u64)> {
        let all = end.min(self.len).saturating_sub(offset);
        let mut window = HEADER_BYTES as u64;
        loop {
            let bytes = self.fetch(offset, window.min(all) as usize)?;
            let mut cursor = Cursor::new(&bytes);
            match parse(&mut cursor) {
                Ok(parsed) => {
                    let taken = (bytes.len() - cursor.remaining()) as u64;
                    self.visit(offset, taken)?;
                    return Ok((parsed, taken));
                }
                Err(PartError::Short) if window < all => {
                    self.visit(offset, window)?;
                    window *= 4;
                }
                Err(part) => return Err(part.with_offset(offset)),
            }
        }
    }
}
