//! Logs that are whole in themselves and not what was written last, and the witness that tells them.

use super::catalog::edits;
use super::{disk, edit, pinned_edit};
use crate::{
    Catalog, LogProof, Manifest, ManifestError, ManifestState, WitnessFile, WitnessOwner,
    WitnessedState,
};
use marigram_codec::ChecksummedPrefix;
use marigram_env::{FaultRepeat, LogStore, OpKind, PlannedFault};
use marigram_model::LogOwner;
use std::path::Path;
use std::sync::Arc;

const OF: WitnessOwner = WitnessOwner {
    lineage: 7,
    shard: Some(2),
};

fn file(fs: &dyn LogStore, path: &Path) -> Vec<u8> {
    crate::log::read_file(&*fs.open(path).unwrap()).unwrap()
}

fn put(fs: &dyn LogStore, path: &Path, bytes: &[u8]) {
    let file = fs.create(path).unwrap();
    file.append(bytes).unwrap();
    file.sync().unwrap();
}

/// Opens the manifest with what its witness says.
fn open(fs: &Arc<dyn LogStore>, dir: &Path) -> Result<ManifestState, ManifestError> {
    let (_, known) = WitnessFile::read(&**fs, dir).unwrap().unwrap();
    let proof = LogProof {
        exists: true,
        durable: known.log,
        owner: None,
    };
    Manifest::open_proved(Arc::clone(fs), dir, &proof).map(|(_, state)| state)
}

#[test]
fn a_manifest_that_lost_its_end_or_grew_old_is_told() {
    let (_, fs, dir) = disk(1);
    let path = dir.join("MANIFEST");
    let (mut manifest, _) = Manifest::open(Arc::clone(&fs), &dir).unwrap();
    let known = WitnessedState {
        log: Some(manifest.extent()),
        ..WitnessedState::default()
    };
    let mut witness = WitnessFile::open(Arc::clone(&fs), &dir, OF, known).unwrap();
    let mut versions = vec![file(&*fs, &path)];
    for nth in 1..=5 {
        manifest.commit(&edit(nth)).unwrap();
        witness.note_log(manifest.extent());
        versions.push(file(&*fs, &path));
    }
    let last = versions.pop().unwrap();
    let expected = manifest.state().clone();
    // The seal at the end says nothing that is not known.
    let edits_end = manifest.extent().extent.bytes as usize;
    for bytes in versions
        .iter()
        .map(Vec::as_slice)
        .chain((0..edits_end).map(|end| &last[..end]))
    {
        put(&*fs, &path, bytes);
        let before = file(&*fs, &path);
        let error = open(&fs, &dir).unwrap_err();
        assert!(
            matches!(&error, ManifestError::Corrupt { path: at, .. } if *at == path),
            "{error}"
        );
        assert_eq!(file(&*fs, &path), before, "nothing is changed");
    }
    let (_, others, other_dir) = disk(2);
    let (mut other, _) = Manifest::open(Arc::clone(&others), &other_dir).unwrap();
    (1..=9).for_each(|nth| other.commit(&pinned_edit(nth)).unwrap());
    put(&*fs, &path, &file(&*others, &path));
    open(&fs, &dir).unwrap_err();
    fs.remove(&path).unwrap();
    open(&fs, &dir).unwrap_err();
    assert!(!fs.exists(&path).unwrap(), "none is begun");
    for end in edits_end..=last.len() {
        put(&*fs, &path, &last[..end]);
        assert_eq!(open(&fs, &dir).unwrap(), expected, "whole up to {end}");
    }
}

#[test]
fn a_manifest_of_another_directory_or_shard_is_refused_without_a_witness() {
    let (_, fs, dir) = disk(1);
    let path = dir.join("MANIFEST");
    let owner = |lineage, shard| LogOwner { lineage, shard };
    let proof = |owner| LogProof {
        exists: false,
        durable: None,
        owner,
    };
    let own = proof(Some(owner(7, 2)));
    let (mut manifest, _) = Manifest::open_proved(Arc::clone(&fs), &dir, &own).unwrap();
    (1..=5).for_each(|nth| manifest.commit(&edit(nth)).unwrap());
    let (state, bytes) = (manifest.state().clone(), file(&*fs, &path));
    for stranger in [owner(8, 2), owner(7, 3)] {
        let error = Manifest::open_proved(Arc::clone(&fs), &dir, &proof(Some(stranger)));
        let error = error.unwrap_err().to_string();
        assert!(error.contains("/MANIFEST"), "{error}");
        assert!(error.contains("it was written for shard 2"), "{error}");
        assert_eq!(file(&*fs, &path), bytes, "nothing is changed");
    }
    // A tool that does not know the owner reads it, and keeps the owner where it rewrites.
    let end = manifest.extent().extent.bytes as usize;
    put(&*fs, &path, &bytes[..end]);
    assert_eq!(Manifest::open(Arc::clone(&fs), &dir).unwrap().1, state);
    Manifest::open_proved(Arc::clone(&fs), &dir, &own).unwrap();
    Manifest::open_proved(Arc::clone(&fs), &dir, &proof(Some(owner(8, 2)))).unwrap_err();
    let moved = ManifestState::log_with_owner(&path, &file(&*fs, &path), owner(8, 2)).unwrap();
    put(&*fs, &path, &moved);
    let opened = Manifest::open_proved(Arc::clone(&fs), &dir, &proof(Some(owner(8, 2))));
    assert_eq!(opened.unwrap().1, state);
    assert_eq!(file(&*fs, &path), moved, "it ends in a seal");
}

#[test]
fn a_witness_that_is_behind_is_no_reason_to_refuse() {
    let (_, fs, dir) = disk(1);
    let (mut manifest, _) = Manifest::open(Arc::clone(&fs), &dir).unwrap();
    let mut seen = vec![manifest.extent()];
    for nth in 1..=60 {
        manifest.commit(&edit(nth)).unwrap();
        seen.push(manifest.extent());
        if nth == 30 {
            // Written anew, as after a loss of power.
            let path = dir.join("MANIFEST");
            let bytes = file(&*fs, &path);
            put(
                &*fs,
                &path,
                &bytes[..manifest.extent().extent.bytes as usize],
            );
            manifest = Manifest::open(Arc::clone(&fs), &dir).unwrap().0;
            seen.push(manifest.extent());
        }
    }
    assert!(seen.iter().any(|extent| extent.base == 30));
    for extent in seen {
        let proof = LogProof {
            exists: true,
            durable: Some(extent),
            owner: None,
        };
        let state = Manifest::read_proved(&*fs, &dir, &proof).unwrap().unwrap();
        assert_eq!(&state, manifest.state(), "{extent:?}");
    }
}

#[test]
fn a_witness_says_what_is_known_whatever_becomes_of_its_entries() {
    let (sim, fs, dir) = disk(1);
    let mut witness =
        WitnessFile::open(Arc::clone(&fs), &dir, OF, WitnessedState::default()).unwrap();
    let path = dir.join(WitnessFile::FILE);
    let extent = |bytes: u64| ChecksummedPrefix {
        bytes,
        checksum: bytes as u32 ^ 0x4D,
    };
    for nth in 1..5_000_u64 {
        if nth % 700 == 0 {
            let (kind, repeat) = (Some(OpKind::Append), FaultRepeat::Once);
            let after = 0;
            sim.fail(PlannedFault {
                kind,
                after,
                repeat,
            });
        }
        witness.note_wal(nth / 1000, extent(nth));
        witness.release_wal(nth / 1000);
        let (of, known) = WitnessFile::read(&*fs, &dir).unwrap().unwrap();
        assert_eq!(of, OF);
        let said = known.wal[&(nth / 1000)];
        assert!(
            said == extent(nth) || (nth % 700 == 0 && said.bytes < nth),
            "{said:?} at {nth}"
        );
        assert!(file(&*fs, &path).len() < 70_000);
    }
    let bytes = file(&*fs, &path);
    let whole = WitnessFile::decode(&path, &bytes).unwrap().1;
    for end in 0..bytes.len() {
        match WitnessFile::decode(&path, &bytes[..end]) {
            Ok((of, known)) => {
                assert_eq!(of, OF);
                let is_less = |(number, said): (&u64, &ChecksummedPrefix)| {
                    said.bytes <= whole.wal[number].bytes
                };
                let newest = known
                    .wal
                    .iter()
                    .filter(|(number, _)| whole.wal.contains_key(number));
                assert!(newest.into_iter().all(is_less));
            }
            Err(error) => assert!(end < 36, "{end}: {error}"),
        }
    }
}

#[test]
fn the_copy_of_the_catalog_takes_its_place_by_hand() {
    let (_, fs, dir) = disk(1);
    let (path, copy) = (dir.join("CATALOG"), dir.join(Catalog::COPY));
    let mut catalog = Catalog::open(Arc::clone(&fs), &dir).unwrap();
    for edit in edits() {
        catalog.commit(&edit).unwrap();
    }
    let whole = file(&*fs, &path);
    assert_eq!(whole, file(&*fs, &copy));
    for proof in [
        LogProof::default(),
        LogProof {
            exists: true,
            durable: Some(catalog.extent()),
            owner: None,
        },
    ] {
        for end in (0..catalog.extent().extent.bytes as usize).step_by(11) {
            put(&*fs, &path, &whole[..end]);
            let error = Catalog::open_proved(Arc::clone(&fs), &dir, &proof).unwrap_err();
            let text = error.to_string();
            assert!(
                text.contains("cp /shard/CATALOG.copy /shard/CATALOG"),
                "{text}"
            );
            assert_eq!(file(&*fs, &copy), whole, "the copy stays as it is");
        }
        put(&*fs, &path, &file(&*fs, &copy));
        let again = Catalog::open_proved(Arc::clone(&fs), &dir, &proof).unwrap();
        assert_eq!(again.state(), catalog.state());
    }
}
