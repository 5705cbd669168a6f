//! Panels from results that do not fit a simple grid.

use super::{ArrangedView, State, arrange};
use crate::record::{RunResult, StepResult, Verdict};
use crate::report::load::{FinishedRun, StudyRuns};
use crate::report::tests::fixture::{Fixture, knobs, plan};
use crate::study::ReportView;
use std::collections::BTreeMap;
use std::path::PathBuf;

fn step(pairs: &[(&str, &str)], value: Option<f64>) -> StepResult {
    let figures = value.map(|value| ("cost".to_owned(), value));
    StepResult {
        knobs: knobs(pairs),
        figures: BTreeMap::from_iter(figures),
        ..StepResult::default()
    }
}

/// The cells of `steps`, each measured once by `http` and `questdb`.
fn shown(ours: Vec<StepResult>, theirs: Vec<StepResult>, check: impl Fn(ArrangedView)) {
    let fixture = Fixture::new(&[("http", 1.0), ("questdb", 1.0)], 1);
    let mut results: Vec<RunResult> = fixture.results;
    (results[0].steps, results[1].steps) = (ours, theirs);
    let run = |result| FinishedRun {
        result,
        folder: PathBuf::new(),
    };
    let study = StudyRuns {
        name: "odd".to_owned(),
        title: String::new(),
        about: String::new(),
        source: String::new(),
        plan: plan(),
        runs: results.into_iter().map(run).collect(),
        missing: Vec::new(),
    };
    let view = ReportView {
        figure: "cost".to_owned(),
        x: "x".to_owned(),
        split: None,
        ..plan().views.swap_remove(0)
    };
    check(arrange(&fixture.configuration, &study, &view));
}

#[test]
fn knobs_that_the_view_does_not_name_make_rows_of_their_own() {
    let steps = || {
        let mut steps = Vec::new();
        for (x, kind, rows) in [("b", "long", "2"), ("b", "short", "2"), ("a", "long", "1")] {
            steps.push(step(&[("x", x), ("kind", kind), ("rows", rows)], Some(1.0)));
        }
        steps
    };
    shown(steps(), steps(), |arranged| {
        let panel = &arranged.panels[0];
        assert_eq!(panel.xs, ["b", "a"], "names stay in the order of the study");
        let labels: Vec<&str> = panel.rows.iter().map(|row| row.label.as_str()).collect();
        // `rows` follows from `x`, so it adds nothing.
        let expected = [
            "Marigram http · kind long",
            "Marigram http · kind short",
            "questdb · kind long",
            "questdb · kind short",
        ];
        assert_eq!(labels, expected);
    });
}

#[test]
fn targets_may_have_been_measured_at_other_values() {
    let at = |x: &str, value: f64| step(&[("x", x)], Some(value));
    let ours = vec![at("1000", 1.0), at("20", 2.0)];
    let theirs = vec![at("300", 3.0), step(&[("y", "1")], Some(9.0))];
    shown(ours, theirs, |arranged| {
        let panel = &arranged.panels[0];
        assert_eq!(panel.xs, ["20", "300", "1000"], "numbers are sorted");
        let empty = |row: usize| {
            let cells = panel.rows[row].cells.iter();
            cells
                .map(|cell| cell.state == State::Empty)
                .collect::<Vec<bool>>()
        };
        assert_eq!(empty(0), [false, true, false]);
        assert_eq!(empty(1), [true, false, true]);
    });
}

#[test]
fn a_step_that_failed_is_shown_where_others_have_the_figure() {
    let mut failing = step(&[("x", "1")], None);
    failing.verdict = Verdict::Failed("out of memory".to_owned());
    shown(
        vec![step(&[("x", "1")], Some(1.0))],
        vec![failing],
        |arranged| {
            let cell = &arranged.panels[0].rows[1].cells[0];
            assert_eq!(cell.state, State::Failed("out of memory".to_owned()));
        },
    );
}
