//! The error by which a function or an operator refuses a statement.

use datafusion::common::DataFusionError;

/// What is wrong with a statement or with the values that it computes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// PostgreSQL's error code.
    pub sqlstate: &'static str,
    /// What is wrong, and what to do about it.
    pub message: String,
    /// The name that is wrong, which gives the error its position in the statement.
    pub name: Option<String>,
}

impl From<Refusal> for DataFusionError {
    fn from(refusal: Refusal) -> Self {
        Self::External(Box::new(refusal))
    }
}

/// The error of a function or an operator that refuses its arguments.
pub fn refused(sqlstate: &'static str, message: impl Into<String>) -> DataFusionError {
    let message = message.into();
    Refusal {
        sqlstate,
        message,
        name: None,
    }
    .into()
}

/// The same error, with the position of `name` in the statement.
pub fn refused_at(
    sqlstate: &'static str,
    name: &str,
    message: impl Into<String>,
) -> DataFusionError {
    Refusal {
        sqlstate,
        message: message.into(),
        name: Some(name.to_owned()),
    }
    .into()
}
