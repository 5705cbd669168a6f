//! How chunks collect rows.

use super::{ChunkStack, Memtable};
use crate::chunk::Chunk;
use crate::chunk::part::ChunkPart;
use crate::high_water_marks::HighWaterMarks;
use arrow_array::{ArrayRef, Int64Array, StringArray};
use marigram_manifest::Tombstone;
use marigram_model::{ColumnId, DeletedRows, TableId, TimeRange};
use marigram_wal::WriteEntry;
use std::sync::Arc;

const TABLE: TableId = TableId(3);

fn entry(rows: &[(u32, i64)]) -> WriteEntry {
    let values: Int64Array = rows.iter().map(|row| Some(row.1)).collect();
    WriteEntry {
        table: TABLE,
        new_series: Vec::new(),
        series: rows.iter().map(|row| row.0).collect(),
        times: rows.iter().map(|row| row.1).collect(),
        columns: vec![(ColumnId(1), Arc::new(values))],
    }
}

fn rows(memtable: &Memtable) -> usize {
    memtable.chunks(TABLE).map(|chunk| chunk.rows()).sum()
}

#[test]
fn a_reader_sees_few_chunks_however_small_the_writes() {
    let mut memtable = Memtable::default();
    for time in 0..10_000 {
        memtable.write(time as u64 + 1, &entry(&[(0, time)]), None, 20);
        let chunks = memtable.chunks(TABLE).count();
        assert!(chunks <= 16, "{chunks} chunks after {time} rows");
    }
    assert_eq!((rows(&memtable), memtable.bytes), (10_000, 200_000));
    let sequences: Vec<u64> = memtable.chunks(TABLE).map(|c| c.sequence_max()).collect();
    assert!(sequences.is_sorted(), "oldest first: {sequences:?}");
}

#[test]
fn a_delete_seals_so_that_no_chunk_stands_on_both_sides() {
    let mut memtable = Memtable::default();
    memtable.write(1, &entry(&[(0, 1)]), None, 0);
    memtable.delete(Arc::new(Tombstone {
        sequence: 2,
        table: TABLE,
        rows: DeletedRows::Table,
        range: TimeRange::ALL,
    }));
    memtable.write(3, &entry(&[(0, 2)]), None, 0);
    memtable.write(4, &entry(&[(0, 3)]), None, 0);
    let sequences: Vec<u64> = memtable.chunks(TABLE).map(|c| c.sequence_max()).collect();
    assert_eq!(sequences, vec![1, 4]);
    memtable.drop_table(TABLE);
    assert_eq!((rows(&memtable), memtable.tombstones.len()), (0, 0));
}

#[test]
fn late_rows_go_to_their_own_space_and_raise_no_mark() {
    let mut memtable = Memtable::default();
    let mixed = entry(&[(0, 10), (0, 3), (1, 7)]);
    memtable.write(1, &mixed, Some(&[false, true, false]), 0);
    memtable.write(2, &entry(&[(2, 50)]), Some(&[true]), 0);
    let spaces: Vec<(bool, usize)> = memtable
        .chunks(TABLE)
        .map(|chunk| (chunk.is_late(), chunk.rows()))
        .collect();
    assert_eq!(spaces, vec![(false, 2), (true, 2)]);
    let mut marks = HighWaterMarks::default();
    memtable.raise(&mut marks);
    let late = marks.late(&[0, 0, 1, 2], &[10, 11, 7, 1]);
    assert_eq!(late, Some(vec![true, false, true, false]));
}

#[test]
fn chunks_take_no_more_rows_once_they_have_much_text() {
    let mut stack = ChunkStack::default();
    for time in 0..100 {
        let text: ArrayRef = Arc::new(StringArray::from(vec!["ten bytes!"]));
        let part = ChunkPart {
            series: vec![0].into(),
            times: vec![time].into(),
            columns: vec![(ColumnId(1), text)],
        };
        stack.push(Chunk::new(TABLE, false, 1, vec![part]), 80);
    }
    let texts: Vec<usize> = stack
        .chunks
        .iter()
        .map(|chunk| chunk.text_bytes())
        .collect();
    assert_eq!(texts.iter().sum::<usize>(), 1000);
    assert!(texts.iter().all(|bytes| *bytes <= 80), "{texts:?}");
    assert!(texts.len() <= 16, "{texts:?}");
}
