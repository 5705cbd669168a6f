//! The golden file of each version is read for ever. `MARIGRAM_BLESS=1` writes that of this one.

use super::{assert_same, every_kind};
use crate::{Wal, encode_record, file_name};
use marigram_env::{DiskSnapshot, Env, LogStore, OsFs, SimFs};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testing/golden/wal/v1-every-kind.bin")
}

/// The log file that this version writes.
fn written() -> Vec<u8> {
    let sim = SimFs::new(1);
    let fs: Arc<dyn LogStore> = Arc::new(sim.clone());
    let mut wal = Wal::open(fs, Path::new("/"), 0, &mut |_, _| Ok(()))
        .unwrap()
        .0;
    for (sequence, entry) in every_kind() {
        let mut record = Vec::new();
        encode_record(sequence, &entry, &mut record);
        wal.append(&record, true).unwrap();
    }
    sim.snapshot(Path::new("/"))
        .unwrap()
        .remove(Path::new(&file_name(1)))
        .unwrap()
}

#[test]
fn version_1_is_read_and_written() {
    let fs = Env::real().fs;
    if std::env::var_os("MARIGRAM_BLESS").is_some() {
        let file = OsFs.create(&golden()).unwrap();
        file.append(&written()).unwrap();
    }
    let file = fs.open(&golden()).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(
        bytes,
        written(),
        "the format has changed: it needs a new version and golden file"
    );

    let sim = SimFs::new(1);
    sim.restore(
        Path::new("/"),
        &DiskSnapshot::from([(file_name(1).into(), bytes)]),
    )
    .unwrap();
    let mut entries = Vec::new();
    Wal::open(Arc::new(sim), Path::new("/"), 0, &mut |sequence, entry| {
        entries.push((sequence, entry));
        Ok(())
    })
    .unwrap();
    assert_eq!(entries.len(), every_kind().len());
    for ((sequence, entry), (expected, wanted)) in entries.iter().zip(&every_kind()) {
        assert_eq!(sequence, expected);
        assert_same(entry, wanted);
    }
}
