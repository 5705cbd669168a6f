//! Latencies of requests, in a histogram of bounded size.

use crate::record::Latency;
use std::time::Duration;

/// Latencies of the requests of one client, or of several merged.
#[derive(Clone, Debug, Default)]
pub struct Latencies {}

impl Latencies {
    /// Counts a request.
    pub fn record(&mut self, _latency: Duration) {}

    /// The summary over all `clients`.
    #[must_use]
    pub fn summary(_clients: &[Self]) -> Latency {
        Latency::default()
    }
}
