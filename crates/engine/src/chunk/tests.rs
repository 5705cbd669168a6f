//! Compares the sorting of chunks with a row-by-row sort in which the last write wins.

use super::part::{self, ChunkPart, PART_ROWS};
use super::{CHUNK_ROWS, Chunk};
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, StringArray};
use marigram_model::{ColumnId, FieldValue, TableId};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// (series, time, column 1, column 2).
type Row = (u32, i64, Option<i64>, Option<f64>);

fn part(rows: &[Row]) -> ChunkPart {
    let first: Int64Array = rows.iter().map(|row| row.2).collect();
    let second: Float64Array = rows.iter().map(|row| row.3).collect();
    let columns: Vec<(ColumnId, ArrayRef)> = vec![
        (ColumnId(1), Arc::new(first)),
        (ColumnId(2), Arc::new(second)),
    ];
    ChunkPart {
        series: rows.iter().map(|row| row.0).collect(),
        times: rows.iter().map(|row| row.1).collect(),
        // As in a write, a column without values is absent.
        columns: columns
            .into_iter()
            .filter(|(_, v)| v.null_count() < v.len())
            .collect(),
    }
}

type Expected = BTreeMap<(u32, i64), BTreeMap<u32, String>>;

fn expected(parts: &[Vec<Row>]) -> Expected {
    let mut rows = Expected::new();
    for (series, time, first, second) in parts.iter().flatten() {
        let row = rows.entry((*series, *time)).or_default();
        if let Some(value) = first {
            row.insert(1, format!("{:?}", FieldValue::I64(*value)));
        }
        if let Some(value) = second {
            row.insert(2, format!("{:?}", FieldValue::F64(*value)));
        }
    }
    rows
}

fn contents(chunk: &Chunk) -> Expected {
    let sorted = chunk.sorted();
    assert!(sorted.is_sorted());
    let mut rows = Expected::new();
    let series = sorted
        .runs
        .iter()
        .flat_map(|run| vec![run.series.0; run.rows as usize]);
    for (at, (series, time)) in series.zip(sorted.times.iter()).enumerate() {
        let values = chunk
            .columns()
            .iter()
            .zip(&sorted.columns)
            .filter_map(|(column, values)| {
                Some((
                    column.id.0,
                    format!("{:?}", FieldValue::from_array(values, at)?),
                ))
            });
        rows.insert((series, *time), values.collect());
    }
    rows
}

fn row() -> impl Strategy<Value = Row> {
    let series = prop_oneof![40 => 0_u32..6, 1 => Just(4_000_000_000)];
    let far = (0..63_u32).prop_map(|bits| 1_i64 << bits);
    let time = prop_oneof![60 => 0_i64..12, 4 => far, 1 => Just(i64::MIN), 1 => Just(i64::MAX)];
    (
        series,
        time,
        proptest::option::of(0_i64..50),
        proptest::option::of(0.0..9.0),
    )
}

fn parts() -> impl Strategy<Value = Vec<Vec<Row>>> {
    let scattered = proptest::collection::vec(row(), 1..40);
    let rising = (0_u32..4, 0_i64..20, 1_i64..30).prop_map(|(series, start, rows)| {
        (start..start + rows)
            .map(|time| (series, time, Some(time), None))
            .collect()
    });
    proptest::collection::vec(prop_oneof![scattered, rising], 1..6)
}

proptest! {
    #[test]
    fn a_chunk_holds_each_row_once_with_the_last_value_of_each_field(parts in parts()) {
        let chunk = Chunk::new(TableId(1), false, 9, parts.iter().map(|rows| part(rows)).collect());
        prop_assert_eq!(contents(&chunk), expected(&parts));
        // From here on, the sorted form replaces the parts.
        let again = Chunk::new(TableId(1), false, 9, chunk.parts().to_vec());
        prop_assert_eq!(contents(&again), expected(&parts));
    }

    #[test]
    fn joining_chunks_keeps_the_order_of_arrival(parts in parts(), read_first in any::<bool>()) {
        let chunks = parts.iter().zip(1..).map(|(rows, sequence)| {
            Chunk::new(TableId(1), false, sequence, vec![part(rows)])
        });
        let joined = chunks.reduce(|older, newer| {
            if read_first {
                older.sorted();
            }
            older.join(&newer)
        });
        let joined = joined.expect("there is at least one");
        prop_assert_eq!(joined.sequence_max(), parts.len() as u64);
        prop_assert_eq!(joined.rows() >= contents(&joined).len(), true);
        prop_assert_eq!(contents(&joined), expected(&parts));
    }
}

#[test]
fn rows_written_in_storage_order_are_not_copied() {
    let rows: Vec<Row> = (0..100)
        .map(|at| (at / 10, i64::from(at), Some(1), None))
        .collect();
    let part = part(&rows);
    let written = part.columns[0].1.to_data().buffers()[0].as_ptr();
    let chunk = Chunk::new(TableId(1), true, 1, vec![part]);
    assert_eq!(
        chunk.sorted().columns[0].to_data().buffers()[0].as_ptr(),
        written
    );
    assert!(chunk.is_late());
}

#[test]
fn rows_of_one_time_and_rows_decades_apart_are_sorted() {
    for times in [
        vec![7; 40],
        vec![1 << 60, 0],
        vec![1 << 60, 1 << 59, i64::MIN],
    ] {
        let rows: Vec<Row> = times
            .iter()
            .map(|time| (3, *time, Some(*time), None))
            .collect();
        let parts = [rows];
        let chunk = Chunk::new(TableId(1), true, 1, vec![part(&parts[0])]);
        assert_eq!(contents(&chunk), expected(&parts), "{times:?}");
    }
}

#[test]
fn long_writes_are_cut_into_parts() {
    let rows: Vec<Row> = (0..PART_ROWS as i64 * 2 + 5)
        .map(|time| (0, -time, Some(time), None))
        .collect();
    let parts = part(&rows).cut();
    assert_eq!(
        parts.iter().map(ChunkPart::len).collect::<Vec<_>>(),
        vec![PART_ROWS, PART_ROWS, 5]
    );
    let chunk = Chunk::new(TableId(1), false, 1, parts);
    assert!(chunk.rows() > CHUNK_ROWS);
    assert_eq!(chunk.sorted().times[0], -(PART_ROWS as i64 * 2 + 4));
    assert!(chunk.sorted().is_sorted());
}

/// A part of one series with one text per row.
fn text_part(start: i64, texts: &[&str]) -> ChunkPart {
    let values: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
    ChunkPart {
        series: vec![0; texts.len()].into(),
        times: (start..start + texts.len() as i64).collect(),
        columns: vec![(ColumnId(1), values)],
    }
}

#[test]
fn parts_are_cut_and_put_together_by_their_text_too() {
    let part = text_part(0, &["aaaa", "bbbb", "c", "", "a text over the bound", "d"]);
    assert_eq!(part.text_bytes(), 31);
    let cut: Vec<usize> = part.clone().cut_at(8).iter().map(ChunkPart::len).collect();
    assert_eq!(cut, [2, 2, 1, 1]);
    assert_eq!(part.clone().cut_at(31).len(), 1);
    let rows = |text_max| {
        let mut parts = Vec::new();
        for start in 0..6 {
            part::push(&mut parts, text_part(start, &["four"]), text_max);
        }
        parts.iter().map(ChunkPart::len).collect::<Vec<_>>()
    };
    assert_eq!(rows(100), [6]);
    assert_eq!(rows(8), [2, 2, 2]);
    assert_eq!(rows(0), [1; 6]);
    let chunk = Chunk::new(TableId(1), false, 1, part.cut_at(8));
    assert_eq!((chunk.rows(), chunk.text_bytes()), (6, 31));
    let halved = part::halve(chunk.parts().as_ref());
    assert_eq!(
        halved.iter().map(ChunkPart::len).collect::<Vec<_>>(),
        [4, 2]
    );
}
