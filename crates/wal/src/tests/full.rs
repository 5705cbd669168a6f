//! A full disk: what was not taken is not there, and the log goes on.

use super::write;
use crate::file::HEADER_BYTES;
use crate::{Wal, WalEntry, WalError, encode_record};
use marigram_env::{FaultRepeat, LogStore, OpKind, PlannedFault, SimFs};
use std::path::Path;
use std::sync::Arc;

fn disk() -> SimFs {
    let sim = SimFs::new(1);
    sim.create_dir_all(Path::new("/wal")).unwrap();
    sim.sync_dir(Path::new("/")).unwrap();
    sim
}

/// The log, and the sequences that it replays.
fn open(sim: &SimFs) -> (Wal, Vec<u64>) {
    open_from(sim, 1)
}

/// The same from a file on.
fn open_from(sim: &SimFs, floor: u64) -> (Wal, Vec<u64>) {
    let fs: Arc<dyn LogStore> = Arc::new(sim.clone());
    let mut replayed = Vec::new();
    let mut apply = |sequence, _: WalEntry| {
        replayed.push(sequence);
        Ok(())
    };
    let (wal, _) = Wal::open(fs, Path::new("/wal"), floor, &mut apply).unwrap();
    (wal, replayed)
}

fn record(sequence: u64) -> Vec<u8> {
    let mut record = Vec::new();
    encode_record(sequence, &write(1, 1, 1, &"x".repeat(100)), &mut record);
    record
}

#[test]
fn records_that_find_the_disk_full_are_taken_back_and_the_log_goes_on() {
    for space in (0..400).step_by(7) {
        for power in [false, true] {
            let sim = disk();
            let (mut wal, _) = open(&sim);
            wal.append(&record(1), true).unwrap();
            sim.set_space(Some(space));
            // Two records at once: the first may be whole on the disk when the second is not.
            let group = [record(2), record(3)].concat();
            let taken = wal.append(&group, true);
            assert_eq!(taken.is_err(), (space as usize) < group.len());
            if let Err(error) = &taken {
                assert!(matches!(error, WalError::Full { .. }), "{error}");
                sim.set_space(None);
                wal.append(&record(4), true).unwrap();
            }
            if power {
                sim.crash();
            } else {
                sim.kill();
            }
            sim.set_space(None);
            let expected = if taken.is_ok() {
                vec![1, 2, 3]
            } else {
                vec![1, 4]
            };
            assert_eq!(open(&sim).1, expected);
        }
    }
}

#[test]
fn promised_room_is_there_whatever_others_write_and_in_the_next_file() {
    let sim = disk();
    let (mut wal, _) = open(&sim);
    let len = record(1).len() as u64;
    sim.set_space(Some(2 * len + HEADER_BYTES as u64 + 2 * len));
    let promise = wal.room().promise(2 * len).unwrap();
    assert!(matches!(
        wal.room().promise(4 * len),
        Err(WalError::Full { .. })
    ));
    wal.rotate().unwrap();
    sim.set_space(Some(0));
    wal.append(&[record(1), record(2)].concat(), true).unwrap();
    drop(promise);
    assert!(matches!(
        wal.append(&record(3), true),
        Err(WalError::Full { .. })
    ));
    assert!(matches!(wal.rotate(), Err(WalError::Full { .. })));
    sim.set_space(None);
    wal.append(&record(3), true).unwrap();
    sim.crash();
    assert_eq!(open(&sim).1, [1, 2, 3]);
}

#[test]
fn a_log_without_room_for_a_file_is_read_and_takes_records_later() {
    let sim = disk();
    let (mut wal, _) = open(&sim);
    wal.append(&record(1), true).unwrap();
    drop(wal);
    sim.kill();
    sim.set_space(Some(3));
    let (mut wal, replayed) = open(&sim);
    assert_eq!(replayed, [1]);
    assert!(matches!(
        wal.append(&record(2), true),
        Err(WalError::Full { .. })
    ));
    assert!(matches!(wal.rotate(), Err(WalError::Full { .. })));
    sim.set_space(None);
    wal.append(&record(2), true).unwrap();
    sim.crash();
    assert_eq!(open(&sim).1, [1, 2]);
}

#[test]
fn the_only_file_stays_where_there_is_no_room_to_make_it_anew() {
    for space in 0..30 {
        for power in [false, true] {
            let sim = disk();
            let (mut wal, _) = open(&sim);
            wal.append(&record(1), true).unwrap();
            let floor = wal.rotate().unwrap();
            wal.remove_below(floor).unwrap();
            drop(wal);
            sim.kill();
            // As after a power cut amid its beginning.
            let file = sim.open(
                Path::new("/wal")
                    .join(crate::file::file_name(floor))
                    .as_path(),
            );
            let file = file.unwrap();
            file.truncate(0).unwrap();
            file.sync().unwrap();
            drop(file);
            sim.set_space(Some(space));
            let (wal, replayed) = open_from(&sim, floor);
            assert_eq!(replayed, [0; 0]);
            drop(wal);
            if power {
                sim.crash();
            } else {
                sim.kill();
            }
            sim.set_space(None);
            let (mut wal, replayed) = open_from(&sim, floor);
            assert_eq!(replayed, [0; 0]);
            wal.append(&record(2), true).unwrap();
            drop(wal);
            sim.crash();
            assert_eq!(open_from(&sim, floor).1, [2]);
        }
    }
}

#[test]
fn after_a_failed_sync_the_record_is_gone_or_in_doubt() {
    for (repeat, uncertain) in [(FaultRepeat::Once, false), (FaultRepeat::Forever, true)] {
        for power in [false, true] {
            let sim = disk();
            let (mut wal, _) = open(&sim);
            wal.append(&record(1), true).unwrap();
            let kind = Some(OpKind::Sync);
            sim.fail(PlannedFault {
                kind,
                after: 0,
                repeat,
            });
            let error = wal.append(&record(2), true).unwrap_err();
            assert_eq!(matches!(error, WalError::Uncertain { .. }), uncertain);
            assert!(wal.append(&record(3), true).is_err());
            if power {
                sim.crash();
            } else {
                sim.kill();
            }
            let replayed = open(&sim).1;
            assert!(
                replayed == [1] || (uncertain && replayed == [1, 2]),
                "{replayed:?}"
            );
        }
    }
}
