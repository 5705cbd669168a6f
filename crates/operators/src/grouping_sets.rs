//! GROUP BY with CUBE, ROLLUP and GROUPING SETS: splits its input into small batches, because an
//! aggregation makes a group of each row for each set, and only reserves memory for them after the
//! whole batch.

use crate::small_batches::SmallBatches;
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::{Expr, GroupingSet, LogicalPlan};
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateInputMode};
use datafusion::physical_plan::{ChildrenPropertiesMode, ExecutionPlan, ReplaceChildrenOptions};
use marigram_functions::refused;
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
    let rows = (GROUPED_ROWS / sets).max(1);
    let input = SmallBatches::around(aggregate.input(), rows);
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    let node = Arc::clone(node).replace_children(vec![input], options);
    node.map(Some)
}
