//! One cell of a panel: the result of its repetitions.

use super::{Entry, figure};
use crate::record::{Configuration, StepResult, Verdict};
use crate::report::load::StudyRuns;
use crate::report::names::short;
use crate::report::statistics::{Summary, median};
use crate::study::ReportView;
use std::collections::{BTreeMap, BTreeSet};

/// The result at one value of the x knob.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cell {
    /// The figure, or why there is none.
    pub state: State,
    /// The view's second figure, its median.
    pub second: Option<f64>,
    /// Processor time of the client per row, median, microseconds.
    pub client_us_per_row: Option<f64>,
    /// Repetitions that failed or were not run, if others succeeded.
    pub lost: usize,
}

/// A figure, or why there is none.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum State {
    /// It was measured, in the view's unit.
    Value(Summary),
    /// An answer was wrong: the difference.
    Wrong(String),
    /// The target cannot do it: why.
    Cannot(String),
    /// All repetitions failed: the first reason.
    Failed(String),
    /// No repetition has been run yet.
    Missing,
    /// The target has no such figure.
    Empty,
}

impl Cell {
    /// The figure, if it was measured.
    #[must_use]
    pub(crate) fn value(&self) -> Option<&Summary> {
        match &self.state {
            State::Value(summary) => Some(summary),
            _ => None,
        }
    }
}

/// Repetitions of a cell without a figure.
#[derive(Default)]
pub(super) struct LostRepetitions {
    /// Why repetitions that ended early failed.
    failed: Vec<String>,
    /// Repetitions that were not run.
    missing: usize,
}

/// The repetitions of `target` that never reached the steps `places`.
pub(super) fn lost(
    configuration: &Configuration,
    study: &StudyRuns,
    target: &str,
    places: &BTreeSet<(&str, usize)>,
    found: &[&Entry],
) -> LostRepetitions {
    let mut lost = LostRepetitions::default();
    let setups: BTreeSet<&str> = places.iter().map(|(setup, _)| *setup).collect();
    for repeat in 0..configuration.repeat {
        if found.iter().any(|entry| entry.repeat == repeat) {
            continue;
        }
        let here = |setup: &str, own: &str, at: usize| {
            setups.contains(setup) && own == target && at == repeat
        };
        let mut runs = study.runs.iter().map(|run| &run.result);
        let ended =
            runs.find(|run| here(&run.setup, &run.target, run.repeat) && run.failed.is_some());
        if let Some(reason) = ended.and_then(|run| run.failed.clone()) {
            lost.failed.push(reason);
        } else if study
            .missing
            .iter()
            .any(|at| here(&at.setup, &at.target, at.repeat))
        {
            lost.missing += 1;
        }
    }
    lost
}

/// The cell of the results `found`.
pub(super) fn cell(view: &ReportView, found: &[&Entry], lost: LostRepetitions) -> Cell {
    let mut failed = lost.failed;
    let mut state = None;
    let mut by_repeat: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    let mut second = Vec::new();
    let mut client = Vec::new();
    for entry in found {
        match &entry.step.verdict {
            Verdict::Wrong(difference) => {
                state.get_or_insert_with(|| State::Wrong(short(difference)));
            }
            Verdict::Cannot(why) => {
                state.get_or_insert_with(|| State::Cannot(why.clone()));
            }
            Verdict::Failed(why) => failed.push(why.clone()),
            Verdict::Right | Verdict::Unchecked => {
                if let Some(value) = figure(entry.step, &view.figure).filter(|v| v.is_finite()) {
                    by_repeat
                        .entry(entry.repeat)
                        .or_default()
                        .push(value * view.scale);
                }
                let name = view.second.as_ref().map(|(figure, _)| figure);
                second.extend(name.and_then(|name| figure(entry.step, name)));
                client.extend(client_us_per_row(entry.step));
            }
        }
    }
    // One sample per repetition: measurements within one run of a target are not independent.
    let samples = by_repeat
        .values()
        .filter_map(|values| median(values))
        .collect();
    let lost_count = failed.len() + lost.missing;
    let state = state.unwrap_or_else(
        || match (Summary::new(samples), failed.into_iter().next()) {
            (Some(summary), _) => State::Value(summary),
            (None, Some(reason)) => State::Failed(reason),
            (None, None) if lost.missing > 0 => State::Missing,
            (None, None) => State::Empty,
        },
    );
    let measured = matches!(state, State::Value(_));
    Cell {
        second: median(&second).filter(|_| measured),
        client_us_per_row: median(&client).filter(|_| measured),
        lost: if measured { lost_count } else { 0 },
        state,
    }
}

fn client_us_per_row(step: &StepResult) -> Option<f64> {
    if let Some(stored) = step.figures.get("client_cpu_us_per_row") {
        return Some(*stored);
    }
    let resources = step.resources.as_ref()?;
    let rows = step.figures.get("rows_per_s")? * resources.seconds;
    (rows > 0.0).then(|| resources.client.cpu_s * 1e6 / rows)
}
