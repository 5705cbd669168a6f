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

    /// What is measured now.
    fn metrics(&self) -> Vec<Metric>;
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
