//! The largest number of series for which a target keeps the clock.

use super::parts::{knobs, pick, step, view};
use super::published;
use crate::data::FieldKind;
use crate::generate::{IotSpec, Late, SourceSpec};
use crate::study::{ClockStep, Plan, ReportView, Scale, Setup, StepAction, Study};
use crate::target::Tuning;
use std::time::Duration;

const NAME: &str = "cardinality";
const GIB: u64 = 1 << 30;
/// Sensors of a device, one series each.
const SENSORS: usize = 10;

/// The study.
pub(super) fn study() -> Study {
    Study {
        name: NAME,
        title: "Series on the clock",
        about: "How many devices of 10 sensors a target keeps up with when each sends a row every \
                period, a tenth of all requests being questions, within a limit of processor and \
                memory. At paper scale a period is 10 seconds and a trial an hour; at medium scale \
                a second and three seconds. Tiny and small scale are rehearsals in virtual time \
                (`time` = `virtual`): short periods that follow each other without waiting.",
        source: "TickTockDB's comparisons of the largest cardinality with InfluxDB and OpenTSDB \
                 (its wiki, 2023), with IoT-Benchmark: devices of 10 sensors, one row every 10 \
                 seconds.",
        plan,
    }
}

/// The settings that depend on the scale.
#[derive(Clone, Copy)]
struct Trial {
    devices_min: u64,
    devices_max: u64,
    period_ms: u64,
    periods: u32,
    batch_rows: usize,
    clients: usize,
    cores: usize,
    memory_gib: u64,
    limit: &'static str,
}

const SMALL: Trial = Trial {
    devices_min: 100,
    devices_max: 1600,
    period_ms: 200,
    periods: 2,
    batch_rows: 10,
    clients: 4,
    cores: 1,
    memory_gib: 1,
    limit: "1 core, 1 GB",
};
const TINY: Trial = Trial {
    devices_min: 10,
    devices_max: 20,
    period_ms: 50,
    periods: 1,
    ..SMALL
};
const MEDIUM: Trial = Trial {
    devices_min: 1000,
    devices_max: 64_000,
    period_ms: 1000,
    periods: 3,
    batch_rows: 1,
    clients: 16,
    ..SMALL
};
const PAPER: Trial = Trial {
    devices_min: 1000,
    devices_max: 1_000_000,
    period_ms: 10_000,
    periods: 360,
    batch_rows: 1,
    clients: 64,
    cores: 2,
    memory_gib: 4,
    limit: "2 vCPU, 4 GB",
};

fn plan(scale: Scale) -> Plan {
    let trial = pick(scale, [TINY, SMALL, MEDIUM, PAPER]);
    let virtual_time = matches!(scale, Scale::Tiny | Scale::Small);
    let period = Duration::from_millis(trial.period_ms);
    let varied = knobs([
        ("limit", trial.limit.to_owned()),
        ("period_s", period.as_secs_f64().to_string()),
        (
            "time",
            if virtual_time { "virtual" } else { "real" }.to_owned(),
        ),
    ]);
    let search = ClockStep {
        devices_min: trial.devices_min,
        devices_max: trial.devices_max,
        fields: SENSORS,
        period,
        periods: trial.periods,
        batch_rows: trial.batch_rows,
        clients: trial.clients,
        ask_share: 0.1,
        cores: Some(trial.cores),
        memory_bytes: Some(trial.memory_gib * GIB),
        virtual_time,
    };
    // The step generates its own data; this only describes them.
    let kind = IotSpec {
        devices: trial.devices_min as usize,
        sensors: SENSORS,
        rows: trial.periods as usize,
        step_ms: trial.period_ms as u32,
        kind: FieldKind::F64,
        late: Late::Never,
        fresh_values: false,
    };
    Plan {
        setups: vec![Setup {
            name: "search".to_owned(),
            source: SourceSpec::Iot(kind),
            steps: vec![step(varied, StepAction::Clock(search))],
            tuning: Tuning::default(),
        }],
        views: views(),
        ..Plan::default()
    }
}

fn views() -> Vec<ReportView> {
    vec![
        ReportView {
            more_is_better: true,
            only: knobs([("trial", "largest".to_owned())]),
            log: true,
            published: published::points(NAME, "series"),
            ..view("Series that keep the clock", "series", "series", "limit")
        },
        ReportView {
            second: Some(("p999_ms".to_owned(), "ms".to_owned())),
            log: true,
            ..view(
                "Latency of a request, mean and P999",
                "mean_ms",
                "ms",
                "series",
            )
        },
        view("Size", "bytes_per_point", "bytes a point", "series"),
        ReportView {
            scale: 1.0 / (1 << 20) as f64,
            second: Some(("cpu_share".to_owned(), "cores".to_owned())),
            ..view("Memory and processor", "rss_bytes", "MiB", "series")
        },
        view("Behind the clock", "behind_s", "s", "series"),
    ]
}
