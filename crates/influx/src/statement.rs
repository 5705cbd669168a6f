//! Executes statements by their kind.

use crate::output::SeriesSchema;
use crate::schema::refused;
use crate::select::rows;
use crate::show;
use crate::statement_run::{StatementRun, now_ns};
use crate::{continuous_query, databases, delete, explain, into, read_only, server_state, users};
use marigram_influxql::ast::{Select, Statement};
use marigram_influxql::validate::check_statement;
use marigram_service::CommitPoint;
use marigram_sql::SqlResult;
use marigram_sql::front_end::StatementRows;
use std::sync::Arc;
use std::time::Instant;

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
        let running = self
            .queries
            .begin(statement.to_string(), self.context.session());
        self.budget.stop_with(running.is_killed());
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
            Statement::Explain {
                analyze: true,
                select,
            } => self.analyze(select).await,
            Statement::Delete { sources, condition } => {
                delete::delete(self, sources, condition.as_ref()).await
            }
            Statement::DropSeries { sources, condition } => {
                delete::drop_series(self, sources, condition.as_ref()).await
            }
            Statement::CreateContinuousQuery(create) => {
                continuous_query::create(self, create).await
            }
            Statement::DropMeasurement(name) => delete::drop_measurement(self, name).await,
            other => {
                if let Some(answer) = self.administer(other).await? {
                    return Ok(answer);
                }
                // It was none of them, and changed nothing.
                CommitPoint::of_task().begin_statement();
                match show::answer(self, other)? {
                    Some(answer) => Ok(answer),
                    None => Err(refused(format!("statement is not supported: {other}"))),
                }
            }
        }
    }

    /// Executes statements about databases, retention policies and the server itself.
    async fn administer(&self, statement: &Statement) -> SqlResult<Option<StatementRows>> {
        let (context, queries) = (self.context.clone(), Arc::clone(&self.queries));
        let statement = statement.clone();
        let work = move || {
            let (engine, access) = (context.engine(), context.access());
            if let Some(answer) = users::execute(access, engine, &statement)? {
                return Ok(Some(answer));
            }
            if let Statement::DropDatabase(name) = &statement {
                // First, so that a later database of the name never has them.
                users::forget_database(access, engine, name)?;
            }
            let session = context.session();
            match databases::execute(engine, &session.rights, &statement)? {
                Some(answer) => Ok(Some(answer)),
                None => server_state::answer(engine, &queries, session, &statement),
            }
        };
        self.context.commit(work).await
    }

    /// EXPLAIN ANALYZE: runs a SELECT for its times and the number of its rows.
    #[expect(
        clippy::disallowed_methods,
        reason = "how long a statement has run is told, and decides nothing"
    )]
    async fn analyze(&self, select: &Select) -> SqlResult<StatementRows> {
        let begin = Instant::now();
        let state = self.state()?;
        let prepared = self.prepare(select, now_ns(&state))?;
        prepared.check_types()?;
        let mut source = rows(&prepared, &self.running(state))?;
        let planned = begin.elapsed();
        let mut found = 0;
        while let Some(rows) = source.next().await? {
            self.budget.check_interrupt()?;
            found += rows.len();
        }
        explain::analysis(self, &prepared, (planned, begin.elapsed()), found)
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
