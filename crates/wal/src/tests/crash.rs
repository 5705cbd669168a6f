//! Power loss and ends of the process at random operations: what was synced is replayed, in order.

use super::write;
use crate::{Wal, encode_record};
use marigram_env::{LogStore, SimFs};
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;

/// What a run knows of the log.
#[derive(Default)]
struct Run {
    next: u64,
    /// Highest sequence that must be replayed.
    durable: u64,
    floor: u64,
    /// First sequence in the files from the floor on.
    kept_from: u64,
}

/// Appends, syncs and rotates until something fails.
fn work(wal: &mut Wal, run: &mut Run, steps: &[u8]) {
    for step in steps {
        let done = match step % 8 {
            0 => wal.sync().map(|()| run.durable = run.next - 1),
            1 => wal.rotate().map(|_| run.durable = run.next - 1),
            2 => {
                // What is to be kept begins with a new file, as after a flush.
                wal.rotate().and_then(|floor| {
                    (run.durable, run.floor, run.kept_from) = (run.next - 1, floor, run.next);
                    wal.remove_below(floor)
                })
            }
            other => {
                let mut record = Vec::new();
                let text = "x".repeat(usize::from(*step) * 40);
                encode_record(run.next, &write(1, 1, 1, &text), &mut record);
                run.next += 1;
                let sync = other == 3;
                wal.append(&record, sync).map(|()| {
                    if sync {
                        run.durable = run.next - 1;
                    }
                })
            }
        };
        if done.is_err() {
            return;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn what_was_synced_survives_power_loss(
        seed: u64,
        lives in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..30), 0_u64..70, any::<bool>()), 1..8),
    ) {
        let sim = SimFs::new(seed);
        let dir = Path::new("/wal");
        sim.create_dir_all(dir).unwrap();
        sim.sync_dir(Path::new("/")).unwrap();
        let fs: Arc<dyn LogStore> = Arc::new(sim.clone());
        let mut run = Run { next: 1, kept_from: 1, ..Run::default() };
        for (steps, crash_after, power) in lives {
            sim.crash_at(sim.ops() + crash_after);
            let mut replayed = Vec::new();
            let opened = Wal::open(Arc::clone(&fs), dir, run.floor, &mut |sequence, _| {
                replayed.push(sequence);
                Ok(())
            });
            match opened {
                Ok((mut wal, _)) => {
                    let first = run.kept_from;
                    let last = replayed.last().copied().unwrap_or(first - 1);
                    let whole = replayed.iter().copied().eq(first..=last);
                    prop_assert!(whole, "{replayed:?} has gaps");
                    prop_assert!(last >= run.durable && last < run.next);
                    (run.next, run.durable) = (last + 1, last);
                    work(&mut wal, &mut run, &steps);
                }
                Err(error) => prop_assert!(sim.is_crashed(), "{error}"),
            }
            // The process may die alone: then what was written can be read and is not durable.
            if power { sim.crash() } else { sim.kill() }
        }
    }
}
