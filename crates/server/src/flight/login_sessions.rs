//! The tokens that a handshake gives for a name and a password.
//!
//! Invariants: of a token, only the hash is kept. A token ends a day after its handshake, however
//! much it is used, with any change of the user's password, when the first user is made, and with
//! the server. Their number is bounded. A token says who asks; what that user may do is asked with
//! each statement.

use marigram_access::PasswordVerifiers;
use marigram_service::Identity;
use rand::Rng;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Begin of each token, which tells it from those of the database.
const PREFIX: &str = "flight_";
/// Tokens at once; the one that was unused for longest makes room.
const SESSIONS_MAX: usize = 10_000;
/// A token ends this long after its handshake.
pub(super) const AGE_MAX: Duration = Duration::from_hours(24);

type TokenDigest = [u8; 32];

/// The tokens of handshakes.
#[derive(Debug, Default)]
pub(super) struct LoginSessions {
    by_token: Mutex<HashMap<TokenDigest, LoginSession>>,
}

/// Who gave a name and a password.
#[derive(Clone, Debug)]
pub(super) struct LoggedIn {
    /// Who it is.
    pub identity: Identity,
    /// What the password was checked against; `None` where there are no users.
    pub verifiers: Option<PasswordVerifiers>,
}

#[derive(Debug)]
struct LoginSession {
    client: LoggedIn,
    begun: Instant,
    used: Instant,
}

impl LoginSession {
    fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.begun) >= AGE_MAX
    }
}

fn digest_of(token: &str) -> TokenDigest {
    Sha256::digest(token).into()
}

impl LoginSessions {
    /// Whether a text looks like one of these tokens.
    pub(super) fn is_token(text: &str) -> bool {
        text.starts_with(PREFIX)
    }

    /// A new token for a client who proved who it is.
    pub(super) fn begin(&self, client: LoggedIn, now: Instant) -> String {
        let mut secret = [0; 32];
        rand::rng().fill_bytes(&mut secret);
        let mut token = PREFIX.to_owned();
        for byte in secret {
            // Writing to a String cannot fail.
            let _ = write!(token, "{byte:02x}");
        }
        let mut sessions = self.by_token.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= SESSIONS_MAX {
            sessions.retain(|_, session| !session.is_over(now));
        }
        if sessions.len() >= SESSIONS_MAX {
            let oldest = sessions.iter().min_by_key(|(_, session)| session.used);
            let oldest = oldest.map(|(digest, _)| *digest);
            oldest.and_then(|oldest| sessions.remove(&oldest));
        }
        let session = LoginSession {
            client,
            begun: now,
            used: now,
        };
        sessions.insert(digest_of(&token), session);
        token
    }

    /// Whose token this is, if it has not ended; `verifiers` gives what a user's password is checked
    /// against now, or `None` where there are no users.
    pub(super) fn find(
        &self,
        token: &str,
        now: Instant,
        verifiers: impl FnOnce(&str) -> Option<PasswordVerifiers>,
    ) -> Option<Identity> {
        let digest = digest_of(token);
        let mut sessions = self.by_token.lock().unwrap_or_else(PoisonError::into_inner);
        let session = sessions.get_mut(&digest)?;
        let client = &session.client;
        if session.is_over(now) || verifiers(&client.identity.user) != client.verifiers {
            sessions.remove(&digest);
            return None;
        }
        session.used = now;
        Some(session.client.identity.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verifiers(key: u8) -> PasswordVerifiers {
        PasswordVerifiers::decoy("ann", &[key; 32])
    }

    fn ann() -> LoggedIn {
        LoggedIn {
            identity: Identity::of_password("ann", 7),
            verifiers: Some(verifiers(1)),
        }
    }

    #[test]
    fn tokens_end_after_a_day_however_much_they_are_used() {
        let (sessions, begin) = (LoginSessions::default(), Instant::now());
        let token = sessions.begin(ann(), begin);
        assert!(LoginSessions::is_token(&token) && token.len() == PREFIX.len() + 64);
        let find = |token: &str, now| sessions.find(token, now, |_| Some(verifiers(1)));
        for hour in 0..24 {
            let found = find(&token, begin + Duration::from_hours(hour));
            assert_eq!(found, Some(Identity::of_password("ann", 7)), "{hour}");
        }
        assert_eq!(find("flight_0", begin), None);
        assert_eq!(find(&token, begin + AGE_MAX), None);
        assert_eq!(find(&token, begin), None, "and it is forgotten");
    }

    #[test]
    fn tokens_end_with_the_password_and_are_kept_as_hashes() {
        let (sessions, now) = (LoginSessions::default(), Instant::now());
        let token = sessions.begin(ann(), now);
        assert!(!format!("{sessions:?}").contains(&token));
        assert_eq!(sessions.find(&token, now, |_| Some(verifiers(2))), None);
        assert_eq!(sessions.find(&token, now, |_| Some(verifiers(1))), None);
        // A name that nobody had to prove is none once there are users.
        let open = LoggedIn {
            identity: Identity::unproved("ann"),
            verifiers: None,
        };
        let token = sessions.begin(open.clone(), now);
        assert_eq!(
            sessions.find(&token, now, |_| None),
            Some(open.identity.clone())
        );
        assert_eq!(sessions.find(&token, now, |_| Some(verifiers(1))), None);
    }

    #[test]
    fn the_number_of_tokens_is_bounded() {
        let (sessions, begin) = (LoginSessions::default(), Instant::now());
        let tokens: Vec<String> = (0..SESSIONS_MAX + 10)
            .map(|at| sessions.begin(ann(), begin + Duration::from_millis(at as u64)))
            .collect();
        let known = sessions.by_token.lock().expect("no panic").len();
        assert_eq!(known, SESSIONS_MAX);
        let now = begin + Duration::from_hours(1);
        let find = |at: usize| sessions.find(&tokens[at], now, |_| Some(verifiers(1)));
        assert_eq!(find(9), None);
        assert!(find(10).is_some());
        // Those that have ended make room first.
        sessions.begin(ann(), begin + AGE_MAX + Duration::from_hours(1));
        assert_eq!(sessions.by_token.lock().expect("no panic").len(), 1);
    }
}
