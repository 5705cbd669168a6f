//! Tells a thread whether the statement that it works for was cancelled.
//!
//! Planning and the evaluation of expressions are synchronous code that nothing outside can stop.
//! That code calls [`check`] between its steps. Each lane of threads runs one statement at a time,
//! so a thread knows its statement without an argument in every call.
//!
//! Invariant: a cancellation never stops a statement for which it was not meant.

use datafusion::common::{DataFusionError, Result};
use marigram_service::ServiceError;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// No statement has this number.
const NOBODY: u64 = 0;

thread_local! {
    static OF_THREAD: RefCell<Option<Arc<StatementInterrupt>>> = const { RefCell::new(None) };
}

/// The statement for which the threads of a lane work, and the statement that was cancelled.
#[derive(Debug, Default)]
pub struct StatementInterrupt {
    running: AtomicU64,
    given_up: AtomicU64,
}

impl StatementInterrupt {
    /// The threads work for `statement` from now on, a number other than 0.
    pub fn begin(&self, statement: u64) {
        self.running.store(statement, Ordering::Release);
    }

    /// The threads work for no statement: work that still runs is to stop.
    pub fn end(&self) {
        self.running.store(NOBODY, Ordering::Release);
    }

    /// Tells `statement` to stop, if it is still running.
    pub fn give_up(&self, statement: u64) {
        self.given_up.store(statement, Ordering::Release);
    }

    /// Makes [`check`] on this thread use `interrupt`, until the thread ends.
    pub fn adopt(interrupt: Arc<Self>) {
        OF_THREAD.set(Some(interrupt));
    }

    fn is_raised(&self) -> bool {
        let running = self.running.load(Ordering::Acquire);
        running == NOBODY || running == self.given_up.load(Ordering::Acquire)
    }
}

/// Fails if the statement that this thread works for was cancelled. Threads that belong to no lane
/// never fail here.
///
/// # Errors
/// `Cancelled`; nobody reads it, because the code that cancelled the statement has told its client
/// why.
pub fn check() -> Result<()> {
    let raised = OF_THREAD.with_borrow(|own| own.as_ref().is_some_and(|own| own.is_raised()));
    if raised {
        let gone = ServiceError::Cancelled("the statement was stopped".to_owned());
        return Err(DataFusionError::External(Box::new(gone)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_statement_that_was_given_up_stops() {
        let own = Arc::new(StatementInterrupt::default());
        let seen = Arc::clone(&own);
        let thread = std::thread::spawn(move || {
            assert!(check().is_ok(), "a thread without a lane");
            StatementInterrupt::adopt(Arc::clone(&seen));
            assert!(check().is_err(), "nobody wants it");
            seen.begin(1);
            assert!(check().is_ok());
            seen.give_up(1);
            assert!(check().is_err());
            seen.begin(2);
            assert!(check().is_ok(), "that was meant for another");
            seen.end();
            assert!(check().is_err());
        });
        thread.join().unwrap();
        assert!(check().is_ok());
    }
}
