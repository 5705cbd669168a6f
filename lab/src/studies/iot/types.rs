//! How speed and size depend on the type of values.

use super::super::parts::{knobs, latencies, pick, step, view};
use super::{SOURCE, ask_usual, data, range_s, stored};
use crate::data::FieldKind;
use crate::generate::{IotSpec, SourceSpec};
use crate::study::{Plan, ReportView, Scale, Setup, Study};
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
pub(super) fn study() -> Study {
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
    let mut steps = stored(varied);
    if !fresh_values {
        let asked = ask_usual(scale, &spec, range_s(scale));
        steps.push(step(varied("ask"), asked));
    }
    Setup {
        name: format!("{}-{values}", name.to_lowercase()),
        source: SourceSpec::Iot(spec),
        steps,
        tuning: Tuning::default(),
    }
}

fn views() -> Vec<ReportView> {
    let only = |phase: &str| knobs([("phase", phase.to_owned())]);
    let written = knobs([
        ("phase", "write".to_owned()),
        ("values", "cycling".to_owned()),
    ]);
    vec![
        ReportView {
            scale: 1e-6,
            more_is_better: true,
            only: written.clone(),
            ..view("Writing", "points_per_s", "M points/s", "type")
        },
        ReportView {
            only: written,
            ..view("Latency of a write", "latency_ms", "ms", "type")
        },
        ReportView {
            split: Some("values".to_owned()),
            only: only("size"),
            ..view("Size", "bytes_per_point", "bytes a point", "type")
        },
        ReportView {
            only: only("ask"),
            ..latencies("Questions", "type")
        },
    ]
}
