//! One target in one setup, from start to end: the state that the steps share.

use super::client::Tally;
use super::expected::Expected;
use super::samples::{OPERATIONS_MAX, Operations};
use crate::data::{Source, Table};
use crate::expect::WrittenRows;
use crate::monitor::{Latencies, Monitor};
use crate::record::{Resources, StepResult, Verdict};
use crate::study::{AskStep, Knobs, Setup, StepAction};
use crate::target::{Session, Target};
use anyhow::{Context, Result, ensure};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// A target at work.
pub(super) struct RunningTarget<'a> {
    pub(super) source: &'a dyn Source,
    pub(super) setup: &'a Setup,
    /// The target's own folder.
    pub(super) dir: &'a Path,
    pub(super) target: Box<dyn Target>,
    pub(super) monitor: Monitor,
    pub(super) expected: &'a mut Expected,
    pub(super) operations: Operations,
    /// When the target had started: samples count from here.
    pub(super) epoch: Instant,
    /// Set when the user wants everything to end.
    pub(super) stop: &'a AtomicBool,
    pub(super) round_bytes: usize,
    pub(super) seed: u64,
    /// What was measured.
    pub(super) steps: &'a mut Vec<StepResult>,
    /// Failures that did not end this run.
    pub(super) failures: Vec<String>,
    /// By suffix: the tables that were created, and what was written into them.
    pub(super) tables: BTreeMap<String, Arc<[Table]>>,
    pub(super) written: BTreeMap<String, WrittenRows>,
    /// Acknowledged, over all suffixes.
    pub(super) rows: u64,
    pub(super) points: u64,
    /// Resident memory of the server at the first step that observed it.
    pub(super) rss_first_bytes: Option<u64>,
}

/// The identity of a step.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    pub(super) index: usize,
    pub(super) knobs: &'a Knobs,
}

impl At<'_> {
    /// A result of this step, with one more knob if there is one.
    pub(super) fn result(&self, knob: Option<(&str, &str)>) -> StepResult {
        let mut knobs = self.knobs.clone();
        knobs.extend(knob.map(|(name, value)| (name.to_owned(), value.to_owned())));
        StepResult {
            step: self.index,
            knobs,
            ..StepResult::default()
        }
    }
}

impl RunningTarget<'_> {
    /// Fails after the user wanted everything to end.
    pub(super) fn go_on(&self) -> Result<()> {
        ensure!(!self.stop.load(Ordering::Relaxed), "interrupted");
        Ok(())
    }

    /// The tables with `suffix`; created if they do not exist.
    pub(super) fn make_tables(&mut self, suffix: &str) -> Result<Arc<[Table]>> {
        if let Some(tables) = self.tables.get(suffix) {
            return Ok(Arc::clone(tables));
        }
        let tables = self.source.tables().iter();
        let tables: Arc<[Table]> = tables.map(|table| table.suffixed(suffix)).collect();
        self.target.create(&tables).context("making tables")?;
        self.tables.insert(suffix.to_owned(), Arc::clone(&tables));
        Ok(tables)
    }

    /// The tables with `suffix`, which an earlier step has written.
    pub(super) fn tables(&self, suffix: &str) -> Result<Arc<[Table]>> {
        let tables = self.tables.get(suffix).cloned();
        tables.with_context(|| format!("no step before this one wrote tables with {suffix:?}"))
    }

    /// All tables that were created.
    pub(super) fn all_tables(&self) -> Vec<Table> {
        let tables = self.tables.values();
        tables.flat_map(|tables| tables.iter().cloned()).collect()
    }

    /// Connections for `clients` clients.
    pub(super) fn connect(
        &self,
        tables: &Arc<[Table]>,
        clients: usize,
    ) -> Result<Vec<Box<dyn Session>>> {
        ensure!(clients > 0, "a step without clients");
        (0..clients)
            .map(|_| self.target.connect(tables).context("connecting"))
            .collect()
    }

    /// A tally for client `client` of `clients`. All tallies of a run together store a bounded
    /// number of requests.
    pub(super) fn tally(&self, client: usize, clients: usize) -> Tally {
        let names = |ask: &AskStep| {
            let names = ask.questions.iter().map(|question| &question.name);
            names.collect::<HashSet<_>>().len()
        };
        let parts = self.setup.steps.iter().map(|step| match &step.act {
            StepAction::Ask(ask) | StepAction::Cold(ask) => names(ask),
            StepAction::Mixed { .. } => 2,
            _ => 1,
        });
        let samples_max = OPERATIONS_MAX / parts.sum::<usize>().max(1) / clients.max(1);
        Tally::new(client, self.epoch, samples_max)
    }

    /// Settle: flush and merge.
    pub(super) fn settle(&mut self, at: At<'_>) -> Result<()> {
        let tables = self.all_tables();
        self.wait_for(at, "settle_s", |target| target.settle(&tables))
    }

    /// Flush, without merging.
    pub(super) fn flush(&mut self, at: At<'_>) -> Result<()> {
        self.wait_for(at, "flush_s", |target| target.flush())
    }

    fn wait_for(
        &mut self,
        at: At<'_>,
        figure: &str,
        work: impl FnOnce(&dyn Target) -> Result<()>,
    ) -> Result<()> {
        let mut result = at.result(None);
        let (mark, start) = (self.monitor.mark(), Instant::now());
        work(&*self.target)?;
        put(&mut result, figure, start.elapsed().as_secs_f64());
        result.resources = Some(self.monitor.since(&mark));
        self.steps.push(result);
        Ok(())
    }

    /// Size: bytes on disk per acknowledged row and point. Rows that were sent twice count twice,
    /// as in the rate of writing.
    pub(super) fn size(&mut self, at: At<'_>) -> Result<()> {
        let mut result = at.result(None);
        let bytes = self.target.disk_bytes()? as f64;
        if bytes == 0.0 && self.rows > 0 {
            result.verdict = Verdict::Cannot("it keeps nothing on disk".to_owned());
        } else {
            put(&mut result, "disk_bytes", bytes);
            put(&mut result, "bytes_per_row", bytes / self.rows as f64);
            put(&mut result, "bytes_per_point", bytes / self.points as f64);
        }
        self.steps.push(result);
        Ok(())
    }

    /// Restart: kill and start.
    pub(super) fn restart(&mut self, at: At<'_>) -> Result<()> {
        let mut result = at.result(None);
        let tables = self.all_tables();
        match self.target.restart(&tables)? {
            Some(time) => {
                put(&mut result, "restart_ms", time.as_secs_f64() * 1e3);
                self.monitor.follow(&self.target.processes());
            }
            None => {
                let why = "it is no process of the laboratory's";
                result.verdict = Verdict::Cannot(why.to_owned());
            }
        }
        self.steps.push(result);
        Ok(())
    }

    /// Observe: the target's memory and metrics, next to the figures that the study knows.
    pub(super) fn observe(&mut self, at: At<'_>, known: &BTreeMap<String, f64>) -> Result<()> {
        let mut result = at.result(None);
        let told = self.target.tell().context("what the target tells")?;
        let held = self.monitor.resident();
        if told.is_empty() && held.is_none() {
            let why = "it tells nothing about itself, and is no process of its own";
            result.verdict = Verdict::Cannot(why.to_owned());
        } else {
            for (name, value) in told.iter().chain(known) {
                put(&mut result, name, *value);
            }
        }
        if let Some(held) = held {
            let first = *self.rss_first_bytes.get_or_insert(held.now_bytes);
            put(&mut result, "rss_bytes", held.now_bytes as f64);
            put(&mut result, "rss_peak_bytes", held.peak_bytes as f64);
            let grown = held.now_bytes as f64 - first as f64;
            put(&mut result, "rss_grown_bytes", grown);
        }
        self.steps.push(result);
        Ok(())
    }
}

/// Adds a figure, unless it is not finite (a rate over nothing).
pub(super) fn put(result: &mut StepResult, name: &str, value: f64) {
    if value.is_finite() {
        result.figures.insert(name.to_owned(), value);
    }
}

/// Figures of questions that took `seconds` altogether.
pub(super) fn put_asked(result: &mut StepResult, clients: &[Latencies], seconds: f64) {
    let latency = Latencies::summary(clients);
    result.latency = Some(latency);
    put(result, "asked_per_s", latency.count as f64 / seconds);
    if latency.count > 0 {
        put(result, "latency_ms", latency.p50);
        put(result, "mean_ms", latency.mean);
        put(result, "p95_ms", latency.p95);
        put(result, "p99_ms", latency.p99);
        put(result, "p999_ms", latency.p999);
        put(result, "max_ms", latency.max);
    }
}

/// Figures of processor time per row: of the process that stores the data (for an embedded target,
/// the client's), and of the client.
pub(super) fn put_cpu(result: &mut StepResult, resources: &Resources, rows: u64) {
    let client = resources.client.cpu_s;
    let server = resources.server.map_or(client, |server| server.cpu_s);
    put(result, "cpu_us_per_row", server * 1e6 / rows as f64);
    put(result, "client_cpu_us_per_row", client * 1e6 / rows as f64);
}
