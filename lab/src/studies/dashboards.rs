//! Questions of dashboards on standard set S: by many clients at once, and with nothing in memory.

use super::parts::{ask, knobs, latencies, limit, pick, size, step, view, write};
use super::set_s;
use crate::generate::SourceSpec;
use crate::question::Question;
use crate::study::{AskStep, Plan, ReportView, Scale, Setup, Step, StepAction, Study};
use crate::target::Tuning;

/// The questions of dashboards, by their names in the set.
const LOOKED_AT: [&str; 5] = ["avg t", "Q3 by group", "Q5 last", "Q6 raw", "Q6 by minute"];

/// The study of many clients.
pub(super) fn study() -> Study {
    Study {
        name: "dashboards",
        title: "Dashboards of many people",
        about: "1 to 16 clients ask a mixture of questions about standard set S at once, each in an \
                order of its own: the mean of everything, counts, sums and means by group, the last \
                row of every device, an hour of a device raw and by minute. Questions a second, \
                and the latencies of each question: none should starve among the others.",
        source: "Not published: what a wall of dashboards asks of a database.",
        plan: plan_many,
    }
}

/// The study of questions with nothing in memory.
pub(super) fn cold() -> Study {
    Study {
        name: "cold",
        title: "Questions with nothing in memory",
        about: "Each question once after a restart, with the target's files dropped from the page \
                cache: latency, and bytes that are read from the disk. (Files that a target keeps \
                mapped stay in memory; a target that runs in the client's process is not restarted.)",
        source: "Not published: the first look in the morning, and data larger than memory.",
        plan: plan_cold,
    }
}

fn set(scale: Scale) -> (usize, usize) {
    let devices = pick(scale, [20, 100, 1000, 1000]);
    (devices, pick(scale, [100, 1000, 1000, 10_000]))
}

/// Loads the set, then executes `more`.
fn plan(scale: Scale, more: Vec<Step>, views: Vec<ReportView>) -> Plan {
    let (devices, rows) = set(scale);
    let phase = |phase: &str, act| step(knobs([("phase", phase.to_owned())]), act);
    let mut steps = vec![
        phase("load", StepAction::Write(write(2, 5000))),
        phase("settle", StepAction::Settle),
    ];
    steps.extend(more);
    Plan {
        setups: vec![Setup {
            name: "main".to_owned(),
            source: SourceSpec::SetS { devices, rows },
            steps,
            tuning: Tuning::default(),
        }],
        views,
        ..Plan::default()
    }
}

fn plan_many(scale: Scale) -> Plan {
    let (devices, rows) = set(scale);
    let looked_at = |question: &Question| LOOKED_AT.contains(&question.name.as_str());
    let mut questions = set_s::questions(devices, rows);
    questions.retain(looked_at);
    let clients = pick(scale, [&[2][..], &[1, 4], &[1, 4, 16], &[1, 4, 16]]);
    let mix = |clients: &usize| {
        let varied = knobs([
            ("phase", "ask".to_owned()),
            ("clients", clients.to_string()),
        ]);
        let asked = AskStep {
            clients: *clients,
            times: pick(scale, [1, 1_000_000, 1_000_000, 1_000_000]),
            time_max: limit(scale, [10, 300, 2000, 10_000]),
            ..ask(scale, questions.clone())
        };
        step(varied, StepAction::Mix(asked))
    };
    let all = knobs([("phase", "ask".to_owned()), ("question", "all".to_owned())]);
    let each = knobs([("phase", "ask".to_owned())]);
    let views = vec![
        ReportView {
            only: all,
            more_is_better: true,
            ..view(
                "Questions a second",
                "asked_per_s",
                "questions/s",
                "clients",
            )
        },
        ReportView {
            only: each.clone(),
            ..latencies("Median latency", "clients")
        },
        ReportView {
            only: each,
            split: Some("question".to_owned()),
            ..view("99 of 100 are faster than", "p99_ms", "ms", "clients")
        },
    ];
    plan(scale, clients.iter().map(mix).collect(), views)
}

fn plan_cold(scale: Scale) -> Plan {
    let (devices, rows) = set(scale);
    let phase = |phase: &str, act| {
        let varied = knobs([("phase", phase.to_owned()), ("set", size(devices, rows))]);
        step(varied, act)
    };
    let asked = ask(scale, set_s::questions(devices, rows));
    let steps = vec![
        phase("size", StepAction::Size),
        phase("cold", StepAction::Cold(asked)),
    ];
    let only = || knobs([("phase", "cold".to_owned())]);
    let views = vec![
        ReportView {
            only: only(),
            log: true,
            ..view("Latency", "latency_ms", "ms", "question")
        },
        ReportView {
            only: only(),
            log: true,
            scale: 1.0 / 1024.0,
            ..view("Read from the disk", "read_bytes", "KiB", "question")
        },
        ReportView {
            only: knobs([("phase", "size".to_owned())]),
            scale: 1.0 / 1024.0,
            ..view("Size on disk", "disk_bytes", "KiB", "set")
        },
    ];
    plan(scale, steps, views)
}
