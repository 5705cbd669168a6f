//! Segments written and read back, damaged and cut.
#![allow(
    clippy::disallowed_methods,
    reason = "tests damage files behind the back of the file system"
)]

mod whole;

use super::*;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Float32Array, Float64Array, Int32Array, Int64Array,
    StringArray, TimestampNanosecondArray, UInt64Array,
};
use marigram_codec::{Compressor, Encoding, EncodingChoice, EncodingGoal, crc32c};
use marigram_env::{BlobStore, Env};
use marigram_model::{
    ColumnId, FieldType, FieldValue, SeriesId, SeriesRun, SortedRows, TableId, TimeRange,
};
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn disk() -> (tempfile::TempDir, Arc<dyn BlobStore>, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("1.seg");
    (dir, Env::real().blob_store(Path::new("/")), path)
}

fn options() -> SegmentOptions {
    SegmentOptions { row_group_rows: 64 }
}

/// Pages of 16 rows.
fn layout() -> TableLayout {
    TableLayout::auto(16 * 8, columns().len())
}

/// Every type, ids 1 to 9.
fn columns() -> Vec<SegmentColumn> {
    let column = |(at, kind): (usize, FieldType)| SegmentColumn {
        id: ColumnId(at as u32 + 1),
        kind,
    };
    FieldType::ALL.into_iter().enumerate().map(column).collect()
}

/// A value of each type, or none, made from one number.
fn arrays(numbers: &[Option<u64>]) -> Vec<ArrayRef> {
    let text = |n: u64| "x".repeat((n % 70) as usize) + &n.to_string();
    let all = || numbers.iter().copied();
    vec![
        Arc::new(
            all()
                .map(|n| n.map(|n| n % 3 == 0))
                .collect::<BooleanArray>(),
        ),
        Arc::new(all().map(|n| n.map(|n| n as i32)).collect::<Int32Array>()),
        Arc::new(all().map(|n| n.map(|n| n as i64)).collect::<Int64Array>()),
        Arc::new(all().collect::<UInt64Array>()),
        Arc::new(
            all()
                .map(|n| n.map(|n| f32::from_bits(n as u32)))
                .collect::<Float32Array>(),
        ),
        Arc::new(
            all()
                .map(|n| n.map(f64::from_bits))
                .collect::<Float64Array>(),
        ),
        Arc::new(all().map(|n| n.map(text)).collect::<StringArray>()),
        Arc::new(
            all()
                .map(|n| n.map(|n| n.to_le_bytes().to_vec()))
                .collect::<BinaryArray>(),
        ),
        Arc::new(
            all()
                .map(|n| n.map(|n| n as i64))
                .collect::<TimestampNanosecondArray>(),
        ),
    ]
}

/// Rows of the series 0, 2, 4, … with these many rows each.
fn rows(series: &[u32], numbers: impl Fn(u32, u32) -> Option<u64>) -> SortedRows {
    let (mut runs, mut times, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for (at, count) in series.iter().enumerate().filter(|(_, count)| **count > 0) {
        let id = at as u32 * 2;
        runs.push(SeriesRun {
            series: SeriesId(id),
            rows: *count,
        });
        times.extend((0..*count).map(|row| i64::from(row) * 1_000 - 5_000));
        values.extend((0..*count).map(|row| numbers(id, row)));
    }
    SortedRows {
        runs,
        times: times.into(),
        columns: arrays(&values),
    }
}

/// The name of a file in the blob store of the root directory.
fn name(path: &Path) -> &str {
    path.to_str().unwrap().trim_start_matches('/')
}

fn write(fs: &Arc<dyn BlobStore>, path: &Path, parts: &[SortedRows]) -> SegmentSummary {
    write_as(fs, path, parts, &layout())
}

fn write_as(
    fs: &Arc<dyn BlobStore>,
    path: &Path,
    parts: &[SortedRows],
    layout: &TableLayout,
) -> SegmentSummary {
    let mut writer = SegmentWriter::create(&**fs, name(path), options()).unwrap();
    writer.table(TableId(7), &columns(), layout).unwrap();
    for part in parts {
        writer.append(part).unwrap();
    }
    writer.finish().unwrap()
}

/// Reads a page, of which a part must be the same rows.
fn read_page(
    segment: &Segment,
    group: usize,
    column: ColumnId,
    page: usize,
) -> Result<ArrayRef, SegmentError> {
    let all = segment.read_page(group, column, page)?;
    let rows = all.len() / 3..all.len() - all.len() / 4;
    let part = segment.read_part(group, column, page, &rows)?;
    assert_eq!(*part, *all.slice(rows.start, rows.len()));
    if let Some(times) = all.as_primitive_opt::<Int64Type>()
        && column == ColumnId::TIME
    {
        check_within(segment, (group, page), times.values())?;
    }
    Ok(all)
}

/// Reads the first series' times in a page as far as they are in some ranges.
fn check_within(
    segment: &Segment,
    (group, page): (usize, usize),
    times: &[i64],
) -> Result<(), SegmentError> {
    let rise = times.windows(2).take_while(|pair| pair[0] < pair[1]);
    let own = &times[..times.len().min(rise.count() + 1)];
    let time = |part: usize| own[own.len() * part / 8];
    let (middle, late) = (time(3), time(7));
    let ranges = [
        (middle, late),
        (middle + 1, i64::MAX),
        (i64::MIN, late - 1),
        (late, middle),
    ];
    for (min, max) in ranges {
        let range = TimeRange { min, max };
        let found = segment.read_times_within(group, page, &(0..own.len()), range)?;
        let from = own.partition_point(|time| *time < min);
        let to = own.partition_point(|time| *time <= max).max(from);
        assert_eq!(found.1[..], own[from..to]);
        assert!(found.0 == (from..to) || from == to);
    }
    Ok(())
}

/// Reads everything back as (series, time, values).
type Row = (u32, i64, Vec<Option<FieldValue>>);

fn read(segment: &Segment) -> Result<Vec<Row>, SegmentError> {
    let mut all = Vec::new();
    for group in 0..segment.row_groups().len() {
        let directory = segment.directory(group)?;
        let mut series = directory
            .iter()
            .flat_map(|run| std::iter::repeat_n(run.series.0, run.rows as usize));
        let pages = segment.pages(group, ColumnId::TIME)?.unwrap().len();
        for page in 0..pages {
            let times = read_page(segment, group, ColumnId::TIME, page)?;
            let columns = &segment.row_groups()[group].columns;
            let values: Vec<ArrayRef> = columns
                .iter()
                .map(|column| read_page(segment, group, column.id, page))
                .collect::<Result<_, _>>()?;
            for row in 0..times.len() {
                let Some(FieldValue::I64(time)) = FieldValue::from_array(&times, row) else {
                    panic!()
                };
                let fields = values
                    .iter()
                    .map(|values| FieldValue::from_array(values, row))
                    .collect();
                all.push((series.next().unwrap(), time, fields));
            }
        }
    }
    Ok(all)
}

fn expected(part: &SortedRows) -> Vec<Row> {
    let series = part
        .runs
        .iter()
        .flat_map(|run| std::iter::repeat_n(run.series.0, run.rows as usize));
    let row = |(row, series)| {
        let fields = part
            .columns
            .iter()
            .map(|values| FieldValue::from_array(values, row))
            .collect();
        (series, part.times[row], fields)
    };
    series.enumerate().map(row).collect()
}

fn damage(fs: &Arc<dyn BlobStore>, path: &Path) -> Vec<String> {
    let mut found = Vec::new();
    Segment::verify(&**fs, name(path), &mut |error| {
        found.push(error.to_string());
    });
    found
}

#[test]
fn an_empty_segment_is_one() {
    let (_dir, fs, path) = disk();
    let summary = write(&fs, &path, &[]);
    assert_eq!(summary.rows, 0);
    let segment = Segment::open(&*fs, name(&path)).unwrap();
    assert_eq!(segment.summary(), &summary);
    assert!(segment.row_groups().is_empty());
    assert_eq!(damage(&fs, &path), Vec::<String>::new());
}

#[test]
fn long_series_have_pages_to_themselves_and_short_ones_share() {
    let (_dir, fs, path) = disk();
    write(
        &fs,
        &path,
        &[rows(&[2, 2, 20, 3, 3, 4, 3], |_, row| Some(u64::from(row)))],
    );
    let segment = Segment::open(&*fs, name(&path)).unwrap();
    let pages = segment.pages(0, ColumnId::TIME).unwrap().unwrap();
    let cuts: Vec<u32> = pages.iter().map(|page| page.rows).collect();
    assert_eq!(cuts, [4, 16, 4, 6, 4, 3]);
    let stats = &pages[1].stats;
    assert_eq!(stats.min, Some(FieldValue::I64(-5_000)));
    assert_eq!(stats.max, Some(FieldValue::I64(10_000)));
    let pages = segment.pages(0, ColumnId(2)).unwrap().unwrap();
    assert_eq!(pages[1].stats.sum, Some(FieldValue::I64((0..16).sum())));
    assert_eq!(pages[1].stats.last, Some((10_000, FieldValue::I32(15))));
    assert_eq!(segment.pages(0, ColumnId(99)).unwrap(), None);
}

#[test]
fn totals_are_those_of_all_pages() {
    let (_dir, fs, path) = disk();
    // The last series has no value at all, and the one before it has only one.
    let value = |series: u32, row: u32| match series / 2 {
        number @ 0..5 => Some(u64::from(number * 10 + row)),
        5 => (row == 1).then_some(3),
        _ => None,
    };
    write(&fs, &path, &[rows(&[2, 2, 20, 3, 3, 4, 20], value)]);
    let segment = Segment::open(&*fs, name(&path)).unwrap();
    assert!(segment.pages(0, ColumnId::TIME).unwrap().unwrap().len() > 4);
    let before = segment.memory_bytes();
    for _ in 0..2 {
        let totals = segment.totals(0, ColumnId(2)).unwrap().unwrap();
        let sum: i64 = 1 + 21 + (20..40).sum::<i64>() + 93 + 123 + 3;
        assert_eq!(totals.sum, Some(FieldValue::I64(sum)));
        assert_eq!(totals.min, Some(FieldValue::I32(0)));
        assert_eq!(totals.max, Some(FieldValue::I32(42)));
        assert_eq!(
            (totals.nulls, &totals.first, &totals.last),
            (23, &None, &None)
        );
    }
    assert!(
        segment.memory_bytes() > before,
        "they are kept, and counted"
    );
    assert_eq!(segment.totals(0, ColumnId(99)).unwrap(), None);
}

#[test]
fn tables_stand_one_after_the_other() {
    let (_dir, fs, path) = disk();
    let mut writer = SegmentWriter::create(&*fs, name(&path), options()).unwrap();
    let part = rows(&[3, 0, 5], |_, row| Some(u64::from(row)));
    for table in [1, 5] {
        writer.table(TableId(table), &columns(), &layout()).unwrap();
        writer.append(&part).unwrap();
    }
    assert!(writer.table(TableId(5), &columns(), &layout()).is_err());
    let summary = writer.finish().unwrap();
    assert_eq!(summary.tables, [TableId(1), TableId(5)]);
    assert_eq!(
        (summary.series_min, summary.series_max),
        (SeriesId(0), SeriesId(4))
    );
    assert_eq!(
        summary.range,
        TimeRange {
            min: -5_000,
            max: -1_000
        }
    );
    let segment = Segment::open(&*fs, name(&path)).unwrap();
    assert_eq!(segment.row_groups_of(TableId(5)), 1..2);
    assert_eq!(segment.row_groups_of(TableId(3)), 1..1);
    assert_eq!(segment.row_groups_of(TableId(9)), 2..2);
}

#[test]
fn rows_out_of_order_are_refused() {
    let (_dir, fs, path) = disk();
    let part = rows(&[3], |_, row| Some(u64::from(row)));
    let mut writer = SegmentWriter::create(&*fs, name(&path), options()).unwrap();
    assert!(writer.append(&part).is_err());
    writer.table(TableId(1), &columns(), &layout()).unwrap();
    writer.append(&part).unwrap();
    assert!(writer.append(&part).is_err());
}

#[test]
fn every_flipped_bit_is_found_and_no_wrong_value_comes() {
    let (_dir, fs, path) = disk();
    let part = rows(&[5, 0, 1, 9], |id, row| {
        (row % 4 != 1).then_some(u64::from(id * 31 + row))
    });
    write(&fs, &path, std::slice::from_ref(&part));
    let good = std::fs::read(&path).unwrap();
    assert_eq!(damage(&fs, &path), Vec::<String>::new());
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 8);
        std::fs::write(&path, &bad).unwrap();
        assert!(!damage(&fs, &path).is_empty(), "byte {at}");
        let result = Segment::open(&*fs, name(&path)).and_then(|segment| read(&segment));
        if let Ok(read) = result {
            assert_eq!(read, expected(&part), "byte {at}");
        }
    }
    for len in 0..good.len() {
        std::fs::write(&path, &good[..len]).unwrap();
        assert!(Segment::open(&*fs, name(&path)).is_err(), "cut at {len}");
    }
}

/// Files of every format version must stay readable for ever. `MARIGRAM_BLESS=1` writes the newest.
#[test]
fn the_golden_files_of_all_versions_are_readable() {
    for version in 1..=FORMAT_VERSION {
        check_golden(version);
    }
}

fn check_golden(version: u32) {
    let golden = marigram_fixtures::golden_path(&format!("segment/v{version}.bin"));
    let part = rows(&[40, 0, 3, 3, 70], |id, row| {
        (row % 7 != 3).then_some(u64::from(id) * 1_000 + u64::from(row))
    });
    let fs = Env::real().blob_store(Path::new("/"));
    let is_newest = version == FORMAT_VERSION;
    if is_newest && marigram_fixtures::is_blessing() {
        std::fs::create_dir_all(golden.parent().unwrap()).unwrap();
        write(&fs, &golden, std::slice::from_ref(&part));
    }
    assert_eq!(damage(&fs, &golden), Vec::<String>::new());
    let segment = Segment::open(&*fs, name(&golden)).unwrap();
    assert_eq!(read(&segment).unwrap(), expected(&part));
}

#[test]
fn another_segment_in_the_place_of_one_is_told() {
    let (_dir, fs, path) = disk();
    let first = write(&fs, &path, &[rows(&[3, 5], |_, row| Some(u64::from(row)))]);
    let other = path.with_extension("other");
    // As many rows of the same series and times: only the values are other ones.
    let second = write(
        &fs,
        &other,
        &[rows(&[3, 5], |_, row| Some(u64::from(row) + 1))],
    );
    assert_ne!(first.pin, second.pin);
    let segment = Segment::open(&*fs, name(&path)).unwrap();
    segment.check_pin(first.bytes, Some(first.pin)).unwrap();
    segment.check_pin(first.bytes + 1, None).unwrap();
    let error = segment
        .check_pin(second.bytes, Some(second.pin))
        .unwrap_err();
    assert!(matches!(error, SegmentError::Corrupt { .. }), "{error}");
}

/// Pages that are whole, of another segment with the same footer, are told by `verify`.
#[test]
fn the_footer_says_the_checksum_of_all_before_it() {
    let (_dir, fs, path) = disk();
    write(&fs, &path, &[rows(&[30], |_, row| Some(u64::from(row)))]);
    let segment = Segment::open(&*fs, name(&path)).unwrap();
    let body = segment.body().unwrap();
    let mut bytes = vec![0; body.bytes as usize];
    segment.file.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(body, marigram_codec::ChecksummedPrefix::new(&bytes));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn rows_come_back(
        counts in prop::collection::vec(0u32..60, 1..12),
        numbers in prop::collection::vec(prop::option::weighted(0.8, any::<u64>()), 1..50),
        narrow in any::<bool>(),
        cut in 1usize..40,
    ) {
        let (_dir, fs, path) = disk();
        let part = rows(&counts, |id, row| {
            let number = numbers[(id as usize * 7 + row as usize) % numbers.len()];
            number.map(|number| if narrow { number % 100 } else { number })
        });
        let all = expected(&part);
        let summary = write(&fs, &path, &cut_into(&part, cut));
        prop_assert_eq!(summary.rows as usize, part.len());
        let segment = Segment::open(&*fs, name(&path)).unwrap();
        prop_assert_eq!(read(&segment).unwrap(), all);
        prop_assert_eq!(damage(&fs, &path), Vec::<String>::new());
    }
    /// Every size of pages, and every encoding and compressor for every column.
    #[test]
    fn rows_come_back_from_any_layout(
        counts in prop::collection::vec(0u32..90, 1..8),
        numbers in prop::collection::vec(prop::option::weighted(0.9, any::<u64>()), 1..50),
        narrow in any::<bool>(),
        page_bytes in prop_oneof![8u32..600, Just(262_144)],
        cut in 1usize..100,
        choices in prop::collection::vec(any_choice(), 10),
    ) {
        let (_dir, fs, path) = disk();
        let part = rows(&counts, |id, row| {
            let number = numbers[(id as usize * 7 + row as usize) % numbers.len()];
            number.map(|number| if narrow { number % 100 } else { number })
        });
        let layout = TableLayout { page_bytes, time: choices[9], columns: choices[..9].to_vec() };
        write_as(&fs, &path, &cut_into(&part, cut), &layout);
        let segment = Segment::open(&*fs, name(&path)).unwrap();
        prop_assert_eq!(read(&segment).unwrap(), expected(&part));
        prop_assert_eq!(damage(&fs, &path), Vec::<String>::new());
        for group in 0..segment.row_groups().len() {
            for page in segment.pages(group, ColumnId::TIME).unwrap().unwrap().iter() {
                prop_assert!(page.rows <= (page_bytes / 8).max(1));
            }
        }
    }
}

/// Any encoding, whether it suits or not, and any compressor.
fn any_choice() -> impl Strategy<Value = EncodingChoice> {
    let encoding = prop::option::of(prop::sample::select(&Encoding::ALL[..]));
    let compressor = prop::option::of(prop::sample::select(&Compressor::ALL[..]));
    let goal = prop::sample::select(&[EncodingGoal::Fast, EncodingGoal::Small][..]);
    (encoding, compressor, goal).prop_map(|(encoding, compressor, goal)| EncodingChoice {
        encoding,
        compressor,
        goal,
    })
}

/// Rows in pieces of at most `cut`, as a merge hands them over.
fn cut_into(part: &SortedRows, cut: usize) -> Vec<SortedRows> {
    let mut pieces = Vec::new();
    let (mut from, mut runs) = (0, part.runs.clone().into_iter().peekable());
    while from < part.len() {
        let len = cut.min(part.len() - from);
        let (mut left, mut piece_runs) = (len as u32, Vec::new());
        while left > 0 {
            let run = runs.peek_mut().unwrap();
            let rows = run.rows.min(left);
            piece_runs.push(SeriesRun {
                series: run.series,
                rows,
            });
            left -= rows;
            run.rows -= rows;
            if run.rows == 0 {
                runs.next();
            }
        }
        pieces.push(SortedRows {
            runs: piece_runs,
            times: part.times.slice(from, len),
            columns: part
                .columns
                .iter()
                .map(|column| column.slice(from, len))
                .collect(),
        });
        from += len;
    }
    pieces
}

#[test]
fn pages_are_stored_as_the_layout_says() {
    let (_dir, fs, path) = disk();
    let part = rows(&[64], |_, row| Some(u64::from(row % 3)));
    let mut layout = layout();
    layout.columns[2] = EncodingChoice {
        encoding: Some(Encoding::Plain),
        compressor: Some(Compressor::Zstd),
        goal: EncodingGoal::Fast,
    };
    write_as(&fs, &path, std::slice::from_ref(&part), &layout);
    let segment = Segment::open(&*fs, name(&path)).unwrap();
    assert_eq!(segment.pages(0, ColumnId(3)).unwrap().unwrap().len(), 4);
    let info = segment.page_info(0, ColumnId(3), 1).unwrap();
    assert_eq!(
        (info.encoding, info.compressor, info.raw_bytes),
        (Encoding::Plain, Compressor::Zstd, 128)
    );
    let info = segment.page_info(0, ColumnId(7), 1).unwrap();
    // Sixteen texts of one to three characters, and their offsets.
    assert_eq!(info.raw_bytes, 32 + 17 * 4);
    let mut writer = SegmentWriter::create(&*fs, name(&path), options()).unwrap();
    layout.columns.pop();
    assert!(writer.table(TableId(7), &columns(), &layout).is_err());
}

/// A page whose bytes are whole and whose encoding is one for other values is damage.
#[test]
fn an_encoding_of_another_type_is_damage() {
    let (_dir, fs, path) = disk();
    let part = rows(&[3], |_, row| Some(u64::from(row)));
    write(&fs, &path, std::slice::from_ref(&part));
    let segment = Segment::open(&*fs, name(&path)).unwrap();
    let page = segment.pages(0, ColumnId(2)).unwrap().unwrap()[0].clone();
    let mut bytes = std::fs::read(&path).unwrap();
    let at = page.offset as usize;
    let end = at + page.bytes as usize;
    bytes[at] = Encoding::Alp as u8;
    let checksum = crc32c([&bytes[at..at + 16], &bytes[at + 20..end]]);
    bytes[at + 16..at + 20].copy_from_slice(&checksum.to_le_bytes());
    std::fs::write(&path, &bytes).unwrap();
    let found = damage(&fs, &path);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].contains("values of type INT cannot be ALP"),
        "{found:?}"
    );
}
