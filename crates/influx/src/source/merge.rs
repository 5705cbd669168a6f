//! Combines several sources into one.

use super::{RowOrder, RowSource};
use crate::point::Row;
use futures::FutureExt;
use futures::future::BoxFuture;
use marigram_sql::SqlResult;
use std::collections::VecDeque;

/// The number of rows that are taken from merged sources at once.
const MERGED_ROWS: usize = 1024;

/// A source without rows.
#[derive(Debug)]
pub struct Nothing;

impl RowSource for Nothing {
    fn next(&mut self) -> BoxFuture<'_, SqlResult<Option<Vec<Row>>>> {
        futures::future::ready(Ok(None)).boxed()
    }
}

/// Sources one after the other.
pub struct Concatenated {
    sources: VecDeque<Box<dyn RowSource>>,
}

impl Concatenated {
    /// Concatenates the sources in this order.
    pub fn new(sources: Vec<Box<dyn RowSource>>) -> Self {
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
pub struct Merged {
    order: RowOrder,
    sources: Vec<MergeHead>,
}

struct MergeHead {
    source: Box<dyn RowSource>,
    rows: VecDeque<Row>,
    ended: bool,
}

impl Merged {
    /// Merges sources.
    pub fn new(order: RowOrder, sources: Vec<Box<dyn RowSource>>) -> Self {
        let sources = sources.into_iter().map(|source| MergeHead {
            source,
            rows: VecDeque::new(),
            ended: false,
        });
        Self {
            order,
            sources: sources.collect(),
        }
    }
}

impl RowSource for Merged {
    fn next(&mut self) -> BoxFuture<'_, SqlResult<Option<Vec<Row>>>> {
        async move {
            let mut merged = Vec::new();
            while merged.len() < MERGED_ROWS {
                for head in &mut self.sources {
                    if head.rows.is_empty() && !head.ended {
                        match head.source.next().await? {
                            Some(rows) => head.rows = rows.into(),
                            None => head.ended = true,
                        }
                    }
                }
                let mut first: Option<(usize, &Row)> = None;
                for (place, head) in self.sources.iter().enumerate() {
                    let Some(row) = head.rows.front() else {
                        continue;
                    };
                    let comes_first = first.is_none_or(|(_, known)| {
                        let (a, b) = ((&*row.series, row.time), (&*known.series, known.time));
                        self.order.compare(a, b).is_lt()
                    });
                    if comes_first {
                        first = Some((place, row));
                    }
                }
                let Some((place, _)) = first else {
                    break;
                };
                merged.extend(self.sources[place].rows.pop_front());
            }
            Ok((!merged.is_empty()).then_some(merged))
        }
        .boxed()
    }
}
