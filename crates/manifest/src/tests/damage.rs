//! Damaged files: an error that names the place, a torn tail, but never a wrong state.

use super::{disk, edit};
use crate::{CatalogState, Manifest, ManifestError, ManifestState};
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;

fn log(edits: u64) -> Vec<u8> {
    let (_, fs, dir) = disk(1);
    let (mut manifest, _) = Manifest::open(Arc::clone(&fs), &dir).unwrap();
    (1..=edits).for_each(|nth| manifest.commit(&edit(nth)).unwrap());
    crate::log::read_file(&*fs.open(&dir.join("MANIFEST")).unwrap()).unwrap()
}

fn state_of(bytes: &[u8]) -> Result<ManifestState, ManifestError> {
    ManifestState::from_log(Path::new("MANIFEST"), bytes)
}

#[test]
fn any_flipped_bit_is_found() {
    let mut bytes = log(4);
    let expected = state_of(&bytes).unwrap();
    for bit in 0..bytes.len() * 8 {
        bytes[bit / 8] ^= 1 << (bit % 8);
        match state_of(&bytes) {
            Err(ManifestError::Corrupt { offset, .. }) => assert!(offset <= bit as u64 / 8),
            Err(error) => panic!("bit {bit}: {error}"),
            // The last seal holds nothing.
            Ok(state) => {
                assert_eq!(state, expected, "bit {bit}");
                assert!(bit / 8 >= bytes.len() - 29, "bit {bit} was not noticed");
            }
        }
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
}

#[test]
fn a_log_cut_short_is_an_earlier_state_or_no_log() {
    let bytes = log(5);
    let mut states = vec![ManifestState::default()];
    for nth in 1..=5 {
        let mut state = states[nth - 1].clone();
        state.apply(&edit(nth as u64));
        states.push(state);
    }
    let mut seen = 0;
    for len in 0..bytes.len() {
        match state_of(&bytes[..len]) {
            Ok(state) => {
                let at = states.iter().position(|known| *known == state).unwrap();
                assert!(at == seen || at == seen + 1, "at {len}");
                seen = at;
            }
            Err(error) => {
                assert!(matches!(error, ManifestError::Corrupt { .. }), "{error}");
                assert_eq!(seen, 0, "only header and snapshot cannot be cut");
            }
        }
    }
    assert_eq!(seen, 5);
}

#[test]
fn a_seal_that_was_torn_before_the_last_edit_is_no_damage() {
    const SEAL_BYTES: usize = 29;
    let (sealed, mut bytes) = (log(1).len(), log(2));
    let expected = state_of(&bytes).unwrap();
    bytes[sealed - SEAL_BYTES..sealed - 10].fill(0);
    // The last seal proves that everything before it was durable.
    let error = state_of(&bytes).unwrap_err();
    assert!(matches!(error, ManifestError::Corrupt { .. }), "{error}");
    bytes.truncate(bytes.len() - SEAL_BYTES);
    assert_eq!(state_of(&bytes).unwrap(), expected);
    // More than a seal is damaged, or less of the edit is there.
    bytes.pop();
    assert_eq!(state_of(&bytes).unwrap(), state_of(&log(1)).unwrap());
}

#[test]
fn a_torn_tail_is_cut_off_and_reported() {
    let (_, fs, dir) = disk(1);
    let (mut manifest, _) = Manifest::open(Arc::clone(&fs), &dir).unwrap();
    manifest.commit(&edit(1)).unwrap();
    let expected = manifest.state().clone();
    let file = fs.open(&dir.join("MANIFEST")).unwrap();
    let len = file.len().unwrap();
    file.append(&[7; 100]).unwrap();
    let (mut manifest, state) = Manifest::open(Arc::clone(&fs), &dir).unwrap();
    assert_eq!(state, expected);
    assert_eq!(manifest.torn_tail().unwrap().offset, len);
    manifest.commit(&edit(2)).unwrap();
    let (again, _) = Manifest::open(fs, &dir).unwrap();
    assert_eq!((again.state(), again.torn_tail()), (manifest.state(), None));
}

#[test]
fn a_newer_version_and_another_file_are_told_apart() {
    let mut newer = Vec::new();
    marigram_codec::frame::write(b"MARIMANI\x05\0\0\0", &mut newer);
    let error = state_of(&newer).unwrap_err();
    assert!(
        matches!(
            error,
            ManifestError::Version {
                found: 5,
                supported: 4,
                ..
            }
        ),
        "{error}"
    );
    let error = CatalogState::from_log(Path::new("CATALOG"), &log(1)).unwrap_err();
    assert!(error.to_string().contains("this is no CATALOG"), "{error}");
}

#[test]
fn a_manifest_lost_beside_segments_is_not_begun_anew() {
    let (_, fs, dir) = disk(1);
    let segments = dir.join("segments");
    fs.create_dir_all(&segments).unwrap();
    Manifest::open(Arc::clone(&fs), &dir).unwrap();
    fs.create(&segments.join("0000000001.seg")).unwrap();
    Manifest::open(Arc::clone(&fs), &dir).unwrap();
    fs.remove(&dir.join("MANIFEST")).unwrap();
    let error = Manifest::open(fs, &dir).unwrap_err();
    assert!(matches!(error, ManifestError::Corrupt { .. }), "{error}");
}

proptest! {
    #[test]
    fn any_bytes_are_a_state_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = state_of(&bytes);
        let _ = CatalogState::from_log(Path::new("CATALOG"), &bytes);
    }

    /// Records whose checksum is right and whose contents are not.
    #[test]
    fn any_contents_of_records_are_a_state_or_an_error(
        (at, byte, cut) in (0..4000_usize, any::<u8>(), 0..10_usize)
    ) {
        let good = log(3);
        let (mut records, mut rest) = (Vec::new(), &good[..]);
        while let marigram_codec::frame::FrameRead::Frame { payload, len } = marigram_codec::frame::read(rest) {
            records.push(payload.to_vec());
            rest = &rest[len..];
        }
        let total: usize = records.iter().map(Vec::len).sum();
        let mut at = at % total;
        for record in &mut records {
            if at < record.len() {
                record[at] = byte;
                record.truncate(record.len() - cut.min(record.len()));
                break;
            }
            at -= record.len();
        }
        let mut bytes = Vec::new();
        for record in &records {
            marigram_codec::frame::write(record, &mut bytes);
        }
        let _ = state_of(&bytes);
    }
}
