//! Records of backups: round trip, damage, and the golden file of each version.

use super::*;
use marigram_fixtures::golden_of_this_version;
use proptest::prelude::*;

fn record() -> BackupRecord {
    let piece = |byte, bytes| ObjectPiece {
        digest: ObjectDigest([byte; DIGEST_BYTES]),
        bytes,
    };
    let file = |path: &str, mark, pieces: Vec<ObjectPiece>| FileEntry {
        path: path.to_owned(),
        bytes: pieces.iter().map(|piece| piece.bytes).sum(),
        mark,
        pieces,
    };
    let files = vec![
        file("CATALOG", None, vec![piece(1, 70)]),
        file("shards/0000/SERIES", None, vec![piece(2, 9), piece(3, 4)]),
        file(
            "shards/0000/segments/0000000001.seg",
            Some(77),
            vec![piece(4, 1 << 40)],
        ),
    ];
    let info = BackupInfo {
        number: 3,
        taken_ns: -5,
        shards: 1,
        files: files.len(),
        bytes: 123,
        bytes_new: 45,
        rows: 6,
    };
    BackupRecord {
        info,
        format: 1,
        lineage: 0xabcd,
        files,
    }
}

#[test]
fn a_record_is_read_as_it_was_written() {
    assert_eq!(BackupRecord::decode(&record().encode()), Ok(record()));
    let name = ObjectDigest([0xab; DIGEST_BYTES]).to_string();
    assert_eq!(name, "ab".repeat(DIGEST_BYTES));
}

#[test]
fn cut_or_changed_records_are_refused() {
    let whole = record().encode();
    for len in 0..whole.len() {
        assert!(BackupRecord::decode(&whole[..len]).is_err(), "cut at {len}");
    }
    for bit in 0..whole.len() * 8 {
        let mut changed = whole.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(BackupRecord::decode(&changed).is_err(), "bit {bit}");
    }
    let longer = [&whole[..], &[0]].concat();
    assert!(BackupRecord::decode(&longer).is_err());
}

#[test]
fn paths_stay_in_their_directory() {
    for path in ["../x", "/etc/passwd", "a/../b", "a//b", "", "a\0b"] {
        let mut record = record();
        record.files[0].path = path.to_owned();
        assert!(BackupRecord::decode(&record.encode()).is_err(), "{path}");
    }
}

#[test]
fn a_newer_record_says_so() {
    let mut newer = Vec::new();
    frame::write(b"MARIBACK\x02\0\0\0", &mut newer);
    assert_eq!(
        BackupRecord::decode(&newer),
        Err(BackupRecordError::Newer(2))
    );
}

#[test]
fn version_1_is_read() {
    let golden = golden_of_this_version("backup/v1.backup", &record().encode());
    assert_eq!(BackupRecord::decode(&golden), Ok(record()));
}

proptest! {
    /// Damage that a checksum does not detect: payloads are changed and framed again.
    #[test]
    fn no_payload_panics_or_asks_for_much(
        changes in prop::collection::vec((0..4_usize, any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut payloads = Vec::new();
        let (whole, mut at) = (record().encode(), 0);
        while let Ok(payload) = next(&whole, &mut at) {
            payloads.push(payload.to_vec());
        }
        for (frame, place, value) in changes {
            let payload = &mut payloads[frame];
            let place = place.index(payload.len());
            payload[place] = value;
        }
        if let Some(cut) = cut {
            let frame = cut.index(payloads.len());
            let half = payloads[frame].len() / 2;
            payloads[frame].truncate(half.max(1));
        }
        let mut bytes = Vec::new();
        for payload in &payloads {
            frame::write(payload, &mut bytes);
        }
        if let Ok(read) = BackupRecord::decode(&bytes) {
            prop_assert!(read.files.len() <= payloads.len());
        }
    }
}
