//! Which segments are past their ttl.

use super::{LiveTables, outlived};
use marigram_manifest::{Partition, SegmentId, SegmentMeta, SegmentSpace};
use marigram_model::{SeriesId, TableId, TableOptions, TimeRange};
use std::collections::BTreeMap;
use std::sync::Arc;

fn segment(id: u64, start_ns: i64, width_ns: i64, tables: &[u32]) -> (SegmentId, SegmentMeta) {
    let meta = SegmentMeta {
        id: SegmentId(id),
        space: SegmentSpace::Sequence,
        partition: Partition { start_ns, width_ns },
        range: TimeRange {
            min: start_ns,
            max: start_ns + width_ns - 1,
        },
        rows: 1,
        bytes: 1,
        sequence_max: id,
        tables: tables.iter().map(|table| TableId(*table)).collect(),
        series_min: SeriesId(0),
        series_max: SeriesId(0),
        level: 0,
        pin: None,
    };
    (meta.id, meta)
}

fn live(tables: &[(u32, Option<i64>)]) -> LiveTables {
    let schema = |(id, ttl_ns): &(u32, Option<i64>)| {
        let mut schema = crate::catalog::blank("db", "t", TableId(*id));
        schema.options = TableOptions {
            partition_ns: 100,
            ttl_ns: *ttl_ns,
            ..TableOptions::default()
        };
        (TableId(*id), Arc::new(schema))
    };
    tables.iter().map(schema).collect()
}

fn ids(segments: &BTreeMap<SegmentId, SegmentMeta>, live: &LiveTables, now_ns: i64) -> Vec<u64> {
    outlived(segments, live, now_ns)
        .into_iter()
        .map(|id| id.0)
        .collect()
}

#[test]
fn a_partition_goes_when_its_last_time_is_older_than_the_ttl() {
    let segments = BTreeMap::from([segment(1, 0, 100, &[1]), segment(2, 100, 100, &[1])]);
    let live = live(&[(1, Some(1000))]);
    assert_eq!(ids(&segments, &live, 1099), Vec::<u64>::new());
    assert_eq!(ids(&segments, &live, 1100), vec![1]);
    assert_eq!(ids(&segments, &live, 1200), vec![1, 2]);
}

#[test]
fn tables_that_keep_rows_hold_what_they_share_and_dropped_tables_do_not() {
    let segments = BTreeMap::from([
        segment(1, 0, 100, &[1, 2]),
        segment(2, 0, 100, &[1, 3]),
        segment(3, 0, 100, &[3]),
    ]);
    let live = live(&[(1, Some(10)), (2, None)]);
    assert_eq!(ids(&segments, &live, 1_000_000), vec![3]);
}

#[test]
fn a_segment_stays_while_one_that_may_hold_older_forms_of_its_rows_stays() {
    let segments = BTreeMap::from([segment(1, 0, 100, &[1]), segment(2, 0, 10_000, &[1])]);
    let live = live(&[(1, Some(10))]);
    assert_eq!(ids(&segments, &live, 5000), Vec::<u64>::new());
    assert_eq!(ids(&segments, &live, 50_000), vec![1, 2]);
}
