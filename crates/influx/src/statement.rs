//! Executes statements by their kind.

use crate::budget::Budget;
use crate::output::SeriesSchema;
use crate::policies::{KnownDatabases, Policies};
use crate::prepare::{Preparation, Prepared};
use crate::running_queries::RunningQueries;
use crate::schema::refused;
use crate::select::{Running, rows};
use crate::show;
use crate::window::BundledZones;
use crate::{databases, delete, explain, into, read_only, server_state};
use datafusion::execution::session_state::SessionState;
use marigram_influxql::ast::{Select, Statement};
use marigram_influxql::names::{NameContext, complete_names};
use marigram_influxql::time_range::TimeContext;
use marigram_influxql::validate::{analyze, check_statement};
use marigram_sql::SqlResult;
use marigram_sql::front_end::{StatementContext, StatementRows};
use std::sync::Arc;

/// The environment in which a statement runs.
pub(crate) struct StatementRun<'a> {
    pub(crate) context: &'a StatementContext,
    pub(crate) policies: Arc<dyn Policies>,
    pub(crate) queries: Arc<RunningQueries>,
    pub(crate) retention_policy: &'a str,
}

impl StatementRun<'_> {
    /// Runs a statement.
    ///
    /// # Errors
    /// Why the statement failed, in InfluxDB's words.
    pub(crate) async fn execute(&self, mut statement: Statement) -> SqlResult<StatementRows> {
        if self.context.session().read_only {
            read_only::check(&statement)?;
        }
        self.complete_names(&mut statement)?;
        check_statement(&statement).map_err(|error| refused(error.to_string()))?;
        let running = self.queries.begin(statement.to_string(), self.database());
        let answer = self.answer(&statement).await?;
        running.watch(answer)
    }

    async fn answer(&self, statement: &Statement) -> SqlResult<StatementRows> {
        match statement {
            Statement::Select(select) => self.select(select).await,
            Statement::Explain {
                analyze: false,
                select,
            } => {
                let prepared = self.prepare(select, now_ns(&self.state()?))?;
                prepared.check_types()?;
                explain::answer(self, &prepared)
            }
            Statement::Delete { sources, condition } => {
                delete::delete(self, sources, condition.as_ref()).await
            }
            Statement::DropSeries { sources, condition } => {
                delete::drop_series(self, sources, condition.as_ref()).await
            }
            Statement::DropMeasurement(name) => delete::drop_measurement(self, name).await,
            other => {
                if let Some(answer) = self.administer(other).await? {
                    return Ok(answer);
                }
                match show::answer(self, other)? {
                    Some(answer) => Ok(answer),
                    None => Err(refused(format!("statement is not supported: {other}"))),
                }
            }
        }
    }

    /// Executes statements about databases, retention policies and the server itself.
    async fn administer(&self, statement: &Statement) -> SqlResult<Option<StatementRows>> {
        let (engine, queries) = (self.context.engine().clone(), Arc::clone(&self.queries));
        let statement = statement.clone();
        let work = move || match databases::execute(&engine, &statement)? {
            Some(answer) => Ok(Some(answer)),
            None => server_state::answer(&engine, &queries, &statement),
        };
        self.context.block(work).await
    }

    /// Writes databases and policies into a statement.
    fn complete_names(&self, statement: &mut Statement) -> SqlResult<()> {
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

    /// The database of the request.
    pub(crate) fn database(&self) -> &str {
        &self.context.session().database
    }

    /// DataFusion's state for the statement.
    pub(crate) fn state(&self) -> SqlResult<SessionState> {
        self.context.state(self.database())
    }

    /// Prepares a SELECT with the stored schema.
    pub(crate) fn prepare(&self, select: &Select, now_ns: i64) -> SqlResult<Prepared> {
        let time = TimeContext {
            now_ns,
            time_zone: None,
            zones: &BundledZones,
        };
        let analysis = analyze(select, &time).map_err(|error| refused(error.to_string()))?;
        let preparation = Preparation {
            engine: self.context.engine(),
            policies: &*self.policies,
        };
        preparation.select(select, &analysis, None)
    }

    /// The environment in which SELECTs run.
    pub(crate) fn running(&self, state: SessionState) -> Running {
        Running {
            engine: self.context.engine().clone(),
            state: Arc::new(state),
            budget: Budget::new(self.context.memory_pool()),
        }
    }

    async fn select(&self, select: &Select) -> SqlResult<StatementRows> {
        let state = self.state()?;
        let prepared = self.prepare(select, now_ns(&state))?;
        let running = self.running(state);
        if let Some(target) = &select.target {
            return into::write(self, target, &prepared, &running).await;
        }
        let source = rows(&prepared, &running)?;
        Ok(SeriesSchema::new(&prepared).answer(source))
    }
}

/// The time at which a statement began, in nanoseconds.
pub(crate) fn now_ns(state: &SessionState) -> i64 {
    let start = state.execution_props().query_execution_start_time;
    start
        .and_then(|start| start.timestamp_nanos_opt())
        .unwrap_or_default()
}
