//! Why a segment could not be written or read.

use marigram_codec::bytes::{BoundedReader, ReadError};
use std::path::{Path, PathBuf};

/// Why a segment could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SegmentError {
    /// The disk failed.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The disk's error.
        source: std::io::Error,
    },
    /// The bytes are damaged.
    #[error("{path} at byte {offset}: {reason}", path = path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Where the damaged part begins, bytes.
        offset: u64,
        /// What is wrong.
        reason: String,
    },
    /// The caller's mistake: a type that segments cannot store, or rows out of order.
    #[error("{path}: {reason}", path = path.display())]
    Misuse {
        /// The file.
        path: PathBuf,
        /// The mistake.
        reason: String,
    },
}

impl SegmentError {
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        Self::Io {
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn corrupt(path: &Path, offset: u64, reason: impl Into<String>) -> Self {
        Self::Corrupt {
            path: path.to_owned(),
            offset,
            reason: reason.into(),
        }
    }

    pub(crate) fn misuse(path: &Path, reason: impl Into<String>) -> Self {
        Self::Misuse {
            path: path.to_owned(),
            reason: reason.into(),
        }
    }
}

/// Damage in a block; the caller adds the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockDamage(pub(crate) String);

impl From<ReadError> for BlockDamage {
    fn from(error: ReadError) -> Self {
        Self(error.reason().to_owned())
    }
}

impl From<&str> for BlockDamage {
    fn from(reason: &str) -> Self {
        Self(reason.to_owned())
    }
}

impl BlockDamage {
    pub(crate) fn in_file(self, path: &Path, offset: u64) -> SegmentError {
        SegmentError::corrupt(path, offset, self.0)
    }
}

/// Reads a block from front to back.
pub(crate) type IndexReader<'a> = BoundedReader<'a, BlockDamage>;
