//! DataFusion's physical planner, extended by our nodes.

use crate::asof::{self, AsOfJoin};
use crate::gapfill::{self, GapFill};
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{LogicalPlan, UserDefinedLogicalNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};
use std::sync::Arc;

/// See the module documentation.
#[derive(Debug)]
pub struct MarigramQueryPlanner;

#[async_trait]
impl QueryPlanner for MarigramQueryPlanner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(Self)])
            .create_physical_plan(plan, session)
            .await
    }
}

#[async_trait]
impl ExtensionPlanner for MarigramQueryPlanner {
    async fn plan_extension(
        &self,
        planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _: &[&LogicalPlan],
        inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        if let Some(node) = node.as_any().downcast_ref::<GapFill>() {
            return gapfill::plan(node, inputs, planner, session, context).map(Some);
        }
        if let Some(node) = node.as_any().downcast_ref::<AsOfJoin>() {
            return asof::plan(node, inputs, planner, session, context).map(Some);
        }
        Ok(None)
    }
}
