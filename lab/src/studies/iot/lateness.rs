//! The cost of late rows.

use super::super::parts::{knobs, latencies, pick, step, view};
use super::super::published;
use super::{SOURCE, ask_usual, data, stored};
use crate::generate::{IotSpec, Late, SourceSpec};
use crate::study::{Plan, ReportView, Scale, Setup, Study};
use crate::target::Tuning;

const NAME: &str = "iot-out-of-order";

/// The study.
pub(super) fn study() -> Study {
    Study {
        name: NAME,
        title: "Rows that come late",
        about: "Writing, size, and questions when a part of the rows comes late: by a number of \
                steps drawn from a Poisson distribution (its mean is IoT-Benchmark's 2200 where the \
                data are long enough, else a tenth of them), or within a batch. Rows that are late \
                by Poisson repeat earlier ones, so there are none but repeated ones at 100 %, and \
                sizes are compared in batch mode, which repeats nothing; also on values that do \
                not cycle.",
        source: SOURCE,
        plan,
    }
}

/// Late rows, percent.
fn ratios(scale: Scale, mode: Mode) -> &'static [u32] {
    match mode {
        Mode::Poisson => pick(
            scale,
            [
                &[0, 80][..],
                &[0, 40, 80],
                &[0, 20, 50, 80],
                &[0, 10, 20, 30, 40, 50, 60, 70, 80],
            ],
        ),
        Mode::Batch => pick(
            scale,
            [
                &[0, 100][..],
                &[0, 50, 100],
                &[0, 20, 50, 100],
                &[0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100],
            ],
        ),
    }
}

#[derive(Clone, Copy)]
enum Mode {
    Poisson,
    Batch,
}

fn plan(scale: Scale) -> Plan {
    let mut setups = Vec::new();
    for mode in [Mode::Poisson, Mode::Batch] {
        let ratios = ratios(scale, mode).iter();
        setups.extend(ratios.map(|percent| setup(scale, mode, *percent, false)));
    }
    setups.extend([0, 100].map(|percent| setup(scale, Mode::Batch, percent, true)));
    Plan {
        setups,
        views: views(),
        ..Plan::default()
    }
}

fn setup(scale: Scale, mode: Mode, percent: u32, fresh_values: bool) -> Setup {
    let rows: usize = pick(scale, [50, 500, 2500, 27_000]);
    let ratio = f64::from(percent) / 100.0;
    let (mode, late, times) = match mode {
        Mode::Poisson => {
            let lambda = (rows as f64 / 10.0).min(2200.0);
            // Late rows have no new time; a tenth less, because their number is random.
            let times = (1.0 - ratio) * rows as f64 * 0.9;
            ("poisson", Late::Poisson { ratio, lambda }, times as usize)
        }
        Mode::Batch => ("batch", Late::Batch { ratio }, rows),
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
    let mut steps = stored(varied);
    if !fresh_values {
        // The range holds the same number of rows for any fraction of late rows.
        let known = IotSpec {
            rows: times,
            ..spec.clone()
        };
        let asked = ask_usual(scale, &known, pick(scale, [2, 36, 180, 1800]));
        steps.push(step(varied("ask"), asked));
    }
    Setup {
        name: format!("{mode}-{percent}-{values}"),
        source: SourceSpec::Iot(spec),
        steps,
        tuning: Tuning::default(),
    }
}

fn views() -> Vec<ReportView> {
    let only = |phase: &str, knob: &str, value: &str| {
        knobs([("phase", phase.to_owned()), (knob, value.to_owned())])
    };
    vec![
        ReportView {
            scale: 1e-6,
            more_is_better: true,
            split: Some("mode".to_owned()),
            only: only("write", "values", "cycling"),
            published: published::points(NAME, "points_per_s"),
            ..view("Writing", "points_per_s", "M points/s", "late_pct")
        },
        ReportView {
            split: Some("mode".to_owned()),
            only: only("write", "values", "cycling"),
            log: true,
            ..view("Latency of a write", "latency_ms", "ms", "late_pct")
        },
        ReportView {
            split: Some("values".to_owned()),
            only: only("size", "mode", "batch"),
            ..view(
                "Size, rows late within a batch",
                "bytes_per_point",
                "bytes a point",
                "late_pct",
            )
        },
        ReportView {
            only: only("ask", "mode", "poisson"),
            ..latencies("Questions, Poisson", "late_pct")
        },
        ReportView {
            only: only("ask", "mode", "batch"),
            ..latencies("Questions, batch", "late_pct")
        },
    ]
}
