//! What a statement runs with: the request, the databases and policies, the running queries.

use crate::budget::Budget;
use crate::policies::{KnownDatabases, Policies};
use crate::prepare::{Preparation, PreparedSelect};
use crate::running_queries::RunningQueries;
use crate::schema::{StoredCatalog, refused};
use crate::select::Running;
use crate::window::BundledZones;
use datafusion::execution::session_state::SessionState;
use marigram_influxql::ast::{Select, Statement};
use marigram_influxql::names::{NameContext, complete_names};
use marigram_influxql::time_range::TimeContext;
use marigram_influxql::validate::analyze;
use marigram_sql::SqlResult;
use marigram_sql::front_end::{StatementContext, ViewTables};
use std::sync::Arc;

/// What a statement runs with.
pub(crate) struct StatementRun<'a> {
    pub(crate) context: &'a StatementContext,
    pub(crate) policies: Arc<dyn Policies>,
    pub(crate) queries: Arc<RunningQueries>,
    /// The materialized views as tables.
    pub(crate) views: ViewTables,
    pub(crate) retention_policy: &'a str,
    /// The memory of the statement.
    pub(crate) budget: Budget,
    /// Whether answers may come from less than all rows.
    pub(crate) takes_fast_paths: bool,
}

impl StatementRun<'_> {
    /// Writes databases and policies into a statement.
    pub(crate) fn complete_names(&self, statement: &mut Statement) -> SqlResult<()> {
        let names = NameContext {
            database: self.database(),
            retention_policy: self.retention_policy,
            databases: &KnownDatabases {
                engine: self.context.engine(),
                policies: &*self.policies,
            },
        };
        complete_names(statement, &names).map_err(|error| refused(error.to_string()))
    }

    /// What is stored.
    pub(crate) fn catalog(&self) -> StoredCatalog<'_> {
        StoredCatalog {
            engine: self.context.engine(),
            policies: &*self.policies,
            views: &self.views,
        }
    }

    /// The database of the request.
    pub(crate) fn database(&self) -> &str {
        &self.context.session().database
    }

    /// DataFusion's state for the statement.
    pub(crate) fn state(&self) -> SqlResult<SessionState> {
        self.context.state(self.database())
    }

    /// A SELECT with what is stored.
    pub(crate) fn prepare(&self, select: &Select, now_ns: i64) -> SqlResult<PreparedSelect> {
        let time = TimeContext {
            now_ns,
            time_zone: None,
            zones: &BundledZones,
        };
        let analysis = analyze(select, &time).map_err(|error| refused(error.to_string()))?;
        let catalog = self.catalog();
        let preparation = Preparation { catalog };
        preparation.select(select, &analysis, None)
    }

    /// What SELECTs run with.
    pub(crate) fn running(&self, state: SessionState) -> Running {
        Running {
            engine: self.context.engine().clone(),
            state: Arc::new(state),
            budget: self.budget.clone(),
            takes_fast_paths: self.takes_fast_paths,
        }
    }
}

/// The time at which a statement began, in nanoseconds.
pub(crate) fn now_ns(state: &SessionState) -> i64 {
    let start = state.execution_props().query_execution_start_time;
    start
        .and_then(|start| start.timestamp_nanos_opt())
        .unwrap_or_default()
}
