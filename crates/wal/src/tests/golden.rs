//! The golden file of each version is read for ever. `MARIGRAM_BLESS=1` writes that of this one.

use super::{assert_same, every_kind};
use crate::{Wal, WalProof, encode_record, file_name, with_owner};
use marigram_env::{DiskSnapshot, Env, LogStore, OsFs, SimFs};
use marigram_model::LogOwner;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn golden(file: &str) -> PathBuf {
    marigram_fixtures::golden_path(&format!("wal/{file}"))
}

fn bytes_of(path: &Path) -> Vec<u8> {
    let file = Env::real().fs.open(path).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

/// What the log's proof names and its headers hold.
fn proof() -> WalProof {
    WalProof {
        owner: Some(LogOwner {
            lineage: 0x0123_4567_89ab_cdef,
            shard: 5,
        }),
        ..WalProof::default()
    }
}

/// The log file that this version writes.
fn written() -> Vec<u8> {
    let sim = SimFs::new(1);
    let fs: Arc<dyn LogStore> = Arc::new(sim.clone());
    let mut wal = Wal::open_proved(fs, Path::new("/"), 0, &proof(), &mut |_, _| Ok(()))
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

/// How many of the entries of [`every_kind`] versions 1 and 2 have: no deletes of listed rows.
const KINDS_OF_VERSION_2: usize = 4;

/// Opens a log whose only file has these bytes, which must hold the first `count` kinds of entries.
fn check_entries(bytes: Vec<u8>, count: usize) {
    let sim = SimFs::new(1);
    sim.restore(
        Path::new("/"),
        &DiskSnapshot::from([(file_name(1).into(), bytes)]),
    )
    .unwrap();
    let mut entries = Vec::new();
    let mut keep = |sequence, entry| {
        entries.push((sequence, entry));
        Ok(())
    };
    Wal::open_proved(Arc::new(sim), Path::new("/"), 0, &proof(), &mut keep).unwrap();
    assert_eq!(entries.len(), count);
    for ((sequence, entry), (expected, wanted)) in entries.iter().zip(&every_kind()) {
        assert_eq!(sequence, expected);
        assert_same(entry, wanted);
    }
}

#[test]
fn version_1_is_read() {
    check_entries(bytes_of(&golden("v1-every-kind.bin")), KINDS_OF_VERSION_2);
}

#[test]
fn version_2_is_read() {
    check_entries(bytes_of(&golden("v2-every-kind.bin")), KINDS_OF_VERSION_2);
}

#[test]
fn version_3_is_read_and_written() {
    let path = golden("v3-every-kind.bin");
    if marigram_fixtures::is_blessing() {
        let file = OsFs.create(&path).unwrap();
        file.append(&written()).unwrap();
    }
    let bytes = bytes_of(&path);
    assert_eq!(
        bytes,
        written(),
        "the format has changed: it needs a new version and golden file"
    );
    check_entries(bytes, every_kind().len());
}

#[test]
fn a_file_of_another_shard_or_directory_is_refused_until_it_gets_an_owner() {
    let bytes = written();
    let strangers = [(8, 5), (0x0123_4567_89ab_cdef, 4)];
    for stranger in strangers.map(|(lineage, shard)| LogOwner { lineage, shard }) {
        let moved = with_owner(&bytes, stranger).unwrap();
        let sim = SimFs::new(1);
        let files = DiskSnapshot::from([(file_name(1).into(), moved.clone())]);
        sim.restore(Path::new("/"), &files).unwrap();
        let refused = Wal::open_proved(
            Arc::new(sim.clone()),
            Path::new("/"),
            0,
            &proof(),
            &mut |_, _| panic!("nothing is applied"),
        );
        let error = refused.unwrap_err().to_string();
        assert!(error.contains("it was written for shard"), "{error}");
        assert!(error.contains(&file_name(1)), "{error}");
        assert_eq!(sim.snapshot(Path::new("/")).unwrap(), files);
        check_entries(
            with_owner(&moved, proof().owner.unwrap()).unwrap(),
            every_kind().len(),
        );
    }
    let old = bytes_of(&golden("v1-every-kind.bin"));
    assert_eq!(with_owner(&old, proof().owner.unwrap()), None);
    assert_eq!(with_owner(&bytes[..35], proof().owner.unwrap()), None);
}
