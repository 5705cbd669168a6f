//! The studies of fleets of thermometers: TDengine's comparison with Cassandra, OpenTSDB and
//! InfluxDB, one study for each of its tables.

mod compression;
mod read;
mod write;

use super::parts::{knobs, latencies, pick, step, write};
use crate::generate::SourceSpec;
use crate::question::{Devices, Question};
use crate::study::{Plan, ReportView, Scale, Setup, Step, StepAction, Study};
use crate::target::Tuning;

/// Columns of the table `devices`.
const DEVGROUP: usize = 2;
const TEMPERATURE: usize = 0;
const HUMIDITY: usize = 1;

/// Number of values of the tag `devgroup`; a number of groups is the same percentage of the
/// devices.
const GROUPS: i64 = 100;

/// The source of the studies.
const SOURCE: &str = "TDengine's comparisons with Cassandra, OpenTSDB and InfluxDB (tdengine.com, \
                      2019; program and queries in tests/comparisonTest of taosdata/TDengine): \
                      10,000 devices with 10,000 rows each.";

/// The studies.
pub(super) fn studies() -> Vec<Study> {
    vec![
        write::study(),
        read::rows(),
        read::aggregates(),
        read::by_tag(),
        read::by_time(),
        compression::study(),
    ]
}

/// Devices, and rows of each, in the studies of questions.
fn fleet(scale: Scale) -> (usize, usize) {
    pick(
        scale,
        [(100, 20), (200, 200), (500, 1000), (10_000, 10_000)],
    )
}

/// Loads everything, then executes `steps`.
fn loaded(name: &str, (devices, rows): (usize, usize), steps: Vec<Step>) -> Setup {
    let phase = |phase: &str| knobs([("phase", phase.to_owned())]);
    let load = [
        step(phase("load"), StepAction::Write(write(2, 1000))),
        step(phase("settle"), StepAction::Settle),
    ];
    Setup {
        name: name.to_owned(),
        source: SourceSpec::Fleet { devices, rows },
        steps: load.into_iter().chain(steps).collect(),
        tuning: Tuning::default(),
    }
}

/// Ten fractions of the groups: percent of all, and the choice of their devices.
fn parts() -> impl Iterator<Item = (i64, Devices)> {
    (1..=10).map(|tenth| {
        let devices = match tenth {
            10 => Devices::All,
            tenth => Devices::Below(DEVGROUP, tenth * GROUPS / 10),
        };
        (tenth * 10, devices)
    })
}

/// A plan that asks questions about 10 % to 100 % of the groups.
fn over_parts(
    scale: Scale,
    name: &str,
    fleet: (usize, usize),
    questions: impl Fn(&Devices) -> Vec<Question>,
) -> Plan {
    let ask = |(percent, devices): (i64, Devices)| {
        let varied = knobs([
            ("phase", "ask".to_owned()),
            ("groups_pct", percent.to_string()),
        ]);
        step(
            varied,
            StepAction::Ask(super::parts::ask(scale, questions(&devices))),
        )
    };
    Plan {
        setups: vec![loaded(name, fleet, parts().map(ask).collect())],
        views: vec![ReportView {
            only: knobs([("phase", "ask".to_owned())]),
            ..latencies("Response time by part of the groups", "groups_pct")
        }],
        ..Plan::default()
    }
}
