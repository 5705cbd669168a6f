//! The content of segments, for display: encodings, sizes and statistics.
//!
//! None of it stays in memory: directories and page indexes are read on demand, so that a full
//! listing does not use the memory of queries.

use crate::error::{EngineError, Result};
use crate::view::{OpenSegment, ShardView};
use marigram_model::{ColumnId, SeriesId, SeriesRun, TableId};
use marigram_segment::{PageInfo, PageStats, Segment};
use std::collections::BTreeSet;
use std::sync::Arc;

/// One page of a table.
#[derive(Clone, Debug)]
pub struct PageDetail {
    /// Number of the shard.
    pub shard: usize,
    /// Number of the segment in its shard.
    pub segment: u64,
    /// Number of the row group in its segment.
    pub row_group: usize,
    /// Number of the page in its row group and column.
    pub page: usize,
    /// Column; [`ColumnId::TIME`] for time.
    pub column: ColumnId,
    /// First and last series with rows in the page.
    pub series: (SeriesId, SeriesId),
    /// Rows.
    pub rows: u32,
    /// Encoding, compressor and sizes.
    pub info: PageInfo,
    /// Statistics.
    pub stats: PageStats,
}

/// The composition of a segment, or of a table's part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SegmentDetail {
    /// Row groups.
    pub row_groups: u64,
    /// Pages of all columns.
    pub pages: u64,
    /// Bytes of the pages.
    pub page_bytes: u64,
    /// Number of null values.
    pub nulls: u64,
    /// Encodings of the first page of each column of each row group, followed by `+` and the
    /// compressor if there is one.
    pub encodings: BTreeSet<String>,
}

/// Time and the columns of a row group.
fn columns_of(segment: &Segment, row_group: usize) -> Vec<ColumnId> {
    let columns = segment.row_groups()[row_group].columns.iter();
    std::iter::once(ColumnId::TIME)
        .chain(columns.map(|column| column.id))
        .collect()
}

impl OpenSegment {
    /// The composition of the segment, or of the part that belongs to `table`.
    ///
    /// # Errors
    /// If the parts to read are damaged, or the disk fails.
    pub fn detail(&self, table: Option<TableId>) -> Result<SegmentDetail> {
        let segment = self.segment()?.uncached();
        let groups = match table {
            Some(table) => segment.row_groups_of(table),
            None => 0..segment.row_groups().len(),
        };
        let mut detail = SegmentDetail::default();
        for group in groups {
            detail.row_groups += 1;
            for column in columns_of(&segment, group) {
                let Some(pages) = segment.pages(group, column)? else {
                    continue;
                };
                detail.pages += pages.len() as u64;
                for page in pages.iter() {
                    detail.page_bytes += u64::from(page.bytes);
                    detail.nulls += u64::from(page.stats.nulls);
                }
                if !pages.is_empty() {
                    let info = segment.page_info(group, column, 0)?;
                    detail.encodings.insert(info.form());
                }
            }
        }
        Ok(detail)
    }
}

/// An iterator over pages.
type PageDetails = Box<dyn Iterator<Item = Result<PageDetail>> + Send>;

impl ShardView {
    /// The pages of `table`, each read on demand: by segment, row group, column and row. Of all
    /// segments, or of the one with this number.
    pub fn pages(
        &self,
        table: TableId,
        segment: Option<u64>,
    ) -> impl Iterator<Item = Result<PageDetail>> + Send + use<> {
        let shard = self.shard;
        let named = move |open: &&Arc<OpenSegment>| segment.is_none_or(|id| open.meta.id.0 == id);
        let segments: Vec<_> = self.segments.iter().filter(named).cloned().collect();
        segments
            .into_iter()
            .flat_map(move |open| pages_of_segment(&open, table, shard))
    }
}

fn pages_of_segment(open: &OpenSegment, table: TableId, shard: usize) -> PageDetails {
    let id = open.meta.id.0;
    let segment = match open.segment() {
        Ok(segment) => segment,
        Err(error) => return failed(error),
    };
    let groups = segment.row_groups_of(table);
    Box::new(groups.flat_map(move |row_group| {
        // Dropped with the row group.
        let segment = Arc::new(segment.uncached());
        match PageGroup::open(segment, row_group, shard, id) {
            Ok(group) => group.pages(),
            Err(error) => failed(error),
        }
    }))
}

fn failed(error: EngineError) -> PageDetails {
    Box::new(std::iter::once(Err(error)))
}

/// A row group whose pages are listed.
#[derive(Clone)]
struct PageGroup {
    segment: Arc<Segment>,
    number: usize,
    shard: usize,
    id: u64,
    runs: Arc<[SeriesRun]>,
    /// For each run, the row after its last one.
    ends: Arc<[u32]>,
}

impl PageGroup {
    fn open(segment: Arc<Segment>, row_group: usize, shard: usize, id: u64) -> Result<Self> {
        let runs = segment.directory(row_group)?;
        let mut row = 0;
        let end = |run: &SeriesRun| {
            row += run.rows;
            row
        };
        let ends = runs.iter().map(end).collect();
        Ok(Self {
            segment,
            number: row_group,
            shard,
            id,
            runs,
            ends,
        })
    }

    fn pages(self) -> PageDetails {
        let columns = columns_of(&self.segment, self.number);
        Box::new(columns.into_iter().flat_map(move |column| -> PageDetails {
            let group = self.clone();
            match group.segment.pages(group.number, column) {
                Ok(pages) => {
                    let count = pages.map_or(0, |pages| pages.len());
                    Box::new((0..count).map(move |page| group.page(column, page)))
                }
                Err(error) => failed(error.into()),
            }
        }))
    }

    fn page(&self, column: ColumnId, page: usize) -> Result<PageDetail> {
        let pages = self.segment.pages(self.number, column)?;
        let meta = &pages.map_or(&[][..], |pages| pages)[page];
        Ok(PageDetail {
            shard: self.shard,
            segment: self.id,
            row_group: self.number,
            page,
            column,
            series: (
                self.series_of(meta.first_row),
                self.series_of(meta.first_row + meta.rows - 1),
            ),
            rows: meta.rows,
            info: self.segment.page_info(self.number, column, page)?,
            stats: meta.stats.clone(),
        })
    }

    /// The series of a row in the group.
    fn series_of(&self, row: u32) -> SeriesId {
        let run = self.ends.partition_point(|end| *end <= row);
        self.runs[run].series
    }
}
