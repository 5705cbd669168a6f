//! Standard set S: the reference of this project, with which all its peers were measured.

use super::parts::{
    MINUTE_NS, SET_S_START_NS, aggregates, ask, knobs, latencies, limit, pick, question, size,
    speed, step, totals_by, view, write,
};
use crate::data::SECOND_NS;
use crate::generate::SourceSpec;
use crate::question::{Aggregate, Devices, Question, Select, Selection};
use crate::study::{
    Comparison, FigureBound, Plan, ReportView, Rule, Scale, Setup, Step, StepAction, Study, Write,
};
use crate::target::Tuning;

/// Columns of the table `s`.
const DEVNAME: usize = 1;
const DEVGROUP: usize = 2;
const TEMPERATURE: usize = 0;
const HUMIDITY: usize = 1;

/// The study.
pub(super) fn study() -> Study {
    Study {
        name: "set-s",
        title: "Standard set S",
        about: "Ingest at several batch sizes and numbers of connections; then, after one load of \
                everything, size on disk, time of a restart after a kill, and seven kinds of \
                questions.",
        source: "Devices that send one row a second (temperature, humidity) with three tags. The \
                 project's own yardstick: the questions are those of the comparisons of fleets of \
                 thermometers, and the last rows and single-device reads of dashboards.",
        plan,
    }
}

/// The study of ten times as many devices.
pub(super) fn growth() -> Study {
    Study {
        name: "growth",
        title: "Ten times as many devices",
        about: "The questions of standard set S about ten times as many devices with as many rows \
                each. What statistics answer should hardly take longer, what is about one device or \
                group of a hundred devices as its rows do, everything else ten times as long.",
        source: "Not published: what a fleet that grows may expect.",
        plan: plan_growth,
    }
}

fn plan_growth(scale: Scale) -> Plan {
    let rows = pick(scale, [50, 100, 1000, 10_000]);
    let sizes = pick(scale, [[10, 100], [100, 1000], [100, 1000], [1000, 10_000]]);
    let setup = |devices: usize| {
        let phase = |phase: &str, act| {
            let varied = knobs([
                ("phase", phase.to_owned()),
                ("devices", devices.to_string()),
            ]);
            step(varied, act)
        };
        Setup {
            name: format!("devices-{devices}"),
            source: SourceSpec::SetS { devices, rows },
            steps: vec![
                phase("load", StepAction::Write(write(2, 5000))),
                phase("settle", StepAction::Settle),
                phase("ask", StepAction::Ask(ask(scale, questions(devices, rows)))),
            ],
            tuning: Tuning::default(),
        }
    };
    let rule = |says: &str, question: &str, most: f64| Rule {
        says: says.to_owned(),
        source: "Marigram's design: pages are answered by their statistics".to_owned(),
        figure: "latency_ms".to_owned(),
        of: knobs([
            ("devices", sizes[1].to_string()),
            ("question", question.to_owned()),
        ]),
        with: Comparison::Result(knobs([("devices", sizes[0].to_string())])),
        bound: FigureBound::AtMost(most),
    };
    Plan {
        setups: sizes.iter().map(|devices| setup(*devices)).collect(),
        views: vec![ReportView {
            only: knobs([("phase", "ask".to_owned())]),
            log: true,
            ..latencies("Questions", "devices")
        }],
        rules: vec![
            rule(
                "Counting ten times as many rows takes at most twice as long",
                "count",
                2.0,
            ),
            rule(
                "The mean of ten times as many rows takes at most twice as long",
                "avg t",
                2.0,
            ),
            rule(
                "Minutes of ten times as many rows take at most ten times as long",
                "Q4 by minute",
                10.0,
            ),
        ],
        ..Plan::default()
    }
}

fn plan(scale: Scale) -> Plan {
    let devices = pick(scale, [20, 100, 1000, 1000]);
    let rows = pick(scale, [100, 1000, 1000, 10_000]);
    let source = SourceSpec::SetS { devices, rows };
    let setup = |name: &str, steps| Setup {
        name: name.to_owned(),
        source: source.clone(),
        steps,
        tuning: Tuning::default(),
    };
    Plan {
        setups: vec![
            setup("ingest", ingest(scale)),
            setup("load", load(scale, devices, rows)),
        ],
        views: views(),
        ..Plan::default()
    }
}

fn ingest(scale: Scale) -> Vec<Step> {
    let batches = pick(
        scale,
        [
            &[100, 1000][..],
            &[100, 1000, 5000],
            &[100, 1000, 5000, 10_000],
            &[100, 1000, 5000, 10_000],
        ],
    );
    let clients = pick(scale, [&[1, 2][..], &[1, 4], &[1, 2, 4, 8], &[1, 2, 4, 8]]);
    let case = |clients: usize, batch_rows: usize| {
        let case = Write {
            time_max: limit(scale, [10, 100, 300, 20_000]),
            suffix: format!("_c{clients}_b{batch_rows}"),
            ..write(clients, batch_rows)
        };
        let varied = knobs([
            ("phase", "ingest".to_owned()),
            ("clients", clients.to_string()),
            ("batch_rows", batch_rows.to_string()),
        ]);
        step(varied, StepAction::Write(case))
    };
    let cases = clients
        .iter()
        .flat_map(|clients| batches.iter().map(|batch| case(*clients, *batch)));
    cases.collect()
}

fn load(scale: Scale, devices: usize, rows: usize) -> Vec<Step> {
    let phase = |phase: &str, act| {
        let varied = knobs([("phase", phase.to_owned()), ("set", size(devices, rows))]);
        step(varied, act)
    };
    vec![
        phase("load", StepAction::Write(write(2, 5000))),
        phase("settle", StepAction::Settle),
        phase("size", StepAction::Size),
        phase("restart", StepAction::Restart),
        phase("ask", StepAction::Ask(ask(scale, questions(devices, rows)))),
    ]
}

/// The questions about a set of `devices` devices with `rows` rows each.
pub(super) fn questions(devices: usize, rows: usize) -> Vec<Question> {
    let both = vec![TEMPERATURE, HUMIDITY];
    // A group is devid mod 100, so a set of fewer devices has fewer groups.
    let group = (devices / 2).min(50).to_string();
    let one_group = Select {
        devices: Devices::In(DEVGROUP, vec![group]),
        ..Select::all(0, Selection::Rows(both.clone()))
    };
    let whole = |function, field| Select::all(0, aggregates(&[function], field));
    let by_group = totals_by(DEVGROUP, TEMPERATURE);
    let by_group_and_minute = Select {
        bucket_ns: Some(MINUTE_NS),
        ..by_group.clone()
    };
    let by_minute_of_all = Select {
        by: Vec::new(),
        ..by_group_and_minute.clone()
    };
    let mut questions = vec![
        question("Q1 group", one_group),
        question("count", whole(Aggregate::Count, TEMPERATURE)),
        question("avg t", whole(Aggregate::Avg, TEMPERATURE)),
        question("sum t", whole(Aggregate::Sum, TEMPERATURE)),
        question("max t", whole(Aggregate::Max, TEMPERATURE)),
        question("min t", whole(Aggregate::Min, TEMPERATURE)),
        question("avg h", whole(Aggregate::Avg, HUMIDITY)),
        question("Q3 by group", by_group),
        question("Q4 by minute", by_minute_of_all),
        question("Q4 by group, minute", by_group_and_minute),
        question("Q5 last", Select::all(0, Selection::Last(both.clone()))),
    ];
    // An hour of 10,000 seconds, and the same fraction of shorter sets.
    let range_ns = (rows * 36 / 100) as i64 * SECOND_NS;
    for instance in 0..8 {
        let device = instance * devices / 8;
        let from_ns = SET_S_START_NS + (rows * (10 + instance * 5) / 100) as i64 * SECOND_NS;
        let raw = Select {
            devices: Devices::In(DEVNAME, vec![format!("device_{device:06}")]),
            from_ns: Some(from_ns),
            to_ns: Some(from_ns + range_ns),
            ..Select::all(0, Selection::Rows(both.clone()))
        };
        let by_minute = Select {
            what: Selection::Aggregates(vec![
                (Aggregate::Avg, TEMPERATURE),
                (Aggregate::Avg, HUMIDITY),
            ]),
            bucket_ns: Some(MINUTE_NS),
            ..raw.clone()
        };
        questions.push(question("Q6 raw", raw));
        questions.push(question("Q6 by minute", by_minute));
    }
    questions
}

fn views() -> Vec<ReportView> {
    let only = |phase: &str| knobs([("phase", phase.to_owned())]);
    vec![
        ReportView {
            split: Some("clients".to_owned()),
            only: only("ingest"),
            ..speed("Ingest by batch size and connections", "batch_rows")
        },
        ReportView {
            split: Some("clients".to_owned()),
            only: only("ingest"),
            log: true,
            ..view("Latency of a request", "latency_ms", "ms", "batch_rows")
        },
        ReportView {
            only: only("load"),
            ..speed("Ingest of the whole set", "set")
        },
        ReportView {
            only: only("settle"),
            ..view("Flush and merge afterwards", "settle_s", "s", "set")
        },
        ReportView {
            only: only("size"),
            ..view("Size on disk", "bytes_per_row", "bytes a row", "set")
        },
        ReportView {
            only: only("restart"),
            ..view("Restart after a kill", "restart_ms", "ms", "set")
        },
        ReportView {
            only: only("ask"),
            log: true,
            ..view("Questions", "latency_ms", "ms", "question")
        },
    ]
}
