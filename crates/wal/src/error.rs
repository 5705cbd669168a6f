//! Errors of the log.

use marigram_env::{is_out_of_files, is_out_of_space};
use std::path::PathBuf;

/// Why the log could not be opened, or accepts no more.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WalError {
    /// The file system failed.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// File or directory.
        path: PathBuf,
        /// Its error.
        source: std::io::Error,
    },
    /// There is no space for a record, and no part of it is in the log, now or after a restart. The
    /// log stays usable: there may be space later.
    #[error("{path}: {source}", path = path.display())]
    Full {
        /// File or directory.
        path: PathBuf,
        /// The file system's error.
        source: std::io::Error,
    },
    /// The file system failed, and a record could not be removed: it may or may not be there when
    /// the log is opened again. The log accepts no more.
    #[error("{path}: {source}; whether the change is in the log is known when it is opened again", path = path.display())]
    Uncertain {
        /// File.
        path: PathBuf,
        /// The file system's error.
        source: std::io::Error,
    },
    /// Durable bytes have changed.
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

    /// As [`io`](Self::io), for an operation that does nothing if space or descriptors are short.
    pub(crate) fn refused(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| {
            if is_out_of_space(&source) || is_out_of_files(&source) {
                Self::Full { path, source }
            } else {
                Self::Io { path, source }
            }
        }
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
