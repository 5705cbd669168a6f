//! How latency depends on what a question covers: time, devices, sensors.

use super::super::parts::{ask, knobs, latencies, pick, speed, step};
use super::questions::{Extent, Kind, USUAL, questions};
use super::{QUERY_DEVICES, SENSORS, SOURCE, askers, data, load, range_s};
use crate::generate::{IotSpec, SourceSpec};
use crate::study::{AskStep, Plan, ReportView, Scale, Setup, StepAction, Study};
use crate::target::Tuning;

/// Devices of the data.
const DEVICES: [usize; 4] = [20, 20, 20, 100];

/// The study of ranges of time.
pub(super) fn time_range() -> Study {
    Study {
        name: "iot-time-range",
        title: "Range of time of a question",
        about: "Questions over 450 to 7200 seconds (a tenth of that at small scale).",
        source: SOURCE,
        plan: |scale| {
            let ranges = pick(
                scale,
                [
                    &[2, 8][..],
                    &[45, 90, 180, 360, 720],
                    &[450, 900, 1800, 3600, 7200],
                    &[450, 900, 1800, 3600, 7200],
                ],
            );
            let extents = ranges.iter().map(|&range_s| Extent {
                devices: QUERY_DEVICES,
                sensors: SENSORS,
                range_s,
            });
            let spec = data(
                pick(scale, [20, 20, 10, 100]),
                pick(scale, [50, 2000, 18_500, 27_000]),
            );
            let kinds = &[Kind::Range, Kind::Aggregate, Kind::ByTime];
            plan(scale, spec, kinds, "range_s", extents.collect())
        },
    }
}

/// The study of numbers of devices.
pub(super) fn devices() -> Study {
    Study {
        name: "iot-query-devices",
        title: "Devices of a question",
        about: "Questions about 1 to 20 devices.",
        source: SOURCE,
        plan: |scale| {
            let extents = [1, 5, 10, 20].map(|devices| Extent {
                devices,
                sensors: SENSORS,
                range_s: range_s(scale),
            });
            let spec = data(pick(scale, DEVICES), pick(scale, [50, 1000, 5000, 27_000]));
            plan(scale, spec, &USUAL, "devices", extents.to_vec())
        },
    }
}

/// The study of numbers of sensors.
pub(super) fn sensors() -> Study {
    Study {
        name: "iot-query-sensors",
        title: "Sensors of a question",
        about: "Questions about 1 to 50 sensors of devices that have 50.",
        source: SOURCE,
        plan: |scale| {
            let extents = [1, 5, 10, 20, 50].map(|sensors| Extent {
                devices: QUERY_DEVICES,
                sensors,
                range_s: range_s(scale),
            });
            let spec = IotSpec {
                sensors: 50,
                ..data(pick(scale, DEVICES), pick(scale, [50, 500, 5000, 27_000]))
            };
            plan(scale, spec, &USUAL, "sensors", extents.to_vec())
        },
    }
}

fn plan(scale: Scale, spec: IotSpec, kinds: &[Kind], knob: &str, extents: Vec<Extent>) -> Plan {
    let phase = |phase: &str| knobs([("phase", phase.to_owned())]);
    let mut steps = vec![
        step(
            knobs([
                ("phase", "load".to_owned()),
                ("clients", load().clients.to_string()),
            ]),
            StepAction::Write(load()),
        ),
        step(phase("settle"), StepAction::Settle),
    ];
    for extent in extents {
        let value = match knob {
            "devices" => extent.devices.to_string(),
            "sensors" => extent.sensors.to_string(),
            _ => extent.range_s.to_string(),
        };
        let asked = AskStep {
            clients: askers(scale),
            ..ask(scale, questions(&spec, extent, kinds))
        };
        let varied = knobs([("phase", "ask".to_owned()), (knob, value)]);
        steps.push(step(varied, StepAction::Ask(asked)));
    }
    Plan {
        setups: vec![Setup {
            name: knob.to_owned(),
            source: SourceSpec::Iot(spec),
            steps,
            tuning: Tuning::default(),
        }],
        views: vec![
            ReportView {
                only: phase("ask"),
                ..latencies("Latency", knob)
            },
            ReportView {
                only: phase("load"),
                ..speed("Writing before", "clients")
            },
        ],
        ..Plan::default()
    }
}
