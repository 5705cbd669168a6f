//! Client threads, and the counters of each.

use super::samples::{Operation, Samples};
use crate::monitor::Latencies;
use anyhow::{Result, anyhow};
use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Why clients stop early: the user wants it, or a client failed.
pub(super) struct Halt<'a> {
    stop: &'a AtomicBool,
    failed: AtomicBool,
}

impl<'a> Halt<'a> {
    pub(super) fn new(stop: &'a AtomicBool) -> Self {
        Self {
            stop,
            failed: AtomicBool::new(false),
        }
    }

    pub(super) fn is_set(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed)
    }
}

/// Tells the other clients when its thread panics.
struct Alarm<'a>(&'a AtomicBool);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// Runs `work` on every item, each in a thread of its own, and waits for all threads. Fails with
/// the first error or panic. When a thread fails, `halt` is set for the others.
pub(super) fn all<T: Send>(
    items: &mut [T],
    halt: &Halt<'_>,
    work: impl Fn(&mut T) -> Result<()> + Sync,
) -> Result<()> {
    let fail = || halt.failed.store(true, Ordering::Relaxed);
    let work = |item: &mut T| {
        let _alarm = Alarm(&halt.failed);
        work(item).inspect_err(|_| fail())
    };
    thread::scope(|scope| {
        let mut threads = Vec::new();
        let mut outcome = Ok(());
        for item in items {
            match thread::Builder::new().spawn_scoped(scope, || work(item)) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    fail();
                    outcome = Err(error.into());
                    break;
                }
            }
        }
        for thread in threads {
            let done = thread
                .join()
                .unwrap_or_else(|panic| Err(anyhow!("a client panicked: {}", said(&*panic))));
            outcome = outcome.and(done);
        }
        outcome
    })
}

/// The message of a panic.
pub(super) fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message")
}

/// What one client did in a step.
pub(super) struct Tally {
    epoch: Instant,
    pub(super) latencies: Latencies,
    pub(super) samples: Samples,
    pub(super) requests: u64,
    pub(super) rows: u64,
    pub(super) points: u64,
}

impl Tally {
    /// An empty tally. Starts of requests count from `epoch`; about `samples_max` requests are
    /// stored individually.
    pub(super) fn new(client: usize, epoch: Instant, samples_max: usize) -> Self {
        Self {
            epoch,
            latencies: Latencies::default(),
            samples: Samples::new(client, samples_max),
            requests: 0,
            rows: 0,
            points: 0,
        }
    }

    /// Counts a request of a kind (an index) that began, or should have begun, at `start` and has
    /// just ended. Returns the time between.
    pub(super) fn request(
        &mut self,
        kind: usize,
        start: Instant,
        rows: usize,
        ok: bool,
    ) -> Duration {
        let latency = start.elapsed();
        if ok {
            self.latencies.record(latency);
            self.requests += 1;
        }
        self.samples.push(Operation {
            kind,
            start_us: start.saturating_duration_since(self.epoch).as_micros() as i64,
            latency_us: ok.then_some(latency.as_secs_f64() * 1e6),
            rows: rows as u32,
        });
        latency
    }
}

/// Waits until `instant`, or until the user wants to stop.
pub(super) fn sleep_until(instant: Instant, halt: &Halt<'_>) {
    loop {
        let left = instant.saturating_duration_since(Instant::now());
        if left.is_zero() || halt.is_set() {
            return;
        }
        thread::sleep(left.min(Duration::from_millis(100)));
    }
}
