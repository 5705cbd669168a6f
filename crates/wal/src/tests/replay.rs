//! What replay takes, cuts off and refuses.

use super::write;
use crate::file::HEADER_BYTES;
use crate::{ReplayReport, Wal, WalEntry, WalError, encode_record, file_name};
use marigram_env::{FaultRepeat, LogStore, OpKind, PlannedFault, SimFs};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const DIR: &str = "/wal";

fn disk(seed: u64) -> SimFs {
    let fs = SimFs::new(seed);
    fs.create_dir_all(Path::new(DIR)).unwrap();
    fs.sync_dir(Path::new("/")).unwrap();
    fs
}

fn path(number: u64) -> PathBuf {
    Path::new(DIR).join(file_name(number))
}

type Opened = (Wal, ReplayReport, Vec<u64>);

fn open(fs: &SimFs, floor: u64) -> Result<Opened, WalError> {
    let mut sequences = Vec::new();
    let fs: Arc<dyn LogStore> = Arc::new(fs.clone());
    let (wal, report) = Wal::open(fs, Path::new(DIR), floor, &mut |sequence, entry| {
        assert!(matches!(entry, WalEntry::Write(_)));
        sequences.push(sequence);
        Ok(())
    })?;
    Ok((wal, report, sequences))
}

fn record(sequence: u64) -> Vec<u8> {
    let mut out = Vec::new();
    encode_record(sequence, &write(1, 2, 3, "value"), &mut out);
    out
}

fn append(wal: &mut Wal, sequences: std::ops::RangeInclusive<u64>) {
    for sequence in sequences {
        wal.append(&record(sequence), true).unwrap();
    }
}

/// Files 1 (records 1 to 3) and 2 (records 4 to 6).
fn two_files() -> SimFs {
    let fs = disk(1);
    let (mut wal, ..) = open(&fs, 0).unwrap();
    append(&mut wal, 1..=3);
    assert_eq!(wal.rotate().unwrap(), 2);
    append(&mut wal, 4..=6);
    fs.kill();
    fs
}

#[test]
fn records_are_replayed_in_order_from_all_files() {
    let fs = two_files();
    let (mut wal, report, sequences) = open(&fs, 0).unwrap();
    assert_eq!(sequences, [1, 2, 3, 4, 5, 6]);
    assert_eq!((report.records, report.torn), (6, None));
    assert_eq!(
        report.bytes,
        (1..=6).map(|n| record(n).len() as u64).sum::<u64>()
    );
    assert_eq!(wal.number(), 3);
    assert_eq!(wal.bytes(), report.bytes + 3 * HEADER_BYTES as u64);

    append(&mut wal, 7..=7);
    wal.remove_below(3).unwrap();
    assert_eq!(fs.list(Path::new(DIR)).unwrap(), [file_name(3)]);
    fs.kill();
    assert_eq!(open(&fs, 3).unwrap().2, [7]);
}

#[test]
fn files_below_the_floor_are_removed_unread() {
    let fs = two_files();
    fs.flip_bit(&path(1), 5).unwrap();
    let (wal, _, sequences) = open(&fs, 2).unwrap();
    assert_eq!((sequences, wal.number()), (vec![4, 5, 6], 3));
    assert_eq!(
        fs.list(Path::new(DIR)).unwrap(),
        [file_name(2), file_name(3)]
    );
}

#[test]
fn the_tail_of_the_last_file_is_cut_off_at_the_first_damage() {
    let second = HEADER_BYTES as u64 + record(4).len() as u64;
    for bit in 0..record(5).len() as u64 * 8 {
        let fs = two_files();
        fs.flip_bit(&path(2), second * 8 + bit).unwrap();
        let (mut wal, report, sequences) = open(&fs, 0).unwrap();
        assert_eq!(sequences, [1, 2, 3, 4]);
        let (torn, offset, _) = report.torn.unwrap();
        assert_eq!((torn, offset), (path(2), second));
        append(&mut wal, 5..=5);
        fs.crash();
        assert_eq!(open(&fs, 0).unwrap().2, [1, 2, 3, 4, 5]);
    }
}

#[test]
fn a_cut_tail_stays_cut_when_empty_files_follow() {
    let fs = two_files();
    for _ in 0..3 {
        open(&fs, 0).unwrap();
        fs.kill();
    }
    let len = fs.open(&path(2)).unwrap().len().unwrap();
    fs.open(&path(2)).unwrap().truncate(len - 1).unwrap();
    let (_, report, sequences) = open(&fs, 0).unwrap();
    assert_eq!(sequences, [1, 2, 3, 4, 5]);
    assert_eq!(report.torn.unwrap().0, path(2));
}

#[test]
fn damage_before_the_last_file_is_corruption() {
    let end = HEADER_BYTES + record(1).len() * 3;
    for bit in 0..end as u64 * 8 {
        let fs = two_files();
        fs.flip_bit(&path(1), bit).unwrap();
        let Err(error) = open(&fs, 0) else {
            panic!("bit {bit} was not noticed")
        };
        let WalError::Corrupt { path: named, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(named, path(1));
    }
    let fs = two_files();
    fs.open(&path(1)).unwrap().truncate(end as u64 - 1).unwrap();
    assert!(matches!(open(&fs, 0), Err(WalError::Corrupt { .. })));
}

#[test]
fn a_damaged_header_before_records_is_corruption_and_a_torn_one_means_an_empty_file() {
    let fs = two_files();
    fs.flip_bit(&path(2), 100).unwrap();
    assert!(matches!(
        open(&fs, 0),
        Err(WalError::Corrupt { offset: 0, .. })
    ));
    for len in 0..HEADER_BYTES as u64 {
        let fs = two_files();
        fs.open(&path(2)).unwrap().truncate(len).unwrap();
        let (mut wal, report, sequences) = open(&fs, 0).unwrap();
        assert_eq!((sequences, report.torn), (vec![1, 2, 3], None));
        append(&mut wal, 4..=4);
        fs.kill();
        assert_eq!(open(&fs, 0).unwrap().2, [1, 2, 3, 4]);
    }
}

#[test]
fn missing_files_and_sequences_that_go_back_are_corruption() {
    let fs = two_files();
    fs.remove(&path(1)).unwrap();
    assert!(matches!(open(&fs, 0), Err(WalError::Corrupt { .. })));
    assert_eq!(open(&fs, 2).unwrap().2, [4, 5, 6]);
    let fs = two_files();
    assert!(matches!(open(&fs, 9), Err(WalError::Corrupt { .. })));

    let fs = disk(1);
    let (mut wal, ..) = open(&fs, 0).unwrap();
    append(&mut wal, 5..=5);
    append(&mut wal, 5..=5);
    fs.kill();
    assert!(matches!(open(&fs, 0), Err(WalError::Corrupt { .. })));
}

#[test]
fn a_failed_append_or_sync_refuses_all_that_follows_and_leaves_nothing_of_itself() {
    // A full disk is another matter: see `super::full`.
    let failures: [&dyn Fn(&SimFs); 2] = [
        &|fs| {
            fs.fail(PlannedFault {
                kind: Some(OpKind::Append),
                after: 0,
                repeat: FaultRepeat::Once,
            });
        },
        &|fs| {
            fs.fail(PlannedFault {
                kind: Some(OpKind::Sync),
                after: 0,
                repeat: FaultRepeat::Once,
            });
        },
    ];
    for fail in failures {
        let fs = disk(1);
        let (mut wal, ..) = open(&fs, 0).unwrap();
        append(&mut wal, 1..=2);
        fail(&fs);
        let first = wal.append(&record(3), true).unwrap_err().to_string();
        let second = wal.append(&record(4), true).unwrap_err().to_string();
        let reason = first.rsplit(": ").next().unwrap();
        assert!(second.contains(reason), "'{second}' repeats '{first}'");
        assert!(wal.sync().is_err() && wal.rotate().is_err());
        fs.crash();
        let (_, report, sequences) = open(&fs, 0).unwrap();
        assert_eq!((sequences, report.torn), (vec![1, 2], None));
    }
}

#[test]
fn an_entry_that_the_reader_refuses_ends_replay() {
    let fs: Arc<dyn LogStore> = Arc::new(two_files());
    let result = Wal::open(fs, Path::new(DIR), 0, &mut |_, _| {
        Err(WalError::Corrupt {
            path: PathBuf::new(),
            offset: 0,
            reason: "refused".into(),
        })
    });
    assert!(result.unwrap_err().to_string().contains("refused"));
}
