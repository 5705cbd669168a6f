//! What rows that come late cost.

use super::super::parts::{ask, knobs, latencies, pick, step, view};
use super::super::published;
use super::questions::{Extent, USUAL, questions};
use super::{QUERY_DEVICES, SENSORS, SOURCE, askers, data, load, range_s};
use crate::generate::{IotSpec, Late, SourceSpec};
use crate::study::{Act, AskStep, Plan, Scale, Setup, Study, View};

const NAME: &str = "iot-out-of-order";

/// The study.
pub fn study() -> Study {
    Study {
        name: NAME,
        title: "Rows that come late",
        about: "Writing, size, and questions when a part of the rows comes late: by a number of \
                steps drawn from a Poisson distribution (its mean is IoT-Benchmark's 2200 where the \
                data are long enough, else a fifth of them), or within a batch. Sizes are also \
                taken on values that do not repeat.",
        source: SOURCE,
        plan,
    }
}

fn plan(scale: Scale) -> Plan {
    let ratios = pick(
        scale,
        [
            &[0, 100][..],
            &[0, 50, 100],
            &[0, 20, 50, 100],
            &[0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100],
        ],
    );
    let last = ratios.len() - 1;
    let mut setups = Vec::new();
    for mode in ["poisson", "batch"] {
        for percent in ratios {
            setups.push(setup(scale, mode, *percent, false));
        }
    }
    for percent in [ratios[0], ratios[last]] {
        setups.push(setup(scale, "poisson", percent, true));
    }
    Plan {
        setups,
        views: views(),
    }
}

fn setup(scale: Scale, mode: &str, percent: u32, fresh_values: bool) -> Setup {
    let rows: usize = pick(scale, [50, 500, 5000, 27_000]);
    let ratio = f64::from(percent) / 100.0;
    let late = if mode == "poisson" {
        Late::Poisson {
            ratio,
            lambda: (rows as f64 / 5.0).min(2200.0),
        }
    } else {
        Late::Batch { ratio }
    };
    let spec = IotSpec {
        late,
        fresh_values,
        ..data(pick(scale, [16, 16, 16, 100]), rows)
    };
    let values = if fresh_values { "fresh" } else { "cycling" };
    let varied = |phase: &str| {
        knobs([
            ("phase", phase.to_owned()),
            ("mode", mode.to_owned()),
            ("late_pct", percent.to_string()),
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
        name: format!("{mode}-{percent}-{values}"),
        source: SourceSpec::Iot(spec),
        steps,
    }
}

fn views() -> Vec<View> {
    let only = |phase: &str, knob: &str, value: &str| {
        knobs([("phase", phase.to_owned()), (knob, value.to_owned())])
    };
    vec![
        View {
            scale: 1e-6,
            more_is_better: true,
            split: Some("mode".to_owned()),
            only: only("write", "values", "cycling"),
            published: published::of(NAME, "points_per_s"),
            ..view("Writing", "points_per_s", "M points/s", "late_pct")
        },
        View {
            split: Some("mode".to_owned()),
            only: only("write", "values", "cycling"),
            log: true,
            ..view("Latency of a write", "latency_ms", "ms", "late_pct")
        },
        View {
            split: Some("values".to_owned()),
            only: only("size", "mode", "poisson"),
            ..view("Size", "bytes_per_point", "bytes a point", "late_pct")
        },
        View {
            only: only("ask", "mode", "poisson"),
            ..latencies("Questions, Poisson", "late_pct")
        },
        View {
            only: only("ask", "mode", "batch"),
            ..latencies("Questions, batch", "late_pct")
        },
    ]
}
