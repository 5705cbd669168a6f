//! Sources of rows: deterministic in their seed, each a copy of a published model.

use crate::data::{FieldKind, Source};
pub use paths::Path;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[cfg(test)]
mod check;
mod delayed;
mod draw;
mod fleet;
mod iot;
mod paths;
mod set_s;
mod thermometers;
mod time_major;
mod trucks;

/// Which data, and how much.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum SourceSpec {
    /// Standard set S: thermometers with one row per second.
    SetS {
        /// Devices.
        devices: usize,
        /// Rows of each.
        rows: usize,
    },
    /// The rows of standard set S, some of them late.
    LateSetS {
        /// Devices.
        devices: usize,
        /// Rows of each.
        rows: usize,
        /// Which rows are late.
        delay: Delay,
    },
    /// IoT-Benchmark's model.
    Iot(IotSpec),
    /// IoT-Benchmark's model with one tag: the device's path in a tree.
    Paths {
        /// The model.
        spec: IotSpec,
        /// The form of the paths.
        path: Path,
    },
    /// TDengine's comparison: thermometers in groups.
    Fleet {
        /// Devices.
        devices: usize,
        /// Rows of each.
        rows: usize,
    },
    /// TSBS's trucks: readings and diagnostics.
    Trucks {
        /// Trucks.
        trucks: usize,
        /// Steps of time.
        steps: usize,
        /// Length of a step, seconds.
        step_s: u32,
    },
}

/// IoT-Benchmark's settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IotSpec {
    /// Devices.
    pub devices: usize,
    /// Sensors of a device: fields.
    pub sensors: usize,
    /// Rows of each device.
    pub rows: usize,
    /// Distance of two rows of a device, milliseconds.
    pub step_ms: u32,
    /// Type of every sensor.
    pub kind: FieldKind,
    /// How rows are late.
    pub late: Late,
    /// Values that do not repeat; IoT-Benchmark cycles through 100 values.
    pub fresh_values: bool,
}

/// How rows are late.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Late {
    /// Never.
    Never,
    /// With this probability a row is δ steps late, δ ~ Poisson(λ).
    Poisson {
        /// Probability.
        ratio: f64,
        /// Mean lateness, steps.
        lambda: f64,
    },
    /// This fraction of the rows of a batch changes places at random.
    Batch {
        /// Part of the rows.
        ratio: f64,
    },
    /// Rows are late as this says; none repeats another.
    Delayed(Delay),
}

/// Rows that are late by any number of steps up to a limit, all equally likely.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Delay {
    /// Probability that a row is late.
    pub ratio: f64,
    /// The largest number of steps by which it is late.
    pub steps_max: u32,
}

impl SourceSpec {
    /// The source that this describes.
    #[must_use]
    pub fn build(&self, seed: u64) -> Arc<dyn Source> {
        match self {
            Self::SetS { devices, rows } => Arc::new(set_s::set_s(*devices, *rows, seed)),
            Self::LateSetS {
                devices,
                rows,
                delay,
            } => Arc::new(set_s::late_set_s(*devices, *rows, *delay, seed)),
            Self::Iot(spec) => Arc::new(iot::Iot::new(spec, seed)),
            Self::Paths { spec, path } => Arc::new(iot::Iot::new(spec, seed).with_paths(*path)),
            Self::Fleet { devices, rows } => Arc::new(fleet::fleet(*devices, *rows, seed)),
            Self::Trucks {
                trucks,
                steps,
                step_s,
            } => Arc::new(trucks::Trucks::new(*trucks, *steps, *step_s, seed)),
        }
    }
}
