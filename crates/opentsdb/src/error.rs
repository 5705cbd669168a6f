//! Why a point or a query is refused, in OpenTSDB's words: its clients and their users know them.

/// Why a point is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PutFault {
    /// A part is missing, or no point can have it.
    #[error("{0}")]
    IllegalArgument(String),
    /// A number cannot be read.
    #[error("{0}")]
    InvalidValue(String),
}

/// Why a query is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct QueryFault {
    /// What is wrong.
    pub message: String,
    /// What else helps to correct it.
    pub details: Option<String>,
}

/// The fault of a body that is empty.
pub(crate) fn missing_content() -> QueryFault {
    QueryFault::new("Missing message content")
        .with_details("Supply valid JSON formatted data in the body of your request")
}

/// The fault of a parameter of a URL that is not there.
pub(crate) fn missing_parameter(name: &str) -> QueryFault {
    QueryFault::new(format!("Missing parameter <code>{name}</code>"))
}

impl QueryFault {
    /// A fault without details.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            details: None,
        }
    }

    /// The same fault with details.
    #[must_use]
    pub(crate) fn with_details(mut self, details: impl Into<String>) -> Self {
        self.details = Some(details.into());
        self
    }
}
