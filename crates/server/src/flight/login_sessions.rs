//! The tokens that a handshake gives for a name and a password.
//!
//! Invariant: their number is bounded, and one that nobody uses for a day ends. A token says who
//! asks; what that user may do is asked with each statement.

use marigram_service::Identity;
use rand::Rng;
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Begin of each token, which tells it from those of the database.
const PREFIX: &str = "flight_";
/// Tokens at once; the one that was unused for longest makes room.
const SESSIONS_MAX: usize = 10_000;
/// After this time without a call, a token ends.
const UNUSED_MAX: Duration = Duration::from_hours(24);

/// The tokens of handshakes.
#[derive(Debug, Default)]
pub struct LoginSessions {
    by_token: Mutex<HashMap<String, LoginSession>>,
}

#[derive(Debug)]
struct LoginSession {
    identity: Identity,
    used: Instant,
}

impl LoginSessions {
    /// Whether a text looks like one of these tokens.
    pub fn is_token(text: &str) -> bool {
        text.starts_with(PREFIX)
    }

    /// A new token for a client who proved to be `identity`.
    pub fn begin(&self, identity: Identity) -> String {
        let mut secret = [0; 32];
        rand::rng().fill_bytes(&mut secret);
        let mut token = PREFIX.to_owned();
        for byte in secret {
            // Writing to a String cannot fail.
            let _ = write!(token, "{byte:02x}");
        }
        self.insert(&token, identity, Instant::now());
        token
    }

    fn insert(&self, token: &str, identity: Identity, now: Instant) {
        let mut sessions = self.by_token.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= SESSIONS_MAX {
            let is_unused = |used| now.saturating_duration_since(used) > UNUSED_MAX;
            sessions.retain(|_, session| !is_unused(session.used));
        }
        if sessions.len() >= SESSIONS_MAX {
            let oldest = sessions.iter().min_by_key(|(_, session)| session.used);
            let oldest = oldest.map(|(token, _)| token.clone());
            oldest.and_then(|token| sessions.remove(&token));
        }
        let session = LoginSession {
            identity,
            used: now,
        };
        sessions.insert(token.to_owned(), session);
    }

    /// Whose token this is, if it has not ended.
    pub fn find(&self, token: &str) -> Option<Identity> {
        self.find_at(token, Instant::now())
    }

    fn find_at(&self, token: &str, now: Instant) -> Option<Identity> {
        let mut sessions = self.by_token.lock().unwrap_or_else(PoisonError::into_inner);
        let session = sessions.get_mut(token)?;
        if now.saturating_duration_since(session.used) > UNUSED_MAX {
            sessions.remove(token);
            return None;
        }
        session.used = now;
        Some(session.identity.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_end_and_their_number_is_bounded() {
        let sessions = LoginSessions::default();
        let begin = Instant::now();
        let token = sessions.begin(Identity::of_password("ann"));
        assert!(LoginSessions::is_token(&token) && token.len() == PREFIX.len() + 64);
        let found = sessions.find(&token).expect("it is known");
        assert_eq!(found, Identity::of_password("ann"));
        assert_eq!(sessions.find("flight_0"), None);
        let later = begin + UNUSED_MAX + Duration::from_hours(1);
        assert_eq!(sessions.find_at(&token, later), None);
        for at in 0..SESSIONS_MAX + 10 {
            let now = later + Duration::from_millis(at as u64);
            sessions.insert(&at.to_string(), Identity::of_password("bob"), now);
        }
        let known = sessions.by_token.lock().expect("no panic").len();
        assert_eq!(known, SESSIONS_MAX);
        assert_eq!(sessions.find_at("0", later), None);
        assert!(sessions.find_at("10", later).is_some());
    }
}
