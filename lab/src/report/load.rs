//! Reads what [`crate::run`] stored.

use super::names;
use crate::record::{Configuration, RunResult, StepResult};
use crate::study::{Plan, Study};
use crate::target::TargetFacts;
use anyhow::{Context, Result, bail};
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{BufReader, ErrorKind};
use std::path::{Path, PathBuf};

/// The supported version of [`Configuration`].
const FORMAT: u32 = 1;

/// The contents of one folder.
#[derive(Debug)]
pub(super) struct Lab {
    /// How it was started.
    pub configuration: Configuration,
    /// Its studies, in order.
    pub studies: Vec<StudyRuns>,
}

/// A study and its runs.
#[derive(Debug)]
pub(super) struct StudyRuns {
    /// Its name on the command line.
    pub name: String,
    /// A title.
    pub title: String,
    /// What it measures.
    pub about: String,
    /// The publication that it repeats.
    pub source: String,
    /// The plan; without setups if the study has not begun.
    pub plan: Plan,
    /// Executed runs, by setup, target and repetition, in the order of plan and configuration.
    pub runs: Vec<FinishedRun>,
    /// Runs not executed, in the same order.
    pub missing: Vec<RunIdentity>,
}

/// A run that has ended.
#[derive(Debug)]
pub(super) struct FinishedRun {
    /// Its result.
    pub result: RunResult,
    /// Its folder, with the raw samples.
    pub folder: PathBuf,
}

/// The identity of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RunIdentity {
    /// Setup.
    pub setup: String,
    /// Target.
    pub target: String,
    /// Repetition, from 0.
    pub repeat: usize,
}

/// Reads `folder`; `known` has the titles of studies. Fails if the folder holds no runs of this
/// format, or if a file cannot be read.
pub(super) fn load(folder: &Path, known: &[Study]) -> Result<Lab> {
    let Some(configuration) = read::<Configuration>(&folder.join("lab.json"))? else {
        bail!(
            "{} holds no runs: it has no lab.json; give the folder that `lab run --out` wrote",
            folder.display()
        );
    };
    if configuration.format != FORMAT {
        bail!(
            "{} has format {}, and this version reads {FORMAT}: use the version that wrote it, {}",
            folder.join("lab.json").display(),
            configuration.format,
            configuration.version
        );
    }
    let names = configuration.studies.iter();
    let studies = names
        .map(|name| load_study(folder, &configuration, name, known))
        .collect::<Result<Vec<_>>>()?;
    if studies.iter().all(|study| study.runs.is_empty()) {
        bail!(
            "{} holds no finished run yet: begin or resume it with `lab run --out {}`",
            folder.display(),
            folder.display()
        );
    }
    Ok(Lab {
        configuration,
        studies,
    })
}

fn load_study(
    folder: &Path,
    configuration: &Configuration,
    name: &str,
    known: &[Study],
) -> Result<StudyRuns> {
    let plan = read(&folder.join("plans").join(format!("{name}.json")))?;
    let known = known.iter().find(|study| study.name == name);
    let mut study = StudyRuns {
        name: name.to_owned(),
        title: known.map_or(name, |study| study.title).to_owned(),
        about: known.map_or("", |study| study.about).to_owned(),
        source: known.map_or("", |study| study.source).to_owned(),
        plan: plan.unwrap_or_default(),
        runs: Vec::new(),
        missing: Vec::new(),
    };
    for setup in &study.plan.setups {
        let own = |target: &&String| names::is_marigram(target) || names::is_null(target);
        let targets = configuration.targets.iter();
        for target in targets.filter(|target| !study.plan.marigram_only || own(target)) {
            for repeat in 0..configuration.repeat {
                let below = [name, &setup.name, target, &repeat.to_string()];
                let folder = folder.join("runs").join(below.iter().collect::<PathBuf>());
                match read(&folder.join("result.json"))? {
                    Some(result) => study.runs.push(FinishedRun { result, folder }),
                    None => study.missing.push(RunIdentity {
                        setup: setup.name.clone(),
                        target: target.clone(),
                        repeat,
                    }),
                }
            }
        }
    }
    Ok(study)
}

/// The file, or `None` if it does not exist.
fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("open {}", path.display())),
    };
    serde_json::from_reader(BufReader::new(file))
        .map(Some)
        .with_context(|| {
            format!(
                "{} is damaged: remove it, and run again to replace it",
                path.display()
            )
        })
}

impl Lab {
    /// The description of `target` in its first run that started.
    #[must_use]
    pub(super) fn facts(&self, target: &str) -> Option<&TargetFacts> {
        let runs = self.studies.iter().flat_map(|study| &study.runs);
        runs.filter(|run| run.result.target == target)
            .find_map(|run| run.result.facts.as_ref())
    }
}

/// A figure of a step by name: a stored figure, one of its latencies (`latency_mean_ms`,
/// `latency_p50_ms` … `latency_max_ms`, `latency_slowest_client_ms`) or one of its resources
/// (`server_cpu_s`, `client_rss_bytes`, …).
#[must_use]
pub(super) fn figure(step: &StepResult, name: &str) -> Option<f64> {
    let value = step.figures.get(name).copied();
    value.or_else(|| derived(step).find_map(|(own, value)| (own == name).then_some(value)))
}

/// The figures of a step that are not stored by name.
pub(super) fn derived(step: &StepResult) -> impl Iterator<Item = (String, f64)> + use<> {
    let mut all: Vec<(String, f64)> = Vec::new();
    if let Some(latency) = &step.latency {
        all.push(("latency_count".to_owned(), latency.count as f64));
        let parts = [
            ("mean", latency.mean),
            ("p50", latency.p50),
            ("p95", latency.p95),
            ("p99", latency.p99),
            ("p999", latency.p999),
            ("max", latency.max),
            ("slowest_client", latency.slowest_client),
        ];
        let named = |(part, ms): (&str, f64)| (format!("latency_{part}_ms"), ms);
        all.extend(parts.map(named));
    }
    if let Some(resources) = &step.resources {
        all.push(("seconds".to_owned(), resources.seconds));
        let page_cache = resources.page_cache_bytes as f64;
        all.push(("page_cache_bytes".to_owned(), page_cache));
        let sides = [
            ("server", resources.server),
            ("client", Some(resources.client)),
        ];
        for (side, usage) in sides {
            let Some(usage) = usage else { continue };
            all.push((format!("{side}_cpu_s"), usage.cpu_s));
            all.push((format!("{side}_rss_bytes"), usage.rss_bytes as f64));
            all.push((format!("{side}_read_bytes"), usage.read_bytes as f64));
            all.push((format!("{side}_write_bytes"), usage.write_bytes as f64));
        }
    }
    all.into_iter()
}
