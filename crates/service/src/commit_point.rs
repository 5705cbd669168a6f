//! Decides whether a statement is stopped or commits: what begins first wins.
//!
//! A write that has begun cannot be taken back: it waits for the disk on a thread of its own. If its
//! statement were dropped meanwhile, the client would be told that the statement was stopped, and the
//! rows would be stored nevertheless. So whoever stops a statement asks its commit point first, and
//! waits for the statement's own result while it commits.
//!
//! The commit point travels with the task, not with each call: [`CommitPoint::scope`] sets that of a
//! future, and [`CommitPoint::of_task`] finds it.
//!
//! Invariant: after [`CommitPoint::stop`] of a statement that has not committed, no step of it begins to
//! write.

use crate::blocking::run_blocking;
use crate::error::{Result, ServiceError};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often a stop that waits for a step of a write asks again.
const ASK_AGAIN: Duration = Duration::from_millis(5);

tokio::task_local! {
    static OF_TASK: CommitPoint;
}

/// The commit point of a statement, or of several that run one after the other. Clones are the same
/// point.
#[derive(Clone, Debug, Default)]
pub struct CommitPoint {
    progress: Arc<Mutex<CommitProgress>>,
}

#[derive(Debug, Default)]
struct CommitProgress {
    stage: CommitStage,
    /// Why the statement is to stop, as its client is told.
    stop_reason: Option<ServiceError>,
    stored_rows: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum CommitStage {
    /// Nothing is being written.
    #[default]
    Reading,
    /// A step writes, and others may follow.
    Writing,
    /// The last step of the write has begun, or ended.
    Committed,
}

/// A step of a write; it ends when this is dropped.
#[derive(Debug)]
pub struct WriteStep {
    point: CommitPoint,
    stored_rows: u64,
}

impl CommitPoint {
    /// The commit point of the current task, or a new one.
    pub fn of_task() -> Self {
        OF_TASK.try_with(Self::clone).unwrap_or_default()
    }

    /// Makes this the commit point of the task, as long as it works on `work`.
    pub fn scope<F: Future>(&self, work: F) -> impl Future<Output = F::Output> + use<F> {
        OF_TASK.scope(self.clone(), work)
    }

    /// Begins the next statement, which may be stopped until it writes.
    pub fn begin_statement(&self) {
        let mut progress = self.lock();
        progress.stage = CommitStage::Reading;
        progress.stored_rows = 0;
    }

    /// Begins a step of a write. After the `is_last` one has begun, the statement cannot be stopped.
    ///
    /// # Errors
    /// Why the statement was stopped, if it was.
    pub fn begin_write(&self, is_last: bool) -> Result<WriteStep> {
        let mut progress = self.lock();
        if let Some(reason) = &progress.stop_reason {
            return Err(match reason {
                // A client that repeats the statement would store the rows a second time.
                ServiceError::Busy { message, .. } if progress.stored_rows > 0 => {
                    ServiceError::Cancelled(message.clone())
                }
                reason => reason.clone(),
            });
        }
        progress.stage = if is_last {
            CommitStage::Committed
        } else {
            CommitStage::Writing
        };
        Ok(WriteStep {
            point: self.clone(),
            stored_rows: 0,
        })
    }

    /// Stops the statement for `reason` unless it has committed: no further step begins to write.
    /// Returns how many rows its earlier steps stored, and `None` as long as a step writes.
    pub fn stop(&self, reason: &str) -> Option<u64> {
        self.stop_with(&ServiceError::Cancelled(reason.to_owned()))
    }

    /// Like [`stop`](Self::stop), for a reason that its client is told as it is. (A statement that stored
    /// rows is not `Busy` but `Cancelled`: it must not be repeated.)
    pub fn stop_with(&self, reason: &ServiceError) -> Option<u64> {
        let mut progress = self.lock();
        if progress.stage != CommitStage::Committed {
            progress.stop_reason.get_or_insert_with(|| reason.clone());
        }
        (progress.stage == CommitStage::Reading).then_some(progress.stored_rows)
    }

    /// Whether the last step of the statement's write has begun, or ended: nothing stops it any more.
    pub fn has_committed(&self) -> bool {
        self.lock().stage == CommitStage::Committed
    }

    /// Stops the statement as soon as possible, for `reason`. Returns the error for its client; never
    /// returns if the statement commits first.
    pub async fn stopped(&self, reason: &str) -> ServiceError {
        loop {
            if let Some(stored) = self.stop(reason) {
                return stopped_error(reason, stored);
            }
            tokio::time::sleep(ASK_AGAIN).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, CommitProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WriteStep {
    /// The step stored this many rows.
    pub fn stored(&mut self, rows: u64) {
        self.stored_rows += rows;
    }
}

impl Drop for WriteStep {
    fn drop(&mut self) {
        let mut progress = self.point.lock();
        progress.stored_rows += self.stored_rows;
        if progress.stage == CommitStage::Writing {
            progress.stage = CommitStage::Reading;
        }
    }
}

/// Runs a step of a write of the task's statement, as [`CommitPoint::begin_write`] and [`run_blocking`] do.
///
/// # Errors
/// Those of both, and of the write.
pub async fn write_blocking<T, E>(
    is_last: bool,
    write: impl FnOnce(&mut WriteStep) -> std::result::Result<T, E> + Send + 'static,
) -> std::result::Result<T, E>
where
    T: Send + 'static,
    E: From<ServiceError> + Send + 'static,
{
    let commit = CommitPoint::of_task();
    let step = move || write(&mut commit.begin_write(is_last)?);
    run_blocking(step).await?
}

/// Why a statement that exceeded its timeout was stopped.
pub fn timed_out(timeout: Duration) -> String {
    format!(
        "the statement took longer than statement_timeout ({} ms) and was stopped",
        timeout.as_millis()
    )
}

/// The error of a statement that was stopped after it had stored some rows.
pub fn stopped_error(reason: &str, stored_rows: u64) -> ServiceError {
    ServiceError::Cancelled(reason.to_owned()).with_note(&stored_note(stored_rows))
}

/// What follows the message of a statement that failed after it stored rows.
pub fn stored_note(stored_rows: u64) -> String {
    match stored_rows {
        0 => String::new(),
        1 => "; 1 row was stored before, and stays".to_owned(),
        stored => format!("; {stored} rows were stored before, and stay"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_before_a_write_prevents_it_and_one_after_it_counts() {
        let point = CommitPoint::default();
        let mut step = point.begin_write(false).unwrap();
        assert_eq!(point.stop("enough"), None, "it writes");
        assert!(point.begin_write(false).is_err(), "the next step");
        step.stored(7);
        drop(step);
        assert_eq!(point.stop("enough"), Some(7));
        assert!(point.begin_write(true).is_err());
        assert_eq!(point.stop("enough"), Some(7), "a second stop");
    }

    #[test]
    fn nothing_stops_a_statement_after_its_last_write_began() {
        let point = CommitPoint::default();
        let step = point.clone().begin_write(true).unwrap();
        assert_eq!(point.stop("enough"), None);
        drop(step);
        assert_eq!(point.stop("enough"), None, "its result is on the way");
        assert!(point.has_committed());
        point.begin_statement();
        assert_eq!(point.stop("enough"), Some(0), "the next one reads");
    }

    #[test]
    fn the_next_step_fails_with_the_reason_of_the_stop() {
        let point = CommitPoint::default();
        let step = point.begin_write(false).unwrap();
        let busy = ServiceError::Busy {
            message: "come again".to_owned(),
            retry_after: Duration::from_secs(1),
        };
        assert_eq!(point.stop_with(&busy), None, "it writes");
        assert!(!point.has_committed());
        drop(step);
        let error = point.begin_write(true).unwrap_err();
        assert_eq!(error.sqlstate(), "53200", "{error}");
    }

    #[test]
    fn a_statement_that_stored_rows_is_not_to_be_repeated() {
        let point = CommitPoint::default();
        let mut step = point.begin_write(false).unwrap();
        let busy = ServiceError::Busy {
            message: "come again".to_owned(),
            retry_after: Duration::from_secs(1),
        };
        assert_eq!(point.stop_with(&busy), None, "it writes");
        step.stored(1);
        drop(step);
        let error = point.begin_write(true).unwrap_err();
        assert!(matches!(error, ServiceError::Cancelled(_)), "{error}");
        assert_eq!(error.to_string(), "come again");
    }

    #[tokio::test]
    async fn a_stop_waits_for_a_step() {
        let point = CommitPoint::default();
        let mut step = point.begin_write(false).unwrap();
        let work = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            step.stored(2);
        });
        let error = point.stopped("the time is up").await;
        let expected = "the time is up; 2 rows were stored before, and stay";
        assert_eq!(error.to_string(), expected);
        work.join().unwrap();
    }

    #[tokio::test]
    async fn work_finds_the_point_of_its_task() {
        let point = CommitPoint::default();
        point
            .scope(async { drop(CommitPoint::of_task().begin_write(true)) })
            .await;
        assert_eq!(point.stop("enough"), None);
        assert_eq!(CommitPoint::of_task().stop("enough"), Some(0));
    }
}
