//! The rule that replaces DataFusion's aggregates over a scan with [`SeriesAggregate`]. It is the
//! first of the physical rules, before those that decide partitions and orders. If there is a sort
//! by group keys above, the aggregate returns its result in that order, and a later rule finds that
//! nothing is left to sort.

use super::exec::SeriesAggregate;
use super::order::is_sortable;
use super::recipe::{AggregateRecipe, replaced};
use crate::scan::SeriesScan;
use arrow::compute::SortOptions;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::{
    Boundedness, ChildrenPropertiesMode, EmissionType,
};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{
    ExecutionPlan, Partitioning, PlanProperties, ReplaceChildrenOptions,
};
use std::sync::Arc;

const CHANGED: ReplaceChildrenOptions =
    ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);

/// See the module documentation.
#[derive(Debug)]
pub struct SeriesAggregateRule;

impl PhysicalOptimizerRule for SeriesAggregateRule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let optimized = plan.transform_down(|node| {
            if let Some(sorted) = in_order(&node)? {
                return Ok(Transformed::new(sorted, true, TreeNodeRecursion::Jump));
            }
            Ok(match AggregateRecipe::from_plan(&node)? {
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

impl SeriesAggregate {
    /// `recipe` over `scan`; `fallback` is the plan that this operator replaces, without the order.
    fn new(
        recipe: AggregateRecipe,
        scan: Arc<SeriesScan>,
        mut fallback: Arc<dyn ExecutionPlan>,
    ) -> Self {
        let mut equivalence = EquivalenceProperties::new(Arc::clone(&recipe.schema));
        if let Some(ordering) = recipe.ordering() {
            equivalence.add_ordering(ordering.clone());
            fallback = Arc::new(SortExec::new(ordering, fallback));
        }
        let properties = PlanProperties::new(
            equivalence,
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        Self::with(Arc::new(recipe), scan, fallback, Arc::new(properties))
    }
}

/// A sort by group keys over our aggregate, with only projections and filters between them, and
/// with the aggregate in that order; `None` for anything else.
fn in_order(node: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(sort) = node.downcast_ref::<SortExec>() else {
        return Ok(None);
    };
    let wanted = sort.expr().iter();
    let mut wanted: Vec<(Arc<dyn PhysicalExpr>, SortOptions)> = wanted
        .map(|by| (Arc::clone(&by.expr), by.options))
        .collect();
    let (mut above, mut below) = (vec![node], sort.input());
    loop {
        if let Some(projection) = below.downcast_ref::<ProjectionExec>() {
            let exprs = projection.expr();
            for (by, _) in &mut wanted {
                *by = replaced(by, |column| Ok(Arc::clone(&exprs[column.index()].expr)))?;
            }
            above.push(below);
            below = projection.input();
        } else if let Some(filter) = below.downcast_ref::<FilterExec>()
            && filter.projection().is_none()
        {
            above.push(below);
            below = filter.input();
        } else {
            break;
        }
    }
    let Some((mut recipe, scan)) = AggregateRecipe::from_plan(below)? else {
        return Ok(None);
    };
    for (by, options) in wanted {
        let column = by.downcast_ref::<Column>().map(Column::index);
        let is_key = |column: &usize| {
            recipe.key_of(*column).is_some()
                && is_sortable(recipe.schema.field(*column).data_type())
        };
        let Some(column) = column.filter(is_key) else {
            return Ok(None);
        };
        recipe.sorted_by.push((column, options));
    }
    let mut plan: Arc<dyn ExecutionPlan> =
        Arc::new(SeriesAggregate::new(recipe, scan, Arc::clone(below)));
    for node in above.into_iter().rev() {
        plan = Arc::clone(node).replace_children(vec![plan], CHANGED)?;
    }
    Ok(Some(plan))
}
