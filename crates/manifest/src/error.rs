//! What can go wrong with a manifest or a catalog.

use std::path::PathBuf;

/// Errors of manifest and catalog.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// The file system failed.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// There is no space for the change. No part of it is on disk, and a later one may succeed.
    #[error("{path}: {source}", path = path.display())]
    Full {
        /// The file.
        path: PathBuf,
        /// The disk's error.
        source: std::io::Error,
    },
    /// The file is damaged.
    #[error("{path} at byte {offset}: {reason}; the file is damaged, restore it from a backup", path = path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// First byte of the record that is wrong.
        offset: u64,
        /// What is wrong there.
        reason: String,
    },
    /// The file was written by a newer Marigram.
    #[error("{path} has format version {found}; this Marigram reads up to {supported}: use a newer one", path = path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The version it has.
        found: u32,
        /// The newest version that is understood.
        supported: u32,
    },
    /// The edit contradicts the state; nothing was written and later edits are not affected.
    #[error("{path}: the change was refused: {reason}", path = path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// The contradiction.
        reason: String,
    },
    /// An earlier commit failed, so it is unknown what the file holds until it is opened again.
    #[error("{path}: nothing more is written after an earlier error: {reason}", path = path.display())]
    Poisoned {
        /// The file.
        path: PathBuf,
        /// The earlier error.
        reason: String,
    },
}
