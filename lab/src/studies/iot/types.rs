//! How speed and size depend on the type of values.

use super::super::parts::{ask, knobs, latencies, pick, step, view};
use super::questions::{Extent, USUAL, questions};
use super::{QUERY_DEVICES, SENSORS, SOURCE, askers, data, load, range_s};
use crate::data::FieldKind;
use crate::generate::{IotSpec, SourceSpec};
use crate::study::{Act, AskStep, Plan, Scale, Setup, Study, View};
use crate::target::Tuning;

const TYPES: [(&str, FieldKind); 6] = [
    ("BOOLEAN", FieldKind::Bool),
    ("INT32", FieldKind::I32),
    ("INT64", FieldKind::I64),
    ("FLOAT", FieldKind::F32),
    ("DOUBLE", FieldKind::F64),
    ("TEXT", FieldKind::Text),
];

/// The study.
pub fn study() -> Study {
    Study {
        name: "iot-data-type",
        title: "Types of values",
        about: "Writing, size, and questions for six types of sensors. IoT-Benchmark cycles through \
                100 values a sensor, which compresses better than anything real: so sizes are also \
                taken on values that do not repeat, of three types below paper scale. Of BOOLEAN and TEXT \
                values are counted only, there being no mean.",
        source: SOURCE,
        plan,
    }
}

fn plan(scale: Scale) -> Plan {
    let mut setups = Vec::new();
    for (name, kind) in TYPES {
        setups.push(setup(scale, name, kind, false));
        let spared = matches!(kind, FieldKind::Bool | FieldKind::I32 | FieldKind::F32);
        if scale == Scale::Paper || !spared {
            setups.push(setup(scale, name, kind, true));
        }
    }
    Plan {
        setups,
        views: views(),
        ..Plan::default()
    }
}

fn setup(scale: Scale, name: &str, kind: FieldKind, fresh_values: bool) -> Setup {
    let spec = IotSpec {
        kind,
        fresh_values,
        ..data(
            pick(scale, [16, 16, 16, 100]),
            pick(scale, [50, 500, 5000, 27_000]),
        )
    };
    let values = if fresh_values { "fresh" } else { "cycling" };
    let varied = |phase: &str| {
        knobs([
            ("phase", phase.to_owned()),
            ("type", name.to_owned()),
            ("values", values.to_owned()),
        ])
    };
    let mut steps = vec![
        step(varied("write"), Act::Write(load())),
        step(varied("settle"), Act::Settle),
        step(varied("size"), Act::Size),
    ];
    if !fresh_values {
        let extent = Extent {
            devices: QUERY_DEVICES,
            sensors: SENSORS,
            range_s: range_s(scale),
        };
        let asked = AskStep {
            clients: askers(scale),
            ..ask(scale, questions(&spec, extent, &USUAL))
        };
        steps.push(step(varied("ask"), Act::Ask(asked)));
    }
    Setup {
        name: format!("{}-{values}", name.to_lowercase()),
        source: SourceSpec::Iot(spec),
        steps,
        tuning: Tuning::default(),
    }
}

fn views() -> Vec<View> {
    let only = |phase: &str| knobs([("phase", phase.to_owned())]);
    let written = knobs([
        ("phase", "write".to_owned()),
        ("values", "cycling".to_owned()),
    ]);
    vec![
        View {
            scale: 1e-6,
            more_is_better: true,
            only: written.clone(),
            ..view("Writing", "points_per_s", "M points/s", "type")
        },
        View {
            only: written,
            ..view("Latency of a write", "latency_ms", "ms", "type")
        },
        View {
            split: Some("values".to_owned()),
            only: only("size"),
            ..view("Size", "bytes_per_point", "bytes a point", "type")
        },
        View {
            only: only("ask"),
            ..latencies("Questions", "type")
        },
    ]
}
