//! CSV: one tidy file of every figure, and one file per table.

use super::document::{RowKind, Table};
use super::load::{Lab, derived};
use super::series::{ArrangedView, Cell, State};
use crate::record::Verdict;
use crate::study::Knobs;
use ::csv::Writer;
use anyhow::{Context, Result};
use std::path::Path;

/// Writes every figure of every step to `path`, one per row. A step without figures has one row
/// without figure and value, so that its verdict is not lost.
pub(super) fn results(path: &Path, lab: &Lab) -> Result<()> {
    let mut writer = create(path)?;
    let columns = [
        "study", "setup", "target", "repeat", "step", "knobs", "figure", "value", "verdict",
    ];
    writer.write_record(columns)?;
    for study in &lab.studies {
        for run in study.runs.iter().map(|run| &run.result) {
            for step in &run.steps {
                let stored = step
                    .figures
                    .iter()
                    .map(|(name, value)| (name.clone(), *value));
                let mut figures: Vec<(String, String)> = stored
                    .chain(derived(step))
                    .map(|(name, value)| (name, value.to_string()))
                    .collect();
                if figures.is_empty() {
                    figures.push((String::new(), String::new()));
                }
                for (figure, value) in figures {
                    writer.write_record([
                        study.name.as_str(),
                        &run.setup,
                        &run.target,
                        &run.repeat.to_string(),
                        &step.step.to_string(),
                        &knobs(&step.knobs),
                        &figure,
                        &value,
                        word(&step.verdict),
                    ])?;
                }
            }
        }
    }
    writer
        .flush()
        .with_context(|| format!("write {}", path.display()))
}

/// Writes the figures of a view, one cell per row, in the view's unit.
pub(super) fn view(path: &Path, arranged: &ArrangedView) -> Result<()> {
    let view = arranged.view;
    let mut writer = create(path)?;
    let split = view.split.as_deref().unwrap_or("split");
    let figure = format!("{} ({})", view.figure, view.unit);
    let second = view.second.as_ref().map_or("second", |(figure, _)| figure);
    writer.write_record([
        split,
        &view.x,
        "target",
        &figure,
        "low",
        "high",
        "repetitions",
        second,
        "state",
        "note",
    ])?;
    for panel in &arranged.panels {
        let split = panel.split.as_deref().unwrap_or("");
        for row in panel.rows.iter().chain(&panel.null) {
            for (x, cell) in panel.xs.iter().zip(&row.cells) {
                let mut record = vec![split.to_owned(), x.clone(), row.label.clone()];
                record.extend(fields(cell));
                writer.write_record(record)?;
            }
        }
        for published in super::series::published(view, panel.split.as_deref()) {
            for (x, figure) in &published.points {
                let figure = figure.to_string();
                let state = "published, other hardware";
                let (system, source) = (&published.system, &published.source);
                writer.write_record([split, x, system, &figure, "", "", "", "", state, source])?;
            }
        }
    }
    writer
        .flush()
        .with_context(|| format!("write {}", path.display()))
}

/// Writes a table with the text that the report shows.
pub(super) fn table(path: &Path, table: &Table) -> Result<()> {
    let mut writer = create(path)?;
    writer.write_record(&table.head)?;
    for row in &table.rows {
        debug_assert_eq!(
            row.kind,
            RowKind::Ours,
            "tables of views are written by `view`"
        );
        let cells = row.cells.iter().map(|cell| {
            let separator = if cell.detail.is_empty() { "" } else { " " };
            format!("{}{separator}{}", cell.text, cell.detail)
        });
        writer.write_record(std::iter::once(row.heading.0.clone()).chain(cells))?;
    }
    writer
        .flush()
        .with_context(|| format!("write {}", path.display()))
}

fn create(path: &Path) -> Result<Writer<std::fs::File>> {
    Writer::from_path(path).with_context(|| format!("create {}", path.display()))
}

fn knobs(knobs: &Knobs) -> String {
    let pairs: Vec<String> = knobs
        .iter()
        .map(|(knob, value)| format!("{knob}={value}"))
        .collect();
    pairs.join(";")
}

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Unchecked => "unchecked",
        Verdict::Right => "right",
        Verdict::Wrong(_) => "wrong",
        Verdict::Cannot(_) => "cannot",
        Verdict::Failed(_) => "failed",
    }
}

/// Figure, low, high, repetitions, second figure, state, note.
fn fields(cell: &Cell) -> [String; 7] {
    let none = String::new;
    let without = |state: &str, note: &str| {
        [
            none(),
            none(),
            none(),
            none(),
            none(),
            state.to_owned(),
            note.to_owned(),
        ]
    };
    match &cell.state {
        State::Value(summary) => [
            summary.median.to_string(),
            summary.low.to_string(),
            summary.high.to_string(),
            summary.n().to_string(),
            cell.second.map_or_else(none, |second| second.to_string()),
            "measured".to_owned(),
            none(),
        ],
        State::Wrong(why) => without("wrong", why),
        State::Cannot(why) => without("cannot", why),
        State::Failed(why) => without("failed", why),
        State::Missing => without("not run", ""),
        State::Empty => without("", ""),
    }
}
