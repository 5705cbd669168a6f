//! Writing and dashboards at the same time.

use super::parts::{
    MINUTE_NS, SET_S_START_NS, ask, knobs, latencies, limit, pick, question, speed, step, view,
    write,
};
use crate::data::SECOND_NS;
use crate::generate::SourceSpec;
use crate::question::{Aggregate, Devices, Question, Select, Selection};
use crate::study::{AskStep, Plan, ReportView, Scale, Setup, StepAction, Study, Write};
use crate::target::Tuning;

/// Columns of the table `s`.
const DEVGROUP: usize = 2;
const TEMPERATURE: usize = 0;
const HUMIDITY: usize = 1;

/// Rows per request.
const BATCH_ROWS: usize = 1000;

/// The study.
pub(super) fn study() -> Study {
    Study {
        name: "mixed",
        title: "Writing and dashboards together",
        about: "Writers keep a pace, and dashboards ask about the table that grows meanwhile: last \
                values of all devices, an hour of a group by minute, all groups. Pace 0 is the \
                table at rest.",
        source: "Not published: a fleet is watched while it sends.",
        plan,
    }
}

fn plan(scale: Scale) -> Plan {
    let devices = pick(scale, [20, 100, 1000, 1000]);
    let rows = pick(scale, [100, 1000, 1000, 10_000]);
    let paces = pick(
        scale,
        [
            &[2000][..],
            &[20_000, 50_000, 100_000],
            &[20_000, 50_000, 100_000, 200_000],
            &[50_000, 100_000, 200_000, 500_000, 1_000_000],
        ],
    );
    let time = limit(scale, [20, 300, 1500, 60_000]);
    let seconds = time.map_or(0.0, |time| time.as_secs_f64());
    let varied = |phase: &str, pace: u64| {
        knobs([
            ("phase", phase.to_owned()),
            ("pace_rows_per_s", pace.to_string()),
        ])
    };
    // The table at rest is as large as the final table of the middle pace.
    let middle = paces[paces.len() / 2];
    let rest = Write {
        rows_max: Some((middle as f64 * seconds) as u64),
        suffix: "_p0".to_owned(),
        ..write(2, BATCH_ROWS)
    };
    let asked = |suffix: &str, times: usize| AskStep {
        times,
        time_max: time,
        suffix: suffix.to_owned(),
        ..ask(scale, questions(devices, rows))
    };
    let mut at_rest = varied("together", 0);
    at_rest.insert("side".to_owned(), "ask".to_owned());
    let mut steps = vec![
        step(varied("load", 0), StepAction::Write(rest)),
        step(
            at_rest,
            StepAction::Ask(asked("_p0", pick(scale, [1, 10, 20, 100]))),
        ),
    ];
    for pace in paces {
        let suffix = format!("_p{pace}");
        let written = Write {
            time_max: time,
            rows_per_s: Some(*pace as f64),
            suffix: suffix.clone(),
            ..write(2, BATCH_ROWS)
        };
        let together = StepAction::Mixed {
            write: written,
            // The asking ends with the writing.
            ask: asked(&suffix, 100_000),
        };
        steps.push(step(varied("together", *pace), together));
    }
    Plan {
        setups: vec![Setup {
            name: "mixed".to_owned(),
            source: SourceSpec::SetS { devices, rows },
            steps,
            tuning: Tuning::default(),
        }],
        views: views(),
        ..Plan::default()
    }
}

fn questions(devices: usize, rows: usize) -> Vec<Question> {
    let last = Select::all(0, Selection::Last(vec![TEMPERATURE, HUMIDITY]));
    let group = (devices / 2).min(50).to_string();
    let hour = Select {
        devices: Devices::In(DEVGROUP, vec![group]),
        from_ns: Some(SET_S_START_NS),
        to_ns: Some(SET_S_START_NS + rows.min(3600) as i64 * SECOND_NS),
        bucket_ns: Some(MINUTE_NS),
        ..Select::all(
            0,
            Selection::Aggregates(vec![
                (Aggregate::Avg, TEMPERATURE),
                (Aggregate::Max, TEMPERATURE),
                (Aggregate::Avg, HUMIDITY),
            ]),
        )
    };
    let groups = Select {
        by: vec![DEVGROUP],
        ..Select::all(
            0,
            Selection::Aggregates(vec![
                (Aggregate::Count, TEMPERATURE),
                (Aggregate::Avg, TEMPERATURE),
            ]),
        )
    };
    vec![
        question("last values", last),
        question("hour by minute", hour),
        question("groups", groups),
    ]
}

fn views() -> Vec<ReportView> {
    let side = |side: &str| knobs([("phase", "together".to_owned()), ("side", side.to_owned())]);
    vec![
        ReportView {
            only: side("ask"),
            ..latencies("Latency of a question", "pace_rows_per_s")
        },
        ReportView {
            only: side("write"),
            ..speed("Rows written", "pace_rows_per_s")
        },
        ReportView {
            only: side("write"),
            ..view("Latency of a write", "latency_ms", "ms", "pace_rows_per_s")
        },
    ]
}
