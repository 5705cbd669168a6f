//! The cost of late rows in standard set S: writing, a full aggregate, and what compaction writes.

mod asked;

pub(super) use asked::study as asked;

use super::parts::{
    aggregates, ask, knobs, latencies, observe, pick, question, size, speed, step, tuning, view,
    write,
};
use crate::generate::{Delay, SourceSpec};
use crate::question::{Aggregate, Question, Select};
use crate::study::{
    Comparison, FigureBound, Plan, ReportView, Rule, Scale, Setup, StepAction, Study,
};
use crate::target::Tuning;

/// Fields of the table `s`.
const TEMPERATURE: usize = 0;
const HUMIDITY: usize = 1;

/// The source of the bounds.
const AIM: &str = "the aim of Marigram's storage engine";

/// The study of the cost of late rows.
pub(super) fn study() -> Study {
    Study {
        name: "late",
        title: "Late rows cost what rows in order cost",
        about: "Standard set S with 0 to 100 % of its rows late, by up to half of the data: writing, \
                and an aggregate of everything before compaction and after. (Where all are late, \
                nearly each row still has a later one before it.) Below paper scale memtables are \
                small, so that rows are late for what was flushed.",
        source: "Not published: the promise that late rows cost about what rows in order cost, on \
                 write and on read.",
        plan,
    }
}

/// The study of what compaction writes.
pub(super) fn amplification() -> Study {
    Study {
        name: "amplification",
        title: "Write amplification",
        about: "Bytes that flushes and compactions write, for each byte that flushes write: when a \
                tenth of the rows of standard set S comes late by up to half of the data, when \
                writing ends and after everything settled.",
        source: "Not published: a bound that Marigram sets itself.",
        plan: plan_amplification,
    }
}

/// The set with this fraction of its rows late.
fn source(devices: usize, rows: usize, percent: u32) -> SourceSpec {
    let delay = Delay {
        ratio: f64::from(percent) / 100.0,
        steps_max: (rows / 2) as u32,
    };
    SourceSpec::LateSetS {
        devices,
        rows,
        delay,
    }
}

/// The size of memtables, small enough to be flushed several times while the set is written.
fn small_memtables(scale: Scale) -> Tuning {
    let flush = pick(scale, ["16KiB", "256KiB", "2MiB", ""]);
    tuning(&[], &[("flush_size", flush)])
}

/// Devices, and rows of each.
fn devices_and_rows(scale: Scale) -> (usize, usize) {
    pick(scale, [(20, 100), (100, 1000), (500, 2000), (1000, 10_000)])
}

fn plan(scale: Scale) -> Plan {
    let percents = pick(
        scale,
        [
            &[0, 30, 100][..],
            &[0, 10, 30, 50, 100],
            &[0, 10, 30, 50, 100],
            &[0, 10, 30, 50, 100],
        ],
    );
    let (devices, rows) = devices_and_rows(scale);
    let setup = |percent: &u32| {
        let phase = |phase: &str, act| {
            let varied = knobs([
                ("phase", phase.to_owned()),
                ("late_pct", percent.to_string()),
            ]);
            step(varied, act)
        };
        Setup {
            name: format!("late-{percent}"),
            source: source(devices, rows, *percent),
            tuning: small_memtables(scale),
            steps: vec![
                phase("write", StepAction::Write(write(2, 5000))),
                phase("before", StepAction::Ask(ask(scale, questions()))),
                phase("settle", StepAction::Settle),
                phase("after", StepAction::Ask(ask(scale, questions()))),
                phase("size", StepAction::Size),
            ],
        }
    };
    Plan {
        setups: percents.iter().map(setup).collect(),
        views: views(),
        rules: rules(percents),
        marigram_only: true,
    }
}

/// Of everything.
fn questions() -> Vec<Question> {
    let whole = |field| Select::all(0, aggregates(&[Aggregate::Count, Aggregate::Avg], field));
    vec![
        question("avg t", whole(TEMPERATURE)),
        question("avg h", whole(HUMIDITY)),
    ]
}

fn views() -> Vec<ReportView> {
    let only = |phase: &str| knobs([("phase", phase.to_owned())]);
    vec![
        ReportView {
            only: only("write"),
            ..speed("Writing", "late_pct")
        },
        ReportView {
            only: only("before"),
            ..latencies("Aggregate of everything, before compaction", "late_pct")
        },
        ReportView {
            only: only("after"),
            ..latencies("Aggregate of everything, after compaction", "late_pct")
        },
        ReportView {
            only: only("size"),
            ..view("Size", "bytes_per_row", "bytes a row", "late_pct")
        },
    ]
}

fn rules(percents: &[u32]) -> Vec<Rule> {
    let of = |phase: &str, percent: u32| {
        knobs([
            ("phase", phase.to_owned()),
            ("late_pct", percent.to_string()),
        ])
    };
    let in_order = || Comparison::Result(knobs([("late_pct", "0".to_owned())]));
    let mut rules = Vec::new();
    for percent in [50, 100] {
        if percents.contains(&percent) {
            rules.push(Rule {
                says: format!(
                    "With {percent} % late rows writing is at least 0.9 × as fast as in order"
                ),
                source: AIM.to_owned(),
                figure: "rows_per_s".to_owned(),
                of: of("write", percent),
                with: in_order(),
                bound: FigureBound::AtLeast(0.9),
            });
        }
    }
    for (phase, words, most) in [("before", "before", 1.5), ("after", "after", 1.05)] {
        rules.push(Rule {
            says: format!(
                "An aggregate of everything takes at most {most} × as long on data that are 30 % \
                 late, {words} compaction, as on ordered data"
            ),
            source: AIM.to_owned(),
            figure: "latency_ms".to_owned(),
            of: of(phase, 30),
            with: in_order(),
            bound: FigureBound::AtMost(most),
        });
    }
    rules
}

fn plan_amplification(scale: Scale) -> Plan {
    let devices = pick(scale, [20, 100, 500, 10_000]);
    let rows = pick(scale, [100, 1000, 2000, 10_000]);
    let phase = |phase: &str, act| {
        let varied = knobs([("phase", phase.to_owned()), ("set", size(devices, rows))]);
        step(varied, act)
    };
    let amplification = |title: &str, phase: &str| ReportView {
        only: knobs([("phase", phase.to_owned())]),
        second: Some(("segments".to_owned(), "segments".to_owned())),
        ..view(title, "write_amplification", "× what was flushed", "set")
    };
    Plan {
        setups: vec![Setup {
            name: "late-10".to_owned(),
            source: source(devices, rows, 10),
            tuning: small_memtables(scale),
            steps: vec![
                phase("write", StepAction::Write(write(2, 5000))),
                phase("left", observe()),
                phase("settle", StepAction::Settle),
                phase("settled", observe()),
                phase("size", StepAction::Size),
            ],
        }],
        views: vec![
            amplification("When writing ends", "left"),
            amplification("After everything settled", "settled"),
            ReportView {
                only: knobs([("phase", "write".to_owned())]),
                ..speed("Writing", "set")
            },
        ],
        rules: vec![Rule {
            says: "Flushes and compactions together write at most 4 × what flushes write"
                .to_owned(),
            source: AIM.to_owned(),
            figure: "write_amplification".to_owned(),
            of: knobs([("phase", "settled".to_owned())]),
            with: Comparison::Itself(1.0),
            bound: FigureBound::AtMost(4.0),
        }],
        marigram_only: true,
    }
}
