//! Writes the columns of a device's rows as pages and chunks.

use crate::bytes::{put_i32, put_i64, put_uvar, put_var_text};
use crate::compress::compress;
use crate::encoding;
use crate::kinds::{ChunkCompression, ChunkEncoding, DataType, VECTOR};
use crate::statistics::ChunkStatistics;
use crate::values::ColumnValues;

const TIME_MASK: u8 = 0x80;
const VALUE_MASK: u8 = 0x40;

/// A column of a device while its rows are written.
pub(super) struct ColumnWriter {
    name: String,
    /// `None` for the times.
    data_type: Option<DataType>,
    pages: Vec<PackedPage>,
    chunks: Vec<ChunkLocation>,
}

/// A compressed page; empty if no row has a value.
struct PackedPage {
    len: usize,
    packed: Vec<u8>,
    statistics: ChunkStatistics,
}

/// A chunk that was written.
struct ChunkLocation {
    offset: u64,
    statistics: ChunkStatistics,
}

impl ColumnWriter {
    pub(super) fn for_times() -> Self {
        Self::new(String::new(), None)
    }

    pub(super) fn for_field(name: &str, data_type: DataType) -> Self {
        Self::new(name.to_owned(), Some(data_type))
    }

    fn new(name: String, data_type: Option<DataType>) -> Self {
        Self {
            name,
            data_type,
            pages: Vec::new(),
            chunks: Vec::new(),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Appends a page of times; returns its compressed size.
    pub(super) fn push_times(&mut self, times: &[i64]) -> usize {
        let mut bytes = Vec::new();
        encoding::encode_times(times, &mut bytes);
        let mut statistics = ChunkStatistics::for_times();
        statistics.add(times, None);
        self.push(bytes, statistics)
    }

    /// Appends a page with the values of the rows that have one; returns its compressed size.
    pub(super) fn push_values(
        &mut self,
        times: &[i64],
        values: &ColumnValues,
        valid: &[bool],
    ) -> usize {
        let Some(data_type) = self.data_type else {
            return 0;
        };
        let mut statistics = ChunkStatistics::new(data_type);
        if values.is_empty() {
            return self.push(Vec::new(), statistics);
        }
        let at = times.iter().zip(valid).filter(|(_, valid)| **valid);
        let at: Vec<i64> = at.map(|(time, _)| *time).collect();
        statistics.add(&at, Some(values));
        let mut bytes = Vec::new();
        put_i32(valid.len() as i32, &mut bytes);
        for eight in valid.chunks(8) {
            let mark = |(at, valid): (usize, &bool)| u8::from(*valid) << (7 - at);
            bytes.push(eight.iter().enumerate().map(mark).sum());
        }
        encoding::encode(values, &mut bytes);
        self.push(bytes, statistics)
    }

    fn push(&mut self, bytes: Vec<u8>, statistics: ChunkStatistics) -> usize {
        let packed = if bytes.is_empty() {
            Vec::new()
        } else {
            compress(&bytes)
        };
        let size = packed.len();
        self.pages.push(PackedPage {
            len: bytes.len(),
            packed,
            statistics,
        });
        size
    }

    /// Appends the pages as a chunk that begins at `offset`.
    pub(super) fn put_chunk(&mut self, offset: u64, out: &mut Vec<u8>) {
        let mut pages = std::mem::take(&mut self.pages);
        let mut statistics = match self.data_type {
            Some(data_type) => ChunkStatistics::new(data_type),
            None => ChunkStatistics::for_times(),
        };
        for page in &pages {
            statistics.merge(page.statistics.clone());
        }
        if statistics.count() == 0 {
            // A chunk without values has no pages, but readers count chunks, so it must exist.
            pages.clear();
        }
        let mut body = Vec::new();
        for page in &pages {
            put_uvar(page.len as u32, &mut body);
            if page.len > 0 {
                put_uvar(page.packed.len() as u32, &mut body);
                if pages.len() > 1 {
                    page.statistics.put(&mut body);
                }
                body.extend_from_slice(&page.packed);
            }
        }
        let kind = if pages.len() > 1 { 1 } else { 5 };
        out.push(kind | self.mask());
        put_var_text(&self.name, out);
        put_uvar(body.len() as u32, out);
        out.extend([
            self.data_type.map_or(VECTOR, DataType::number),
            ChunkCompression::Lz4.number(),
            self.data_type
                .map_or(ChunkEncoding::Ts2Diff, encoding::written)
                .number(),
        ]);
        out.extend_from_slice(&body);
        self.chunks.push(ChunkLocation { offset, statistics });
    }

    fn mask(&self) -> u8 {
        if self.data_type.is_none() {
            TIME_MASK
        } else {
            VALUE_MASK
        }
    }

    /// The metadata of the series; `None` if it has no value at all.
    pub(super) fn metadata(&self) -> Option<Vec<u8>> {
        let mut chunks = self.chunks.iter();
        let mut statistics = chunks.next()?.statistics.clone();
        for chunk in chunks {
            statistics.merge(chunk.statistics.clone());
        }
        if statistics.count() == 0 {
            return None;
        }
        let has_several = self.chunks.len() > 1;
        let mut list = Vec::new();
        for chunk in &self.chunks {
            put_i64(chunk.offset as i64, &mut list);
            if has_several {
                chunk.statistics.put(&mut list);
            }
        }
        let mut out = vec![u8::from(has_several) | self.mask()];
        put_var_text(&self.name, &mut out);
        out.push(self.data_type.map_or(VECTOR, DataType::number));
        put_uvar(list.len() as u32, &mut out);
        statistics.put(&mut out);
        out.extend_from_slice(&list);
        Some(out)
    }
}
