//! Turns a parsed statement into a plan, and a plan into its result.

use super::SqlServiceInner;
use super::explain_analyze;
use crate::access::{check_administrator, check_database, check_sight};
use crate::catalog::plain_views::one_snapshot;
use crate::catalog::plan_rights::check_plan;
use crate::dialect::aliased_calls::rename_aliased_calls;
use crate::dialect::column_names::{Names, may_collide, name_apart, named_batch, names_collide};
use crate::dialect::parse;
use crate::dialect::rewriting::rewrite;
use crate::dialect::shorthand;
use crate::dialect::statement::{Command, CopyFrom, TableReferenceName};
use crate::dialect::wildcard_replacements::{check_replaced, replaced_names};
use crate::error::{SqlError, SqlResult, nearest};
use crate::execution::thread_pool::StatementOutput;
use crate::plan_cache::cached_plan::CachedPlan;
use crate::plan_cache::{PlanRetention, inline};
use crate::planning::called_tables::with_distinct_calls;
use crate::planning::counted_sets::with_counted_sets;
use crate::planning::growth;
use crate::planning::outer_references::check_outer_references;
use crate::planning::using_joins::{UsingJoins, without_marks};
use crate::planning::zones::plan_scope;
use crate::statements::copy::{self, CopyToTsFile, FileUse};
use crate::statements::delete::{self, DeletionPlan};
use crate::statements::reference::execution;
use crate::statements::reference::planning::{change_of, take_change};
use crate::statements::{summarize, update};
use crate::tables::notices::StatementNotices;
use arrow::array::AsArray;
use arrow::datatypes::{Int64Type, UInt64Type};
use arrow::record_batch::RecordBatch;
use datafusion::catalog::Session as Planning;
use datafusion::common::DataFusionError;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::{DefaultTableSource, ViewTable};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{DdlStatement, DmlStatement, LogicalPlan, WriteOp};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;
use futures::StreamExt;
use marigram_access::DatabasePrivileges;
use marigram_functions::interrupt;
use marigram_operators::grouping_sets::check_grouping_sets;
use marigram_service::{ServiceError, Session};
use std::sync::Arc;

/// How a planned statement is executed.
pub(super) enum PlannedStatementKind {
    Rows,
    Insert,
    Delete,
    Update,
    Copy,
    ExternalTable,
    /// A change of a reference table.
    Reference,
}

impl SqlServiceInner {
    pub(super) async fn plan(
        &self,
        state: &SessionState,
        session: &Session,
        mut statement: Statement,
    ) -> SqlResult<LogicalPlan> {
        if CopyToTsFile::from_statement(&statement, &self.options)?.is_some() {
            return Err(SqlError::unsupported(
                "COPY to a TsFile is not supported here; send it as a statement of its own",
            ));
        }
        if let Statement::CopyTo(to) = &mut statement {
            let place = copy::resolve(&self.options, &to.target, FileUse::Write)?;
            // If any file is allowed, URLs are allowed, too.
            if !(self.options.allow_files && to.target.contains("://")) {
                to.target = copy::file_url(&place)?;
            }
        } else if parse::touches_files(&statement) && !self.options.allow_files {
            return Err(SqlError::invalid(
                "42501",
                "a server does not read or write files of its machine; use COPY … FROM STDIN, \
                 COPY … TO STDOUT, or marigram import and export",
            ));
        }
        growth::check_copies(&statement)?;
        self.read_views().await?;
        self.plan_statement(state, session, statement).await
    }

    /// Plans a statement after the views were read.
    pub(super) async fn plan_statement(
        &self,
        state: &SessionState,
        session: &Session,
        mut statement: Statement,
    ) -> SqlResult<LogicalPlan> {
        let table_of = |target: &TableReferenceName| self.reference_table(session, target);
        let taken = take_change(&mut statement, &table_of)?;
        shorthand::expand(&self.engine, session, state, &mut statement)?;
        interrupt::check()?;
        let reads_views = !self.views_in(state, session, &statement)?.is_empty();
        let replaced = replaced_names(&statement);
        rename_aliased_calls(state, &mut statement)?;
        rewrite(&mut statement, &mut UsingJoins)?;
        let again = may_collide(&statement).then(|| statement.clone());
        let mut planned = state.statement_to_plan(statement).await;
        if let (Err(error), Some(mut again)) = (&planned, again)
            && names_collide(error)
        {
            name_apart(&mut again)?;
            planned = state.statement_to_plan(again).await;
        }
        let mut plan = planned.map_err(|error| self.plan_error(session, error))?;
        if let Some(taken) = &taken {
            plan = taken.change_of_rows(plan)?;
        }
        plan = with_distinct_calls(with_counted_sets(without_marks(plan)?)?)?;
        if reads_views {
            plan = one_snapshot(plan)?;
        }
        interrupt::check()?;
        check_replaced(&replaced, &plan)?;
        growth::check_nested_subqueries(&plan)?;
        growth::check_inlining(&plan)?;
        check_plan(&session.rights, &plan)?;
        check_grouping_sets(&plan)?;
        match taken {
            Some(taken) => {
                if let Some(database) = taken.reads_from() {
                    check_database(&session.rights, database, DatabasePrivileges::READ)?;
                }
                taken.around(state, plan)
            }
            None => Ok(explaining_rows(plan)),
        }
    }

    /// An error of planning that names the table or database that does not exist.
    fn plan_error(&self, session: &Session, error: DataFusionError) -> SqlError {
        let DataFusionError::Plan(message) = error.find_root() else {
            return error.into();
        };
        let Some(name) = message
            .strip_prefix("table '")
            .and_then(|m| m.strip_suffix("' not found"))
        else {
            return error.into();
        };
        let parts: Vec<&str> = name.splitn(3, '.').collect();
        let [database, schema, table] = parts.as_slice() else {
            return error.into();
        };
        let other = ![
            "public",
            parse::SERIES_SCHEMA,
            "pg_catalog",
            "information_schema",
            "timescaledb_information",
            "timescaledb_experimental",
        ]
        .contains(schema);
        let database = if other { schema } else { database };
        let Ok(tables) = self.engine.tables(database) else {
            let databases = self.visible_databases(session);
            return SqlError::unknown(
                "3D000",
                "database",
                database,
                databases.iter().map(String::as_str),
            );
        };
        if let Err(error) = check_sight(&session.rights, database) {
            return error.into();
        }
        let names = tables.iter().map(|table| table.name.as_str());
        if nearest(table, names.clone()).is_none() && *database == session.database {
            let elsewhere = self
                .visible_databases(session)
                .into_iter()
                .find(|database| self.engine.table(database, table).is_ok());
            if let Some(elsewhere) = elsewhere {
                let message = format!(
                    "table '{table}' does not exist in database '{database}'; did you mean \
                     '{elsewhere}.{table}'?"
                );
                return SqlError::named("42P01", table, message);
            }
        }
        SqlError::unknown("42P01", "table", table, names)
    }

    /// The databases of which the session's client may know.
    fn visible_databases(&self, session: &Session) -> Vec<String> {
        let mut databases = self.engine.databases();
        databases.retain(|name| session.rights.see(name));
        databases
    }

    /// How to execute a plan; refuses plans that are not allowed.
    pub(super) fn kind(&self, plan: &LogicalPlan) -> SqlResult<PlannedStatementKind> {
        let kind = match plan {
            LogicalPlan::Dml(dml) => match &dml.op {
                WriteOp::Insert(_) | WriteOp::Delete | WriteOp::Update if is_view(dml) => {
                    let name = dml.table_name.table();
                    let message = format!("'{name}' is a view: only its query provides its rows");
                    return Err(SqlError::named("42809", name, message));
                }
                WriteOp::Insert(_) => PlannedStatementKind::Insert,
                WriteOp::Delete => PlannedStatementKind::Delete,
                WriteOp::Update => PlannedStatementKind::Update,
                other => return Err(SqlError::unsupported(format!("{other} is not supported"))),
            },
            plan if change_of(plan).is_some() => PlannedStatementKind::Reference,
            LogicalPlan::Copy(_) if self.options.allow_files || self.options.copy_dir.is_some() => {
                PlannedStatementKind::Copy
            }
            LogicalPlan::Ddl(DdlStatement::CreateExternalTable(_)) if self.options.allow_files => {
                PlannedStatementKind::ExternalTable
            }
            _ => PlannedStatementKind::Rows,
        };
        let nested = !matches!(
            kind,
            PlannedStatementKind::Insert
                | PlannedStatementKind::Delete
                | PlannedStatementKind::Update
                | PlannedStatementKind::Copy
                | PlannedStatementKind::ExternalTable
                | PlannedStatementKind::Reference
        );
        plan.apply_with_subqueries(|node| {
            let refused = match node {
                LogicalPlan::Ddl(ddl) => nested.then(|| ddl.name()),
                LogicalPlan::Copy(_) => nested.then_some("COPY"),
                LogicalPlan::Statement(statement) => Some(statement.name()),
                LogicalPlan::Dml(dml) => nested.then(|| dml.name()),
                _ => None,
            };
            match refused {
                Some(what) => Err(DataFusionError::NotImplemented(format!(
                    "{what} is not supported here"
                ))),
                None => Ok(TreeNodeRecursion::Continue),
            }
        })?;
        Ok(kind)
    }

    /// Executes a parsed statement that needs a plan.
    pub(super) async fn carry_out_parsed(
        self: Arc<Self>,
        session: Session,
        command: Command,
        sql: &str,
        out: StatementOutput,
    ) -> SqlResult<()> {
        let state = self.contexts.state(&session)?;
        match command {
            Command::CopyFrom(copy) => self.copy_from(&session, state, &copy, out).await,
            Command::Plan(statement, names) => {
                if let Some(copy) = CopyToTsFile::from_statement(&statement, &self.options)? {
                    return self.copy_to_tsfile(&session, &state, &copy, out).await;
                }
                self.plans.miss();
                let (need, scope) = (statement.need(), plan_scope(&session));
                let statement = statement.into_inner();
                let reads_views = !self.views_in(&state, &session, &statement)?.is_empty();
                let plan = self.plan(&state, &session, statement).await?;
                let keep = if need.is_deep() || reads_views {
                    PlanRetention::Nothing
                } else {
                    PlanRetention::Text { scope: &scope, sql }
                };
                self.carry_out(state, plan, names, keep, out).await
            }
            other => {
                let message = format!("{other:?} was not executed");
                Err(ServiceError::Internal(message).into())
            }
        }
    }

    async fn copy_from(
        &self,
        session: &Session,
        mut state: SessionState,
        copy: &CopyFrom,
        out: StatementOutput,
    ) -> SqlResult<()> {
        let database = copy.target.database.as_ref().unwrap_or(&session.database);
        let table = self.engine.table(database, &copy.target.table)?;
        let notices = StatementNotices::for_statement(&mut state);
        let rows = copy::run_from(copy, &self.engine, &self.options, state, table).await?;
        out.done_with(format!("COPY {rows}"), rows, notices.take());
        Ok(())
    }

    async fn copy_to_tsfile(
        &self,
        session: &Session,
        state: &SessionState,
        copy: &CopyToTsFile,
        out: StatementOutput,
    ) -> SqlResult<()> {
        check_administrator(&session.rights, "COPY with a file of the server")?;
        let plan = self.plan_query(session, state, copy.query()).await?;
        let (ordered, roles) = copy.ordered(plan.schema().as_arrow())?;
        let plan = self.plan_query(session, state, &ordered).await?;
        let mut rows = execute_stream(physical(state, &plan).await?, state.task_ctx())?;
        let mut file = copy.begin(&rows.schema(), &roles)?;
        while let Some(batch) = rows.next().await {
            file.write(&batch?)?;
        }
        let rows = file.finish()?;
        out.done(format!("COPY {rows}"), rows);
        Ok(())
    }

    /// Plans a query that is part of another statement.
    async fn plan_query(
        &self,
        session: &Session,
        state: &SessionState,
        query: &str,
    ) -> SqlResult<LogicalPlan> {
        let Command::Plan(statement, _) = parse::parse(query)? else {
            return Err(SqlError::syntax("COPY needs a query or a table"));
        };
        let plan = self.plan(state, session, statement.into_inner()).await?;
        match self.kind(&plan)? {
            PlannedStatementKind::Rows => Ok(plan),
            _ => Err(SqlError::syntax("COPY needs a query or a table")),
        }
    }

    /// `SUMMARIZE`
    pub(super) async fn summarize(
        &self,
        session: &Session,
        statement: Statement,
    ) -> SqlResult<RecordBatch> {
        let state = self.contexts.state(session)?;
        let rows = self.plan(&state, session, statement).await?;
        if !matches!(self.kind(&rows)?, PlannedStatementKind::Rows) {
            return Err(SqlError::syntax("SUMMARIZE takes a table or a query"));
        }
        let plan = summarize::plan(&rows)?;
        let mut batches = execute_stream(physical(&state, &plan).await?, state.task_ctx())?;
        let Some(row) = batches.next().await.transpose()? else {
            return Err(ServiceError::Internal("an aggregate has no row".into()).into());
        };
        summarize::summary(&rows, &row)
    }

    /// Executes a plan and returns its result. `keep` says for what it may be reused.
    pub(super) async fn carry_out(
        self: Arc<Self>,
        mut state: SessionState,
        plan: LogicalPlan,
        names: Names,
        keep: PlanRetention<'_>,
        out: StatementOutput,
    ) -> SqlResult<()> {
        match self.kind(&plan)? {
            PlannedStatementKind::Rows => {
                let optimized = state.optimize(&plan);
                let optimized = optimized.map_err(|e| with_far_reference(&plan, e.into()))?;
                let optimized = Arc::new(optimized);
                if let LogicalPlan::Analyze(analyze) = &plan {
                    let is_cacheable = keep.keeps_text(&analyze.input)?;
                    let rows = explain_analyze::rows(&state, &optimized, is_cacheable).await?;
                    return tell(rows, names, out).await;
                }
                // The optimized plan no longer shows which query a column belongs to.
                let is_far = check_outer_references(&plan).is_err();
                let keep = if is_far { PlanRetention::Nothing } else { keep };
                let answered = match self.plans.retain(keep, &names, &plan, &optimized)? {
                    Some(cached) => cached_plan_rows(&state, &cached, out).await,
                    None => rows(&state, &optimized, names, out).await,
                };
                answered.map_err(|error| with_far_reference(&plan, error))
            }
            kind @ (PlannedStatementKind::Insert | PlannedStatementKind::Copy) => {
                let notices = StatementNotices::for_statement(&mut state);
                let rows = count_of(&state, &plan).await?;
                let verb = if matches!(kind, PlannedStatementKind::Insert) {
                    "INSERT 0"
                } else {
                    "COPY"
                };
                out.done_with(format!("{verb} {rows}"), rows, notices.take());
                Ok(())
            }
            PlannedStatementKind::Delete => {
                let LogicalPlan::Dml(dml) = &plan else {
                    return Err(ServiceError::Internal("a DELETE is no DML".into()).into());
                };
                let rows = match delete::plan(&self.engine, dml, &state)? {
                    DeletionPlan::Series(deletion) => {
                        let rows = count_of(&state, &delete::count(dml)?).await?;
                        let engine = self.engine.clone();
                        let delete = move || delete::run(&engine, &deletion);
                        self.workers.commit(delete).await?;
                        rows
                    }
                    DeletionPlan::Rows(deletion) => count_of(&state, &deletion).await?,
                };
                out.done(format!("DELETE {rows}"), rows);
                Ok(())
            }
            PlannedStatementKind::Update => {
                let LogicalPlan::Dml(dml) = &plan else {
                    return Err(ServiceError::Internal("an UPDATE is no DML".into()).into());
                };
                let rows = count_of(&state, &update::plan(&self.engine, dml)?).await?;
                out.done(format!("UPDATE {rows}"), rows);
                Ok(())
            }
            PlannedStatementKind::Reference => change_reference_table(&state, &plan, out).await,
            PlannedStatementKind::ExternalTable => {
                SessionContext::new_with_state(state)
                    .execute_logical_plan(plan)
                    .await?;
                out.done("CREATE EXTERNAL TABLE".to_owned(), 0);
                Ok(())
            }
        }
    }
}

/// Changes a reference table.
async fn change_reference_table(
    state: &SessionState,
    plan: &LogicalPlan,
    out: StatementOutput,
) -> SqlResult<()> {
    let node =
        change_of(plan).ok_or_else(|| ServiceError::Internal("a change has no plan".to_owned()))?;
    let outcome = execution::run(state, node).await?;
    let Some(returned) = outcome.returned else {
        out.done(outcome.tag, outcome.rows);
        return Ok(());
    };
    let held = returned.held;
    let batches = returned.batches.into_iter().map(move |batch| {
        let _held = &held;
        Ok::<_, SqlError>(batch)
    });
    out.rows(returned.schema, futures::stream::iter(batches))
        .await
}

/// Whether a statement would change a view.
fn is_view(dml: &DmlStatement) -> bool {
    let source = dml.target.downcast_ref::<DefaultTableSource>();
    source.is_some_and(|source| source.table_provider.is::<ViewTable>())
}

/// The number of rows that a plan returns or stores.
async fn count_of(state: &SessionState, plan: &LogicalPlan) -> SqlResult<u64> {
    let mut batches = execute_stream(physical(state, plan).await?, state.task_ctx())?;
    let mut rows = 0;
    while let Some(batch) = batches.next().await {
        let batch = batch?;
        let counts = batch.column(0);
        if let Some(counts) = counts.as_primitive_opt::<UInt64Type>() {
            rows += counts.values().iter().sum::<u64>();
        } else if let Some(counts) = counts.as_primitive_opt::<Int64Type>() {
            rows += counts.values().iter().sum::<i64>() as u64;
        }
    }
    Ok(rows)
}

/// Executes an optimized plan and sends its rows.
async fn rows(
    session: &dyn Planning,
    optimized: &LogicalPlan,
    names: Names,
    out: StatementOutput,
) -> SqlResult<()> {
    let planner = session.query_planner();
    let physical = planner.create_physical_plan(optimized, session).await?;
    let rows = execute_stream(physical, session.task_ctx())?;
    tell(rows, names, out).await
}

/// The same for a cached plan; it moves to another thread unless it can run inline.
pub(super) async fn cached_plan_rows(
    session: &dyn Planning,
    cached: &CachedPlan,
    out: StatementOutput,
) -> SqlResult<()> {
    let held = if cached.is_light {
        inline::may_run_inline(&cached.plan, session.execution_props())?.ok()
    } else {
        None
    };
    if held.is_none() {
        out.move_on().await;
    }
    let physical = cached.physical_plan(session).await?;
    drop(held);
    if inline::runs_inline(&physical).is_err() {
        out.move_on().await;
    }
    let rows = execute_stream(physical, session.task_ctx())?;
    tell(rows, cached.names.clone(), out).await
}

/// Sends rows, with the names of their result.
async fn tell(
    rows: SendableRecordBatchStream,
    names: Names,
    out: StatementOutput,
) -> SqlResult<()> {
    let own = rows.schema();
    let Some(schema) = names.and_then(|names| names.renamed(&own)) else {
        return out.rows(own, rows).await;
    };
    let named = Arc::clone(&schema);
    let batches = rows.map(move |batch| Ok::<_, DataFusionError>(named_batch(&batch?, &named)?));
    out.rows(schema, batches).await
}

async fn physical(state: &SessionState, plan: &LogicalPlan) -> SqlResult<Arc<dyn ExecutionPlan>> {
    let physical = state.create_physical_plan(plan).await;
    physical.map_err(|error| with_far_reference(plan, error.into()))
}

/// Why a plan cannot be executed: for a reference to a query that is not directly around, an error that says so.
fn with_far_reference(plan: &LogicalPlan, error: SqlError) -> SqlError {
    let is_of_planning = matches!(&error, SqlError::DataFusion(_));
    match check_outer_references(plan) {
        Err(far) if is_of_planning => far,
        _ => error,
    }
}

/// The plan of an EXPLAIN of UPDATE or DELETE: it shows how the rows are found, which are then changed.
fn explaining_rows(plan: LogicalPlan) -> LogicalPlan {
    let of = |inner: &LogicalPlan| match inner {
        LogicalPlan::Dml(dml) if matches!(dml.op, WriteOp::Delete | WriteOp::Update) => {
            Some(Arc::clone(&dml.input))
        }
        _ => None,
    };
    match plan {
        LogicalPlan::Explain(mut explain) => {
            if let Some(rows) = of(&explain.plan) {
                explain.plan = rows;
            }
            LogicalPlan::Explain(explain)
        }
        other => other,
    }
}
