//! Errors as PostgreSQL's clients read them.

use crate::postgres::messages::Backend;
use marigram_service::ServiceError;

/// An error on its way to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PgError {
    /// SQLSTATE (PostgreSQL's manual, appendix A).
    pub sqlstate: &'static str,
    /// A sentence for people.
    pub message: String,
    /// Character position in the SQL, from 1.
    pub position: Option<usize>,
    /// Where in the data the error is, for COPY.
    pub context: Option<String>,
    /// Whether the connection ends.
    pub fatal: bool,
}

impl PgError {
    /// An error of a statement.
    pub fn new(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self {
            sqlstate,
            message: message.into(),
            position: None,
            context: None,
            fatal: false,
        }
    }

    /// An error that ends the connection.
    pub fn fatal(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self {
            fatal: true,
            ..Self::new(sqlstate, message)
        }
    }

    /// The same error, with the place in the data.
    pub fn at(self, context: String) -> Self {
        Self {
            context: Some(context),
            ..self
        }
    }

    /// Appends the error's message.
    pub fn write(&self, backend: &mut Backend) {
        let severity = if self.fatal { "FATAL" } else { "ERROR" };
        let position = self.position.map(|position| position.to_string());
        let mut fields = vec![
            (b'S', severity),
            (b'V', severity),
            (b'C', self.sqlstate),
            (b'M', self.message.as_str()),
        ];
        fields.extend(position.as_deref().map(|text| (b'P', text)));
        fields.extend(self.context.as_deref().map(|text| (b'W', text)));
        backend.error(&fields);
    }
}

impl From<ServiceError> for PgError {
    fn from(error: ServiceError) -> Self {
        let position = error.position();
        Self {
            position,
            ..Self::new(error.sqlstate(), error.to_string())
        }
    }
}

impl From<arrow::error::ArrowError> for PgError {
    fn from(error: arrow::error::ArrowError) -> Self {
        Self::new("XX000", format!("the answer could not be encoded: {error}"))
    }
}

impl From<tokio::task::JoinError> for PgError {
    fn from(error: tokio::task::JoinError) -> Self {
        Self::new(
            "XX000",
            format!("a task of the server ended early: {error}"),
        )
    }
}
