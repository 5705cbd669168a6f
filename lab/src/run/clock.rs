//! Devices on the clock: searches for the largest number of series for which a target keeps up.
//!
//! Every trial starts the target on an empty folder with `devices` × `fields` series. The number of
//! devices doubles while the target keeps the clock. Then the gap between the largest number that
//! was kept and the smallest that was not is halved until they are close.

mod devices;
mod trial;

use crate::monitor::Monitor;
use crate::record::{StepResult, Verdict};
use crate::study::ClockStep;
use crate::target::Target;
use anyhow::Result;
use std::path::Path;

/// The search ends when the smallest number not kept is at most this many times the largest kept.
const NEAR: f64 = 1.25;

/// What the search needs besides its step.
pub(super) struct TrialContext<'a> {
    /// Folder of the trials.
    pub dir: &'a Path,
    /// Follows the processes of every trial.
    pub monitor: &'a Monitor,
    /// Seed of the values.
    pub seed: u64,
}

/// Runs trials until the search ends. Returns one [`StepResult`] per trial (knob `series`), and one
/// for the outcome (knob `trial` = `largest`). Begins and ends with a stopped target.
pub(super) fn search(
    target: &mut dyn Target,
    step: &ClockStep,
    place: &TrialContext<'_>,
) -> Result<Vec<StepResult>> {
    let mut trials: Vec<(u64, bool)> = Vec::new();
    let mut results: Vec<StepResult> = Vec::new();
    while let Some(devices) = next(&trials, step.devices_min, step.devices_max) {
        let result = trial::run(target, step, place, devices, trials.len())?;
        trials.push((devices, result.verdict == Verdict::Right));
        results.push(result);
    }
    let largest = (results.iter().zip(&trials))
        .filter(|(_, (_, kept))| *kept)
        .max_by_key(|(_, (devices, _))| *devices);
    let mut outcome = match largest {
        Some((result, _)) => result.clone(),
        None => StepResult {
            verdict: Verdict::Failed(format!(
                "the clock was not kept with {} devices",
                step.devices_min
            )),
            ..StepResult::default()
        },
    };
    outcome.knobs.remove("series");
    outcome
        .knobs
        .insert("trial".to_owned(), "largest".to_owned());
    results.push(outcome);
    Ok(results)
}

/// The next number of devices to try, after `trials` (devices, whether the clock was kept); `None`
/// if the largest number is known well enough.
fn next(trials: &[(u64, bool)], min: u64, max: u64) -> Option<u64> {
    let kept = trials.iter().filter(|(_, kept)| *kept).map(|(n, _)| *n);
    let missed = trials.iter().filter(|(_, kept)| !kept).map(|(n, _)| *n);
    match (kept.max(), missed.min()) {
        (None, None) => Some(min.min(max)),
        (None, Some(_)) => None,
        (Some(kept), None) => (kept < max).then(|| (kept * 2).min(max)),
        (Some(kept), Some(missed)) => {
            let near = missed as f64 <= kept as f64 * NEAR;
            Some(kept.midpoint(missed)).filter(|middle| !near && *middle > kept)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers that a search tries if at most `limit` devices are kept.
    fn tried(limit: u64, min: u64, max: u64) -> Vec<u64> {
        let mut trials: Vec<(u64, bool)> = Vec::new();
        while let Some(devices) = next(&trials, min, max) {
            assert!(trials.iter().all(|(tried, _)| *tried != devices));
            trials.push((devices, devices <= limit));
        }
        trials.into_iter().map(|(devices, _)| devices).collect()
    }

    #[test]
    fn it_doubles_and_then_narrows_down() {
        assert_eq!(tried(700, 100, 100_000), [100, 200, 400, 800, 600, 700]);
        assert_eq!(tried(500, 100, 100_000), [100, 200, 400, 800, 600, 500]);
    }

    #[test]
    fn it_ends_at_the_largest_number_allowed() {
        assert_eq!(tried(u64::MAX, 100, 350), [100, 200, 350]);
        assert_eq!(tried(u64::MAX, 100, 100), [100]);
    }

    #[test]
    fn it_ends_at_once_when_the_smallest_is_too_much() {
        assert_eq!(tried(5, 100, 1_000), [100]);
    }

    #[test]
    fn every_search_ends() {
        for limit in 1..2_000 {
            assert!(tried(limit, 1, 1_500).len() < 30);
        }
    }
}
