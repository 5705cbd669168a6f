//! What is inside segments, for people: encodings, sizes and statistics.
//!
//! Nothing of it stays in memory: directories and page indexes are read for the occasion, so that a
//! look at everything does not fill what queries are to have.

use crate::error::Result;
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

/// What a segment, or a table's part of it, is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SegmentDetail {
    /// Row groups.
    pub row_groups: u64,
    /// Pages of all columns.
    pub pages: u64,
    /// Bytes of the pages.
    pub page_bytes: u64,
    /// Values that are null.
    pub nulls: u64,
    /// Encodings of the first page of each column of each row group, with the compressor after a
    /// `+` where there is one.
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
    /// What the segment is made of, or the part of it that `table` has.
    ///
    /// # Errors
    /// If what must be read of it is damaged, or the disk refuses.
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
                let pages = segment.pages(group, column)?.unwrap_or_default();
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

impl ShardView {
    /// The pages of `table`, those of one column of one row group at a time: by segment, row group,
    /// column and row. Of all segments, or of the one with this number.
    pub fn pages(
        &self,
        table: TableId,
        segment: Option<u64>,
    ) -> impl Iterator<Item = Result<Vec<PageDetail>>> + Send + use<> {
        let shard = self.shard;
        let named = move |open: &Arc<OpenSegment>| segment.is_none_or(|id| open.meta.id.0 == id);
        let segments: Vec<_> = self
            .segments
            .iter()
            .filter(|open| named(open))
            .cloned()
            .collect();
        segments.into_iter().flat_map(move |open| {
            let id = open.meta.id.0;
            let parts = match open.segment() {
                Ok(segment) => {
                    let segment = Arc::new(segment.uncached());
                    let groups = segment.row_groups_of(table);
                    let column = |group| {
                        columns_of(&segment, group)
                            .into_iter()
                            .map(move |column| (group, column))
                    };
                    let columns: Vec<_> = groups.flat_map(column).collect();
                    columns
                        .into_iter()
                        .map(|(group, column)| Ok((Arc::clone(&segment), group, column)))
                        .collect()
                }
                Err(error) => vec![Err(error)],
            };
            parts.into_iter().map(move |part| {
                let (segment, group, column) = part?;
                details(&segment, group, column, shard, id)
            })
        })
    }
}

/// The pages of a column of a row group.
fn details(
    segment: &Segment,
    row_group: usize,
    column: ColumnId,
    shard: usize,
    id: u64,
) -> Result<Vec<PageDetail>> {
    let runs = segment.directory(row_group)?;
    let ends = ends_of(&runs);
    let series_of = |row: u32| {
        let run = ends.partition_point(|end| *end <= row);
        runs[run.min(runs.len() - 1)].series
    };
    let pages = segment.pages(row_group, column)?.unwrap_or_default();
    let detail = |(page, meta): (usize, &marigram_segment::PageMeta)| {
        Ok(PageDetail {
            shard,
            segment: id,
            row_group,
            page,
            column,
            series: (
                series_of(meta.first_row),
                series_of(meta.first_row + meta.rows - 1),
            ),
            rows: meta.rows,
            info: segment.page_info(row_group, column, page)?,
            stats: meta.stats.clone(),
        })
    };
    pages.iter().enumerate().map(detail).collect()
}

/// The row after each run's last.
fn ends_of(runs: &[SeriesRun]) -> Vec<u32> {
    let mut row = 0;
    let end = |run: &SeriesRun| {
        row += run.rows;
        row
    };
    runs.iter().map(end).collect()
}
