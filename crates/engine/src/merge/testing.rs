//! Test utilities: rows listed one by one, sources built from them, and the naive merge with which
//! the real one must agree.

use super::{MergeOptions, MergeSource, MergeStream};
use crate::error::Result;
use crate::memory::MemoryAccountant;
use crate::segment_files::SegmentFiles;
use crate::view::OpenSegment;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, StringArray};
use marigram_env::{BlobStore, FileBlobs, LogStore};
use marigram_manifest::{Partition, SegmentId, SegmentMeta, SegmentSpace, Tombstone};
use marigram_model::{
    ColumnId, DAY_NS, DeletedRows, FieldType, SeriesId, SeriesRun, SortedRows, TableId, TimeRange,
};
use marigram_segment::{SegmentColumn, SegmentOptions, SegmentWriter, TableLayout};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

pub(crate) const TABLE: TableId = TableId(1);

/// An integer column (1) and a text column (2).
pub(crate) const COLUMNS: [SegmentColumn; 2] = [
    SegmentColumn {
        id: ColumnId(1),
        kind: FieldType::I64,
    },
    SegmentColumn {
        id: ColumnId(2),
        kind: FieldType::String,
    },
];

/// The fields of a row: an integer and a text.
pub(crate) type TestFields = (Option<i64>, Option<String>);

/// Rows by (series, time).
pub(crate) type TestRows = BTreeMap<(u32, i64), TestFields>;

/// A source of a test.
#[derive(Clone, Debug)]
pub(crate) struct TestSource {
    pub(crate) late: bool,
    pub(crate) sequence_max: u64,
    pub(crate) rows: TestRows,
}

impl TestSource {
    pub(crate) fn space(&self) -> SegmentSpace {
        if self.late {
            SegmentSpace::Unsequence
        } else {
            SegmentSpace::Sequence
        }
    }

    pub(crate) fn source(&self, tombstones: &[Arc<Tombstone>]) -> MergeSource {
        let rows = sorted_rows(&self.rows);
        MergeSource::rows(
            COLUMNS.to_vec(),
            rows,
            self.space(),
            self.sequence_max,
            tombstones,
        )
    }
}

/// Converts rows to arrays of [`COLUMNS`].
pub(crate) fn sorted_rows(rows: &TestRows) -> SortedRows {
    let mut runs: Vec<SeriesRun> = Vec::new();
    for (series, _) in rows.keys() {
        match runs.last_mut() {
            Some(run) if run.series.0 == *series => run.rows += 1,
            _ => runs.push(SeriesRun {
                series: SeriesId(*series),
                rows: 1,
            }),
        }
    }
    let numbers: Int64Array = rows.values().map(|fields| fields.0).collect();
    let texts: StringArray = rows.values().map(|fields| fields.1.as_deref()).collect();
    let columns: Vec<ArrayRef> = vec![Arc::new(numbers), Arc::new(texts)];
    SortedRows {
        runs,
        times: rows.keys().map(|key| key.1).collect(),
        columns,
    }
}

/// Converts arrays of [`COLUMNS`] to rows.
pub(crate) fn listed(rows: &SortedRows) -> Vec<((u32, i64), TestFields)> {
    assert!(rows.is_sorted(), "{rows:?}");
    let numbers = rows.columns[0].as_primitive::<Int64Type>();
    let texts = rows.columns[1].as_string::<i32>();
    let series = rows
        .runs
        .iter()
        .flat_map(|run| vec![run.series.0; run.rows as usize]);
    series
        .enumerate()
        .map(|(row, series)| {
            let number = numbers.is_valid(row).then(|| numbers.value(row));
            let text = texts.is_valid(row).then(|| texts.value(row).to_owned());
            ((series, rows.times[row]), (number, text))
        })
        .collect()
}

/// The rows that a merge returns, in order.
pub(crate) fn merged(
    sources: Vec<MergeSource>,
    options: MergeOptions,
) -> Result<Vec<((u32, i64), TestFields)>> {
    let mut merge = MergeStream::new(sources, options);
    let mut all = Vec::new();
    while let Some(rows) = merge.next_rows()? {
        assert!(!rows.is_empty(), "an empty batch");
        all.extend(listed(&rows));
    }
    Ok(all)
}

/// The expected rows: sorted, and the last write wins, field by field.
pub(crate) fn naive(given: &[TestSource], tombstones: &[Arc<Tombstone>]) -> TestRows {
    let mut given: Vec<&TestSource> = given.iter().collect();
    given.sort_by_key(|source| (source.space(), source.sequence_max));
    let mut all = TestRows::new();
    for source in given {
        for ((series, time), fields) in &source.rows {
            let deleted = tombstones.iter().any(|tombstone| {
                tombstone.sequence > source.sequence_max
                    && tombstone.covers(SeriesId(*series), *time)
            });
            if deleted {
                continue;
            }
            let row = all.entry((*series, *time)).or_default();
            row.0 = fields.0.or(row.0);
            row.1 = fields.1.clone().or(row.1.take());
        }
    }
    all
}

/// A range delete of `series` (all if empty).
pub(crate) fn tombstone(sequence: u64, series: &[u32], min: i64, max: i64) -> Arc<Tombstone> {
    let series: Vec<SeriesId> = series.iter().copied().map(SeriesId).collect();
    Arc::new(Tombstone {
        sequence,
        table: TABLE,
        rows: if series.is_empty() {
            DeletedRows::Table
        } else {
            DeletedRows::Series(series.into())
        },
        range: TimeRange { min, max },
    })
}

/// Rows per page in these segments: few, so that a few rows make many pages.
const PAGE_ROWS: u32 = 8;

/// The blobs in the root of a file system.
pub(crate) fn blobs(fs: &Arc<dyn LogStore>) -> Arc<dyn BlobStore> {
    Arc::new(FileBlobs::new(Arc::clone(fs), Path::new("/")))
}

/// Files of segments, of which one is open at a time.
pub(crate) fn segment_files(fs: &Arc<dyn LogStore>) -> Arc<SegmentFiles> {
    let memory = MemoryAccountant::new(1 << 30);
    SegmentFiles::new(blobs(fs), 1, Arc::new(memory))
}

/// Writes the rows of `given` (not empty) as a segment and opens it.
pub(crate) fn open_segment(
    fs: &Arc<dyn LogStore>,
    id: u64,
    given: &TestSource,
    options: &SegmentOptions,
) -> Arc<OpenSegment> {
    open_segment_of_pages(fs, id, given, options, PAGE_ROWS)
}

/// Like [`open_segment`], with pages of `page_rows`.
pub(crate) fn open_segment_of_pages(
    fs: &Arc<dyn LogStore>,
    id: u64,
    given: &TestSource,
    options: &SegmentOptions,
    page_rows: u32,
) -> Arc<OpenSegment> {
    let name = format!("{id:010}.seg");
    let mut writer = SegmentWriter::create(&*blobs(fs), &name, options.clone()).unwrap();
    let layout = TableLayout::auto(8 * page_rows, COLUMNS.len());
    writer.table(TABLE, &COLUMNS, &layout).unwrap();
    writer.append(&sorted_rows(&given.rows)).unwrap();
    let summary = writer.finish().unwrap();
    let meta = SegmentMeta {
        id: SegmentId(id),
        space: given.space(),
        partition: Partition {
            start_ns: 0,
            width_ns: DAY_NS,
        },
        range: summary.range,
        rows: summary.rows,
        bytes: summary.bytes,
        sequence_max: given.sequence_max,
        tables: summary.tables,
        series_min: summary.series_min,
        series_max: summary.series_max,
        level: 0,
        pin: None,
    };
    let segment = OpenSegment::open(&segment_files(fs), &name, meta);
    assert!(segment.segment().is_ok());
    Arc::new(segment)
}

/// Sources as in a sequence space: no (series, time) occurs in two of them. Of rows that several
/// sources have, those of the newest stay.
pub(crate) fn without_sequence_duplicates(mut given: Vec<TestSource>) -> Vec<TestSource> {
    let mut seen = std::collections::BTreeSet::new();
    for source in given.iter_mut().rev().filter(|source| !source.late) {
        source.rows.retain(|key, _| seen.insert(*key));
    }
    given.retain(|source| !source.rows.is_empty());
    given
}

/// Several sources with such rows, numbered in their order.
pub(crate) fn sources_with(
    rows: impl Strategy<Value = TestRows>,
    count: Range<usize>,
) -> impl Strategy<Value = Vec<TestSource>> {
    proptest::collection::vec((proptest::bool::ANY, rows), count).prop_map(|sources| {
        let numbered = sources.into_iter().enumerate();
        let given = numbered.map(|(at, (late, rows))| TestSource {
            late,
            sequence_max: 10 * (at as u64 + 1),
            rows,
        });
        without_sequence_duplicates(given.collect())
    })
}

/// A delete of listed rows; `None` without any.
fn listed_tombstone(sequence: u64, rows: &[(u32, i64)]) -> Option<Arc<Tombstone>> {
    let rows = rows.iter().map(|(series, time)| (SeriesId(*series), *time));
    let (rows, range) = DeletedRows::of_rows(rows.collect())?;
    Some(Arc::new(Tombstone {
        sequence,
        table: TABLE,
        rows,
        range,
    }))
}

/// Up to two deletes of ranges and one of listed rows, each after one of the first six sources.
pub(crate) fn tombstones() -> impl Strategy<Value = Vec<Arc<Tombstone>>> {
    let one = (
        0..6u64,
        proptest::collection::vec(0..6u32, 0..3),
        0..40i64,
        0..15i64,
    );
    let listed = (
        0..6u64,
        proptest::collection::vec((0..6u32, 0..55i64), 0..20),
    );
    (proptest::collection::vec(one, 0..3), listed).prop_map(|(ranges, (after, rows))| {
        let of_range = |(after, mut series, min, width): (u64, Vec<u32>, i64, i64)| {
            series.sort_unstable();
            series.dedup();
            tombstone(after * 10 + 5, &series, min, min + width)
        };
        let listed = listed_tombstone(after * 10 + 6, &rows);
        ranges.into_iter().map(of_range).chain(listed).collect()
    })
}
