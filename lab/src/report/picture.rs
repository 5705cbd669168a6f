//! The plot of a panel.

use super::document::Plot;
use super::names::look;
use super::plot::{self, Chart, Point, Series, X};
use super::series::{ArrangedView, Panel, State, TargetRow, numbers};
use anyhow::Result;

/// The plot of `panel`: lines if the x knob is a number with several values, otherwise bars. `None` if
/// nothing was measured. `name` is the name of its file; `targets` are all targets of the report.
pub(super) fn picture(
    name: &str,
    arranged: &ArrangedView,
    panel: &Panel,
    targets: &[String],
) -> Result<Option<Plot>> {
    let view = arranged.view;
    // Only the table shows values of x that only publications have.
    let measured = |at: &usize| {
        panel
            .rows
            .iter()
            .any(|row| row.cells[*at].value().is_some())
    };
    let shown: Vec<usize> = (0..panel.xs.len()).filter(measured).collect();
    if shown.is_empty() {
        return Ok(None);
    }
    let names: Vec<String> = shown.iter().map(|at| panel.xs[*at].clone()).collect();
    let settings = numbers(names.iter().map(String::as_str)).filter(|numbers| numbers.len() > 1);
    let place = |index: usize| {
        settings
            .as_ref()
            .map_or(index as f64, |numbers| numbers[index])
    };
    let places = || {
        shown
            .iter()
            .enumerate()
            .map(|(index, at)| (place(index), *at))
    };
    let rows = panel.rows.iter();
    let series = rows
        .filter_map(|row| series(row, targets, places()))
        .collect();
    let chart = Chart {
        x_label: view.x.replace('_', " "),
        y_label: view.unit.clone(),
        second_label: view.second.as_ref().map(|(_, unit)| unit.clone()),
        log: view.log,
        x: match &settings {
            Some(numbers) => X::Settings(numbers.iter().copied().zip(names).collect()),
            None => X::Names(names),
        },
        series,
        marks: true,
    };
    let svg = if settings.is_some() {
        plot::lines(&chart)?
    } else {
        plot::bars(&chart)?
    };
    let of = panel.split.as_deref();
    Ok(Some(Plot {
        name: name.to_owned(),
        alt: format!(
            "{}{}: {} by {}",
            view.title,
            of.map_or(String::new(), |split| format!(", {split}")),
            view.figure.replace('_', " "),
            view.x
        ),
        svg,
    }))
}

/// The line or the bars of a row, from its cells at `places` (x, index); `None` if there is nothing to
/// draw.
fn series(
    row: &TargetRow,
    targets: &[String],
    places: impl Iterator<Item = (f64, usize)>,
) -> Option<Series> {
    let mut line = Series {
        label: row.label.clone(),
        look: look(targets, &row.target),
        points: Vec::new(),
        second: Vec::new(),
        wrong: Vec::new(),
    };
    for (x, at) in places {
        let cell = &row.cells[at];
        if let Some(summary) = cell.value() {
            line.points.push(Point {
                x,
                y: summary.median,
                low: summary.low,
                high: summary.high,
            });
        }
        line.second.extend(cell.second.map(|second| (x, second)));
        if matches!(cell.state, State::Wrong(_) | State::Failed(_)) {
            line.wrong.push(x);
        }
    }
    let is_empty = line.points.is_empty() && line.wrong.is_empty();
    (!is_empty).then_some(line)
}
