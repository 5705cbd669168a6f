//! How speed depends on the number of clients.

use super::super::parts::{ask, knobs, latencies, limit, pick, step, view};
use super::super::published;
use super::questions::{ALL, Extent, USUAL, questions};
use super::{BATCH_ROWS, QUERY_DEVICES, SENSORS, SOURCE, data, load};
use crate::generate::SourceSpec;
use crate::study::{AskStep, Plan, ReportView, Scale, Setup, StepAction, Study, Write};
use crate::target::Tuning;

const NAME: &str = "iot-clients";

/// Adds the tables of questions to those that are written.
const ASKED: &str = "_q";

/// The study.
pub(super) fn study() -> Study {
    Study {
        name: NAME,
        title: "Clients",
        about: "Writing and asking by 1 to 64 clients at once. The questions are about a table that \
                was loaded before; below paper scale their range is shorter than the default, for \
                64 clients wait for each other.",
        source: SOURCE,
        plan,
    }
}

fn plan(scale: Scale) -> Plan {
    let devices = pick(scale, [64, 64, 64, 128]);
    let rows = pick(scale, [50, 500, 2000, 27_000]);
    let spec = data(devices, rows);
    let clients: &[usize] = pick(
        scale,
        [
            &[1, 4][..],
            &[1, 2, 4, 8, 16, 32, 64],
            &[1, 2, 4, 8, 16, 32, 64],
            &[1, 2, 4, 8, 16, 32, 64],
        ],
    );
    let varied = |phase: &str, clients: usize| {
        knobs([
            ("phase", phase.to_owned()),
            ("clients", clients.to_string()),
        ])
    };
    let writes = clients.iter().map(|&clients| {
        let case = Write {
            clients,
            batch_rows: BATCH_ROWS,
            time_max: limit(scale, [10, 80, 400, 30_000]),
            suffix: format!("_c{clients}"),
            ..load()
        };
        step(varied("write", clients), StepAction::Write(case))
    });
    let before = Write {
        suffix: ASKED.to_owned(),
        ..load()
    };
    let before = [
        step(varied("load", before.clients), StepAction::Write(before)),
        step(knobs([("phase", "settle".to_owned())]), StepAction::Settle),
    ];
    let extent = Extent {
        devices: QUERY_DEVICES,
        sensors: SENSORS,
        range_s: pick(scale, [4, 60, 180, 1800]),
    };
    let kinds = pick(scale, [&USUAL[..], &USUAL, &USUAL, &ALL]);
    let asks = clients.iter().map(|&clients| {
        let case = AskStep {
            clients,
            times: pick(scale, [1, 2, 3, 20]),
            suffix: ASKED.to_owned(),
            ..ask(scale, questions(&spec, extent, kinds))
        };
        step(varied("ask", clients), StepAction::Ask(case))
    });
    let steps = writes.chain(before).chain(asks).collect();
    Plan {
        setups: vec![Setup {
            name: "clients".to_owned(),
            source: SourceSpec::Iot(spec.clone()),
            steps,
            tuning: Tuning::default(),
        }],
        views: views(),
        ..Plan::default()
    }
}

fn views() -> Vec<ReportView> {
    let write = knobs([("phase", "write".to_owned())]);
    vec![
        ReportView {
            scale: 1e-6,
            more_is_better: true,
            only: write.clone(),
            published: published::points(NAME, "points_per_s"),
            ..view("Writing", "points_per_s", "M points/s", "clients")
        },
        ReportView {
            only: write,
            log: true,
            ..view("Latency of a write", "latency_ms", "ms", "clients")
        },
        ReportView {
            only: knobs([("phase", "ask".to_owned())]),
            ..latencies("Latency of a question", "clients")
        },
    ]
}
