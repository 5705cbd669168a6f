//! The parts of plans, with their usual settings.

use crate::data::SECOND_NS;
use crate::question::{Aggregate, Question, Select, Selection};
use crate::study::{AskStep, Knobs, ReportView, Scale, Step, StepAction, Write};
use crate::target::{Options, Tuning};
use std::collections::BTreeMap;
use std::time::Duration;

/// First time of standard set S, 2024-01-01T00:00:00Z, nanoseconds.
pub(super) const SET_S_START_NS: i64 = 1_704_067_200 * SECOND_NS;
/// First time of IoT-Benchmark's data, 2022-01-01T00:00:00Z, nanoseconds.
pub(super) const IOT_START_NS: i64 = 1_640_995_200 * SECOND_NS;
/// One minute, nanoseconds.
pub(super) const MINUTE_NS: i64 = 60 * SECOND_NS;

/// The setting for `scale`, given those for tiny, small, medium and paper.
pub(super) fn pick<T>(scale: Scale, settings: [T; 4]) -> T {
    let [tiny, small, medium, paper] = settings;
    match scale {
        Scale::Tiny => tiny,
        Scale::Small => small,
        Scale::Medium => medium,
        Scale::Paper => paper,
    }
}

/// A limit on the time of a step, milliseconds by scale; 0 means no limit.
pub(super) fn limit(scale: Scale, milliseconds: [u64; 4]) -> Option<Duration> {
    match pick(scale, milliseconds) {
        0 => None,
        some => Some(Duration::from_millis(some)),
    }
}

/// Knobs out of names and values.
pub(super) fn knobs<const N: usize>(pairs: [(&str, String); N]) -> Knobs {
    let owned = |(name, value): (&str, String)| (name.to_owned(), value);
    pairs.into_iter().map(owned).collect()
}

/// A step.
pub(super) fn step(knobs: Knobs, act: StepAction) -> Step {
    Step { knobs, act }
}

/// Settings of tables and of the server, name and value; an empty value leaves the default.
pub(super) fn tuning(table: &[(&str, &str)], server: &[(&str, &str)]) -> Tuning {
    let options = |pairs: &[(&str, &str)]| -> Options {
        let set = pairs.iter().filter(|(_, value)| !value.is_empty());
        set.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    };
    Tuning {
        table: options(table),
        server: options(server),
    }
}

/// The target's memory and metrics, without figures that are known in advance.
pub(super) fn observe() -> StepAction {
    StepAction::Observe {
        known: BTreeMap::new(),
    }
}

/// Writes the whole source as fast as possible.
pub(super) fn write(clients: usize, batch_rows: usize) -> Write {
    Write {
        clients,
        batch_rows,
        rows_max: None,
        time_max: None,
        rows_per_s: None,
        suffix: String::new(),
    }
}

/// Asks `questions` as often and as long as the scale allows.
pub(super) fn ask(scale: Scale, questions: Vec<Question>) -> AskStep {
    AskStep {
        clients: 1,
        questions,
        times: pick(scale, [1, 5, 5, 20]),
        time_max: limit(scale, [10, 40, 300, 0]),
        suffix: String::new(),
    }
}

/// A question out of its name and what it selects.
pub(super) fn question(name: &str, select: Select) -> Question {
    Question {
        name: name.to_owned(),
        ask: crate::question::Ask::Select(select),
    }
}

/// These aggregates of one field.
pub(super) fn aggregates(functions: &[Aggregate], field: usize) -> Selection {
    Selection::Aggregates(
        functions
            .iter()
            .map(|function| (*function, field))
            .collect(),
    )
}

/// Count, sum and mean of a field over everything, for each value of a tag.
pub(super) fn totals_by(tag: usize, field: usize) -> Select {
    let functions = [Aggregate::Count, Aggregate::Sum, Aggregate::Avg];
    Select {
        by: vec![tag],
        ..Select::all(0, aggregates(&functions, field))
    }
}

/// A view of `figure` over the knob `x`, where less is better.
pub(super) fn view(title: &str, figure: &str, unit: &str, x: &str) -> ReportView {
    ReportView {
        title: title.to_owned(),
        figure: figure.to_owned(),
        unit: unit.to_owned(),
        scale: 1.0,
        more_is_better: false,
        x: x.to_owned(),
        split: None,
        only: Knobs::new(),
        second: None,
        log: false,
        published: Vec::new(),
    }
}

/// A view of rows per second over the knob `x`, in millions.
pub(super) fn speed(title: &str, x: &str) -> ReportView {
    ReportView {
        scale: 1e-6,
        more_is_better: true,
        ..view(title, "rows_per_s", "M rows/s", x)
    }
}

/// A view of the median latency of questions over the knob `x`, one plot per question.
pub(super) fn latencies(title: &str, x: &str) -> ReportView {
    ReportView {
        split: Some("question".to_owned()),
        ..view(title, "latency_ms", "ms", x)
    }
}

/// The size of a data set, for a knob: `1,000 × 10,000`.
pub(super) fn size(devices: usize, rows: usize) -> String {
    format!("{} × {}", thousands(devices), thousands(rows))
}

fn thousands(number: usize) -> String {
    match number / 1000 {
        0 => number.to_string(),
        rest => format!("{},{:03}", thousands(rest), number % 1000),
    }
}
