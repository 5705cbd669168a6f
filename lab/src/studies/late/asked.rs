//! The cost of late rows for questions before anything has merged them.

use super::{AIM, devices_and_rows, small_memtables, source};
use crate::studies::parts::{ask, knobs, latencies, step, write};
use crate::studies::set_s;
use crate::study::{
    Comparison, FigureBound, Plan, ReportView, Rule, Scale, Setup, StepAction, Study,
};

/// Late rows, %.
const PERCENT: u32 = 30;

/// The study of all questions of standard set S before late rows are merged.
pub(crate) fn study() -> Study {
    Study {
        name: "late-asked",
        title: "Late rows hardly slow questions down",
        about: "Standard set S in order, and with 30 % of its rows late by up to half of the data; all \
                rows are flushed, and nothing is ever merged (no background threads). Then the \
                questions of study set-s.",
        source: "Not published: the promise that late rows cost about what rows in order cost.",
        plan,
    }
}

fn plan(scale: Scale) -> Plan {
    let (devices, rows) = devices_and_rows(scale);
    let mut tuning = small_memtables(scale);
    let no_threads = ("background_threads".to_owned(), "0".to_owned());
    tuning.server.extend([no_threads]);
    let questions = set_s::questions(devices, rows);
    let mut names: Vec<String> = questions.iter().map(|asked| asked.name.clone()).collect();
    names.sort();
    names.dedup();
    let setup = |percent: u32| {
        let phase = |phase: &str, act| {
            let varied = knobs([
                ("phase", phase.to_owned()),
                ("late_pct", percent.to_string()),
            ]);
            step(varied, act)
        };
        Setup {
            name: format!("late-{percent}"),
            source: source(devices, rows, percent),
            tuning: tuning.clone(),
            steps: vec![
                phase("write", StepAction::Write(write(2, 5000))),
                phase("flush", StepAction::Flush),
                phase("ask", StepAction::Ask(ask(scale, questions.clone()))),
            ],
        }
    };
    let rule = |question: &String| Rule {
        says: format!("{question} takes at most 1.5 × as long with 30 % of the rows late"),
        source: AIM.to_owned(),
        figure: "latency_ms".to_owned(),
        of: knobs([
            ("late_pct", PERCENT.to_string()),
            ("question", question.clone()),
        ]),
        with: Comparison::Result(knobs([("late_pct", "0".to_owned())])),
        bound: FigureBound::AtMost(1.5),
    };
    Plan {
        setups: vec![setup(0), setup(PERCENT)],
        views: vec![ReportView {
            only: knobs([("phase", "ask".to_owned())]),
            log: true,
            ..latencies("Questions before compaction", "late_pct")
        }],
        rules: names.iter().map(rule).collect(),
        marigram_only: true,
    }
}
