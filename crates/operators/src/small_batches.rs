//! Splits batches before operators that make many rows of each row.

use crate::plan_methods::{always_recomputed, no_expressions};
use arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::unnest::UnnestExec;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties,
    ReplaceChildrenOptions, SendableRecordBatchStream,
};
use futures::{StreamExt, TryStreamExt};
use marigram_functions::interrupt;
use std::fmt;
use std::sync::Arc;

/// The rows for which a function makes arrays at once, before they become rows.
const UNNESTED_ROWS: usize = 128;

/// Lets a function that returns rows make its arrays for a few rows at once; `None` for other operators.
///
/// # Errors
/// DataFusion's errors.
pub(crate) fn with_few_arrays(
    node: &Arc<dyn ExecutionPlan>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if !node.is::<UnnestExec>() {
        return Ok(None);
    }
    let children = node.children();
    let [arrays] = children.as_slice() else {
        return Ok(None);
    };
    let Some(projection) = arrays.downcast_ref::<ProjectionExec>() else {
        return Ok(None);
    };
    let options = || ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    let few = SmallBatches::around(projection.input(), UNNESTED_ROWS);
    let arrays = Arc::clone(arrays).replace_children(vec![few], options())?;
    Arc::clone(node)
        .replace_children(vec![arrays], options())
        .map(Some)
}

/// Splits batches into smaller ones, and checks before each whether the statement was cancelled.
#[derive(Debug)]
pub(crate) struct SmallBatches {
    input: Arc<dyn ExecutionPlan>,
    /// The largest number of rows in a batch.
    rows: usize,
}

impl SmallBatches {
    /// An operator with its batches split.
    pub(crate) fn around(input: &Arc<dyn ExecutionPlan>, rows: usize) -> Arc<dyn ExecutionPlan> {
        let input = Arc::clone(input);
        Arc::new(CooperativeExec::new(Arc::new(Self { input, rows })))
    }
}

impl DisplayAs for SmallBatches {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SmallBatches: rows={}", self.rows)
    }
}

impl ExecutionPlan for SmallBatches {
    fn name(&self) -> &'static str {
        "SmallBatches"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    no_expressions!();

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match children.pop() {
            Some(input) if children.is_empty() => Ok(Arc::new(Self {
                input,
                rows: self.rows,
            })),
            _ => datafusion::common::internal_err!("SmallBatches has one input"),
        }
    }

    always_recomputed!();

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let rows = self.rows;
        let input = self.input.execute(partition, context)?;
        let schema = input.schema();
        let cut = input.map_ok(move |batch| futures::stream::iter(pieces(batch, rows)));
        let stream = RecordBatchStreamAdapter::new(schema, cut.try_flatten().boxed());
        Ok(Box::pin(stream))
    }
}

/// Splits a batch into pieces of at most `rows` rows.
fn pieces(batch: RecordBatch, rows: usize) -> impl Iterator<Item = Result<RecordBatch>> {
    let starts = (0..batch.num_rows()).step_by(rows);
    starts.map(move |start| {
        interrupt::check()?;
        Ok(batch.slice(start, rows.min(batch.num_rows() - start)))
    })
}
