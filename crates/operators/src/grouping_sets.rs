//! GROUP BY with CUBE, ROLLUP and GROUPING SETS: splits its input into small batches, because an
//! aggregation makes a group of each row for each set, and only reserves memory for them after the
//! whole batch.

use crate::plan_methods::{always_recomputed, no_expressions};
use arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{Expr, GroupingSet, LogicalPlan};
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateInputMode};
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties,
    ReplaceChildrenOptions, SendableRecordBatchStream,
};
use futures::{StreamExt, TryStreamExt};
use marigram_functions::{interrupt, refused};
use std::fmt;
use std::sync::Arc;

/// The largest number of sets in one GROUP BY, as in PostgreSQL.
const SETS_MAX: usize = 4096;
/// The approximate product of the rows of a batch and the sets.
const GROUPED_ROWS: usize = 1 << 16;

/// Refuses a plan with a GROUP BY of too many sets.
///
/// # Errors
/// `54001`.
pub fn check_grouping_sets(plan: &LogicalPlan) -> Result<()> {
    let mut most = 0;
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Aggregate(aggregate) = node {
            most = most.max(sets_of(&aggregate.group_expr));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    if most > SETS_MAX {
        let message = format!("GROUP BY has {most} grouping sets; at most {SETS_MAX} are accepted");
        return Err(refused("54001", message));
    }
    Ok(())
}

fn sets_of(groups: &[Expr]) -> usize {
    groups
        .iter()
        .map(|group| match group {
            Expr::GroupingSet(GroupingSet::Cube(keys)) => {
                let keys = u32::try_from(keys.len()).unwrap_or(u32::MAX);
                1usize.checked_shl(keys).unwrap_or(usize::MAX)
            }
            Expr::GroupingSet(GroupingSet::Rollup(keys)) => keys.len() + 1,
            Expr::GroupingSet(GroupingSet::GroupingSets(sets)) => sets.len(),
            _ => 1,
        })
        .fold(1, usize::saturating_mul)
}

/// Inserts small batches before an aggregation by many sets; `None` for other operators.
///
/// # Errors
/// DataFusion's errors.
pub fn with_small_batches(node: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(aggregate) = node.downcast_ref::<AggregateExec>() else {
        return Ok(None);
    };
    let sets = aggregate.group_expr().groups().len();
    if sets < 2 || aggregate.mode().input_mode() != AggregateInputMode::Raw {
        return Ok(None);
    }
    let small = SmallBatches {
        input: Arc::clone(aggregate.input()),
        rows: (GROUPED_ROWS / sets).max(1),
    };
    let input = Arc::new(CooperativeExec::new(Arc::new(small)));
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    let node = Arc::clone(node).replace_children(vec![input], options);
    node.map(Some)
}

/// Splits batches into smaller ones, and checks before each whether the statement was cancelled.
#[derive(Debug)]
struct SmallBatches {
    input: Arc<dyn ExecutionPlan>,
    /// The largest number of rows in a batch.
    rows: usize,
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
