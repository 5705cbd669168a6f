//! Compares scans of segments on a simulated disk with the naive merge.

use super::*;
use crate::error::EngineError;
use crate::last_values::LastValues;
use crate::merge::testing::{
    COLUMNS, TABLE, TestFields, TestRows, TestSource, listed, naive, open_segment, sources_with,
    tombstones,
};
use crate::snapshot::TableSnapshot;
use marigram_env::{LogStore, SimFs};
use marigram_manifest::Tombstone;
use marigram_model::{ColumnCodec, FieldColumn, FieldType, FieldValue, TableOptions, TableSchema};
use marigram_segment::SegmentOptions;
use marigram_series_index::SeriesIndex;
use parking_lot::{Mutex, RwLock};
use proptest::prelude::*;
use std::path::Path;
use std::sync::atomic::Ordering;

/// A table of one shard whose segments have the given content.
struct SegmentFixture {
    fs: SimFs,
    snapshot: TableSnapshot,
    last: Arc<Mutex<LastValues>>,
    memory: Arc<MemoryAccountant>,
}

/// Small row groups, so that a few rows make many of them.
fn small() -> SegmentOptions {
    SegmentOptions { row_group_rows: 32 }
}

fn disk(
    given: &[TestSource],
    tombstones: &[Arc<Tombstone>],
    options: &SegmentOptions,
) -> SegmentFixture {
    let fs = SimFs::new(1);
    let dynamic: Arc<dyn LogStore> = Arc::new(fs.clone());
    let numbered = given.iter().enumerate();
    let segments = numbered
        .map(|(id, given)| open_segment(&dynamic, id as u64, given, options))
        .collect();
    let memory = Arc::new(MemoryAccountant::new(1 << 30));
    let last = LastValues::new(memory.clone(), 1 << 20, marigram_model::SeriesId(100));
    let last = Arc::new(Mutex::new(last));
    let view = ShardView {
        shard: 0,
        sequence: 1000,
        segments,
        chunks: Vec::new(),
        tombstones: tombstones.to_vec(),
        reservations: Vec::new(),
    };
    let index = Arc::new(RwLock::new(SeriesIndex::default()));
    let (views, last_values) = (vec![view], vec![last.clone()]);
    let snapshot = TableSnapshot::new(schema(), views, vec![index], last_values, memory.clone());
    SegmentFixture {
        fs,
        snapshot,
        last,
        memory,
    }
}

fn schema() -> Arc<TableSchema> {
    let field = |id, name: &str, kind| FieldColumn {
        id: ColumnId(id),
        name: name.into(),
        kind,
        codec: ColumnCodec::default(),
    };
    Arc::new(TableSchema {
        id: TABLE,
        database: "d".into(),
        name: "t".into(),
        time_name: "time".into(),
        tags: Vec::new(),
        fields: vec![
            field(1, "number", FieldType::I64),
            field(2, "text", FieldType::String),
            field(9, "later", FieldType::F64),
        ],
        options: TableOptions::default(),
        rollup: None,
        view: None,
        dropped_max: 0,
        declared: Vec::new(),
    })
}

fn request(series: impl IntoIterator<Item = u32>) -> ScanRequest {
    ScanRequest {
        selection: SeriesSelection {
            shards: vec![series.into_iter().collect()],
        },
        range: TimeRange::ALL,
        columns: COLUMNS.iter().map(|column| column.id).collect(),
        bounds: Vec::new(),
        batch_rows: 16,
        partitions: 1,
        limit: None,
    }
}

impl SegmentFixture {
    /// The rows of each partition, and the metrics.
    fn scan(&self, request: &ScanRequest) -> Result<(Vec<Vec<Row>>, Arc<ScanMetrics>)> {
        let metrics = Arc::new(ScanMetrics::default());
        let partitions = self.snapshot.scan(request, metrics.clone())?;
        let mut all = Vec::new();
        for mut partition in partitions {
            let mut rows = Vec::new();
            while let Some(batch) = partition.next_rows()? {
                assert!(
                    batch
                        .runs
                        .iter()
                        .all(|run| partition.series().contains(run.series.0))
                );
                rows.extend(listed(&batch));
            }
            all.push(rows);
        }
        assert_eq!(self.memory.used_by(Holder::Scan), 0, "pages are released");
        Ok((all, metrics))
    }

    fn rows(&self, request: &ScanRequest) -> Vec<Row> {
        self.scan(request).unwrap().0.concat()
    }
}

type Row = ((u32, i64), TestFields);

fn numbers(series: u32, times: impl Iterator<Item = i64>) -> TestRows {
    times
        .map(|time| ((series, time), (Some(time), Some("x".into()))))
        .collect()
}

fn sequence(sequence_max: u64, rows: TestRows) -> TestSource {
    TestSource {
        late: false,
        sequence_max,
        rows,
    }
}

fn late(sequence_max: u64, rows: TestRows) -> TestSource {
    TestSource {
        late: true,
        sequence_max,
        rows,
    }
}

fn fields() -> impl Strategy<Value = TestFields> {
    (
        proptest::option::of(0..100i64),
        proptest::option::of("[a-c]{0,3}"),
    )
}

fn test_sources() -> impl Strategy<Value = Vec<TestSource>> {
    let scattered = proptest::collection::btree_map((0..6u32, 0..40i64), fields(), 1..80);
    let run = (0..6u32, 0..20i64, 1..60i64).prop_map(|(s, first, n)| numbers(s, first..first + n));
    let rows = prop_oneof![scattered, run];
    sources_with(rows, 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn a_scan_gives_what_sort_and_last_write_wins_gives(
        given in test_sources(),
        tombstones in tombstones(),
        wanted in proptest::collection::btree_set(0..7u32, 0..7),
        range in (0..40i64, 0..60i64),
        partitions in 1..5usize,
        batch_rows in 1..40usize,
    ) {
        let disk = disk(&given, &tombstones, &small());
        let range = TimeRange { min: range.0, max: range.0 + range.1 };
        let mut expected = naive(&given, &tombstones);
        expected.retain(|(series, time), _| range.contains(*time) && wanted.contains(series));
        let request =
            ScanRequest { range, batch_rows, partitions, ..request(wanted.iter().copied()) };
        let (parts, metrics) = disk.scan(&request).unwrap();
        let rows = parts.concat();
        prop_assert_eq!(metrics.rows_returned.load(Ordering::Relaxed), rows.len() as u64);
        prop_assert_eq!(rows, expected.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn bounds_never_change_what_a_filter_lets_through(
        given in test_sources(),
        tombstones in tombstones(),
        bound in (0..100i64, 0..40i64),
    ) {
        let disk = disk(&given, &tombstones, &small());
        let passes = |fields: &TestFields| {
            fields.0.is_some_and(|number| (bound.0..=bound.0 + bound.1).contains(&number))
        };
        let mut expected = naive(&given, &tombstones);
        expected.retain(|_, fields| passes(fields));
        let bounds = vec![ColumnBounds {
            column: ColumnId(1),
            min: Some(FieldValue::I64(bound.0)),
            max: Some(FieldValue::I64(bound.0 + bound.1)),
        }];
        let mut rows = disk.rows(&ScanRequest { bounds, ..request(0..6) });
        rows.retain(|(_, fields)| passes(fields));
        prop_assert_eq!(rows, expected.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn last_rows_are_the_last_of_each_series(
        given in test_sources(),
        tombstones in tombstones(),
        first in proptest::collection::btree_set(0..7u32, 0..7),
    ) {
        let disk = disk(&given, &tombstones, &small());
        let mut expected = TestRows::new();
        for (key, fields) in naive(&given, &tombstones) {
            expected.retain(|(series, _), _| *series != key.0);
            expected.insert(key, fields);
        }
        let columns: Vec<ColumnId> = COLUMNS.iter().map(|column| column.id).collect();
        let last = |series: Vec<u32>| {
            let selection = SeriesSelection { shards: vec![series.into_iter().collect()] };
            let shards = disk.snapshot.last_rows(&selection, &columns).unwrap();
            shards.iter().flat_map(|(_, rows)| listed(rows)).collect::<Vec<_>>()
        };
        // Some series only from storage, then the rest together with what is cached.
        let some: Vec<Row> =
            expected.clone().into_iter().filter(|(key, _)| first.contains(&key.0)).collect();
        prop_assert_eq!(last(first.into_iter().collect()), some);
        let all: Vec<Row> = expected.into_iter().collect();
        prop_assert_eq!(last((0..7).collect()), all.clone());
        let selection = SeriesSelection { shards: vec![(0..7).collect()] };
        prop_assert!(disk.snapshot.knows_last_rows(&selection));
        let known = disk.last.lock().cached_rows(TABLE, 1000, &(0..7).collect(), &COLUMNS);
        prop_assert!(known.unknown.is_empty());
        prop_assert_eq!(known.rows.iter().flat_map(listed).collect::<Vec<_>>(), all);
    }

    #[test]
    fn edge_rows_contain_the_outermost_rows_of_each_series(
        given in test_sources(),
        tombstones in tombstones(),
        range in (-10..60i64, 0..60i64),
        rows in 1..4usize,
        newest: bool,
        needs_value: bool,
    ) {
        let disk = disk(&given, &tombstones, &small());
        let range = TimeRange { min: range.0, max: range.0 + range.1 };
        let mut stored = naive(&given, &tombstones);
        stored.retain(|(_, time), fields| {
            range.contains(*time) && (!needs_value || fields.0.is_some())
        });
        let request = EdgeRequest {
            selection: SeriesSelection { shards: vec![(0..7).collect()] },
            range,
            columns: COLUMNS.iter().map(|column| column.id).collect(),
            present: if needs_value { vec![0] } else { Vec::new() },
            rows,
            newest,
        };
        let found = disk.snapshot.edge_rows(&request, &mut || true).unwrap();
        let found: TestRows = found.iter().flat_map(|(_, rows)| listed(rows)).collect();
        prop_assert!(found.iter().all(|(key, fields)| stored.get(key) == Some(fields)));
        for series in 0..7 {
            let of_series = stored.range((series, i64::MIN)..=(series, i64::MAX));
            let mut keys: Vec<(u32, i64)> = of_series.map(|(key, _)| *key).collect();
            if newest {
                keys.reverse();
            }
            keys.truncate(rows);
            prop_assert!(keys.iter().all(|key| found.contains_key(key)), "{keys:?} in {found:?}");
        }
    }
}

#[test]
fn pages_of_other_series_and_times_are_not_read() {
    let rows: TestRows = (0..20).flat_map(|series| numbers(series, 0..64)).collect();
    let disk = disk(&[sequence(1, rows)], &[], &small());
    let one = ScanRequest {
        range: TimeRange { min: 8, max: 15 },
        ..request([7])
    };
    let (parts, metrics) = disk.scan(&one).unwrap();
    assert_eq!(parts.concat().len(), 8);
    // A page of times and one of each of two columns.
    assert_eq!(metrics.pages_read.load(Ordering::Relaxed), 3);
    let (total, pruned) = (
        metrics.pages_total.load(Ordering::Relaxed),
        metrics.pages_pruned.load(Ordering::Relaxed),
    );
    assert_eq!(total - pruned, 3, "{total} pages, {pruned} pruned");
}

#[test]
fn segments_of_other_series_and_times_are_not_touched() {
    let given = [
        sequence(1, numbers(1, 0..10)),
        sequence(2, numbers(1, 10..20)),
        sequence(3, numbers(2, 20..30)),
    ];
    let disk = disk(&given, &[], &small());
    let (parts, metrics) = disk
        .scan(&ScanRequest {
            range: TimeRange { min: 10, max: 99 },
            ..request([1])
        })
        .unwrap();
    assert_eq!(parts.concat().len(), 10);
    assert_eq!(metrics.segments_total.load(Ordering::Relaxed), 3);
    assert_eq!(metrics.segments_pruned.load(Ordering::Relaxed), 2);
}

#[test]
fn values_prune_pages_that_nothing_overlaps() {
    let bounds = vec![ColumnBounds {
        column: ColumnId(1),
        min: Some(FieldValue::I64(60)),
        max: None,
    }];
    let request = ScanRequest {
        bounds,
        ..request([1])
    };
    let rows = numbers(1, 0..64);
    let alone = disk(&[sequence(1, rows.clone())], &[], &small());
    let (parts, metrics) = alone.scan(&request).unwrap();
    assert_eq!(
        parts.concat().first().unwrap().0,
        (1, 56),
        "only the last page is read"
    );
    assert_eq!(metrics.pages_read.load(Ordering::Relaxed), 3);
    // A late row overwrites one that passes the filter: if its page were skipped, the old row would
    // reappear.
    let overwritten = late(2, [((1, 61), (Some(0), None))].into());
    let overlaid = disk(&[sequence(1, rows), overwritten], &[], &small());
    let rows = overlaid.rows(&request);
    let row = rows.iter().find(|(key, _)| *key == (1, 61)).unwrap();
    assert_eq!(
        row.1.0,
        Some(0),
        "the filter above must see the newer value"
    );
}

#[test]
fn a_limit_ends_each_partition_early() {
    let rows: TestRows = (0..8).flat_map(|series| numbers(series, 0..64)).collect();
    let disk = disk(&[sequence(1, rows)], &[], &small());
    let request = ScanRequest {
        limit: Some(5),
        partitions: 2,
        ..request(0..8)
    };
    let (parts, metrics) = disk.scan(&request).unwrap();
    assert_eq!(parts.iter().map(Vec::len).collect::<Vec<_>>(), [5, 5]);
    assert_eq!(parts[0][4].0, (0, 4));
    assert_eq!(
        metrics.pages_read.load(Ordering::Relaxed),
        6,
        "a page of each column and part"
    );
}

#[test]
fn partitions_have_about_equal_numbers_of_rows_and_whole_series() {
    let rows: TestRows = (0..10)
        .flat_map(|s| numbers(s, 0..if s == 0 { 90 } else { 10 }))
        .collect();
    let disk = disk(&[sequence(1, rows)], &[], &small());
    let parts = disk
        .scan(&ScanRequest {
            partitions: 2,
            ..request(0..10)
        })
        .unwrap()
        .0;
    assert_eq!(parts.iter().map(Vec::len).collect::<Vec<_>>(), [90, 90]);
}

#[test]
fn a_field_that_no_segment_has_is_null() {
    let disk = disk(&[sequence(1, numbers(1, 0..20))], &[], &small());
    let metrics = Arc::new(ScanMetrics::default());
    let request = ScanRequest {
        columns: vec![ColumnId(9)],
        ..request([1])
    };
    let mut partition = disk.snapshot.scan(&request, metrics).unwrap().remove(0);
    let mut rows = 0;
    while let Some(batch) = partition.next_rows().unwrap() {
        assert_eq!(batch.columns[0].null_count(), batch.len());
        rows += batch.len();
    }
    assert_eq!(rows, 20);
    let unknown = ScanRequest {
        columns: vec![ColumnId(77)],
        ..request
    };
    let error = disk.snapshot.scan(&unknown, Arc::default()).unwrap_err();
    assert!(matches!(error, EngineError::Invalid(_)), "{error}");
}

#[test]
fn a_damaged_page_fails_the_scans_that_touch_it_and_no_others() {
    let rows: TestRows = (0..4).flat_map(|series| numbers(series, 0..64)).collect();
    let disk = disk(&[sequence(1, rows)], &[], &small());
    let open = disk.snapshot.views()[0].segments[0]
        .segment()
        .unwrap()
        .clone();
    // A page of the number column of series 2, in the middle of its times.
    let group = open
        .row_groups()
        .iter()
        .position(|group| group.series_min.0 == 2)
        .unwrap();
    let page = open.pages(group, ColumnId(1)).unwrap().unwrap()[1].clone();
    disk.fs
        .flip_bit(Path::new("/0000000000.seg"), (page.offset + 10) * 8)
        .unwrap();
    let error = disk.scan(&request(0..4)).unwrap_err();
    match error {
        EngineError::Corrupt { path, offset, .. } => {
            assert_eq!(path, Path::new("/0000000000.seg"));
            assert!((page.offset..page.offset + u64::from(page.bytes)).contains(&offset));
        }
        other => panic!("{other}"),
    }
    assert_eq!(disk.rows(&request([0, 1, 3])).len(), 3 * 64);
    let before = ScanRequest {
        range: TimeRange { min: 0, max: 7 },
        ..request([2])
    };
    assert_eq!(disk.rows(&before).len(), 8);
}

#[test]
fn a_scan_that_finds_no_memory_says_so() {
    let disk = disk(&[sequence(1, numbers(1, 0..20))], &[], &small());
    // Beyond the ceiling and also the scans' own reserve.
    disk.memory.grow(Holder::Memtable, 1 << 30);
    disk.memory.grow(Holder::Scan, (1 << 26) - 10);
    let error = disk.scan(&request([1])).unwrap_err();
    assert!(matches!(error, EngineError::Busy { .. }), "{error}");
}

#[test]
fn the_estimate_is_rows_and_times_of_the_metadata() {
    let given = [sequence(1, numbers(1, 5..10)), late(2, numbers(1, 0..6))];
    let disk = disk(&given, &[], &small());
    assert_eq!(disk.snapshot.estimate(), (11, TimeRange { min: 0, max: 9 }));
}
