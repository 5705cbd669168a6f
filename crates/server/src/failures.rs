//! The log's lines about requests that failed for no fault of their client (memory, disk or time was
//! short, or something broke), and about those that were refused.
//!
//! Overload makes thousands of them a second. So some are told in each while, and then how many more
//! there were.

use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a while is, and how many lines it has.
const WHILE: Duration = Duration::from_secs(10);
const LINES_MAX: u64 = 20;
/// Characters of an error that are told.
const ERROR_CHARS_MAX: usize = 300;
/// Letters of a statement's first word that are told.
const KIND_CHARS_MAX: usize = 16;

/// A request that failed.
#[derive(Clone, Debug)]
pub struct RequestFailure {
    /// What clients are told it was: a code or an SQLSTATE.
    pub code: &'static str,
    /// The same in words.
    pub error: String,
    /// What kind of statement it was, if it was one.
    pub statement: Option<String>,
}

/// Tells failures, up to a number in a while.
#[derive(Debug, Default)]
pub struct FailureLog {
    failed: ThrottledLines,
    refused: ThrottledLines,
}

/// Lines of one kind: so many in a while, then how many more there were.
#[derive(Debug, Default)]
pub struct ThrottledLines(Mutex<ThrottleState>);

impl ThrottledLines {
    /// Whether one more is told.
    pub fn may_tell(&self, what: &str) -> bool {
        let mut pace = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (told, untold) = pace.next(Instant::now());
        drop(pace);
        if untold > 0 {
            tracing::warn!(untold, "there were more {what} than were told");
        }
        told
    }
}

#[derive(Debug, Default)]
struct ThrottleState {
    begun: Option<Instant>,
    failures: u64,
}

impl ThrottleState {
    /// Whether a failure at `now` is told, and how many were not in a while that has ended.
    fn next(&mut self, now: Instant) -> (bool, u64) {
        let mut untold = 0;
        if self.begun.is_none_or(|begun| now - begun >= WHILE) {
            untold = self.failures.saturating_sub(LINES_MAX);
            self.begun = Some(now);
            self.failures = 0;
        }
        self.failures += 1;
        (self.failures <= LINES_MAX, untold)
    }
}

impl FailureLog {
    /// Tells of a failure of a request of `route`, answered with `status`.
    pub fn note(&self, route: &str, status: u16, failure: &RequestFailure) {
        if !self.failed.may_tell("requests that failed") {
            return;
        }
        let RequestFailure {
            code, statement, ..
        } = failure;
        let error = failure.shortened_error();
        let statement = statement.as_deref().unwrap_or("none");
        tracing::warn!(route, status, code, statement, error, "a request failed");
    }

    /// Tells of a request of `route` from `peer` that was answered with `status` for a fault of its
    /// client.
    pub fn note_refused(
        &self,
        route: &str,
        status: u16,
        failure: &RequestFailure,
        peer: SocketAddr,
    ) {
        if !self.refused.may_tell("requests that were refused") {
            return;
        }
        let (code, error) = (failure.code, failure.shortened_error());
        tracing::info!(route, status, code, %peer, error, "a request was refused");
    }
}

impl RequestFailure {
    /// The words of the error that are told.
    fn shortened_error(&self) -> String {
        self.error.chars().take(ERROR_CHARS_MAX).collect()
    }
}

/// What kind of statement this is: its first word.
pub fn kind_of(sql: &str) -> String {
    let mut rest = sql.trim_start();
    while let Some(comment) = rest.strip_prefix("--") {
        rest = comment.split_once('\n').map_or("", |(_, after)| after);
        rest = rest.trim_start();
    }
    let rest = rest.trim_start_matches(|c: char| c == '(' || c.is_whitespace());
    let word = rest.chars().take_while(char::is_ascii_alphabetic);
    let word: String = word.take(KIND_CHARS_MAX).collect();
    word.to_ascii_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_failures_is_a_few_lines_and_a_number() {
        let mut pace = ThrottleState::default();
        let begin = Instant::now();
        for at in 1..=100 {
            assert_eq!(pace.next(begin), (at <= LINES_MAX, 0), "{at}");
        }
        assert_eq!(pace.next(begin + WHILE), (true, 100 - LINES_MAX));
        assert_eq!(pace.next(begin + WHILE), (true, 0));
        assert_eq!(pace.next(begin + 2 * WHILE), (true, 0));
    }

    #[test]
    fn a_kind_is_the_first_word() {
        for (sql, kind) in [
            ("select 1", "SELECT"),
            ("\n -- why\n  (Insert into t", "INSERT"),
            ("-- nothing", ""),
            ("ä", ""),
            (&"x".repeat(100), &"X".repeat(16)),
        ] {
            assert_eq!(kind_of(sql), *kind, "{sql}");
        }
    }
}
