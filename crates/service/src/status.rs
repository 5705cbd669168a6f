//! Reports the state of the database, for health checks and monitoring.
//!
//! Invariant: no call waits for the disk, or for a lock that a write or a query holds for long.

use async_trait::async_trait;

/// The state of the database, for health checks and metrics.
#[async_trait]
pub trait Status: Send + Sync {
    /// Whether reads and writes work.
    ///
    /// # Errors
    /// Why the database is read-only or failed.
    fn health(&self) -> Result<(), String>;

    /// What an operator should know although reads and writes work, one sentence each.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// The current metrics.
    fn metrics(&self) -> Vec<Metric>;

    /// Takes `bytes` of the database's memory for a request (its body, and the rows parsed from
    /// it); returns whether they were granted. After a refusal, the database frees memory if it
    /// can, so a retry a little later may succeed. It does not wait, so it may be called from
    /// anywhere.
    fn take_memory(&self, bytes: usize) -> bool {
        let _ = bytes;
        true
    }

    /// Returns `bytes` that were taken.
    fn give_memory(&self, bytes: usize) {
        let _ = bytes;
    }

    /// The most bytes that all requests together can get while nothing else needs memory. It
    /// changes with the memory that the database holds permanently.
    fn memory_max(&self) -> usize {
        usize::MAX
    }
}

/// One measured value.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Name in Prometheus' notation, with its unit, without `_total`.
    pub name: &'static str,
    /// What it measures, in a sentence.
    pub help: &'static str,
    /// Whether it only grows (a counter); otherwise it is a gauge.
    pub counter: bool,
    /// Labels and their values; equal names differ in these.
    pub labels: Vec<(&'static str, String)>,
    /// The value.
    pub value: f64,
}
