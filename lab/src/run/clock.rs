//! Devices on the clock: searches for the largest number of series that a target keeps up with.

use crate::record::StepResult;
use crate::study::ClockStep;
use crate::target::Target;
use anyhow::Result;

/// Runs trials until the search has ended; one [`StepResult`] a trial (knob `series`), and one for
/// the outcome (knob `trial` = `largest`).
pub fn search(_target: &mut dyn Target, _step: &ClockStep, _seed: u64) -> Result<Vec<StepResult>> {
    Ok(Vec::new())
}
