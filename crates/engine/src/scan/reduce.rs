//! Scans for aggregations: each row once, but in no order, and pages by their statistics if these
//! suffice.
//!
//! Series of which no two sources have rows with the same time are read source by source
//! ([`DisjointSources`]); the others go through the merge.

use super::{ScanRequest, ShardPart};
use crate::error::Result;
use crate::memory::{Holder, MemoryAccountant};
use crate::merge::{
    DisjointSources, MergeOptions, MergeSource, MergeStream, PageReducer, PageRows, RowSpan,
    ScanMetrics, are_known_apart, series_that_share_rows,
};
use crate::text::BATCH_TEXT_BYTES;
use arrow_array::ArrayRef;
use marigram_model::{SortedRows, TimeRange};
use marigram_segment::SegmentColumn;
use roaring::RoaringBitmap;
use std::sync::Arc;

/// A part of an aggregating scan: a set of series of one shard.
#[derive(Debug)]
pub struct ReducePartition {
    shard: usize,
    series: Arc<RoaringBitmap>,
    state: ReduceState,
    metrics: Arc<ScanMetrics>,
}

#[derive(Debug)]
enum ReduceState {
    /// It is not known yet which rows the sources share.
    Unsorted(Option<(Vec<MergeSource>, MergeOptions)>),
    Apart(
        Box<DisjointSources>,
        Option<(Vec<MergeSource>, MergeOptions)>,
    ),
    Merged(Box<MergeStream>),
    Done,
}

impl ReducePartition {
    pub(super) fn new(
        part: ShardPart,
        columns: &[SegmentColumn],
        request: &ScanRequest,
        memory: &Arc<MemoryAccountant>,
        metrics: &Arc<ScanMetrics>,
    ) -> Self {
        let ShardPart {
            shard,
            series,
            sources,
            territory,
        } = part;
        let options = MergeOptions {
            columns: columns.to_vec(),
            range: request.range,
            series: Some(Arc::clone(&series)),
            bounds: request.bounds.clone(),
            batch_rows: request.batch_rows,
            batch_text_bytes: BATCH_TEXT_BYTES,
            memory: Some((Arc::clone(memory), Holder::Scan)),
            metrics: Some(Arc::clone(metrics)),
            territory,
        };
        Self {
            shard,
            series,
            state: ReduceState::Unsorted(Some((sources, options))),
            metrics: Arc::clone(metrics),
        }
    }

    /// The shard of its series.
    pub fn shard(&self) -> usize {
        self.shard
    }

    /// The series of this part.
    pub fn series(&self) -> &RoaringBitmap {
        &self.series
    }

    /// Whether each [`step`](Self::step) is short: it reads at most one page, and nothing has to be
    /// compared before the first one. The most sources and rows of a chunk are given.
    pub fn has_short_steps(&mut self, sources_max: usize, chunk_rows_max: usize) -> bool {
        match &mut self.state {
            ReduceState::Unsorted(unsorted) => {
                let is_short = |(sources, options): &mut (Vec<MergeSource>, MergeOptions)| {
                    sources.len() <= sources_max
                        && sources
                            .iter()
                            .all(|source| source.rows_at_once() <= chunk_rows_max)
                        && are_known_apart(sources, &self.series, options.range)
                };
                match unsorted.take_if(is_short) {
                    Some((sources, options)) => {
                        self.state = ReduceState::Apart(
                            Box::new(DisjointSources::new(sources, options)),
                            None,
                        );
                        true
                    }
                    None => unsorted.is_none(),
                }
            }
            ReduceState::Done => true,
            ReduceState::Apart(_, merged) => merged.is_none(),
            ReduceState::Merged(_) => false,
        }
    }

    /// Passes the next rows, or the next page, to `reducer`; `false` at the end.
    ///
    /// # Errors
    /// Damage or I/O errors of a page that must be read, no memory for it, or the reducer's error.
    pub fn step<R: PageReducer>(&mut self, reducer: &mut R) -> Result<bool, R::Error> {
        loop {
            match &mut self.state {
                ReduceState::Unsorted(unsorted) => {
                    let unsorted = unsorted.take();
                    self.state = match unsorted {
                        Some((sources, options)) => self.sort(sources, options)?,
                        None => ReduceState::Done,
                    };
                }
                ReduceState::Apart(apart, merged) => {
                    if apart.step(reducer)? {
                        return Ok(true);
                    }
                    self.state = match merged.take() {
                        Some((sources, options)) => {
                            ReduceState::Merged(Box::new(MergeStream::new(sources, options)))
                        }
                        None => ReduceState::Done,
                    };
                }
                ReduceState::Merged(merge) => match merge.next_rows()? {
                    Some(rows) => {
                        show(&rows, reducer)?;
                        return Ok(true);
                    }
                    None => self.state = ReduceState::Done,
                },
                ReduceState::Done => return Ok(false),
            }
        }
    }

    fn sort(&self, sources: Vec<MergeSource>, options: MergeOptions) -> Result<ReduceState> {
        let (series, metrics) = (&self.series, &self.metrics);
        let (shared, took_ns) =
            ScanMetrics::timed(|| series_that_share_rows(&sources, series, options.range, metrics));
        ScanMetrics::add(&metrics.merging_ns, took_ns);
        let shared = shared?;
        if shared.is_empty() {
            return Ok(ReduceState::Apart(
                Box::new(DisjointSources::new(sources, options)),
                None,
            ));
        }
        let others = &*self.series - &shared;
        let merged = MergeOptions {
            series: Some(Arc::new(shared)),
            ..options.clone()
        };
        let apart = MergeOptions {
            series: Some(Arc::new(others)),
            ..options
        };
        Ok(ReduceState::Apart(
            Box::new(DisjointSources::new(sources.clone(), apart)),
            Some((sources, merged)),
        ))
    }
}

fn show<R: PageReducer>(rows: &SortedRows, reducer: &mut R) -> Result<(), R::Error> {
    let mut end = 0;
    let spans: Vec<RowSpan> = rows
        .runs
        .iter()
        .map(|run| {
            let start = end;
            end += run.rows;
            RowSpan {
                series: run.series,
                start,
                end,
            }
        })
        .collect();
    let (min, max) = (rows.times.iter().min(), rows.times.iter().max());
    let (Some(min), Some(max)) = (min, max) else {
        return Ok(());
    };
    let columns: Vec<Option<ArrayRef>> = rows.columns.iter().cloned().map(Some).collect();
    reducer.rows(PageRows {
        spans: &spans,
        range: TimeRange {
            min: *min,
            max: *max,
        },
        times: &rows.times,
        steps: None,
        rows: rows.len(),
        columns: &columns,
    })
}

#[cfg(test)]
mod tests;
