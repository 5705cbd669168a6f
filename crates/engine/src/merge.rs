//! Merging: combines the rows of one table from any number of sources, sorted by (series, time),
//! each once.
//!
//! A source is a chunk of a memtable or a table's part of a segment. Rows of two sources with the
//! same (series, time) become one: for each field, the newest value that is not null wins. Queries
//! and compaction both read through this module, so they cannot disagree about the content; a flush
//! sorts instead (see `flush`).
//!
//! How it works: each source has a [`cursor`] with its smallest row that has not been taken, or
//! with a lower bound of it while the page is not decoded. A heap orders the cursors. The first
//! cursor supplies all its rows up to the second one's as one slice; only rows that several sources
//! have are handled individually. Slices of whole pages are passed on without a copy
//! ([`assemble`]).
//!
//! Invariants: a cursor whose bound is not exact is opened before a row at or after its bound is
//! returned; at most one page per column and source is decoded, in addition to those that the
//! current batch holds; pages are decoded only when the merge reaches them.

mod assemble;
mod block;
mod bounds;
mod coincide;
mod copy;
mod cursor;
mod cut;
mod disjoint_sources;
mod gather;
mod heap;
mod interleave;
mod key;
mod metrics;
mod order;
mod overlay;
mod page_plan;
mod page_read;
mod scope;
mod source;
mod source_totals;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use bounds::ColumnBounds;
pub(crate) use coincide::{are_known_apart, series_that_share_rows};
pub(crate) use copy::{CopyRule, MergedPiece, WholePage};
pub(crate) use disjoint_sources::DisjointSources;
pub use disjoint_sources::{PageNeed, PageOutline, PageReducer, PageRows, PageTotals, RowSpan};
pub use metrics::ScanMetrics;
pub(crate) use page_plan::selected_runs;
pub(crate) use source::{MergeSource, columns_of};

use crate::error::Result;
use crate::memory::{Holder, MemoryAccountant};
use crate::text::BATCH_TEXT_BYTES;
use assemble::BatchAssembler;
use bounds::SourceExtents;
use cursor::SourceCursor;
use heap::CursorHeap;
use key::RowKey;
use marigram_model::{SeriesRun, SortedRows, TimeRange};
use marigram_segment::SegmentColumn;
use roaring::RoaringBitmap;
use scope::MergeScope;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// What to read, and how.
#[derive(Clone, Debug)]
pub(crate) struct MergeOptions {
    /// Columns of the rows, in this order; for a source without one, they are null.
    pub columns: Vec<SegmentColumn>,
    /// Rows outside are left out.
    pub range: TimeRange,
    /// Series to read; `None`: all.
    pub series: Option<Arc<RoaringBitmap>>,
    /// Bounds on values, which may rule out whole pages.
    pub bounds: Vec<ColumnBounds>,
    /// Approximate number of rows in a batch.
    pub batch_rows: usize,
    /// Approximate bytes of text in a batch.
    pub batch_text_bytes: usize,
    /// The holder of the memory for decoded pages.
    pub memory: Option<(Arc<MemoryAccountant>, Holder)>,
    /// Counters.
    pub metrics: Option<Arc<ScanMetrics>>,
    /// Series whose pages this merge counts in `metrics`: merges that share a row group divide the
    /// count of its pages.
    pub territory: RangeInclusive<u32>,
}

impl MergeOptions {
    /// All rows of all series.
    pub(crate) fn all(columns: Vec<SegmentColumn>, batch_rows: usize) -> Self {
        Self {
            columns,
            range: TimeRange::ALL,
            series: None,
            bounds: Vec::new(),
            batch_rows,
            batch_text_bytes: BATCH_TEXT_BYTES,
            memory: None,
            metrics: None,
            territory: 0..=u32::MAX,
        }
    }
}

/// The rows of several sources as one sorted stream.
#[derive(Debug)]
pub(crate) struct MergeStream {
    scope: MergeScope,
    cursors: Vec<SourceCursor>,
    heap: CursorHeap,
    assembler: BatchAssembler,
    runs: Vec<SeriesRun>,
}

impl MergeStream {
    /// A merge of `sources`, all of which must belong to one table.
    pub(crate) fn new(sources: Vec<MergeSource>, options: MergeOptions) -> Self {
        let extents = if options.bounds.is_empty() {
            SourceExtents::default()
        } else {
            SourceExtents::from_sources(&sources)
        };
        let (batch_rows, batch_text_bytes) = (options.batch_rows, options.batch_text_bytes);
        let scope = MergeScope::new(options, extents);
        let assembler = BatchAssembler::new(
            scope.columns.clone(),
            batch_rows,
            batch_text_bytes,
            scope.memory.clone(),
        );
        let cursors: Vec<SourceCursor> = sources
            .into_iter()
            .enumerate()
            .map(|(at, source)| SourceCursor::new(at as u32, source, &scope))
            .collect();
        let heap = CursorHeap::new(cursors.iter().enumerate().filter_map(|(at, cursor)| {
            let head = cursor.head()?;
            Some((head, at as u32))
        }));
        Self {
            scope,
            cursors,
            heap,
            assembler,
            runs: Vec::new(),
        }
    }

    /// Releases decoded pages while no rows are taken. Reading on decodes them again.
    pub(crate) fn release_pages(&mut self) {
        self.cursors.iter_mut().for_each(SourceCursor::release);
    }

    /// The next rows, sorted and unique; `None` at the end.
    ///
    /// # Errors
    /// Damage or I/O errors of the pages that are read, or no memory for them.
    pub(crate) fn next_rows(&mut self) -> Result<Option<SortedRows>> {
        // Planning and reading pages does not count as merging time.
        let before_ns = self.scope.spent_ns();
        let (rows, took_ns) = ScanMetrics::timed(|| self.gather());
        let others_ns = self.scope.spent_ns() - before_ns;
        let own_ns = took_ns.saturating_sub(others_ns);
        ScanMetrics::add(&self.scope.metrics.merging_ns, own_ns);
        self.scope.tell();
        // Operators above find series and times by binary search.
        debug_assert!(
            rows.iter().flatten().all(SortedRows::is_sorted),
            "a merge gives sorted, unique rows"
        );
        rows
    }

    fn gather(&mut self) -> Result<Option<SortedRows>> {
        loop {
            if let Some(rows) = self.assembler.ready() {
                return Ok(Some(rows));
            }
            if !self.step()? {
                return Ok(self.assembler.finish());
            }
        }
    }

    /// Passes rows of the first source to the assembler, or makes its head exact; `false` at the
    /// end.
    fn step(&mut self) -> Result<bool> {
        let Some((head, at)) = self.heap.first() else {
            return Ok(false);
        };
        let cursor = &mut self.cursors[at as usize];
        if !head.exact {
            cursor.open(&self.scope)?;
            self.heap.replace_first(cursor.head());
            return Ok(true);
        }
        let bound = self.heap.second_key().unwrap_or(RowKey::END);
        // What is taken up to the bound would otherwise come out of order.
        debug_assert!(head.key <= bound, "the first head is the smallest");
        if bound == head.key {
            self.merge_equal(head.key)?;
            return Ok(true);
        }
        if self.take_interleaved(bound)? {
            return Ok(true);
        }
        let cursor = &mut self.cursors[at as usize];
        let batch_rows = self.assembler.batch_rows();
        let (block, start, len) = cursor.take(bound, batch_rows, &self.scope, &mut self.runs)?;
        // A merge that takes nothing would go round for ever.
        debug_assert!(len > 0, "a step takes rows");
        self.heap.replace_first(cursor.head());
        self.assembler.push_slice(&block, start, len, &self.runs);
        Ok(true)
    }

    /// Takes the row `key` from all sources that have it.
    fn merge_equal(&mut self, key: RowKey) -> Result<()> {
        let mut holders = Vec::new();
        while let Some((head, at)) = self.heap.first() {
            if head.key != key {
                break;
            }
            self.heap.replace_first(None);
            holders.push(at);
        }
        let bound = self.heap.first().map_or(RowKey::END, |(head, _)| head.key);
        holders.sort_by_key(|at| std::cmp::Reverse(self.cursors[*at as usize].rank()));
        let taken = overlay::take_equal(
            &mut self.cursors,
            &holders,
            bound,
            &self.scope,
            &mut self.assembler,
        )?;
        self.scope.metrics.add_merged(taken);
        for at in holders {
            if let Some(head) = self.cursors[at as usize].head() {
                self.heap.push(head, at);
            }
        }
        Ok(())
    }
}
