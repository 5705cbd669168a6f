//! Taking backups.
//!
//! Invariant: a backup contains everything that was acknowledged before the call; reads and writes
//! continue.

use crate::error::Result;
use async_trait::async_trait;
use std::path::Path;

/// A completed backup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackupReport {
    /// Its number in its folder, from 1.
    pub number: u64,
    /// The moment of its content, ns since the Unix epoch.
    pub taken_ns: i64,
    /// Number of files.
    pub files: usize,
    /// Size of the files, in bytes.
    pub bytes: u64,
    /// Bytes that were not in the folder before.
    pub bytes_new: u64,
    /// Rows in segments.
    pub rows: u64,
    /// Numbers of the older backups that were removed.
    pub pruned: Vec<u64>,
    /// Problems that do not make the backup incomplete.
    pub warnings: Vec<String>,
}

/// Takes backups.
#[async_trait]
pub trait Backup: Send + Sync {
    /// Copies the database, as it is at one moment, into a folder of backups on the server's
    /// machine; keeps the newest `keep` of them (`None`: all).
    ///
    /// # Errors
    /// `Busy` while another backup into the folder runs; otherwise the reason for the failure.
    /// Earlier backups are untouched.
    async fn backup(&self, folder: &Path, keep: Option<usize>) -> Result<BackupReport>;
}
