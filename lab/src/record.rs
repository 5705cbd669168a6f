//! The files of a run: the contract between [`crate::run`], which writes them, and
//! [`crate::report`], which reads them.
//!
//! ```text
//! OUT/lab.json                                   Configuration
//! OUT/plans/STUDY.json                           study::Plan
//! OUT/runs/STUDY/SETUP/TARGET/REPEAT/result.json RunResult; written last: a run without it is repeated
//!                                   /operations.parquet  one row a request
//!                                   /resources.parquet   one row a sample
//! ```

use crate::question::Answer;
use crate::study::{Knobs, Scale};
use crate::target::TargetFacts;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The configuration of a series of runs; a later `run` on the same folder must agree with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Configuration {
    /// Version of this form; 1.
    pub format: u32,
    /// Version of the laboratory.
    pub version: String,
    /// Scale of all studies.
    pub scale: Scale,
    /// Seed of all data.
    pub seed: u64,
    /// Repetitions.
    pub repeat: usize,
    /// Studies, in order.
    pub studies: Vec<String>,
    /// Targets, in order.
    pub targets: Vec<String>,
    /// The command line of the first run.
    pub command: String,
    /// When it began, RFC 3339, UTC.
    pub started: String,
    /// The machine.
    pub machine: Machine,
}

/// The machine that client and server share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Model of the processor.
    pub cpu: String,
    /// Cores that may be used.
    pub cores: usize,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Kernel and distribution.
    pub system: String,
    /// Median time of a 4 KiB append with fsync in the folder of the data, microseconds: the least
    /// cost of durability on this machine.
    pub fsync_us: f64,
}

/// One run of one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Study.
    pub study: String,
    /// Setup of it.
    pub setup: String,
    /// Target.
    pub target: String,
    /// Repetition, from 0.
    pub repeat: usize,
    /// The target's description; `None` if it did not start.
    pub facts: Option<TargetFacts>,
    /// When it began, RFC 3339, UTC.
    pub started: String,
    /// How long it took, seconds.
    pub seconds: f64,
    /// What was measured, in order.
    pub steps: Vec<StepResult>,
    /// Why it ended early.
    pub failed: Option<String>,
}

/// What one step measured, or one question or one side of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepResult {
    /// Index of the step in its setup.
    pub step: usize,
    /// The step's knobs, and those that the runner adds: `question`, `side`.
    pub knobs: Knobs,
    /// Figures by name, as documented at [`crate::study::StepAction`].
    pub figures: BTreeMap<String, f64>,
    /// Latencies of requests.
    pub latency: Option<Latency>,
    /// What it cost.
    pub resources: Option<Resources>,
    /// Whether the answers were right.
    pub verdict: Verdict,
    /// Answers to questions that only targets can answer, by instance, to compare them.
    pub answers: Vec<Answer>,
}

/// Whether a step did what it should.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// There was nothing to check.
    #[default]
    Unchecked,
    /// The answers are right.
    Right,
    /// An answer is wrong: the difference.
    Wrong(String),
    /// The target cannot do it: why.
    Cannot(String),
    /// It failed: the error.
    Failed(String),
}

/// Latencies of requests, milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Requests.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// Longest.
    pub max: f64,
    /// Mean of the slowest client.
    pub slowest_client: f64,
}

/// What a step cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Resources {
    /// Wall-clock time, seconds.
    pub seconds: f64,
    /// The server's processes; `None` if the server runs in the client's process.
    pub server: Option<Usage>,
    /// The laboratory's own process.
    pub client: Usage,
    /// Peak page cache of the machine, bytes.
    pub page_cache_bytes: u64,
}

/// What processes used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Processor time, seconds.
    pub cpu_s: f64,
    /// Peak resident memory, bytes.
    pub rss_bytes: u64,
    /// Read from disk, bytes.
    pub read_bytes: u64,
    /// Written to disk, bytes.
    pub write_bytes: u64,
}
