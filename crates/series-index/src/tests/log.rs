//! The series log: reopened, cut, damaged, and always written in the same format.

use super::{TABLE, device, index, tag_key};
use crate::{LogPosition, SeriesError, SeriesIndex, SeriesLog};
use marigram_env::{FaultRepeat, LogStore, OpKind, PlannedFault, SimFs};
use marigram_fixtures::{golden, golden_of_this_version, golden_path};
use marigram_model::{SeriesId, SeriesIdentity, TableId};
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn disk(seed: u64) -> (SimFs, Arc<dyn LogStore>, PathBuf) {
    let sim = SimFs::new(seed);
    (sim.clone(), Arc::new(sim), PathBuf::from("/"))
}

const START: LogPosition = LogPosition(0);

fn open(
    fs: &Arc<dyn LogStore>,
    dir: &Path,
    valid: LogPosition,
) -> Result<(SeriesLog, SeriesIndex), SeriesError> {
    SeriesLog::open(Arc::clone(fs), dir, valid, &|_| Some(SeriesIdentity::Plain))
}

fn assert_same(found: &SeriesIndex, expected: &SeriesIndex, end: u32) {
    assert_eq!(found.len(), end as usize);
    for id in (0..end).map(SeriesId) {
        assert_eq!(found.table_of(id), expected.table_of(id));
        assert_eq!(found.key(id), expected.key(id));
    }
}

fn bytes_of(fs: &Arc<dyn LogStore>, dir: &Path) -> Vec<u8> {
    let file = fs.open(&dir.join("SERIES")).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

#[test]
fn series_are_found_again_after_power_loss() {
    let (sim, fs, dir) = disk(3);
    let index = index(1000);
    let mut valid = START;
    for end in [0, 1, 400, 400, 1000] {
        let (mut log, found) = open(&fs, &dir, valid).unwrap();
        let before = found.next_id();
        assert_same(&found, &index, before.0);
        let committed = valid;
        valid = log
            .append(&index, SeriesId(end.max(before.0)), committed)
            .unwrap();
        // Bytes that the manifest does not know are cut off.
        if end < 1000 {
            log.append(&index, SeriesId(end + 7), committed).unwrap();
        }
        sim.crash();
    }
    let (_, found) = open(&fs, &dir, valid).unwrap();
    assert_same(&found, &index, 1000);
    assert_eq!(bytes_of(&fs, &dir).len() as u64, valid.bytes());
}

#[test]
fn ids_of_dropped_tables_leave_gaps() {
    let (_, fs, dir) = disk(3);
    let mut index = index(10);
    index.insert(SeriesId(10), TableId(1), b"").unwrap();
    index.remove_table(TABLE);
    let (mut log, _) = open(&fs, &dir, START).unwrap();
    let valid = log.append(&index, SeriesId(11), START).unwrap();
    let (_, found) = open(&fs, &dir, valid).unwrap();
    assert_same(&found, &index, 11);
    assert_eq!(found.key(SeriesId(10)), tag_key(b""));
}

#[test]
fn power_loss_at_any_operation_loses_no_valid_byte() {
    let index = index(300);
    let run =
        |fs: &Arc<dyn LogStore>, dir: &Path, valid: &mut LogPosition| -> Result<(), SeriesError> {
            let (mut log, found) = open(fs, dir, *valid)?;
            for end in (found.next_id().0 + 50..=300).step_by(50) {
                *valid = log.append(&index, SeriesId(end), *valid)?;
            }
            Ok(())
        };
    let (sim, fs, dir) = disk(0);
    run(&fs, &dir, &mut START.clone()).unwrap();
    for seed in 0..10 {
        for at in 0..sim.ops() {
            let (sim, fs, dir) = disk(seed);
            sim.crash_at(at);
            let mut valid = START;
            assert!(run(&fs, &dir, &mut valid).is_err());
            sim.crash();
            run(&fs, &dir, &mut valid).unwrap_or_else(|error| panic!("crash at {at}: {error}"));
            sim.crash();
            let (_, found) = open(&fs, &dir, valid).unwrap();
            assert_same(&found, &index, 300);
        }
    }
}

#[test]
fn after_an_error_nothing_is_appended() {
    for kind in [OpKind::Append, OpKind::Sync] {
        let (sim, fs, dir) = disk(1);
        let index = index(20);
        let (mut log, _) = open(&fs, &dir, START).unwrap();
        let valid = log.append(&index, SeriesId(10), START).unwrap();
        sim.fail(PlannedFault {
            kind: Some(kind),
            after: 0,
            repeat: FaultRepeat::Once,
        });
        let error = log.append(&index, SeriesId(15), valid).unwrap_err();
        assert!(matches!(error, SeriesError::Io { .. }), "{error}");
        let error = log.append(&index, SeriesId(20), valid).unwrap_err();
        assert!(matches!(error, SeriesError::Poisoned { .. }), "{error}");
        sim.crash();
        assert_same(&open(&fs, &dir, valid).unwrap().1, &index, 10);
    }
}

#[test]
fn damage_is_named_by_file_and_offset() {
    let (sim, fs, dir) = disk(1);
    let index = index(20);
    let (mut log, _) = open(&fs, &dir, START).unwrap();
    let first = log.append(&index, SeriesId(10), START).unwrap();
    let valid = log.append(&index, SeriesId(20), first).unwrap();
    let first = first.bytes();
    for bit in 0..valid.bytes() * 8 {
        sim.flip_bit(&dir.join("SERIES"), bit).unwrap();
        let error = open(&fs, &dir, valid).unwrap_err();
        let SeriesError::Corrupt { path, offset, .. } = error else {
            panic!("bit {bit}: {error}")
        };
        assert_eq!(path, dir.join("SERIES"));
        let expected = if bit / 8 < 20 {
            0
        } else if bit / 8 < first {
            20
        } else {
            first
        };
        assert_eq!(offset, expected, "bit {bit}");
        sim.flip_bit(&dir.join("SERIES"), bit).unwrap();
    }
    let file = fs.open(&dir.join("SERIES")).unwrap();
    for len in [valid.bytes() - 1, 5, 0] {
        file.truncate(len).unwrap();
        let error = open(&fs, &dir, valid).unwrap_err();
        assert!(
            error
                .to_string()
                .contains(&format!("{} bytes should be there", valid.bytes())),
            "{error}"
        );
    }
    fs.remove(&dir.join("SERIES")).unwrap();
    let error = open(&fs, &dir, valid).unwrap_err();
    assert!(error.to_string().contains("missing"), "{error}");
}

fn golden_bytes() -> Vec<u8> {
    let (_, fs, dir) = disk(1);
    let mut index = index(3);
    index.insert(SeriesId(3), TableId(9), b"").unwrap();
    index.remove_table(TableId(9));
    index
        .insert(SeriesId(4), TableId(1), &device(70_000))
        .unwrap();
    let (mut log, _) = open(&fs, &dir, START).unwrap();
    let valid = log.append(&index, SeriesId(2), START).unwrap();
    index.retire(TABLE, [SeriesId(1), SeriesId(2)]);
    log.append(&index, SeriesId(5), valid).unwrap();
    bytes_of(&fs, &dir)
}

/// Files of every version stay readable for ever. `MARIGRAM_BLESS=1` writes that of this version.
#[test]
fn version_2_is_read_and_written() {
    let path = golden_path("series/v2-log.bin");
    let bytes = golden_of_this_version("series/v2-log.bin", &golden_bytes());
    let found = SeriesLog::decode(&path, &bytes).unwrap();
    let tables: Vec<_> = (0..5).map(|id| found.table_of(SeriesId(id))).collect();
    assert_eq!(tables, [Some(TABLE), None, None, None, Some(TableId(1))]);
    assert_eq!(found.key(SeriesId(4)), tag_key(&device(70_000)));
    let mut newer = Vec::new();
    marigram_codec::frame::write(b"MARISERI\x03\0\0\0", &mut newer);
    let error = SeriesLog::decode(&path, &newer).unwrap_err();
    assert!(
        matches!(error, SeriesError::Version { found: 3, .. }),
        "{error}"
    );
}

#[test]
fn version_1_is_read_and_written_anew() {
    let path = golden_path("series/v1-log.bin");
    let bytes = golden("series/v1-log.bin");
    let found = SeriesLog::decode(&path, &bytes).unwrap();
    assert_eq!((found.len(), found.table_of(SeriesId(3))), (5, None));
    assert_eq!(found.key(SeriesId(2)), tag_key(&device(2)));
    assert_eq!(found.key(SeriesId(4)), tag_key(&device(70_000)));
    let (sim, fs, dir) = disk(1);
    let file = fs.create(&dir.join("SERIES")).unwrap();
    file.append(&bytes).unwrap();
    file.sync().unwrap();
    fs.sync_dir(&dir).unwrap();
    let old = LogPosition(bytes.len() as u64);
    let (mut log, mut index) = open(&fs, &dir, old).unwrap();
    index.insert(SeriesId(5), TABLE, &device(5)).unwrap();
    let new = log.append(&index, SeriesId(6), old).unwrap();
    assert_eq!(new.file_name(), "SERIES-1");
    sim.crash();
    // Whichever of the two files the manifest names exists.
    assert_same(&open(&fs, &dir, new).unwrap().1, &index, 6);
    assert!(
        !fs.exists(&dir.join("SERIES")).unwrap(),
        "the old one is removed"
    );
}

/// Series 0 to 4000, of which the manifest's log holds 3000; then all but each tenth is removed.
fn mostly_dead(fs: &Arc<dyn LogStore>, dir: &Path) -> (SeriesLog, SeriesIndex, LogPosition) {
    let mut index = index(4000);
    let (mut log, _) = open(fs, dir, START).unwrap();
    let valid = log.append(&index, SeriesId(3000), START).unwrap();
    let dead = (0..4000).filter(|id| id % 10 != 0).map(SeriesId);
    index.retire(TABLE, dead);
    (log, index, valid)
}

fn names(fs: &Arc<dyn LogStore>, dir: &Path) -> Vec<String> {
    fs.list(dir).unwrap()
}

#[test]
fn a_log_of_dead_series_shrinks_and_ids_stay() {
    let (_, fs, dir) = disk(5);
    let (mut log, mut index, valid) = mostly_dead(&fs, &dir);
    let new = log.append(&index, SeriesId(4000), valid).unwrap();
    assert!(new.bytes() * 4 < valid.bytes(), "{new} after {valid}");
    assert_eq!(
        names(&fs, &dir),
        ["SERIES", "SERIES-1"],
        "the old one counts until the commit"
    );
    index.sweep();
    let again = log.append(&index, SeriesId(4000), new).unwrap();
    assert_eq!(
        (again, names(&fs, &dir)),
        (new, vec!["SERIES-1".to_owned()])
    );
    index.insert(SeriesId(4000), TABLE, &device(1)).unwrap();
    index.retire(TABLE, [SeriesId(0)]);
    let last = log.append(&index, SeriesId(4001), new).unwrap();
    assert!(last.bytes() > new.bytes() && last.file_name() == new.file_name());
    index.sweep();
    assert_same(&open(&fs, &dir, last).unwrap().1, &index, 4001);
}

#[test]
fn power_loss_while_a_log_shrinks_leaves_the_old_one_or_the_new_one() {
    let (sim, fs, dir) = disk(0);
    let (mut log, index, valid) = mostly_dead(&fs, &dir);
    let before = sim.ops();
    let new = log.append(&index, SeriesId(4000), valid).unwrap();
    let after = sim.ops();
    for seed in 0..8 {
        for at in before..after {
            let (sim, fs, dir) = disk(seed);
            let (mut log, index, valid) = mostly_dead(&fs, &dir);
            sim.crash_at(at);
            assert!(log.append(&index, SeriesId(4000), valid).is_err());
            sim.crash();
            let (mut log, mut found) = open(&fs, &dir, valid).unwrap();
            assert_eq!((found.len(), found.all(TABLE).len()), (3000, 3000));
            assert_eq!(names(&fs, &dir), ["SERIES"]);
            // Replay repeats the rest, and the removals.
            for id in 3000..4000 {
                found.insert(SeriesId(id), TABLE, &device(id)).unwrap();
            }
            found.retire(TABLE, (0..4000).filter(|id| id % 10 != 0).map(SeriesId));
            let again = log.append(&found, SeriesId(4000), valid).unwrap();
            assert_eq!(again, new);
            sim.crash();
            found.sweep();
            assert_same(&open(&fs, &dir, again).unwrap().1, &found, 4000);
        }
    }
}

#[test]
fn series_of_dropped_tables_are_loaded_as_gone() {
    let (_, fs, dir) = disk(3);
    let mut index = index(10);
    index.insert(SeriesId(10), TableId(1), &device(1)).unwrap();
    let (mut log, _) = open(&fs, &dir, START).unwrap();
    let valid = log.append(&index, SeriesId(11), START).unwrap();
    let lives = |table| (table == TableId(1)).then_some(SeriesIdentity::Sha256);
    let (_, found) = SeriesLog::open(fs, &dir, valid, &lives).unwrap();
    assert_eq!(
        (found.len(), found.tables().collect::<Vec<_>>()),
        (11, vec![TableId(1)])
    );
    assert_eq!(found.key(SeriesId(10)), tag_key(&device(1)));
    assert_eq!(found.key(SeriesId(3)), None);
}

#[test]
fn many_series_are_loaded_as_they_were_added_one_by_one() {
    let (_, fs, dir) = disk(3);
    let index = index(30_000);
    let (mut log, _) = open(&fs, &dir, START).unwrap();
    let valid = log.append(&index, SeriesId(30_000), START).unwrap();
    for identity in [SeriesIdentity::Plain, SeriesIdentity::Sha256] {
        let opened = SeriesLog::open(fs.clone(), &dir, valid, &|_| Some(identity));
        let found = opened.unwrap().1;
        assert_same(&found, &index, 30_000);
        for tag in 0..4 {
            assert_eq!(found.distinct(TABLE, tag), index.distinct(TABLE, tag));
        }
        for id in (0..30_000).step_by(101) {
            let key = device(id);
            let hash = SeriesIndex::hash(TABLE, &key);
            assert_eq!(found.get(TABLE, &key, hash), Some(SeriesId(id)));
            let name = marigram_model::TagValue::String(format!("device-{id}"));
            assert!(found.with_value(TABLE, 3, name.as_ref()).iter().eq([id]));
        }
    }
}

#[test]
fn a_key_that_is_there_twice_is_damage() {
    let (_, fs, dir) = disk(3);
    let index = index(2);
    let (mut log, _) = open(&fs, &dir, START).unwrap();
    log.append(&index, SeriesId(2), START).unwrap();
    let mut bytes = bytes_of(&fs, &dir);
    let record = bytes.split_off(20);
    let mut payload = record[marigram_codec::frame::HEADER_BYTES..].to_vec();
    let second = payload[5..].to_vec();
    payload.extend(second);
    marigram_codec::frame::write(&payload, &mut bytes);
    let error = SeriesLog::decode(Path::new("SERIES"), &bytes).unwrap_err();
    assert!(error.to_string().contains("has the same key"), "{error}");
}

proptest! {
    #[test]
    fn any_bytes_are_an_index_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = SeriesLog::decode(Path::new("SERIES"), &bytes);
    }

    /// Records with a correct checksum and arbitrary contents.
    #[test]
    fn any_contents_of_records_are_an_index_or_an_error(
        (at, byte, cut) in (0..400_usize, any::<u8>(), 0..10_usize)
    ) {
        let good = golden_bytes();
        let mut payload = good[28..].to_vec();
        let at = at % payload.len();
        payload[at] = byte;
        payload.truncate(payload.len() - cut);
        let mut bytes = good[..20].to_vec();
        marigram_codec::frame::write(&payload, &mut bytes);
        if let Ok(index) = SeriesLog::decode(Path::new("SERIES"), &bytes) {
            prop_assert!(index.memory_bytes() < 100_000);
        }
    }
}
