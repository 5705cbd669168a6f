//! The cost of idle series, and the time of a restart.

use super::parts::{knobs, observe, pick, step, tuning, view, write};
use crate::generate::SourceSpec;
use crate::study::{
    Comparison, FigureBound, Plan, ReportView, Rule, Scale, Setup, Step, StepAction, Study, Write,
};

/// The study.
pub(super) fn study() -> Study {
    Study {
        name: "idle-series",
        title: "Idle series and restarts",
        about: "Series with three tags that have sent one row each and do nothing since: resident \
                memory that the server has more than when it was empty, and what it says that its \
                index takes, both per series. Then, on a server that does not flush, more rows come \
                into its log, and it is killed and started again.",
        source: "Not published: bounds that Marigram sets itself, for 10 million series and a log of \
                 1 GB, which paper scale has.",
        plan,
    }
}

fn plan(scale: Scale) -> Plan {
    let devices: usize = pick(scale, [500, 10_000, 100_000, 10_000_000]);
    let batch_rows = pick(scale, [50, 1000, 5000, 10_000]);
    // Rows of the log, in addition to those of the idle series; 50 million are about a gigabyte.
    let logged = pick(scale, [2, 5, 5, 5]) * devices as u64;
    let setup = |name: &str, (flush_size, flush_age), steps| Setup {
        name: name.to_owned(),
        source: SourceSpec::SetS { devices, rows: 10 },
        tuning: tuning(&[], &[("flush_size", flush_size), ("flush_age", flush_age)]),
        steps,
    };
    let phase = |phase: &str, act| {
        let varied = knobs([
            ("phase", phase.to_owned()),
            ("idle_series", devices.to_string()),
        ]);
        step(varied, act)
    };
    let rows = |rows: u64| {
        StepAction::Write(Write {
            rows_max: Some(rows),
            ..write(2, batch_rows)
        })
    };
    let resident: Vec<Step> = vec![
        phase("empty", observe()),
        phase("write", rows(devices as u64)),
        phase("settle", StepAction::Settle),
        phase("idle", observe()),
    ];
    let restart: Vec<Step> = vec![
        phase("load", rows(devices as u64)),
        phase("flush", StepAction::Settle),
        phase("log", rows(logged)),
        phase("logged", observe()),
        phase("restart", StepAction::Restart),
    ];
    // Small memtables, so that their memory is not mistaken for that of series.
    let large = pick(scale, ["256MiB", "256MiB", "256MiB", "2GiB"]);
    Plan {
        setups: vec![
            setup("resident", ("4MiB", ""), resident),
            setup("restart", (large, "0"), restart),
        ],
        views: views(devices),
        rules: rules(devices),
        marigram_only: true,
    }
}

fn views(devices: usize) -> Vec<ReportView> {
    let only = |phase: &str| knobs([("phase", phase.to_owned())]);
    let each = |title: &str, figure: &str| ReportView {
        scale: 1.0 / devices as f64,
        only: only("idle"),
        ..view(title, figure, "bytes a series", "idle_series")
    };
    vec![
        each("Resident memory that came with them", "rss_grown_bytes"),
        each("Memory of the index", "index_bytes"),
        ReportView {
            only: only("restart"),
            ..view("Restart after a kill", "restart_ms", "ms", "idle_series")
        },
        ReportView {
            scale: 1.0 / (1 << 20) as f64,
            only: only("logged"),
            ..view("Log that it replays", "wal_bytes", "MiB", "idle_series")
        },
    ]
}

fn rules(devices: usize) -> Vec<Rule> {
    let source = "the aim of Marigram's storage engine, for 10 million series";
    let of = |phase: &str| knobs([("phase", phase.to_owned())]);
    vec![
        Rule {
            says: format!(
                "{devices} idle series with three tags take at most 100 bytes of resident memory each"
            ),
            source: source.to_owned(),
            figure: "rss_grown_bytes".to_owned(),
            of: of("idle"),
            with: Comparison::Itself(1.0 / devices as f64),
            bound: FigureBound::AtMost(100.0),
        },
        Rule {
            says: format!(
                "With {devices} series and the log beside them a restart takes at most 5 s"
            ),
            source: format!("{source} and 1 GB of log"),
            figure: "restart_ms".to_owned(),
            of: of("restart"),
            with: Comparison::Itself(1e-3),
            bound: FigureBound::AtMost(5.0),
        },
    ]
}
