//! The statements that run, so that their clients can stop them by what `GetFlightInfo` gave.
//!
//! Invariant: nobody stops another user's statement; a statement is listed as long as it runs. Nobody is
//! told that a statement was stopped which then commits.

use arrow_flight::CancelStatus;
use marigram_service::{CommitPoint, Identity};
use rand::Rng;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// The statements that run, by the number in their ticket.
#[derive(Clone, Debug, Default)]
pub(super) struct FlightStatements(Arc<Mutex<HashMap<Vec<u8>, Vec<FlightStatement>>>>);

#[derive(Debug)]
struct FlightStatement {
    user: Identity,
    stop: CancellationToken,
    commit: CommitPoint,
}

/// A statement that runs; dropping it removes it from the list.
#[derive(Debug)]
pub(super) struct FlightStatementGuard {
    statements: FlightStatements,
    id: Vec<u8>,
    /// Fires when the client stops the statement.
    pub stop: CancellationToken,
    /// Its commit point.
    pub commit: CommitPoint,
}

/// Why a statement stops that its client stopped.
pub(super) const STOPPED: &str = "the client stopped the statement";

/// A number for a statement, which nobody guesses.
pub(super) fn new_statement_id() -> Vec<u8> {
    let mut id = vec![0; 16];
    rand::rng().fill_bytes(&mut id);
    id
}

impl FlightStatements {
    /// Lists a statement of `user`.
    pub(super) fn begin(&self, id: &[u8], user: &Identity) -> FlightStatementGuard {
        let (stop, commit) = (CancellationToken::new(), CommitPoint::default());
        let statement = FlightStatement {
            user: user.clone(),
            stop: stop.clone(),
            commit: commit.clone(),
        };
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        running.entry(id.to_vec()).or_default().push(statement);
        FlightStatementGuard {
            statements: self.clone(),
            id: id.to_vec(),
            stop,
            commit,
        }
    }

    /// Stops the statements with this number that `user` runs, unless they commit. Says what came of it:
    /// that of the one which is furthest from having stopped.
    pub(super) fn stop(&self, id: &[u8], user: &Identity) -> Option<CancelStatus> {
        let running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all = running.get(id).map(Vec::as_slice).unwrap_or_default();
        let own = all
            .iter()
            .filter(|statement| statement.user.user == user.user);
        own.map(FlightStatement::stop)
            .max_by_key(|status| cancel_progress(*status))
    }
}

impl FlightStatement {
    fn stop(&self) -> CancelStatus {
        let stored = self.commit.stop(STOPPED);
        if stored.is_none() && self.commit.has_committed() {
            return CancelStatus::NotCancellable;
        }
        self.stop.cancel();
        match stored {
            Some(_) => CancelStatus::Cancelled,
            // A step of a write ends first; no other begins.
            None => CancelStatus::Cancelling,
        }
    }
}

/// How far from having stopped a statement with this status is.
pub(super) fn cancel_progress(status: CancelStatus) -> u8 {
    match status {
        CancelStatus::Unspecified => 0,
        CancelStatus::Cancelled => 1,
        CancelStatus::Cancelling => 2,
        CancelStatus::NotCancellable => 3,
    }
}

impl Drop for FlightStatementGuard {
    fn drop(&mut self) {
        // What is left in the list is recognized by a token that nobody can fire any more.
        self.stop.cancel();
        let mut running = self
            .statements
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(all) = running.get_mut(&self.id) {
            all.retain(|statement| !statement.stop.is_cancelled());
            if all.is_empty() {
                running.remove(&self.id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_user_stops_a_statement() {
        let running = FlightStatements::default();
        let (ann, bob) = (
            Identity::of_password("ann", 1),
            Identity::of_password("bob", 2),
        );
        let id = new_statement_id();
        let first = running.begin(&id, &ann);
        let second = running.begin(&id, &ann);
        assert_eq!(running.stop(&id, &bob), None);
        assert!(!first.stop.is_cancelled());
        drop(first);
        assert_eq!(running.stop(&id, &ann), Some(CancelStatus::Cancelled));
        assert!(second.stop.is_cancelled());
        drop(second);
        assert_eq!(running.stop(&id, &ann), None);
        assert!(running.0.lock().expect("no panic").is_empty());
    }

    #[test]
    fn a_statement_that_commits_is_not_stopped() {
        let running = FlightStatements::default();
        let ann = Identity::of_password("ann", 1);
        let id = new_statement_id();
        let commits = running.begin(&id, &ann);
        let last = commits.commit.begin_write(true).expect("it runs");
        let status = running.stop(&id, &ann);
        assert_eq!(status, Some(CancelStatus::NotCancellable));
        assert!(!commits.stop.is_cancelled());
        drop((last, commits));
        let writes = running.begin(&id, &ann);
        let step = writes.commit.begin_write(false).expect("it runs");
        let status = running.stop(&id, &ann);
        assert_eq!(status, Some(CancelStatus::Cancelling));
        drop(step);
        assert!(writes.commit.begin_write(true).is_err());
        assert_eq!(running.stop(&id, &ann), Some(CancelStatus::Cancelled));
    }
}
