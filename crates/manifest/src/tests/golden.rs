//! Files of every version of the formats are read for ever. `MARIGRAM_BLESS=1` writes those of this
//! version.

use super::catalog::{
    edits, edits_with_access, edits_with_order, edits_with_policies, edits_with_reference,
    edits_with_rollups, edits_with_settings, edits_with_views,
};
use super::{disk, edit, listed_edit, pinned_edit};
use crate::{
    Catalog, CatalogEdit, CatalogState, LogExtent, LogOptions, LogProof, Manifest, ManifestEdit,
    ManifestState, WitnessFile, WitnessOwner, WitnessedShard, WitnessedState,
};
use marigram_codec::ChecksummedPrefix;
use marigram_fixtures::{golden, golden_of_this_version, golden_path};
use marigram_model::LogOwner;
use std::sync::Arc;

/// The manifest after twelve of these edits, and its file.
fn manifest(
    edit: impl Fn(u64) -> ManifestEdit,
    owner: Option<LogOwner>,
) -> (ManifestState, Vec<u8>) {
    let (_, fs, dir) = disk(1);
    let options = LogOptions {
        rewrite_bytes_min: 1500,
    };
    let proof = LogProof {
        owner,
        ..LogProof::default()
    };
    let (mut manifest, _) = Manifest::open_as(Arc::clone(&fs), &dir, options, &proof).unwrap();
    (1..=12).for_each(|nth| manifest.commit(&edit(nth)).unwrap());
    let bytes = crate::log::read_file(&*fs.open(&dir.join("MANIFEST")).unwrap()).unwrap();
    (manifest.state().clone(), bytes)
}

const OWNER: LogOwner = LogOwner {
    lineage: 0x0123_4567_89ab_cdef,
    shard: 5,
};

#[test]
fn version_1_of_the_manifest_is_read() {
    let file = "manifest/v1-log.bin";
    let bytes = golden(file);
    let state = ManifestState::from_log(&golden_path(file), &bytes).unwrap();
    assert_eq!(state, manifest(edit, None).0);
}

#[test]
fn version_2_of_the_manifest_is_read() {
    let file = "manifest/v2-log.bin";
    let bytes = golden(file);
    let state = ManifestState::from_log(&golden_path(file), &bytes).unwrap();
    assert_eq!(state, manifest(pinned_edit, None).0);
}

#[test]
fn version_3_of_the_manifest_is_read() {
    let file = "manifest/v3-log.bin";
    let bytes = golden(file);
    let state = ManifestState::from_log(&golden_path(file), &bytes).unwrap();
    assert_eq!(state, manifest(pinned_edit, Some(OWNER)).0);
}

#[test]
fn version_4_of_the_manifest_is_read() {
    let (state, bytes) = manifest(listed_edit, Some(OWNER));
    let file = "manifest/v4-log.bin";
    let bytes = golden_of_this_version(file, &bytes);
    assert_eq!(
        ManifestState::from_log(&golden_path(file), &bytes).unwrap(),
        state
    );
}

/// The catalog after `edits`, and its file.
fn catalog(edits: &[CatalogEdit]) -> (CatalogState, Vec<u8>) {
    let (_, fs, dir) = disk(1);
    let options = LogOptions {
        rewrite_bytes_min: 600,
    };
    let mut catalog = Catalog::open_with(Arc::clone(&fs), &dir, options).unwrap();
    for edit in edits {
        catalog.commit(edit).unwrap();
    }
    let bytes = crate::log::read_file(&*fs.open(&dir.join("CATALOG")).unwrap()).unwrap();
    (catalog.state().clone(), bytes)
}

#[test]
fn version_1_of_the_catalog_is_read() {
    let file = "catalog/v1-log.bin";
    let bytes = golden(file);
    let state = CatalogState::from_log(&golden_path(file), &bytes).unwrap();
    assert_eq!(state, catalog(&edits()).0);
}

#[test]
fn version_2_of_the_catalog_is_read() {
    let file = "catalog/v2-log.bin";
    let bytes = golden(file);
    let state = CatalogState::from_log(&golden_path(file), &bytes).unwrap();
    assert_eq!(state, catalog(&edits_with_settings()).0);
}

#[test]
fn version_3_of_the_catalog_is_read() {
    let file = "catalog/v3-log.bin";
    let bytes = golden(file);
    let state = CatalogState::from_log(&golden_path(file), &bytes).unwrap();
    assert_eq!(state, catalog(&edits_with_rollups()).0);
}

#[test]
fn version_4_of_the_catalog_is_read() {
    let file = "catalog/v4-log.bin";
    let bytes = golden(file);
    let state = CatalogState::from_log(&golden_path(file), &bytes).unwrap();
    assert_eq!(state, catalog(&edits_with_rollups()).0);
}

#[test]
fn version_5_of_the_catalog_is_read() {
    let file = "catalog/v5-log.bin";
    let bytes = golden(file);
    let state = CatalogState::from_log(&golden_path(file), &bytes).unwrap();
    assert_eq!(state, catalog(&edits_with_views()).0);
}

#[test]
fn version_6_of_the_catalog_is_read() {
    let file = "catalog/v6-log.bin";
    let bytes = golden(file);
    let state = CatalogState::from_log(&golden_path(file), &bytes).unwrap();
    assert_eq!(state, catalog(&edits_with_policies()).0);
}

#[test]
fn version_7_of_the_catalog_is_read() {
    let file = "catalog/v7-log.bin";
    let bytes = golden(file);
    let state = CatalogState::from_log(&golden_path(file), &bytes).unwrap();
    assert_eq!(state, catalog(&edits_with_access()).0);
}

#[test]
fn version_8_of_the_catalog_is_read() {
    let file = "catalog/v8-log.bin";
    let bytes = golden(file);
    let state = CatalogState::from_log(&golden_path(file), &bytes).unwrap();
    assert_eq!(state, catalog(&edits_with_order()).0);
    assert!(!state.has_reference_tables);
}

#[test]
fn version_9_of_the_catalog_is_read() {
    let (state, bytes) = catalog(&edits_with_reference());
    assert!(state.has_reference_tables);
    let file = "catalog/v9-log.bin";
    let bytes = golden_of_this_version(file, &bytes);
    assert_eq!(
        CatalogState::from_log(&golden_path(file), &bytes).unwrap(),
        state
    );
}

#[test]
fn version_1_of_the_witness_is_read() {
    let (_, fs, dir) = disk(1);
    let of = WitnessOwner {
        lineage: 0x0123_4567_89ab_cdef,
        shard: Some(3),
    };
    let extent = |bytes: u64| ChecksummedPrefix::new(&vec![1; bytes as usize]);
    let mut witness =
        WitnessFile::open(Arc::clone(&fs), &dir, of, WitnessedState::default()).unwrap();
    for nth in 1..6 {
        let (base, number) = (nth / 3, nth);
        let extent = extent(100 * nth);
        witness.note_log(LogExtent {
            base,
            number,
            extent,
        });
        witness.note_wal(nth / 2, extent);
    }
    let bytes = crate::log::read_file(&*fs.open(&dir.join(WitnessFile::FILE)).unwrap()).unwrap();
    let file = "witness/v1.bin";
    let (found, known) =
        WitnessFile::decode(&golden_path(file), &golden_of_this_version(file, &bytes)).unwrap();
    let (base, number) = (1, 5);
    let log = LogExtent {
        base,
        number,
        extent: extent(500),
    };
    assert_eq!((found, known.log), (of, Some(log)));
    let wal: Vec<_> = known.wal.into_iter().collect();
    assert_eq!(wal, [(0, extent(100)), (1, extent(300)), (2, extent(500))]);
}

#[test]
fn the_witness_of_a_data_directory_is_read() {
    let (_, fs, dir) = disk(1);
    let of = WitnessOwner {
        lineage: 0x0123_4567_89ab_cdef,
        shard: None,
    };
    let extent = |bytes: u64| ChecksummedPrefix::new(&vec![1; bytes as usize]);
    let log = |number: u64| LogExtent {
        base: number / 2,
        number,
        extent: extent(100 * number),
    };
    let shard = |number: u64| WitnessedShard {
        log: Some(log(number)),
        wal: Some((number, extent(10 * number))),
    };
    let mut witness =
        WitnessFile::open(Arc::clone(&fs), &dir, of, WitnessedState::default()).unwrap();
    witness.note_log(log(9));
    witness.note_shard(0, shard(3));
    // An older extent, and the same one again, add nothing.
    witness.note_shard(0, shard(2));
    witness.note_shard(0, shard(3));
    witness.note_shard(4095, shard(4));
    witness.note_shard(4095, shard(5));
    let bytes = crate::log::read_file(&*fs.open(&dir.join(WitnessFile::FILE)).unwrap()).unwrap();
    let file = "witness/v1-directory.bin";
    let (found, known) =
        WitnessFile::decode(&golden_path(file), &golden_of_this_version(file, &bytes)).unwrap();
    assert_eq!((found, known.log), (of, Some(log(9))));
    let shards: Vec<_> = known.shards.into_iter().collect();
    assert_eq!(shards, [(0, shard(3)), (4095, shard(5))]);
    assert_eq!(bytes.len(), 36 * 8, "a header and seven slots");
}

#[test]
fn the_catalog_in_the_witness_of_a_shard_is_read() {
    let (_, fs, dir) = disk(1);
    let of = WitnessOwner {
        lineage: 0x0123_4567_89ab_cdef,
        shard: Some(1),
    };
    let log = |number: u64| LogExtent {
        base: number / 2,
        number,
        extent: ChecksummedPrefix::new(&vec![1; 100 * number as usize]),
    };
    let mut witness =
        WitnessFile::open(Arc::clone(&fs), &dir, of, WitnessedState::default()).unwrap();
    witness.note_log(log(2));
    witness.note_catalog(log(7));
    // An older extent, and the same one again, add nothing.
    witness.note_catalog(log(6));
    witness.note_catalog(log(7));
    let bytes = crate::log::read_file(&*fs.open(&dir.join(WitnessFile::FILE)).unwrap()).unwrap();
    let file = "witness/v1-catalog.bin";
    let (found, known) =
        WitnessFile::decode(&golden_path(file), &golden_of_this_version(file, &bytes)).unwrap();
    assert_eq!(found, of);
    assert_eq!((known.log, known.catalog), (Some(log(2)), Some(log(7))));
    assert_eq!(bytes.len(), 36 * 3, "a header and two slots");
    // A rewritten file has it, too.
    drop(witness);
    fs.remove(&dir.join(WitnessFile::FILE)).unwrap();
    drop(WitnessFile::open(Arc::clone(&fs), &dir, of, known).unwrap());
    let read = WitnessFile::read(&*fs, &dir).unwrap().unwrap();
    assert_eq!(read.1.catalog, Some(log(7)));
}

/// Edits of this version never stand in a file of an older one.
#[test]
fn a_file_of_version_1_is_written_anew_when_it_is_opened() {
    let (_, fs, dir) = disk(1);
    let old = golden("catalog/v1-log.bin");
    let file = fs.create(&dir.join("CATALOG")).unwrap();
    file.append(&old).unwrap();
    file.sync().unwrap();
    let state = catalog(&edits()).0;
    assert_eq!(Catalog::read(&*fs, &dir).unwrap(), state);
    let opened = Catalog::open(Arc::clone(&fs), &dir).unwrap();
    assert_eq!(opened.state(), &state);
    let bytes = crate::log::read_file(&*fs.open(&dir.join("CATALOG")).unwrap()).unwrap();
    let version = marigram_codec::frame::HEADER_BYTES + 8;
    assert_eq!(bytes[version..version + 4], 9_u32.to_le_bytes());
    assert_eq!(Catalog::read(&*fs, &dir).unwrap(), state);
}
