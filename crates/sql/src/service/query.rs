//! [`Query`] for [`SqlService`]: statements and prepared statements on their way to their answers.
//!
//! A statement takes the first of three ways: a cached plan, a command without a plan
//! ([`super::direct`]), or planning and execution on the threads for statements
//! ([`super::planned`]).

use super::planned::{PlannedStatementKind, cached_plan_rows};
use super::{SqlService, SqlServiceInner};
use crate::dialect::declared_parameters::cast_declared;
use crate::dialect::parse;
use crate::dialect::statement::Command;
use crate::dialect::write_detection;
use crate::error::{SqlError, SqlResult};
use crate::execution::thread_pool::{StatementOutput, StatementStart};
use crate::plan_cache::PlanRetention;
use crate::plan_cache::cached_plan::CachedPlan;
use crate::plan_cache::generic_plan::marked;
use crate::plan_cache::prepared::PreparedStatement;
use crate::plan_cache::text_memory::TextMemory;
use crate::planning::answer_types::final_types;
use crate::planning::parameter_types::with_parameter_types;
use crate::planning::zones::plan_scope;
use crate::stack::{DeepTree, on_stack};
use crate::statements::permissions;
use crate::statements::reference::execution::reads_reference_tables;
use crate::statements::reference::planning::answers_rows;
use crate::tables::reference::reads::StatementReads;
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use async_trait::async_trait;
use datafusion::sql::parser::Statement;
use marigram_service::{
    Answer, Identity, InlinePolicy, Prepared, Query, Result, ServiceError, Session, TransactionStep,
};
use std::collections::BTreeSet;
use std::panic::catch_unwind;
use std::sync::Arc;

#[async_trait]
impl Query for SqlService {
    async fn session(&self, database: Option<&str>, identity: &Identity) -> Result<Session> {
        self.begin(database, identity, false).await
    }

    async fn read_only_session(
        &self,
        database: Option<&str>,
        identity: &Identity,
    ) -> Result<Session> {
        self.begin(database, identity, true).await
    }

    async fn transaction(&self, session: &mut Session, step: TransactionStep) -> Result<()> {
        let done = self.transaction_step(session, step).await;
        done.map_err(|error| error.into_service(""))
    }

    async fn execute(&self, session: &mut Session, statement: &str) -> Result<Answer> {
        let reads = StatementReads::for_statement(&self.inner.reference, session);
        let done = reads.clone().scope(self.execute_text(session, statement));
        reads.noting_failure(done.await)
    }

    async fn prepare_typed(
        &self,
        session: &Session,
        statement: &str,
        types: &[DataType],
    ) -> Result<Arc<dyn Prepared>> {
        let reads = StatementReads::for_statement(&self.inner.reference, session);
        reads
            .scope(self.prepare_text(session, statement, types))
            .await
    }

    async fn execute_prepared(
        &self,
        session: &mut Session,
        prepared: &dyn Prepared,
        parameters: Vec<ArrayRef>,
    ) -> Result<Answer> {
        let reads = StatementReads::for_statement(&self.inner.reference, session);
        let done = reads
            .clone()
            .scope(self.execute_kept(session, prepared, parameters));
        reads.noting_failure(done.await)
    }
}

impl SqlService {
    async fn execute_text(&self, session: &mut Session, statement: &str) -> Result<Answer> {
        session.rights = self.inner.access.rights(&session.identity)?;
        if let Some(answer) = self.answer_from_plan_cache(session, statement).await? {
            return Ok(answer);
        }
        let wrong = |error: SqlError| error.into_service(statement);
        let held = self.inner.text_memory(statement).map_err(wrong)?;
        let command = self.parse(session, statement).await.map_err(wrong)?;
        admit(session, &command)?;
        check_block(&command)?;
        self.count_kept(session, &command);
        if let Some(answer) = self.direct(session, &command).await.map_err(wrong)? {
            return Ok(answer);
        }
        let (inner, settings) = (Arc::clone(&self.inner), session.clone());
        let timeout = session.statement_timeout;
        let sql = statement.to_owned();
        let work = move |out: StatementOutput| {
            on_stack(command.need(), async move {
                let _held = held;
                inner.carry_out_parsed(settings, command, &sql, out).await
            })
        };
        self.inner
            .workers
            .answer(StatementStart::There, timeout, statement, work)
            .await
    }

    async fn prepare_text(
        &self,
        session: &Session,
        statement: &str,
        types: &[DataType],
    ) -> Result<Arc<dyn Prepared>> {
        let inner = &self.inner;
        let session = &self.refreshed(session)?;
        let known = inner
            .plans
            .prepared(&inner.engine, &plan_scope(session), statement);
        if let Some(known) = known
            && !known.wants(types)
        {
            return Ok(known);
        }
        let wrong = |error: SqlError| error.into_service(statement);
        let held = self.inner.text_memory(statement).map_err(wrong)?;
        let command = self.parse(session, statement).await.map_err(wrong)?;
        permissions::check(session, &command)?;
        let prepared = match command.clone() {
            Command::Plan(parsed, _) => {
                let types = types.to_vec();
                let planned = self.plan_and_prepare(session, statement, command, parsed, types);
                let prepared = Arc::new(planned.await.map_err(wrong)?.holding(held));
                // The cached entry serves only clients that name no types.
                if prepared.may_be_shared() {
                    let kept = self.inner.plans.put_prepared(&prepared);
                    kept.map_err(|error| wrong(error.into()))?;
                }
                return Ok(prepared);
            }
            other => {
                let schema = self.direct_schema(session, &other).await.map_err(wrong)?;
                PreparedStatement::direct(statement, session, command, schema)
            }
        };
        Ok(Arc::new(prepared))
    }

    async fn execute_kept(
        &self,
        session: &mut Session,
        prepared: &dyn Prepared,
        parameters: Vec<ArrayRef>,
    ) -> Result<Answer> {
        let sql = prepared.sql().to_owned();
        let wrong = |error: SqlError| error.into_service(&sql);
        let Some(known) = prepared.as_any().downcast_ref::<PreparedStatement>() else {
            return Err(ServiceError::Internal(
                "another service prepared the statement".into(),
            ));
        };
        session.rights = self.inner.access.rights(&session.identity)?;
        admit(session, &known.command)?;
        check_block(&known.command)?;
        self.count_kept(session, &known.command);
        if let Some(answer) = self.direct(session, &known.command).await.map_err(wrong)? {
            return Ok(answer);
        }
        let mut settings = session.clone();
        settings.database.clone_from(&known.database);
        if let command @ Command::CopyFrom(_) = known.command.clone() {
            let inner = Arc::clone(&self.inner);
            let work = move |out: StatementOutput| async move {
                inner.carry_out_parsed(settings, command, "", out).await
            };
            let timeout = session.statement_timeout;
            return self
                .inner
                .workers
                .answer(StatementStart::There, timeout, &sql, work)
                .await;
        }
        if parameters.is_empty()
            && let Some(answer) = self.answer_from_plan_cache(&settings, &sql).await?
        {
            return Ok(answer);
        }
        let made_anew;
        let current = if known.scope == plan_scope(&settings)
            && known.is_current(&self.inner.engine, &self.inner.reference)
        {
            known
        } else {
            let Command::Plan(parsed, _) = known.command.clone() else {
                return Err(ServiceError::Internal("a command was not executed".into()));
            };
            let command = known.command.clone();
            made_anew = self
                .plan_and_prepare(&settings, &sql, command, parsed, known.named.clone())
                .await
                .map_err(wrong)?;
            &made_anew
        };
        let Some(plan) = current.plan.clone() else {
            return Err(ServiceError::Internal(
                "a planned statement has no plan".into(),
            ));
        };
        let values = current.bind(&parameters).map_err(wrong)?;
        let generic_plan = current.generic_plan.clone();
        if let Some(generic_plan) = &generic_plan
            && let Some(known) = generic_plan
                .plan_for(&values)
                .map_err(|e| wrong(e.into()))?
        {
            self.inner.plans.hit();
            return self.carry_out_cached(&settings, known, &sql).await;
        }
        let inner = Arc::clone(&self.inner);
        let names = current.names().clone();
        let need = plan.need();
        let is_kept = parameters.is_empty() && !need.is_deep() && !current.reads_views;
        let text = is_kept.then(|| sql.clone());
        let carry_out = move |out: StatementOutput| async move {
            let state = inner.contexts.state(&settings)?;
            let scope = plan_scope(&settings);
            let (given, keep) = match (&generic_plan, &text) {
                (Some(generic_plan), _) => (
                    marked(&values),
                    PlanRetention::Generic(generic_plan, &values),
                ),
                (None, Some(sql)) => {
                    let scope = &scope;
                    (values.into(), PlanRetention::Text { scope, sql })
                }
                (None, None) => (values.into(), PlanRetention::Nothing),
            };
            let plan = plan.into_inner().with_param_values(given)?;
            inner.carry_out(state, plan, names, keep, out).await
        };
        let work = move |out: StatementOutput| on_stack(need, carry_out(out));
        self.inner
            .workers
            .answer(
                StatementStart::There,
                session.statement_timeout,
                prepared.sql(),
                work,
            )
            .await
    }
}

impl SqlService {
    /// Counts a statement whose changes stay when its block is rolled back.
    fn count_kept(&self, session: &mut Session, command: &Command) {
        if session.transaction.is_some() && self.keeps_its_changes(session, command) {
            session.kept_changes += 1;
        }
    }

    /// Answers a statement whose plan is cached; `None` for other statements.
    async fn answer_from_plan_cache(&self, session: &Session, sql: &str) -> Result<Option<Answer>> {
        let engine = &self.inner.engine;
        let known = self.inner.plans.get(engine, &plan_scope(session), sql);
        let Some(plan) = known else {
            return Ok(None);
        };
        let answer = self.carry_out_cached(session, plan, sql).await?;
        Ok(Some(answer))
    }

    async fn carry_out_cached(
        &self,
        session: &Session,
        plan: Arc<CachedPlan>,
        sql: &str,
    ) -> Result<Answer> {
        let execution = self.inner.contexts.execution(session);
        let execution = execution.map_err(|error| error.into_service(sql))?;
        let work = move |out: StatementOutput| async move {
            cached_plan_rows(&execution, &plan, out).await
        };
        let timeout = session.statement_timeout;
        self.inner
            .workers
            .answer(StatementStart::Inline, timeout, sql, work)
            .await
    }

    /// Parses a statement: a short one on this thread, which takes less time than handing it over,
    /// a long one on the threads for statements.
    async fn parse(&self, session: &Session, sql: &str) -> SqlResult<Command> {
        if sql.len() <= InlinePolicy::DEFAULT.statement_bytes_max {
            return catch_unwind(|| parse::parse(sql)).unwrap_or_else(|_| {
                let message = "a bug in the parser stopped this statement";
                Err(ServiceError::Internal(message.to_owned()).into())
            });
        }
        let sql = sql.to_owned();
        let work = async move { parse::parse(&sql) };
        self.inner
            .workers
            .run(session.statement_timeout, work)
            .await
    }

    async fn plan_and_prepare(
        &self,
        session: &Session,
        sql: &str,
        command: Command,
        statement: DeepTree<Statement>,
        types: Vec<DataType>,
    ) -> SqlResult<PreparedStatement> {
        let (inner, session, sql) = (Arc::clone(&self.inner), session.clone(), sql.to_owned());
        let need = statement.need();
        let timeout = session.statement_timeout;
        let planning = on_stack(need, async move {
            let state = inner.contexts.state(&session)?;
            let mut statement = statement.into_inner();
            let counting = match &mut statement {
                Statement::Statement(statement) => cast_declared(statement, &types),
                _ => BTreeSet::new(),
            };
            let views = inner.views_in(&state, &session, &statement)?;
            let plan = inner.plan(&state, &session, statement).await?;
            let plan = with_parameter_types(plan, &types)?;
            let rows = match inner.kind(&plan)? {
                PlannedStatementKind::Rows => true,
                PlannedStatementKind::Reference => answers_rows(&plan),
                _ => false,
            };
            let reads_reference_tables = reads_reference_tables(&plan)?;
            let answer = final_types(&state, &plan)?;
            let plan = DeepTree::new(plan, need);
            let planned = PreparedStatement::planned(&sql, &session, command, plan, rows)?;
            let planned = planned.answering(answer.as_deref());
            let planned = planned.through(views).naming(types, counting);
            // Tables that are not committed have no version by which they could be recognized.
            let sees_own = StatementReads::of_task().is_some_and(|it| it.sees_own_changes());
            let version = if sees_own {
                u64::MAX
            } else {
                inner.reference.version()
            };
            let version = reads_reference_tables.then_some(version);
            Ok(planned.at_reference_version(version))
        });
        self.inner.workers.run(timeout, planning).await
    }
}

/// Refuses a statement that the session may not run.
fn admit(session: &Session, command: &Command) -> Result<()> {
    write_detection::check(session, command)?;
    permissions::check(session, command)
}

/// Refuses a statement in a transaction block that has failed, except those that end it.
fn check_block(command: &Command) -> Result<()> {
    let has_failed = StatementReads::of_task().is_some_and(|reads| reads.is_in_failed_block());
    if !has_failed || matches!(command, Command::Transaction(..)) {
        return Ok(());
    }
    let message =
        "a statement of this transaction block failed; nothing is executed until ROLLBACK";
    Err(SqlError::invalid("25P02", message).into_service(""))
}

impl SqlServiceInner {
    fn text_memory(&self, sql: &str) -> SqlResult<TextMemory> {
        TextMemory::for_statement(sql, self.contexts.memory_pool())
    }
}
