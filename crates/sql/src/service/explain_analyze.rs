//! `EXPLAIN ANALYZE`: what a statement did, and whether it runs inline once its plan is cached.

use crate::error::SqlResult;
use crate::plan_cache::cached_plan::is_light;
use crate::plan_cache::inline::{may_run_inline, runs_inline, stayed_inline};
use arrow::array::StringArray;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::catalog::Session as Planning;
use datafusion::common::Result;
use datafusion::common::format::ExplainFormat;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::{Analyze, LogicalPlan};
use datafusion::physical_plan::analyze::AnalyzeExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::StreamExt;
use marigram_service::{InlineDecision, InlineRefusal};
use std::sync::Arc;

/// Executes an optimized plan that is an `EXPLAIN ANALYZE`; returns what it shows. `is_cacheable`
/// says whether the plan of the explained statement may be cached.
pub(super) async fn rows(
    session: &dyn Planning,
    optimized: &LogicalPlan,
    is_cacheable: bool,
) -> SqlResult<SendableRecordBatchStream> {
    let planner = session.query_planner();
    let physical = planner.create_physical_plan(optimized, session).await?;
    let rows = execute_stream(Arc::clone(&physical), session.task_ctx())?;
    let (analyze, explained) = match (optimized, explained_input(&physical)) {
        // The other formats are one document.
        (LogicalPlan::Analyze(analyze), Some(explained))
            if analyze.format == ExplainFormat::Indent =>
        {
            (analyze, explained)
        }
        _ => return Ok(rows),
    };
    let before = decision(session, analyze, &explained, is_cacheable)?;
    let schema = rows.schema();
    let outcome = {
        let schema = Arc::clone(&schema);
        async move { inline_row(schema, before.and_then(|()| stayed_inline(&explained))) }
    };
    let rows = rows.chain(futures::stream::once(outcome));
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
}

/// The operators of the explained statement.
fn explained_input(physical: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    let mut node = physical;
    loop {
        if let Some(analyze) = node.downcast_ref::<AnalyzeExec>() {
            return Some(Arc::clone(analyze.input()));
        }
        match node.children()[..] {
            [input] => node = input,
            _ => return None,
        }
    }
}

/// What is decided before the statement runs.
fn decision(
    session: &dyn Planning,
    analyze: &Analyze,
    operators: &Arc<dyn ExecutionPlan>,
    is_cacheable: bool,
) -> Result<InlineDecision> {
    if !is_cacheable {
        return Ok(Err(InlineRefusal::Kind("its plan is not cached")));
    }
    if !is_light(&analyze.input)? {
        let heavy = "it has a function that may take long for a row";
        return Ok(Err(InlineRefusal::Kind(heavy)));
    }
    let selected = may_run_inline(&analyze.input, session.execution_props())?;
    Ok(selected.and_then(|_| runs_inline(operators)))
}

/// The last row of the result.
fn inline_row(schema: SchemaRef, decision: InlineDecision) -> Result<RecordBatch> {
    let text = match decision {
        Ok(()) => "inline: yes".to_owned(),
        Err(why) => format!("inline: no ({why})"),
    };
    let columns = ["Execution".to_owned(), text].map(|text| {
        let column = StringArray::from(vec![text]);
        Arc::new(column) as _
    });
    Ok(RecordBatch::try_new(schema, columns.to_vec())?)
}
