//! Writes a segment front to back: pages as they fill, then the row group's indexes, then the
//! footer.
//!
//! Memory is bounded by one page of each column and the indexes of one row group; the footer grows
//! with the number of row groups.

mod copy;

use crate::error::SegmentError;
use crate::layout::{
    BlockLocation, PageMeta, RowGroup, RowGroupLocations, SegmentColumn, SegmentSummary,
    TRAILER_BYTES, header, pin_of, summary_of, trailer, write_directory, write_footer, write_index,
};
use crate::options::{PageLimits, SegmentOptions, TableLayout};
use crate::page::{encode_page, encode_times};
use crate::stats::PageStats;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, Int64Array};
use arrow_buffer::ScalarBuffer;
use arrow_schema::DataType;
use arrow_select::concat::concat;
pub use copy::PageSource;
use marigram_codec::{ChecksummedPrefix, EncodingChoice, frame};
use marigram_env::{BlobStore, BlobUpload};
use marigram_model::{SeriesId, SeriesRun, SortedRows, TableId, TimeRange};
use std::path::PathBuf;
use std::sync::Arc;

/// Size of a write to the store, bytes.
const BUFFER_BYTES: usize = 1 << 20;

/// A series is long if it has at least this fraction of a page's rows: then pages of its own, which
/// cost about a fiftieth of its bytes, pay off.
const LONG_PART: usize = 4;

/// Writes a segment: tables ascending, and in each table rows sorted by (series, time).
#[derive(Debug)]
pub struct SegmentWriter {
    /// Names it in messages.
    path: PathBuf,
    upload: Box<dyn BlobUpload>,
    options: SegmentOptions,
    buffer: Vec<u8>,
    /// Bytes of the file, those in `buffer` included.
    bytes: u64,
    /// Checksum of what was written.
    body: ChecksummedPrefix,
    groups: Vec<(RowGroup, RowGroupLocations)>,
    table: Option<TableId>,
    columns: Vec<SegmentColumn>,
    /// How time, then each column is stored.
    choices: Vec<EncodingChoice>,
    limits: PageLimits,
    page: PendingPage,
    group: PendingGroup,
    /// Last row that was appended.
    last: Option<(SeriesId, i64)>,
}

/// Rows that are not yet in a page: slices of the appended rows.
#[derive(Debug, Default)]
struct PendingPage {
    rows: usize,
    times: Vec<ScalarBuffer<i64>>,
    columns: Vec<Vec<ArrayRef>>,
    /// Bytes of strings in the column that has the most.
    text_bytes: usize,
}

/// The row group being written.
#[derive(Debug, Default)]
struct PendingGroup {
    rows: u32,
    runs: Vec<SeriesRun>,
    range: Option<TimeRange>,
    /// Pages of time, then of each column.
    pages: Vec<Vec<PageMeta>>,
}

impl SegmentWriter {
    /// Begins the blob `name`, which replaces one of that name.
    ///
    /// # Errors
    /// If the upload cannot begin.
    pub fn create(
        store: &dyn BlobStore,
        name: &str,
        options: SegmentOptions,
    ) -> Result<Self, SegmentError> {
        let path = store.location(name);
        let upload = store
            .upload(name)
            .map_err(|source| SegmentError::io(&path, source))?;
        let buffer = header().to_vec();
        Ok(Self {
            path,
            upload,
            limits: PageLimits::new(0, &options),
            options,
            choices: Vec::new(),
            bytes: buffer.len() as u64,
            body: ChecksummedPrefix::default(),
            buffer,
            groups: Vec::new(),
            table: None,
            columns: Vec::new(),
            page: PendingPage::default(),
            group: PendingGroup::default(),
            last: None,
        })
    }

    /// Begins the rows of a table; `columns` ascending by id, each with its choice in `layout`.
    ///
    /// # Errors
    /// If the table is not after the one before, the columns are out of order, the layout is not
    /// for them, or the disk fails.
    pub fn table(
        &mut self,
        table: TableId,
        columns: &[SegmentColumn],
        layout: &TableLayout,
    ) -> Result<(), SegmentError> {
        self.end_group()?;
        if self.table.is_some_and(|last| last >= table) {
            return Err(SegmentError::misuse(&self.path, "tables are out of order"));
        }
        if !columns.windows(2).all(|pair| pair[0].id < pair[1].id) {
            return Err(SegmentError::misuse(&self.path, "columns are out of order"));
        }
        if layout.columns.len() != columns.len() {
            let reason = "a layout of another number of columns";
            return Err(SegmentError::misuse(&self.path, reason));
        }
        self.table = Some(table);
        self.columns = columns.to_vec();
        self.choices = std::iter::once(layout.time)
            .chain(layout.columns.iter().copied())
            .collect();
        self.limits = PageLimits::new(layout.page_bytes, &self.options);
        self.last = None;
        self.page.columns = vec![Vec::new(); columns.len()];
        self.group.pages = vec![Vec::new(); columns.len() + 1];
        Ok(())
    }

    /// Appends rows of the table begun last; `rows.columns` are those of [`table`](Self::table).
    /// The series of the last row may go on in the next call.
    ///
    /// # Errors
    /// If rows are out of order or columns of another type, or the disk fails.
    pub fn append(&mut self, rows: &SortedRows) -> Result<(), SegmentError> {
        self.check(rows)?;
        let mut row = 0;
        for run in &rows.runs {
            let long = self.limits.rows / LONG_PART;
            if self.starts(run.series) && self.page.rows > 0 {
                // A long series has pages to itself, so that their statistics are its own; short
                // ones share them.
                let before = self.group.runs.last().map_or(0, |run| run.rows as usize);
                if run.rows as usize >= long || before >= long {
                    self.end_page()?;
                }
            }
            self.append_run(rows, *run, row)?;
            row += run.rows as usize;
        }
        Ok(())
    }

    fn starts(&self, series: SeriesId) -> bool {
        self.group
            .runs
            .last()
            .is_none_or(|last| last.series != series)
    }

    fn check(&mut self, rows: &SortedRows) -> Result<(), SegmentError> {
        let misuse = |reason| Err(SegmentError::misuse(&self.path, reason));
        if self.table.is_none() {
            return misuse("rows before a table");
        }
        let kinds = self.columns.iter().map(|column| column.kind.data_type());
        if !kinds.eq(rows.columns.iter().map(|column| column.data_type().clone())) {
            return misuse("columns are not those of the table");
        }
        debug_assert!(rows.is_sorted(), "rows are sorted by (series, time)");
        let Some((first, end)) = rows.runs.first().zip(rows.runs.last()) else {
            return Ok(());
        };
        if self
            .last
            .is_some_and(|last| last >= (first.series, rows.times[0]))
        {
            return misuse("rows are out of order");
        }
        self.last = Some((end.series, rows.times[rows.len() - 1]));
        Ok(())
    }

    fn append_run(
        &mut self,
        rows: &SortedRows,
        run: SeriesRun,
        first: usize,
    ) -> Result<(), SegmentError> {
        let (mut from, end) = (first, first + run.rows as usize);
        while from < end {
            if self.page.rows >= self.limits.rows
                || (self.page.rows > 0 && self.page.text_bytes >= self.limits.text_bytes)
            {
                self.end_page()?;
            }
            let space = self.limits.rows - self.page.rows;
            let take = self.rows_that_fit(rows, from, space.min(end - from));
            self.page.take(rows, from, take);
            self.group.take(run.series, &rows.times[from..from + take]);
            from += take;
        }
        Ok(())
    }

    /// How many of the `most` rows from `from` on fit into the page: at least one.
    fn rows_that_fit(&self, rows: &SortedRows, from: usize, most: usize) -> usize {
        let budget = self.limits.text_bytes.saturating_sub(self.page.text_bytes);
        let fits = |column: &ArrayRef| match text_offsets(column) {
            Some(offsets) => {
                let start = offsets[from];
                offsets[from + 1..=from + most]
                    .partition_point(|end| (end - start) as usize <= budget)
            }
            None => most,
        };
        rows.columns.iter().map(fits).min().unwrap_or(most).max(1)
    }

    fn end_page(&mut self) -> Result<(), SegmentError> {
        if self.page.rows == 0 {
            return Ok(());
        }
        let mut page = std::mem::take(&mut self.page);
        let rows = page.rows as u32;
        let first_row = self.group.rows - rows;
        let times = page.joined_times();
        let columns = std::iter::once(Ok(Arc::new(Int64Array::new(times.clone(), None)) as _))
            .chain(page.columns.iter().map(|parts| join(parts)));
        let columns: Vec<ArrayRef> = columns
            .collect::<Result<_, _>>()
            .map_err(|error| SegmentError::misuse(&self.path, error.to_string()))?;
        // Readers take the number of rows from the times, and trust that values are as many.
        debug_assert!(
            columns.iter().all(|values| values.len() == page.rows),
            "each column of a page has all rows"
        );
        for (at, values) in columns.iter().enumerate() {
            let start = self.buffer.len();
            // Times come first.
            let encode = if at == 0 { encode_times } else { encode_page };
            encode(values, self.choices[at], &mut self.buffer)
                .map_err(|reason| SegmentError::misuse(&self.path, reason.0))?;
            let bytes = (self.buffer.len() - start) as u32;
            let stats = PageStats::from_values(values, &times);
            let meta = PageMeta {
                first_row,
                rows,
                offset: self.bytes,
                bytes,
                stats,
            };
            self.group.pages[at].push(meta);
            self.bytes += u64::from(bytes);
        }
        page.columns.iter_mut().for_each(Vec::clear);
        self.page.columns = page.columns;
        self.write_buffer(BUFFER_BYTES)?;
        if self.group.rows as usize >= self.options.row_group_rows {
            self.end_group()?;
        }
        Ok(())
    }

    fn end_group(&mut self) -> Result<(), SegmentError> {
        self.end_page()?;
        let (Some(table), Some(range)) = (self.table, self.group.range) else {
            return Ok(());
        };
        let fresh = vec![Vec::new(); self.columns.len() + 1];
        let group = std::mem::take(&mut self.group);
        self.group.pages = fresh;
        let directory = self.write_block(&write_directory(&group.runs));
        let indexes = group
            .pages
            .iter()
            .map(|pages| self.write_block(&write_index(pages)));
        let indexes = indexes.collect();
        let ends = group.runs.first().zip(group.runs.last());
        let (first, last) = ends.expect("a group with a time has a run");
        let meta = RowGroup {
            table,
            rows: group.rows,
            series_min: first.series,
            series_max: last.series,
            range,
            columns: self.columns.clone(),
        };
        self.groups
            .push((meta, RowGroupLocations { directory, indexes }));
        self.write_buffer(BUFFER_BYTES)
    }

    fn write_block(&mut self, payload: &[u8]) -> BlockLocation {
        let start = self.buffer.len();
        frame::write(payload, &mut self.buffer);
        let place = BlockLocation {
            offset: self.bytes,
            bytes: (self.buffer.len() - start) as u32,
        };
        self.bytes += u64::from(place.bytes);
        place
    }

    fn write_buffer(&mut self, least: usize) -> Result<(), SegmentError> {
        if self.buffer.len() >= least {
            self.upload
                .write(&self.buffer)
                .map_err(|source| SegmentError::io(&self.path, source))?;
            self.body.grow(&self.buffer);
            self.buffer.clear();
        }
        Ok(())
    }

    /// Last series and number of rows of the unfinished page, if it has rows.
    #[must_use]
    pub fn pending(&self) -> Option<(SeriesId, usize)> {
        let last = self.group.runs.last().filter(|_| self.page.rows > 0)?;
        Some((last.series, self.page.rows))
    }

    /// Bytes written so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes the footer and completes the blob. Its contents are durable when this returns; its
    /// name is after [`BlobStore::sync_names`].
    ///
    /// # Errors
    /// If the store fails; what stands under the name is garbage then.
    pub fn finish(mut self) -> Result<SegmentSummary, SegmentError> {
        self.end_group()?;
        self.write_buffer(1)?;
        let footer = write_footer(&self.groups, self.body.checksum);
        let trailer = trailer(&footer);
        self.buffer.extend_from_slice(&footer);
        self.buffer.extend_from_slice(&trailer);
        self.bytes += footer.len() as u64 + TRAILER_BYTES;
        self.write_buffer(1)?;
        self.upload
            .finish()
            .map_err(|source| SegmentError::io(&self.path, source))?;
        Ok(summary_of(
            self.groups.iter().map(|(group, _)| group),
            self.bytes,
            pin_of(&trailer),
        ))
    }
}

impl PendingPage {
    fn take(&mut self, rows: &SortedRows, from: usize, len: usize) {
        self.rows += len;
        self.times.push(rows.times.slice(from, len));
        let mut most = 0;
        for (parts, column) in self.columns.iter_mut().zip(&rows.columns) {
            if let Some(offsets) = text_offsets(column) {
                most = most.max((offsets[from + len] - offsets[from]) as usize);
            }
            parts.push(column.slice(from, len));
        }
        self.text_bytes += most;
    }

    fn joined_times(&self) -> ScalarBuffer<i64> {
        match self.times.as_slice() {
            [only] => only.clone(),
            parts => {
                let mut joined = Vec::with_capacity(self.rows);
                for part in parts {
                    joined.extend_from_slice(part);
                }
                joined.into()
            }
        }
    }
}

impl PendingGroup {
    fn take(&mut self, series: SeriesId, times: &[i64]) {
        let rows = times.len() as u32;
        match self.runs.last_mut() {
            Some(run) if run.series == series => run.rows += rows,
            _ => self.runs.push(SeriesRun { series, rows }),
        }
        self.rows += rows;
        let range = TimeRange {
            min: times[0],
            max: times[times.len() - 1],
        };
        self.range = Some(self.range.map_or(range, |all| all.union(range)));
    }
}

fn join(parts: &[ArrayRef]) -> Result<ArrayRef, arrow_schema::ArrowError> {
    match parts {
        [only] => Ok(Arc::clone(only)),
        parts => concat(&parts.iter().map(AsRef::as_ref).collect::<Vec<_>>()),
    }
}

/// Offsets of a column of strings or bytes.
fn text_offsets(column: &ArrayRef) -> Option<&[i32]> {
    match column.data_type() {
        DataType::Utf8 => Some(column.as_string::<i32>().offsets()),
        DataType::Binary => Some(column.as_binary::<i32>().offsets()),
        _ => None,
    }
}
