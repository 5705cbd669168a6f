//! Why bytes are not an encoded page.

/// Why bytes could not be read as asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// They end before what is read does.
    #[error("it ends early")]
    Short,
    /// They are nothing that can stand here.
    #[error("{0}")]
    Malformed(&'static str),
}

impl ReadError {
    /// What is wrong.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Short => "it ends early",
            Self::Malformed(reason) => reason,
        }
    }
}

/// Why bytes could not be decoded, or values not be encoded as asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The bytes are damaged; the text says how.
    #[error("damaged page: {0}")]
    Damaged(&'static str),
    /// The page claims to contain more than the caller allows.
    #[error("the page claims {claimed} {what}; at most {limit} can be in it")]
    Limit {
        /// "values" or "bytes".
        what: &'static str,
        /// What the page claims.
        claimed: u64,
        /// What the caller allows.
        limit: u64,
    },
    /// This version does not support the encoding or compressor, or not for this type.
    #[error("{0} is not supported for {1}")]
    Unsupported(&'static str, &'static str),
}

impl From<ReadError> for CodecError {
    fn from(error: ReadError) -> Self {
        Self::Damaged(error.reason())
    }
}

/// What reading gives.
pub type Result<T> = std::result::Result<T, CodecError>;
