//! The log against crashes, damage and golden files.

mod crash;
mod full;
mod golden;
mod records;
mod replay;

use crate::{DeleteEntry, WalEntry, WriteEntry};
use arrow_array::{Array, ArrayRef, BinaryArray, BooleanArray, StringArray, make_array};
use arrow_buffer::{Buffer, ScalarBuffer};
use marigram_model::{
    ColumnId, DeletedRows, FieldType, FieldValue, SeriesId, TableId, TagKey, TagValueRef, TimeRange,
};
use std::sync::Arc;

/// A write of one column to a series, small.
fn write(table: u32, series: u32, time: i64, value: &str) -> WalEntry {
    WalEntry::Write(WriteEntry {
        table: TableId(table),
        new_series: Vec::new(),
        series: ScalarBuffer::from(vec![series]),
        times: ScalarBuffer::from(vec![time]),
        columns: vec![(
            ColumnId(1),
            Arc::new(StringArray::from(vec![value])) as ArrayRef,
        )],
    })
}

fn key(site: &str, unit: i64) -> TagKey {
    let mut key = TagKey::default();
    key.push(0, TagValueRef::String(site));
    key.push(3, TagValueRef::I64(unit));
    key
}

/// An array of `kind` with three values and a null.
fn some_values(kind: FieldType) -> ArrayRef {
    match kind {
        FieldType::Bool => Arc::new(BooleanArray::from(vec![
            Some(true),
            None,
            Some(false),
            Some(true),
        ])),
        FieldType::String => Arc::new(StringArray::from(vec![
            Some("a"),
            None,
            Some(""),
            Some("ünï"),
        ])),
        FieldType::Bytes => {
            let values: Vec<Option<&[u8]>> = vec![Some(b"\xff"), None, Some(b""), Some(b"xyz")];
            Arc::new(BinaryArray::from(values))
        }
        kind => {
            let value = match kind {
                FieldType::I32 => FieldValue::I32(-7),
                FieldType::I64 => FieldValue::I64(i64::MIN),
                FieldType::U64 => FieldValue::U64(u64::MAX),
                FieldType::F32 => FieldValue::F32(-0.0),
                FieldType::F64 => FieldValue::F64(1.5),
                _ => FieldValue::Timestamp(1_700_000_000_000_000_000),
            };
            // The value four times over, and the second one null.
            let one = value.to_array().to_data();
            let values = Buffer::from(one.buffers()[0].as_slice().repeat(4));
            let four = one.into_builder().len(4).buffers(vec![values]);
            make_array(
                four.null_bit_buffer(Some(Buffer::from([0b1101_u8])))
                    .build()
                    .unwrap(),
            )
        }
    }
}

/// One entry of each kind, every field type among them.
fn every_kind() -> Vec<(u64, WalEntry)> {
    let columns = FieldType::ALL.into_iter().enumerate();
    let write = WriteEntry {
        table: TableId(3),
        new_series: vec![
            (SeriesId(8), key("north", 1)),
            (SeriesId(9), TagKey::default()),
        ],
        series: ScalarBuffer::from(vec![8_u32, 8, 9, 2]),
        times: ScalarBuffer::from(vec![1, 2, i64::MIN, i64::MAX]),
        columns: columns
            .map(|(at, kind)| (ColumnId(at as u32 + 1), some_values(kind)))
            .collect(),
    };
    let range = TimeRange { min: -5, max: 5 };
    let some = vec![SeriesId(1), SeriesId(4)];
    let rows = vec![
        (SeriesId(1), -5),
        (SeriesId(1), 4),
        (SeriesId(1), 5),
        (SeriesId(4), 0),
    ];
    let (listed, bounds) = DeletedRows::of_rows(rows).unwrap();
    vec![
        (1, WalEntry::Write(write)),
        (
            2,
            WalEntry::Delete(DeleteEntry {
                table: TableId(3),
                rows: DeletedRows::Table,
                range,
            }),
        ),
        (
            5,
            WalEntry::Delete(DeleteEntry {
                table: TableId(4),
                rows: DeletedRows::Series(some.into()),
                range,
            }),
        ),
        (6, WalEntry::DropTable(TableId(3))),
        (
            7,
            WalEntry::Delete(DeleteEntry {
                table: TableId(4),
                rows: listed,
                range: bounds,
            }),
        ),
    ]
}

fn assert_same(a: &WalEntry, b: &WalEntry) {
    match (a, b) {
        (WalEntry::Write(a), WalEntry::Write(b)) => {
            assert_eq!(a.table, b.table);
            assert_eq!(a.new_series, b.new_series);
            assert_eq!(a.series, b.series);
            assert_eq!(a.times, b.times);
            assert_eq!(a.columns.len(), b.columns.len());
            for ((a_id, a), (b_id, b)) in a.columns.iter().zip(&b.columns) {
                assert_eq!(a_id, b_id);
                assert_eq!(a.data_type(), b.data_type());
                for row in 0..a.len().max(b.len()) {
                    assert_eq!(
                        FieldValue::from_array(a, row),
                        FieldValue::from_array(b, row)
                    );
                }
            }
        }
        (WalEntry::Delete(a), WalEntry::Delete(b)) => assert_eq!(a, b),
        (WalEntry::DropTable(a), WalEntry::DropTable(b)) => assert_eq!(a, b),
        _ => panic!("{a:?} is not {b:?}"),
    }
}
