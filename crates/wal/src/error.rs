//! Errors of the log.

use std::path::PathBuf;

/// Why the log could not be opened, or took no more.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WalError {
    /// The file system refused.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// File or directory.
        path: PathBuf,
        /// What it answered.
        source: std::io::Error,
    },
    /// Bytes that once were durable are not what they were.
    #[error("{path} at byte {offset}: {reason}", path = path.display())]
    Corrupt {
        /// File.
        path: PathBuf,
        /// Where the damaged record or header begins, bytes.
        offset: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// Written by a later Marigram.
    #[error("{path} has format version {found}; this Marigram reads up to {supported}", path = path.display())]
    Version {
        /// File.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The highest version that can be read.
        supported: u32,
    },
}

impl WalError {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }

    pub(crate) fn corrupt(
        path: impl Into<PathBuf>,
        offset: u64,
        reason: impl Into<String>,
    ) -> Self {
        Self::Corrupt {
            path: path.into(),
            offset,
            reason: reason.into(),
        }
    }
}
