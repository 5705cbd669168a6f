//! Why a file could not be read or written.

use marigram_codec::bytes::ReadError;

/// Why a TsFile could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TsFileError {
    /// The bytes are not a TsFile, or one that was never closed.
    #[error("it is not a whole TsFile: {0}")]
    NotTsFile(&'static str),
    /// The bytes are damaged.
    #[error("damaged at offset {offset}: {what}")]
    Damaged {
        /// Offset in the file of the part that is damaged.
        offset: u64,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The file uses a feature that this library does not support; the text names it.
    #[error("{0} is not supported")]
    Unsupported(String),
    /// Rows cannot be written as asked; the text says why.
    #[error("{0}")]
    Invalid(String),
    /// The given reader or writer failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Result of reading and writing.
pub type Result<T> = std::result::Result<T, TsFileError>;

/// Damage inside a part of the file; the caller that knows the part's position adds the offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PartError {
    /// The part ends too early.
    Short,
    /// What is wrong.
    Wrong(&'static str),
    /// An unsupported feature.
    Unsupported(String),
}

impl PartError {
    /// The error for a part that begins at `offset`.
    pub(crate) fn with_offset(self, offset: u64) -> TsFileError {
        let what = match self {
            Self::Short => "it ends early",
            Self::Wrong(what) => what,
            Self::Unsupported(what) => return TsFileError::Unsupported(what),
        };
        TsFileError::Damaged { offset, what }
    }
}

impl From<ReadError> for PartError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Short => Self::Short,
            ReadError::Malformed(what) => Self::Wrong(what),
        }
    }
}

/// What reading a part gives.
pub(crate) type PartResult<T> = std::result::Result<T, PartError>;
