//! Who watches running statements from outside: one task, on threads that no statement has.
//!
//! A statement that does not come to its own timeout, since its code does not yield, is given up
//! here: its client is told, its threads are told to stop at their next check. A statement that
//! takes long stands back behind those that are short.
//!
//! Invariant: a statement is looked at until the last of its work has been dropped.

use super::lanes::LaneThreads;
use marigram_service::ServiceError;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// How often statements are looked at, while there are any.
const TICK: Duration = Duration::from_millis(25);
/// Ticks without a statement after which nobody looks any more.
const QUIET_TICKS: u32 = 40;
/// How long a statement runs before it stands back behind others.
const SHORT_MAX: Duration = Duration::from_millis(250);
/// How long a statement may run on an express lane.
const EXPRESS_MAX: Duration = Duration::from_secs(1);
/// How much later than the statement's own timer this one comes.
const GRACE: Duration = Duration::from_millis(50);

/// Tells the client of a statement that it was given up.
pub type OnAbandoned = Box<dyn FnOnce(ServiceError) + Send>;

/// All running statements.
#[derive(Default)]
pub struct StatementWatchdog {
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
    timeout: Option<Duration>,
    stands_back: bool,
    task: Option<AbortHandle>,
    /// Gone once it was called.
    on_given_up: Option<OnAbandoned>,
}

/// A statement that is watched until this is dropped.
pub struct WatchdogGuard {
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
    pub fn number(&self) -> u64 {
        self.number
    }
}

/// Stops a statement when it is dropped.
pub struct StopStatementOnDrop {
    watch: Arc<StatementWatchdog>,
    number: u64,
}

impl StopStatementOnDrop {
    /// The statement of this number.
    pub fn new(watch: &Arc<StatementWatchdog>, number: u64) -> Self {
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
    /// Begins to watch a statement.
    pub fn begin(
        self: &Arc<Self>,
        threads: &Arc<LaneThreads>,
        timeout: Option<Duration>,
        on_given_up: OnAbandoned,
    ) -> WatchdogGuard {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        threads.interrupt().begin(number);
        let running = WatchedStatement {
            threads: Arc::clone(threads),
            begun: Instant::now(),
            timeout,
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

    /// Tells which task a statement is, if it has not ended.
    pub fn runs_as(&self, number: u64, task: AbortHandle) {
        let mut running = self.running.lock();
        if let Some(statement) = running.get_mut(&number) {
            statement.task = Some(task);
        }
    }

    /// Stops a statement, if it has not ended: nobody wants its answer.
    fn stop(&self, number: u64) {
        let mut running = self.running.lock();
        let stopped = running.get_mut(&number).and_then(|statement| {
            statement.give_up(number);
            statement.on_given_up.take()
        });
        drop(running);
        drop(stopped);
    }

    /// Watches for ever.
    pub async fn keep(self: Arc<Self>) {
        loop {
            self.look.notified().await;
            let mut quiet = 0;
            while quiet < QUIET_TICKS {
                tokio::time::sleep(TICK).await;
                quiet = if self.look_once() { 0 } else { quiet + 1 };
            }
            self.is_looking.store(false, Ordering::Release);
            // One that began before that did not wake us.
            if !self.running.lock().is_empty() && !self.is_looking.swap(true, Ordering::AcqRel) {
                self.look.notify_one();
            }
        }
    }

    /// Says whether any statement is running.
    fn look_once(&self) -> bool {
        let mut told = Vec::new();
        let mut running = self.running.lock();
        for (number, statement) in running.iter_mut() {
            let age = statement.begun.elapsed();
            if age >= SHORT_MAX && !statement.stands_back {
                statement.stands_back = true;
                statement.threads.stand_back();
            }
            if let Some(why) = statement.overdue(age)
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
    /// Tells its threads to stop, at the next point at which they yield or ask.
    fn give_up(&self, number: u64) {
        self.threads.interrupt().give_up(number);
        if let Some(task) = &self.task {
            task.abort();
        }
    }

    /// Why the statement is to be given up, if it is.
    fn overdue(&self, age: Duration) -> Option<ServiceError> {
        if let Some(timeout) = self.timeout
            && age >= timeout.saturating_add(GRACE)
        {
            return Some(timed_out(timeout));
        }
        (age >= EXPRESS_MAX && self.threads.is_express()).then(|| {
            let message = "too many long statements run at once, and this one is not short; try \
                           again later";
            ServiceError::Busy {
                message: message.to_owned(),
                retry_after: EXPRESS_MAX,
            }
        })
    }
}

/// The error of a statement that took longer than it may.
pub fn timed_out(timeout: Duration) -> ServiceError {
    ServiceError::Cancelled(format!(
        "the statement took longer than statement_timeout ({} ms) and was stopped",
        timeout.as_millis()
    ))
}
