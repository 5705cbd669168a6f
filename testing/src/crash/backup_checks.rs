//! What the simulation remembers of a machine's backups.

use crate::oracle::Oracle;
use std::collections::BTreeMap;

/// The expected backups of a machine.
#[derive(Debug, Default)]
pub(super) struct ExpectedBackups {
    /// By number.
    pub moments: BTreeMap<u64, BackupMoment>,
    /// Whether a backup failed in this life.
    pub failed: bool,
    /// Whether moments are deliberately remembered wrongly, so that comparisons must fail.
    pub misremember: bool,
}

/// A backup that was taken.
#[derive(Debug)]
pub(super) struct BackupMoment {
    pub state: Oracle,
    /// Whether it must be listed; otherwise it may or may not have been created or pruned.
    pub is_sure: bool,
}
