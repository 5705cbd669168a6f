//! Standard set S: the yardstick of this project, on which all of its peers were measured.

use super::parts::{
    MINUTE_NS, SET_S_START_NS, aggregates, ask, knobs, limit, pick, question, size, speed, step,
    view, write,
};
use crate::data::SECOND_NS;
use crate::generate::SourceSpec;
use crate::question::{Aggregate, Devices, Question, Select, What};
use crate::study::{Act, Plan, Scale, Setup, Step, Study, View, Write};
use crate::target::Tuning;

/// Columns of the table `s`.
const DEVNAME: usize = 1;
const DEVGROUP: usize = 2;
const TEMPERATURE: usize = 0;
const HUMIDITY: usize = 1;

/// The study.
pub fn study() -> Study {
    Study {
        name: "set-s",
        title: "Standard set S",
        about: "Ingest at several batch sizes and numbers of connections; then, after one load of \
                everything, size on disk, time of a restart after a kill, and six kinds of \
                questions.",
        source: "Devices that send one row a second (temperature, humidity) with three tags. The \
                 project's own yardstick: the questions are those of the comparisons of fleets of \
                 thermometers, and the last rows and single-device reads of dashboards.",
        plan,
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
        step(varied, Act::Write(case))
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
        phase("load", Act::Write(write(2, 5000))),
        phase("settle", Act::Settle),
        phase("size", Act::Size),
        phase("restart", Act::Restart),
        phase("ask", Act::Ask(ask(scale, questions(devices, rows)))),
    ]
}

fn questions(devices: usize, rows: usize) -> Vec<Question> {
    let both = vec![TEMPERATURE, HUMIDITY];
    // Groups hold devid mod 100, so a set of fewer devices has fewer groups.
    let group = (devices / 2).min(50).to_string();
    let one_group = Select {
        devices: Devices::In(DEVGROUP, vec![group]),
        ..Select::all(0, What::Rows(both.clone()))
    };
    let whole = |function, field| Select::all(0, aggregates(&[function], field));
    let by_group = Select {
        by: vec![DEVGROUP],
        ..Select::all(
            0,
            aggregates(
                &[Aggregate::Count, Aggregate::Sum, Aggregate::Avg],
                TEMPERATURE,
            ),
        )
    };
    let by_group_and_minute = Select {
        bucket_ns: Some(MINUTE_NS),
        ..by_group.clone()
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
        question("Q4 by group, minute", by_group_and_minute),
        question("Q5 last", Select::all(0, What::Last(both.clone()))),
    ];
    // An hour out of 10,000 seconds, and the same part of shorter sets.
    let range_ns = (rows * 36 / 100) as i64 * SECOND_NS;
    for instance in 0..8 {
        let device = instance * devices / 8;
        let from_ns = SET_S_START_NS + (rows * (10 + instance * 5) / 100) as i64 * SECOND_NS;
        let raw = Select {
            devices: Devices::In(DEVNAME, vec![format!("device_{device:06}")]),
            from_ns: Some(from_ns),
            to_ns: Some(from_ns + range_ns),
            ..Select::all(0, What::Rows(both.clone()))
        };
        let by_minute = Select {
            what: What::Aggregates(vec![
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

fn views() -> Vec<View> {
    let only = |phase: &str| knobs([("phase", phase.to_owned())]);
    vec![
        View {
            split: Some("clients".to_owned()),
            only: only("ingest"),
            ..speed("Ingest by batch size and connections", "batch_rows")
        },
        View {
            split: Some("clients".to_owned()),
            only: only("ingest"),
            log: true,
            ..view("Latency of a request", "latency_ms", "ms", "batch_rows")
        },
        View {
            only: only("load"),
            ..speed("Ingest of the whole set", "set")
        },
        View {
            only: only("settle"),
            ..view("Flush and merge afterwards", "settle_s", "s", "set")
        },
        View {
            only: only("size"),
            ..view("Size on disk", "bytes_per_row", "bytes a row", "set")
        },
        View {
            only: only("restart"),
            ..view("Restart after a kill", "restart_ms", "ms", "set")
        },
        View {
            only: only("ask"),
            log: true,
            ..view("Questions", "latency_ms", "ms", "question")
        },
    ]
}
