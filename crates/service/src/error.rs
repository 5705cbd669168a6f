//! Why a request failed, in terms that every protocol can translate.
//!
//! Each case stands for one reaction of a client: correct the request, retry later, or tell the
//! operator. Messages are complete sentences for people: what was wrong, where, and what to do.

use std::fmt;
use std::time::Duration;

/// Result of a service call.
pub type Result<T> = std::result::Result<T, ServiceError>;

/// Why a request failed. Servers map these to their protocol's codes.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// The request is wrong; the message says what, where and what to do.
    #[error("{message}")]
    Invalid {
        /// What is wrong.
        message: String,
        /// Character position in the SQL, from 1.
        position: Option<usize>,
        /// PostgreSQL's SQLSTATE.
        sqlstate: &'static str,
    },
    /// The rows that a request gives, or those that it would leave, violate a constraint.
    #[error("{0}")]
    Violation(Box<ViolatedConstraint>),
    /// Something that the request names does not exist: the message, and the SQLSTATE.
    #[error("{0}")]
    NotFound(String, &'static str),
    /// Something that the request would create already exists: the message, and the SQLSTATE.
    #[error("{0}")]
    AlreadyExists(String, &'static str),
    /// Too many requests at once. Nothing was stored; the same request may be sent again.
    #[error("{message}")]
    Busy {
        /// Which resource is short.
        message: String,
        /// How long to wait before a retry.
        retry_after: Duration,
    },
    /// The client did not prove who it is; the message says how.
    #[error("{0}")]
    Unauthenticated(String),
    /// The client may not do what it asks for; the message says which right it needs.
    #[error("{0}")]
    Forbidden(String),
    /// A statement that changes something was sent where only reading is allowed ([`Session`]); it
    /// had no effect.
    ///
    /// [`Session`]: crate::Session::read_only
    #[error("{0}")]
    ChangesRefused(String),
    /// Writes are refused (disk full, failed fsync); the message says why.
    #[error("{0}")]
    ReadOnly(String),
    /// The client or a timeout stopped the statement.
    #[error("{0}")]
    Cancelled(String),
    /// The server is at fault.
    #[error("{0}")]
    Internal(String),
}

/// What rows violate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViolatedConstraint {
    /// What is wrong.
    pub message: String,
    /// Which values are at fault.
    pub detail: Option<String>,
    /// PostgreSQL's SQLSTATE.
    pub sqlstate: &'static str,
    /// The table of the constraint.
    pub table: Option<String>,
    /// The column that lacks a value.
    pub column: Option<String>,
    /// The name of the constraint.
    pub constraint: Option<String>,
}

impl fmt::Display for ViolatedConstraint {
    /// In one sentence, for protocols that have one text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.detail {
            Some(detail) => write!(f, ": {detail}"),
            None => Ok(()),
        }
    }
}

impl ServiceError {
    /// The same error, with `note` after its message.
    #[must_use]
    pub fn with_note(mut self, note: &str) -> Self {
        let message = match &mut self {
            Self::Violation(violated) => &mut violated.message,
            Self::Invalid { message, .. }
            | Self::NotFound(message, _)
            | Self::AlreadyExists(message, _)
            | Self::Busy { message, .. }
            | Self::Unauthenticated(message)
            | Self::Forbidden(message)
            | Self::ChangesRefused(message)
            | Self::ReadOnly(message)
            | Self::Cancelled(message)
            | Self::Internal(message) => message,
        };
        message.push_str(note);
        self
    }

    /// PostgreSQL's SQLSTATE for the error (PostgreSQL's manual, appendix A).
    #[must_use]
    pub fn sqlstate(&self) -> &'static str {
        match self {
            Self::Invalid { sqlstate, .. }
            | Self::NotFound(_, sqlstate)
            | Self::AlreadyExists(_, sqlstate) => sqlstate,
            Self::Violation(violated) => violated.sqlstate,
            // The resource that is short is nearly always memory.
            Self::Busy { .. } => "53200",
            Self::Unauthenticated(_) => "28P01",
            Self::Forbidden(_) => "42501",
            Self::ChangesRefused(_) | Self::ReadOnly(_) => "25006",
            Self::Cancelled(_) => "57014",
            Self::Internal(_) => "XX000",
        }
    }

    /// Where in the SQL the error is, in characters from 1, if known.
    #[must_use]
    pub fn position(&self) -> Option<usize> {
        match self {
            Self::Invalid { position, .. } => *position,
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_their_message_and_sqlstate() {
        let error = ServiceError::Invalid {
            message: "there is no column 'tmp'".to_owned(),
            position: Some(8),
            sqlstate: "42703",
        };
        assert_eq!(error.to_string(), "there is no column 'tmp'");
        assert_eq!((error.sqlstate(), error.position()), ("42703", Some(8)));
        let busy = ServiceError::Busy {
            message: "busy".to_owned(),
            retry_after: Duration::from_secs(1),
        };
        assert_eq!((busy.sqlstate(), busy.position()), ("53200", None));
    }
}
