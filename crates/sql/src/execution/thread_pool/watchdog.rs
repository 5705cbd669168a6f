//! The watchdog observes running statements: one task, on threads that no statement uses.
//!
//! A statement that misses its own timeout because its code does not yield is cancelled here: the
//! watchdog tells its client, and tells its threads to stop at their next check. It also lowers the
//! priority of statements that take long.
//!
//! Invariants: the watchdog observes a statement until the last of its work has been dropped. It stops
//! no statement that is writing.

use super::lanes::LaneThreads;
use marigram_service::{CommitPoint, ServiceError, stopped_error, timed_out};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// The interval between checks, while there are statements.
const TICK: Duration = Duration::from_millis(25);
/// After this many ticks without a statement, the checks pause.
const QUIET_TICKS: u32 = 40;
/// How long a statement runs before its priority is lowered.
const SHORT_MAX: Duration = Duration::from_millis(250);
/// How long a statement may run on an express lane.
const EXPRESS_MAX: Duration = Duration::from_secs(1);
/// The delay of this timeout after the statement's own timer.
const GRACE: Duration = Duration::from_millis(50);

/// Tells the client of a statement that it was cancelled.
pub(super) type OnAbandoned = Box<dyn FnOnce(ServiceError) + Send>;

/// What may end a statement before its own end, and when it may.
#[derive(Clone, Debug)]
pub(super) struct StatementLimits {
    pub timeout: Option<Duration>,
    pub commit: CommitPoint,
}

impl StatementLimits {
    /// The limits of a statement that begins now in the current task.
    pub(super) fn new(timeout: Option<Duration>) -> Self {
        let commit = CommitPoint::of_task();
        commit.begin_statement();
        Self { timeout, commit }
    }
}

/// All running statements.
#[derive(Default)]
pub(super) struct StatementWatchdog {
    running: Mutex<HashMap<u64, WatchedStatement>>,
    last: AtomicU64,
    is_looking: AtomicBool,
    look: Notify,
}

impl fmt::Debug for StatementWatchdog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("running", &self.running.lock().len())
            .finish_non_exhaustive()
    }
}

struct WatchedStatement {
    threads: Arc<LaneThreads>,
    begun: Instant,
    limits: StatementLimits,
    stands_back: bool,
    task: Option<AbortHandle>,
    /// `None` after it was called.
    on_given_up: Option<OnAbandoned>,
}

/// The watchdog observes the statement until this is dropped.
pub(super) struct WatchdogGuard {
    watch: Arc<StatementWatchdog>,
    number: u64,
}

impl Drop for WatchdogGuard {
    fn drop(&mut self) {
        let ended = self.watch.running.lock().remove(&self.number);
        drop(ended);
    }
}

impl WatchdogGuard {
    /// The statement's number.
    pub(super) fn number(&self) -> u64 {
        self.number
    }
}

/// Stops a statement when it is dropped.
pub(super) struct StopStatementOnDrop {
    watch: Arc<StatementWatchdog>,
    number: u64,
}

impl StopStatementOnDrop {
    /// Stops the statement with this number.
    pub(super) fn new(watch: &Arc<StatementWatchdog>, number: u64) -> Self {
        let watch = Arc::clone(watch);
        Self { watch, number }
    }
}

impl Drop for StopStatementOnDrop {
    fn drop(&mut self) {
        self.watch.stop(self.number);
    }
}

impl StatementWatchdog {
    /// Begins to observe a statement.
    pub(super) fn begin(
        self: &Arc<Self>,
        threads: &Arc<LaneThreads>,
        limits: StatementLimits,
        on_given_up: OnAbandoned,
    ) -> WatchdogGuard {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        threads.interrupt().begin(number);
        let running = WatchedStatement {
            threads: Arc::clone(threads),
            begun: Instant::now(),
            limits,
            stands_back: false,
            task: None,
            on_given_up: Some(on_given_up),
        };
        self.running.lock().insert(number, running);
        if !self.is_looking.swap(true, Ordering::AcqRel) {
            self.look.notify_one();
        }
        WatchdogGuard {
            watch: Arc::clone(self),
            number,
        }
    }

    /// Sets the task of a statement, if it has not ended.
    pub(super) fn runs_as(&self, number: u64, task: AbortHandle) {
        let mut running = self.running.lock();
        if let Some(statement) = running.get_mut(&number) {
            statement.task = Some(task);
        }
    }

    /// Stops a statement whose result nobody wants, if it has not ended.
    fn stop(&self, number: u64) {
        let mut running = self.running.lock();
        let stopped = running.get_mut(&number).and_then(|statement| {
            statement.give_up(number);
            statement.on_given_up.take()
        });
        drop(running);
        drop(stopped);
    }

    /// Watches forever.
    pub(super) async fn keep(self: Arc<Self>) {
        loop {
            self.look.notified().await;
            let mut quiet = 0;
            while quiet < QUIET_TICKS {
                tokio::time::sleep(TICK).await;
                quiet = if self.look_once() { 0 } else { quiet + 1 };
            }
            self.is_looking.store(false, Ordering::Release);
            // A statement that began before that did not wake this task.
            if !self.running.lock().is_empty() && !self.is_looking.swap(true, Ordering::AcqRel) {
                self.look.notify_one();
            }
        }
    }

    /// Checks all statements once and returns whether any is running.
    fn look_once(&self) -> bool {
        let mut told = Vec::new();
        let mut running = self.running.lock();
        for (number, statement) in running.iter_mut() {
            let age = statement.begun.elapsed();
            if age >= SHORT_MAX && !statement.stands_back {
                statement.stands_back = true;
                statement.threads.stand_back();
            }
            if statement.on_given_up.is_some()
                && let Some(why) = statement.overdue(age)
                && let Some(tell) = statement.on_given_up.take()
            {
                statement.give_up(*number);
                told.push((tell, why));
            }
        }
        let any = !running.is_empty();
        drop(running);
        for (tell, why) in told {
            tell(why);
        }
        any
    }
}

impl WatchedStatement {
    /// Tells the statement's threads to stop the next time they yield or check.
    fn give_up(&self, number: u64) {
        self.threads.interrupt().give_up(number);
        if let Some(task) = &self.task {
            task.abort();
        }
    }

    /// Stops the statement if it took too long; returns what its client is told.
    fn overdue(&self, age: Duration) -> Option<ServiceError> {
        if let Some(timeout) = self.limits.timeout
            && age >= timeout.saturating_add(GRACE)
        {
            let reason = timed_out(timeout);
            let stored = self.limits.commit.stop(&reason)?;
            return Some(stopped_error(&reason, stored));
        }
        if age < EXPRESS_MAX || !self.threads.is_express() {
            return None;
        }
        let message = "too many long statements run at once, and this one is not short; try again \
                       later";
        let reason = ServiceError::Busy {
            message: message.to_owned(),
            retry_after: EXPRESS_MAX,
        };
        let stored = self.limits.commit.stop_with(&reason)?;
        // A client that repeats the statement would store the rows a second time.
        Some(match stored {
            0 => reason,
            stored => stopped_error(message, stored),
        })
    }
}
