//! Query languages other than SQL, each a front end beside it.
//!
//! A front end reads the text of a request (a pure parser, in a crate of its own) and makes each
//! statement a plan over the engine's tables, rows that are ready, or a command to the engine. What
//! SQL's statements have is the service's own, and the same for all: threads and admission, the
//! timeout, cancellation, memory, and the way of the rows to the reader.
//!
//! Invariant: a statement of a front end runs on a lane of the thread pool, never on the thread of
//! who asks; who drops its answer stops it.

use crate::SqlOptions;
use crate::error::{SqlError, SqlResult};
use crate::execution::thread_pool::{StatementOutput, StatementStart};
use crate::service::SqlService;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::session_state::SessionState;
use futures::StreamExt;
use futures::stream::BoxStream;
use marigram_engine::Engine;
use marigram_service::{
    Answer, Language, LanguageQuery, LanguageRequest, Result, ServiceError, Session,
    StatementAnswer, StatementAnswers,
};
use std::sync::Arc;

/// A query language: how its requests are read.
pub trait FrontEnd: Send + Sync {
    /// Which language this is.
    fn language(&self) -> Language;

    /// Reads a request. Takes processor time only, in proportion to the text.
    ///
    /// # Errors
    /// If the request as a whole is wrong.
    fn parse(&self, session: &Session, request: &LanguageRequest) -> Result<Arc<dyn Script>>;
}

/// The statements of one request.
#[async_trait]
pub trait Script: Send + Sync {
    /// How many there are.
    fn len(&self) -> usize;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the client should know beside the answer of a statement.
    fn messages(&self, statement: usize) -> Vec<String> {
        let _ = statement;
        Vec::new()
    }

    /// Plans and begins a statement.
    ///
    /// # Errors
    /// Why it is not done.
    async fn execute(
        &self,
        statement: usize,
        context: &StatementContext,
    ) -> SqlResult<StatementRows>;

    /// The error that is told of a statement that failed, and whether the following ones run.
    fn failed(&self, statement: usize, error: ServiceError) -> (ServiceError, AfterError) {
        let _ = statement;
        (error, AfterError::Stop)
    }
}

/// What becomes of the statements behind one that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterError {
    /// They run.
    Continue,
    /// They have no answer.
    Stop,
}

/// What a statement of a front end gives.
pub enum StatementRows {
    /// Rows, as they are made.
    Rows {
        /// Their columns.
        schema: SchemaRef,
        /// The rows.
        batches: BoxStream<'static, SqlResult<RecordBatch>>,
    },
    /// No rows.
    Done {
        /// A name for what was done.
        tag: String,
        /// Rows changed.
        rows: u64,
        /// What the client should know beside.
        notices: Vec<String>,
    },
}

/// What a statement of a front end works with.
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

    /// What all statements draw their memory on.
    pub fn memory_pool(&self) -> &Arc<dyn MemoryPool> {
        self.service.memory_pool()
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

    /// Runs work that waits for the disk.
    ///
    /// # Errors
    /// The work's own.
    pub async fn block<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> SqlResult<T> + Send + 'static,
    ) -> SqlResult<T> {
        self.service.workers().block(work).await
    }
}

/// The way through a request's statements.
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
                message: format!("{:?} is not spoken here", request.language),
                position: None,
                sqlstate: "0A000",
            })?;
        let context = StatementContext {
            service: self.clone(),
            session: session.clone(),
        };
        let session = session.clone();
        let read = move || front_end.parse(&session, &request).map_err(SqlError::from);
        // A short text takes less time to read than to hand over, but the parser is not ours.
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
