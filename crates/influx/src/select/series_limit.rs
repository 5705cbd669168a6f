//! SLIMIT and SOFFSET of a SELECT over subqueries: they count the series of its own answer.
//!
//! Over tables, they choose among the series before anything is read (`sources`).

use crate::point::Row;
use crate::series::SeriesKey;
use crate::source::RowSource;
use futures::FutureExt;
use futures::future::BoxFuture;
use marigram_sql::SqlResult;
use std::sync::Arc;

/// The rows of some series of a source, whose rows come series by series.
pub(crate) struct LimitedSeries {
    source: Box<dyn RowSource>,
    limit: u64,
    offset: u64,
    /// The series that is being read, and the number of series of its measurement up to it.
    current: Option<(Arc<SeriesKey>, u64)>,
}

impl LimitedSeries {
    /// Leaves out the first `offset` series of each measurement and keeps at most `limit`; 0 keeps
    /// all.
    pub(crate) fn new(source: Box<dyn RowSource>, (limit, offset): (u64, u64)) -> Self {
        Self {
            source,
            limit,
            offset,
            current: None,
        }
    }

    fn is_kept(&mut self, row: &Row) -> bool {
        let number = match &self.current {
            Some((series, number)) if *series == row.series => *number,
            Some((series, number)) if series.name == row.series.name => number + 1,
            _ => 1,
        };
        if !matches!(&self.current, Some((series, _)) if Arc::ptr_eq(series, &row.series)) {
            self.current = Some((Arc::clone(&row.series), number));
        }
        let end = self.offset.saturating_add(self.limit);
        number > self.offset && (self.limit == 0 || number <= end)
    }
}

impl RowSource for LimitedSeries {
    fn next(&mut self) -> BoxFuture<'_, SqlResult<Option<Vec<Row>>>> {
        async move {
            while let Some(mut rows) = self.source.next().await? {
                rows.retain(|row| self.is_kept(row));
                if !rows.is_empty() {
                    return Ok(Some(rows));
                }
            }
            Ok(None)
        }
        .boxed()
    }
}
