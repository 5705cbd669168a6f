//! The progress of a series of runs: a bar with the remaining time, or plain lines.

use super::store::is_wrong;
use crate::record::RunResult;
use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A run, by indices into the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) study: usize,
    pub(super) setup: usize,
    pub(super) repeat: usize,
    pub(super) target: usize,
    /// Number of steps of its setup: its weight until its duration is known.
    pub(super) steps: usize,
}

/// Shows the progress.
pub(super) struct Progress {
    quiet: bool,
    bar: Option<ProgressBar>,
    known: RunDurations,
    due: VecDeque<Job>,
    count: usize,
    left: Arc<Mutex<Option<RemainingTime>>>,
}

/// Estimates of the remaining time, as of the start of the current run.
struct RemainingTime {
    /// Of the current run, seconds.
    this: f64,
    /// Of the runs after it, seconds.
    others: f64,
    began: Instant,
}

/// Durations of runs.
#[derive(Default)]
struct RunDurations {
    /// Number of runs and their seconds: by target and setup, and by setup.
    target: HashMap<(usize, usize, usize), (f64, f64)>,
    setup: HashMap<(usize, usize), (f64, f64)>,
    /// Number of all steps, and their seconds.
    steps: (f64, f64),
}

impl RunDurations {
    fn learn(&mut self, job: &Job, seconds: f64) {
        let add = |(weight, sum): &mut (f64, f64), count: f64| {
            *weight += count;
            *sum += seconds;
        };
        let setup = (job.study, job.setup);
        add(self.setup.entry(setup).or_default(), 1.0);
        let target = (job.study, job.setup, job.target);
        add(self.target.entry(target).or_default(), 1.0);
        add(&mut self.steps, job.steps as f64);
    }

    /// Expected seconds of a run, from the most similar run that is known.
    fn estimate(&self, job: &Job) -> Option<f64> {
        let target = (job.study, job.setup, job.target);
        let near = self.target.get(&target);
        let near = near.or_else(|| self.setup.get(&(job.study, job.setup)));
        let steps = self.steps;
        near.map(|(count, sum)| sum / count)
            .or((steps.0 > 0.0).then(|| job.steps as f64 * steps.1 / steps.0))
    }
}

impl Progress {
    pub(super) fn new(quiet: bool) -> Self {
        Self {
            quiet,
            bar: None,
            known: RunDurations::default(),
            due: VecDeque::new(),
            count: 0,
            left: Arc::new(Mutex::new(None)),
        }
    }

    /// Adds the duration of a run that was executed now or earlier.
    pub(super) fn learn(&mut self, job: &Job, seconds: f64) {
        self.known.learn(job, seconds);
    }

    /// Announces the runs that will be executed.
    pub(super) fn begin(&mut self, due: VecDeque<Job>) {
        self.count = due.len();
        self.due = due;
        if self.quiet || !std::io::stderr().is_terminal() {
            return;
        }
        let left = Arc::clone(&self.left);
        let left = move |_: &ProgressState, to: &mut dyn fmt::Write| {
            let left = left.lock().unwrap_or_else(PoisonError::into_inner);
            let text = left.as_ref().map_or_else(String::new, |left| {
                let this = (left.this - left.began.elapsed().as_secs_f64()).max(0.0);
                let left = Duration::from_secs_f64((this + left.others).min(1e9));
                format!("about {} left", HumanDuration(left))
            });
            // A terminal that accepts no text is ignored.
            let _ = to.write_str(&text);
        };
        let bar = ProgressBar::new(due_steps(&self.due));
        let template = "{wide_bar} {elapsed_precise}, {left}\n{msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.with_key("left", left));
        }
        bar.enable_steady_tick(Duration::from_millis(500));
        self.bar = Some(bar);
    }

    /// Announces that a run begins.
    pub(super) fn unit(&mut self, job: &Job, title: &str) {
        let others = self.due.iter().skip(1);
        let others: Option<f64> = others.map(|job| self.known.estimate(job)).sum();
        let this = self.known.estimate(job);
        let left = this.zip(others).map(|(this, others)| RemainingTime {
            this,
            others,
            began: Instant::now(),
        });
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) = left;
        if let Some(bar) = &self.bar {
            let number = self.count - self.due.len() + 1;
            bar.set_message(format!("{number} of {}: {title}", self.count));
        }
    }

    /// Announces that the run has ended.
    pub(super) fn ended(&mut self, job: &Job, title: &str, result: &RunResult) {
        self.due.pop_front();
        if result.failed.is_none() {
            self.learn(job, result.seconds);
        }
        let end = match &result.failed {
            Some(why) => Some(format!("failed: {why}")),
            None if is_wrong(result) => Some("wrong answers".to_owned()),
            None => None,
        };
        match (&self.bar, end) {
            (Some(bar), end) => {
                if let Some(end) = end {
                    bar.println(format!("{title}: {end}"));
                }
                self.place(bar);
            }
            (None, end) if !self.quiet => {
                let number = self.count - self.due.len();
                let end = end.map_or_else(String::new, |end| format!(", {end}"));
                let seconds = result.seconds;
                eprintln!("[{number}/{}] {title}: {seconds:.1} s{end}", self.count);
            }
            _ => {}
        }
    }

    /// Sets the bar by time if it can be estimated, otherwise by steps.
    fn place(&self, bar: &ProgressBar) {
        let left: Option<f64> = self.due.iter().map(|job| self.known.estimate(job)).sum();
        match left {
            Some(left) => {
                let elapsed = bar.elapsed().as_secs_f64();
                bar.set_length(((elapsed + left) * 10.0) as u64);
                bar.set_position((elapsed * 10.0) as u64);
            }
            None => bar.set_position(bar.length().unwrap_or(0) - due_steps(&self.due)),
        }
    }

    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn due_steps(due: &VecDeque<Job>) -> u64 {
    due.iter().map(|job| job.steps as u64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_come_from_the_nearest_run() {
        let job = |setup, target, steps| Job {
            study: 0,
            setup,
            repeat: 0,
            target,
            steps,
        };
        let mut known = RunDurations::default();
        assert_eq!(known.estimate(&job(0, 0, 2)), None);
        known.learn(&job(0, 0, 2), 10.0);
        known.learn(&job(0, 1, 2), 30.0);
        assert_eq!(known.estimate(&job(0, 1, 2)), Some(30.0));
        assert_eq!(known.estimate(&job(0, 2, 2)), Some(20.0));
        assert_eq!(known.estimate(&job(1, 0, 1)), Some(10.0));
    }
}
