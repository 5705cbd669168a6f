//! Compares the cache with what storage would return.

use super::*;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, Int64Array, StringArray};
use marigram_model::FieldType;

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
        Arc::new(MemoryAccountant::new(8 << 20)),
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

/// The known rows of series 0 to 9 (series, time, value), and the unknown series.
fn known(cache: &mut LastValues, sequence: u64) -> (Vec<Row>, Vec<u32>) {
    let known = cache.cached_rows(TABLE, sequence, &(0..10).collect(), &[COLUMN]);
    for id in 0..10 {
        let is_known = cache.knows(TABLE, sequence, &[id].into());
        assert_eq!(is_known, !known.unknown.contains(id), "series {id}");
    }
    let is_all_known = cache.knows(TABLE, sequence, &(0..10).collect());
    assert_eq!(is_all_known, known.unknown.is_empty());
    let mut all = Vec::new();
    for rows in &known.rows {
        assert!(rows.is_sorted());
        let values = rows.columns[0].as_primitive::<Int64Type>();
        let rows = rows.runs.iter().zip(&rows.times[..]).zip(values);
        all.extend(rows.map(|((run, time), value)| (run.series.0, *time, value)));
    }
    (all, known.unknown.into_iter().collect())
}

/// How many of the first 10,000 series are known, and how many are unknown.
fn count(cache: &mut LastValues) -> (usize, u64) {
    let known = cache.cached_rows(TABLE, 1000, &(0..10_000).collect(), &[COLUMN]);
    let rows = known.rows.iter().map(SortedRows::len).sum();
    (rows, known.unknown.len())
}

/// Simulates a read from storage: rows (series, time, value) of the series `asked`.
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
        known(&mut cache, 2),
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
        .cached_rows(TABLE, 3, &(0..1).collect(), &[TEXT, COLUMN])
        .rows
        .remove(0);
    assert_eq!(both.columns[0].as_string::<i32>().value(0), "a");
    assert_eq!(both.columns[1].as_primitive::<Int64Type>().value(0), 1);
    write(&mut cache, 4, &[(0, 11, Some(7), false)]);
    let newer = cache
        .cached_rows(TABLE, 4, &(0..1).collect(), &[TEXT, COLUMN])
        .rows
        .remove(0);
    assert!(
        newer.columns[0].is_null(0),
        "a newer row does not take fields of an older one"
    );
    assert_eq!(newer.times[0], 11);
}

#[test]
fn series_with_a_past_are_known_once_a_row_is_surely_their_newest() {
    let mut cache = cache(3);
    assert_eq!(known(&mut cache, 0).1, [0, 1, 2]);
    write(
        &mut cache,
        1,
        &[(0, 10, Some(1), false), (1, 10, Some(1), true)],
    );
    assert_eq!(known(&mut cache, 1), (vec![(0, 10, Some(1))], vec![1, 2]));
    write(&mut cache, 2, &[(1, 11, Some(2), false)]);
    assert_eq!(
        known(&mut cache, 2).1,
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
        known(&mut cache, 5),
        (vec![(0, 7, Some(70)), (2, 9, Some(90))], vec![1])
    );
    learn(&mut cache, 5, &[1], &[(1, 100, 1)]);
    assert_eq!(known(&mut cache, 5).1, [] as [u32; 0]);
}

#[test]
fn an_older_version_does_not_see_newer_rows() {
    let mut cache = cache(0);
    write(&mut cache, 1, &[(0, 1, Some(1), false)]);
    write(&mut cache, 2, &[(0, 2, Some(2), false)]);
    assert_eq!(
        known(&mut cache, 1),
        (vec![], vec![0]),
        "changed since: storage is read"
    );
    assert_eq!(known(&mut cache, 2), (vec![(0, 2, Some(2))], vec![]));
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
        known(&mut cache, 2),
        (vec![(1, 20, Some(2)), (2, 30, Some(3))], vec![0])
    );
    learn(&mut cache, 1, &[0], &[(0, 10, 1)]);
    assert_eq!(known(&mut cache, 2).1, [0], "read before the delete");
    cache.invalidate(3, TABLE, None, TimeRange::ALL);
    assert_eq!(known(&mut cache, 3), (vec![], vec![0, 1, 2]));
    learn(&mut cache, 3, &[0, 1, 2], &[]);
    assert_eq!(known(&mut cache, 3), (vec![], vec![]));
    write(&mut cache, 4, &[(1, 5, Some(9), false)]);
    assert_eq!(
        known(&mut cache, 4),
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
    assert!(cache.bytes <= 100_000, "{}", cache.bytes);
    assert_eq!(memory.used_by(Holder::LastValues), cache.bytes);
    let (rows, unknown) = count(&mut cache);
    assert!(rows > 500 && unknown > 0, "{rows} {unknown}");
    assert_eq!(rows as u64 + unknown, 10_000);
    cache.evict_all(100);
    assert_eq!(count(&mut cache), (0, 10_000));
    drop(cache);
    assert_eq!(memory.used_by(Holder::LastValues), 0);
}

#[test]
fn rows_that_are_read_stay_and_others_make_room_for_them() {
    let mut cache = cache(0);
    let all: Vec<_> = (0..10_000)
        .map(|s| (s, 1, Some(i64::from(s)), false))
        .collect();
    write(&mut cache, 1, &all);
    for sequence in 2..6 {
        assert_eq!(
            known(&mut cache, sequence).0.len(),
            10,
            "series 0 to 9 are read"
        );
        cache.evict_cold();
    }
    let (rows, unknown) = count(&mut cache);
    assert!(unknown >= 5000, "{rows} known, {unknown} not");
    let (read, unread) = known(&mut cache, 6);
    assert_eq!((read.len(), unread.len()), (10, 0));
    assert_eq!(
        read[7],
        (7, 1, Some(7)),
        "rows keep their values when others go"
    );
    // Nothing is read from here on, so after enough sweeps nothing is left.
    for _ in 0..60 {
        cache.evict_cold();
    }
    assert_eq!(count(&mut cache), (0, 10_000));
}

#[test]
fn a_row_that_was_let_go_of_is_learned_again_unless_it_changed_since() {
    let mut cache = cache(0);
    write(
        &mut cache,
        1,
        &[(0, 10, Some(1), false), (1, 10, Some(1), false)],
    );
    write(&mut cache, 2, &[(1, 20, Some(2), false)]);
    for _ in 0..3 {
        cache.evict_cold();
    }
    assert_eq!(known(&mut cache, 2), (vec![], vec![0, 1]));
    // A reader of version 1 knows series 0 as it is, and series 1 as it was.
    learn(&mut cache, 1, &[0, 1], &[(0, 10, 1), (1, 10, 1)]);
    assert_eq!(known(&mut cache, 2), (vec![(0, 10, Some(1))], vec![1]));
    write(&mut cache, 3, &[(1, 30, Some(3), false)]);
    learn(&mut cache, 2, &[1], &[(1, 20, 2)]);
    assert_eq!(known(&mut cache, 3).1, [1], "written to since it was read");
    learn(&mut cache, 3, &[1], &[(1, 30, 3)]);
    assert_eq!(known(&mut cache, 3).0, [(0, 10, Some(1)), (1, 30, Some(3))]);
}

#[test]
fn rows_that_nobody_asked_for_fill_a_part_of_the_share_only() {
    const SERIES: u32 = 3 << 19;
    let memory = Arc::new(MemoryAccountant::new(1 << 30));
    let mut cache = LastValues::new(memory, 1 << 30, SeriesId(0));
    let all = |values: &dyn Fn(u32) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values((0..SERIES).map(values)))
    };
    let series: Vec<u32> = (0..SERIES).collect();
    let columns = [(COLUMN.id, all(&|series| i64::from(series)))];
    cache.update(&LastUpdate {
        sequence: 1,
        table: TABLE,
        series: &series,
        times: &vec![10; SERIES as usize],
        late: None,
        columns: &columns,
    });
    let places = SERIES as usize * 8;
    assert!(
        cache.bytes <= UNASKED_BYTES / 8 * 9 + places,
        "{}",
        cache.bytes
    );
    let every = (0..SERIES).collect();
    let known = cache.cached_rows(TABLE, 1, &every, &[COLUMN]);
    let rows: usize = known.rows.iter().map(SortedRows::len).sum();
    assert!(rows > SERIES as usize / 2, "{rows}");
    assert_eq!(rows as u64 + known.unknown.len(), u64::from(SERIES));
    assert!(!known.unknown.is_empty(), "more than the part");
    // Requested rows are kept beyond it.
    let asked: Vec<u32> = known.unknown.iter().take(1000).collect();
    let found: Vec<_> = asked.iter().map(|series| (*series, 10, 5)).collect();
    learn(&mut cache, 1, &asked, &found);
    let again = cache.cached_rows(TABLE, 1, &every, &[COLUMN]).unknown;
    assert_eq!(again.len() + 1000, known.unknown.len());
}

#[test]
fn texts_count_against_the_share() {
    let memory = Arc::new(MemoryAccountant::new(32 << 20));
    let mut cache = LastValues::new(memory, 1 << 20, SeriesId(0));
    let long = "x".repeat(100_000);
    for sequence in 1..40_u32 {
        let text: ArrayRef = Arc::new(StringArray::from(vec![long.as_str()]));
        cache.update(&LastUpdate {
            sequence: u64::from(sequence),
            table: TABLE,
            series: &[sequence % 20],
            times: &[i64::from(sequence)],
            late: None,
            columns: &[(TEXT.id, text)],
        });
        assert!(cache.bytes <= 1 << 20, "{} after {sequence}", cache.bytes);
    }
    // A short text that becomes long makes the cache exceed its share: something must be evicted.
    let mut cache = cache_of_short_texts(20);
    let text: ArrayRef = Arc::new(StringArray::from(vec![long.as_str(); 20]));
    let (series, times): (Vec<u32>, Vec<i64>) = ((0..20).collect(), vec![9; 20]);
    cache.update(&LastUpdate {
        sequence: 9,
        table: TABLE,
        series: &series,
        times: &times,
        late: None,
        columns: &[(TEXT.id, text)],
    });
    assert!(cache.bytes <= 1 << 20, "{}", cache.bytes);
}

fn cache_of_short_texts(series: u32) -> LastValues {
    let mut cache = cache(0);
    let text: ArrayRef = Arc::new(StringArray::from(vec!["x"; series as usize]));
    let (series, times): (Vec<u32>, Vec<i64>) = (0..series).map(|s| (s, 1)).unzip();
    cache.update(&LastUpdate {
        sequence: 1,
        table: TABLE,
        series: &series,
        times: &times,
        late: None,
        columns: &[(TEXT.id, text)],
    });
    cache
}
