//! What a run costs: processor, memory, page cache and disk of server and client apart, and the
//! latencies of requests.

mod latency;
mod machine;

pub use latency::Latencies;
pub use machine::machine;

use crate::record::{Resources, Usage};
use anyhow::Result;
use std::time::Duration;

/// A sample of the counters: processor time and bytes since the monitor began, memory as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Since the monitor began, seconds.
    pub at_s: f64,
    /// The server's processes and their children; `None` when the server runs in this process.
    pub server: Option<Usage>,
    /// This process.
    pub client: Usage,
    /// Page cache of the machine, bytes.
    pub page_cache_bytes: u64,
}

/// A moment that [`Monitor::since`] counts from.
#[derive(Clone, Copy, Debug)]
pub struct Mark(#[allow(dead_code)] Sample);

/// Samples in the background until it is finished.
pub struct Monitor {}

impl Monitor {
    /// Begins to sample the processes `server` and this one, once `every`.
    pub fn start(_server: Vec<u32>, _every: Duration) -> Result<Self> {
        Ok(Self {})
    }

    /// The server has other processes now, after a restart.
    pub fn follow(&self, _server: Vec<u32>) {}

    /// This moment.
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark(Sample::default())
    }

    /// What was used since `mark`.
    #[must_use]
    pub fn since(&self, _mark: &Mark) -> Resources {
        Resources::default()
    }

    /// Ends, and gives all samples.
    #[must_use]
    pub fn finish(self) -> Vec<Sample> {
        Vec::new()
    }
}
