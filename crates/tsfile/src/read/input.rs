//! A file that is read at any position, with a limit on the total bytes read.
//!
//! Reading a whole file visits every byte about once. An index that leads to the same bytes
//! repeatedly would make a small file endless, so the visited bytes are counted.

use crate::bytes::Cursor;
use crate::error::{PartError, PartResult, Result, TsFileError};
use std::io::{Read, Seek, SeekFrom};

/// Bytes to read in order to find the length of a header.
const HEADER_BYTES: usize = 512;

/// The file, its length, and how much may still be read.
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

    /// Reads `len` bytes at `offset`. Allocates them only after it has checked that the file has
    /// them.
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

    /// What `parse` returns for the bytes between `offset` and `end`, and how many it consumed.
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
