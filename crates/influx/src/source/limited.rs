//! LIMIT of a subquery without functions, as InfluxDB's storage counts it, before rows are merged: for each
//! group if the rows are in the order of the groups, otherwise for each stored series. It is loose: it leaves
//! one row more than LIMIT, which is 0 where only OFFSET is given, and the rows before OFFSET. The subquery
//! counts what is left, in the order in which it reads them.

use super::RowSource;
use crate::budget::Budget;
use crate::point::Row;
use crate::series::{Narrowing, SeriesKey};
use futures::FutureExt;
use futures::future::BoxFuture;
use marigram_sql::SqlResult;
use std::collections::HashMap;
use std::sync::Arc;

/// Bytes that are reserved for a tag of a series that is counted.
const TAG_BYTES: usize = 64;

/// The first rows of each series.
pub(crate) struct LimitedRows {
    source: Box<dyn RowSource>,
    rows_max: u64,
    seen: HashMap<Arc<SeriesKey>, u64>,
    narrowing: Narrowing,
    budget: Budget,
}

impl LimitedRows {
    /// The rows of each series of `source` that `limit` (rows, rows before) leaves, with the tags of
    /// `keys`.
    pub(crate) fn new(
        source: Box<dyn RowSource>,
        limit: (u64, u64),
        keys: Arc<[Arc<str>]>,
        budget: Budget,
    ) -> Self {
        Self {
            source,
            rows_max: limit.0.saturating_add(limit.1).saturating_add(1),
            seen: HashMap::new(),
            narrowing: Narrowing::new(keys),
            budget,
        }
    }

    fn take(&mut self, row: Row) -> SqlResult<Option<Row>> {
        let seen = match self.seen.get_mut(&row.series) {
            Some(seen) => seen,
            None => {
                let bytes = size_of::<SeriesKey>() + TAG_BYTES * (1 + row.series.tags.len());
                self.budget.keep(bytes)?;
                self.seen.entry(Arc::clone(&row.series)).or_default()
            }
        };
        *seen += 1;
        let is_within = *seen <= self.rows_max;
        Ok(is_within.then(|| Row {
            series: self.narrowing.narrow(&row.series),
            ..row
        }))
    }
}

impl RowSource for LimitedRows {
    fn next(&mut self) -> BoxFuture<'_, SqlResult<Option<Vec<Row>>>> {
        async move {
            while let Some(rows) = self.source.next().await? {
                let mut kept = Vec::new();
                for row in rows {
                    kept.extend(self.take(row)?);
                }
                if !kept.is_empty() {
                    return Ok(Some(kept));
                }
            }
            Ok(None)
        }
        .boxed()
    }
}
