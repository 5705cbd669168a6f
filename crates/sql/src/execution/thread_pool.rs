//! The threads on which statements run, and the way of their answers to the caller.
//!
//! A statement that is short begins on the thread of who asks, and ends there if it has to wait for
//! nothing: to hand it over and to be woken by its end takes some 100 µs, several times as long as
//! most short statements take. Every other statement gets a lane of threads for itself (`lanes`),
//! and is watched from outside (`watch`). What belongs to no statement has threads beside those.
//!
//! Invariant: whoever waits for an answer needs no runtime of its own, and by dropping the answer
//! stops the statement. Who has seen an answer's end holds the database alone: the statement lets go
//! of it before it tells that it is done.

mod lanes;
mod output;
mod priority;
#[cfg(test)]
mod tests;
mod watchdog;

use crate::error::{SqlError, SqlResult};
use crate::stack::{StackNeed, WORKER_STACK_BYTES};
use futures::StreamExt;
use lanes::{LaneLease, LanePool};
use marigram_service::{Answer, RowStream, ServiceError};
use output::{
    LanePlacement, MESSAGES_MAX, OutputEnd, OutputMessage, reader_gone_error, remaining_batches,
    statement_broken_error,
};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use watchdog::{OnAbandoned, StatementWatchdog, StopStatementOnDrop, timed_out};

pub use output::StatementOutput;

/// Threads for blocking work that belongs to no statement's lane.
const BLOCKING_THREADS_MAX: usize = 128;
/// Threads that watch statements and refresh what is kept from others.
const WATCHING_THREADS: usize = 2;
/// How long a statement waits for a lane.
const LANE_WAIT_MAX: Duration = Duration::from_secs(10);

/// The threads.
#[derive(Debug)]
pub struct StatementThreadPool {
    runtime: Option<Runtime>,
    lanes: Arc<LanePool>,
    watch: Arc<StatementWatchdog>,
    inline_statements: AtomicU64,
}

/// Where a statement begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementStart {
    /// On the thread of who asks.
    Inline,
    /// On the threads for statements.
    There,
}

impl StatementThreadPool {
    /// Lanes of `threads` threads each that execute queries, and more that wait for the disk.
    ///
    /// # Errors
    /// If the machine gives no threads.
    pub fn new(threads: usize) -> std::io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(WATCHING_THREADS)
            .max_blocking_threads(BLOCKING_THREADS_MAX)
            .thread_stack_size(WORKER_STACK_BYTES)
            .thread_name("marigram-sql")
            .enable_all()
            .build()?;
        let watch = Arc::<StatementWatchdog>::default();
        runtime.spawn(Arc::clone(&watch).keep());
        Ok(Self {
            runtime: Some(runtime),
            lanes: LanePool::new(threads),
            watch,
            inline_statements: AtomicU64::new(0),
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

    /// Runs asynchronous work on a lane to its end, at most for `timeout`.
    ///
    /// # Errors
    /// The work's own, `Cancelled` after the timeout, and `Busy` where too much else is running.
    pub async fn run<T: Send + 'static>(
        &self,
        timeout: Option<Duration>,
        work: impl Future<Output = SqlResult<T>> + Send + 'static,
    ) -> SqlResult<T> {
        let lease = self.lease(timeout).await?;
        let (tell, given_up) = oneshot::channel();
        let on_given_up = Box::new(move |why| {
            // Nobody waits for it where sending fails.
            let _ = tell.send(why);
        });
        let (task, _stop) = self.seat(lease, timeout, on_given_up, within(timeout, work))?;
        tokio::pin!(given_up);
        tokio::select! {
            biased;
            Ok(why) = &mut given_up => Err(why.into()),
            result = task => match result {
                Ok(result) => result,
                // It is told in a moment why.
                Err(error) if error.is_cancelled() => Err(given_up.await.map_or_else(|_| reader_gone_error(), SqlError::from)),
                Err(error) => {
                    Err(ServiceError::Internal(format!("a statement failed: {error}")).into())
                }
            },
        }
    }

    /// A lane for a statement; waits for one, but not for long.
    async fn lease(&self, timeout: Option<Duration>) -> Result<LaneLease, ServiceError> {
        let admission = match self.lanes.try_admit() {
            Some(admission) => Some(admission),
            None => {
                let wait = timeout.map_or(LANE_WAIT_MAX, |timeout| timeout.min(LANE_WAIT_MAX));
                let sleep = {
                    let _ours = self.runtime().enter();
                    tokio::time::sleep(wait)
                };
                tokio::select! {
                    biased;
                    admission = self.lanes.admit() => admission,
                    () = sleep => None,
                }
            }
        };
        let admission = admission.ok_or_else(|| ServiceError::Busy {
            message: "too many statements run at once; try again later".to_owned(),
            retry_after: Duration::from_secs(1),
        })?;
        self.lanes
            .take(admission)
            .map_err(|error| ServiceError::Internal(format!("no threads for a statement: {error}")))
    }

    /// Runs a statement on its lane, watched. It is stopped when the second of what this gives is
    /// dropped.
    fn seat<F>(
        &self,
        lease: LaneLease,
        timeout: Option<Duration>,
        on_given_up: OnAbandoned,
        work: F,
    ) -> Result<(JoinHandle<F::Output>, StopStatementOnDrop), ServiceError>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        let (Some(threads), Some(handle)) = (lease.threads(), lease.handle().cloned()) else {
            return Err(statement_broken_error());
        };
        let watched = self.watch.begin(threads, timeout, on_given_up);
        let number = watched.number();
        let task = handle.spawn(async move {
            // In this order: the work goes first, the lane last.
            let _lease = lease;
            let _watched = watched;
            work.await
        });
        self.watch.runs_as(number, task.abort_handle());
        Ok((task, StopStatementOnDrop::new(&self.watch, number)))
    }

    /// Starts a statement that tells its answer through an outlet, and waits for the first of it.
    /// `sql` is the statement, for positions in errors. What begins on this thread goes on with the
    /// others when it has to wait, or [wants to](StatementOutput::move_on).
    ///
    /// # Errors
    /// The statement's, as far as they come before the first row.
    pub async fn answer<F, W>(
        &self,
        begin: StatementStart,
        timeout: Option<Duration>,
        sql: &str,
        work: W,
    ) -> Result<Answer, ServiceError>
    where
        F: Future<Output = SqlResult<()>> + Send + 'static,
        W: FnOnce(StatementOutput) -> F + Send + 'static,
    {
        let (sender, mut receiver) = mpsc::channel(MESSAGES_MAX);
        let statement = sql.to_owned();
        let is_here = Arc::new(AtomicBool::new(begin == StatementStart::Inline));
        let lane = Arc::new(LanePlacement {
            lanes: Arc::clone(&self.lanes),
            threads: OnceLock::new(),
        });
        let last = OutputEnd::default();
        let outlet = StatementOutput {
            sender: sender.clone(),
            last: Arc::clone(&last),
            is_here: Arc::clone(&is_here),
            lane: Arc::clone(&lane),
        };
        let told = Arc::clone(&last);
        let statement = Box::pin(async move {
            let ended = within(timeout, work(outlet)).await;
            let mut told = told.lock();
            match ended {
                Ok(()) => _ = told.get_or_insert(OutputMessage::End),
                Err(error) => *told = Some(OutputMessage::Failed(error.into_service(&statement))),
            }
        });
        let left = match begin {
            StatementStart::Inline => self.run_inline(statement),
            StatementStart::There => Some(statement),
        };
        is_here.store(false, Ordering::Relaxed);
        let stop = match left {
            Some(left) => {
                let lease = self.lease(timeout).await?;
                if let Some(threads) = lease.threads() {
                    // It is set once.
                    let _ = lane.threads.set(Arc::clone(threads));
                }
                let on_given_up = Box::new(move |why| {
                    tokio::spawn(async move {
                        // Nobody waits for it where sending fails.
                        let _ = sender.send(OutputMessage::Failed(why)).await;
                    });
                });
                Some(self.seat(lease, timeout, on_given_up, left)?.1)
            }
            None => {
                drop(sender);
                None
            }
        };
        let first = match receiver.recv().await {
            Some(message) => Some(message),
            None => last.lock().take(),
        };
        match first {
            Some(OutputMessage::Rows {
                schema,
                first,
                more,
            }) => {
                let first = futures::stream::iter(first.map(Ok));
                let batches = if more {
                    first.chain(remaining_batches(receiver, last, stop)).boxed()
                } else {
                    first.boxed()
                };
                Ok(Answer::Rows(RowStream { schema, batches }))
            }
            Some(OutputMessage::Done { tag, rows, notices }) => {
                Ok(Answer::Done { tag, rows, notices })
            }
            Some(OutputMessage::Failed(error)) => Err(error),
            Some(OutputMessage::Batch(_) | OutputMessage::End) | None => {
                Err(statement_broken_error())
            }
        }
    }

    /// Begins a statement on this thread; gives it back where it is not done.
    fn run_inline<F: Future<Output = ()>>(
        &self,
        mut statement: Pin<Box<F>>,
    ) -> Option<Pin<Box<F>>> {
        // What it starts is for our threads.
        let _ours = self.runtime().enter();
        // Whoever goes on with it looks at it at once.
        let mut nobody = Context::from_waker(Waker::noop());
        let shallow = StackNeed::for_depth(0);
        let poll = || shallow.run_anywhere(|| statement.as_mut().poll(&mut nobody));
        let poll = AssertUnwindSafe(poll);
        match catch_unwind(poll) {
            Ok(Poll::Pending) => Some(statement),
            Ok(Poll::Ready(())) => {
                self.inline_statements.fetch_add(1, Ordering::Relaxed);
                None
            }
            // Nothing was told, and the answer is an error.
            Err(_) => None,
        }
    }

    /// How many statements began and ended on the thread of who asked.
    pub fn inline_statements(&self) -> u64 {
        self.inline_statements.load(Ordering::Relaxed)
    }
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
        Err(_) => Err(timed_out(timeout).into()),
    }
}

impl Drop for StatementThreadPool {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
