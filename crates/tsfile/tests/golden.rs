//! Reads files that other libraries wrote, and damaged ones.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(
    clippy::disallowed_methods,
    reason = "golden files are on the real disk"
)]

mod common;

use common::{dump, golden};
use marigram_tsfile::{FileVersion, TsFileError, TsFileReader};
use proptest::prelude::*;
use std::io::Cursor;

const FILES: [&str; 4] = ["v4-table", "v4-tree", "v3-aligned", "v3-tree"];

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(golden(&format!("{name}.tsfile"))).unwrap()
}

#[test]
fn files_of_other_libraries_are_read_value_for_value() {
    for name in FILES {
        let expected = std::fs::read_to_string(golden(&format!("{name}.txt"))).unwrap();
        let mut expected: Vec<&str> = expected.lines().collect();
        expected.sort_unstable();
        let found = dump(Cursor::new(bytes(name))).unwrap();
        let pairs = expected.iter().zip(&found);
        if let Some((expected, found)) = pairs.clone().find(|(a, b)| **a != b.as_str()) {
            panic!("{name}:\n expected {expected}\n found    {found}");
        }
        assert_eq!(found.len(), expected.len(), "{name}");
    }
}

#[test]
fn the_version_and_the_tables_are_told() {
    let reader = TsFileReader::open(Cursor::new(bytes("v4-table"))).unwrap();
    assert_eq!(reader.version(), FileVersion::V4);
    assert_eq!(reader.tables()[0].name, "all_types");
    assert_eq!(reader.tables()[0].columns.len(), 12);
    let reader = TsFileReader::open(Cursor::new(bytes("v3-tree"))).unwrap();
    assert_eq!(reader.version(), FileVersion::V3);
    assert!(reader.tables().is_empty());
}

#[test]
fn what_is_no_whole_file_is_said_to_be_none() {
    let file = bytes("v4-table");
    for (wrong, message) in [
        (
            b"".to_vec(),
            "it is not a whole TsFile: it does not begin as one",
        ),
        (
            b"PAR1xxxxxxx".to_vec(),
            "it is not a whole TsFile: it does not begin as one",
        ),
        (
            file[..file.len() - 3].to_vec(),
            "it is not a whole TsFile: its end is missing; perhaps its writer did not close it",
        ),
        (
            b"TsFile000002".to_vec(),
            "version \"000002\" of TsFile (3 and 4 are supported) is not supported",
        ),
    ] {
        let error = TsFileReader::open(Cursor::new(wrong)).err().unwrap();
        let told = error.to_string();
        assert!(told == message || told.starts_with("version"), "{told}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn damaged_files_give_an_error_or_fewer_rows(
        file in 0..FILES.len(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = bytes(FILES[file]);
        for (at, byte) in flips {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            // The end is restored, so that the gap is only found further in.
            let at = cut.index(bytes.len() - 10);
            let tail = bytes.len() - 10 - at.min(100);
            bytes.drain(at.min(tail)..tail);
        }
        match dump(Cursor::new(bytes)) {
            Ok(_) | Err(TsFileError::Damaged { .. } | TsFileError::NotTsFile(_) | TsFileError::Unsupported(_)) => {}
            Err(other) => prop_assert!(false, "{other}"),
        }
    }
}
