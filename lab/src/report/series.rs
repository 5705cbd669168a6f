//! Figures arranged for a view: a panel for each value of the split knob, a row for each target, a
//! cell for each value of the x knob.

mod cell;

use super::load::{StudyRuns, figure};
use super::names;
use crate::record::{Configuration, StepResult};
use crate::study::{Knobs, ReportView, StepAction};
use crate::target::TargetFacts;
pub(super) use cell::{Cell, State};
use cell::{LostRepetitions, cell, lost};
use std::collections::{BTreeMap, BTreeSet};

/// A view with its figures.
pub(super) struct ArrangedView<'a> {
    /// What was to be shown.
    pub view: &'a ReportView,
    /// One for each value of the split knob; one if there is none. Empty if nothing was measured.
    pub panels: Vec<Panel>,
}

/// A plot and a table.
pub(super) struct Panel {
    /// Value of the split knob.
    pub split: Option<String>,
    /// Values of the x knob: sorted if they are numbers, otherwise in the order of the study.
    pub xs: Vec<String>,
    /// Rows by target, in order, without empty ones.
    pub rows: Vec<TargetRow>,
    /// The client's own cost.
    pub null: Option<TargetRow>,
}

/// One target, at one setting of the knobs that the view does not name.
pub(super) struct TargetRow {
    /// The target.
    pub target: String,
    /// Those settings, in the form that follows the target's name.
    pub variant: String,
    /// The target and those settings.
    pub label: String,
    /// What happens before an acknowledgement, as the target says; empty if it does not.
    pub acknowledged_after: &'static str,
    /// One for each value of the x knob.
    pub cells: Vec<Cell>,
}

/// A step's result that a view shows, and its coordinates.
struct Entry<'a> {
    target: &'a str,
    repeat: usize,
    setup: &'a str,
    step: &'a StepResult,
    x: &'a str,
    split: Option<&'a str>,
}

/// The coordinates of a cell: split, x, and the knobs that the view does not name.
type Spot<'a> = (Option<&'a str>, &'a str, String);

/// The results that a view shows, by their coordinates.
struct ViewEntries<'a> {
    configuration: &'a Configuration,
    study: &'a StudyRuns,
    view: &'a ReportView,
    entries: &'a [Entry<'a>],
    splits: Vec<Option<&'a str>>,
    variants: Vec<String>,
    /// The steps (setup, number) that belong to a cell.
    steps: BTreeMap<Spot<'a>, BTreeSet<(&'a str, usize)>>,
    /// The entries of a cell and a target.
    results: BTreeMap<(Spot<'a>, &'a str), Vec<&'a Entry<'a>>>,
}

/// Arranges the measurements of `study` for `view`.
#[must_use]
pub(super) fn arrange<'a>(
    configuration: &Configuration,
    study: &'a StudyRuns,
    view: &'a ReportView,
) -> ArrangedView<'a> {
    let entries = entries(study, view);
    let other = varying(&entries, view);
    let mut arrangement = ViewEntries {
        configuration,
        study,
        view,
        entries: &entries,
        splits: Vec::new(),
        variants: Vec::new(),
        steps: BTreeMap::new(),
        results: BTreeMap::new(),
    };
    for entry in &entries {
        arrangement.add(entry, variant(&entry.step.knobs, &other));
    }
    sort_numbers(&mut arrangement.splits, |split| split.unwrap_or(""));
    let splits = arrangement.splits.iter();
    ArrangedView {
        view,
        panels: splits.map(|split| arrangement.panel(*split)).collect(),
    }
}

impl<'a> ViewEntries<'a> {
    fn add(&mut self, entry: &'a Entry<'a>, variant: String) {
        push_new(&mut self.splits, entry.split);
        push_new(&mut self.variants, variant.clone());
        let spot = (entry.split, entry.x, variant);
        let steps = self.steps.entry(spot.clone()).or_default();
        steps.insert((entry.setup, entry.step.step));
        let results = self.results.entry((spot, entry.target)).or_default();
        results.push(entry);
    }

    fn panel(&self, split: Option<&'a str>) -> Panel {
        let mut xs: Vec<&str> = Vec::new();
        let own = self.entries.iter().filter(|entry| entry.split == split);
        own.for_each(|entry| push_new(&mut xs, entry.x));
        for published in published(self.view, split) {
            let points = published.points.iter();
            points.for_each(|(x, _)| push_new(&mut xs, x));
        }
        sort_numbers(&mut xs, |x| x);
        let rows = |target: &'a str| {
            let variants = self.variants.iter();
            variants.map(|variant| self.row(split, &xs, target, variant))
        };
        let is_shown = |row: &TargetRow| row.cells.iter().any(|cell| cell.state != State::Empty);
        let has_value = |row: &TargetRow| row.cells.iter().any(|cell| cell.value().is_some());
        let targets = self.configuration.targets.iter();
        let targets = targets.filter(|target| !names::is_null(target));
        Panel {
            split: split.map(str::to_owned),
            null: rows("null").find(has_value),
            rows: targets
                .flat_map(|target| rows(target))
                .filter(is_shown)
                .collect(),
            xs: xs.iter().map(|x| (*x).to_owned()).collect(),
        }
    }

    fn row(
        &self,
        split: Option<&'a str>,
        xs: &[&'a str],
        target: &'a str,
        variant: &str,
    ) -> TargetRow {
        let cells = xs.iter().map(|x| {
            let spot = (split, *x, variant.to_owned());
            let steps = self.steps.get(&spot);
            let results = self.results.get(&(spot, target));
            let results = results.map_or(&[][..], Vec::as_slice);
            let lost = steps.map_or_else(LostRepetitions::default, |steps| {
                lost(self.configuration, self.study, target, steps, results)
            });
            cell(self.view, results, lost)
        });
        TargetRow {
            target: target.to_owned(),
            variant: variant.to_owned(),
            label: format!("{}{variant}", names::label(target)),
            acknowledged_after: acknowledged_after(self.study, target),
            cells: cells.collect(),
        }
    }
}

/// What happens before an acknowledgement of `target`.
fn acknowledged_after(study: &StudyRuns, target: &str) -> &'static str {
    let mut runs = study.runs.iter();
    let facts = runs.find_map(|run| {
        let facts = run.result.facts.as_ref()?;
        (run.result.target == target).then_some(facts)
    });
    facts.map_or("", TargetFacts::acknowledged_after)
}

/// The published series that belong to the panel of `split`.
pub(super) fn published<'a>(
    view: &'a ReportView,
    split: Option<&str>,
) -> impl Iterator<Item = &'a crate::study::PublishedFigures> {
    let split = split.map(str::to_owned);
    let belongs = move |of: &Option<String>| of.is_none() || *of == split;
    view.published
        .iter()
        .filter(move |published| belongs(&published.split))
}

/// The results that `view` shows.
fn entries<'a>(study: &'a StudyRuns, view: &ReportView) -> Vec<Entry<'a>> {
    let mut entries = Vec::new();
    for run in &study.runs {
        for step in &run.result.steps {
            let chosen = view
                .only
                .iter()
                .all(|(knob, value)| step.knobs.get(knob) == Some(value));
            let Some(x) = step.knobs.get(&view.x).filter(|_| chosen) else {
                continue;
            };
            let split = view.split.as_ref().map(|knob| step.knobs.get(knob));
            if split == Some(None) {
                continue;
            }
            entries.push(Entry {
                target: &run.result.target,
                repeat: run.result.repeat,
                setup: &run.result.setup,
                step,
                x,
                split: split.flatten().map(String::as_str),
            });
        }
    }
    // A step that did not succeed has no figures. It belongs to this view if another target has the
    // figure from the same step, or if such steps always have it.
    let gives: BTreeSet<(&str, usize)> = entries
        .iter()
        .filter(|entry| figure(entry.step, &view.figure).is_some())
        .map(|entry| (entry.setup, entry.step.step))
        .collect();
    entries.retain(|entry| {
        gives.contains(&(entry.setup, entry.step.step))
            || act(study, entry.setup, entry.step.step).is_some_and(|act| yields(act, &view.figure))
    });
    entries
}

/// The action of a step.
#[must_use]
pub(super) fn act<'a>(study: &'a StudyRuns, setup: &str, step: usize) -> Option<&'a StepAction> {
    let setup = study.plan.setups.iter().find(|own| own.name == setup)?;
    setup.steps.get(step).map(|step| &step.act)
}

/// Whether [`StepAction`] promises `figure`.
fn yields(act: &StepAction, figure: &str) -> bool {
    match act {
        StepAction::Write(_) => matches!(figure, "rows_per_s" | "points_per_s"),
        StepAction::Settle => figure == "settle_s",
        StepAction::Flush => figure == "flush_s",
        StepAction::Size => matches!(figure, "bytes_per_row" | "bytes_per_point" | "disk_bytes"),
        StepAction::Restart => figure == "restart_ms",
        StepAction::Ask(_) | StepAction::Mix(_) => figure.starts_with("latency_"),
        StepAction::Cold(_)
        | StepAction::Mixed { .. }
        | StepAction::Clock(_)
        | StepAction::Observe { .. } => false,
    }
}

/// Knobs that the view does not name, but that distinguish steps of one run and one cell.
fn varying(entries: &[Entry], view: &ReportView) -> Vec<String> {
    type CellKey<'a> = (&'a str, usize, Option<&'a str>, &'a str);
    let mut seen: BTreeMap<(CellKey, &str), &str> = BTreeMap::new();
    let mut varying = BTreeSet::new();
    for entry in entries {
        for (knob, value) in &entry.step.knobs {
            if *knob == view.x || Some(knob) == view.split.as_ref() {
                continue;
            }
            let place = (entry.target, entry.repeat, entry.split, entry.x);
            let first = seen.entry((place, knob)).or_insert(value);
            if first != value {
                varying.insert(knob.clone());
            }
        }
    }
    varying.into_iter().collect()
}

fn variant(knobs: &Knobs, other: &[String]) -> String {
    let known = other
        .iter()
        .filter_map(|knob| Some((knob, knobs.get(knob)?)));
    let parts = known.map(|(knob, value)| format!(" · {knob} {value}"));
    parts.collect::<Vec<_>>().concat()
}

fn push_new<T: PartialEq>(all: &mut Vec<T>, value: T) {
    if !all.contains(&value) {
        all.push(value);
    }
}

/// `values` as numbers, if all of them are numbers.
#[must_use]
pub(super) fn numbers<'a>(values: impl IntoIterator<Item = &'a str>) -> Option<Vec<f64>> {
    let number = |value: &str| {
        value
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite())
    };
    values.into_iter().map(number).collect()
}

fn sort_numbers<T>(values: &mut [T], text: impl Fn(&T) -> &str) {
    if numbers(values.iter().map(&text)).is_some() {
        let number = |value: &T| text(value).parse::<f64>().unwrap_or(f64::INFINITY);
        values.sort_by(|a, b| number(a).total_cmp(&number(b)));
    }
}

#[cfg(test)]
mod tests;
