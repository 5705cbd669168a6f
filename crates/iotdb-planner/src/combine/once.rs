//! Rows of a stream as the source of a plan.

use super::external;
use crate::statement::internal;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::Result as DataFusionResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::stream;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Rows that are read once.
pub(super) struct OnceStream {
    schema: SchemaRef,
    rows: Mutex<Option<SendableRecordBatchStream>>,
}

impl OnceStream {
    /// The rows of a stream.
    pub(super) fn new(schema: SchemaRef, rows: SendableRecordBatchStream) -> Self {
        Self {
            schema,
            rows: Mutex::new(Some(rows)),
        }
    }
}

impl fmt::Debug for OnceStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnceStream")
    }
}

impl PartitionStream for OnceStream {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let taken = self
            .rows
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        taken.unwrap_or_else(|| {
            let twice: DataFusionResult<RecordBatch> =
                Err(external(internal("the rows of devices are read twice")));
            let schema = Arc::clone(&self.schema);
            Box::pin(RecordBatchStreamAdapter::new(schema, stream::iter([twice])))
        })
    }
}
