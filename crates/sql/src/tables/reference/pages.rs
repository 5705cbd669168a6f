//! Reads the rows of a reference table, one page after the other, so that no thread waits for a slow reader.

use super::external;
use crate::error::SqlError;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::TryStreamExt;
use marigram_reference::{ReferenceScanRequest, ReferenceTable, ReferenceTransaction};
use marigram_service::run_blocking;
use std::fmt;
use std::sync::Arc;

/// Rows of a page.
const PAGE_ROWS: usize = 8192;

/// The rows of a table that a request asks for.
pub(crate) struct ReferencePages {
    transaction: Arc<ReferenceTransaction>,
    table: Arc<ReferenceTable>,
    schema: SchemaRef,
    request: ReferenceScanRequest,
    rows_max: usize,
}

impl ReferencePages {
    /// The rows that `transaction` sees, with the columns `schema`; at most `limit` of them.
    pub(crate) fn new(
        transaction: Arc<ReferenceTransaction>,
        table: Arc<ReferenceTable>,
        schema: SchemaRef,
        request: ReferenceScanRequest,
        limit: Option<usize>,
    ) -> Self {
        Self {
            transaction,
            table,
            schema,
            request,
            rows_max: limit.unwrap_or(usize::MAX),
        }
    }
}

impl fmt::Debug for ReferencePages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let filters = self.request.filters.len();
        write!(f, "ReferenceScan: {}, filters={filters}", self.table.name)
    }
}

impl ReferencePages {
    /// The rows of a transaction that writes, all read now: a reader may pause, and must not see what the
    /// transaction changes meanwhile.
    fn rows_of_now(&self, cursor: PageCursor, context: &TaskContext) -> SendableRecordBatchStream {
        let held = MemoryConsumer::new("ReferenceRows").register(context.memory_pool());
        let start = (self.rows_max > 0).then_some(cursor);
        let (own, schema) = (Arc::clone(&self.schema), Arc::clone(&self.schema));
        let read = move || -> Result<(Vec<RecordBatch>, MemoryReservation)> {
            let (mut batches, mut left) = (Vec::new(), start);
            while let Some(cursor) = left {
                let (rows, rest) = cursor.next_page().map_err(external)?;
                held.try_grow(rows.get_array_memory_size())?;
                batches.push(with_schema(&rows, Arc::clone(&own))?);
                left = rest;
            }
            Ok((batches, held))
        };
        let batches = async move {
            let read = run_blocking(read).await;
            let (batches, held) = read.map_err(|error| external(error.into()))??;
            let batches = batches.into_iter().map(move |batch| {
                let _held = &held;
                Ok(batch)
            });
            Ok::<_, DataFusionError>(futures::stream::iter(batches))
        };
        let batches = futures::stream::once(batches).try_flatten();
        Box::pin(RecordBatchStreamAdapter::new(schema, batches))
    }
}

/// Rows with other names of their columns: the store has a name of its own for the ids of rows.
fn with_schema(rows: &RecordBatch, schema: SchemaRef) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    let columns = rows.columns().to_vec();
    Ok(RecordBatch::try_new_with_options(
        schema, columns, &options,
    )?)
}

/// Where the reading of a table stands.
struct PageCursor {
    transaction: Arc<ReferenceTransaction>,
    table: Arc<ReferenceTable>,
    request: ReferenceScanRequest,
    rows_left: usize,
}

impl PageCursor {
    /// The next page, and the cursor behind it unless it is the last one. Blocks.
    fn next_page(mut self) -> Result<(RecordBatch, Option<Self>), SqlError> {
        self.request.rows_max = self.rows_left.min(PAGE_ROWS);
        let page = self.transaction.scan(&self.table, &self.request)?;
        self.rows_left = self.rows_left.saturating_sub(page.rows.num_rows());
        let rest = page.last.filter(|_| self.rows_left > 0).map(|last| {
            self.request.after = last;
            self
        });
        Ok((page.rows, rest))
    }
}

impl PartitionStream for ReferencePages {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let cursor = PageCursor {
            transaction: Arc::clone(&self.transaction),
            table: Arc::clone(&self.table),
            request: self.request.clone(),
            rows_left: self.rows_max,
        };
        if self.transaction.is_write() {
            return self.rows_of_now(cursor, &context);
        }
        let start = (self.rows_max > 0).then_some(cursor);
        let own = Arc::clone(&self.schema);
        let pages = futures::stream::try_unfold(start, move |cursor| {
            let schema = Arc::clone(&own);
            async move {
                let Some(cursor) = cursor else {
                    return Ok(None);
                };
                let page = run_blocking(move || cursor.next_page()).await;
                let (rows, rest) = page
                    .map_err(|error| external(error.into()))?
                    .map_err(external)?;
                Ok(Some((with_schema(&rows, schema)?, rest)))
            }
        });
        Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            pages,
        ))
    }
}
