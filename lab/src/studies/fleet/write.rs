//! Writing by number of clients and rows per request.

use super::super::parts::{knobs, limit, pick, speed, step, view, write};
use super::super::published;
use super::SOURCE;
use crate::generate::SourceSpec;
use crate::study::{Plan, ReportView, Scale, Setup, StepAction, Study, Write};
use crate::target::Tuning;

const NAME: &str = "fleet-write";

const BATCHES: [usize; 5] = [1, 100, 500, 1000, 2000];

/// The study.
pub(super) fn study() -> Study {
    Study {
        name: NAME,
        title: "Writing by clients and rows a request",
        about: "1 to 7 clients that write 1 to 2000 rows a request. Each case begins on an empty \
                table, and below paper scale it is stopped after a time.",
        source: SOURCE,
        plan,
    }
}

fn plan(scale: Scale) -> Plan {
    let clients = pick(
        scale,
        [
            &[1, 4][..],
            &[1, 4, 7],
            &[1, 2, 3, 4, 5, 6, 7],
            &[1, 2, 3, 4, 5, 6, 7],
        ],
    );
    let (devices, rows) = pick(
        scale,
        [(100, 20), (200, 500), (1000, 1000), (10_000, 10_000)],
    );
    let case = |clients: usize, batch_rows: usize| {
        let case = Write {
            time_max: limit(scale, [5, 80, 200, 60_000]),
            suffix: format!("_c{clients}_b{batch_rows}"),
            ..write(clients, batch_rows)
        };
        let varied = knobs([
            ("clients", clients.to_string()),
            ("batch_rows", batch_rows.to_string()),
        ]);
        step(varied, StepAction::Write(case))
    };
    let cases = BATCHES
        .iter()
        .flat_map(|batch| clients.iter().map(|clients| case(*clients, *batch)));
    let split = Some("batch_rows".to_owned());
    Plan {
        setups: vec![Setup {
            name: "write".to_owned(),
            source: SourceSpec::Fleet { devices, rows },
            steps: cases.collect(),
            tuning: Tuning::default(),
        }],
        views: vec![
            ReportView {
                split: split.clone(),
                published: published::points(NAME, "rows_per_s"),
                ..speed("Writing", "clients")
            },
            ReportView {
                split,
                ..view("Latency of a request", "latency_ms", "ms", "clients")
            },
        ],
        ..Plan::default()
    }
}
