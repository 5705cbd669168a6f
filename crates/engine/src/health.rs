//! Whether writes are accepted, and if not, why.
//!
//! A failed append, fsync or manifest change is final until the engine is reopened, because the
//! content of the disk is unknown. A failed flush (mostly because of a full disk) leaves everything
//! unchanged; writes are accepted again after it has succeeded.

use crate::error::{EngineError, Result};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// Why writes are refused, if they are.
#[derive(Debug, Default)]
pub(crate) struct EngineHealth {
    refusing: AtomicBool,
    reasons: Mutex<HealthReasons>,
}

#[derive(Debug, Default)]
struct HealthReasons {
    last: Option<String>,
    /// By shard.
    flush: BTreeMap<usize, String>,
}

impl EngineHealth {
    /// Returns `ReadOnly` while writes are refused.
    pub(crate) fn check(&self) -> Result<()> {
        match self.reason() {
            Some(reason) => Err(EngineError::ReadOnly(reason)),
            None => Ok(()),
        }
    }

    /// Returns `ReadOnly` while not even changes that free space are possible: then only reopening
    /// helps.
    pub(crate) fn check_lasting(&self) -> Result<()> {
        if self.is_final() {
            self.check()
        } else {
            Ok(())
        }
    }

    /// Why writes are refused, if they are.
    pub(crate) fn reason(&self) -> Option<String> {
        if !self.refusing.load(Ordering::Acquire) {
            return None;
        }
        let reasons = self.reasons.lock();
        reasons
            .last
            .clone()
            .or_else(|| reasons.flush.values().next().cloned())
    }

    /// Whether only reopening helps.
    pub(crate) fn is_final(&self) -> bool {
        self.refusing.load(Ordering::Acquire) && self.reasons.lock().last.is_some()
    }

    /// Refuses writes until the engine is reopened.
    pub(crate) fn fail(&self, reason: &str) {
        tracing::error!(reason, "writes are refused from here on");
        self.reasons
            .lock()
            .last
            .get_or_insert_with(|| reason.to_owned());
        self.refusing.store(true, Ordering::Release);
    }

    /// Refuses writes until the shard's flush succeeds.
    pub(crate) fn flush_failed(&self, shard: usize, reason: &str) {
        let mut reasons = self.reasons.lock();
        if reasons.flush.insert(shard, reason.to_owned()).is_none() {
            tracing::error!(
                shard,
                reason,
                "a flush failed; writes are refused until it succeeds"
            );
        }
        self.refusing.store(true, Ordering::Release);
    }

    /// Reverts [`flush_failed`](Self::flush_failed).
    pub(crate) fn flush_succeeded(&self, shard: usize) {
        if !self.refusing.load(Ordering::Acquire) {
            return;
        }
        let mut reasons = self.reasons.lock();
        reasons.flush.remove(&shard);
        let refusing = reasons.last.is_some() || !reasons.flush.is_empty();
        self.refusing.store(refusing, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_flush_is_forgiven_and_a_failed_log_is_not() {
        let health = EngineHealth::default();
        assert!(health.check().is_ok());
        health.flush_failed(1, "disk full");
        assert_eq!(health.reason().as_deref(), Some("disk full"));
        assert!(health.check_lasting().is_ok());
        health.flush_succeeded(0);
        assert!(health.check().is_err());
        health.flush_succeeded(1);
        assert!(health.check().is_ok());
        health.fail("fsync failed");
        health.flush_failed(1, "disk full");
        health.flush_succeeded(1);
        assert_eq!(health.reason().as_deref(), Some("fsync failed"));
        assert!(health.is_final() && health.check_lasting().is_err());
    }
}
