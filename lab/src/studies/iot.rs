//! The studies of IoT-Benchmark's model: how speed and size depend on clients, ranges of time,
//! devices, sensors, lateness, and types.
//!
//! All share these defaults, and each varies one: 16 clients, a row every 400 ms, 100 rows per
//! request, DOUBLE; questions about 10 sensors of 5 devices and 1800 seconds. Smaller scales
//! shorten the ranges.

mod clients;
mod compaction;
mod compressors;
mod encodings;
mod lateness;
mod pages;
mod queries;
mod questions;
mod types;

use super::parts::{ask, pick, step, write};
use crate::data::FieldKind;
use crate::generate::{IotSpec, Late};
use crate::study::{AskStep, Knobs, Scale, Step, StepAction, Study, Write};

/// Distance of two rows of a device, milliseconds.
const STEP_MS: u32 = 400;
/// Rows per request.
const BATCH_ROWS: usize = 100;
/// Number of clients that write.
const CLIENTS: usize = 16;
/// Sensors of a device.
const SENSORS: usize = 10;
/// Devices of a question.
const QUERY_DEVICES: usize = 5;

/// The source of the studies.
const SOURCE: &str = "Parameter studies of time-series databases with IoT-Benchmark (Tsinghua \
                      University; Liu and Yuan, arXiv 1901.08304), with its data and its questions.";

/// The source of the studies of settings; each rule says which published rule it tests.
const SOURCE_OF_SETTINGS: &str = "An Experimental Study of IoTDB under IoT-benchmark, which varies \
                                  the same settings: its data and questions; its figures were not \
                                  to be had as text.";

/// The studies.
pub(super) fn studies() -> Vec<Study> {
    vec![
        clients::study(),
        queries::time_range(),
        queries::devices(),
        queries::sensors(),
        lateness::study(),
        types::study(),
        encodings::study(),
        compressors::study(),
        pages::study(),
        compaction::study(),
    ]
}

/// Data with the defaults.
fn data(devices: usize, rows: usize) -> IotSpec {
    IotSpec {
        devices,
        sensors: SENSORS,
        rows,
        step_ms: STEP_MS,
        kind: FieldKind::F64,
        late: Late::Never,
        fresh_values: false,
    }
}

/// Range of a question, seconds.
fn range_s(scale: Scale) -> u32 {
    pick(scale, [8, 180, 1800, 1800])
}

/// Number of clients that ask: as many as write, if there is time for it.
fn askers(scale: Scale) -> usize {
    pick(scale, [1, 1, 2, CLIENTS])
}

/// Writes everything with the defaults.
fn load() -> Write {
    write(CLIENTS, BATCH_ROWS)
}

/// The steps that every study of storage begins with: writes the data, lets the target settle, and
/// measures the size. `phase` gives the knobs of a step by its name.
fn stored(phase: impl Fn(&str) -> Knobs) -> Vec<Step> {
    vec![
        step(phase("write"), StepAction::Write(load())),
        step(phase("settle"), StepAction::Settle),
        step(phase("size"), StepAction::Size),
    ]
}

/// Asks the usual questions about `spec`, over this many seconds.
fn ask_usual(scale: Scale, spec: &IotSpec, range_s: u32) -> StepAction {
    let extent = questions::Extent {
        devices: QUERY_DEVICES,
        sensors: SENSORS,
        range_s,
    };
    StepAction::Ask(AskStep {
        clients: askers(scale),
        ..ask(scale, questions::questions(spec, extent, &questions::USUAL))
    })
}
