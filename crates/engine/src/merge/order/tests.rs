//! Compares the ordering of rows of several sources with a map.

use super::*;
use arrow_array::{BooleanArray, Float64Array, Int64Array, StringArray};
use marigram_model::ColumnId;
use proptest::prelude::*;
use std::collections::BTreeMap;

const NUMBERS: [SegmentColumn; 2] = [
    SegmentColumn {
        id: ColumnId(1),
        kind: FieldType::I64,
    },
    SegmentColumn {
        id: ColumnId(2),
        kind: FieldType::F64,
    },
];

/// The rows of a source, the first of which are not requested.
struct GivenRows {
    times: Vec<i64>,
    block: DecodedBlock,
}

const NOT_ASKED: usize = 3;

impl GivenRows {
    /// Rows with ascending times; the content of a row tells its source and its time.
    fn new(source: usize, times: Vec<i64>) -> Self {
        let unasked = [0; NOT_ASKED];
        let all: Vec<i64> = unasked.iter().chain(&times).copied().collect();
        let numbers = all.iter().map(|time| time.wrapping_add(source as i64));
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers));
        let floats = Float64Array::from_iter_values(all.iter().map(|_| source as f64));
        let columns = vec![Some(numbers), Some(Arc::new(floats) as ArrayRef)];
        Self {
            times,
            block: DecodedBlock::shared(all.into(), columns),
        }
    }

    fn rows(&self) -> SourceRows<'_> {
        SourceRows {
            times: &self.times,
            block: &self.block,
            start: NOT_ASKED,
        }
    }
}

fn given_rows(lists: &[Vec<i64>]) -> Vec<GivenRows> {
    let sources = lists.iter().enumerate();
    sources
        .map(|(source, times)| GivenRows::new(source, times.clone()))
        .collect()
}

fn ordered(given: &[GivenRows]) -> Option<OrderedRows> {
    let rows: Vec<SourceRows<'_>> = given.iter().map(GivenRows::rows).collect();
    in_order(&rows, &NUMBERS)
}

/// The source of each time: the newest that has it.
fn expected(lists: &[Vec<i64>]) -> BTreeMap<i64, usize> {
    let sources = lists.iter().enumerate().rev();
    sources
        .flat_map(|(source, times)| times.iter().map(move |time| (*time, source)))
        .collect()
}

fn check(lists: &[Vec<i64>]) {
    let expected = expected(lists);
    let rows = ordered(&given_rows(lists)).expect("they lie near enough");
    let times: Vec<i64> = expected.keys().copied().collect();
    assert_eq!(rows.times[..], times);
    let numbers = expected.iter();
    let numbers = numbers.map(|(time, source)| time.wrapping_add(*source as i64));
    let floats = expected.values().map(|source| *source as f64);
    let columns: [ArrayRef; 2] = [
        Arc::new(Int64Array::from_iter_values(numbers)),
        Arc::new(Float64Array::from_iter_values(floats)),
    ];
    for (column, expected) in rows.columns.iter().zip(&columns) {
        assert_eq!(column.as_ref(), Some(expected));
    }
}

/// All times of `0..rows` at a pace, each in the source that `whose` names.
fn dealt(sources: usize, rows: i64, pace: i64, whose: impl Fn(i64) -> usize) -> Vec<Vec<i64>> {
    let mut lists = vec![Vec::new(); sources];
    for row in 0..rows {
        lists[whose(row) % sources].push(row * pace);
    }
    lists
}

#[test]
fn times_at_a_pace_have_places_and_others_are_sorted() {
    let at_a_pace = dealt(4, 1000, 1_000_000_000, |row| row as usize);
    let mut twice = at_a_pace.clone();
    twice[0] = twice[1].clone();
    let scattered: Vec<Vec<i64>> = (0..4)
        .map(|list| (0..250).map(|row| row * row * 4 + list).collect())
        .collect();
    for (lists, has_places) in [(&at_a_pace, true), (&twice, false), (&scattered, false)] {
        let given = given_rows(lists);
        let rows: Vec<SourceRows<'_>> = given.iter().map(GivenRows::rows).collect();
        let times = NumberedTimes::from_sources(&rows).unwrap();
        assert_eq!(times.by_places().is_some(), has_places);
        let words = times.by_words();
        assert!(words.is_some());
        if has_places {
            assert_eq!(times.by_places(), words);
        }
        check(lists);
    }
}

#[test]
fn times_may_stand_anywhere() {
    check(&[vec![i64::MIN, i64::MIN + 1], vec![i64::MIN + 2]]);
    check(&[vec![i64::MAX - 2, i64::MAX], vec![i64::MAX - 1]]);
    check(&[vec![-3, -1, 1], vec![-2, 0]]);
    check(&[vec![7], vec![7], vec![7]]);
    check(&[vec![], vec![1, 2, 3], vec![]]);
    check(&[vec![i64::MIN], vec![0]]);
    check(&[vec![0, 1 << 62], vec![1 << 61]]);
    check(&dealt(3, 500, 1, |row| row as usize));
    check(&dealt(3, 500, 2, |row| row as usize));
    check(&dealt(3, 500, 3, |row| row as usize));
    check(&dealt(3, 500, (1 << 50) + 1, |row| row as usize));
    assert!(ordered(&given_rows(&[vec![], vec![]])).is_none());
    let far = given_rows(&[vec![i64::MIN, i64::MAX], vec![1]]);
    assert!(ordered(&far).is_none(), "no word holds a time and a number");
}

#[test]
fn times_of_a_damaged_page_that_do_not_ascend_do_no_harm() {
    for times in [
        vec![5, 4, 3, 2, 1, 0, -1],
        vec![10, i64::MIN, 12],
        vec![3, 3, 3],
    ] {
        let _ = ordered(&given_rows(&[times.clone(), vec![4, 6, 8]]));
        let _ = ordered(&given_rows(&[vec![11, 13], times]));
    }
}

#[test]
fn rows_that_lack_a_field_or_have_others_than_numbers_are_not_for_this() {
    let lists = [vec![1, 3], vec![2, 4]];
    let others: [Option<ArrayRef>; 4] = [
        None,
        Some(Arc::new(Float64Array::from(vec![
            Some(1.0),
            None,
            None,
            None,
            Some(1.0),
        ]))),
        Some(Arc::new(StringArray::from(vec!["a"; 5]))),
        Some(Arc::new(BooleanArray::from(vec![true; 5]))),
    ];
    for other in others {
        let mut given = given_rows(&lists);
        given[1].block.columns[1] = other;
        assert!(ordered(&given).is_none());
    }
}

/// Ascending times: regular or nearly so, with some missing, or irregular.
fn times() -> impl Strategy<Value = Vec<i64>> {
    let at_a_pace =
        (0..50i64, 1..5i64, 0..3i64, 0..8u64).prop_flat_map(|(first, pace, jitter, one_in)| {
            proptest::collection::vec((0..=jitter, 0..=one_in), 0..200).prop_map(move |rows| {
                let all = rows.into_iter().zip(0..);
                let kept = all.filter(|((_, draw), _)| one_in == 0 || *draw > 0);
                kept.map(|((jitter, _), row)| (first + row * pace) * 10 + jitter)
                    .collect()
            })
        });
    let anywhere = proptest::collection::btree_set(-(1i64 << 40)..1 << 40, 0..100);
    prop_oneof![
        3 => at_a_pace,
        1 => anywhere.prop_map(|times| times.into_iter().collect()),
    ]
}

proptest! {
    #[test]
    fn rows_are_in_order_and_the_newest_wins(
        lists in proptest::collection::vec(times(), 1..6),
        scale in prop_oneof![Just(1i64), Just(1000), Just(999)],
    ) {
        let lists: Vec<Vec<i64>> = lists
            .into_iter()
            .map(|times| times.into_iter().map(|time| time * scale).collect())
            .collect();
        if lists.iter().any(|times| !times.is_empty()) {
            check(&lists);
        }
    }
}
