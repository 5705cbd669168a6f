//! Compares aggregation with the naive merge: the same rows, the same sums.

use super::*;
use crate::chunk::Chunk;
use crate::chunk::part::ChunkPart as Written;
use crate::error::EngineError;
use crate::filter::SeriesSelection;
use crate::memory::MemoryAccountant;
use crate::merge::testing::{
    COLUMNS, TABLE, TestFields, TestRows, TestSource, naive, open_segment, open_segment_of_pages,
    sorted_rows, sources_with, tombstones,
};
use crate::merge::{PageNeed, PageOutline, PageTotals};
use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use marigram_env::{LogStore, SimFs};
use marigram_manifest::Tombstone;
use marigram_model::FieldValue;
use marigram_segment::SegmentOptions;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

/// Accepts rows, and whole pages by their statistics if allowed.
#[derive(Default)]
struct SumReducer {
    by_statistics: bool,
    rows: Vec<((u32, i64), TestFields)>,
    count: usize,
    numbers: usize,
    total: i64,
    /// Rows whose times were passed as progressions.
    regular: usize,
}

impl PageReducer for SumReducer {
    type Error = EngineError;

    fn takes_totals(&mut self, _: TimeRange) -> Result<bool> {
        Ok(self.by_statistics)
    }

    fn totals(&mut self, totals: PageTotals<'_>) -> Result<bool> {
        assert!(self.by_statistics);
        // Accept some of the segments and row groups, so that pages of the others are passed, too.
        if totals.rows.is_multiple_of(3) {
            return Ok(false);
        }
        self.count += totals.rows as usize;
        let numbers = totals.stats[0].map_or(0, |stats| totals.rows - stats.nulls);
        self.numbers += numbers as usize;
        match totals.stats[0].and_then(|stats| stats.sum.as_ref()) {
            Some(FieldValue::I64(sum)) => self.total += sum,
            _ => assert_eq!(numbers, 0),
        }
        Ok(true)
    }

    fn outline(&mut self, outline: PageOutline<'_>) -> Result<PageNeed> {
        if !(self.by_statistics && outline.whole) {
            let regular_will_do = outline.spans[0].series.0.is_multiple_of(2);
            return Ok(if regular_will_do {
                PageNeed::Steps
            } else {
                PageNeed::Rows
            });
        }
        let rows: usize = outline.spans.iter().map(|span| span.len()).sum();
        self.count += rows;
        if let Some(stats) = outline.stats[0] {
            self.numbers += rows - stats.nulls as usize;
            match stats.sum {
                Some(FieldValue::I64(sum)) => self.total += sum,
                _ => assert_eq!(stats.nulls as usize, rows),
            }
        }
        Ok(PageNeed::Nothing)
    }

    fn rows(&mut self, rows: PageRows<'_>) -> Result<()> {
        let steps = rows
            .steps
            .into_iter()
            .flat_map(marigram_segment::RegularIntegers::each);
        let steps: Vec<i64> = steps.collect();
        self.regular += steps.len();
        let times = if steps.is_empty() { rows.times } else { &steps };
        for span in rows.spans {
            let of_span = span.start as usize..span.end as usize;
            for (row, time) in of_span.clone().zip(&times[of_span]) {
                let number = rows.columns[0].as_ref().and_then(|numbers| {
                    let numbers = numbers.as_primitive::<Int64Type>();
                    numbers.is_valid(row).then(|| numbers.value(row))
                });
                let text = rows.columns[1].as_ref().and_then(|texts| {
                    let texts = texts.as_string::<i32>();
                    texts.is_valid(row).then(|| texts.value(row).to_owned())
                });
                assert!(rows.range.contains(*time));
                self.count += 1;
                self.numbers += usize::from(number.is_some());
                self.total += number.unwrap_or(0);
                self.rows.push(((span.series.0, *time), (number, text)));
            }
        }
        Ok(())
    }
}

/// The sources of the given rows: those that `in_memory` names are chunks, the others segments.
fn sources(
    given: &[TestSource],
    in_memory: &BTreeSet<usize>,
    tombstones: &[Arc<Tombstone>],
) -> Vec<MergeSource> {
    let fs: Arc<dyn LogStore> = Arc::new(SimFs::new(1));
    let options = SegmentOptions { row_group_rows: 32 };
    let source = |(at, given): (usize, &TestSource)| {
        if !in_memory.contains(&at) {
            let open = open_segment(&fs, at as u64, given, &options);
            return MergeSource::segment(&open, TABLE, tombstones);
        }
        let rows = sorted_rows(&given.rows);
        let series = rows.runs.iter();
        let series = series.flat_map(|run| vec![run.series.0; run.rows as usize]);
        let columns = COLUMNS.iter().map(|column| column.id);
        let written = Written {
            series: series.collect(),
            times: rows.times.clone(),
            columns: columns.zip(rows.columns).collect(),
        };
        let chunk = Chunk::new(TABLE, given.late, given.sequence_max, vec![written]);
        Ok(MergeSource::chunk(Arc::new(chunk), tombstones))
    };
    let all: Result<Vec<MergeSource>> = given.iter().enumerate().map(source).collect();
    all.unwrap()
}

fn partition(
    sources: &[MergeSource],
    series: impl IntoIterator<Item = u32>,
    range: TimeRange,
    memory: &Arc<MemoryAccountant>,
) -> ReducePartition {
    let request = ScanRequest {
        selection: SeriesSelection::default(),
        range,
        columns: COLUMNS.iter().map(|column| column.id).collect(),
        bounds: Vec::new(),
        batch_rows: 16,
        partitions: 1,
        limit: None,
    };
    let part = ShardPart {
        shard: 0,
        series: Arc::new(series.into_iter().collect()),
        sources: sources.to_vec(),
        territory: 0..=u32::MAX,
    };
    ReducePartition::new(part, &COLUMNS, &request, memory, &Arc::default())
}

fn reduce(
    sources: &[MergeSource],
    series: impl IntoIterator<Item = u32>,
    range: TimeRange,
    by_statistics: bool,
) -> (SumReducer, Arc<ScanMetrics>) {
    let memory = Arc::new(MemoryAccountant::new(1 << 30));
    let mut partition = partition(sources, series, range, &memory);
    let metrics = Arc::clone(&partition.metrics);
    let mut sum = SumReducer {
        by_statistics,
        ..SumReducer::default()
    };
    while partition.step(&mut sum).unwrap() {}
    assert_eq!(memory.used(), 0, "pages are released");
    sum.rows.sort();
    (sum, metrics)
}

fn fields() -> impl Strategy<Value = TestFields> {
    (
        proptest::option::of(0..100i64),
        proptest::option::of("[a-c]{0,3}"),
    )
}

fn test_sources() -> impl Strategy<Value = Vec<TestSource>> {
    // Few rows with many distinct times, so that some series share rows and others do not.
    let scattered = proptest::collection::btree_map((0..6u32, 0..60i64), fields(), 1..40);
    let run = (0..6u32, 0..20i64, 1..60i64, 1..4usize).prop_map(|(series, first, rows, step)| {
        (first..first + rows)
            .step_by(step)
            .map(|time| ((series, time), (Some(time), Some("x".into()))))
            .collect::<TestRows>()
    });
    let rows = prop_oneof![scattered, run];
    sources_with(rows, 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn every_row_is_added_up_once(
        given in test_sources(),
        tombstones in tombstones(),
        in_memory in proptest::collection::btree_set(0..6usize, 0..4),
        wanted in proptest::collection::btree_set(0..7u32, 1..7),
        range in (0..40i64, 0..60i64),
        all_times in proptest::bool::ANY,
    ) {
        let sources = sources(&given, &in_memory, &tombstones);
        let range = if all_times {
            TimeRange::ALL
        } else {
            TimeRange { min: range.0, max: range.0 + range.1 }
        };
        let mut expected = naive(&given, &tombstones);
        expected.retain(|(series, time), _| range.contains(*time) && wanted.contains(series));
        let numbers: Vec<i64> = expected.values().filter_map(|fields| fields.0).collect();
        // The second time, the shared rows are already known.
        for by_statistics in [false, true, true] {
            let (sum, _) = reduce(&sources, wanted.iter().copied(), range, by_statistics);
            prop_assert_eq!(sum.count, expected.len());
            prop_assert_eq!(sum.numbers, numbers.len());
            prop_assert_eq!(sum.total, numbers.iter().sum::<i64>());
            if !by_statistics {
                prop_assert_eq!(sum.rows, expected.clone().into_iter().collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn series_that_share_rows_are_found(
        given in test_sources(),
        in_memory in proptest::collection::btree_set(0..6usize, 0..4),
        wanted in proptest::collection::btree_set(0..7u32, 1..7),
    ) {
        let sources = sources(&given, &in_memory, &[]);
        let mut expected = RoaringBitmap::new();
        for (at, one) in given.iter().enumerate() {
            for other in &given[..at] {
                let common = one.rows.keys().filter(|key| other.rows.contains_key(*key));
                expected.extend(common.map(|key| key.0).filter(|series| wanted.contains(series)));
            }
        }
        let wanted: RoaringBitmap = wanted.into_iter().collect();
        let metrics = ScanMetrics::default();
        for _ in 0..2 {
            let found = series_that_share_rows(&sources, &wanted, TimeRange::ALL, &metrics).unwrap();
            prop_assert_eq!(&found, &expected);
        }
    }
}

/// The rows of `series` at these times.
fn rows(series: u32, times: impl Iterator<Item = i64>) -> TestRows {
    times
        .map(|time| ((series, time), (Some(time), None)))
        .collect()
}

#[test]
fn what_late_rows_share_is_looked_for_once_and_then_pages_answer() {
    let given = [
        TestSource {
            late: false,
            sequence_max: 1,
            rows: rows(1, (0..512).filter(|time| time % 3 != 0)),
        },
        TestSource {
            late: true,
            sequence_max: 2,
            rows: rows(1, (0..512).step_by(3)),
        },
    ];
    let sources = sources(&given, &BTreeSet::new(), &[]);
    let (sum, first) = reduce(&sources, [1], TimeRange::ALL, true);
    assert_eq!((sum.count, sum.total), (512, 511 * 256));
    assert!(first.pages_read.load(Ordering::Relaxed) > 0);
    let (sum, second) = reduce(&sources, [1], TimeRange::ALL, true);
    assert_eq!((sum.count, sum.total), (512, 511 * 256));
    assert_eq!(second.pages_read.load(Ordering::Relaxed), 0);
    assert_eq!(
        second.pages_answered.load(Ordering::Relaxed),
        3 * (341_u64.div_ceil(8) + 171_u64.div_ceil(8)),
        "times and two columns"
    );
    assert_eq!(second.rows_merged.load(Ordering::Relaxed), 0);
}

#[test]
fn times_at_equal_distances_are_shown_as_such_and_others_one_by_one() {
    let regular = (0..3000).step_by(10);
    let irregular = (0..300).map(|row| row * row);
    let mut both = rows(2, regular);
    both.extend(rows(4, irregular));
    let expected: Vec<_> = both.clone().into_iter().collect();
    let given = TestSource {
        late: false,
        sequence_max: 1,
        rows: both,
    };
    let fs: Arc<dyn LogStore> = Arc::new(SimFs::new(1));
    let options = SegmentOptions::default();
    let segment = open_segment_of_pages(&fs, 1, &given, &options, 300);
    let sources = [MergeSource::segment(&segment, TABLE, &[]).unwrap()];
    let (sum, _) = reduce(&sources, [2, 4], TimeRange::ALL, false);
    assert_eq!((sum.count, sum.regular), (600, 300));
    assert_eq!(sum.rows, expected);
}

/// The limits of short steps in these tests.
const SHORT_SOURCES_MAX: usize = 32;
const SHORT_ROWS_MAX: usize = 16 << 10;

#[test]
fn steps_are_short_where_nothing_is_compared_and_chunks_are_small() {
    fn test_source(late: bool, sequence_max: u64, times: impl Iterator<Item = i64>) -> TestSource {
        TestSource {
            late,
            sequence_max,
            rows: rows(1, times),
        }
    }
    let many = SHORT_ROWS_MAX as i64;
    let is_short = |given: &[TestSource], in_memory: &BTreeSet<usize>| {
        let sources = sources(given, in_memory, &[]);
        let memory = Arc::new(MemoryAccountant::new(1 << 30));
        partition(&sources, [1], TimeRange::ALL, &memory)
            .has_short_steps(SHORT_SOURCES_MAX, SHORT_ROWS_MAX)
    };
    let two = [
        test_source(false, 1, 0..512),
        test_source(false, 2, 512..600),
    ];
    assert!(is_short(&two, &BTreeSet::new()));
    assert!(is_short(&two, &[1].into()));
    let late = [
        test_source(false, 1, 0..512),
        test_source(true, 2, 100..101),
    ];
    assert!(!is_short(&late, &BTreeSet::new()));
    let apart = [test_source(false, 1, 0..512), test_source(true, 2, -2..-1)];
    assert!(is_short(&apart, &BTreeSet::new()));
    // After a comparison, they are known to share a row, or none.
    for (times, expected) in [(100..101, false), (512..513, true)] {
        let given = [
            test_source(false, 1, (0..1000).filter(|time| *time != 512)),
            test_source(true, 2, times),
        ];
        let sources = sources(&given, &BTreeSet::new(), &[]);
        reduce(&sources, [1], TimeRange::ALL, false);
        let memory = Arc::new(MemoryAccountant::new(1 << 30));
        let mut again = partition(&sources, [1], TimeRange::ALL, &memory);
        let is_short = again.has_short_steps(SHORT_SOURCES_MAX, SHORT_ROWS_MAX);
        assert_eq!(is_short, expected);
        let mut sum = SumReducer::default();
        while again.step(&mut sum).unwrap() {}
        assert_eq!(sum.count, 999 + usize::from(expected));
    }
    assert!(is_short(&[test_source(false, 1, 0..many)], &[0].into()));
    assert!(!is_short(&[test_source(false, 1, 0..=many)], &[0].into()));
    assert!(is_short(
        &[test_source(false, 1, 0..=many)],
        &BTreeSet::new()
    ));
}

#[test]
fn rows_of_two_chunks_of_the_sequence_space_are_merged() {
    let given = [1, 2].map(|sequence_max| TestSource {
        late: false,
        sequence_max,
        rows: rows(7, 0..10),
    });
    let sources = sources(&given, &[0, 1].into(), &[]);
    let (sum, metrics) = reduce(&sources, [7], TimeRange::ALL, true);
    assert_eq!((sum.count, sum.total), (10, 45));
    assert_eq!(metrics.rows_merged.load(Ordering::Relaxed), 10);
}
