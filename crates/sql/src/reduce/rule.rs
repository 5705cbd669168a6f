//! The rule that puts [`SeriesAggregate`] in the place of DataFusion's aggregates over a scan. It is
//! the first of the physical rules: partitions and orders are settled after it.

use super::exec::SeriesAggregate;
use super::recipe::Recipe;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;

/// See the head of this file.
#[derive(Debug)]
pub struct SeriesReduction;

impl PhysicalOptimizerRule for SeriesReduction {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let optimized = plan.transform_down(|node| {
            Ok(match Recipe::of(&node)? {
                Some((recipe, scan)) => {
                    let reduced = SeriesAggregate::new(recipe, scan, node);
                    Transformed::new(Arc::new(reduced), true, TreeNodeRecursion::Jump)
                }
                None => Transformed::no(node),
            })
        })?;
        Ok(optimized.data)
    }

    fn name(&self) -> &'static str {
        "series_reduction"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
