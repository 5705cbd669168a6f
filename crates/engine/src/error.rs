//! What can go wrong in the engine, as one error type.
//!
//! The formats' errors come up unchanged in substance: I/O with its path, corruption with path and
//! offset. [`EngineError`] is what upper layers map onto protocol answers.

use marigram_manifest::ManifestError;
use marigram_model::{BatchError, SchemaError};
use marigram_segment::SegmentError;
use marigram_series_index::SeriesError;
use marigram_wal::WalError;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why the engine did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// No database, table or column has this name.
    #[error("{kind} '{name}' does not exist{}", nearest.as_ref().map(|n| format!("; did you mean '{n}'?")).unwrap_or_default())]
    NotFound {
        /// "database", "table", "tag" or "field".
        kind: &'static str,
        /// The name asked for.
        name: String,
        /// A name that exists and is like the one asked for.
        nearest: Option<String>,
    },
    /// The name is taken.
    #[error("{kind} '{name}' exists already")]
    AlreadyExists {
        /// "database", "table" or "column".
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// The request makes no sense as it stands.
    #[error("{0}")]
    Invalid(String),
    /// No memory below the ceiling now; the same request may succeed later. Nothing was stored.
    #[error("{reason}; try again in {} ms", retry_after.as_millis())]
    Busy {
        /// What is short.
        reason: String,
        /// When to try again.
        retry_after: Duration,
    },
    /// Writes are refused until the cause is gone; reads go on.
    #[error("writes are refused: {0}")]
    ReadOnly(String),
    /// Bytes on disk are not what was written.
    #[error("{path} at byte {offset}: {reason}", path = path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Where in it.
        offset: u64,
        /// What is wrong.
        reason: String,
    },
    /// The operating system refused.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The refusal.
        source: std::io::Error,
    },
    /// The engine was closed.
    #[error("the database is closed")]
    Closed,
}

/// Result with an [`EngineError`].
pub type Result<T, E = EngineError> = std::result::Result<T, E>;

impl EngineError {
    /// An I/O error at `path`.
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        Self::Io {
            path: path.to_owned(),
            source,
        }
    }

    /// The same error again, for one that is kept and given to everybody who asks. An I/O error
    /// keeps its kind and text.
    pub(crate) fn again(&self) -> Self {
        match self {
            Self::NotFound {
                kind,
                name,
                nearest,
            } => Self::NotFound {
                kind,
                name: name.clone(),
                nearest: nearest.clone(),
            },
            Self::AlreadyExists { kind, name } => Self::AlreadyExists {
                kind,
                name: name.clone(),
            },
            Self::Invalid(reason) => Self::Invalid(reason.clone()),
            Self::Busy {
                reason,
                retry_after,
            } => Self::Busy {
                reason: reason.clone(),
                retry_after: *retry_after,
            },
            Self::ReadOnly(reason) => Self::ReadOnly(reason.clone()),
            Self::Corrupt {
                path,
                offset,
                reason,
            } => Self::Corrupt {
                path: path.clone(),
                offset: *offset,
                reason: reason.clone(),
            },
            Self::Io { path, source } => Self::Io {
                path: path.clone(),
                source: std::io::Error::new(source.kind(), source.to_string()),
            },
            Self::Closed => Self::Closed,
        }
    }
}

impl From<SchemaError> for EngineError {
    fn from(error: SchemaError) -> Self {
        Self::Invalid(error.to_string())
    }
}

impl From<BatchError> for EngineError {
    fn from(error: BatchError) -> Self {
        Self::Invalid(error.to_string())
    }
}

/// Formats' errors have the same two variants each; what they may add later keeps its text.
macro_rules! from_format_error {
    ($error:ident) => {
        impl From<$error> for EngineError {
            fn from(error: $error) -> Self {
                match error {
                    $error::Io { path, source } => Self::Io { path, source },
                    $error::Corrupt {
                        path,
                        offset,
                        reason,
                    } => Self::Corrupt {
                        path,
                        offset,
                        reason,
                    },
                    other => Self::Invalid(other.to_string()),
                }
            }
        }
    };
}

from_format_error!(SegmentError);
from_format_error!(WalError);
from_format_error!(SeriesError);

impl From<ManifestError> for EngineError {
    fn from(error: ManifestError) -> Self {
        match error {
            ManifestError::Io { path, source } => Self::Io { path, source },
            ManifestError::Corrupt {
                path,
                offset,
                reason,
            } => Self::Corrupt {
                path,
                offset,
                reason,
            },
            ManifestError::Poisoned { .. } => Self::ReadOnly(error.to_string()),
            other => Self::Invalid(other.to_string()),
        }
    }
}
