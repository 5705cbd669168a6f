//! Errors in the format of PostgreSQL clients.

use crate::postgres::messages::BackendMessages;
use marigram_service::{ServiceError, ViolatedConstraint};

/// An error to send to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PgError {
    /// SQLSTATE (PostgreSQL's manual, appendix A).
    pub sqlstate: &'static str,
    /// A sentence for people.
    pub message: String,
    /// Character position in the SQL, from 1.
    pub position: Option<usize>,
    /// A second sentence, about what was done nevertheless.
    pub detail: Option<String>,
    /// Where in the data the error is, for COPY.
    pub context: Option<String>,
    /// The constraint that rows violate.
    pub violated: Option<Box<ViolatedConstraint>>,
    /// Whether the connection ends.
    pub fatal: bool,
}

impl PgError {
    /// An error of a statement.
    pub(super) fn new(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self {
            sqlstate,
            message: message.into(),
            position: None,
            detail: None,
            context: None,
            violated: None,
            fatal: false,
        }
    }

    /// An error that ends the connection.
    pub(super) fn fatal(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self {
            fatal: true,
            ..Self::new(sqlstate, message)
        }
    }

    /// Whether the server is at fault: a resource ran out, or something broke.
    pub(super) fn is_of_server(&self) -> bool {
        matches!(self.sqlstate.get(..2), Some("53" | "58" | "XX"))
    }

    /// The same error, with the position in the data.
    pub(super) fn with_context(self, context: String) -> Self {
        Self {
            context: Some(context),
            ..self
        }
    }

    /// Appends the error's message.
    pub(super) fn write(&self, backend: &mut BackendMessages) {
        let severity = if self.fatal { "FATAL" } else { "ERROR" };
        let position = self.position.map(|position| position.to_string());
        let mut fields = vec![
            (b'S', severity),
            (b'V', severity),
            (b'C', self.sqlstate),
            (b'M', self.message.as_str()),
        ];
        fields.extend(position.as_deref().map(|text| (b'P', text)));
        fields.extend(self.detail.as_deref().map(|text| (b'D', text)));
        fields.extend(self.context.as_deref().map(|text| (b'W', text)));
        if let Some(violated) = &self.violated {
            let names = [
                (b's', violated.table.as_ref().map(|_| "public")),
                (b't', violated.table.as_deref()),
                (b'c', violated.column.as_deref()),
                (b'n', violated.constraint.as_deref()),
            ];
            fields.extend(
                names
                    .into_iter()
                    .filter_map(|(sign, name)| Some((sign, name?))),
            );
        }
        backend.error(&fields);
    }
}

impl From<ServiceError> for PgError {
    fn from(error: ServiceError) -> Self {
        if let ServiceError::Violation(violated) = error {
            let plain = Self::new(violated.sqlstate, violated.message.clone());
            return Self {
                detail: violated.detail.clone(),
                violated: Some(violated),
                ..plain
            };
        }
        let position = error.position();
        Self {
            position,
            ..Self::new(error.sqlstate(), error.to_string())
        }
    }
}

impl From<arrow::error::ArrowError> for PgError {
    fn from(error: arrow::error::ArrowError) -> Self {
        if let arrow::error::ArrowError::NotYetImplemented(message) = error {
            return Self::new("0A000", message);
        }
        Self::new("XX000", format!("the answer could not be encoded: {error}"))
    }
}

impl From<tokio::task::JoinError> for PgError {
    fn from(error: tokio::task::JoinError) -> Self {
        if error.is_cancelled() {
            return Self::new("57P01", "the server is stopping; connect again later");
        }
        Self::new(
            "XX000",
            format!("a task of the server ended early: {error}"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn every_error_of_the_service_has_its_sqlstate() {
        let text = || "m".to_owned();
        let busy = ServiceError::Busy {
            message: text(),
            retry_after: Duration::from_secs(1),
        };
        let invalid = ServiceError::Invalid {
            message: text(),
            position: Some(7),
            sqlstate: "42703",
        };
        let table = [
            (invalid, "42703", Some(7)),
            (ServiceError::NotFound(text(), "42P01"), "42P01", None),
            (ServiceError::AlreadyExists(text(), "42P07"), "42P07", None),
            (busy, "53200", None),
            (ServiceError::ChangesRefused(text()), "25006", None),
            (ServiceError::ReadOnly(text()), "25006", None),
            (ServiceError::Cancelled(text()), "57014", None),
            (ServiceError::Internal(text()), "XX000", None),
        ];
        for (error, sqlstate, position) in table {
            let what = format!("{error:?}");
            let error = PgError::from(error);
            assert_eq!(
                (error.sqlstate, error.position),
                (sqlstate, position),
                "{what}"
            );
            assert!(!error.fatal && error.message == "m", "{what}");
        }
    }
}
