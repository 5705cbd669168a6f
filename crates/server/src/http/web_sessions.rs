//! InfluxDB 2's sign-in: a cookie that stands for a user who has given a password.
//!
//! Invariants: of a cookie, only the hash is kept; its session ends with an hour without use, with a
//! sign-out, with any change of the user's password, and with the server. The number of sessions is
//! bounded. A cookie is taken on the paths of API 2 only, and what a web page may send is decided
//! before it is looked at ([`browser`](super::browser)).

use axum::http::{HeaderMap, HeaderValue, header};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use marigram_access::PasswordVerifiers;
use rand::Rng;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Name of the cookie, as InfluxDB 2 has it.
const COOKIE: &str = "influxdb-oss-session";

/// Paths on which the cookie is taken.
const PATHS: &str = "/api/v2/";

/// A session that is not used for this long ends.
const IDLE_MAX: Duration = Duration::from_hours(1);

/// Sessions at once; the one that was used least lately makes room.
const SESSIONS_MAX: usize = 10_000;

type CookieDigest = [u8; 32];

/// The sessions of a server.
#[derive(Debug, Default)]
pub(super) struct WebSessions {
    open: Mutex<HashMap<CookieDigest, WebSession>>,
}

#[derive(Debug)]
struct WebSession {
    user: String,
    /// Those against which the password was checked.
    verifiers: PasswordVerifiers,
    used: Instant,
}

fn digest_of(cookie: &str) -> CookieDigest {
    Sha256::digest(cookie).into()
}

/// The session cookie of a request, if its path takes one.
pub(super) fn cookie_of(path: &str, headers: &HeaderMap) -> Option<String> {
    if !path.starts_with(PATHS) {
        return None;
    }
    let mut texts = headers.get_all(header::COOKIE).iter();
    texts.find_map(|value| {
        let mut pairs = value.to_str().ok()?.split(';');
        pairs.find_map(|pair| {
            let (name, value) = pair.trim().split_once('=')?;
            (name == COOKIE).then(|| value.to_owned())
        })
    })
}

/// The header that gives a client its cookie; an empty one takes it away.
pub(super) fn set_cookie(cookie: &str, is_encrypted: bool) -> Option<HeaderValue> {
    let secure = if is_encrypted { "; Secure" } else { "" };
    let age_s = if cookie.is_empty() {
        0
    } else {
        IDLE_MAX.as_secs()
    };
    let text = format!(
        "{COOKIE}={cookie}; Path=/api/v2; Max-Age={age_s}; HttpOnly; SameSite=Strict{secure}"
    );
    HeaderValue::from_str(&text).ok()
}

impl WebSessions {
    /// Begins a session of a user whose password was found right; gives its cookie.
    pub(super) fn begin(&self, user: &str, verifiers: PasswordVerifiers, now: Instant) -> String {
        let mut secret = [0; 32];
        rand::rng().fill_bytes(&mut secret);
        let cookie = URL_SAFE_NO_PAD.encode(secret);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= SESSIONS_MAX {
            open.retain(|_, session| now.saturating_duration_since(session.used) < IDLE_MAX);
        }
        if open.len() >= SESSIONS_MAX {
            let oldest = open.iter().min_by_key(|(_, session)| session.used);
            let oldest = oldest.map(|(digest, _)| *digest);
            oldest.and_then(|oldest| open.remove(&oldest));
        }
        let session = WebSession {
            user: user.to_owned(),
            verifiers,
            used: now,
        };
        open.insert(digest_of(&cookie), session);
        cookie
    }

    /// The user of a session, if it goes on; `verifiers` gives what a user's password is checked
    /// against now.
    pub(super) fn user_of(
        &self,
        cookie: &str,
        now: Instant,
        verifiers: impl FnOnce(&str) -> PasswordVerifiers,
    ) -> Option<String> {
        let digest = digest_of(cookie);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let session = open.get_mut(&digest)?;
        let is_idle = now.saturating_duration_since(session.used) >= IDLE_MAX;
        if is_idle || verifiers(&session.user) != session.verifiers {
            open.remove(&digest);
            return None;
        }
        session.used = now;
        Some(session.user.clone())
    }

    /// Ends a session.
    pub(super) fn end(&self, cookie: &str) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.remove(&digest_of(cookie));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_end() {
        let sessions = WebSessions::default();
        let verifiers = |key: u8| PasswordVerifiers::decoy("ann", &[key; 32]);
        let begin = Instant::now();
        let cookie = sessions.begin("ann", verifiers(1), begin);
        let user = |cookie: &str, now, key| sessions.user_of(cookie, now, |_| verifiers(key));
        let half = begin + IDLE_MAX / 2;
        assert_eq!(user(&cookie, half, 1).as_deref(), Some("ann"));
        assert_eq!(user(&cookie, begin + IDLE_MAX, 1).as_deref(), Some("ann"));
        assert_eq!(user("another", half, 1), None);
        assert_eq!(user(&cookie, begin + 3 * IDLE_MAX, 1), None, "it was idle");
        let cookie = sessions.begin("ann", verifiers(1), begin);
        assert_eq!(user(&cookie, begin, 2), None, "the password was changed");
        assert_eq!(user(&cookie, begin, 1), None, "and it is over");
        let cookie = sessions.begin("ann", verifiers(1), begin);
        sessions.end(&cookie);
        assert_eq!(user(&cookie, begin, 1), None);
    }

    #[test]
    fn cookies_are_of_one_api() {
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_static("a=b; influxdb-oss-session=xyz; c=d");
        headers.insert(header::COOKIE, value);
        assert_eq!(cookie_of("/api/v2/query", &headers).as_deref(), Some("xyz"));
        assert_eq!(cookie_of("/query", &headers), None);
        let text = |encrypted| {
            let value = set_cookie("xyz", encrypted).expect("a header");
            value.to_str().expect("a text").to_owned()
        };
        assert!(text(true).ends_with("; Secure") && !text(false).contains("Secure"));
        assert!(text(true).contains("HttpOnly") && text(true).contains("SameSite=Strict"));
    }
}
