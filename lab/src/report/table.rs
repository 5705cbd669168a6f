//! The table of a panel, in the form of the published ones: one row per target, one column per
//! value of the knob.

use super::document::{CellMark, RowKind, Table, TableCell, TableRow, put};
use super::number::plain;
use super::series::{ArrangedView, Cell, Panel, State, TargetRow, published};
use super::statistics::{Judgement, Summary, judge};
use crate::study::ReportView;

/// A target's figure above this fraction of the null target's figure is limited by the client.
const CLIENT_LIMITS: f64 = 0.7;

/// The table of `panel`; `name` is that of its file.
#[must_use]
pub(super) fn table(name: &str, arranged: &ArrangedView, panel: &Panel) -> Table {
    let view = arranged.view;
    let mut table = Table {
        name: name.to_owned(),
        caption: caption(view, panel),
        ..Table::default()
    };
    table.head.push(view.x.replace('_', " "));
    table.head.push("acknowledged after".to_owned());
    table.head.extend(panel.xs.iter().cloned());

    let best: Vec<Option<&Summary>> = (0..panel.xs.len())
        .map(|at| best(view, panel, at))
        .collect();
    for row in &panel.rows {
        let mut cells = vec![TableCell::plain(row.acknowledged_after)];
        for (at, cell) in row.cells.iter().enumerate() {
            let null = panel.null.as_ref().and_then(|null| null.cells[at].value());
            cells.push(show(&mut table, view, cell, best[at], null));
        }
        table.push(row.label.clone(), cells);
    }
    if let Some(null) = &panel.null {
        let row = client_row(&mut table, view, null);
        table.rows.push(row);
    }
    for published in published(view, panel.split.as_deref()) {
        let note = table.note(format!("Published, other hardware: {}.", published.source));
        let figure = |x: &String| {
            let mut points = published.points.iter();
            let found = points.find(|(own, _)| own == x);
            TableCell::plain(found.map_or("–".to_owned(), |(_, figure)| plain(*figure)))
        };
        table.rows.push(TableRow {
            kind: RowKind::Published,
            heading: (format!("{} (published)", published.system), Some(note)),
            cells: std::iter::once(TableCell::default())
                .chain(panel.xs.iter().map(figure))
                .collect(),
        });
    }
    table
}

/// The best figure at value number `at` of the x knob.
pub(super) fn best<'a>(view: &ReportView, panel: &'a Panel, at: usize) -> Option<&'a Summary> {
    let values = panel.rows.iter().filter_map(|row| row.cells[at].value());
    let sign = if view.more_is_better { 1.0 } else { -1.0 };
    values.max_by(|a, b| (a.median * sign).total_cmp(&(b.median * sign)))
}

fn caption(view: &ReportView, panel: &Panel) -> String {
    let rows = panel.rows.iter().chain(&panel.null);
    let summaries = rows.flat_map(|row| row.cells.iter().filter_map(Cell::value));
    let (mut fewest, mut most, mut coverage) = (usize::MAX, 0, 1.0_f64);
    for summary in summaries {
        fewest = fewest.min(summary.n());
        most = most.max(summary.n());
        if summary.n() > 1 {
            coverage = coverage.min(summary.coverage);
        }
    }
    let second = view
        .second
        .as_ref()
        .map_or(String::new(), |(figure, unit)| {
            format!(" After the dot: {} ({unit}).", figure.replace('_', " "))
        });
    let unit = if view.unit.is_empty() {
        capital(&view.figure.replace('_', " "))
    } else {
        format!("In {}", view.unit)
    };
    let better = if view.more_is_better {
        "more is better"
    } else {
        "less is better"
    };
    let measured = match most {
        0 => "Nothing was measured.".to_owned(),
        1 => "Measured once, so there is no interval.".to_owned(),
        _ => {
            let n = if fewest == most {
                most.to_string()
            } else {
                format!("{fewest} to {most}")
            };
            format!(
                "Median of {n} repetitions; in brackets the interval that holds the true median \
                 with a probability of at least {:.1} %.",
                coverage * 100.0
            )
        }
    };
    format!("{unit}; {better}. {measured}{second}")
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

fn show(
    table: &mut Table,
    view: &ReportView,
    cell: &Cell,
    best: Option<&Summary>,
    null: Option<&Summary>,
) -> TableCell {
    let mut word = |text: &str, mark: CellMark, why: Option<String>| TableCell {
        text: text.to_owned(),
        detail: String::new(),
        mark,
        note: why.map(|why| table.note(why)),
    };
    let summary = match &cell.state {
        State::Value(summary) => summary,
        State::Wrong(why) => {
            return word(
                "wrong",
                CellMark::Wrong,
                Some(format!("Wrong answer: {why}.")),
            );
        }
        State::Failed(why) => {
            return word("failed", CellMark::Wrong, Some(format!("Failed: {why}.")));
        }
        State::Cannot(why) => {
            return word("cannot", CellMark::Absent, Some(format!("Cannot: {why}.")));
        }
        State::Missing => return word("not run", CellMark::Absent, None),
        State::Empty => return word("–", CellMark::Absent, None),
    };
    let is_best = best.is_some_and(|best| {
        best.median == summary.median || matches!(judge(summary, best), Judgement::Noise)
    });
    let mut why = Vec::new();
    if cell.lost > 0 {
        why.push(format!(
            "{} of {} repetitions failed or were not made.",
            cell.lost,
            cell.lost + summary.n()
        ));
    }
    if null.is_some_and(|null| client_limits(view, summary, null)) {
        let why_so = if view.more_is_better {
            "it is more than 70 % of what the client reaches without a server (last row of ours)"
        } else {
            "more than 70 % of it is the client’s own cost (last row of ours)"
        };
        why.push(format!("The client limits this figure: {why_so}."));
    }
    TableCell {
        text: plain(summary.median),
        detail: detail(cell, summary),
        mark: if is_best {
            CellMark::Best
        } else {
            CellMark::None
        },
        note: (!why.is_empty()).then(|| table.note(why.join(" "))),
    }
}

fn detail(cell: &Cell, summary: &Summary) -> String {
    let mut detail = String::new();
    if summary.n() > 1 {
        detail = format!("({}–{})", plain(summary.low), plain(summary.high));
    }
    if let Some(second) = cell.second {
        let space = if detail.is_empty() { "" } else { " " };
        put(&mut detail, format_args!("{space}· {}", plain(second)));
    }
    detail
}

/// Whether `ours` is so close to the client's own limit that it measures the client.
#[must_use]
pub(super) fn client_limits(view: &ReportView, ours: &Summary, null: &Summary) -> bool {
    let rate = view.figure.ends_with("_per_s");
    let time = view.figure.ends_with("_ms") && view.figure != "restart_ms";
    if !(rate || time) || ours.median <= 0.0 || null.median <= 0.0 {
        return false;
    }
    let part = if view.more_is_better {
        ours.median / null.median
    } else {
        null.median / ours.median
    };
    part > CLIENT_LIMITS
}

fn client_row(table: &mut Table, view: &ReportView, null: &TargetRow) -> TableRow {
    let note = table.note(
        "What the client costs itself: the null target takes every request and does nothing. \
         In brackets, where rows are written: its processor time for a row. It is not ranked."
            .to_owned(),
    );
    let cells = null.cells.iter().map(|cell| {
        let Some(summary) = cell.value() else {
            return TableCell::plain("–");
        };
        let cost = cell.client_us_per_row.filter(|_| view.more_is_better);
        TableCell {
            text: plain(summary.median),
            detail: cost.map_or(String::new(), |us| format!("({} µs)", plain(us))),
            ..TableCell::default()
        }
    });
    TableRow {
        kind: RowKind::Client,
        heading: ("client’s own cost".to_owned(), Some(note)),
        cells: std::iter::once(TableCell::default()).chain(cells).collect(),
    }
}
