//! The threads on which statements run, and the path of their results to the caller.
//!
//! A short statement begins on the calling thread, and ends there if it does not have to wait:
//! handing it over and being woken at its end takes about 100 µs, several times as long as most
//! short statements. Every other statement gets a lane of threads for itself (`lanes`), and a
//! watchdog observes it (`watchdog`). Work that belongs to no statement has separate threads.
//!
//! Invariant: a caller that waits for a result needs no runtime of its own, and stops the statement
//! by dropping the result. When a caller has seen the end of a result, the statement no longer uses
//! the database: it releases the database before it reports its end. No timeout ends a statement that
//! commits ([`CommitPoint`]): its own result follows.

mod lanes;
mod output;
mod priority;
mod spawned_tasks;
#[cfg(test)]
mod tests;
mod watchdog;

use crate::error::{SqlError, SqlResult};
use crate::stack::{StackNeed, WORKER_STACK_BYTES};
use crate::tables::reference::reads::StatementReads;
use futures::StreamExt;
use lanes::{LaneLease, LanePool};
use marigram_service::{Answer, CommitPoint, RowStream, ServiceError, run_blocking_on, timed_out};
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
use watchdog::{OnAbandoned, StatementLimits, StatementWatchdog, StopStatementOnDrop};

pub(crate) use output::StatementOutput;

/// Threads for blocking work that belongs to no statement's lane.
const BLOCKING_THREADS_MAX: usize = 128;
/// Threads that watch statements and refresh materialized views.
const WATCHING_THREADS: usize = 2;
/// How long a statement waits for a lane.
const LANE_WAIT_MAX: Duration = Duration::from_secs(10);

/// The thread pool of statements.
#[derive(Debug)]
pub(crate) struct StatementThreadPool {
    runtime: Option<Runtime>,
    lanes: Arc<LanePool>,
    watch: Arc<StatementWatchdog>,
    inline_statements: AtomicU64,
}

/// Where a statement begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatementStart {
    /// On the calling thread.
    Inline,
    /// On the threads for statements.
    There,
}

impl StatementThreadPool {
    /// Creates lanes with `threads` threads each for executing queries, and more for waiting for
    /// the disk.
    ///
    /// # Errors
    /// If the operating system cannot create threads.
    pub(crate) fn new(threads: usize) -> std::io::Result<Self> {
        spawned_tasks::inherit_reads();
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

    /// Starts blocking work for which nobody waits.
    pub(crate) fn start(&self, work: impl FnOnce() + Send + 'static) {
        self.runtime().spawn_blocking(work);
    }

    /// Starts work that continues until it ends by itself, or with the thread pool.
    pub(crate) fn keep(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.runtime().spawn(work);
    }

    /// Runs blocking work.
    ///
    /// # Errors
    /// The errors of the work.
    pub(crate) async fn block<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> SqlResult<T> + Send + 'static,
    ) -> SqlResult<T> {
        run_blocking_on(self.runtime().handle(), work).await?
    }

    /// Runs blocking work that changes the database at once. From its begin on, nothing stops its
    /// statement.
    ///
    /// # Errors
    /// The errors of the work, and `Cancelled` if the statement was stopped before.
    pub(crate) async fn commit<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> SqlResult<T> + Send + 'static,
    ) -> SqlResult<T> {
        let commit = CommitPoint::of_task();
        self.block(move || {
            let _step = commit.begin_write(true)?;
            work()
        })
        .await
    }

    /// Runs asynchronous work on a lane to its end, for at most `timeout`.
    ///
    /// # Errors
    /// The errors of the work, `Cancelled` after the timeout, and `Busy` if too much else is
    /// running.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        timeout: Option<Duration>,
        work: impl Future<Output = SqlResult<T>> + Send + 'static,
    ) -> SqlResult<T> {
        let limits = StatementLimits::new(timeout);
        let lease = self.lease(timeout).await?;
        let (tell, given_up) = oneshot::channel();
        let on_given_up = Box::new(move |why| {
            // If sending fails, nobody waits for it.
            let _ = tell.send(why);
        });
        let work = within(limits.clone(), keeping_reads(work));
        let (task, _stop) = self.seat(lease, &limits, on_given_up, work)?;
        tokio::pin!(given_up);
        tokio::select! {
            biased;
            Ok(why) = &mut given_up => Err(why.into()),
            result = task => match result {
                Ok(result) => result,
                // The reason arrives in a moment.
                Err(error) if error.is_cancelled() => Err(given_up.await.map_or_else(|_| reader_gone_error(), SqlError::from)),
                Err(error) => {
                    Err(ServiceError::Internal(format!("a statement failed: {error}")).into())
                }
            },
        }
    }

    /// Leases a lane for a statement; waits for one, but not for long.
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

    /// Runs a statement on its lane, under the watchdog. Dropping the second returned value stops
    /// it.
    fn seat<F>(
        &self,
        lease: LaneLease,
        limits: &StatementLimits,
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
        let watched = self.watch.begin(threads, limits.clone(), on_given_up);
        let number = watched.number();
        let task = handle.spawn(async move {
            // In this order: drop the work first, the lane last.
            let _lease = lease;
            let _watched = watched;
            work.await
        });
        self.watch.runs_as(number, task.abort_handle());
        Ok((task, StopStatementOnDrop::new(&self.watch, number)))
    }

    /// Starts a statement that returns its result through an outlet, and waits for the first part.
    /// `sql` is the statement, for positions in errors. A statement that begins on this thread
    /// moves to the other threads when it has to wait, or [asks to](StatementOutput::move_on).
    ///
    /// # Errors
    /// The errors of the statement that occur before the first row.
    pub(crate) async fn answer<F, W>(
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
        let limits = StatementLimits::new(timeout);
        let own_limits = limits.clone();
        let work = keeping_reads(work(outlet));
        let statement = Box::pin(async move {
            let ended = within(own_limits, work).await;
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
                    // It is set only once.
                    let _ = lane.threads.set(Arc::clone(threads));
                }
                let on_given_up = Box::new(move |why| {
                    tokio::spawn(async move {
                        // If sending fails, nobody waits for it.
                        let _ = sender.send(OutputMessage::Failed(why)).await;
                    });
                });
                Some(self.seat(lease, &limits, on_given_up, left)?.1)
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
                Ok(Answer::Rows(RowStream::new(schema, batches)))
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

    /// Begins a statement on this thread; returns it unless it finishes.
    fn run_inline<F: Future<Output = ()>>(
        &self,
        mut statement: Pin<Box<F>>,
    ) -> Option<Pin<Box<F>>> {
        // Tasks that it spawns belong on our threads.
        let _ours = self.runtime().enter();
        // The thread that continues the statement polls it immediately.
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
            // Nothing was returned yet, and the result is an error.
            Err(_) => None,
        }
    }

    /// The number of statements that began and ended on the calling thread.
    pub(crate) fn inline_statements(&self) -> u64 {
        self.inline_statements.load(Ordering::Relaxed)
    }
}

/// Work that sees reference tables as the current task does, on whichever thread it runs.
fn keeping_reads<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
    let reads = StatementReads::of_task();
    async move {
        match reads {
            Some(reads) => reads.scope(work).await,
            None => work.await,
        }
    }
}

/// Runs a statement's work with its commit point, and ends it after its timeout unless it commits.
async fn within<T>(
    limits: StatementLimits,
    work: impl Future<Output = SqlResult<T>>,
) -> SqlResult<T> {
    let work = limits.commit.scope(work);
    let Some(timeout) = limits.timeout else {
        return work.await;
    };
    let expired = async {
        tokio::time::sleep(timeout).await;
        limits.commit.stopped(&timed_out(timeout)).await
    };
    tokio::select! {
        biased;
        result = work => result,
        error = expired => Err(error.into()),
    }
}

impl Drop for StatementThreadPool {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
