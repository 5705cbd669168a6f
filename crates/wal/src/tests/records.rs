//! Records come back, whole or as an error.

use super::{assert_same, every_kind, key};
use crate::{WalEntry, WriteEntry, decode_record, encode_record};
use arrow_array::{ArrayRef, BinaryArray, BooleanArray, Float64Array, StringArray};
use arrow_buffer::ScalarBuffer;
use marigram_codec::frame;
use marigram_model::{ColumnId, SeriesId, TableId};
use proptest::prelude::*;
use std::sync::Arc;

fn payload(sequence: u64, entry: &WalEntry) -> Vec<u8> {
    let mut out = Vec::new();
    encode_record(sequence, entry, &mut out);
    let frame::FrameRead::Frame { payload, len } = frame::read(&out) else {
        panic!("a whole frame")
    };
    assert_eq!(len, out.len());
    payload.to_vec()
}

#[test]
fn every_kind_of_entry_and_field_comes_back() {
    for (sequence, entry) in every_kind() {
        let (read, decoded) = decode_record(&payload(sequence, &entry)).unwrap();
        assert_eq!(read, sequence);
        assert_same(&decoded, &entry);
    }
}

#[test]
fn slices_of_arrays_are_written_as_they_are_seen() {
    let truths = BooleanArray::from(
        (0..40)
            .map(|n| (n % 5 > 0).then_some(n % 3 == 0))
            .collect::<Vec<_>>(),
    );
    let texts = (0..40)
        .map(|n| (n % 4 > 0).then(|| "x".repeat(n)))
        .collect::<StringArray>();
    let columns: Vec<ArrayRef> = vec![Arc::new(truths), Arc::new(texts)];
    for (start, len) in [(0, 40), (3, 30), (8, 8), (9, 1), (40, 0)] {
        let columns = columns
            .iter()
            .map(|c| (ColumnId(1), c.slice(start, len)))
            .collect();
        let entry = WalEntry::Write(WriteEntry {
            table: TableId(1),
            new_series: Vec::new(),
            series: ScalarBuffer::from(vec![0_u32; 40]).slice(start, len),
            times: ScalarBuffer::from((0..40).collect::<Vec<i64>>()).slice(start, len),
            columns,
        });
        assert_same(&decode_record(&payload(1, &entry)).unwrap().1, &entry);
    }
}

#[test]
fn a_record_that_ends_early_or_goes_on_is_refused() {
    for (sequence, entry) in every_kind() {
        let good = payload(sequence, &entry);
        for len in 0..good.len() {
            assert!(decode_record(&good[..len]).is_err(), "cut at {len}");
        }
        assert!(decode_record(&[good, vec![0]].concat()).is_err());
    }
}

#[test]
fn counts_that_no_bytes_stand_behind_are_refused_without_allocating_for_them() {
    let huge = u32::MAX.to_le_bytes();
    let head = [&[1][..], &1_u64.to_le_bytes(), &1_u32.to_le_bytes()].concat();
    for counts in [
        [huge, [0; 4], [0; 4]],
        [[0; 4], huge, [0; 4]],
        [[0; 4], [0; 4], huge],
    ] {
        assert!(decode_record(&[&head[..], &counts.concat()].concat()).is_err());
    }
}

prop_compose! {
    fn writes()(rows in 0_usize..70)(
        times in prop::collection::vec(any::<i64>(), rows),
        series in prop::collection::vec(any::<u32>(), rows),
        floats in prop::collection::vec(any::<Option<f64>>(), rows),
        texts in prop::collection::vec(any::<Option<String>>(), rows),
        bytes in prop::collection::vec(any::<Option<Vec<u8>>>(), rows),
        site in "[a-z]{0,9}",
    ) -> WriteEntry {
        let bytes = bytes.iter().map(Option::as_deref).collect::<Vec<Option<&[u8]>>>();
        WriteEntry {
            table: TableId(7),
            new_series: vec![(SeriesId(5), key(&site, -1))],
            series: series.into(),
            times: times.into(),
            columns: vec![
                (ColumnId(9), Arc::new(Float64Array::from(floats)) as ArrayRef),
                (ColumnId(2), Arc::new(StringArray::from(texts))),
                (ColumnId(4), Arc::new(BinaryArray::from(bytes))),
            ],
        }
    }
}

proptest! {
    #[test]
    fn writes_come_back(write in writes(), sequence: u64) {
        let entry = WalEntry::Write(write);
        let (read, decoded) = decode_record(&payload(sequence, &entry)).unwrap();
        prop_assert_eq!(read, sequence);
        assert_same(&decoded, &entry);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = decode_record(&bytes);
        let _ = decode_record(&[&[1][..], &bytes].concat());
    }

    #[test]
    fn changed_records_never_panic_and_decode_to_what_encodes_again(
        write in writes(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = payload(1, &WalEntry::Write(write));
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok((sequence, entry)) = decode_record(&bytes) {
            let again = decode_record(&payload(sequence, &entry)).unwrap();
            assert_same(&again.1, &entry);
        }
    }
}
