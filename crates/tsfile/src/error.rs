//! Why a file is not read or written.

use marigram_codec::bytes::ReadError;

/// Why a TsFile could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TsFileError {
    /// The bytes are no TsFile, or one that was never closed.
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
    /// The file uses something that this library does not know; the text names it.
    #[error("{0} is not supported")]
    Unsupported(String),
    /// Rows cannot be written as asked; the text says why.
    #[error("{0}")]
    Invalid(String),
    /// The reader or writer that was given failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// What reading and writing give.
pub type Result<T> = std::result::Result<T, TsFileError>;

/// Damage inside a part of the file; whoever knows where the part stands adds the offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PartError {
    /// The part ends before what it holds does.
    Short,
    /// What is wrong.
    Wrong(&'static str),
    /// What is not known.
    Unsupported(String),
}

impl PartError {
    /// The error of a part that begins at `offset`.
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
