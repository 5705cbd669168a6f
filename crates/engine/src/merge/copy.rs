//! Pages that come out of a merge as they are: nothing of another source stands among their rows.
//!
//! Compaction copies them undecoded. A page qualifies when all of its rows come next, one after
//! the other: the head of every other source is after its last row, no tombstone touches it, and
//! its row group has just the columns of the merge.

use super::MergeStream;
use crate::error::{EngineError, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use marigram_model::{ColumnCodec, ColumnId, SeriesRun, SortedRows};
use marigram_segment::{PageSource, Segment, SegmentColumn};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Which pages are worth copying: small ones are better joined with their neighbours.
#[derive(Clone, Debug)]
pub(crate) struct CopyRule {
    /// Rows of a page.
    pub rows: RangeInclusive<u32>,
    /// A page with fewer rows still counts as full when one of its columns has so many encoded
    /// bytes: pages of long texts are cut by bytes.
    pub bytes_min: u32,
    /// Of each column of the merge how its pages must be encoded and compressed, where that is
    /// asked for. None at all: any form will do.
    pub codecs: Vec<ColumnCodec>,
}

impl CopyRule {
    /// Whether the values of a page of a segment stand there as is asked for.
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

/// What a merge gives to those who can copy pages.
#[derive(Debug)]
pub(crate) enum MergedPiece {
    /// Rows, sorted and unique.
    Rows(SortedRows),
    /// A page, all of whose rows come next.
    Page(WholePage),
}

/// A page of all columns of a segment.
#[derive(Debug)]
pub(crate) struct WholePage {
    pub(super) segment: Arc<Segment>,
    pub(super) group: usize,
    pub(super) page: usize,
    /// Series of its rows, in row order.
    pub(crate) runs: Vec<SeriesRun>,
}

impl WholePage {
    /// Where it stands.
    pub(crate) fn source(&self) -> PageSource<'_> {
        PageSource {
            segment: &self.segment,
            group: self.group,
            page: self.page,
        }
    }

    /// Its rows.
    pub(crate) fn rows(&self) -> u32 {
        self.runs.iter().map(|run| run.rows).sum()
    }

    /// Its rows, decoded, and the encoded bytes read for them.
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
    /// The next rows, or the next page that `rule` lets be copied; `None` at the end.
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

    /// Whether a page that `rule` lets be copied comes next, with nothing among its rows. Heads of
    /// other sources are made exact as far as that is needed to tell.
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
