//! The parts of a segment that are not pages: header, directories, page indexes, footer.
//!
//! `docs/formats/segment.md` is the specification; this module is its only reader and writer.

use crate::error::{BlockDamage, IndexReader};
use crate::stats::PageStats;
use marigram_codec::bytes::{put_signed, put_varint};
use marigram_codec::crc32c;
use marigram_model::{ColumnId, FieldType, SeriesId, SeriesRun, TableId, TimeRange};

/// Version of the format that is written.
pub const FORMAT_VERSION: u32 = 2;
/// The first version whose footer ends with the checksum of all that stands before it.
const BODY_VERSION: u32 = 2;

const MAGIC: [u8; 8] = *b"MARISEG\n";
/// Bytes of the header: magic, version, checksum.
pub(crate) const HEADER_BYTES: u64 = 16;
/// Bytes of the trailer: footer's length, checksum of the trailer and footer, version, magic.
pub(crate) const TRAILER_BYTES: u64 = 20;

/// A column of a table in a segment. Time is not among them: it is always there, as
/// [`ColumnId::TIME`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentColumn {
    /// Number.
    pub id: ColumnId,
    /// Type.
    pub kind: FieldType,
}

/// Summary of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentSummary {
    /// Rows.
    pub rows: u64,
    /// Size of the file, bytes.
    pub bytes: u64,
    /// Tables, ascending.
    pub tables: Vec<TableId>,
    /// First and last time; empty where there are no rows.
    pub range: TimeRange,
    /// Lowest series; 0 where there are no rows.
    pub series_min: SeriesId,
    /// Highest series; 0 where there are no rows.
    pub series_max: SeriesId,
    /// The checksum in the trailer. It covers the footer, and the footer covers the rest: two files
    /// with the same one hold the same. In a file of version 1 the footer does not cover values.
    pub pin: u32,
}

/// Consecutive rows of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowGroup {
    /// Table.
    pub table: TableId,
    /// Rows, at least one.
    pub rows: u32,
    /// Lowest series.
    pub series_min: SeriesId,
    /// Highest series.
    pub series_max: SeriesId,
    /// First and last time.
    pub range: TimeRange,
    /// Columns, ascending by id, without time.
    pub columns: Vec<SegmentColumn>,
}

/// One page of one column, and its statistics.
#[derive(Clone, Debug, PartialEq)]
pub struct PageMeta {
    /// First row within the row group.
    pub first_row: u32,
    /// Rows, at least one.
    pub rows: u32,
    /// Where it stands in the file.
    pub offset: u64,
    /// How long it is, bytes.
    pub bytes: u32,
    /// Statistics.
    pub stats: PageStats,
}

/// Where a checksummed block stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockLocation {
    pub(crate) offset: u64,
    pub(crate) bytes: u32,
}

/// A row group with the places of its blocks: directory, page index of time, then of each column.
#[derive(Clone, Debug)]
pub(crate) struct RowGroupLocations {
    pub(crate) directory: BlockLocation,
    pub(crate) indexes: Vec<BlockLocation>,
}

/// Summary of row groups.
pub(crate) fn summary_of<'a>(
    groups: impl Iterator<Item = &'a RowGroup>,
    bytes: u64,
    pin: u32,
) -> SegmentSummary {
    let empty = TimeRange {
        min: i64::MAX,
        max: i64::MIN,
    };
    let (series_min, series_max) = (SeriesId(u32::MAX), SeriesId(0));
    let mut all = SegmentSummary {
        rows: 0,
        bytes,
        tables: Vec::new(),
        range: empty,
        series_min,
        series_max,
        pin,
    };
    for group in groups {
        all.rows += u64::from(group.rows);
        if all.tables.last() != Some(&group.table) {
            all.tables.push(group.table);
        }
        all.range = all.range.union(group.range);
        all.series_min = all.series_min.min(group.series_min);
        all.series_max = all.series_max.max(group.series_max);
    }
    if all.rows == 0 {
        all.series_min = SeriesId(0);
    }
    all
}

pub(crate) fn header() -> [u8; HEADER_BYTES as usize] {
    let mut bytes = [0; HEADER_BYTES as usize];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    let checksum = crc32c([&bytes[..12]]);
    bytes[12..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

pub(crate) fn check_header(bytes: &[u8; HEADER_BYTES as usize]) -> Result<(), BlockDamage> {
    if bytes[..8] != MAGIC {
        return Err(BlockDamage::from("it does not begin as a segment"));
    }
    if crc32c([&bytes[..12]]).to_le_bytes() != bytes[12..] {
        return Err(BlockDamage::from("the header's checksum is wrong"));
    }
    check_version([bytes[8], bytes[9], bytes[10], bytes[11]])
}

fn check_version(bytes: [u8; 4]) -> Result<(), BlockDamage> {
    let version = u32::from_le_bytes(bytes);
    if version == 0 || version > FORMAT_VERSION {
        let reason = format!("format version {version}; this program reads up to {FORMAT_VERSION}");
        return Err(BlockDamage(reason));
    }
    Ok(())
}

/// The trailer of a file whose footer is `footer`.
pub(crate) fn trailer(footer: &[u8]) -> [u8; TRAILER_BYTES as usize] {
    let mut bytes = [0; TRAILER_BYTES as usize];
    bytes[..4].copy_from_slice(&(footer.len() as u32).to_le_bytes());
    bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    bytes[12..].copy_from_slice(&MAGIC);
    let checksum = trailer_checksum(&bytes, footer);
    bytes[4..8].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

fn trailer_checksum(trailer: &[u8; TRAILER_BYTES as usize], footer: &[u8]) -> u32 {
    crc32c([footer, &trailer[..4], &trailer[8..]])
}

/// Length of the footer, from the trailer alone.
pub(crate) fn footer_bytes(trailer: &[u8; TRAILER_BYTES as usize]) -> Result<u32, BlockDamage> {
    if trailer[12..] != MAGIC {
        return Err(BlockDamage::from(
            "it does not end as a segment: it was cut off or overwritten",
        ));
    }
    check_version([trailer[8], trailer[9], trailer[10], trailer[11]])?;
    Ok(u32::from_le_bytes([
        trailer[0], trailer[1], trailer[2], trailer[3],
    ]))
}

/// Checks the footer against the trailer; gives the checksum that covers both.
pub(crate) fn check_footer(
    trailer: &[u8; TRAILER_BYTES as usize],
    footer: &[u8],
) -> Result<u32, BlockDamage> {
    let checksum = trailer_checksum(trailer, footer);
    if checksum.to_le_bytes() != trailer[4..8] {
        return Err(BlockDamage::from("the footer's checksum is wrong"));
    }
    Ok(checksum)
}

/// The checksum in a trailer.
pub(crate) fn pin_of(trailer: &[u8; TRAILER_BYTES as usize]) -> u32 {
    u32::from_le_bytes([trailer[4], trailer[5], trailer[6], trailer[7]])
}

/// The version in a trailer that was checked.
pub(crate) fn version_of(trailer: &[u8; TRAILER_BYTES as usize]) -> u32 {
    u32::from_le_bytes([trailer[8], trailer[9], trailer[10], trailer[11]])
}

/// The footer of a file; `body` is the checksum of all that stands before it.
pub(crate) fn write_footer(groups: &[(RowGroup, RowGroupLocations)], body: u32) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(groups.len() as u64, &mut out);
    for (group, places) in groups {
        put_varint(u64::from(group.table.0), &mut out);
        put_varint(u64::from(group.rows), &mut out);
        put_varint(u64::from(group.series_min.0), &mut out);
        put_varint(u64::from(group.series_max.0), &mut out);
        put_signed(group.range.min, &mut out);
        put_signed(group.range.max, &mut out);
        put_place(places.directory, &mut out);
        put_place(places.indexes[0], &mut out);
        put_varint(group.columns.len() as u64, &mut out);
        for (column, place) in group.columns.iter().zip(&places.indexes[1..]) {
            put_varint(u64::from(column.id.0), &mut out);
            out.push(column.kind as u8);
            put_place(*place, &mut out);
        }
    }
    out.extend_from_slice(&body.to_le_bytes());
    out
}

fn put_place(place: BlockLocation, out: &mut Vec<u8>) {
    put_varint(place.offset, out);
    put_varint(u64::from(place.bytes), out);
}

/// Reads a place, which must lie between the header and `end`.
fn read_place(reader: &mut IndexReader<'_>, end: u64) -> Result<BlockLocation, BlockDamage> {
    let place = BlockLocation {
        offset: reader.varint()?,
        bytes: reader.varint32()?,
    };
    check_extent(place.offset, place.bytes, end)?;
    Ok(place)
}

fn check_extent(offset: u64, bytes: u32, end: u64) -> Result<(), BlockDamage> {
    let stop = offset.checked_add(u64::from(bytes));
    if offset < HEADER_BYTES || stop.is_none_or(|stop| stop > end) {
        return Err(BlockDamage(format!(
            "a block of {bytes} bytes at byte {offset} lies outside"
        )));
    }
    Ok(())
}

/// A decoded footer.
#[derive(Debug)]
pub(crate) struct Footer {
    pub(crate) groups: Vec<RowGroup>,
    pub(crate) places: Vec<RowGroupLocations>,
    /// Checksum of all that stands before the footer; a file of version 1 has none.
    pub(crate) body: Option<u32>,
}

/// Reads the footer of a file of a version whose blocks end at `end`.
pub(crate) fn read_footer(footer: &[u8], end: u64, version: u32) -> Result<Footer, BlockDamage> {
    let mut reader = IndexReader::new(footer);
    let count = reader.varint_count(10)?;
    let (mut groups, mut places) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for _ in 0..count {
        let table = TableId(reader.varint32()?);
        let rows = reader.varint32()?;
        let (series_min, series_max) = (SeriesId(reader.varint32()?), SeriesId(reader.varint32()?));
        let range = TimeRange {
            min: reader.signed()?,
            max: reader.signed()?,
        };
        let directory = read_place(&mut reader, end)?;
        let mut indexes = vec![read_place(&mut reader, end)?];
        let mut columns: Vec<SegmentColumn> = Vec::new();
        for _ in 0..reader.varint_count(4)? {
            let id = ColumnId(reader.varint32()?);
            let kind = reader.byte()?;
            let kind = FieldType::from_number(kind).ok_or("no field type has this number")?;
            if id <= columns.last().map_or(ColumnId::TIME, |last| last.id) {
                return Err(BlockDamage::from("columns are out of order"));
            }
            columns.push(SegmentColumn { id, kind });
            indexes.push(read_place(&mut reader, end)?);
        }
        if rows == 0 || series_min > series_max || range.is_empty() {
            return Err(BlockDamage::from("a row group holds nothing"));
        }
        let group = RowGroup {
            table,
            rows,
            series_min,
            series_max,
            range,
            columns,
        };
        if groups
            .last()
            .is_some_and(|last: &RowGroup| last.table > table)
        {
            return Err(BlockDamage::from("row groups are out of order"));
        }
        groups.push(group);
        places.push(RowGroupLocations { directory, indexes });
    }
    let body = if version < BODY_VERSION {
        None
    } else {
        Some(u32::from_le_bytes(reader.array()?))
    };
    reader.end()?;
    Ok(Footer {
        groups,
        places,
        body,
    })
}

/// The directory: for each run the distance from the run before, and its rows.
pub(crate) fn write_directory(runs: &[SeriesRun]) -> Vec<u8> {
    let mut out = Vec::with_capacity(runs.len() * 3 + 4);
    put_varint(runs.len() as u64, &mut out);
    let mut next = 0;
    for run in runs {
        put_varint(u64::from(run.series.0) - next, &mut out);
        put_varint(u64::from(run.rows), &mut out);
        next = u64::from(run.series.0) + 1;
    }
    out
}

pub(crate) fn read_directory(
    bytes: &[u8],
    group: &RowGroup,
) -> Result<Vec<SeriesRun>, BlockDamage> {
    let mut reader = IndexReader::new(bytes);
    let count = reader.varint_count(2)?;
    let mut runs = Vec::with_capacity(count);
    let (mut next, mut rows_left) = (0u64, group.rows);
    for _ in 0..count {
        let series = reader
            .varint()?
            .checked_add(next)
            .and_then(|id| u32::try_from(id).ok());
        let series = series.ok_or("a series' number is longer than 32 bits")?;
        let rows = reader.varint32()?;
        rows_left = rows_left
            .checked_sub(rows)
            .ok_or("the runs have more rows than the group")?;
        if rows == 0 {
            return Err(BlockDamage::from("a run is empty"));
        }
        runs.push(SeriesRun {
            series: SeriesId(series),
            rows,
        });
        next = u64::from(series) + 1;
    }
    reader.end()?;
    let ends = runs
        .first()
        .map(|run| run.series)
        .zip(runs.last().map(|run| run.series));
    if rows_left != 0 || ends != Some((group.series_min, group.series_max)) {
        return Err(BlockDamage::from("the runs are not those of the row group"));
    }
    Ok(runs)
}

/// The page index of a column: for each page its rows, place and statistics.
pub(crate) fn write_index(pages: &[PageMeta]) -> Vec<u8> {
    let mut out = Vec::with_capacity(pages.len() * 48 + 4);
    put_varint(pages.len() as u64, &mut out);
    for page in pages {
        put_varint(u64::from(page.rows), &mut out);
        put_varint(page.offset, &mut out);
        put_varint(u64::from(page.bytes), &mut out);
        page.stats.write(&mut out);
    }
    out
}

pub(crate) fn read_index(
    bytes: &[u8],
    kind: FieldType,
    rows: u32,
    end: u64,
) -> Result<Vec<PageMeta>, BlockDamage> {
    let mut reader = IndexReader::new(bytes);
    let count = reader.varint_count(5)?;
    let mut pages = Vec::with_capacity(count);
    let mut first_row = 0u32;
    for _ in 0..count {
        let page_rows = reader.varint32()?;
        let (offset, bytes) = (reader.varint()?, reader.varint32()?);
        check_extent(offset, bytes, end)?;
        let stats = PageStats::read(kind, &mut reader)?;
        let next = first_row
            .checked_add(page_rows)
            .filter(|next| *next <= rows);
        let next = next.ok_or("the pages have more rows than the row group")?;
        if page_rows == 0 || stats.nulls > page_rows {
            return Err(BlockDamage::from("a page counts its rows wrongly"));
        }
        pages.push(PageMeta {
            first_row,
            rows: page_rows,
            offset,
            bytes,
            stats,
        });
        first_row = next;
    }
    reader.end()?;
    if first_row != rows {
        return Err(BlockDamage::from(
            "the pages have fewer rows than the row group",
        ));
    }
    Ok(pages)
}
