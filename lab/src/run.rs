//! Executes studies: runs every target through every setup, as often as requested and in a fair
//! order, and stores all measurements in a folder ([`crate::record`]).
//!
//! For each study, setup and repetition, the targets take turns; repetition *r* begins with target
//! *r*, so that no target is always first. The source of a setup is built once and shared. If a
//! target fails, the failure is recorded and the next target runs. A run that has a result without
//! `failed` is not repeated, so the same command continues an interrupted series.
//!
//! From below to above: `client` (threads, tallies), `samples` (the Parquet files), `store` (the
//! folder), `expected` (a cache of right answers), `progress`, `life` (one target in one setup),
//! the steps `write`, `ask`, `mixed`, `clock`, and `unit` (one run from start to stop).

mod ask;
mod client;
mod clock;
mod cold;
mod expected;
mod interrupt;
mod life;
mod mix;
mod mixed;
mod progress;
mod samples;
mod store;
#[cfg(test)]
mod tests;
mod unit;
mod write;

use crate::data::Source;
use crate::generate::SourceSpec;
use crate::study::{Plan, Scale, Study};
use crate::target::{Kind, Settings};
use anyhow::{Context, Result, ensure};
use expected::{Expect, Expected};
use progress::{Job, Progress};
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use store::Store;
use unit::Unit;

/// What to run.
#[derive(Clone)]
pub struct Order {
    /// Studies, in order.
    pub studies: Vec<Study>,
    /// Targets, in order.
    pub targets: Vec<(Kind, Settings)>,
    /// How large.
    pub scale: Scale,
    /// Repetitions of each target and setup.
    pub repeat: usize,
    /// Seed of all data.
    pub seed: u64,
    /// Folder of the results.
    pub out: PathBuf,
    /// Folder of the databases' folders (a killed laboratory leaves the last of them there);
    /// `None`: a temporary one inside `out`.
    pub data: Option<PathBuf>,
    /// The command line, for the record.
    pub command: String,
    /// Show no progress.
    pub quiet: bool,
}

/// Number of runs by how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Executed now, and completed.
    pub done: usize,
    /// Completed by an earlier command.
    pub skipped: usize,
    /// Executed now, and ended early.
    pub failed: usize,
    /// Executed now or earlier, with a wrong answer.
    pub wrong: usize,
}

/// What tests replace: the sources of data and of right answers, and how much is encoded at once.
struct Means<'a> {
    build: &'a dyn Fn(&SourceSpec, u64) -> Arc<dyn Source>,
    expect: Arc<Expect>,
    /// Payloads that are encoded before the clock starts, bytes; more are sent in rounds.
    round_bytes: usize,
}

/// What the runs of one setup share.
struct SetupShared {
    /// Study and setup, indices.
    place: (usize, usize),
    source: Arc<dyn Source>,
    expected: Expected,
}

/// Encoded payloads that may be in memory at once, bytes, all clients together.
const ROUND_BYTES: usize = 512 << 20;

/// Runs `order`. On Ctrl-C, it ends the current run, stops what it started, and fails; the same
/// order continues later. (Servers that it started share the terminal's process group and get the
/// same signal.) It also fails if the folder holds something else or cannot be written, but not if
/// a target fails.
pub fn run(order: &Order) -> Result<Outcome> {
    let means = Means {
        build: &|spec, seed| spec.build(seed),
        expect: Arc::new(crate::expect::answers),
        round_bytes: ROUND_BYTES,
    };
    run_with(order, &means, &*interrupt::watch()?)
}

fn run_with(order: &Order, means: &Means<'_>, stop: &AtomicBool) -> Result<Outcome> {
    let plan = |study: &Study| (study.name, (study.plan)(order.scale));
    let plans: Vec<(&str, Plan)> = order.studies.iter().map(plan).collect();
    check_names(order, &plans)?;
    let store = Store::open(order, &plans)?;
    let mut outcome = Outcome::default();
    let mut progress = Progress::new(order.quiet);
    let mut due: Vec<(Job, PathBuf)> = Vec::new();
    for job in jobs(order, &plans) {
        let (study, plan) = &plans[job.study];
        let target = order.targets[job.target].0.name;
        let folder = store.folder(study, &plan.setups[job.setup].name, target, job.repeat);
        match store::finished(&folder) {
            Some(result) => {
                outcome.skipped += 1;
                outcome.wrong += usize::from(store::is_wrong(&result));
                progress.learn(&job, result.seconds);
            }
            None => due.push((job, folder)),
        }
    }
    progress.begin(due.iter().map(|(job, _)| *job).collect());
    let mut shared: Option<SetupShared> = None;
    for (job, folder) in due {
        let (study, plan) = &plans[job.study];
        let setup = &plan.setups[job.setup];
        // The old data are dropped before the new ones are built, because a source may fill much of
        // the memory.
        shared = shared.filter(|shared| shared.place == (job.study, job.setup));
        let shared = shared.get_or_insert_with(|| SetupShared {
            place: (job.study, job.setup),
            source: (means.build)(&setup.source, order.seed),
            expected: Expected::new(Arc::clone(&means.expect)),
        });
        let unit = Unit {
            study,
            setup,
            target: &order.targets[job.target],
            repeat: job.repeat,
            scale: order.scale,
            seed: order.seed,
            source: &*shared.source,
            data: store.data(),
            folder: &folder,
            round_bytes: means.round_bytes,
        };
        store::empty(&folder)?;
        progress.unit(&job, &unit.title());
        let result = unit.live(&mut shared.expected, stop);
        // A target that ends with the laboratory did not fail, so its run is repeated.
        ensure!(
            !stop.load(Ordering::Relaxed),
            "interrupted; the same command continues with {}",
            unit.title()
        );
        store::save(&folder, &result)?;
        outcome.wrong += usize::from(store::is_wrong(&result));
        match result.failed {
            None => outcome.done += 1,
            Some(_) => outcome.failed += 1,
        }
        progress.ended(&job, &unit.title(), &result);
    }
    progress.finish();
    store.close()?;
    Ok(outcome)
}

/// All runs, in order.
fn jobs(order: &Order, plans: &[(&str, Plan)]) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (study, (_, plan)) in plans.iter().enumerate() {
        for (setup, contents) in plan.setups.iter().enumerate() {
            for repeat in 0..order.repeat {
                let count = order.targets.len();
                let takes_part =
                    |target: &usize| !(plan.marigram_only && order.targets[*target].0.peer);
                let turns = (0..count).map(|place| (place + repeat) % count);
                jobs.extend(turns.filter(takes_part).map(|target| Job {
                    study,
                    setup,
                    repeat,
                    target,
                    steps: contents.steps.len(),
                }));
            }
        }
    }
    jobs
}

/// Names become folders: each must be valid and unique.
fn check_names(order: &Order, plans: &[(&str, Plan)]) -> Result<()> {
    unique(plans.iter().map(|(study, _)| *study)).context("studies")?;
    unique(order.targets.iter().map(|(kind, _)| kind.name)).context("targets")?;
    for (study, plan) in plans {
        let names = plan.setups.iter().map(|setup| setup.name.as_str());
        unique(names).with_context(|| format!("setups of {study}"))?;
    }
    Ok(())
}

fn unique<'a>(names: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut seen = HashSet::new();
    for name in names {
        let letter = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        ensure!(
            !name.is_empty() && !name.starts_with('.') && name.chars().all(letter),
            "{name:?} cannot be the name of a folder: letters, digits, '-', '_', '.' only"
        );
        ensure!(seen.insert(name), "{name} is named twice");
    }
    Ok(())
}
