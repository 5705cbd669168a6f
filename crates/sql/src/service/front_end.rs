//! Front ends for query languages other than SQL.
//!
//! A front end parses the text of a request (with a pure parser, in a crate of its own) and turns
//! each statement into a plan over the engine's tables, into rows, or into a command for the
//! engine. The service provides for all of them what SQL statements have: threads and admission,
//! the timeout, cancellation, memory, and the path of the rows to the reader.
//!
//! Invariant: a statement of a front end runs on a lane of the thread pool, never on the calling
//! thread; dropping its answer stops it.

use crate::SqlOptions;
use crate::access::{AccessControl, check_database};
use crate::dialect::statement::ViewOptions;
use crate::error::{SqlError, SqlResult};
use crate::execution::thread_pool::{StatementOutput, StatementStart};
use crate::service::SqlService;
use crate::service::materialized_views::CreateMaterializedView;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::session_state::SessionState;
use futures::StreamExt;
use futures::stream::BoxStream;
use marigram_access::DatabasePrivileges;
use marigram_engine::Engine;
use marigram_model::{TableId, TableSchema};
use marigram_service::{
    Answer, Language, LanguageQuery, LanguageRequest, Result, ServiceError, Session,
    StatementAnswer, StatementAnswers,
};
use std::collections::HashMap;
use std::sync::Arc;

/// A query language, and how to parse its requests.
pub trait FrontEnd: Send + Sync {
    /// The language.
    fn language(&self) -> Language;

    /// Parses a request. Takes only processor time, in proportion to the text.
    ///
    /// # Errors
    /// If the request as a whole is wrong.
    fn parse(&self, session: &Session, request: &LanguageRequest) -> Result<Arc<dyn Script>>;
}

/// The statements of one request.
#[async_trait]
pub trait Script: Send + Sync {
    /// The number of statements.
    fn len(&self) -> usize;

    /// Whether there are no statements.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Messages for the client besides the answer of a statement.
    fn messages(&self, statement: usize) -> Vec<String> {
        let _ = statement;
        Vec::new()
    }

    /// Plans and begins a statement.
    ///
    /// # Errors
    /// Why the statement failed.
    async fn execute(
        &self,
        statement: usize,
        context: &StatementContext,
    ) -> SqlResult<StatementRows>;

    /// The error to report for a statement that failed, and whether the following statements run.
    fn failed(&self, statement: usize, error: ServiceError) -> (ServiceError, AfterError) {
        let _ = statement;
        (error, AfterError::Stop)
    }
}

/// What happens to the statements after one that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterError {
    /// They run.
    Continue,
    /// They get no answer.
    Stop,
}

/// The result of a front end's statement.
pub enum StatementRows {
    /// Rows, as they are computed.
    Rows {
        /// Their columns.
        schema: SchemaRef,
        /// The rows.
        batches: BoxStream<'static, SqlResult<RecordBatch>>,
    },
    /// No rows.
    Done {
        /// A name for the completed command.
        tag: String,
        /// The number of changed rows.
        rows: u64,
        /// Notices for the client.
        notices: Vec<String>,
    },
}

/// Materialized views as tables, by the numbers of the tables that store them.
pub type ViewTables = HashMap<TableId, Arc<TableSchema>>;

/// A materialized view to create.
#[derive(Clone, Debug)]
pub struct NewMaterializedView {
    /// Its database, which is also that of its table.
    pub database: String,
    /// Its name.
    pub name: String,
    /// Its query, in SQL.
    pub query: String,
    /// How long its buckets are kept; `None` for ever.
    pub ttl_ns: Option<i64>,
}

/// The environment in which a front end's statement runs.
#[derive(Clone)]
pub struct StatementContext {
    service: SqlService,
    session: Session,
}

impl StatementContext {
    /// The session of the request.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        self.service.engine()
    }

    /// Settings of the query side.
    pub fn options(&self) -> &SqlOptions {
        self.service.options()
    }

    /// The pool from which all statements reserve memory.
    pub fn memory_pool(&self) -> &Arc<dyn MemoryPool> {
        self.service.memory_pool()
    }

    /// Users, roles and tokens.
    pub fn access(&self) -> &AccessControl {
        self.service.access()
    }

    /// DataFusion's state for this statement, with the tables of `database`.
    ///
    /// # Errors
    /// If DataFusion's own parts cannot be set up.
    pub fn state(&self, database: &str) -> SqlResult<SessionState> {
        let session = Session {
            database: database.to_owned(),
            ..self.session.clone()
        };
        self.service.session_state(&session)
    }

    /// The materialized views of all databases as tables that show the columns of their queries. A
    /// view that cannot be read as a table is left out.
    ///
    /// # Errors
    /// If the queries of views cannot be read.
    pub async fn views_as_tables(&self) -> SqlResult<ViewTables> {
        let rollups = self.engine().rollups();
        let mut views = ViewTables::with_capacity(rollups.len());
        if rollups.is_empty() {
            return Ok(views);
        }
        let inner = &self.service.inner;
        inner.read_views().await?;
        for table in rollups {
            let definition = inner.contexts.rollup_definitions().for_table(&table);
            let shown = definition.and_then(|definition| definition.shown_table(&table));
            views.extend(shown.map(|shown| (table.id, Arc::new(shown))));
        }
        Ok(views)
    }

    /// Creates a materialized view and fills it.
    ///
    /// # Errors
    /// If the client may not do so, or a view cannot have that form.
    pub async fn create_materialized_view(&self, view: NewMaterializedView) -> SqlResult<()> {
        let rights = Arc::clone(&self.session.rights);
        check_database(&rights, &view.database, DatabasePrivileges::ALL)?;
        let mut options = ViewOptions {
            continuous: Some(true),
            ..ViewOptions::default()
        };
        options.table.ttl_ns = view.ttl_ns.map(Some);
        let asked = CreateMaterializedView {
            database: view.database,
            name: view.name,
            if_not_exists: false,
            options,
            query: view.query,
            with_data: true,
            rights,
        };
        self.service.inner.create_view(asked).await
    }

    /// Runs work that waits for the disk.
    ///
    /// # Errors
    /// The errors of the work.
    pub async fn block<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> SqlResult<T> + Send + 'static,
    ) -> SqlResult<T> {
        self.service.workers().block(work).await
    }

    /// Runs work that changes the database at once; nothing stops the statement after it has begun.
    ///
    /// # Errors
    /// The errors of the work, and `Cancelled` if the statement was stopped before.
    pub async fn commit<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> SqlResult<T> + Send + 'static,
    ) -> SqlResult<T> {
        self.service.workers().commit(work).await
    }
}

/// The progress through a request's statements.
struct Progress {
    context: StatementContext,
    script: Arc<dyn Script>,
    next: usize,
}

impl Progress {
    /// The answer of the next statement.
    async fn step(mut self) -> Option<(StatementAnswer, Self)> {
        let statement = self.next;
        if statement >= self.script.len() {
            return None;
        }
        self.next += 1;
        let answer = match self.answer(statement).await {
            Ok(answer) => Ok(answer),
            Err(error) => {
                let (error, after) = self.script.failed(statement, error);
                if after == AfterError::Stop {
                    self.next = self.script.len();
                }
                Err(error)
            }
        };
        let answer = StatementAnswer {
            statement_id: statement,
            answer,
            messages: self.script.messages(statement),
        };
        Some((answer, self))
    }

    async fn answer(&self, statement: usize) -> Result<Answer> {
        let (script, context) = (Arc::clone(&self.script), self.context.clone());
        let work = move |out: StatementOutput| async move {
            match script.execute(statement, &context).await? {
                StatementRows::Rows { schema, batches } => {
                    drop((script, context));
                    out.rows(schema, batches).await
                }
                StatementRows::Done { tag, rows, notices } => {
                    out.done_with(tag, rows, notices);
                    Ok(())
                }
            }
        };
        let timeout = self.context.session.statement_timeout;
        let workers = self.context.service.workers();
        workers
            .answer(StatementStart::There, timeout, "", work)
            .await
    }
}

#[async_trait]
impl LanguageQuery for SqlService {
    async fn run(&self, session: &Session, request: LanguageRequest) -> Result<StatementAnswers> {
        let known = self.front_ends();
        let front_end = known
            .iter()
            .find(|front_end| front_end.language() == request.language)
            .cloned()
            .ok_or_else(|| ServiceError::Invalid {
                message: format!("{:?} is not supported by this server", request.language),
                position: None,
                sqlstate: "0A000",
            })?;
        let session = self.refreshed(session)?;
        let context = StatementContext {
            service: self.clone(),
            session: session.clone(),
        };
        let read = move || front_end.parse(&session, &request).map_err(SqlError::from);
        // A short text takes less time to parse than to hand over, but the parser is not ours.
        let script = self.workers().block(read).await;
        let script = script.map_err(|error| error.into_service(""))?;
        let progress = Progress {
            context,
            script,
            next: 0,
        };
        Ok(futures::stream::unfold(progress, Progress::step).boxed())
    }
}
