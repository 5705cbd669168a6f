//! The statements that run, so that their clients can stop them by what `GetFlightInfo` gave.
//!
//! Invariant: nobody stops another user's statement; a statement is listed as long as it runs.

use marigram_service::Identity;
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
}

/// A statement that runs; dropping it removes it from the list.
#[derive(Debug)]
pub(super) struct FlightStatementGuard {
    statements: FlightStatements,
    id: Vec<u8>,
    /// Fires when the client stops the statement.
    pub stop: CancellationToken,
}

/// A number for a statement, which nobody guesses.
pub(super) fn new_statement_id() -> Vec<u8> {
    let mut id = vec![0; 16];
    rand::rng().fill_bytes(&mut id);
    id
}

impl FlightStatements {
    /// Lists a statement of `user`.
    pub(super) fn begin(&self, id: &[u8], user: &Identity) -> FlightStatementGuard {
        let stop = CancellationToken::new();
        let statement = FlightStatement {
            user: user.clone(),
            stop: stop.clone(),
        };
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        running.entry(id.to_vec()).or_default().push(statement);
        FlightStatementGuard {
            statements: self.clone(),
            id: id.to_vec(),
            stop,
        }
    }

    /// Stops the statements with this number that `user` runs; says whether there were any.
    pub(super) fn stop(&self, id: &[u8], user: &Identity) -> bool {
        let running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all = running.get(id).map(Vec::as_slice).unwrap_or_default();
        let mut found = false;
        for statement in all
            .iter()
            .filter(|statement| statement.user.user == user.user)
        {
            statement.stop.cancel();
            found = true;
        }
        found
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
        assert!(!running.stop(&id, &bob) && !first.stop.is_cancelled());
        drop(first);
        assert!(running.stop(&id, &ann) && second.stop.is_cancelled());
        drop(second);
        assert!(!running.stop(&id, &ann));
        assert!(running.0.lock().expect("no panic").is_empty());
    }
}
