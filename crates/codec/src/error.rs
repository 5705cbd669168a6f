//! Why bytes are not an encoded page.

/// Why bytes could not be decoded, or values could not be encoded as requested.
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

/// Result of decoding and encoding.
pub type Result<T> = std::result::Result<T, CodecError>;
