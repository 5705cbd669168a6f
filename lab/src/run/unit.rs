//! One run: a target from its start on an empty folder to its end, and its result.

use super::client::said;
use super::expected::Expected;
use super::life::{At, RunningTarget};
use super::samples::{self, Operations};
use super::{ask, clock, cold, mix, mixed, store};
use crate::data::Source;
use crate::monitor::Monitor;
use crate::record::{RunResult, StepResult, Verdict};
use crate::study::{ClockStep, Scale, Setup, Step, StepAction};
use crate::target::{Kind, Settings, Tuning};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// Attempts to remove a folder, because killed processes may still be writing.
const REMOVE_TRIES: u32 = 30;

/// A run to be executed.
pub(super) struct Unit<'a> {
    pub(super) study: &'a str,
    pub(super) setup: &'a Setup,
    pub(super) target: &'a (Kind, Settings),
    pub(super) repeat: usize,
    pub(super) scale: Scale,
    pub(super) seed: u64,
    pub(super) source: &'a dyn Source,
    /// Folder in which the target's folder is created.
    pub(super) data: &'a Path,
    /// Folder of the result.
    pub(super) folder: &'a Path,
    pub(super) round_bytes: usize,
}

/// A target's own folder, removed at the end.
struct TargetFolder(PathBuf);

impl TargetFolder {
    fn new(data: &Path) -> Result<Self> {
        // Short, because sockets are in it; with the process id, because `data` may be shared.
        let folder = data.join(format!("lab-{}", std::process::id()));
        store::empty(&folder)?;
        Ok(Self(folder))
    }

    fn remove(&self) -> Result<()> {
        let mut tries = 0;
        loop {
            match store::remove(&self.0) {
                Err(_) if tries < REMOVE_TRIES => thread::sleep(Duration::from_millis(100)),
                done => return done,
            }
            tries += 1;
        }
    }
}

impl Drop for TargetFolder {
    fn drop(&mut self) {
        // A failure was reported already, and the next run also empties the folder.
        let _ = store::remove(&self.0);
    }
}

impl Unit<'_> {
    /// The name of the run, for people.
    pub(super) fn title(&self) -> String {
        format!(
            "{}/{} {} #{}",
            self.study,
            self.setup.name,
            self.target.0.name,
            self.repeat + 1
        )
    }

    /// Executes the run. Any failure, including panics, ends this run only.
    pub(super) fn live(&self, expected: &mut Expected, stop: &AtomicBool) -> RunResult {
        let mut result = RunResult {
            study: self.study.to_owned(),
            setup: self.setup.name.clone(),
            target: self.target.0.name.to_owned(),
            repeat: self.repeat,
            facts: None,
            started: store::utc(SystemTime::now()),
            seconds: 0.0,
            steps: Vec::new(),
            failed: None,
        };
        let began = Instant::now();
        let done = thread::scope(|scope| {
            let act = scope.spawn(|| self.act(expected, stop, &mut result));
            act.join()
                .unwrap_or_else(|panic| bail!("a driver panicked: {}", said(&*panic)))
        });
        result.failed = done.err().map(|error| format!("{error:#}"));
        result.seconds = began.elapsed().as_secs_f64();
        result
    }

    /// The target's settings, with the setup's settings and the limits of a search on the clock.
    fn settings(&self) -> Settings {
        let clock = |step: &Step| match &step.act {
            StepAction::Clock(clock) => Some((clock.cores, clock.memory_bytes)),
            _ => None,
        };
        let settings = Settings {
            tuning: self.setup.tuning.clone(),
            ..self.target.1.clone()
        };
        match self.setup.steps.iter().find_map(clock) {
            Some((cores, memory_bytes)) => Settings {
                cores,
                memory_bytes,
                ..settings
            },
            None => settings,
        }
    }

    fn act(
        &self,
        expected: &mut Expected,
        stop: &AtomicBool,
        result: &mut RunResult,
    ) -> Result<()> {
        // Declared before the target, so that the target is dropped first after a panic.
        let fresh = TargetFolder::new(self.data)?;
        let kind = self.target.0;
        let mut settings = self.settings();
        let mut target = (kind.make)(&settings).context("making the target")?;
        let refused = target.refuses(&settings.tuning);
        if refused.is_some() {
            settings.tuning = Tuning::default();
            target = (kind.make)(&settings).context("making the target")?;
        }
        target.start(&fresh.0).context("starting")?;
        result.facts = Some(target.facts());
        let every = match self.scale {
            Scale::Tiny | Scale::Small => Duration::from_millis(100),
            Scale::Medium | Scale::Paper => Duration::from_secs(1),
        };
        let mut life = RunningTarget {
            source: self.source,
            setup: self.setup,
            dir: &fresh.0,
            monitor: Monitor::start(target.processes(), every)?,
            target,
            expected,
            operations: Operations::create(self.folder)?,
            stop,
            round_bytes: self.round_bytes,
            seed: self.seed,
            epoch: Instant::now(),
            steps: &mut result.steps,
            failures: Vec::new(),
            tables: BTreeMap::new(),
            written: BTreeMap::new(),
            rows: 0,
            points: 0,
            rss_first_bytes: None,
        };
        let done = steps(&mut life, refused);
        let RunningTarget {
            mut target,
            monitor,
            operations,
            failures,
            ..
        } = life;
        operations.close()?;
        samples::resources(self.folder, &monitor.finish())?;
        let stopped = target.stop().context("stopping");
        drop(target);
        let removed = fresh.remove();
        done?;
        if !failures.is_empty() {
            bail!("{}", failures.join("; "));
        }
        stopped.and(removed)
    }
}

/// Executes the steps; `refused` is the reason why the target cannot have their settings.
fn steps(life: &mut RunningTarget<'_>, refused: Option<String>) -> Result<()> {
    let setup = life.setup;
    let cannot = refused.or_else(|| life.target.cannot_keep(life.source.tables()));
    for (index, step) in setup.steps.iter().enumerate() {
        life.go_on()?;
        let at = At {
            index,
            knobs: &step.knobs,
        };
        if let Some(why) = &cannot {
            life.steps.extend(refusals(at, &step.act, why));
            continue;
        }
        act(life, at, step).with_context(|| format!("step {} ({})", index + 1, name(&step.act)))?;
    }
    Ok(())
}

fn act<'a>(life: &mut RunningTarget<'a>, at: At<'_>, step: &'a Step) -> Result<()> {
    match &step.act {
        StepAction::Write(plan) => mixed::write(life, at, plan),
        StepAction::Settle => life.settle(at),
        StepAction::Flush => life.flush(at),
        StepAction::Size => life.size(at),
        StepAction::Restart => life.restart(at),
        StepAction::Observe { known } => life.observe(at, known),
        StepAction::Ask(plan) => ask::ask(life, at, plan),
        StepAction::Mix(plan) => mix::mix(life, at, plan),
        StepAction::Cold(plan) => cold::cold(life, at, plan),
        StepAction::Mixed { write, ask } => mixed::mixed(life, at, write, ask),
        StepAction::Clock(plan) => search(life, at, plan),
    }
}

/// The results of a step about tables that the target cannot store, or with settings that it
/// refuses.
fn refusals(at: At<'_>, act: &StepAction, why: &str) -> Vec<StepResult> {
    let of = |knob: Option<(&str, &str)>| StepResult {
        verdict: Verdict::Cannot(why.to_owned()),
        ..at.result(knob)
    };
    match act {
        StepAction::Ask(plan) | StepAction::Cold(plan) => ask::by_name(&plan.questions)
            .into_iter()
            .map(|(name, _)| of(Some(("question", name))))
            .collect(),
        StepAction::Mix(plan) => mix::names(plan)
            .into_iter()
            .map(|name| of(Some(("question", name))))
            .collect(),
        StepAction::Mixed { .. } => ["write", "ask"].map(|side| of(Some(("side", side)))).into(),
        _ => vec![of(None)],
    }
}

/// The search on the clock: its trials are results of this step, and start the target themselves.
fn search(life: &mut RunningTarget<'_>, at: At<'_>, plan: &ClockStep) -> Result<()> {
    life.monitor.follow(&[]);
    life.target.stop().context("stopping before the search")?;
    let place = clock::TrialContext {
        dir: &life.dir.join("clock"),
        monitor: &life.monitor,
        seed: life.seed,
    };
    let trials = clock::search(life.target.as_mut(), plan, &place)?;
    let placed = trials.into_iter().map(|mut trial| {
        let StepResult { step, knobs, .. } = at.result(None);
        trial.step = step;
        for (name, value) in knobs {
            trial.knobs.entry(name).or_insert(value);
        }
        trial
    });
    life.steps.extend(placed);
    Ok(())
}

fn name(act: &StepAction) -> &'static str {
    match act {
        StepAction::Write(_) => "write",
        StepAction::Settle => "settle",
        StepAction::Flush => "flush",
        StepAction::Size => "size",
        StepAction::Restart => "restart",
        StepAction::Observe { .. } => "observe",
        StepAction::Ask(_) => "ask",
        StepAction::Mix(_) => "mix",
        StepAction::Cold(_) => "cold",
        StepAction::Mixed { .. } => "mixed",
        StepAction::Clock(_) => "clock",
    }
}
