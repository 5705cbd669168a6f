//! Taking backups.
//!
//! Invariant: what was acknowledged before the call is in the backup; reads and writes go on.

use crate::error::Result;
use async_trait::async_trait;
use std::path::Path;

/// A backup that was taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackupReport {
    /// Its number in its folder, from 1.
    pub number: u64,
    /// The moment that it shows, ns since the Unix epoch.
    pub taken_ns: i64,
    /// Files.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that the folder did not have before.
    pub bytes_new: u64,
    /// Rows in segments.
    pub rows: u64,
    /// Numbers of older backups that were removed.
    pub pruned: Vec<u64>,
    /// What did not go as it should and does not make the backup less whole.
    pub warnings: Vec<String>,
}

/// Takes backups.
#[async_trait]
pub trait Backup: Send + Sync {
    /// Copies the database, as it is at one moment, into a folder of backups on the machine that
    /// serves; keeps the newest `keep` of them (`None`: all).
    ///
    /// # Errors
    /// `Busy` while another backup into the folder runs; otherwise why none was taken. Earlier
    /// backups are untouched.
    async fn backup(&self, folder: &Path, keep: Option<usize>) -> Result<BackupReport>;
}
