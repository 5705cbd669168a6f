//! Points at which operators yield to others, and notice that their statement was cancelled.
//!
//! DataFusion's operators yield when they take rows from their sources. Operators that make many
//! rows out of few would occupy their thread until they finish, and a join on conditions processes
//! all pairs of a batch before it takes the next one. So the former yield with their rows, and the
//! latter checks for cancellation at each evaluation of its condition. An aggregation by many sets
//! takes its rows in small batches, and so do functions that return rows.

use crate::grouping_sets::with_small_batches;
use crate::small_batches::with_few_arrays;
use arrow::datatypes::{FieldRef, Schema};
use arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, NestedLoopJoinExecBuilder, SortMergeJoinExec,
    SymmetricHashJoinExec,
};
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::unnest::UnnestExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use marigram_functions::interrupt;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The rule that adds these points. It runs last, because other rules look for adjacent operators.
#[derive(Debug)]
pub struct YieldingOperators;

impl PhysicalOptimizerRule for YieldingOperators {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() {
                let filter = join.filter().map(asking);
                let join = NestedLoopJoinExecBuilder::from(join).with_filter(filter);
                let join = CooperativeExec::new(Arc::new(join.build()?));
                return Ok(Transformed::yes(Arc::new(join)));
            }
            if let Some(aggregate) = with_small_batches(&node)? {
                return Ok(Transformed::yes(aggregate));
            }
            if let Some(unnest) = with_few_arrays(&node)? {
                return Ok(Transformed::yes(Arc::new(CooperativeExec::new(unnest))));
            }
            if multiplies(node.as_ref()) {
                return Ok(Transformed::yes(Arc::new(CooperativeExec::new(node))));
            }
            Ok(Transformed::no(node))
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "YieldingOperators"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether an operator makes many rows out of few, or continues without taking any.
fn multiplies(node: &dyn ExecutionPlan) -> bool {
    node.is::<CrossJoinExec>()
        || node.is::<HashJoinExec>()
        || node.is::<SortMergeJoinExec>()
        || node.is::<SymmetricHashJoinExec>()
        || node.is::<UnnestExec>()
        || node.is::<RecursiveQueryExec>()
        || node.is::<WindowAggExec>()
        || node.is::<BoundedWindowAggExec>()
}

fn asking(filter: &JoinFilter) -> JoinFilter {
    let asking = Arc::new(InterruptibleCondition(Arc::clone(filter.expression())));
    JoinFilter::new(
        asking,
        filter.column_indices().to_vec(),
        Arc::clone(filter.schema()),
    )
}

/// A condition that checks at each evaluation whether the statement was cancelled.
#[derive(Debug, Eq)]
struct InterruptibleCondition(Arc<dyn PhysicalExpr>);

impl PartialEq for InterruptibleCondition {
    fn eq(&self, other: &Self) -> bool {
        self.0.eq(&other.0)
    }
}

impl Hash for InterruptibleCondition {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Display for InterruptibleCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PhysicalExpr for InterruptibleCondition {
    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        interrupt::check()?;
        self.0.evaluate(batch)
    }

    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        self.0.return_field(schema)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.0]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        match children.pop() {
            Some(inner) if children.is_empty() => Ok(Arc::new(Self(inner))),
            _ => datafusion::common::internal_err!("a condition that asks has one child"),
        }
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_sql(f)
    }
}
