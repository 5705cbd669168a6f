//! Pages copied from one segment into another: the same bytes, statistics and rows.

use super::*;
use crate::{Segment, SegmentColumn, SegmentOptions, TableLayout};
use arrow_array::{ArrayRef, Int64Array};
use marigram_env::{BlobStore, FileBlobs, LogStore, SimFs};
use marigram_model::{FieldType, SeriesId, SortedRows, TableId};
use std::path::Path;
use std::sync::Arc;

const COLUMNS: [SegmentColumn; 1] = [SegmentColumn {
    id: ColumnId(1),
    kind: FieldType::I64,
}];

fn rows(series: u32, times: std::ops::Range<i64>) -> SortedRows {
    let values: Int64Array = times
        .clone()
        .map(|t| (t % 3 > 0).then_some(t * 7))
        .collect();
    SortedRows {
        runs: vec![SeriesRun {
            series: SeriesId(series),
            rows: times.clone().count() as u32,
        }],
        times: times.collect(),
        columns: vec![Arc::new(values) as ArrayRef],
    }
}

/// The blobs in the root of a disk.
fn blobs(fs: &SimFs) -> Arc<dyn BlobStore> {
    let fs: Arc<dyn LogStore> = Arc::new(fs.clone());
    Arc::new(FileBlobs::new(fs, Path::new("/")))
}

/// Pages of 16 rows.
fn layout() -> TableLayout {
    TableLayout::auto(128, 1)
}

fn writer(fs: &Arc<dyn BlobStore>, path: &str) -> SegmentWriter {
    let options = SegmentOptions { row_group_rows: 48 };
    let mut writer = SegmentWriter::create(&**fs, path, options).unwrap();
    writer.table(TableId(1), &COLUMNS, &layout()).unwrap();
    writer
}

/// A segment with the pages 0..16, 16..32, 32..48 of series 1 in its first row group.
fn original(fs: &Arc<dyn BlobStore>) -> Segment {
    let mut first = writer(fs, "1.seg");
    first.append(&rows(1, 0..48)).unwrap();
    first.append(&rows(2, 0..16)).unwrap();
    first.finish().unwrap();
    Segment::open(&**fs, "1.seg").unwrap()
}

fn run(series: u32, rows: u32) -> [SeriesRun; 1] {
    [SeriesRun {
        series: SeriesId(series),
        rows,
    }]
}

#[test]
fn copied_pages_are_read_like_those_they_were_copied_from() {
    let fs: Arc<dyn BlobStore> = blobs(&SimFs::new(1));
    let original = original(&fs);
    let source = |group, page| PageSource {
        segment: &original,
        group,
        page,
    };
    let mut second = writer(&fs, "2.seg");
    second.append(&rows(1, -5..0)).unwrap();
    let copied = second.copy_page(source(0, 0), &run(1, 16)).unwrap();
    second.copy_page(source(0, 1), &run(1, 16)).unwrap();
    second.append(&rows(1, 100..103)).unwrap();
    second.copy_page(source(1, 0), &run(2, 16)).unwrap();
    second.finish().unwrap();
    let second = Segment::open(&*fs, "2.seg").unwrap();
    assert_eq!(second.summary().rows, 5 + 16 + 16 + 3 + 16);
    assert_eq!(second.summary().range, TimeRange { min: -5, max: 102 });
    let mut bytes = 0;
    for column in [ColumnId::TIME, ColumnId(1)] {
        let old = original.pages(0, column).unwrap().unwrap();
        let new = second.pages(0, column).unwrap().unwrap();
        assert_eq!(new[1].stats, old[0].stats);
        assert_eq!((new[1].first_row, new[1].rows), (5, 16));
        assert_eq!(
            &second.read_page(0, column, 1).unwrap(),
            &original.read_page(0, column, 0).unwrap()
        );
        bytes += u64::from(old[0].bytes);
    }
    assert_eq!(copied, bytes);
    let mut damage = Vec::new();
    Segment::verify(&*fs, "2.seg", &mut |place| {
        damage.push(place.to_string());
    });
    assert_eq!(damage, Vec::<String>::new());
}

#[test]
fn a_page_that_does_not_fit_is_refused_and_a_damaged_one_is_an_error() {
    let disk = SimFs::new(1);
    let fs = blobs(&disk);
    let original = original(&fs);
    let source = PageSource {
        segment: &original,
        group: 0,
        page: 1,
    };
    let mut second = writer(&fs, "2.seg");
    second.append(&rows(1, 10..17)).unwrap();
    assert!(
        second.copy_page(source, &run(1, 16)).is_err(),
        "rows before"
    );
    assert!(second.copy_page(source, &run(2, 15)).is_err(), "too few");
    assert!(second.copy_page(source, &[]).is_err(), "no series");
    second.table(TableId(2), &COLUMNS, &layout()).unwrap();
    assert!(second.copy_page(source, &run(1, 16)).is_err(), "a table");
    let offset = original.pages(0, ColumnId(1)).unwrap().unwrap()[1].offset;
    disk.flip_bit(Path::new("/1.seg"), (offset + 25) * 8)
        .unwrap();
    let mut third = writer(&fs, "3.seg");
    let refused = third.copy_page(source, &run(1, 16)).unwrap_err();
    assert!(refused.to_string().contains("checksum"), "{refused}");
}
