//! What is remembered of the backups of a simulated machine.

use crate::oracle::Oracle;
use std::collections::BTreeMap;

/// What the backups of a machine must be.
#[derive(Debug, Default)]
pub(super) struct ExpectedBackups {
    /// By number.
    pub moments: BTreeMap<u64, BackupMoment>,
    /// Whether a backup failed in this life.
    pub failed: bool,
    /// Whether moments are remembered wrongly, so that comparisons must fail.
    pub misremember: bool,
}

/// A backup.
#[derive(Debug)]
pub(super) struct BackupMoment {
    pub state: Oracle,
    /// Whether it must be listed: otherwise it may have come to be or not, or be pruned or not.
    pub is_sure: bool,
}
