//! The cache against what storage would say.

use super::*;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Int64Array, StringArray};

const TABLE: TableId = TableId(1);
const COLUMN: SegmentColumn = SegmentColumn {
    id: ColumnId(1),
    kind: FieldType::I64,
};
const TEXT: SegmentColumn = SegmentColumn {
    id: ColumnId(2),
    kind: FieldType::String,
};

fn cache(first_new: u32) -> LastValues {
    LastValues::new(
        Arc::new(MemoryAccountant::new(1 << 20)),
        1 << 20,
        SeriesId(first_new),
    )
}

/// Writes rows (series, time, value, late).
fn write(cache: &mut LastValues, sequence: u64, rows: &[(u32, i64, Option<i64>, bool)]) {
    let series: Vec<u32> = rows.iter().map(|row| row.0).collect();
    let times: Vec<i64> = rows.iter().map(|row| row.1).collect();
    let late: Vec<bool> = rows.iter().map(|row| row.3).collect();
    let values: ArrayRef = Arc::new(rows.iter().map(|row| row.2).collect::<Int64Array>());
    cache.update(&LastUpdate {
        sequence,
        table: TABLE,
        series: &series,
        times: &times,
        late: Some(&late),
        columns: &[(COLUMN.id, values)],
    });
}

/// Series, time and value.
type Row = (u32, i64, Option<i64>);

/// What is known of series 0 to 9 (series, time, value), and what is not.
fn known(cache: &LastValues, sequence: u64) -> (Vec<Row>, Vec<u32>) {
    let known = cache.known(TABLE, sequence, &(0..10).collect(), &[COLUMN]);
    assert!(known.rows.is_sorted());
    let values = known.rows.columns[0].as_primitive::<Int64Type>();
    let rows = known
        .rows
        .runs
        .iter()
        .zip(&known.rows.times[..])
        .zip(values);
    let rows = rows.map(|((run, time), value)| (run.series.0, *time, value));
    (rows.collect(), known.unknown.into_iter().collect())
}

/// As if storage had been read: rows (series, time, value) of the series `asked`.
fn learn(cache: &mut LastValues, sequence: u64, asked: &[u32], rows: &[(u32, i64, i64)]) {
    let runs = rows
        .iter()
        .map(|row| SeriesRun {
            series: SeriesId(row.0),
            rows: 1,
        })
        .collect();
    let values: ArrayRef = Arc::new(rows.iter().map(|row| Some(row.2)).collect::<Int64Array>());
    let times = rows.iter().map(|row| row.1).collect();
    let rows = SortedRows {
        runs,
        times,
        columns: vec![values],
    };
    cache.learn(
        TABLE,
        sequence,
        &asked.iter().copied().collect(),
        &rows,
        &[COLUMN],
    );
}

#[test]
fn new_series_are_known_from_their_first_row_on() {
    let mut cache = cache(0);
    write(
        &mut cache,
        1,
        &[(3, 10, Some(1), false), (3, 12, Some(2), false)],
    );
    write(&mut cache, 2, &[(3, 11, Some(3), true), (4, 5, None, true)]);
    assert_eq!(
        known(&cache, 2),
        (vec![(3, 12, Some(2)), (4, 5, None)], vec![])
    );
}

#[test]
fn rows_of_the_same_time_complete_each_other() {
    let mut cache = cache(0);
    let text: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
    write(&mut cache, 1, &[(0, 10, Some(1), false)]);
    let times = [10, 9];
    cache.update(&LastUpdate {
        sequence: 2,
        table: TABLE,
        series: &[0, 0],
        times: &times,
        late: None,
        columns: &[(TEXT.id, text)],
    });
    write(&mut cache, 3, &[(0, 10, None, false)]);
    let both = cache
        .known(TABLE, 3, &(0..1).collect(), &[TEXT, COLUMN])
        .rows;
    assert_eq!(both.columns[0].as_string::<i32>().value(0), "a");
    assert_eq!(both.columns[1].as_primitive::<Int64Type>().value(0), 1);
    write(&mut cache, 4, &[(0, 11, Some(7), false)]);
    let newer = cache
        .known(TABLE, 4, &(0..1).collect(), &[TEXT, COLUMN])
        .rows;
    assert!(
        newer.columns[0].is_null(0),
        "a newer row does not take fields of an older one"
    );
    assert_eq!(newer.times[0], 11);
}

#[test]
fn series_with_a_past_are_known_once_a_row_is_surely_their_newest() {
    let mut cache = cache(3);
    assert_eq!(known(&cache, 0).1, [0, 1, 2]);
    write(
        &mut cache,
        1,
        &[(0, 10, Some(1), false), (1, 10, Some(1), true)],
    );
    assert_eq!(known(&cache, 1), (vec![(0, 10, Some(1))], vec![1, 2]));
    write(&mut cache, 2, &[(1, 11, Some(2), false)]);
    assert_eq!(
        known(&cache, 2).1,
        [1, 2],
        "the active memtable may hold a newer row"
    );
}

#[test]
fn what_a_reader_found_is_kept_unless_something_happened_since() {
    let mut cache = cache(4);
    write(&mut cache, 5, &[(1, 100, Some(1), true)]);
    learn(
        &mut cache,
        4,
        &[0, 1, 2, 3],
        &[(0, 7, 70), (1, 8, 80), (2, 9, 90)],
    );
    assert_eq!(
        known(&cache, 5),
        (vec![(0, 7, Some(70)), (2, 9, Some(90))], vec![1])
    );
    learn(&mut cache, 5, &[1], &[(1, 100, 1)]);
    assert_eq!(known(&cache, 5).1, [] as [u32; 0]);
}

#[test]
fn an_older_version_does_not_see_newer_rows() {
    let mut cache = cache(0);
    write(&mut cache, 1, &[(0, 1, Some(1), false)]);
    write(&mut cache, 2, &[(0, 2, Some(2), false)]);
    assert_eq!(
        known(&cache, 1),
        (vec![], vec![0]),
        "changed since: storage is read"
    );
    assert_eq!(known(&cache, 2), (vec![(0, 2, Some(2))], vec![]));
}

#[test]
fn deletes_forget_the_rows_they_touch_and_no_others() {
    let mut cache = cache(0);
    write(
        &mut cache,
        1,
        &[
            (0, 10, Some(1), false),
            (1, 20, Some(2), false),
            (2, 30, Some(3), false),
        ],
    );
    let range = TimeRange { min: 0, max: 25 };
    cache.invalidate(2, TABLE, Some(&[SeriesId(0), SeriesId(2)]), range);
    assert_eq!(
        known(&cache, 2),
        (vec![(1, 20, Some(2)), (2, 30, Some(3))], vec![0])
    );
    learn(&mut cache, 1, &[0], &[(0, 10, 1)]);
    assert_eq!(known(&cache, 2).1, [0], "read before the delete");
    cache.invalidate(3, TABLE, None, TimeRange::ALL);
    assert_eq!(known(&cache, 3), (vec![], vec![0, 1, 2]));
    learn(&mut cache, 3, &[0, 1, 2], &[]);
    assert_eq!(known(&cache, 3), (vec![], vec![]));
    write(&mut cache, 4, &[(1, 5, Some(9), false)]);
    assert_eq!(
        known(&cache, 4),
        (vec![(1, 5, Some(9))], vec![]),
        "a freed slot is used again"
    );
}

#[test]
fn a_table_that_was_dropped_takes_no_memory() {
    let mut cache = cache(0);
    write(
        &mut cache,
        1,
        &(0..1000)
            .map(|s| (s, 1, Some(1), false))
            .collect::<Vec<_>>(),
    );
    let full = cache.bytes;
    cache.remove_table(TABLE);
    assert!(cache.bytes < full / 3, "{} of {full}", cache.bytes);
}

#[test]
fn memory_is_bounded_and_accounted_for() {
    let memory = Arc::new(MemoryAccountant::new(1 << 20));
    let mut cache = LastValues::new(memory.clone(), 100_000, SeriesId(0));
    for block in 0..20u32 {
        let rows: Vec<_> = (block * 500..block * 500 + 500)
            .map(|s| (s, 1, Some(1), false))
            .collect();
        write(&mut cache, u64::from(block) + 1, &rows);
    }
    // Doubling vectors may hold twice what is in them, and each series has its state.
    assert!(cache.bytes < 300_000, "{}", cache.bytes);
    assert_eq!(memory.used_by(Holder::LastValues), cache.bytes);
    let known = cache.known(TABLE, 100, &(0..10_000).collect(), &[COLUMN]);
    assert!(!known.rows.is_empty() && !known.unknown.is_empty());
    assert_eq!(known.rows.len() as u64 + known.unknown.len(), 10_000);
    cache.evict_all(100);
    assert_eq!(
        cache
            .known(TABLE, 100, &(0..10_000).collect(), &[COLUMN])
            .unknown
            .len(),
        10_000
    );
    drop(cache);
    assert_eq!(memory.used_by(Holder::LastValues), 0);
}
