//! The threads on which statements run, and the way of their answers to the caller.
//!
//! A statement that is short begins on the thread of who asks, and ends there if it has to wait for
//! nothing: to hand it over and to be woken by its end takes some 100 µs, several times as long as
//! most short statements take.
//!
//! Invariant: whoever waits for an answer needs no runtime of its own, and by dropping the answer
//! stops the statement. Who has seen an answer's end holds the database alone: the statement lets go
//! of it before it tells that it is done.

use crate::error::{SqlError, SqlResult};
use crate::stack::{StackNeed, WORKER_STACK_BYTES};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use futures::{FutureExt, Stream, StreamExt, pin_mut};
use marigram_service::{Answer, RowStream, ServiceError};
use parking_lot::Mutex;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
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
    done_here: AtomicU64,
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
    /// Whether the statement is on the thread of who asks.
    is_here: Arc<AtomicBool>,
}

/// Where a statement begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// On the thread of who asks.
    Here,
    /// On the threads for statements.
    There,
}

impl Outlet {
    /// Goes on with the statement on the threads for statements, if it is not there already: what
    /// follows may take longer than to hand it over.
    pub async fn move_on(&self) {
        poll_fn(|_| {
            // Who began it here polls it once, and hands it over then.
            if self.is_here.load(Ordering::Relaxed) {
                Poll::Pending
            } else {
                Poll::Ready(())
            }
        })
        .await;
    }

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
            .thread_stack_size(WORKER_STACK_BYTES)
            .thread_name("marigram-sql")
            .enable_all()
            .build()?;
        Ok(Self {
            runtime: Some(runtime),
            done_here: AtomicU64::new(0),
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
    /// `sql` is the statement, for positions in errors. What begins on this thread goes on with the
    /// others when it has to wait, or [wants to](Outlet::move_on).
    ///
    /// # Errors
    /// The statement's, as far as they come before the first row.
    pub async fn answer<F, W>(
        &self,
        begin: Begin,
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
        let is_here = Arc::new(AtomicBool::new(begin == Begin::Here));
        let outlet_is_here = Arc::clone(&is_here);
        let statement = Box::pin(async move {
            let told = Arc::default();
            let outlet = Outlet {
                sender: sender.clone(),
                last: Arc::clone(&told),
                is_here: outlet_is_here,
            };
            let last = match within(timeout, work(outlet)).await {
                Ok(()) => told.lock().take().unwrap_or(Message::End),
                Err(error) => Message::Failed(error.into_service(&statement)),
            };
            // Nobody waits for it where sending fails.
            let _ = sender.send(last).await;
        });
        let left = match begin {
            Begin::Here => self.begin_here(statement),
            Begin::There => Some(statement),
        };
        is_here.store(false, Ordering::Relaxed);
        let stop = left.map(|left| StopOnDrop(self.runtime().spawn(left).abort_handle()));
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

    /// Begins a statement on this thread; gives it back where it is not done.
    fn begin_here<F: Future<Output = ()>>(
        &self,
        mut statement: Pin<Box<F>>,
    ) -> Option<Pin<Box<F>>> {
        // What it starts is for our threads.
        let _ours = self.runtime().enter();
        // Whoever goes on with it looks at it at once.
        let mut nobody = Context::from_waker(Waker::noop());
        let shallow = StackNeed::of_depth(0);
        let poll = || shallow.run_anywhere(|| statement.as_mut().poll(&mut nobody));
        let poll = AssertUnwindSafe(poll);
        match catch_unwind(poll) {
            Ok(Poll::Pending) => Some(statement),
            Ok(Poll::Ready(())) => {
                self.done_here.fetch_add(1, Ordering::Relaxed);
                None
            }
            // Nothing was told, and the answer is an error.
            Err(_) => None,
        }
    }

    /// How many statements began and ended on the thread of who asked.
    pub fn done_here(&self) -> u64 {
        self.done_here.load(Ordering::Relaxed)
    }
}

/// The batches behind the first one. `stop` is that of a statement that may be running.
fn rest(
    receiver: mpsc::Receiver<Message>,
    stop: Option<StopOnDrop>,
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

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, Int64Array};
    use futures::executor::block_on;
    use std::thread;

    fn batch(number: i64) -> RecordBatch {
        let column: ArrayRef = Arc::new(Int64Array::from(vec![number]));
        RecordBatch::try_from_iter([("n", column)]).unwrap()
    }

    fn answer<F: Future<Output = SqlResult<()>> + Send + 'static>(
        workers: &Workers,
        begin: Begin,
        work: impl FnOnce(Outlet) -> F + Send + 'static,
    ) -> Result<Vec<RecordBatch>, ServiceError> {
        block_on(async {
            match workers.answer(begin, None, "", work).await? {
                Answer::Rows(rows) => rows.batches.collect::<Vec<_>>().await.into_iter().collect(),
                Answer::Done { .. } => Ok(Vec::new()),
            }
        })
    }

    #[test]
    fn what_begins_here_ends_here_unless_it_waits_or_moves_on() {
        let workers = Workers::new(1).unwrap();
        let here = thread::current().id();
        let where_is = |begin, moves: bool, waits: bool| {
            let told = Arc::new(Mutex::new(Vec::new()));
            let seen = Arc::clone(&told);
            let work = move |out: Outlet| async move {
                seen.lock().push(thread::current().id());
                if moves {
                    out.move_on().await;
                }
                if waits {
                    let slow = || thread::sleep(Duration::from_millis(20));
                    tokio::task::spawn_blocking(slow).await.unwrap();
                }
                seen.lock().push(thread::current().id());
                out.done("DONE".to_owned(), 0);
                Ok(())
            };
            assert!(answer(&workers, begin, work).unwrap().is_empty());
            let told = told.lock();
            (told[0] == here, told[1] == here)
        };
        assert_eq!(where_is(Begin::Here, false, false), (true, true));
        assert_eq!(where_is(Begin::Here, true, false), (true, false));
        assert_eq!(where_is(Begin::Here, false, true), (true, false));
        assert_eq!(where_is(Begin::There, true, true), (false, false));
        assert_eq!(workers.done_here(), 1);
    }

    #[test]
    fn more_batches_than_wait_for_a_reader_go_on_elsewhere() {
        let workers = Workers::new(1).unwrap();
        let work = |out: Outlet| async move {
            let batches = futures::stream::iter((0..10).map(|at| SqlResult::Ok(batch(at))));
            out.rows(batch(0).schema(), batches).await
        };
        let expected: Vec<RecordBatch> = (0..10).map(batch).collect();
        for begin in [Begin::Here, Begin::There] {
            assert_eq!(answer(&workers, begin, work).unwrap(), expected);
        }
        assert_eq!(workers.done_here(), 0);
    }

    #[test]
    fn a_panic_here_is_an_error_of_the_statement() {
        let workers = Workers::new(1).unwrap();
        for begin in [Begin::Here, Begin::There] {
            let work = |_: Outlet| async { panic!("a bug") };
            assert!(matches!(
                answer(&workers, begin, work),
                Err(ServiceError::Internal(_))
            ));
        }
    }
}
