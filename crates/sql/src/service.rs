//! [`SqlService`]: statements from parsing to their results.

mod changes;
mod create_as;
mod explain_analyze;
pub mod front_end;
mod materialized_views;
mod plain_views;
mod planned;

use crate::SqlOptions;
use crate::access::{AccessControl, check_sight};
use crate::dialect::access_statement::AccessStatement;
use crate::dialect::declared_parameters::cast_intervals;
use crate::dialect::parse;
use crate::dialect::statement::{Command, ShowStatement, TableReferenceName};
use crate::dialect::write_detection;
use crate::error::{SqlError, SqlResult};
use crate::execution::context::SessionStates;
use crate::execution::thread_pool::{StatementOutput, StatementStart, StatementThreadPool};
use crate::plan_cache::cached_plan::CachedPlan;
use crate::plan_cache::generic_plan::marked;
use crate::plan_cache::prepared::PreparedStatement;
use crate::plan_cache::text_memory::TextMemory;
use crate::plan_cache::{PlanCache, PlanCacheStats, PlanRetention};
use crate::planning::answer_types::final_types;
use crate::planning::parameter_types::with_parameter_types;
use crate::planning::zones::plan_scope;
use crate::rollup::{self, RollupRefresher, RollupStatus};
use crate::stack::{DeepTree, on_stack};
use crate::statements::permissions;
use crate::statements::session;
use crate::statements::show;
use crate::statements::storage;
use crate::statements::summarize;
use crate::statements::users::{self, AccessAnswer};
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use changes::StatementDone;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::session_state::SessionState;
use datafusion::sql::parser::Statement;
use front_end::FrontEnd;
use futures::StreamExt;
use marigram_access::AccessRights;
use marigram_engine::{Engine, TableCompaction};
use marigram_service::{
    Answer, DEFAULT_DATABASE, Identity, InlinePolicy, Prepared, Query, Result, RowStream,
    ServiceError, Session,
};
use materialized_views::{CreateMaterializedView, RollupScheduler, ServiceHandle};
use planned::{PlannedStatementKind, cached_plan_rows};
use std::fmt;
use std::panic::catch_unwind;
use std::sync::Arc;

/// Executes SQL over an engine. Cheap to clone.
#[derive(Clone)]
pub struct SqlService {
    /// Dropped with the last clone, before that clone releases the rest.
    _handle: Arc<ServiceHandle>,
    inner: Arc<SqlServiceInner>,
}

struct SqlServiceInner {
    engine: Engine,
    access: Arc<AccessControl>,
    options: SqlOptions,
    contexts: SessionStates,
    plans: PlanCache,
    refresher: RollupRefresher,
    workers: StatementThreadPool,
    front_ends: Vec<Arc<dyn FrontEnd>>,
}

impl fmt::Debug for SqlService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlService")
            .field("options", &self.inner.options)
            .finish_non_exhaustive()
    }
}

impl SqlService {
    /// Creates a service over an open engine.
    ///
    /// # Errors
    /// If the spill directory cannot be used, or the operating system cannot create threads.
    pub fn new(engine: Engine, options: SqlOptions) -> Result<Self> {
        Self::with_front_ends(engine, options, Vec::new())
    }

    /// The same, with front ends for other languages besides SQL.
    ///
    /// # Errors
    /// Those of [`SqlService::new`].
    pub fn with_front_ends(
        engine: Engine,
        options: SqlOptions,
        front_ends: Vec<Arc<dyn FrontEnd>>,
    ) -> Result<Self> {
        let workers = StatementThreadPool::new(options.target_partitions)
            .map_err(|error| ServiceError::Internal(format!("no threads for queries: {error}")))?;
        workers.start(crate::execution::context::warm);
        let access = Arc::new(AccessControl::open(engine.clone())?);
        let contexts = SessionStates::new(engine.clone(), Arc::clone(&access), options.clone())
            .map_err(|error| error.into_service(""))?;
        let inner = Arc::new(SqlServiceInner {
            access,
            refresher: RollupRefresher::new(engine.clone()),
            engine,
            options,
            contexts,
            plans: PlanCache::default(),
            workers,
            front_ends,
        });
        let keeper = Arc::new(RollupScheduler::default());
        if inner.options.refreshes_views {
            let (service, keeper) = (Arc::downgrade(&inner), Arc::clone(&keeper));
            inner
                .workers
                .keep(materialized_views::keep(service, keeper));
        }
        Ok(Self {
            _handle: Arc::new(ServiceHandle(keeper)),
            inner,
        })
    }

    pub(crate) fn front_ends(&self) -> &[Arc<dyn FrontEnd>] {
        &self.inner.front_ends
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.inner.engine
    }

    /// Users, roles and tokens.
    pub fn access(&self) -> &AccessControl {
        &self.inner.access
    }

    /// The session with what its client may do now.
    pub(crate) fn refreshed(&self, session: &Session) -> Result<Session> {
        Ok(Session {
            rights: self.inner.access.rights(&session.identity)?,
            ..session.clone()
        })
    }

    pub(crate) fn options(&self) -> &SqlOptions {
        &self.inner.options
    }

    pub(crate) fn memory_pool(&self) -> &Arc<dyn MemoryPool> {
        self.inner.contexts.memory_pool()
    }

    pub(crate) fn session_state(&self, session: &Session) -> SqlResult<SessionState> {
        self.inner.contexts.state(session)
    }

    pub(crate) fn workers(&self) -> &StatementThreadPool {
        &self.inner.workers
    }

    /// The figures of the materialized views of all databases.
    pub fn views(&self) -> Vec<RollupStatus> {
        self.inner.views()
    }

    /// How often the plan cache was used.
    pub fn plan_cache(&self) -> PlanCacheStats {
        self.inner
            .plans
            .usage(self.inner.workers.inline_statements())
    }

    /// Creates a session in `database`, or in the default one.
    async fn begin(
        &self,
        database: Option<&str>,
        identity: &Identity,
        read_only: bool,
    ) -> Result<Session> {
        let rights = self.inner.access.rights(identity)?;
        let engine = self.inner.engine.clone();
        let named = database.map(str::to_owned);
        let found = self.inner.workers.block(move || {
            let name = match named {
                Some(name) => name,
                None if rights.see(DEFAULT_DATABASE) => DEFAULT_DATABASE.to_owned(),
                None => {
                    let first = engine.databases().into_iter().find(|name| rights.see(name));
                    first.unwrap_or_else(|| DEFAULT_DATABASE.to_owned())
                }
            };
            check_sight(&rights, &name)?;
            // The default database exists from the start; a read-only engine cannot create it.
            if !read_only && name == DEFAULT_DATABASE && !engine.databases().contains(&name) {
                engine.create_database(&name, true)?;
            }
            Ok((find_database(&engine, &rights, &name)?, rights))
        });
        match found.await.map_err(|error| error.into_service("")) {
            Ok((name, rights)) => Ok(Session {
                read_only,
                rights,
                ..Session::new(&name, identity.clone())
            }),
            Err(ServiceError::Invalid {
                message,
                sqlstate: "3D000",
                ..
            }) => Err(ServiceError::NotFound(message, "3D000")),
            Err(error) => Err(error),
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
        let (inner, settings) = (Arc::clone(&self.inner), session.clone());
        let work = move |out: StatementOutput| async move {
            let execution = inner.contexts.execution(&settings)?;
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

    /// Executes a statement about users, roles, grants and tokens.
    async fn access_answer(
        &self,
        session: &Session,
        statement: &AccessStatement,
    ) -> SqlResult<Answer> {
        let (inner, session, asked) = (Arc::clone(&self.inner), session.clone(), statement.clone());
        let execute = move || {
            let now_ns = inner.engine.now_ns();
            users::execute(&inner.access, &session, &asked, now_ns)
        };
        Ok(match self.inner.workers.block(execute).await? {
            AccessAnswer::Rows(rows) => one_batch(rows),
            AccessAnswer::Done(tag, notices) => {
                let missing = users::missing_databases(statement, &self.inner.engine.databases());
                let done = StatementDone::new(tag).telling(notices).telling(missing);
                done.into()
            }
        })
    }

    /// Executes a command that needs no plan; `None` for a command that needs one.
    async fn direct(&self, session: &mut Session, command: &Command) -> SqlResult<Option<Answer>> {
        let inner = Arc::clone(&self.inner);
        let answer = match command {
            Command::Plan(..) | Command::CopyFrom(_) => return Ok(None),
            Command::Nothing(tag) => done(tag),
            Command::Skipped { tag, notice } => {
                StatementDone::new(tag).telling(vec![notice.clone()]).into()
            }
            Command::Set { name, value } => {
                session::set(session, name, value.as_deref())?;
                done(if value.is_some() { "SET" } else { "RESET" })
            }
            Command::Use(name) => {
                session.database = self.database(session, name).await?;
                done("USE")
            }
            Command::Show(ShowStatement::Pages {
                target,
                segment,
                limit,
            }) => self.pages(session, target, *segment, *limit).await?,
            Command::Show(what) => one_batch(self.show(session, what).await?),
            Command::Access(statement) => self.access_answer(session, statement).await?,
            Command::CreateView {
                target,
                if_not_exists,
                options,
                query,
                with_data,
            } => {
                let asked = CreateMaterializedView {
                    rights: Arc::clone(&session.rights),
                    database: target.database.clone().unwrap_or(session.database.clone()),
                    name: target.table.clone(),
                    if_not_exists: *if_not_exists,
                    options: options.clone(),
                    query: query.clone(),
                    with_data: *with_data,
                };
                let create = async move { inner.create_view(asked).await };
                let timeout = session.statement_timeout;
                self.inner.workers.run(timeout, create).await?;
                done("CREATE MATERIALIZED VIEW")
            }
            Command::RefreshView(target) => {
                let table = inner.view(session, target)?;
                let refresh = async move { inner.refresh_view(&table).await };
                let timeout = session.statement_timeout;
                self.inner.workers.run(timeout, refresh).await?;
                done("REFRESH MATERIALIZED VIEW")
            }
            Command::CompactTable(target) => {
                let database = target.database.clone().unwrap_or(session.database.clone());
                let (table, work) = (target.table.clone(), Arc::clone(&inner));
                let compact = move || {
                    let done = work.engine.compact_table(&database, &table)?;
                    show::compacted(&done)
                };
                one_batch(inner.workers.block(compact).await?)
            }
            Command::Summarize(statement) => {
                let (session, statement) = (session.clone(), statement.clone());
                let (timeout, need) = (session.statement_timeout, statement.need());
                let work = async move { inner.summarize(&session, statement.into_inner()).await };
                let rows = self
                    .inner
                    .workers
                    .run(timeout, on_stack(need, work))
                    .await?;
                one_batch(rows)
            }
            Command::CreateTableAs(asked) => {
                let (session, asked) = (session.clone(), asked.clone());
                let timeout = session.statement_timeout;
                let create = async move { inner.create_table_as(&session, asked).await };
                self.inner.workers.run(timeout, create).await?.into()
            }
            Command::CreatePlainView(asked) => {
                let (session, asked) = (session.clone(), asked.clone());
                let timeout = session.statement_timeout;
                let create = async move { inner.create_plain_view(&session, asked).await };
                self.inner.workers.run(timeout, create).await?.into()
            }
            change => {
                let (session, change) = (session.clone(), change.clone());
                let work = Arc::clone(&inner);
                let done = inner
                    .workers
                    .block(move || work.change(&session, &change))
                    .await?;
                done.into()
            }
        };
        Ok(Some(answer))
    }

    /// The name of a database that the session may see.
    async fn database(&self, session: &Session, name: &str) -> SqlResult<String> {
        let (name, rights) = (name.to_owned(), Arc::clone(&session.rights));
        let engine = self.inner.engine.clone();
        let find = move || find_database(&engine, &rights, &name);
        self.inner.workers.block(find).await
    }

    async fn show(&self, session: &Session, what: &ShowStatement) -> SqlResult<RecordBatch> {
        if let ShowStatement::Views(database) = what {
            let database = database.clone().unwrap_or(session.database.clone());
            let inner = Arc::clone(&self.inner);
            let show = move || rollup::views(&inner.views(), &database);
            return self.inner.workers.block(show).await;
        }
        if let Some(shown) = self.show_view(session, what).await? {
            return Ok(shown);
        }
        let (engine, session, what) = (self.inner.engine.clone(), session.clone(), what.clone());
        self.inner
            .workers
            .block(move || show::show(&engine, &session, &what))
            .await
    }

    /// Streams the pages of a table.
    async fn pages(
        &self,
        session: &Session,
        target: &TableReferenceName,
        segment: Option<u64>,
        limit: Option<u64>,
    ) -> SqlResult<Answer> {
        let (inner, target) = (Arc::clone(&self.inner), target.clone());
        let database = target.database.unwrap_or(session.database.clone());
        let engine = inner.engine.clone();
        let seen = move || {
            let snapshot = engine.snapshot(&database, &target.table)?;
            Ok(storage::PageDetailStream::new(&snapshot, segment, limit))
        };
        let pages = self.inner.workers.block(seen).await?;
        let work = move |out: StatementOutput| async move {
            let batches = futures::stream::try_unfold(pages, |mut pages| async {
                let read = move || Ok((pages.next_batch()?, pages));
                let (batch, rest) = inner.workers.block(read).await?;
                Ok::<_, SqlError>(batch.map(|batch| (batch, rest)))
            });
            out.rows(storage::pages_schema(), batches).await
        };
        // Positions in the statement are those of names, and all names have been resolved.
        let answer =
            self.inner
                .workers
                .answer(StatementStart::There, session.statement_timeout, "", work);
        Ok(answer.await?)
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
            if let Statement::Statement(statement) = &mut statement {
                cast_intervals(statement, &types);
            }
            let views = inner.views_in(&state, &session, &statement)?;
            let plan = inner.plan(&state, &session, statement).await?;
            let plan = with_parameter_types(plan, &types)?;
            let rows = matches!(inner.kind(&plan)?, PlannedStatementKind::Rows);
            let answer = final_types(&state, &plan)?;
            let plan = DeepTree::new(plan, need);
            let planned = PreparedStatement::planned(&sql, &session, command, plan, rows)?;
            let planned = planned.answering(answer.as_deref());
            Ok(planned.through(views).naming(types))
        });
        self.inner.workers.run(timeout, planning).await
    }
}

fn one_batch(batch: RecordBatch) -> Answer {
    let schema = batch.schema();
    let batches = futures::stream::iter([Ok(batch)]).boxed();
    Answer::Rows(RowStream { schema, batches })
}

/// Refuses a statement that the session may not run.
fn admit(session: &Session, command: &Command) -> Result<()> {
    write_detection::check(session, command)?;
    permissions::check(session, command)
}

fn done(tag: &str) -> Answer {
    StatementDone::new(tag).into()
}

/// Finds a database by name.
fn find_database(engine: &Engine, rights: &AccessRights, name: &str) -> SqlResult<String> {
    let mut databases = engine.databases();
    databases.retain(|name| rights.see(name));
    if databases.iter().any(|known| known == name) {
        return Ok(name.to_owned());
    }
    Err(SqlError::unknown(
        "3D000",
        "database",
        name,
        databases.iter().map(String::as_str),
    ))
}

impl SqlServiceInner {
    fn text_memory(&self, sql: &str) -> SqlResult<TextMemory> {
        TextMemory::for_statement(sql, self.contexts.memory_pool())
    }
}

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

    async fn execute(&self, session: &mut Session, statement: &str) -> Result<Answer> {
        session.rights = self.inner.access.rights(&session.identity)?;
        if let Some(answer) = self.answer_from_plan_cache(session, statement).await? {
            return Ok(answer);
        }
        let wrong = |error: SqlError| error.into_service(statement);
        let held = self.inner.text_memory(statement).map_err(wrong)?;
        let command = self.parse(session, statement).await.map_err(wrong)?;
        admit(session, &command)?;
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

    async fn prepare_typed(
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
                if prepared.named.iter().all(|kind| *kind == DataType::Null) {
                    let kept = self.inner.plans.put_prepared(&prepared);
                    kept.map_err(|error| wrong(error.into()))?;
                }
                return Ok(prepared);
            }
            Command::Show(ShowStatement::Pages { .. }) => {
                let schema = Some(storage::pages_schema());
                PreparedStatement::direct(statement, session, command, schema)
            }
            Command::Show(what) => {
                let shown = self.show(session, &what).await.map_err(wrong)?;
                let schema = Some(shown.schema());
                PreparedStatement::direct(statement, session, command, schema)
            }
            Command::Summarize(_) => {
                let schema = Some(summarize::schema());
                PreparedStatement::direct(statement, session, command, schema)
            }
            Command::Access(asked) => {
                let schema = users::schema(&asked);
                PreparedStatement::direct(statement, session, command, schema)
            }
            Command::CompactTable(_) => {
                let shown = show::compacted(&TableCompaction::default()).map_err(wrong)?;
                let schema = Some(shown.schema());
                PreparedStatement::direct(statement, session, command, schema)
            }
            _ => PreparedStatement::direct(statement, session, command, None),
        };
        Ok(Arc::new(prepared))
    }

    async fn execute_prepared(
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
        let current =
            if known.scope == plan_scope(&settings) && known.is_current(&self.inner.engine) {
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
