//! How far a series of runs is: a bar with the time that remains, or plain lines.

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
    /// Steps of its setup: its weight, until something is known of how long it takes.
    pub(super) steps: usize,
}

/// Shows how far it is.
pub(super) struct Progress {
    quiet: bool,
    bar: Option<ProgressBar>,
    known: Known,
    due: VecDeque<Job>,
    count: usize,
    left: Arc<Mutex<Option<Left>>>,
}

/// What remains, as of the start of the run at hand.
struct Left {
    /// Of the run at hand, seconds.
    this: f64,
    /// Of the runs after it, seconds.
    others: f64,
    began: Instant,
}

/// How long runs took.
#[derive(Default)]
struct Known {
    /// Runs and their seconds: of a target in a setup, of a setup.
    target: HashMap<(usize, usize, usize), (f64, f64)>,
    setup: HashMap<(usize, usize), (f64, f64)>,
    /// Steps of all, and their seconds.
    steps: (f64, f64),
}

impl Known {
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

    /// Seconds that a run will take, from the nearest that is known.
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
            known: Known::default(),
            due: VecDeque::new(),
            count: 0,
            left: Arc::new(Mutex::new(None)),
        }
    }

    /// A run took so long, now or earlier.
    pub(super) fn learn(&mut self, job: &Job, seconds: f64) {
        self.known.learn(job, seconds);
    }

    /// These runs are to be made.
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
            // Nothing to be done about a terminal that takes no text.
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

    /// This run begins now.
    pub(super) fn unit(&mut self, job: &Job, title: &str) {
        let others = self.due.iter().skip(1);
        let others: Option<f64> = others.map(|job| self.known.estimate(job)).sum();
        let this = self.known.estimate(job);
        let left = this.zip(others).map(|(this, others)| Left {
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

    /// It has ended.
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

    /// Puts the bar where the time is, if it can be told, else where the steps are.
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
        let mut known = Known::default();
        assert_eq!(known.estimate(&job(0, 0, 2)), None);
        known.learn(&job(0, 0, 2), 10.0);
        known.learn(&job(0, 1, 2), 30.0);
        assert_eq!(known.estimate(&job(0, 1, 2)), Some(30.0));
        assert_eq!(known.estimate(&job(0, 2, 2)), Some(20.0));
        assert_eq!(known.estimate(&job(1, 0, 1)), Some(10.0));
    }
}
