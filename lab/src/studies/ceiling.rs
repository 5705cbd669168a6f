//! Whether memory stays below its limit under a mixed load.

use super::parts::{
    MINUTE_NS, aggregates, ask, knobs, observe, pick, question, speed, step, totals_by, tuning,
    view, write,
};
use crate::generate::SourceSpec;
use crate::question::{Aggregate, Question, Select};
use crate::study::{
    AskStep, Comparison, FigureBound, Plan, ReportView, Rule, Scale, Setup, StepAction, Study,
};

/// Columns of the table `s`.
const DEVGROUP: usize = 2;
const TEMPERATURE: usize = 0;
const HUMIDITY: usize = 1;

/// The study.
pub(super) fn study() -> Study {
    Study {
        name: "ceiling",
        title: "The memory ceiling",
        about: "Standard set S is written while four aggregates of everything are asked in a loop, on \
                a server that is told to stay within a limit of memory: resident memory at its \
                largest, as the kernel saw it. Afterwards all rows are counted. The limit is 512 MB \
                at paper scale; smaller ones are nearer to what a server needs that holds nothing.",
        source: "Not published: the promise of one hard ceiling over writing, questions, compaction \
                 and recovery.",
        plan,
    }
}

fn plan(scale: Scale) -> Plan {
    let devices = pick(scale, [20, 100, 1000, 10_000]);
    let rows = pick(scale, [100, 1000, 1000, 10_000]);
    let limit_mb: u32 = pick(scale, [128, 128, 128, 512]);
    let phase = |phase: &str, act| {
        let varied = knobs([
            ("phase", phase.to_owned()),
            ("limit_mb", limit_mb.to_string()),
        ]);
        step(varied, act)
    };
    let together = StepAction::Mixed {
        write: write(2, 5000),
        ask: AskStep {
            // The asking ends with the writing.
            times: 1_000_000,
            time_max: None,
            ..ask(scale, questions())
        },
    };
    let counted = Select::all(
        0,
        aggregates(&[Aggregate::Count, Aggregate::Sum], TEMPERATURE),
    );
    let steps = vec![
        phase("together", together),
        phase("held", observe()),
        phase("settle", StepAction::Settle),
        phase(
            "count",
            StepAction::Ask(ask(scale, vec![question("count", counted)])),
        ),
        phase("settled", observe()),
    ];
    let limit = f64::from(limit_mb) * 1e6;
    Plan {
        setups: vec![Setup {
            name: "ceiling".to_owned(),
            source: SourceSpec::SetS { devices, rows },
            tuning: tuning(&[], &[("memory_limit", &format!("{limit_mb}MB"))]),
            steps,
        }],
        views: views(limit),
        rules: vec![Rule {
            says: "Resident memory is at most 1.1 × the limit at all times".to_owned(),
            source:
                "the aim of Marigram's storage engine, for a limit of 512 MB and 100 million rows"
                    .to_owned(),
            figure: "rss_peak_bytes".to_owned(),
            of: knobs([("phase", "settled".to_owned())]),
            with: Comparison::Itself(1.0 / limit),
            bound: FigureBound::AtMost(1.1),
        }],
        marigram_only: true,
    }
}

/// Aggregates of everything.
fn questions() -> Vec<Question> {
    let of = |field| Select::all(0, aggregates(&[Aggregate::Avg], field));
    let by_group = totals_by(DEVGROUP, TEMPERATURE);
    let by_minute = Select {
        bucket_ns: Some(MINUTE_NS),
        ..by_group.clone()
    };
    vec![
        question("avg t", of(TEMPERATURE)),
        question("avg h", of(HUMIDITY)),
        question("Q3 by group", by_group),
        question("Q4 by group, minute", by_minute),
    ]
}

fn views(limit: f64) -> Vec<ReportView> {
    let side = |side: &str| knobs([("phase", "together".to_owned()), ("side", side.to_owned())]);
    let peak = |title: &str, phase: &str| ReportView {
        scale: 1.0 / limit,
        only: knobs([("phase", phase.to_owned())]),
        ..view(title, "rss_peak_bytes", "× the limit", "limit_mb")
    };
    vec![
        peak("Resident memory at its largest, when writing ends", "held"),
        peak("The same after everything settled", "settled"),
        ReportView {
            only: side("write"),
            ..speed("Rows written", "limit_mb")
        },
        ReportView {
            only: knobs([("phase", "count".to_owned())]),
            ..view("All rows counted", "latency_ms", "ms", "limit_mb")
        },
    ]
}
