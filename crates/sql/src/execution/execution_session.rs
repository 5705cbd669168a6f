//! The session for one execution of a cached plan.
//!
//! Copying a session's state, with its hundreds of functions, takes longer than answering a small
//! query. A cached plan needs only one part of it that differs between statements: the time when
//! the statement began. So all executions in a database share one state.

use async_trait::async_trait;
use datafusion::catalog::{CatalogProviderList, Session};
use datafusion::common::config::TableOptions;
use datafusion::common::{DFSchema, Result};
use datafusion::execution::TaskContext;
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::registry::ExtensionTypeRegistryRef;
use datafusion::logical_expr::{
    AggregateUDF, Expr, HigherOrderUDF, LogicalPlan, ScalarUDF, WindowUDF,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::operator_statistics::StatisticsRegistry;
use datafusion::prelude::SessionConfig;
use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

/// The state that all executions of a database's plans share.
#[derive(Clone, Debug)]
pub(crate) struct SharedExecutionState {
    /// The state without the functions of a session.
    pub state: SessionState,
    task: Arc<TaskContext>,
}

impl SharedExecutionState {
    /// Wraps the state of a database.
    pub(crate) fn new(state: SessionState) -> Self {
        let task = state.task_ctx();
        Self { state, task }
    }
}

/// See the module documentation.
pub(crate) struct ExecutionSession {
    shared: Arc<SharedExecutionState>,
    props: ExecutionProps,
}

impl ExecutionSession {
    /// Starts an execution now.
    pub(crate) fn begin(shared: Arc<SharedExecutionState>) -> Self {
        let mut props = ExecutionProps::new();
        props.mark_start_execution(Arc::clone(shared.state.config().options()));
        Self { shared, props }
    }
}

#[async_trait]
impl Session for ExecutionSession {
    fn session_id(&self) -> &str {
        self.shared.state.session_id()
    }

    fn config(&self) -> &SessionConfig {
        self.shared.state.config()
    }

    fn catalog_list(&self) -> Arc<dyn CatalogProviderList> {
        Arc::clone(self.shared.state.catalog_list())
    }

    fn query_planner(&self) -> Arc<dyn QueryPlanner + Send + Sync> {
        Arc::clone(self.shared.state.query_planner())
    }

    fn optimize(&self, plan: &LogicalPlan) -> Result<LogicalPlan> {
        self.shared.state.optimize(plan)
    }

    fn physical_optimizers(&self) -> &[Arc<dyn PhysicalOptimizerRule + Send + Sync>] {
        self.shared.state.physical_optimizers()
    }

    fn statistics_registry(&self) -> Option<&StatisticsRegistry> {
        self.shared.state.statistics_registry()
    }

    async fn create_physical_plan(&self, plan: &LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = self.optimize(plan)?;
        let planner = self.query_planner();
        planner.create_physical_plan(&plan, self).await
    }

    fn create_physical_expr(&self, expr: Expr, schema: &DFSchema) -> Result<Arc<dyn PhysicalExpr>> {
        self.shared.state.create_physical_expr(expr, schema)
    }

    fn scalar_functions(&self) -> &HashMap<String, Arc<ScalarUDF>> {
        self.shared.state.scalar_functions()
    }

    fn higher_order_functions(&self) -> &HashMap<String, Arc<HigherOrderUDF>> {
        self.shared.state.higher_order_functions()
    }

    fn aggregate_functions(&self) -> &HashMap<String, Arc<AggregateUDF>> {
        self.shared.state.aggregate_functions()
    }

    fn window_functions(&self) -> &HashMap<String, Arc<WindowUDF>> {
        self.shared.state.window_functions()
    }

    fn extension_type_registry(&self) -> &ExtensionTypeRegistryRef {
        Session::extension_type_registry(&self.shared.state)
    }

    fn runtime_env(&self) -> &Arc<RuntimeEnv> {
        self.shared.state.runtime_env()
    }

    fn execution_props(&self) -> &ExecutionProps {
        &self.props
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn table_options(&self) -> &TableOptions {
        self.shared.state.table_options()
    }

    fn table_options_mut(&mut self) -> &mut TableOptions {
        Arc::make_mut(&mut self.shared).state.table_options_mut()
    }

    fn task_ctx(&self) -> Arc<TaskContext> {
        Arc::clone(&self.shared.task)
    }
}
