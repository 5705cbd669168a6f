//! Why an Arrow message from a client cannot be read.

/// Why an Arrow message cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArrowMessageError {
    /// It is damaged, or comes at the wrong place.
    #[error("the Arrow message cannot be read: {0}")]
    Malformed(&'static str),
    /// Arrow refuses its content.
    #[error("the Arrow message cannot be read: {0}")]
    Arrow(String),
    /// A column has a type that no column of a table has.
    #[error("column '{column}' has the Arrow type {kind}, which no column of a table can have")]
    Type {
        /// The column.
        column: String,
        /// Its type.
        kind: &'static str,
    },
    /// Its body is compressed.
    #[error("the Arrow message is compressed: send it without compression")]
    Compressed,
    /// There is more of something than the limit allows.
    #[error("the Arrow stream has more than {limit} {what}")]
    TooLarge {
        /// What.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
}
