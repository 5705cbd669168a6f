//! The running statements of servers, and the way to stop one if the process is over its limit and
//! nothing else helps.
//!
//! Memory that an operator holds without accounting for it cannot be attributed, so the statement
//! that has worked longest is stopped: those of a dashboard take milliseconds. Statements whose
//! reader is slow come last, because they do not grow any more.
//!
//! Invariant: a statement is in the list from its start until its answer has been read or dropped.

use arrow::record_batch::RecordBatch;
use futures::StreamExt;
use marigram_service::{Answer, Result, RowStream, ServiceError};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// A statement that has worked for less than this is not the one that takes the memory.
const AGE_MIN: Duration = Duration::from_millis(100);
/// When a client whose statement was stopped may retry.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Running statements.
#[derive(Debug, Default)]
pub(crate) struct StatementRegistry {
    running: Mutex<RunningStatements>,
}

#[derive(Debug, Default)]
struct RunningStatements {
    next: u64,
    /// By number, so that the oldest is first.
    handles: BTreeMap<u64, Arc<StatementHandle>>,
}

#[derive(Debug)]
struct StatementHandle {
    begun: Instant,
    /// Whether its reader is waiting for it.
    is_awaited: AtomicBool,
    stop: Notify,
}

/// One statement; leaves the list when dropped.
#[derive(Debug)]
pub(crate) struct RunningStatement {
    statements: Arc<StatementRegistry>,
    number: u64,
    handle: Arc<StatementHandle>,
}

impl StatementRegistry {
    /// Registers a new statement.
    #[expect(
        clippy::disallowed_methods,
        reason = "the duration of a statement depends on the machine; no data depends on it"
    )]
    pub(crate) fn begin(self: &Arc<Self>) -> RunningStatement {
        let handle = Arc::new(StatementHandle {
            begun: Instant::now(),
            is_awaited: AtomicBool::new(true),
            stop: Notify::new(),
        });
        let mut running = self.running.lock();
        let number = running.next;
        running.next += 1;
        running.handles.insert(number, Arc::clone(&handle));
        drop(running);
        RunningStatement {
            statements: Arc::clone(self),
            number,
            handle,
        }
    }

    /// Stops the statement that has worked longest at `now`; returns whether there was one.
    pub(crate) fn stop_longest(&self, now: Instant) -> bool {
        let mut running = self.running.lock();
        let old = |handle: &StatementHandle| now.saturating_duration_since(handle.begun) >= AGE_MIN;
        let oldest = |is_awaited: bool| {
            let mut handles = running.handles.iter();
            let found = handles.find(|(_, handle)| {
                handle.is_awaited.load(Ordering::Relaxed) == is_awaited && old(handle)
            });
            found.map(|(number, _)| *number)
        };
        let stopped = oldest(true).or_else(|| oldest(false));
        let handle = stopped.and_then(|number| running.handles.remove(&number));
        if let Some(handle) = &handle {
            handle.stop.notify_one();
        }
        handle.is_some()
    }
}

impl RunningStatement {
    /// Waits for `work`, unless the statement is stopped first.
    pub(crate) async fn until_stopped<T>(
        &self,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        self.handle.is_awaited.store(true, Ordering::Relaxed);
        let done = tokio::select! {
            biased;
            () = self.handle.stop.notified() => Err(stopped()),
            done = work => done,
        };
        self.handle.is_awaited.store(false, Ordering::Relaxed);
        done
    }

    /// Wraps the answer: its rows end when the statement is stopped.
    pub(crate) fn watch(self, answer: Answer) -> Answer {
        let Answer::Rows(RowStream {
            schema,
            batches,
            notices,
        }) = answer
        else {
            return answer;
        };
        let watched = futures::stream::unfold(Some((batches, self)), |state| async move {
            let (mut batches, running) = state?;
            let next = async { batches.next().await.transpose() };
            let next: Result<Option<RecordBatch>> = running.until_stopped(next).await;
            match next {
                Ok(Some(batch)) => Some((Ok(batch), Some((batches, running)))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        });
        Answer::Rows(RowStream {
            schema,
            // The reader may poll again after the end.
            batches: watched.fuse().boxed(),
            notices,
        })
    }
}

impl Drop for RunningStatement {
    fn drop(&mut self) {
        self.statements.running.lock().handles.remove(&self.number);
    }
}

fn stopped() -> ServiceError {
    ServiceError::Busy {
        message:
            "the query needs more memory than is available: the process was over memory_limit, and \
                  of all statements this one had worked longest"
                .to_owned(),
        retry_after: RETRY_AFTER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::Schema;
    use futures::executor::block_on;

    fn endless() -> Answer {
        let schema = Arc::new(Schema::empty());
        let batch = RecordBatch::new_empty(Arc::clone(&schema));
        let batches = futures::stream::repeat_with(move || Ok(batch.clone())).boxed();
        Answer::Rows(RowStream::new(schema, batches))
    }

    #[test]
    fn the_oldest_that_is_waited_for_is_stopped_first_and_young_ones_never() {
        let statements = Arc::new(StatementRegistry::default());
        let (dawdling, working) = (statements.begin(), statements.begin());
        let begun = working.handle.begun;
        assert!(!statements.stop_longest(begun + AGE_MIN / 2));
        dawdling.handle.is_awaited.store(false, Ordering::Relaxed);
        assert!(statements.stop_longest(begun + AGE_MIN));
        let stopped = block_on(working.until_stopped(std::future::pending::<Result<()>>()));
        assert!(
            matches!(stopped, Err(ServiceError::Busy { .. })),
            "{stopped:?}"
        );
        assert!(statements.stop_longest(begun + AGE_MIN));
        assert!(
            !statements.stop_longest(begun + AGE_MIN),
            "each is stopped once"
        );
        drop((dawdling, working));
        assert!(statements.running.lock().handles.is_empty());
    }

    #[test]
    fn an_answer_that_has_ended_may_be_asked_again() {
        let statements = Arc::new(StatementRegistry::default());
        let schema = Arc::new(Schema::empty());
        let batches = futures::stream::empty().boxed();
        let none = Answer::Rows(RowStream::new(schema, batches));
        let Answer::Rows(mut rows) = statements.begin().watch(none) else {
            panic!("an answer with rows keeps them");
        };
        for _ in 0..3 {
            assert!(block_on(rows.batches.next()).is_none());
        }
        assert!(statements.running.lock().handles.is_empty());
    }

    #[test]
    fn rows_end_in_an_error_when_their_statement_is_stopped() {
        let statements = Arc::new(StatementRegistry::default());
        let running = statements.begin();
        let begun = running.handle.begun;
        let Answer::Rows(rows) = running.watch(endless()) else {
            panic!("an answer with rows keeps them");
        };
        let mut batches = rows.batches;
        assert!(block_on(batches.next()).unwrap().is_ok());
        assert!(statements.stop_longest(begun + AGE_MIN));
        let told: Vec<_> = block_on(batches.collect());
        assert!(
            matches!(told[..], [Err(ServiceError::Busy { .. })]),
            "{told:?}"
        );
        assert!(statements.running.lock().handles.is_empty());
    }
}
