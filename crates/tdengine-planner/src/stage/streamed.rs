//! A table whose rows a stage computes from those of a plan while they are read.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::provider_as_source;
use datafusion::execution::session_state::SessionState;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use marigram_sql::{SqlError, SqlResult};
use std::fmt;
use std::sync::Arc;

/// Computes the rows of a stage from those below.
pub(in crate::stage) type StageStream = Arc<
    dyn Fn(SendableRecordBatchStream) -> BoxStream<'static, SqlResult<RecordBatch>> + Send + Sync,
>;

struct StageRows {
    schema: SchemaRef,
    input: Arc<dyn ExecutionPlan>,
    stage: StageStream,
}

impl fmt::Debug for StageRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StageRows")
    }
}

impl PartitionStream for StageRows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let rows = match execute_stream(Arc::clone(&self.input), context) {
            Ok(rows) => (self.stage)(rows)
                .map(|batch| batch.map_err(external))
                .boxed(),
            Err(error) => stream::iter([Err(error)]).boxed(),
        };
        Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            rows,
        ))
    }
}

fn external(error: SqlError) -> DataFusionError {
    match error {
        SqlError::DataFusion(error) => error,
        other => DataFusionError::External(Box::new(other)),
    }
}

/// The rows of a stage as a plan.
pub(in crate::stage) async fn streamed(
    state: &SessionState,
    input: &LogicalPlan,
    schema: SchemaRef,
    stage: StageStream,
) -> SqlResult<LogicalPlan> {
    let input = state.create_physical_plan(input).await?;
    let rows = StageRows {
        schema: Arc::clone(&schema),
        input,
        stage,
    };
    let table = StreamingTable::try_new(schema, vec![Arc::new(rows)])?;
    let source = provider_as_source(Arc::new(table));
    let plan: Result<LogicalPlan> = LogicalPlanBuilder::scan("s", source, None)?.build();
    Ok(plan?)
}
