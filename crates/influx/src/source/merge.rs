//! Combines several sources into one.

use super::{RowOrder, RowSource};
use crate::point::Row;
use futures::FutureExt;
use futures::future::BoxFuture;
use marigram_sql::SqlResult;
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

/// The number of rows that are taken from merged sources at once.
const MERGED_ROWS: usize = 1024;

/// A source without rows.
#[derive(Debug)]
pub(crate) struct Nothing;

impl RowSource for Nothing {
    fn next(&mut self) -> BoxFuture<'_, SqlResult<Option<Vec<Row>>>> {
        futures::future::ready(Ok(None)).boxed()
    }
}

/// Sources one after the other.
pub(crate) struct Concatenated {
    sources: VecDeque<Box<dyn RowSource>>,
}

impl Concatenated {
    /// Concatenates the sources in this order.
    pub(crate) fn new(sources: Vec<Box<dyn RowSource>>) -> Self {
        Self {
            sources: sources.into(),
        }
    }
}

impl RowSource for Concatenated {
    fn next(&mut self) -> BoxFuture<'_, SqlResult<Option<Vec<Row>>>> {
        async move {
            while let Some(source) = self.sources.front_mut() {
                if let Some(rows) = source.next().await? {
                    return Ok(Some(rows));
                }
                self.sources.pop_front();
            }
            Ok(None)
        }
        .boxed()
    }
}

/// Merges sources with the same order. Among equal rows, those of the earlier source come first.
pub(crate) struct Merged {
    order: Arc<RowOrder>,
    sources: Vec<MergedRowSource>,
    /// The first row of each source that was opened; thousands of sources must not be looked at for each row.
    heads: BinaryHeap<MergeHead>,
    is_open: bool,
}

struct MergedRowSource {
    source: Box<dyn RowSource>,
    rows: VecDeque<Row>,
}

/// The first row of a source. The greatest one comes first in the answer.
struct MergeHead {
    row: Row,
    place: usize,
    order: Arc<RowOrder>,
}

impl Ord for MergeHead {
    fn cmp(&self, other: &Self) -> Ordering {
        let (ours, theirs) = (&self.row, &other.row);
        let order = self
            .order
            .compare((&ours.series, ours.time), (&theirs.series, theirs.time));
        order.then(self.place.cmp(&other.place)).reverse()
    }
}

impl PartialOrd for MergeHead {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for MergeHead {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for MergeHead {}

impl Merged {
    /// Merges sources.
    pub(crate) fn new(order: RowOrder, sources: Vec<Box<dyn RowSource>>) -> Self {
        let sources = sources.into_iter().map(|source| MergedRowSource {
            source,
            rows: VecDeque::new(),
        });
        Self {
            order: Arc::new(order),
            sources: sources.collect(),
            heads: BinaryHeap::new(),
            is_open: false,
        }
    }

    /// Puts the next row of a source among the heads.
    async fn advance(&mut self, place: usize) -> SqlResult<()> {
        let source = &mut self.sources[place];
        if source.rows.is_empty()
            && let Some(rows) = source.source.next().await?
        {
            source.rows = rows.into();
        }
        if let Some(row) = source.rows.pop_front() {
            let order = Arc::clone(&self.order);
            self.heads.push(MergeHead { row, place, order });
        }
        Ok(())
    }
}

impl RowSource for Merged {
    fn next(&mut self) -> BoxFuture<'_, SqlResult<Option<Vec<Row>>>> {
        async move {
            if !self.is_open {
                for place in 0..self.sources.len() {
                    self.advance(place).await?;
                }
                self.is_open = true;
            }
            let mut merged = Vec::new();
            while merged.len() < MERGED_ROWS {
                let Some(head) = self.heads.pop() else {
                    break;
                };
                merged.push(head.row);
                self.advance(head.place).await?;
            }
            Ok((!merged.is_empty()).then_some(merged))
        }
        .boxed()
    }
}
