//! The simulated disk: what survives a crash, what may not, and how it fails.

use super::*;
use crate::traits::{Clock, File, LogStore};
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

const SEEDS: u64 = 400;

fn read(file: &dyn File) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn durable_file(fs: &SimFs, path: &str, bytes: &[u8]) -> Arc<dyn File> {
    let path = Path::new(path);
    fs.create_dir_all(path.parent().unwrap()).unwrap();
    let file = fs.create(path).unwrap();
    file.append(bytes).unwrap();
    file.sync().unwrap();
    for dir in path.ancestors().skip(1) {
        fs.sync_dir(dir).unwrap();
    }
    file
}

/// What is left of `/d/f` in each of many crashes, after `write` has been at a durable "synced".
fn survivors(write: impl Fn(&SimFs, &dyn File)) -> BTreeSet<Option<Vec<u8>>> {
    let outcomes = (0..SEEDS).map(|seed| {
        let fs = SimFs::new(seed);
        let file = durable_file(&fs, "/d/f", b"synced");
        write(&fs, file.as_ref());
        fs.crash();
        fs.open(Path::new("/d/f"))
            .ok()
            .map(|file| read(file.as_ref()))
    });
    outcomes.collect()
}

#[test]
fn synced_bytes_survive_and_unsynced_ones_may_be_lost_or_torn() {
    let tail = vec![7; 9000];
    let found = survivors(|_, file| file.append(&tail).unwrap());
    let found: BTreeSet<_> = found
        .into_iter()
        .map(|bytes| bytes.expect("it was synced"))
        .collect();
    assert!(found.iter().all(|bytes| bytes.starts_with(b"synced")));
    let whole = [b"synced".as_slice(), &tail].concat();
    assert!(found.contains(b"synced".as_slice()) && found.contains(&whole));
    assert!(
        found
            .iter()
            .any(|b| b.len() > 6 && b.len() < 9006 && whole.starts_with(b))
    );
    // Pages that reached the disk behind one that did not.
    let reordered = |b: &Vec<u8>| b.len() == 9006 && b[6] == 0 && b[9005] == 7;
    assert!(found.iter().any(reordered));

    let found = survivors(|_, file| {
        file.append(&tail).unwrap();
        file.sync().unwrap();
    });
    assert_eq!(found, BTreeSet::from([Some(whole)]));
}

#[test]
fn a_truncation_that_was_not_synced_may_be_undone() {
    let found = survivors(|_, file| {
        file.truncate(2).unwrap();
        file.append(b"!").unwrap();
    });
    for expected in [b"synced".as_slice(), b"sy", b"sy!"] {
        assert!(found.contains(&Some(expected.to_vec())), "{expected:?}");
    }
    let found = survivors(|_, file| {
        file.truncate(2).unwrap();
        file.sync().unwrap();
    });
    assert_eq!(found, BTreeSet::from([Some(b"sy".to_vec())]));
}

#[test]
fn names_survive_only_when_their_directory_was_synced() {
    let names = |sync: bool| -> BTreeSet<Vec<String>> {
        let outcomes = (0..SEEDS).map(|seed| {
            let fs = SimFs::new(seed);
            durable_file(&fs, "/d/a", b"a");
            durable_file(&fs, "/d/b", b"b");
            fs.rename(Path::new("/d/a"), Path::new("/d/c")).unwrap();
            fs.remove(Path::new("/d/b")).unwrap();
            fs.create(Path::new("/d/e")).unwrap();
            if sync {
                fs.sync_dir(Path::new("/d")).unwrap();
            }
            fs.crash();
            fs.list(Path::new("/d")).unwrap()
        });
        outcomes.collect()
    };
    let synced = names(true);
    assert_eq!(
        synced,
        BTreeSet::from([vec!["c".to_owned(), "e".to_owned()]])
    );
    let found = names(false);
    // Each of the three changes may have reached the disk or not; a rename is never half done.
    assert_eq!(found.len(), 8);
    assert!(
        found
            .iter()
            .all(|names| names.iter().filter(|n| *n == "a" || *n == "c").count() == 1)
    );
}

#[test]
fn a_directory_that_was_not_synced_into_its_parent_may_vanish_with_its_files() {
    let found: BTreeSet<_> = (0..SEEDS)
        .map(|seed| {
            let fs = SimFs::new(seed);
            let file = {
                fs.create_dir_all(Path::new("/x/y")).unwrap();
                fs.create(Path::new("/x/y/f")).unwrap()
            };
            file.sync().unwrap();
            fs.sync_dir(Path::new("/x/y")).unwrap();
            fs.sync_dir(Path::new("/x")).unwrap();
            fs.crash();
            fs.exists(Path::new("/x/y/f")).unwrap()
        })
        .collect();
    assert_eq!(found, BTreeSet::from([false, true]));
}

#[test]
fn the_same_seed_leaves_the_same_state() {
    let state = |seed| {
        let fs = SimFs::new(seed);
        for name in ["/d/a", "/d/b", "/d/c"] {
            durable_file(&fs, name, b"x")
                .append(&vec![1; 20_000])
                .unwrap();
        }
        fs.crash();
        fs.snapshot(Path::new("/")).unwrap()
    };
    assert!((0..20).all(|seed| state(seed) == state(seed)));
    assert!((1..20).any(|seed| state(seed) != state(0)));
}

#[test]
fn a_crash_kills_handles_and_frees_locks() {
    let fs = SimFs::new(1);
    let file = durable_file(&fs, "/d/f", b"x");
    let lock = fs.lock(Path::new("/d/LOCK")).unwrap();
    let second = fs.lock(Path::new("/d/LOCK")).unwrap_err();
    assert_eq!(second.kind(), io::ErrorKind::WouldBlock);
    fs.kill();
    assert!(file.len().is_err() && file.append(b"y").is_err());
    let again = fs.lock(Path::new("/d/LOCK")).unwrap();
    drop(lock);
    assert!(
        fs.lock(Path::new("/d/LOCK")).is_err(),
        "the old handle must not free the new lock"
    );
    drop(again);
    fs.lock(Path::new("/d/LOCK")).unwrap();
}

#[test]
fn power_fails_at_the_chosen_operation_and_stays_off() {
    for seed in 0..SEEDS {
        let fs = SimFs::new(seed);
        let file = durable_file(&fs, "/d/f", b"synced");
        fs.crash_at(fs.ops() + 1);
        file.append(b"+").unwrap();
        let error = file.sync().unwrap_err();
        assert!(SimCrash::caused(&error) && fs.is_crashed());
        assert!(SimCrash::caused(&fs.list(Path::new("/d")).unwrap_err()));
        let wrapped = io::Error::other(error);
        assert!(SimCrash::caused(&wrapped));
        fs.crash();
        let left = read(fs.open(Path::new("/d/f")).unwrap().as_ref());
        assert!(
            [6, 7].contains(&left.len()) && left.starts_with(b"synced"),
            "{left:?}"
        );
    }
    assert!(!SimCrash::caused(&io::Error::other("something else")));
}

#[test]
fn planned_errors_come_at_their_operation() {
    let fs = SimFs::new(1);
    let file = durable_file(&fs, "/d/f", b"");
    fs.fail(PlannedFault {
        kind: Some(OpKind::Append),
        after: 1,
        repeat: FaultRepeat::Once,
    });
    file.append(b"a").unwrap();
    assert_eq!(file.append(b"b").unwrap_err().raw_os_error(), Some(5));
    file.append(b"c").unwrap();
    fs.fail(PlannedFault {
        kind: None,
        after: 0,
        repeat: FaultRepeat::Forever,
    });
    assert!(file.sync().is_err() && fs.list(Path::new("/")).is_err());
    fs.clear_faults();
    file.sync().unwrap();
}

#[test]
fn a_failed_sync_may_drop_pages_that_a_later_one_claims_to_have_written() {
    let found = survivors(|fs, file| {
        file.append(b"tail").unwrap();
        fs.fail(PlannedFault {
            kind: Some(OpKind::Sync),
            after: 0,
            repeat: FaultRepeat::Once,
        });
        file.sync().unwrap_err();
        file.sync().unwrap();
        assert_eq!(read(file), b"syncedtail");
    });
    let expected = [b"syncedtail".to_vec(), b"synced\0\0\0\0".to_vec()];
    assert_eq!(found, expected.map(Some).into());
}

#[test]
fn a_full_disk_takes_a_part_of_an_append() {
    let fs = SimFs::new(1);
    let file = durable_file(&fs, "/d/f", b"");
    fs.set_space(Some(5));
    file.append(b"abc").unwrap();
    let error = file.append(b"defg").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert_eq!(read(file.as_ref()), b"abcde");
    file.truncate(3).unwrap();
    file.append(b"xy").unwrap();
    assert!(file.append(b"z").is_err());
    fs.set_space(None);
    file.append(b"z").unwrap();
}

#[test]
fn snapshots_bits_and_removal() {
    let fs = SimFs::new(1);
    durable_file(&fs, "/d/sub/f", &[0, 0]);
    fs.flip_bit(Path::new("/d/sub/f"), 9).unwrap();
    assert!(fs.flip_bit(Path::new("/d/sub/f"), 16).is_err());
    let snapshot = fs.snapshot(Path::new("/d")).unwrap();
    assert_eq!(snapshot[Path::new("sub/f")], [0, 2]);

    let other = SimFs::new(2);
    durable_file(&other, "/e/old", b"gone");
    other.restore(Path::new("/e"), &snapshot).unwrap();
    other.crash();
    assert_eq!(other.snapshot(Path::new("/e")).unwrap(), snapshot);
    other.remove_dir_all(Path::new("/e")).unwrap();
    assert!(!other.exists(Path::new("/e/sub/f")).unwrap());
    other.create_dir_all(Path::new("/e")).unwrap();
    assert!(other.list(Path::new("/e")).unwrap().is_empty());
}

#[test]
fn the_clock_moves_when_told_and_monotonic_time_never_goes_back() {
    let clock = SimClock::new(100);
    clock.clone().advance(5);
    assert_eq!((clock.now_ns(), clock.monotonic_ns()), (105, 5));
    clock.jump(-3);
    assert_eq!((clock.now_ns(), clock.monotonic_ns()), (-3, 5));
}
