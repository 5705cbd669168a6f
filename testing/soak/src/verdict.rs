//! The results of a soak test, and which of them are faults.

use crate::client::SoakOutcome;
use crate::sample::ServerSample;
use std::fmt;
use std::process::ExitStatus;
use std::time::Duration;

/// Most error texts to keep of each kind.
const ERRORS_KEPT: usize = 5;

/// Outcomes of the requests of one kind.
#[derive(Clone, Debug, Default)]
pub struct RequestTally {
    /// The kind.
    pub name: &'static str,
    /// Answered.
    pub done: u64,
    /// The client had to retry later, or there was not enough memory.
    pub refused: u64,
    /// Anything else.
    pub failed: u64,
    /// The longest duration of one.
    pub slowest: Duration,
    /// Some of the failures, in the server's words.
    pub errors: Vec<String>,
    /// Some of the refusals.
    pub refusals: Vec<String>,
}

impl RequestTally {
    /// Counts one request.
    pub fn note(&mut self, outcome: SoakOutcome, took: Duration, words: &str) {
        let (count, kept) = match outcome {
            SoakOutcome::Done => (&mut self.done, None),
            SoakOutcome::Refused => (&mut self.refused, Some(&mut self.refusals)),
            SoakOutcome::Failed => (&mut self.failed, Some(&mut self.errors)),
        };
        *count += 1;
        if let Some(kept) = kept.filter(|kept| kept.len() < ERRORS_KEPT) {
            kept.push(words.chars().take(300).collect());
        }
        self.slowest = self.slowest.max(took);
    }
}

/// The results of a soak test.
#[derive(Debug)]
pub struct SoakVerdict {
    /// The server's `memory_limit`.
    pub limit_bytes: usize,
    /// Whether the server ran in a control group of 1.1 × the limit.
    pub in_group: bool,
    /// Processes that the kernel killed in the group.
    pub oom_kills: u64,
    /// How the server ended, if it did during the load.
    pub ended: Option<ExitStatus>,
    /// How long the load lasted.
    pub duration: Duration,
    /// How long after the load the server answered one request of each kind.
    pub idle_after: Option<Duration>,
    /// Rows of all requests.
    pub rows_sent: u64,
    /// Rows of the requests that succeeded.
    pub rows_acknowledged: u64,
    /// Rows of requests that were neither acknowledged nor refused, for instance because their
    /// connection broke.
    pub rows_uncertain: u64,
    /// Rows found at the end; `None` if the query was not answered.
    pub rows_found: Option<u64>,
    /// Outcomes of the requests, by kind.
    pub tallies: Vec<RequestTally>,
    /// One sample per second.
    pub samples: Vec<ServerSample>,
}

impl SoakVerdict {
    /// Peak resident memory, bytes.
    pub fn resident_max(&self) -> usize {
        let resident = self.samples.iter().map(|sample| sample.resident_bytes);
        resident.max().unwrap_or(0)
    }

    /// Whether every acknowledged row was found, and no refused one.
    pub fn are_rows_right(&self) -> bool {
        let possible = self.rows_acknowledged..=self.rows_acknowledged + self.rows_uncertain;
        self.rows_found
            .is_some_and(|found| possible.contains(&found))
    }

    /// Violations, in words; empty if all is well.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut must = |holds: bool, fault: String| {
            if !holds {
                faults.push(fault);
            }
        };
        must(self.oom_kills == 0, format!("{} OOM kills", self.oom_kills));
        if let Some(status) = self.ended {
            must(false, format!("the server ended with {status}"));
        }
        must(!self.samples.is_empty(), "nothing was measured".to_owned());
        must(
            self.resident_max() <= self.limit_bytes / 100 * 105,
            format!(
                "{} bytes were resident, over 1.05 × the limit of {}",
                self.resident_max(),
                self.limit_bytes
            ),
        );
        must(
            self.idle_after.is_some(),
            "the idle server still refused after a minute".to_owned(),
        );
        must(
            self.are_rows_right(),
            format!(
                "{} rows were acknowledged, {} uncertain, and {:?} found",
                self.rows_acknowledged, self.rows_uncertain, self.rows_found
            ),
        );
        for tally in &self.tallies {
            must(
                tally.done > 0 || tally.name == "runaway",
                format!("no request '{}' was answered", tally.name),
            );
            must(
                tally.failed == 0,
                format!(
                    "{}: {} failed, as {:?}",
                    tally.name, tally.failed, tally.errors
                ),
            );
        }
        faults
    }
}

impl fmt::Display for SoakVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: usize| bytes as f64 / f64::from(1 << 20);
        writeln!(
            f,
            "limit {:.0} MiB, {} s, {}; OOM kills: {}",
            mib(self.limit_bytes),
            self.duration.as_secs(),
            if self.in_group {
                "in a control group of 1.1 × the limit"
            } else {
                "no control group could be created"
            },
            self.oom_kills
        )?;
        let of = |get: fn(&ServerSample) -> usize| self.samples.iter().map(get).max().unwrap_or(0);
        writeln!(
            f,
            "resident at most {:.1} MiB, {:.3} of the limit (anonymous {:.1}, files {:.1}); group at \
             most {:.1} MiB",
            mib(self.resident_max()),
            self.resident_max() as f64 / self.limit_bytes as f64,
            mib(of(|s| s.anonymous_bytes)),
            mib(of(|s| s.file_bytes)),
            mib(of(|s| s.group_bytes)),
        )?;
        writeln!(
            f,
            "at most {} descriptors, {} threads, {} files; {:.1} MiB on disk at the end",
            of(|s| s.descriptors),
            of(|s| s.threads),
            of(|s| s.files),
            self.samples
                .last()
                .map_or(0.0, |s| mib(s.disk_bytes as usize))
        )?;
        match self.idle_after {
            Some(after) => writeln!(f, "after the load everything was answered in {after:.1?}")?,
            None => writeln!(f, "after the load it continued to refuse")?,
        }
        writeln!(
            f,
            "rows: {} sent, {} acknowledged, {:?} found",
            self.rows_sent, self.rows_acknowledged, self.rows_found
        )?;
        for tally in &self.tallies {
            writeln!(
                f,
                "{:>12}: {} answered, {} refused, {} failed; slowest {:.1?}",
                tally.name, tally.done, tally.refused, tally.failed, tally.slowest
            )?;
        }
        for tally in &self.tallies {
            for words in &tally.refusals {
                writeln!(f, "refused {}: {}", tally.name, words.trim())?;
            }
        }
        for fault in self.faults() {
            writeln!(f, "FAULT: {fault}")?;
        }
        Ok(())
    }
}
