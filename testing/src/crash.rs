//! Crash simulation: random work on a simulated disk that fails, compared with the model.
//!
//! A run consists of several *lives* of one data directory. In each life, the engine opens the
//! directory, the simulation compares what the engine reads with the model, and work continues
//! until the life's trouble ends it: power fails in the middle of an operation, an I/O error or a
//! full disk turns the engine read-only, the process is killed, or nothing happens at all. Between
//! lives, backups are restored, sometimes with power losses in the middle, and compared with the
//! state of the model when they were taken. The seed of the run determines everything.

mod backup_checks;
mod backups;
mod changes;
mod checks;
mod machine;
mod trouble;
mod workload;

pub use checks::{check_files, check_random_read};
pub use machine::{RunSummary, SimMachine};
pub use trouble::CrashTrouble;
pub use workload::{Workload, WorkloadAction, to_batch};

/// Runs a seed to its end. `verbose` reports each step in full if it fails.
///
/// # Errors
/// What was wrong, and the steps that led to it.
pub fn run(seed: u64, verbose: bool) -> Result<RunSummary, String> {
    let machine = SimMachine::new(seed);
    run_machine(if verbose { machine.verbose() } else { machine })
}

/// Runs a machine to its end.
///
/// # Errors
/// As [`run`].
pub fn run_machine(mut machine: SimMachine) -> Result<RunSummary, String> {
    let lives = machine.draw_lives();
    let result = (0..lives)
        .try_for_each(|_| machine.live())
        .and_then(|()| machine.finish());
    match result {
        Ok(()) => Ok(machine.summary()),
        Err(reason) => Err(format!("{reason}\n{}", machine.trace())),
    }
}
