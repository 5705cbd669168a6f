//! Crash simulation over many seeds.
//!
//! `MARIGRAM_CRASH_SEEDS=100000` runs more of them, `MARIGRAM_CRASH_SEED=7` runs one.
#![allow(clippy::disallowed_methods, reason = "tests print how long they took")]

use marigram_testing::crash::{Machine, Summary, Trouble, run};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Seeds of a normal test run.
const SEEDS: u64 = 2_000;
const THREADS: usize = 2;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable} is a number, not '{text}'")),
    )
}

/// Runs a case, also through a panic.
fn guarded(case: impl FnOnce() -> Result<Summary, String>) -> Result<Summary, String> {
    catch_unwind(AssertUnwindSafe(case)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(format!("panic: {}", text.unwrap_or_default()))
    })
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs cases on several threads until one fails; the lowest that failed, if one did.
fn run_all(
    cases: u64,
    case: impl Fn(u64) -> Result<Summary, String> + Sync,
) -> Result<Summary, (u64, String)> {
    let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let (total, failed) = (Mutex::new(Summary::default()), Mutex::new(None));
    let work = || {
        while !stop.load(Ordering::Relaxed) {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= cases {
                break;
            }
            match guarded(|| case(at)) {
                Ok(summary) => *locked(&total) += summary,
                Err(reason) => {
                    stop.store(true, Ordering::Relaxed);
                    let mut failed = locked(&failed);
                    if failed.as_ref().is_none_or(|(earlier, _)| at < *earlier) {
                        *failed = Some((at, reason));
                    }
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(work);
        }
    });
    match locked(&failed).take() {
        Some(failure) => Err(failure),
        None => Ok(*locked(&total)),
    }
}

#[test]
fn random_work_survives_crashes_errors_and_full_disks() {
    if let Some(seed) = number("MARIGRAM_CRASH_SEED") {
        let summary = run(seed).unwrap_or_else(|reason| panic!("seed {seed}: {reason}"));
        println!("seed {seed}: {summary:?}");
        return;
    }
    let start = Instant::now();
    let first = number("MARIGRAM_CRASH_FIRST").unwrap_or(0);
    let seeds = number("MARIGRAM_CRASH_SEEDS").unwrap_or(SEEDS);
    match run_all(seeds, |at| run(first + at)) {
        Ok(summary) => println!("{seeds} seeds in {:.1?}: {summary:?}", start.elapsed()),
        Err((at, reason)) => panic!(
            "seed {seed}: {reason}\nTo repeat it:\n  MARIGRAM_CRASH_SEED={seed} cargo test --release \
             -p marigram-testing --test crash random_work",
            seed = first + at,
        ),
    }
}

#[test]
fn a_life_survives_a_crash_at_each_of_its_operations() {
    // The same life each time, up to the operation at which the power fails.
    let life = |crash_at: Option<u64>| {
        let mut machine = Machine::new(1);
        let lived = machine
            .live_with(Trouble::None, 40)
            .and_then(|()| machine.live_with(crash_at.map_or(Trouble::None, Trouble::Power), 60))
            .and_then(|()| machine.finish());
        match lived {
            Ok(()) => Ok(machine.summary()),
            Err(reason) => Err(format!("{reason}\n{}", machine.trace())),
        }
    };
    let ops = life(None).unwrap().ops;
    if let Err((at, reason)) = run_all(ops, |at| life(Some(at))) {
        panic!("a crash at operation {at} of the second life: {reason}");
    }
}

#[test]
fn a_seed_runs_the_same_way_each_time() {
    for seed in 0..20 {
        assert_eq!(run(seed), run(seed));
    }
}
