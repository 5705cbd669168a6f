//! The errors of the engine, as one type.
//!
//! Errors of the formats keep their substance: I/O with its path, corruption with path and offset.
//! Upper layers map [`EngineError`] to protocol answers.

use marigram_env::{is_out_of_files, is_out_of_space};
use marigram_manifest::ManifestError;
use marigram_model::suggested;
use marigram_model::{BatchError, SchemaError};
use marigram_segment::SegmentError;
use marigram_series_index::SeriesError;
use marigram_wal::WalError;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// When to retry after a shortage of descriptors or disk space.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Why the engine refused or failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// No database, table or column has this name.
    #[error("{kind} '{name}' does not exist{}", nearest.as_ref().map(|n| format!("; did you mean {}?", suggested(n))).unwrap_or_default())]
    NotFound {
        /// "database", "table", "tag" or "field".
        kind: &'static str,
        /// The name asked for.
        name: String,
        /// An existing name that is similar.
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
    /// Something else would break: `by` needs it unchanged.
    #[error("{by} needs {what}; drop that first")]
    Needed {
        /// The object to change or drop, with its kind.
        what: String,
        /// The view that needs it, with its kind.
        by: String,
    },
    /// The request is invalid.
    #[error("{0}")]
    Invalid(String),
    /// An invalid name, too many columns, or a setting out of its range.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// There is currently no memory below the ceiling, no disk space or no descriptor; the same
    /// request may succeed later. Nothing was stored.
    #[error("{reason}; try again in {} ms", retry_after.as_millis())]
    Busy {
        /// The resource that is short.
        reason: String,
        /// When to retry.
        retry_after: Duration,
    },
    /// Writes are refused until the cause is gone; reads continue.
    #[error("writes are refused: {0}")]
    ReadOnly(String),
    /// Bytes on disk are not what was written.
    #[error("{path} at byte {offset}: {reason}", path = path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The byte offset.
        offset: u64,
        /// What is wrong.
        reason: String,
    },
    /// The operating system returned an error.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error.
        source: std::io::Error,
    },
    /// A change could neither be made durable nor be rolled back; reopening the engine shows
    /// whether it was made. Until then, it is not visible.
    #[error("{0}")]
    Uncertain(String),
    /// The engine was closed.
    #[error("the database is closed")]
    Closed,
}

/// Result with an [`EngineError`].
pub type Result<T, E = EngineError> = std::result::Result<T, E>;

impl EngineError {
    /// An I/O error at `path`.
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        Self::from_io(path.to_owned(), source)
    }

    /// `Busy` if descriptors are short, which is temporary; otherwise an I/O error.
    fn from_io(path: PathBuf, source: std::io::Error) -> Self {
        if is_out_of_files(&source) {
            let reason = format!(
                "{}: {source}: this process may open no more files; raise its limit (ulimit -n, \
                 LimitNOFILE=) or lower connections_max or open_files",
                path.display()
            );
            let retry_after = RETRY_AFTER;
            return Self::Busy {
                reason,
                retry_after,
            };
        }
        let is_segment = path.extension().is_some_and(|extension| extension == "seg");
        if is_segment && source.kind() == std::io::ErrorKind::NotFound {
            let reason = "the file is missing; put it back, or restore a backup (marigram restore \
                          BACKUPS NEW_DIR)"
                .to_owned();
            return Self::Corrupt {
                path,
                offset: 0,
                reason,
            };
        }
        Self::Io { path, source }
    }

    /// Whether the disk was full.
    pub(crate) fn is_of_full_disk(&self) -> bool {
        matches!(self, Self::Busy { .. })
            || matches!(self, Self::Io { source, .. } if is_out_of_space(source))
    }

    /// `Busy` if the disk is full, which is temporary; otherwise an I/O error.
    pub(crate) fn from_disk_full(path: PathBuf, source: std::io::Error) -> Self {
        if !is_out_of_space(&source) {
            return Self::from_io(path, source);
        }
        Self::Busy {
            reason: format!(
                "{}: {source}: nothing was stored; make room on the disk",
                path.display()
            ),
            retry_after: RETRY_AFTER,
        }
    }

    /// A copy of the error, for one that is stored and returned to every caller. An I/O error keeps
    /// its kind and text.
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
            Self::Needed { what, by } => Self::Needed {
                what: what.clone(),
                by: by.clone(),
            },
            Self::Invalid(reason) => Self::Invalid(reason.clone()),
            Self::Schema(error) => Self::Schema(error.clone()),
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
            Self::Uncertain(reason) => Self::Uncertain(reason.clone()),
            Self::Closed => Self::Closed,
        }
    }
}

impl From<BatchError> for EngineError {
    fn from(error: BatchError) -> Self {
        Self::Invalid(error.to_string())
    }
}

/// Errors of the formats each have the same two variants; `$own` are those that a format has besides,
/// and variants added later keep their text.
macro_rules! from_format_error {
    ($error:ident $(, $own:pat => $made:expr)*) => {
        impl From<$error> for EngineError {
            fn from(error: $error) -> Self {
                match error {
                    $error::Io { path, source } => Self::from_io(path, source),
                    $error::Corrupt {
                        path,
                        offset,
                        reason,
                    } => Self::Corrupt {
                        path,
                        offset,
                        reason,
                    },
                    $($own => $made,)*
                    other => Self::Invalid(other.to_string()),
                }
            }
        }
    };
}

from_format_error!(SegmentError);
from_format_error!(SeriesError);
from_format_error!(
    WalError,
    WalError::Full { path, source } => Self::from_disk_full(path, source),
    uncertain @ WalError::Uncertain { .. } => Self::Uncertain(uncertain.to_string())
);
from_format_error!(
    ManifestError,
    ManifestError::Full { path, source } => Self::from_disk_full(path, source),
    poisoned @ ManifestError::Poisoned { .. } => Self::ReadOnly(poisoned.to_string())
);
