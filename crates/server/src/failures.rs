//! Logs requests that failed through no fault of their client (memory, disk space or time ran out,
//! or something broke), and requests that were refused.
//!
//! Overload causes thousands of them per second. So the log reports a limited number per interval,
//! and then how many more there were.

use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Length of an interval, and its number of lines.
const WHILE: Duration = Duration::from_secs(10);
const LINES_MAX: u64 = 20;
/// Characters of an error that are logged.
const ERROR_CHARS_MAX: usize = 300;
/// Letters of a statement's first word that are logged.
const KIND_CHARS_MAX: usize = 16;

/// A request that failed.
#[derive(Clone, Debug)]
pub(crate) struct RequestFailure {
    /// The error that clients see: a code or an SQLSTATE.
    pub code: &'static str,
    /// The message of the error.
    pub error: String,
    /// The kind of statement, if it was one.
    pub statement: Option<String>,
}

/// Logs failures, up to a limit per interval.
#[derive(Debug, Default)]
pub(crate) struct FailureLog {
    failed: ThrottledLines,
    refused: ThrottledLines,
}

/// Lines of one kind: a limited number per interval, then a count of the others.
#[derive(Debug, Default)]
pub(crate) struct ThrottledLines(Mutex<ThrottleState>);

impl ThrottledLines {
    /// Whether to log one more.
    pub(crate) fn may_log(&self, what: &str) -> bool {
        let mut pace = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (told, untold) = pace.next(Instant::now());
        drop(pace);
        if untold > 0 {
            tracing::warn!(untold, "there were more {what} than the log reports");
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
    /// Whether to log a failure at `now`, and how many were left out in an interval that has ended.
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
    /// Logs a failed request of `route`, answered with `status`.
    pub(crate) fn note(&self, route: &str, status: u16, failure: &RequestFailure) {
        if !self.failed.may_log("requests that failed") {
            return;
        }
        let RequestFailure {
            code, statement, ..
        } = failure;
        let error = failure.shortened_error();
        let statement = statement.as_deref().unwrap_or("none");
        tracing::warn!(route, status, code, statement, error, "a request failed");
    }

    /// Logs a request of `route` from `peer` that was answered with `status` through a fault of its
    /// client.
    pub(crate) fn note_refused(
        &self,
        route: &str,
        status: u16,
        failure: &RequestFailure,
        peer: SocketAddr,
    ) {
        if !self.refused.may_log("requests that were refused") {
            return;
        }
        let (code, error) = (failure.code, failure.shortened_error());
        tracing::info!(route, status, code, %peer, error, "a request was refused");
    }
}

impl RequestFailure {
    /// The part of the error that is logged.
    fn shortened_error(&self) -> String {
        self.error.chars().take(ERROR_CHARS_MAX).collect()
    }
}

/// What kind of statement this is: its first word.
pub(crate) fn kind_of(sql: &str) -> String {
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
