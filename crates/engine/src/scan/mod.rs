//! Scans: a table's rows of some series and times, in parts that can be read in parallel.
//!
//! A part is a set of series of one shard, so each part is sorted by (series, time) and no series
//! is split. Segments are skipped by the series and times in their manifest entries before their
//! files are touched; the merge handles the rest.

mod edges;
mod newest;
mod reduce;
mod sources;
mod split;
#[cfg(test)]
mod tests;

pub use crate::merge::{
    ColumnBounds, PageNeed, PageOutline, PageReducer, PageRows, PageTotals, RowSpan, ScanMetrics,
};
pub use edges::EdgeRequest;
pub(crate) use edges::edge_rows;
pub(crate) use newest::{combine, newest_rows};
pub use reduce::ReducePartition;

use crate::error::Result;
use crate::filter::SeriesSelection;
use crate::memory::{Holder, MemoryAccountant};
use crate::merge::{MergeOptions, MergeSource, MergeStream};
use crate::text::BATCH_TEXT_BYTES;
use crate::view::ShardView;
use marigram_model::{ColumnId, SortedRows, TableId, TimeRange};
use marigram_segment::SegmentColumn;
use roaring::RoaringBitmap;
use sources::{chunks_of, sources_of, truncate};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// What a scan reads.
#[derive(Clone, Debug)]
pub struct ScanRequest {
    /// Series to read.
    pub selection: SeriesSelection,
    /// Times to read, ns.
    pub range: TimeRange,
    /// Fields to return, in this order; may be empty (times and series only).
    pub columns: Vec<ColumnId>,
    /// Bounds on values, which may rule out pages.
    pub bounds: Vec<ColumnBounds>,
    /// Approximate number of rows in a batch.
    pub batch_rows: usize,
    /// Approximate number of partitions to create (never splits a series).
    pub partitions: usize,
    /// Stop after this many rows in each partition.
    pub limit: Option<usize>,
}

/// A part of a scan: a set of series of one shard, sorted by (series, time).
#[derive(Debug)]
pub struct ScanPartition {
    shard: usize,
    series: Arc<RoaringBitmap>,
    /// `None` when the limit is reached.
    merge: Option<MergeStream>,
    rows_left: usize,
    metrics: Arc<ScanMetrics>,
}

impl ScanPartition {
    /// The shard of its series.
    pub fn shard(&self) -> usize {
        self.shard
    }

    /// The series of this part.
    pub fn series(&self) -> &RoaringBitmap {
        &self.series
    }

    /// Releases decoded pages, for a reader that currently takes no rows. Reading on decodes them
    /// again.
    pub fn release_pages(&mut self) {
        if let Some(merge) = &mut self.merge {
            merge.release_pages();
        }
    }

    /// The next rows; `None` at the end. The columns are those of the request; a field that no
    /// source has is null.
    ///
    /// # Errors
    /// Damage or I/O errors in a page that must be read, or no memory for it.
    pub fn next_rows(&mut self) -> Result<Option<SortedRows>> {
        let Some(merge) = &mut self.merge else {
            return Ok(None);
        };
        let Some(mut rows) = merge.next_rows()? else {
            self.merge = None;
            return Ok(None);
        };
        if rows.len() >= self.rows_left {
            truncate(&mut rows, self.rows_left);
            self.merge = None;
        }
        self.rows_left -= rows.len();
        ScanMetrics::add(&self.metrics.rows_returned, rows.len() as u64);
        Ok((!rows.is_empty()).then_some(rows))
    }
}

/// What one shard contributes to a scan.
#[derive(Debug)]
pub(crate) struct ShardScan {
    shard: usize,
    series: RoaringBitmap,
    sources: Vec<MergeSource>,
}

impl ShardScan {
    /// Finds what `request` must read in a shard.
    ///
    /// # Errors
    /// If a segment that must be read cannot be opened.
    pub(crate) fn new(
        view: &ShardView,
        table: TableId,
        request: &ScanRequest,
        metrics: &ScanMetrics,
    ) -> Result<Self> {
        let series = request
            .selection
            .shards
            .get(view.shard)
            .cloned()
            .unwrap_or_default();
        ScanMetrics::add(&metrics.series_selected, series.len());
        ScanMetrics::add(&metrics.segments_total, view.segments.len() as u64);
        let mut sources = sources_of(view, table, &series, request.range)?;
        let segments = sources.len();
        ScanMetrics::add(
            &metrics.segments_pruned,
            (view.segments.len() - segments) as u64,
        );
        if !series.is_empty() {
            sources.extend(chunks_of(view, request.range));
        }
        Ok(Self {
            shard: view.shard,
            series,
            sources,
        })
    }
}

/// Series of a shard, and where their rows are.
#[derive(Debug)]
struct ShardPart {
    shard: usize,
    series: Arc<RoaringBitmap>,
    sources: Vec<MergeSource>,
    territory: RangeInclusive<u32>,
}

/// Divides the shards' contributions into about `request.partitions` parts.
fn parts(shards: Vec<ShardScan>, request: &ScanRequest) -> Result<Vec<ShardPart>> {
    let shards: Vec<ShardScan> = shards
        .into_iter()
        .filter(|s| !s.series.is_empty() && !s.sources.is_empty())
        .collect();
    let territories = split::territories(
        shards
            .iter()
            .map(|shard| (&shard.series, shard.sources.as_slice())),
        request.range,
        request.partitions,
    )?;
    let mut all = Vec::new();
    for (shard, territories) in shards.into_iter().zip(territories) {
        for territory in territories {
            let series = within(&shard.series, &territory);
            if !series.is_empty() {
                all.push(ShardPart {
                    shard: shard.shard,
                    series: Arc::new(series),
                    sources: shard.sources.clone(),
                    territory,
                });
            }
        }
    }
    Ok(all)
}

/// Creates about `request.partitions` partitions from the shards' contributions.
///
/// # Errors
/// Damage or I/O errors in the series directories that are read.
pub(crate) fn partitions(
    shards: Vec<ShardScan>,
    columns: &[SegmentColumn],
    request: &ScanRequest,
    memory: &Arc<MemoryAccountant>,
    metrics: &Arc<ScanMetrics>,
) -> Result<Vec<ScanPartition>> {
    let rows_left = request.limit.unwrap_or(usize::MAX);
    let partition = |part: ShardPart| {
        let options = MergeOptions {
            columns: columns.to_vec(),
            range: request.range,
            series: Some(part.series.clone()),
            bounds: request.bounds.clone(),
            batch_rows: request.batch_rows.min(rows_left),
            batch_text_bytes: BATCH_TEXT_BYTES,
            memory: Some((memory.clone(), Holder::Scan)),
            metrics: Some(metrics.clone()),
            territory: part.territory,
        };
        ScanPartition {
            shard: part.shard,
            series: part.series,
            merge: (rows_left > 0).then(|| MergeStream::new(part.sources, options)),
            rows_left,
            metrics: metrics.clone(),
        }
    };
    Ok(parts(shards, request)?.into_iter().map(partition).collect())
}

/// Like [`partitions`], for aggregations.
///
/// # Errors
/// As [`partitions`].
pub(crate) fn reduce_partitions(
    shards: Vec<ShardScan>,
    columns: &[SegmentColumn],
    request: &ScanRequest,
    memory: &Arc<MemoryAccountant>,
    metrics: &Arc<ScanMetrics>,
) -> Result<Vec<ReducePartition>> {
    let parts = parts(shards, request)?.into_iter();
    Ok(parts
        .map(|part| ReducePartition::new(part, columns, request, memory, metrics))
        .collect())
}

fn within(series: &RoaringBitmap, territory: &RangeInclusive<u32>) -> RoaringBitmap {
    let mut part = series.clone();
    part.remove_range(..*territory.start());
    if let Some(behind) = territory.end().checked_add(1) {
        part.remove_range(behind..);
    }
    part
}
