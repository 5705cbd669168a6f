//! What the policies of compaction do with late rows.

use super::super::parts::{ask, knobs, latencies, observe, pick, step, tuning, view};
use super::questions::{Extent, Kind, questions};
use super::{QUERY_DEVICES, SENSORS, SOURCE_OF_SETTINGS, askers, data, load};
use crate::generate::{Delay, IotSpec, Late, SourceSpec};
use crate::study::{
    AskStep, Comparison, FigureBound, Plan, ReportView, Rule, Scale, Setup, StepAction, Study,
};

const POLICIES: [&str; 3] = ["balance", "inner_cross", "cross_inner"];

/// The study.
pub(super) fn study() -> Study {
    Study {
        name: "iot-compaction",
        title: "Policies of compaction",
        about: "Writing when 10, 50 or 90 % of the rows come late by up to a quarter of the data, \
                and what it leaves: segments, bytes that compaction wrote, and times of questions \
                before everything is compacted and after. Rows late by these delays repeat nothing. \
                Below paper scale memtables are small, so that there is something to compact.",
        source: SOURCE_OF_SETTINGS,
        plan,
    }
}

fn plan(scale: Scale) -> Plan {
    let ratios = pick(
        scale,
        [&[50][..], &[10, 50, 90], &[10, 50, 90], &[10, 50, 90]],
    );
    let policies = POLICIES.iter();
    Plan {
        setups: policies
            .flat_map(|policy| ratios.iter().map(|percent| setup(scale, policy, *percent)))
            .collect(),
        views: views(),
        rules: rules(),
        marigram_only: true,
    }
}

fn setup(scale: Scale, policy: &str, percent: u32) -> Setup {
    let rows: usize = pick(scale, [50, 500, 2500, 27_000]);
    let delay = Delay {
        ratio: f64::from(percent) / 100.0,
        steps_max: (rows / 4) as u32,
    };
    let spec = IotSpec {
        late: Late::Delayed(delay),
        fresh_values: true,
        ..data(pick(scale, [16, 16, 16, 100]), rows)
    };
    let varied = |phase: &str| {
        knobs([
            ("phase", phase.to_owned()),
            ("policy", policy.to_owned()),
            ("late_pct", percent.to_string()),
        ])
    };
    let extent = Extent {
        devices: QUERY_DEVICES,
        sensors: SENSORS,
        range_s: pick(scale, [8, 180, 900, 1800]),
    };
    let asked = || AskStep {
        clients: askers(scale),
        ..ask(
            scale,
            questions(&spec, extent, &[Kind::Range, Kind::Aggregate]),
        )
    };
    let steps = vec![
        step(varied("write"), StepAction::Write(load())),
        step(varied("before"), StepAction::Ask(asked())),
        step(varied("left"), observe()),
        step(varied("settle"), StepAction::Settle),
        step(varied("after"), StepAction::Ask(asked())),
        step(varied("settled"), observe()),
        step(varied("size"), StepAction::Size),
    ];
    let flush = pick(scale, ["16KiB", "256KiB", "1MiB", ""]);
    Setup {
        name: format!("{policy}-{percent}"),
        source: SourceSpec::Iot(spec),
        tuning: tuning(&[], &[("compaction", policy), ("flush_size", flush)]),
        steps,
    }
}

fn views() -> Vec<ReportView> {
    let only = |phase: &str| knobs([("phase", phase.to_owned())]);
    let by_late = Some("late_pct".to_owned());
    let told = |title: &str, figure: &str, unit: &str, phase: &str| ReportView {
        split: by_late.clone(),
        only: only(phase),
        ..view(title, figure, unit, "policy")
    };
    let asked = |title: &str, phase: &str, question: &str| {
        let mut only = only(phase);
        only.insert("question".to_owned(), question.to_owned());
        ReportView {
            only,
            split: by_late.clone(),
            ..latencies(title, "policy")
        }
    };
    vec![
        ReportView {
            scale: 1e-6,
            more_is_better: true,
            ..told("Writing", "points_per_s", "M points/s", "write")
        },
        told(
            "Write amplification when writing ends",
            "write_amplification",
            "× what was flushed",
            "left",
        ),
        told(
            "Write amplification after everything settled",
            "write_amplification",
            "× what was flushed",
            "settled",
        ),
        told("Segments when writing ends", "segments", "segments", "left"),
        told(
            "Segments after everything settled",
            "segments",
            "segments",
            "settled",
        ),
        asked("Range, before compaction", "before", "Q2 range"),
        asked("Range, after compaction", "after", "Q2 range"),
        asked("Aggregate, before compaction", "before", "Q4 aggregate"),
        asked("Aggregate, after compaction", "after", "Q4 aggregate"),
    ]
}

fn rules() -> Vec<Rule> {
    let of = |phase: &str, policy: &str| {
        knobs([("phase", phase.to_owned()), ("policy", policy.to_owned())])
    };
    let source = "the order of work that defines the policy";
    vec![
        Rule {
            says:
                "INNER_CROSS, which merges across the spaces last, has written least when writing \
                   ends"
                    .to_owned(),
            source: source.to_owned(),
            figure: "write_amplification".to_owned(),
            of: of("left", "inner_cross"),
            with: Comparison::Smallest("policy".to_owned()),
            bound: FigureBound::AtMost(1.0),
        },
        Rule {
            says:
                "CROSS_INNER, which brings late rows to their place first, answers before the rest \
                   is compacted at most a tenth slower than the best policy"
                    .to_owned(),
            source: source.to_owned(),
            figure: "latency_ms".to_owned(),
            of: of("before", "cross_inner"),
            with: Comparison::Smallest("policy".to_owned()),
            bound: FigureBound::AtMost(1.1),
        },
    ]
}
