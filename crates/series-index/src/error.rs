//! Errors of the series index.

use std::path::PathBuf;

/// Errors of the series index and its log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SeriesError {
    /// The file system returned an error.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error.
        source: std::io::Error,
    },
    /// The log's content is damaged.
    #[error("{path} at byte {offset}: {reason}; the file is damaged, restore it from a backup", path = path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// First byte of the damaged record.
        offset: u64,
        /// What is wrong there.
        reason: String,
    },
    /// The log was written by a newer Marigram.
    #[error("{path} has format version {found}; this Marigram reads up to {supported}: use a newer one", path = path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The version it has.
        found: u32,
        /// The newest version that is understood.
        supported: u32,
    },
    /// An earlier append failed, so the content of the log is unknown.
    #[error("{path}: nothing more is written after an earlier error: {reason}", path = path.display())]
    Poisoned {
        /// The file.
        path: PathBuf,
        /// The earlier error.
        reason: String,
    },
    /// No id is left.
    #[error("a shard holds at most 2^31 series; start with more shards")]
    Full,
    /// The key is not a valid tag key.
    #[error(transparent)]
    Key(#[from] marigram_model::TagKeyError),
    /// A series cannot be added, because it is out of order or contradicts what is known of its id
    /// or key.
    #[error("series {id} cannot be added: {reason}")]
    Conflict {
        /// The id.
        id: u32,
        /// What it contradicts.
        reason: String,
    },
}
