//! Wraps DataFusion's rules, so that each first checks whether the statement was cancelled.
//!
//! Planning is synchronous. Without these checks, a statement with a large plan could neither be
//! stopped nor time out. Logical rules check at each node that they rewrite.

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::{AnalyzerRule, ApplyOrder, OptimizerConfig, OptimizerRule};
use datafusion::physical_optimizer::{PhysicalOptimizerContext, PhysicalOptimizerRule};
use datafusion::physical_plan::ExecutionPlan;
use marigram_functions::interrupt;
use std::sync::Arc;

/// A rule that checks for cancellation first.
#[derive(Debug)]
pub struct InterruptibleRule<R: ?Sized>(Arc<R>);

impl<R: ?Sized> InterruptibleRule<R> {
    /// Wraps a rule.
    pub fn new(rule: Arc<R>) -> Arc<Self> {
        Arc::new(Self(rule))
    }
}

impl AnalyzerRule for InterruptibleRule<dyn AnalyzerRule + Send + Sync> {
    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        interrupt::check()?;
        self.0.analyze(plan, config)
    }

    fn name(&self) -> &str {
        self.0.name()
    }
}

impl OptimizerRule for InterruptibleRule<dyn OptimizerRule + Send + Sync> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        interrupt::check()?;
        self.0.rewrite(plan, config)
    }
}

impl PhysicalOptimizerRule for InterruptibleRule<dyn PhysicalOptimizerRule + Send + Sync> {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        interrupt::check()?;
        self.0.optimize(plan, config)
    }

    fn optimize_with_context(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        context: &dyn PhysicalOptimizerContext,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        interrupt::check()?;
        self.0.optimize_with_context(plan, context)
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}
