//! Copying pages of another segment as they stand: checked, but neither decoded nor encoded anew.
//!
//! What is checked is what a reader would check before decoding: the page's checksum, type and
//! number of rows. Statistics come along from the page index.

use super::{BUFFER_BYTES, SegmentWriter};
use crate::error::SegmentError;
use crate::layout::PageMeta;
use crate::segment::Segment;
use marigram_model::{ColumnId, FieldValue, SeriesRun, TimeRange};

/// Page `page` of every column of row group `group` of `segment`.
#[derive(Clone, Copy, Debug)]
pub struct PageSource<'a> {
    /// Where the page is.
    pub segment: &'a Segment,
    /// Its row group.
    pub group: usize,
    /// Its number in the row group.
    pub page: usize,
}

impl SegmentWriter {
    /// Appends all rows of a page, whose series are `runs`, without decoding them. The page in the
    /// making ends before it. The row group must have the columns of the table begun last. Gives
    /// the bytes copied.
    ///
    /// # Errors
    /// If the page cannot be read or is damaged; if its columns are other ones, its rows are not
    /// after those appended before or not as many as `runs` says; if the disk fails.
    ///
    /// # Panics
    /// If there is no such row group or page.
    pub fn copy_page(
        &mut self,
        source: PageSource<'_>,
        runs: &[SeriesRun],
    ) -> Result<u64, SegmentError> {
        let group = &source.segment.row_groups()[source.group];
        if self.table != Some(group.table) || self.columns != group.columns {
            return self.refuse("a page of other columns cannot be copied");
        }
        let ids = std::iter::once(ColumnId::TIME).chain(group.columns.iter().map(|c| c.id));
        let pages = ids
            .map(|id| source.segment.checked_page(source.group, id, source.page))
            .collect::<Result<Vec<_>, _>>()?;
        let rows = pages[0].0.rows;
        let (Some(first_run), Some(last_run)) = (runs.first(), runs.last()) else {
            return self.refuse("a page without series cannot be copied");
        };
        let counted: u64 = runs.iter().map(|run| u64::from(run.rows)).sum();
        if pages.iter().any(|(meta, _)| meta.rows != rows) || counted != u64::from(rows) {
            return self.refuse("the rows of a page are not those of its series");
        }
        let (Some((first, last)), Some(range)) = (ends_of(&pages[0].0), range_of(&pages[0].0))
        else {
            return self.refuse("a page of times without statistics cannot be copied");
        };
        if self
            .last
            .is_some_and(|before| before >= (first_run.series, first))
        {
            return self.refuse("rows are out of order");
        }
        self.end_page()?;
        self.last = Some((last_run.series, last));
        for run in runs {
            match self.group.runs.last_mut() {
                Some(before) if before.series == run.series => before.rows += run.rows,
                _ => self.group.runs.push(*run),
            }
        }
        let first_row = self.group.rows;
        self.group.rows += rows;
        self.group.range = Some(self.group.range.map_or(range, |all| all.union(range)));
        let mut copied = 0;
        for ((meta, bytes), pages) in pages.into_iter().zip(&mut self.group.pages) {
            pages.push(PageMeta {
                first_row,
                offset: self.bytes,
                ..meta
            });
            self.buffer.extend_from_slice(&bytes);
            self.bytes += bytes.len() as u64;
            copied += bytes.len() as u64;
        }
        self.write_buffer(BUFFER_BYTES)?;
        if self.group.rows as usize >= self.options.row_group_rows {
            self.end_group()?;
        }
        Ok(copied)
    }

    fn refuse<T>(&self, reason: &str) -> Result<T, SegmentError> {
        Err(SegmentError::misuse(&self.path, reason))
    }
}

/// Times of the first and the last row of a page of times.
fn ends_of(meta: &PageMeta) -> Option<(i64, i64)> {
    let (first, last) = (meta.stats.first.as_ref()?, meta.stats.last.as_ref()?);
    Some((first.0, last.0))
}

/// First and last time of a page of times.
fn range_of(meta: &PageMeta) -> Option<TimeRange> {
    match (&meta.stats.min, &meta.stats.max) {
        (Some(FieldValue::I64(min)), Some(FieldValue::I64(max))) => Some(TimeRange {
            min: *min,
            max: *max,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
