//! Pages that a merge passes on unchanged: no row of another source comes between their rows.
//!
//! Compaction copies them without decoding. A page qualifies if all of its rows come next, one
//! after another: the head of every other source is after its last row, no tombstone touches it,
//! and its row group has exactly the columns of the merge.

use super::MergeStream;
use crate::error::{EngineError, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use marigram_model::{ColumnCodec, ColumnId, SeriesRun, SortedRows};
use marigram_segment::{PageSource, Segment, SegmentColumn};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Which pages are worth copying; small ones should rather be joined with their neighbours.
#[derive(Clone, Debug)]
pub(crate) struct CopyRule {
    /// The number of rows that a page must have.
    pub rows: RangeInclusive<u32>,
    /// A page with fewer rows also counts as full if one of its columns has this many encoded
    /// bytes: pages of long texts are limited by bytes.
    pub bytes_min: u32,
    /// The required encoding and compressor of each column of the merge; if empty, any is accepted.
    pub codecs: Vec<ColumnCodec>,
}

impl CopyRule {
    /// Whether a segment's page has the required encodings.
    pub(super) fn suits(
        &self,
        segment: &Segment,
        group: usize,
        page: usize,
        columns: &[SegmentColumn],
    ) -> Result<bool> {
        for (codec, column) in self.codecs.iter().zip(columns) {
            if *codec == ColumnCodec::default() {
                continue;
            }
            let header = segment.page_header(group, column.id, page)?;
            let differs = codec.encoding.is_some_and(|asked| asked != header.encoding)
                || codec
                    .compressor
                    .is_some_and(|asked| asked != header.compressor);
            if differs {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// What a merge returns to callers that can copy pages.
#[derive(Debug)]
pub(crate) enum MergedPiece {
    /// Rows, sorted and unique.
    Rows(SortedRows),
    /// A page, all of whose rows come next.
    Page(WholePage),
}

/// A page with all columns of a segment.
#[derive(Debug)]
pub(crate) struct WholePage {
    pub(super) segment: Arc<Segment>,
    pub(super) group: usize,
    pub(super) page: usize,
    /// The series of its rows, in row order.
    pub(crate) runs: Vec<SeriesRun>,
}

impl WholePage {
    /// Its location.
    pub(crate) fn source(&self) -> PageSource<'_> {
        PageSource {
            segment: &self.segment,
            group: self.group,
            page: self.page,
        }
    }

    /// Number of its rows.
    pub(crate) fn rows(&self) -> u32 {
        self.runs.iter().map(|run| run.rows).sum()
    }

    /// Its decoded rows, and the encoded bytes read for them.
    ///
    /// # Errors
    /// Damage or I/O errors.
    pub(crate) fn read(&self) -> Result<(SortedRows, u64)> {
        let (segment, rows) = (&self.segment, self.rows() as usize);
        let columns = &segment.row_groups()[self.group].columns;
        let ids = std::iter::once(ColumnId::TIME).chain(columns.iter().map(|column| column.id));
        let (mut arrays, mut bytes) = (Vec::with_capacity(columns.len() + 1), 0);
        for id in ids {
            let array = segment.read_page(self.group, id, self.page)?;
            let metas = segment.pages(self.group, id)?;
            let meta = metas.as_ref().and_then(|metas| metas.get(self.page));
            bytes += meta.map_or(0, |meta| u64::from(meta.bytes));
            if array.len() != rows {
                return Err(EngineError::Corrupt {
                    path: segment.path().to_owned(),
                    offset: meta.map_or(0, |meta| meta.offset),
                    reason: format!("a page of {} rows; {rows} are expected", array.len()),
                });
            }
            arrays.push(array);
        }
        let columns = arrays.split_off(1);
        let times = arrays[0].as_primitive::<Int64Type>().values().clone();
        let runs = self.runs.clone();
        Ok((
            SortedRows {
                runs,
                times,
                columns,
            },
            bytes,
        ))
    }
}

impl MergeStream {
    /// The next rows, or the next page that `rule` allows to copy; `None` at the end.
    ///
    /// # Errors
    /// As [`next_rows`](Self::next_rows).
    pub(crate) fn next_piece(&mut self, rule: &CopyRule) -> Result<Option<MergedPiece>> {
        let piece = self.gather_piece(rule);
        self.scope.tell();
        piece
    }

    fn gather_piece(&mut self, rule: &CopyRule) -> Result<Option<MergedPiece>> {
        loop {
            if let Some(rows) = self.assembler.ready() {
                return Ok(Some(MergedPiece::Rows(rows)));
            }
            if self.page_comes_whole(rule)? {
                if let Some(rows) = self.assembler.finish() {
                    return Ok(Some(MergedPiece::Rows(rows)));
                }
                if let Some(page) = self.take_page() {
                    return Ok(Some(MergedPiece::Page(page)));
                }
            }
            if !self.step()? {
                return Ok(self.assembler.finish().map(MergedPiece::Rows));
            }
        }
    }

    /// Whether a page that `rule` allows to copy comes next, without other rows among its own.
    /// Makes the heads of other sources exact as far as necessary.
    fn page_comes_whole(&mut self, rule: &CopyRule) -> Result<bool> {
        let Some((_, at)) = self.heap.first() else {
            return Ok(false);
        };
        let Some(end) = self.cursors[at as usize].whole_page_end(&self.scope, rule)? else {
            return Ok(false);
        };
        while let Some((head, other)) = self.heap.second() {
            if head.key > end {
                return Ok(true);
            }
            if head.exact {
                return Ok(false);
            }
            let cursor = &mut self.cursors[other as usize];
            cursor.open(&self.scope)?;
            self.heap.replace_second(cursor.head());
        }
        Ok(true)
    }

    fn take_page(&mut self) -> Option<WholePage> {
        let (_, at) = self.heap.first()?;
        let cursor = &mut self.cursors[at as usize];
        let page = cursor.take_page()?;
        self.heap.replace_first(cursor.head());
        Some(page)
    }
}

#[cfg(test)]
mod tests;
