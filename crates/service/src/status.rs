//! Telling how the database is, for health checks and monitoring.
//!
//! Invariant: neither call waits for disk or for a lock that a write or a query holds for long.

use async_trait::async_trait;

/// State for health and metrics.
#[async_trait]
pub trait Status: Send + Sync {
    /// Whether reads and writes work.
    ///
    /// # Errors
    /// Why the database is read-only or failed.
    fn health(&self) -> Result<(), String>;

    /// What an operator should know of though reads and writes work: a sentence each.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// What is measured now.
    fn metrics(&self) -> Vec<Metric>;

    /// Takes `bytes` of the database's memory for a request (its body, the rows parsed from it);
    /// says whether they were there. A refusal makes the database look for memory to give up, so
    /// that it pays to ask again a little later. To be called from anywhere: it does not wait.
    fn take_memory(&self, bytes: usize) -> bool {
        let _ = bytes;
        true
    }

    /// Gives back `bytes` that were taken.
    fn give_memory(&self, bytes: usize) {
        let _ = bytes;
    }

    /// The most bytes that all requests together can be given while nothing else is asked for. It
    /// changes with what the database holds for good.
    fn memory_max(&self) -> usize {
        usize::MAX
    }
}

/// One measured value.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Name as Prometheus writes it, with its unit, without `_total`.
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
