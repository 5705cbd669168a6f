//! Compares the merge with the naive one: sort, and the last write wins, field by field.

use super::testing::{
    COLUMNS, TestFields, TestRows, TestSource, listed, merged, naive, sorted_rows, tombstone,
};
use super::*;
use marigram_manifest::{SegmentSpace, Tombstone};
use marigram_model::{ColumnId, FieldType};
use proptest::prelude::*;

fn options(batch_rows: usize) -> MergeOptions {
    MergeOptions::all(COLUMNS.to_vec(), batch_rows)
}

fn fields() -> impl Strategy<Value = TestFields> {
    (
        proptest::option::of(0..100i64),
        proptest::option::of("[a-c]{0,3}"),
    )
}

fn rows() -> impl Strategy<Value = TestRows> {
    let scattered = proptest::collection::btree_map((0..5u32, 0..30i64), fields(), 0..60);
    // Long runs of one series, as the fast paths expect.
    let runs = (0..5u32, 0..20i64, 1..40i64, proptest::bool::ANY).prop_map(
        |(series, first, count, nulls)| {
            let fields = |time: i64| {
                let number = (!nulls || time % 3 != 0).then_some(time * 7);
                (number, Some(format!("{series}.{time}")))
            };
            (first..first + count)
                .map(|time| ((series, time), fields(time)))
                .collect::<TestRows>()
        },
    );
    prop_oneof![scattered, runs]
}

fn test_sources() -> impl Strategy<Value = Vec<TestSource>> {
    proptest::collection::vec((proptest::bool::ANY, rows()), 0..6).prop_map(|sources| {
        let numbered = sources.into_iter().enumerate();
        numbered
            .map(|(at, (late, rows))| TestSource {
                late,
                sequence_max: 10 * (at as u64 + 1),
                rows,
            })
            .collect()
    })
}

fn tombstones() -> impl Strategy<Value = Vec<Arc<Tombstone>>> {
    let one = (
        0..70u64,
        proptest::collection::btree_set(0..5u32, 0..3),
        0..30i64,
        0..15i64,
    );
    proptest::collection::vec(one, 0..4).prop_map(|all| {
        all.into_iter()
            .map(|(sequence, series, min, width)| {
                let series: Vec<u32> = series.into_iter().collect();
                // Never equal to a source's sequence: each WAL entry has its own.
                tombstone(
                    sequence * 10 / 10 + u64::from(sequence % 10 == 0),
                    &series,
                    min,
                    min + width,
                )
            })
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_merge_is_sort_and_last_write_wins(
        given in test_sources(),
        tombstones in tombstones(),
        (batch_rows, batch_text_bytes) in (1..50usize, prop_oneof![Just(1 << 20), 0..40usize]),
        wanted in proptest::option::of(proptest::collection::btree_set(0..5u32, 0..4)),
        range in (0..30i64, 0..40i64),
    ) {
        let range = TimeRange { min: range.0, max: range.0 + range.1 };
        let mut expected = naive(&given, &tombstones);
        expected.retain(|(series, time), _| {
            range.contains(*time) && wanted.as_ref().is_none_or(|wanted| wanted.contains(series))
        });
        let sources = given.iter().map(|source| source.source(&tombstones)).collect();
        let series = wanted.map(|wanted| Arc::new(wanted.into_iter().collect()));
        let options = MergeOptions { range, series, batch_text_bytes, ..options(batch_rows) };
        let got = merged(sources, options).unwrap();
        prop_assert_eq!(got, expected.into_iter().collect::<Vec<_>>());
    }
}

/// Rows of one of two series, mostly regular, with some missing: all have a number.
fn paced_numbers() -> impl Strategy<Value = TestRows> {
    let kept = proptest::collection::vec(proptest::bool::weighted(0.4), 1..300);
    (0..2u32, 0..40i64, 1..4i64, 0..100i64, kept).prop_map(|(series, first, pace, number, kept)| {
        let rows = kept.into_iter().zip(0..).filter(|(kept, _)| *kept);
        let row = |(_, row)| {
            let time = first + row * pace;
            ((series, time), (Some(number + time), None))
        };
        rows.map(row).collect()
    })
}

proptest! {
    #[test]
    fn numbers_of_sources_in_turn_are_sort_and_last_write_wins(
        sources in proptest::collection::vec((proptest::bool::ANY, paced_numbers()), 1..8),
        batch_rows in 1..500usize,
        (first, len) in (0..200i64, 0..1000i64),
    ) {
        let numbered = sources.into_iter().zip(1..);
        let given: Vec<TestSource> = numbered
            .map(|((late, rows), sequence_max)| TestSource { late, sequence_max, rows })
            .collect();
        let range = TimeRange { min: first, max: first + len };
        let mut expected = naive(&given, &[]);
        expected.retain(|(_, time), _| range.contains(*time));
        let columns = COLUMNS[..1].to_vec();
        let options = MergeOptions { columns, range, ..options(batch_rows) };
        let sources = given.iter().map(|given| given.source(&[])).collect();
        let mut merge = MergeStream::new(sources, options);
        let mut got = Vec::new();
        while let Some(mut rows) = merge.next_rows().unwrap() {
            rows.columns.push(FieldType::String.nulls(rows.len()));
            got.extend(listed(&rows));
        }
        prop_assert_eq!(got, expected.into_iter().collect::<Vec<_>>());
    }
}

fn numbers(series: u32, times: impl Iterator<Item = i64>) -> TestRows {
    times
        .map(|time| ((series, time), (Some(time), None)))
        .collect()
}

#[test]
fn one_source_is_handed_on_without_a_copy() {
    let rows = sorted_rows(&numbers(3, 0..1000));
    let values = rows.columns[0].to_data().buffers()[0].as_ptr();
    let times = rows.times.as_ptr();
    let source = MergeSource::rows(COLUMNS.to_vec(), rows, SegmentSpace::Sequence, 1, &[]);
    let mut merge = MergeStream::new(vec![source], options(1000));
    let all = merge.next_rows().unwrap().unwrap();
    assert_eq!(all.len(), 1000);
    assert_eq!(all.columns[0].to_data().buffers()[0].as_ptr(), values);
    assert_eq!(all.times.as_ptr(), times);
    assert!(merge.next_rows().unwrap().is_none());
}

#[test]
fn columns_that_a_source_lacks_are_null() {
    let only_first = |rows: &TestRows| {
        let mut rows = sorted_rows(rows);
        rows.columns.truncate(1);
        rows
    };
    let old = only_first(&numbers(1, 0..3));
    let new = sorted_rows(&[((1, 1), (None, Some("late".into())))].into());
    let sources = vec![
        MergeSource::rows(COLUMNS[..1].to_vec(), old, SegmentSpace::Sequence, 1, &[]),
        MergeSource::rows(COLUMNS.to_vec(), new, SegmentSpace::Unsequence, 2, &[]),
    ];
    let got = merged(sources, options(10)).unwrap();
    let expected = [
        ((1, 0), (Some(0), None)),
        ((1, 1), (Some(1), Some("late".into()))),
        ((1, 2), (Some(2), None)),
    ];
    assert_eq!(got, expected);
}

#[test]
fn the_union_of_columns_is_ascending() {
    let other = SegmentColumn {
        id: ColumnId(7),
        kind: FieldType::F64,
    };
    let empty = || sorted_rows(&TestRows::new());
    let sources = [
        MergeSource::rows(
            vec![COLUMNS[1], other],
            empty(),
            SegmentSpace::Sequence,
            1,
            &[],
        ),
        MergeSource::rows(
            vec![COLUMNS[0], COLUMNS[1]],
            empty(),
            SegmentSpace::Sequence,
            2,
            &[],
        ),
    ];
    assert_eq!(columns_of(&sources), [COLUMNS[0], COLUMNS[1], other]);
}

#[test]
fn rows_that_are_rewritten_whole_come_from_the_newest_in_one_piece() {
    let source = |late, sequence_max| TestSource {
        late,
        sequence_max,
        rows: numbers(1, 0..500),
    };
    let metrics = Arc::new(ScanMetrics::default());
    let options = MergeOptions {
        columns: COLUMNS[..1].to_vec(),
        metrics: Some(metrics.clone()),
        ..options(500)
    };
    let sources = vec![source(false, 1).source(&[]), source(true, 2).source(&[])];
    let mut merge = MergeStream::new(sources, options);
    let rows = merge.next_rows().unwrap().unwrap();
    assert_eq!(rows.len(), 500);
    assert!(merge.next_rows().unwrap().is_none());
    assert_eq!(
        metrics
            .rows_merged
            .load(std::sync::atomic::Ordering::Relaxed),
        500
    );
}

/// Rows of one series with texts of a hundred bytes, and a number in every second row.
fn texts(times: impl Iterator<Item = i64>) -> TestRows {
    let fields = |time: i64| ((time % 2 == 0).then_some(time), Some("t".repeat(100)));
    times.map(|time| ((1, time), fields(time))).collect()
}

/// Bytes of text in each batch of a merge whose batches have some 1,000 bytes of text.
fn text_of_batches(given: &[TestSource]) -> Vec<usize> {
    let sources = given.iter().map(|given| given.source(&[])).collect();
    let options = MergeOptions {
        batch_text_bytes: 1000,
        ..options(8192)
    };
    let mut merge = MergeStream::new(sources, options);
    let mut all = Vec::new();
    while let Some(rows) = merge.next_rows().unwrap() {
        all.push(crate::text::bytes_of(&rows.columns));
    }
    all
}

#[test]
fn batches_that_are_put_together_are_bounded_by_their_text() {
    let given = |late, sequence_max, rows| TestSource {
        late,
        sequence_max,
        rows,
    };
    // Rows of two sources in turn, then rows that both have.
    let turns = [
        given(false, 1, texts((0..400).step_by(2))),
        given(false, 2, texts((1..400).step_by(2))),
    ];
    let bytes = text_of_batches(&turns);
    assert_eq!(bytes.iter().sum::<usize>(), 400 * 100);
    assert!(bytes.iter().all(|bytes| *bytes <= 1100), "{bytes:?}");
    let twice = [
        given(false, 1, texts(0..400)),
        given(true, 2, texts(0..400)),
    ];
    let bytes = text_of_batches(&twice);
    assert_eq!(bytes.iter().sum::<usize>(), 400 * 100);
    assert!(bytes.iter().all(|bytes| *bytes <= 1100), "{bytes:?}");
    // What one source holds as one array may be passed on as one slice.
    assert_eq!(text_of_batches(&twice[..1]), [40_000]);
}
