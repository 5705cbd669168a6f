//! One run: a target from its start on an empty folder to its end, and its result.

use super::client::said;
use super::expected::Expected;
use super::life::{At, Life};
use super::samples::{self, Operations};
use super::{ask, clock, cold, mix, mixed, store};
use crate::data::Source;
use crate::monitor::Monitor;
use crate::record::{RunResult, StepResult, Verdict};
use crate::study::{Act, ClockStep, Scale, Setup, Step};
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
struct Fresh(PathBuf);

impl Fresh {
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

impl Drop for Fresh {
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
            Act::Clock(clock) => Some((clock.cores, clock.memory_bytes)),
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
        let fresh = Fresh::new(self.data)?;
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
        let mut life = Life {
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
        let Life {
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
fn steps(life: &mut Life<'_>, refused: Option<String>) -> Result<()> {
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

fn act<'a>(life: &mut Life<'a>, at: At<'_>, step: &'a Step) -> Result<()> {
    match &step.act {
        Act::Write(plan) => mixed::write(life, at, plan),
        Act::Settle => life.settle(at),
        Act::Flush => life.flush(at),
        Act::Size => life.size(at),
        Act::Restart => life.restart(at),
        Act::Observe { known } => life.observe(at, known),
        Act::Ask(plan) => ask::ask(life, at, plan),
        Act::Mix(plan) => mix::mix(life, at, plan),
        Act::Cold(plan) => cold::cold(life, at, plan),
        Act::Mixed { write, ask } => mixed::mixed(life, at, write, ask),
        Act::Clock(plan) => search(life, at, plan),
    }
}

/// The results of a step about tables that the target cannot store, or with settings that it
/// refuses.
fn refusals(at: At<'_>, act: &Act, why: &str) -> Vec<StepResult> {
    let of = |knob: Option<(&str, &str)>| StepResult {
        verdict: Verdict::Cannot(why.to_owned()),
        ..at.result(knob)
    };
    match act {
        Act::Ask(plan) | Act::Cold(plan) => ask::by_name(&plan.questions)
            .into_iter()
            .map(|(name, _)| of(Some(("question", name))))
            .collect(),
        Act::Mix(plan) => mix::names(plan)
            .into_iter()
            .map(|name| of(Some(("question", name))))
            .collect(),
        Act::Mixed { .. } => ["write", "ask"].map(|side| of(Some(("side", side)))).into(),
        _ => vec![of(None)],
    }
}

/// The search on the clock: its trials are results of this step, and start the target themselves.
fn search(life: &mut Life<'_>, at: At<'_>, plan: &ClockStep) -> Result<()> {
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

fn name(act: &Act) -> &'static str {
    match act {
        Act::Write(_) => "write",
        Act::Settle => "settle",
        Act::Flush => "flush",
        Act::Size => "size",
        Act::Restart => "restart",
        Act::Observe { .. } => "observe",
        Act::Ask(_) => "ask",
        Act::Mix(_) => "mix",
        Act::Cold(_) => "cold",
        Act::Mixed { .. } => "mixed",
        Act::Clock(_) => "clock",
    }
}
