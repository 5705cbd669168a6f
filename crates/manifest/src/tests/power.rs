//! Power loss and I/O errors at every operation.

use super::{disk, edit};
use crate::{LogOptions, Manifest, ManifestEdit, ManifestError, ManifestState};
use marigram_env::{FaultRepeat, LogStore, OpKind, PlannedFault, SimFs};
use std::path::Path;
use std::sync::Arc;

/// So small that the log is rewritten every few edits.
const OPTIONS: LogOptions = LogOptions {
    rewrite_bytes_min: 600,
};
const EDITS: u64 = 14;

fn state_after(edits: u64) -> ManifestState {
    let mut state = ManifestState::default();
    (1..=edits).for_each(|nth| state.apply(&edit(nth)));
    state
}

/// Commits edits from `from` on until one fails; returns how many are committed in all.
fn run(fs: &Arc<dyn LogStore>, dir: &Path, from: u64) -> u64 {
    let Ok((mut manifest, _)) = Manifest::open_with(Arc::clone(fs), dir, OPTIONS) else {
        return from;
    };
    for nth in from + 1..=EDITS {
        if manifest.commit(&edit(nth)).is_err() {
            let error = manifest.commit(&edit(nth)).unwrap_err();
            assert!(matches!(error, ManifestError::Poisoned { .. }), "{error}");
            return nth - 1;
        }
    }
    EDITS
}

/// Opens after a crash and compares with what was committed; returns the number of edits there.
fn recover(sim: &SimFs, fs: &Arc<dyn LogStore>, dir: &Path, committed: u64, what: &str) -> u64 {
    let (_, state) = Manifest::open_with(Arc::clone(fs), dir, OPTIONS)
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    // The edit that was under way may be there.
    let found = if state == state_after(committed) {
        committed
    } else {
        committed + 1
    };
    assert_eq!(
        state,
        state_after(found),
        "{what}, {committed} edits committed"
    );
    // What was read once is durable: the engine has acted on it.
    sim.crash();
    let (_, again) = Manifest::open_with(Arc::clone(fs), dir, OPTIONS)
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(again, state, "{what}: read, acted on, and then lost");
    found
}

fn operations() -> u64 {
    let (sim, fs, dir) = disk(0);
    assert_eq!(run(&fs, &dir, 0), EDITS);
    sim.ops()
}

#[test]
fn no_committed_edit_is_lost_wherever_power_fails() {
    let total = operations();
    assert!(total > 60, "{total} operations");
    for seed in 0..12 {
        for at in 0..total {
            let (sim, fs, dir) = disk(seed);
            sim.crash_at(at);
            let committed = run(&fs, &dir, 0);
            sim.crash();
            let what = format!("seed {seed}, power lost at operation {at}");
            if !fs.exists(&dir).unwrap() {
                assert_eq!(committed, 0, "{what}");
                continue;
            }
            let found = recover(&sim, &fs, &dir, committed, &what);
            assert_eq!(run(&fs, &dir, found), EDITS, "{what}: it goes on");
            assert_eq!(recover(&sim, &fs, &dir, EDITS, &what), EDITS);
        }
    }
}

#[test]
fn a_killed_process_loses_nothing_even_if_power_fails_later() {
    let total = operations();
    for at in 0..total {
        let (sim, fs, dir) = disk(at);
        sim.fail(PlannedFault {
            kind: None,
            after: at,
            repeat: FaultRepeat::Forever,
        });
        let committed = run(&fs, &dir, 0);
        sim.clear_faults();
        sim.kill();
        recover(
            &sim,
            &fs,
            &dir,
            committed,
            &format!("killed at operation {at}"),
        );
    }
}

#[test]
fn after_an_error_nothing_is_committed_and_nothing_lost() {
    for kind in [
        OpKind::Append,
        OpKind::Sync,
        OpKind::SyncDir,
        OpKind::Rename,
        OpKind::Create,
    ] {
        for after in 0..40 {
            let (sim, fs, dir) = disk(after);
            let (mut manifest, _) = Manifest::open_with(Arc::clone(&fs), &dir, OPTIONS).unwrap();
            sim.fail(PlannedFault {
                kind: Some(kind),
                after,
                repeat: FaultRepeat::Once,
            });
            let mut committed = 0;
            for nth in 1..=EDITS {
                match manifest.commit(&edit(nth)) {
                    Ok(()) => committed = nth,
                    Err(_) => break,
                }
            }
            if committed < EDITS {
                let error = manifest.commit(&ManifestEdit::default()).unwrap_err();
                assert!(matches!(error, ManifestError::Poisoned { .. }), "{error}");
                assert_eq!(manifest.state(), &state_after(committed));
            }
            sim.clear_faults();
            recover(
                &sim,
                &fs,
                &dir,
                committed,
                &format!("{kind:?} failed after {after}"),
            );
        }
    }
}

#[test]
fn a_full_disk_is_an_error_and_harms_nothing() {
    for space in (0..4000).step_by(97) {
        let (sim, fs, dir) = disk(space);
        let (mut manifest, _) = Manifest::open_with(Arc::clone(&fs), &dir, OPTIONS).unwrap();
        sim.set_space(Some(space));
        let committed = (1..=EDITS)
            .take_while(|nth| manifest.commit(&edit(*nth)).is_ok())
            .count();
        sim.set_space(None);
        let found = recover(
            &sim,
            &fs,
            &dir,
            committed as u64,
            &format!("{space} bytes free"),
        );
        assert_eq!(run(&fs, &dir, found), EDITS);
    }
}
