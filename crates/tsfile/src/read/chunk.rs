//! Chunks and their pages.

use super::input::FileInput;
use crate::bytes::{Cursor, TsFileBytes as _};
use crate::compress::decompress;
use crate::encoding;
use crate::error::{PartError, PartResult, Result};
use crate::kinds::{ChunkCompression, ChunkEncoding, DataType, VECTOR};
use crate::statistics;
use crate::values::{ColumnValues, DeviceColumn};
use std::io::{Read, Seek};
use std::sync::Arc;

/// Most rows of a page; other libraries write 10,000 by default.
pub(crate) const PAGE_ROWS_MAX: usize = 1 << 20;

/// A chunk that is read page by page.
pub(super) struct ChunkRead {
    number: u8,
    compression: ChunkCompression,
    encoding: ChunkEncoding,
    /// Whether each page has statistics, which it has if there are several pages.
    has_statistics: bool,
    at: u64,
    end: u64,
}

/// A page before decoding, with its position.
pub(super) struct EncodedPage {
    bytes: Vec<u8>,
    offset: u64,
}

impl ChunkRead {
    pub(super) fn open<R: Read + Seek>(input: &mut FileInput<R>, offset: u64) -> Result<Self> {
        let end = input.len();
        let (mut chunk, taken) = input.header(offset, end, Self::parse)?;
        chunk.at += offset + taken;
        chunk.end += chunk.at;
        if chunk.end > end {
            return Err(
                PartError::Wrong("a chunk leads past the end of the file").with_offset(offset)
            );
        }
        Ok(chunk)
    }

    /// Parses the header; `at` and `end` count from its end.
    fn parse(cursor: &mut Cursor<'_>) -> PartResult<Self> {
        let has_statistics = match cursor.byte()? & 0x3f {
            1 => true,
            5 => false,
            _ => return Err(PartError::Wrong("there is no chunk")),
        };
        cursor.var_bytes()?;
        let len = cursor.varint32()?;
        Ok(Self {
            has_statistics,
            number: cursor.byte()?,
            compression: ChunkCompression::from_number(cursor.byte()?)?,
            encoding: ChunkEncoding::from_number(cursor.byte()?)?,
            at: 0,
            end: u64::from(len),
        })
    }

    /// The next page; `None` after the last. A page without bytes has no values.
    pub(super) fn page<R: Read + Seek>(
        &mut self,
        input: &mut FileInput<R>,
    ) -> Result<Option<EncodedPage>> {
        if self.at >= self.end {
            return Ok(None);
        }
        let offset = self.at;
        let (number, has_statistics) = (self.number, self.has_statistics);
        let ((len, packed), taken) = input.header(offset, self.end, |cursor| {
            let len = cursor.varint32()?;
            if len == 0 {
                return Ok((0, 0));
            }
            let packed = cursor.varint32()?;
            if has_statistics {
                statistics::skip(cursor, number)?;
            }
            Ok((len, packed))
        })?;
        let begin = offset + taken;
        self.at = begin + u64::from(packed);
        if self.at > self.end {
            return Err(
                PartError::Wrong("a page leads past the end of its chunk").with_offset(offset)
            );
        }
        let bytes = if len == 0 {
            Vec::new()
        } else {
            let packed = input.read(begin, u64::from(packed))?;
            decompress(self.compression, &packed, len as usize)
                .map_err(|part| part.with_offset(offset))?
        };
        Ok(Some(EncodedPage { bytes, offset }))
    }

    /// The times of a page of an aligned time column.
    pub(super) fn times(&self, page: &EncodedPage) -> Result<Vec<i64>> {
        if self.number != VECTOR {
            return Err(
                PartError::Wrong("a time column is of another type").with_offset(page.offset)
            );
        }
        encoding::decode_times(self.encoding, &page.bytes, PAGE_ROWS_MAX)
            .map_err(|part| part.with_offset(page.offset))
    }

    /// The column in a page of an aligned device, for `rows` rows; `None` if no row has a value.
    pub(super) fn column(
        &self,
        page: &EncodedPage,
        name: &Arc<str>,
        rows: usize,
    ) -> Result<Option<DeviceColumn>> {
        self.parse_column(page, name, rows)
            .map_err(|part| part.with_offset(page.offset))
    }

    fn parse_column(
        &self,
        page: &EncodedPage,
        name: &Arc<str>,
        rows: usize,
    ) -> PartResult<Option<DeviceColumn>> {
        if page.bytes.is_empty() {
            return Ok(None);
        }
        let data_type = DataType::from_number(self.number)?;
        let mut cursor = Cursor::new(&page.bytes);
        let marked = usize::try_from(cursor.i32_be()?).unwrap_or(usize::MAX);
        if marked > rows {
            return Err(PartError::Wrong("a page has more values than times"));
        }
        let marks = cursor.take(marked.div_ceil(8))?;
        let is_marked = |row: usize| row < marked && marks[row / 8] & (0x80 >> (row % 8)) != 0;
        let valid: Vec<bool> = (0..rows).map(is_marked).collect();
        let count = valid.iter().filter(|valid| **valid).count();
        if count == 0 {
            return Ok(None);
        }
        let values = encoding::decode(self.encoding, data_type, cursor.rest(), count)?;
        let all = count == rows;
        Ok(Some(DeviceColumn {
            name: name.clone(),
            data_type,
            values: if all { values } else { values.spread(&valid) },
            valid: (!all).then_some(valid),
        }))
    }

    /// The times and values in a page of an unaligned series.
    pub(super) fn series(
        &self,
        page: &EncodedPage,
        name: &Arc<str>,
    ) -> Result<(Vec<i64>, DeviceColumn)> {
        let parse = || {
            let data_type = DataType::from_number(self.number)?;
            let mut cursor = Cursor::new(&page.bytes);
            if cursor.is_empty() {
                let values = ColumnValues::empty(data_type.shape());
                return Ok((Vec::new(), data_type, values));
            }
            let len = cursor.varint32()? as usize;
            // Such a chunk says the encoding of its values only; times have always been this one.
            let times =
                encoding::decode_times(ChunkEncoding::Ts2Diff, cursor.take(len)?, PAGE_ROWS_MAX)?;
            let values = encoding::decode(self.encoding, data_type, cursor.rest(), times.len())?;
            Ok((times, data_type, values))
        };
        let (times, data_type, values) =
            parse().map_err(|part: PartError| part.with_offset(page.offset))?;
        let column = DeviceColumn {
            name: name.clone(),
            data_type,
            values,
            valid: None,
        };
        Ok((times, column))
    }
}
