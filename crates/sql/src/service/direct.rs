//! Commands that need no plan: settings, SHOW, users, and changes of databases, tables and views.
//!
//! Each runs on the threads for statements unless it only changes the session. The changes
//! themselves are in [`super::changes`] and its neighbours; this file decides where each one runs and
//! what its answer is.

use super::changes::StatementDone;
use super::hypertables;
use super::materialized_views::CreateMaterializedView;
use super::{SqlService, find_database};
use crate::dialect::access_statement::AccessStatement;
use crate::dialect::statement::{Command, ReferenceStatement, ShowStatement, TableReferenceName};
use crate::error::{SqlError, SqlResult};
use crate::execution::thread_pool::{StatementOutput, StatementStart};
use crate::rollup;
use crate::stack::on_stack;
use crate::statements::session;
use crate::statements::show;
use crate::statements::storage;
use crate::statements::summarize;
use crate::statements::users::{self, AccessAnswer};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use futures::StreamExt;
use marigram_engine::TableCompaction;
use marigram_service::{Answer, RowStream, Session};
use std::sync::Arc;

impl SqlService {
    /// Executes a command that needs no plan; `None` for a command that needs one.
    pub(super) async fn direct(
        &self,
        session: &mut Session,
        command: &Command,
    ) -> SqlResult<Option<Answer>> {
        if let Some(answer) = self.change_reference_tables(session, command).await? {
            return Ok(Some(answer));
        }
        if let Some(answer) = self.change_series_table(session, command).await? {
            return Ok(Some(answer));
        }
        self.direct_command(session, command).await
    }

    async fn direct_command(
        &self,
        session: &mut Session,
        command: &Command,
    ) -> SqlResult<Option<Answer>> {
        let inner = Arc::clone(&self.inner);
        let answer = match command {
            Command::Plan(..) | Command::CopyFrom(_) => return Ok(None),
            Command::Nothing(tag) => done(tag),
            Command::Transaction(step, tag) => {
                self.transaction_step(session, step.clone()).await?;
                done(tag)
            }
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
            create @ Command::CreateView { .. } => self.create_view(session, create).await?,
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
            Command::Hypertable(calls) => {
                let (session, calls) = (session.clone(), calls.clone());
                let timeout = session.statement_timeout;
                let work = async move { inner.call_hypertables(&session, calls).await };
                self.inner.workers.run(timeout, work).await?
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
                    .commit(move || work.change(&session, &change))
                    .await?;
                done.into()
            }
        };
        Ok(Some(answer))
    }

    /// Executes a change of a table of series: it means what the grammar of series says. `None` for other
    /// commands.
    async fn change_series_table(
        &self,
        session: &mut Session,
        command: &Command,
    ) -> SqlResult<Option<Answer>> {
        let Command::Reference(ReferenceStatement::Change {
            target,
            if_exists,
            series,
            ..
        }) = command
        else {
            return Ok(None);
        };
        let database = target.database.as_ref().unwrap_or(&session.database);
        let is_missing = || self.inner.engine.table(database, &target.table).is_err();
        // A table that is not there is of neither kind.
        if *if_exists && series.is_err() && is_missing() {
            let name = &target.table;
            let notice = format!("table '{name}' does not exist, and was not changed");
            let done = StatementDone::new("ALTER TABLE").telling([notice]);
            return Ok(Some(done.into()));
        }
        let series = series.clone()?;
        Box::pin(self.direct(session, &series)).await
    }

    /// `CREATE MATERIALIZED VIEW`
    async fn create_view(&self, session: &Session, command: &Command) -> SqlResult<Answer> {
        let Command::CreateView {
            target,
            if_not_exists,
            options,
            query,
            with_data,
        } = command
        else {
            return Err(SqlError::syntax("a view is created from its query"));
        };
        let asked = CreateMaterializedView {
            rights: Arc::clone(&session.rights),
            database: target.database.clone().unwrap_or(session.database.clone()),
            name: target.table.clone(),
            if_not_exists: *if_not_exists,
            options: options.clone(),
            query: query.clone(),
            with_data: *with_data,
        };
        let inner = Arc::clone(&self.inner);
        let create = async move { inner.create_view(asked).await };
        let timeout = session.statement_timeout;
        self.inner.workers.run(timeout, create).await?;
        let done = StatementDone::new("CREATE MATERIALIZED VIEW");
        Ok(done.telling(options.notices.iter().cloned()).into())
    }

    /// The columns that a command without a plan answers with; `None` if it answers with no rows.
    pub(super) async fn direct_schema(
        &self,
        session: &Session,
        command: &Command,
    ) -> SqlResult<Option<SchemaRef>> {
        Ok(match command {
            Command::Show(ShowStatement::Pages { .. }) => Some(storage::pages_schema()),
            Command::Show(what) => Some(self.show(session, what).await?.schema()),
            Command::Summarize(_) => Some(summarize::schema()),
            Command::Hypertable(calls) => hypertables::schema(calls),
            Command::Access(asked) => users::schema(asked),
            Command::CompactTable(_) => {
                Some(show::compacted(&TableCompaction::default())?.schema())
            }
            _ => None,
        })
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
        Ok(match self.inner.workers.commit(execute).await? {
            AccessAnswer::Rows(rows) => one_batch(rows),
            AccessAnswer::Done(tag, notices) => {
                let missing = users::missing_databases(statement, &self.inner.engine.databases());
                let done = StatementDone::new(tag).telling(notices).telling(missing);
                done.into()
            }
        })
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
        let tables = (self.inner.engine.clone(), self.inner.reference.clone());
        let (session, what) = (session.clone(), what.clone());
        self.inner
            .workers
            .block(move || show::show((&tables.0, &tables.1), &session, &what))
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
}

fn one_batch(batch: RecordBatch) -> Answer {
    let schema = batch.schema();
    let batches = futures::stream::iter([Ok(batch)]).boxed();
    Answer::Rows(RowStream::new(schema, batches))
}

fn done(tag: &str) -> Answer {
    StatementDone::new(tag).into()
}
