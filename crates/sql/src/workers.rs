//! The threads on which statements run, and the way of their answers to the caller.
//!
//! Invariant: whoever waits for an answer needs no runtime of its own, and by dropping the answer
//! stops the statement. Who has seen an answer's end holds the database alone: the statement lets go
//! of it before it tells that it is done.

use crate::error::{SqlError, SqlResult};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use futures::{FutureExt, Stream, StreamExt, pin_mut};
use marigram_service::{Answer, RowStream, ServiceError};
use parking_lot::Mutex;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// Messages that wait for a slow reader.
const MESSAGES_MAX: usize = 2;
/// Threads for blocking work: scans in their steps, and writes that wait for the disk.
const BLOCKING_THREADS_MAX: usize = 128;

/// Rows up to which a batch does not go out before it is seen whether it is the last one.
const SMALL_ROWS: usize = 2048;

/// The threads.
#[derive(Debug)]
pub struct Workers {
    runtime: Option<Runtime>,
}

/// What a running statement tells.
enum Message {
    /// Rows of a schema and the first of them; whether more follow.
    Rows {
        schema: SchemaRef,
        first: Option<RecordBatch>,
        more: bool,
    },
    Batch(RecordBatch),
    Done {
        tag: String,
        rows: u64,
    },
    End,
    Failed(ServiceError),
}

/// The side of a running statement on which it tells.
#[derive(Clone)]
pub struct Outlet {
    sender: mpsc::Sender<Message>,
    /// What is told in the place of the end, when the statement holds nothing any more.
    last: Arc<Mutex<Option<Message>>>,
}

impl Outlet {
    /// All rows of a stream. Each message wakes the reader, so that the schema goes with the first
    /// batch, and with a small one the end as well, if there is nothing to wait for.
    ///
    /// # Errors
    /// The stream's, and `Cancelled` where the reader has gone away.
    pub async fn rows<E>(
        &self,
        schema: SchemaRef,
        batches: impl Stream<Item = Result<RecordBatch, E>>,
    ) -> SqlResult<()>
    where
        SqlError: From<E>,
    {
        pin_mut!(batches);
        let first = batches.next().await.transpose()?;
        let mut second = None;
        let mut more = first.is_some();
        let is_small = |batch: &RecordBatch| batch.num_rows() <= SMALL_ROWS;
        if first.as_ref().is_some_and(is_small)
            && let Some(next) = batches.next().now_or_never()
        {
            more = next.is_some();
            second = next;
        }
        let begun = Message::Rows {
            schema,
            first,
            more,
        };
        if !more {
            *self.last.lock() = Some(begun);
            return Ok(());
        }
        self.send(begun).await?;
        if let Some(batch) = second {
            self.send(Message::Batch(batch?)).await?;
        }
        while let Some(batch) = batches.next().await {
            self.send(Message::Batch(batch?)).await?;
        }
        Ok(())
    }

    /// The statement is done, and has no rows.
    pub fn done(&self, tag: String, rows: u64) {
        *self.last.lock() = Some(Message::Done { tag, rows });
    }

    async fn send(&self, message: Message) -> SqlResult<()> {
        let gone = |_| ServiceError::Cancelled("the client went away".into());
        Ok(self.sender.send(message).await.map_err(gone)?)
    }
}

/// Stops a task when it is dropped.
struct StopOnDrop(AbortHandle);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Workers {
    /// `threads` threads that execute queries, and more that wait for the disk.
    ///
    /// # Errors
    /// If the machine gives no threads.
    pub fn new(threads: usize) -> std::io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads.max(1))
            .max_blocking_threads(BLOCKING_THREADS_MAX)
            .thread_name("marigram-sql")
            .enable_all()
            .build()?;
        Ok(Self {
            runtime: Some(runtime),
        })
    }

    fn runtime(&self) -> &Runtime {
        self.runtime
            .as_ref()
            .expect("it is taken only when the workers are dropped")
    }

    /// Starts blocking work that nobody waits for.
    pub fn start(&self, work: impl FnOnce() + Send + 'static) {
        self.runtime().spawn_blocking(work);
    }

    /// Starts work that goes on until it ends by itself, or with the threads.
    pub fn keep(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.runtime().spawn(work);
    }

    /// Runs blocking work.
    ///
    /// # Errors
    /// The work's own.
    pub async fn block<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> SqlResult<T> + Send + 'static,
    ) -> SqlResult<T> {
        match self.runtime().spawn_blocking(work).await {
            Ok(result) => result,
            Err(error) => {
                Err(ServiceError::Internal(format!("a statement failed: {error}")).into())
            }
        }
    }

    /// Runs asynchronous work to its end, at most for `timeout`.
    ///
    /// # Errors
    /// The work's own, and `Cancelled` after the timeout.
    pub async fn run<T: Send + 'static>(
        &self,
        timeout: Option<Duration>,
        work: impl Future<Output = SqlResult<T>> + Send + 'static,
    ) -> SqlResult<T> {
        let task = self.runtime().spawn(within(timeout, work));
        let _stop = StopOnDrop(task.abort_handle());
        match task.await {
            Ok(result) => result,
            Err(error) => {
                Err(ServiceError::Internal(format!("a statement failed: {error}")).into())
            }
        }
    }

    /// Starts a statement that tells its answer through an outlet, and waits for the first of it.
    /// `sql` is the statement, for positions in errors.
    ///
    /// # Errors
    /// The statement's, as far as they come before the first row.
    pub async fn answer<F, W>(
        &self,
        timeout: Option<Duration>,
        sql: &str,
        work: W,
    ) -> Result<Answer, ServiceError>
    where
        F: Future<Output = SqlResult<()>> + Send + 'static,
        W: FnOnce(Outlet) -> F + Send + 'static,
    {
        let (sender, mut receiver) = mpsc::channel(MESSAGES_MAX);
        let statement = sql.to_owned();
        let task = self.runtime().spawn(async move {
            let told = Arc::default();
            let outlet = Outlet {
                sender: sender.clone(),
                last: Arc::clone(&told),
            };
            let last = match within(timeout, work(outlet)).await {
                Ok(()) => told.lock().take().unwrap_or(Message::End),
                Err(error) => Message::Failed(error.into_service(&statement)),
            };
            // Nobody waits for it where sending fails.
            let _ = sender.send(last).await;
        });
        let stop = StopOnDrop(task.abort_handle());
        match receiver.recv().await {
            Some(Message::Rows {
                schema,
                first,
                more,
            }) => {
                let first = futures::stream::iter(first.map(Ok));
                let batches = if more {
                    first.chain(rest(receiver, stop)).boxed()
                } else {
                    first.boxed()
                };
                Ok(Answer::Rows(RowStream { schema, batches }))
            }
            Some(Message::Done { tag, rows }) => Ok(Answer::Done { tag, rows }),
            Some(Message::Failed(error)) => Err(error),
            Some(Message::Batch(_) | Message::End) | None => Err(broken()),
        }
    }
}

/// The batches behind the first one.
fn rest(
    receiver: mpsc::Receiver<Message>,
    stop: StopOnDrop,
) -> impl Stream<Item = Result<RecordBatch, ServiceError>> + Send {
    futures::stream::unfold(Some((receiver, stop)), |state| async move {
        let (mut receiver, stop) = state?;
        match receiver.recv().await {
            Some(Message::Batch(batch)) => Some((Ok(batch), Some((receiver, stop)))),
            Some(Message::Failed(error)) => Some((Err(error), None)),
            Some(_) => None,
            None => Some((Err(broken()), None)),
        }
    })
}

fn broken() -> ServiceError {
    ServiceError::Internal("the statement ended without an answer".into())
}

async fn within<T>(
    timeout: Option<Duration>,
    work: impl Future<Output = SqlResult<T>>,
) -> SqlResult<T> {
    let Some(timeout) = timeout else {
        return work.await;
    };
    match tokio::time::timeout(timeout, work).await {
        Ok(result) => result,
        Err(_) => Err(SqlError::Service(ServiceError::Cancelled(format!(
            "the statement took longer than statement_timeout ({} ms) and was stopped",
            timeout.as_millis()
        )))),
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
