//! The series log: found again, cut, damaged, and written in the same way for ever.

#![expect(
    clippy::disallowed_methods,
    reason = "golden files are on the real disk"
)]

use super::{TABLE, device, index};
use crate::{SeriesError, SeriesIndex, SeriesLog};
use marigram_env::{Fault, FileSystem, OpKind, Repeat, SimFs};
use marigram_model::{SeriesId, TableId};
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn disk(seed: u64) -> (SimFs, Arc<dyn FileSystem>, PathBuf) {
    let sim = SimFs::new(seed);
    (sim.clone(), Arc::new(sim), PathBuf::from("/"))
}

fn assert_same(found: &SeriesIndex, expected: &SeriesIndex, end: u32) {
    assert_eq!(found.len(), end as usize);
    for id in (0..end).map(SeriesId) {
        assert_eq!(found.table_of(id), expected.table_of(id));
        assert_eq!(found.key(id), expected.key(id));
    }
}

fn bytes_of(fs: &Arc<dyn FileSystem>, dir: &Path) -> Vec<u8> {
    let file = fs.open(&dir.join("SERIES")).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

#[test]
fn series_are_found_again_after_power_loss() {
    let (sim, fs, dir) = disk(3);
    let index = index(1000);
    let mut valid = 0;
    for end in [0, 1, 400, 400, 1000] {
        let (mut log, found) = SeriesLog::open(Arc::clone(&fs), &dir, valid).unwrap();
        let before = found.next_id();
        assert_same(&found, &index, before.0);
        valid = log.append(&index, SeriesId(end.max(before.0))).unwrap();
        // What the manifest does not know of is cut off.
        if end < 1000 {
            log.append(&index, SeriesId(end + 7)).unwrap();
        }
        sim.crash();
    }
    let (_, found) = SeriesLog::open(Arc::clone(&fs), &dir, valid).unwrap();
    assert_same(&found, &index, 1000);
    assert_eq!(bytes_of(&fs, &dir).len() as u64, valid);
}

#[test]
fn ids_of_dropped_tables_leave_gaps() {
    let (_, fs, dir) = disk(3);
    let mut index = index(10);
    index.insert(SeriesId(10), TableId(1), b"").unwrap();
    index.remove_table(TABLE);
    let (mut log, _) = SeriesLog::open(Arc::clone(&fs), &dir, 0).unwrap();
    let valid = log.append(&index, SeriesId(11)).unwrap();
    let (_, found) = SeriesLog::open(fs, &dir, valid).unwrap();
    assert_same(&found, &index, 11);
    assert_eq!(found.key(SeriesId(10)), Some(&b""[..]));
}

#[test]
fn power_loss_at_any_operation_loses_no_valid_byte() {
    let index = index(300);
    let run = |fs: &Arc<dyn FileSystem>, dir: &Path, valid: &mut u64| -> Result<(), SeriesError> {
        let (mut log, found) = SeriesLog::open(Arc::clone(fs), dir, *valid)?;
        for end in (found.next_id().0 + 50..=300).step_by(50) {
            *valid = log.append(&index, SeriesId(end))?;
        }
        Ok(())
    };
    let (sim, fs, dir) = disk(0);
    run(&fs, &dir, &mut 0).unwrap();
    for seed in 0..10 {
        for at in 0..sim.ops() {
            let (sim, fs, dir) = disk(seed);
            sim.crash_at(at);
            let mut valid = 0;
            assert!(run(&fs, &dir, &mut valid).is_err());
            sim.crash();
            run(&fs, &dir, &mut valid).unwrap_or_else(|error| panic!("crash at {at}: {error}"));
            sim.crash();
            let (_, found) = SeriesLog::open(fs, &dir, valid).unwrap();
            assert_same(&found, &index, 300);
        }
    }
}

#[test]
fn after_an_error_nothing_is_appended() {
    for kind in [OpKind::Append, OpKind::Sync] {
        let (sim, fs, dir) = disk(1);
        let index = index(20);
        let (mut log, _) = SeriesLog::open(Arc::clone(&fs), &dir, 0).unwrap();
        let valid = log.append(&index, SeriesId(10)).unwrap();
        sim.fail(Fault {
            kind: Some(kind),
            after: 0,
            repeat: Repeat::Once,
        });
        let error = log.append(&index, SeriesId(15)).unwrap_err();
        assert!(matches!(error, SeriesError::Io { .. }), "{error}");
        let error = log.append(&index, SeriesId(20)).unwrap_err();
        assert!(matches!(error, SeriesError::Poisoned { .. }), "{error}");
        sim.crash();
        assert_same(&SeriesLog::open(fs, &dir, valid).unwrap().1, &index, 10);
    }
}

#[test]
fn damage_is_named_by_file_and_offset() {
    let (sim, fs, dir) = disk(1);
    let index = index(20);
    let (mut log, _) = SeriesLog::open(Arc::clone(&fs), &dir, 0).unwrap();
    let first = log.append(&index, SeriesId(10)).unwrap();
    let valid = log.append(&index, SeriesId(20)).unwrap();
    for bit in 0..valid * 8 {
        sim.flip_bit(&dir.join("SERIES"), bit).unwrap();
        let error = SeriesLog::open(Arc::clone(&fs), &dir, valid).unwrap_err();
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
    for len in [valid - 1, 5, 0] {
        file.truncate(len).unwrap();
        let error = SeriesLog::open(Arc::clone(&fs), &dir, valid).unwrap_err();
        assert!(
            error
                .to_string()
                .contains(&format!("{valid} bytes should be there")),
            "{error}"
        );
    }
    fs.remove(&dir.join("SERIES")).unwrap();
    let error = SeriesLog::open(fs, &dir, valid).unwrap_err();
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
    let (mut log, _) = SeriesLog::open(Arc::clone(&fs), &dir, 0).unwrap();
    log.append(&index, SeriesId(2)).unwrap();
    log.append(&index, SeriesId(5)).unwrap();
    bytes_of(&fs, &dir)
}

/// Files of every version are read for ever. `MARIGRAM_BLESS=1` writes that of this version.
#[test]
fn version_1_is_read_and_written() {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testing/golden/series/v1-log.bin");
    if std::env::var_os("MARIGRAM_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, golden_bytes()).unwrap();
    }
    let bytes = std::fs::read(&path).unwrap();
    assert!(
        bytes == golden_bytes(),
        "the format has changed: give it a new version"
    );
    let found = SeriesLog::decode(&path, &bytes).unwrap();
    assert_eq!((found.len(), found.table_of(SeriesId(3))), (5, None));
    assert_eq!(found.key(SeriesId(4)), Some(&device(70_000)[..]));
    let mut newer = Vec::new();
    marigram_codec::frame::write(b"MARISERI\x02\0\0\0", &mut newer);
    let error = SeriesLog::decode(&path, &newer).unwrap_err();
    assert!(
        matches!(error, SeriesError::Version { found: 2, .. }),
        "{error}"
    );
}

proptest! {
    #[test]
    fn any_bytes_are_an_index_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = SeriesLog::decode(Path::new("SERIES"), &bytes);
    }

    /// Records whose checksum is right and whose contents are not.
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
