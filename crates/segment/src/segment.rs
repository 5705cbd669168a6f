//! An open segment: footer in memory, the rest read and checked when first asked for.

use crate::error::{BlockDamage, SegmentError};
use crate::layout::{
    BlockLocation, Footer, HEADER_BYTES, PageMeta, RowGroup, RowGroupLocations, SegmentSummary,
    TRAILER_BYTES, check_footer, check_header, footer_bytes, read_directory, read_footer,
    read_index, summary_of, version_of,
};
use crate::page::{
    PageInfo, PageTimes, check_page, decode_page, decode_part, decode_times_within, page_header,
    page_info,
};
use crate::page_buffer;
use crate::stats::PageStats;
use crate::times_cache;
use crate::whole_table::WholeTable;
use arrow_array::ArrayRef;
use arrow_buffer::ScalarBuffer;
use marigram_codec::{BodyHeader, ChecksummedPrefix, frame};
use marigram_env::{BlobStore, ReadAt};
use marigram_model::{ColumnId, FieldType, SeriesRun, TableId, TimeRange};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// A gap of up to this many bytes between two pages is read with them: copying it is cheaper than
/// another call.
const GAP_BYTES_MAX: u64 = 4 << 10;

/// An open segment. Opening reads and checks the footer; directories and page indexes are read and
/// checked when first asked for, and kept. Share it in an `Arc`.
#[derive(Debug)]
pub struct Segment {
    /// No other open segment has it.
    number: u64,
    path: PathBuf,
    pub(crate) file: Arc<dyn ReadAt>,
    /// Where pages and blocks end and the footer begins.
    end: u64,
    /// Checksum of everything before the footer, if the footer says it.
    body: Option<u32>,
    summary: SegmentSummary,
    groups: Vec<RowGroup>,
    /// By table.
    wholes: Vec<WholeTable>,
    blocks: Vec<RowGroupBlocks>,
}

/// Blocks of a row group: where they stand, and those that were read.
#[derive(Debug)]
struct RowGroupBlocks {
    places: RowGroupLocations,
    directory: OnceLock<Arc<[SeriesRun]>>,
    indexes: Vec<OnceLock<Arc<[PageMeta]>>>,
    totals: Vec<OnceLock<Arc<PageStats>>>,
}

impl RowGroupBlocks {
    fn unread(places: RowGroupLocations) -> Self {
        Self {
            indexes: places.indexes.iter().map(|_| OnceLock::new()).collect(),
            totals: places.indexes.iter().map(|_| OnceLock::new()).collect(),
            directory: OnceLock::new(),
            places,
        }
    }
}

impl Segment {
    /// Opens the blob `name` of a store.
    ///
    /// # Errors
    /// If it cannot be read, is no segment, or its header or footer is damaged.
    pub fn open(store: &dyn BlobStore, name: &str) -> Result<Self, SegmentError> {
        let path = store.location(name);
        let file = store
            .open(name)
            .map_err(|source| SegmentError::io(&path, source))?;
        Self::from_file(file, &path)
    }

    /// The segment in a file or blob that is open, or is opened when it is read; `path` names it in
    /// messages.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_file(file: Arc<dyn ReadAt>, path: &Path) -> Result<Self, SegmentError> {
        let io = |source| SegmentError::io(path, source);
        file.advise_random_access();
        let bytes = file.len().map_err(io)?;
        if bytes < HEADER_BYTES + TRAILER_BYTES {
            let reason = format!("a segment has more than {bytes} bytes: it was cut off");
            return Err(SegmentError::corrupt(path, 0, reason));
        }
        let mut header = [0; HEADER_BYTES as usize];
        file.read_exact_at(&mut header, 0).map_err(io)?;
        check_header(&header).map_err(|damage| damage.in_file(path, 0))?;
        let mut trailer = [0; TRAILER_BYTES as usize];
        file.read_exact_at(&mut trailer, bytes - TRAILER_BYTES)
            .map_err(io)?;
        let at_trailer = |damage: BlockDamage| damage.in_file(path, bytes - TRAILER_BYTES);
        let footer_len = footer_bytes(&trailer).map_err(at_trailer)?;
        let end = (bytes - TRAILER_BYTES)
            .checked_sub(u64::from(footer_len))
            .filter(|end| *end >= HEADER_BYTES)
            .ok_or_else(|| at_trailer(BlockDamage::from("the footer is longer than the file")))?;
        let mut footer = vec![0; footer_len as usize];
        file.read_exact_at(&mut footer, end).map_err(io)?;
        let at_footer = |damage: BlockDamage| damage.in_file(path, end);
        let pin = check_footer(&trailer, &footer).map_err(at_footer)?;
        let Footer {
            groups,
            places,
            body,
        } = read_footer(&footer, end, version_of(&trailer)).map_err(at_footer)?;
        let blocks = places.into_iter().map(RowGroupBlocks::unread).collect();
        let summary = summary_of(groups.iter(), bytes, pin);
        Ok(Self {
            number: page_buffer::next_number(),
            path: path.to_owned(),
            file,
            end,
            body,
            summary,
            wholes: WholeTable::all(&groups),
            groups,
            blocks,
        })
    }

    /// The same open file, without cached directories and page indexes: for a scan of everything that
    /// must not leave memory in use.
    #[must_use]
    pub fn uncached(&self) -> Self {
        let places = self.blocks.iter().map(|blocks| blocks.places.clone());
        Self {
            number: page_buffer::next_number(),
            path: self.path.clone(),
            file: Arc::clone(&self.file),
            end: self.end,
            body: self.body,
            summary: self.summary.clone(),
            wholes: WholeTable::all(&self.groups),
            groups: self.groups.clone(),
            blocks: places.map(RowGroupBlocks::unread).collect(),
        }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Fails unless the file has this length in `bytes` and this `pin` (`None`: not known); so a
    /// different segment with the same name fails.
    ///
    /// # Errors
    /// `Corrupt` with the file's name.
    pub fn check_pin(&self, bytes: u64, pin: Option<u32>) -> Result<(), SegmentError> {
        let found = (self.summary.bytes, self.summary.pin);
        if pin.is_none_or(|pin| found == (bytes, pin)) {
            return Ok(());
        }
        let reason = format!(
            "this is another segment than the one that the manifest names: {} bytes with checksum \
             {:08x} in the place of {bytes} bytes with {:08x}; put the right file back, or restore \
             a backup",
            found.0,
            found.1,
            pin.unwrap_or_default()
        );
        Err(SegmentError::corrupt(&self.path, 0, reason))
    }

    /// Checksum of everything before the footer, as the footer says; and where it begins.
    pub(crate) fn body(&self) -> Option<ChecksummedPrefix> {
        let bytes = self.end;
        self.body
            .map(|checksum| ChecksummedPrefix { bytes, checksum })
    }

    /// Summary of the segment.
    #[must_use]
    pub fn summary(&self) -> &SegmentSummary {
        &self.summary
    }

    /// Row groups, by table, then by series.
    #[must_use]
    pub fn row_groups(&self) -> &[RowGroup] {
        &self.groups
    }

    /// Indexes into [`row_groups`](Self::row_groups) of a table's row groups.
    #[must_use]
    pub fn row_groups_of(&self, table: TableId) -> Range<usize> {
        let start = self.groups.partition_point(|group| group.table < table);
        let len = self.groups[start..].partition_point(|group| group.table == table);
        start..start + len
    }

    fn read(&self, offset: u64, bytes: u32) -> Result<Vec<u8>, SegmentError> {
        let mut buffer = vec![0; bytes as usize];
        self.file
            .read_exact_at(&mut buffer, offset)
            .map_err(|source| SegmentError::io(&self.path, source))?;
        Ok(buffer)
    }

    /// Reads a block and hands its payload to `decode`.
    fn block<T>(
        &self,
        place: BlockLocation,
        decode: impl FnOnce(&[u8]) -> Result<T, BlockDamage>,
    ) -> Result<T, SegmentError> {
        let bytes = self.read(place.offset, place.bytes)?;
        let decoded = match frame::read(&bytes) {
            frame::FrameRead::Frame { payload, len } if len == bytes.len() => decode(payload),
            frame::FrameRead::Damaged(reason) => Err(BlockDamage::from(reason)),
            frame::FrameRead::Frame { .. } | frame::FrameRead::End => {
                Err(BlockDamage::from("a block is cut off"))
            }
        };
        decoded.map_err(|damage| damage.in_file(&self.path, place.offset))
    }

    /// Series directory of a row group: runs in row order.
    ///
    /// # Errors
    /// If it cannot be read or is damaged.
    ///
    /// # Panics
    /// If there is no such row group.
    pub fn directory(&self, row_group: usize) -> Result<Arc<[SeriesRun]>, SegmentError> {
        let blocks = &self.blocks[row_group];
        if let Some(runs) = blocks.directory.get() {
            return Ok(Arc::clone(runs));
        }
        let group = &self.groups[row_group];
        let runs = self.block(blocks.places.directory, |bytes| {
            read_directory(bytes, group)
        })?;
        Ok(Arc::clone(blocks.directory.get_or_init(|| runs.into())))
    }

    /// Which of the row group's indexes is a column's, and the column's type.
    fn column(&self, row_group: usize, column: ColumnId) -> Option<(usize, FieldType)> {
        if column == ColumnId::TIME {
            return Some((0, FieldType::I64));
        }
        let columns = &self.groups[row_group].columns;
        let at = columns
            .binary_search_by_key(&column, |column| column.id)
            .ok()?;
        Some((at + 1, columns[at].kind))
    }

    /// Pages of a column ([`ColumnId::TIME`] for time); `None` where the row group has no such
    /// column.
    ///
    /// # Errors
    /// If the page index cannot be read or is damaged.
    ///
    /// # Panics
    /// If there is no such row group.
    pub fn pages(
        &self,
        row_group: usize,
        column: ColumnId,
    ) -> Result<Option<&Arc<[PageMeta]>>, SegmentError> {
        let Some((at, kind)) = self.column(row_group, column) else {
            return Ok(None);
        };
        let blocks = &self.blocks[row_group];
        if let Some(pages) = blocks.indexes[at].get() {
            return Ok(Some(pages));
        }
        let rows = self.groups[row_group].rows;
        let place = blocks.places.indexes[at];
        let pages = self.block(place, |bytes| read_index(bytes, kind, rows, self.end))?;
        Ok(Some(blocks.indexes[at].get_or_init(|| pages.into())))
    }

    /// Statistics of all pages of a column together, without `first` and `last`; `None` where the row
    /// group has no such column.
    ///
    /// # Errors
    /// As [`pages`](Self::pages).
    ///
    /// # Panics
    /// As [`pages`](Self::pages).
    pub fn totals(
        &self,
        row_group: usize,
        column: ColumnId,
    ) -> Result<Option<Arc<PageStats>>, SegmentError> {
        let Some((at, _)) = self.column(row_group, column) else {
            return Ok(None);
        };
        let known = &self.blocks[row_group].totals[at];
        if let Some(total) = known.get() {
            return Ok(Some(Arc::clone(total)));
        }
        let pages = self.pages(row_group, column)?.into_iter();
        let each = pages.flat_map(|pages| pages.iter().map(|page| (page.rows, &page.stats)));
        let total = known.get_or_init(|| Arc::new(PageStats::total(each)));
        Ok(Some(Arc::clone(total)))
    }

    /// All row groups of a table as one; `None` if there are none.
    #[must_use]
    pub fn whole(&self, table: TableId) -> Option<&WholeTable> {
        let at = self
            .wholes
            .binary_search_by_key(&table, |whole| whole.table);
        self.wholes.get(at.ok()?)
    }

    /// As [`totals`](Self::totals), of all of a table's row groups; `None` where none has such a
    /// column. Of more than [`u32::MAX`] rows, the number of nulls is no more than that.
    ///
    /// # Errors
    /// As [`pages`](Self::pages).
    pub fn whole_totals(
        &self,
        table: TableId,
        column: ColumnId,
    ) -> Result<Option<Arc<PageStats>>, SegmentError> {
        let Some(known) = self.whole(table).and_then(|whole| whole.totals(column)) else {
            return Ok(None);
        };
        if let Some(total) = known.get() {
            return Ok(Some(Arc::clone(total)));
        }
        let mut each = Vec::new();
        for group in self.row_groups_of(table) {
            let rows = self.groups[group].rows;
            let without = || {
                Arc::new(PageStats {
                    nulls: rows,
                    ..PageStats::default()
                })
            };
            let stats = self.totals(group, column)?.unwrap_or_else(without);
            each.push((rows, stats));
        }
        let each = each.iter().map(|(rows, stats)| (*rows, &**stats));
        let total = known.get_or_init(|| Arc::new(PageStats::total(each)));
        Ok(Some(Arc::clone(total)))
    }

    /// How many pages the times of all of a table's row groups have.
    ///
    /// # Errors
    /// As [`pages`](Self::pages).
    pub fn whole_pages(&self, table: TableId) -> Result<u64, SegmentError> {
        let Some(whole) = self.whole(table) else {
            return Ok(0);
        };
        if let Some(pages) = whole.pages.get() {
            return Ok(*pages);
        }
        let mut pages = 0;
        for group in self.row_groups_of(table) {
            let of_group = self.pages(group, ColumnId::TIME)?;
            pages += of_group.map_or(0, |pages| pages.len()) as u64;
        }
        Ok(*whole.pages.get_or_init(|| pages))
    }

    fn page_bytes(
        &self,
        row_group: usize,
        column: ColumnId,
        page: usize,
    ) -> Result<(PageMeta, FieldType, Vec<u8>), SegmentError> {
        let (pages, kind) = self.index(row_group, column)?;
        let meta = pages[page].clone();
        let bytes = self.read(meta.offset, meta.bytes)?;
        Ok((meta, kind, bytes))
    }

    /// A column's pages and type; an error where the row group has no such column.
    fn index(
        &self,
        row_group: usize,
        column: ColumnId,
    ) -> Result<(&[PageMeta], FieldType), SegmentError> {
        let pages = self
            .pages(row_group, column)?
            .zip(self.column(row_group, column));
        let (pages, (_, kind)) = pages.ok_or_else(|| {
            SegmentError::misuse(
                &self.path,
                format!("row group {row_group} has no column {column}"),
            )
        })?;
        Ok((pages, kind))
    }

    /// Reads a page and checks it, without decoding it.
    pub(crate) fn checked_page(
        &self,
        row_group: usize,
        column: ColumnId,
        page: usize,
    ) -> Result<(PageMeta, Vec<u8>), SegmentError> {
        let (meta, kind, bytes) = self.page_bytes(row_group, column, page)?;
        check_page(&bytes, kind, meta.rows as usize)
            .map_err(|damage| damage.in_file(&self.path, meta.offset))?;
        Ok((meta, bytes))
    }

    /// Reads, checks and decodes a page: an array of [`FieldType::data_type`], and of `Int64` for
    /// time.
    ///
    /// # Errors
    /// If the page cannot be read or is damaged, or the row group has no such column.
    ///
    /// # Panics
    /// If there is no such row group or page.
    pub fn read_page(
        &self,
        row_group: usize,
        column: ColumnId,
        page: usize,
    ) -> Result<ArrayRef, SegmentError> {
        let (pages, kind) = self.index(row_group, column)?;
        let meta = &pages[page];
        let decode = |bytes: &[u8]| decode_page(bytes, kind, meta.rows as usize);
        self.with_bytes(meta.offset, meta.bytes, decode)?
            .map_err(|damage| damage.in_file(&self.path, meta.offset))
    }

    /// As [`read_page`](Self::read_page), for the rows `rows` of the page: other rows are decoded only
    /// if the encoding requires it. Of skipped rows only the checksum is checked.
    ///
    /// # Errors
    /// As [`read_page`](Self::read_page).
    ///
    /// # Panics
    /// As [`read_page`](Self::read_page), and if the page has fewer rows.
    pub fn read_part(
        &self,
        row_group: usize,
        column: ColumnId,
        page: usize,
        rows: &Range<usize>,
    ) -> Result<ArrayRef, SegmentError> {
        let (pages, kind) = self.index(row_group, column)?;
        let meta = &pages[page];
        let decode = |bytes: &[u8]| decode_part(bytes, kind, meta.rows as usize, rows);
        self.with_bytes(meta.offset, meta.bytes, decode)?
            .map_err(|damage| damage.in_file(&self.path, meta.offset))
    }

    /// Reads and checks a page of times, and decodes those that are not regular.
    ///
    /// # Errors
    /// If the page cannot be read or is damaged.
    ///
    /// # Panics
    /// As [`read_page`](Self::read_page).
    pub fn read_times(&self, row_group: usize, page: usize) -> Result<PageTimes, SegmentError> {
        let (pages, _) = self.index(row_group, ColumnId::TIME)?;
        let meta = &pages[page];
        let decode = |bytes: &[u8]| times_cache::decode(bytes, meta.rows as usize);
        self.with_bytes(meta.offset, meta.bytes, decode)?
            .map_err(|damage| damage.in_file(&self.path, meta.offset))
    }

    /// Reads a page of times as far as `rows`, whose times must ascend, lie in `range`: which rows these
    /// are, and their times.
    ///
    /// # Errors
    /// As [`read_part`](Self::read_part).
    ///
    /// # Panics
    /// As there.
    pub fn read_times_within(
        &self,
        row_group: usize,
        page: usize,
        rows: &Range<usize>,
        range: TimeRange,
    ) -> Result<(Range<usize>, ScalarBuffer<i64>), SegmentError> {
        let (pages, _) = self.index(row_group, ColumnId::TIME)?;
        let meta = &pages[page];
        let decode = |bytes: &[u8]| decode_times_within(bytes, meta.rows as usize, rows, range);
        self.with_bytes(meta.offset, meta.bytes, decode)?
            .map_err(|damage| damage.in_file(&self.path, meta.offset))
    }

    /// Reads bytes into the thread's buffer and passes them to `see`, which decodes them at once.
    fn with_bytes<T>(
        &self,
        offset: u64,
        bytes: u32,
        see: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, SegmentError> {
        let extent = offset..offset + u64::from(bytes);
        if u64::from(bytes) > page_buffer::BYTES_MAX {
            return Ok(see(&self.read(offset, bytes)?));
        }
        page_buffer::with(self.number, extent, |bytes| self.fill(bytes, offset), see)
    }

    fn fill(&self, bytes: &mut [u8], offset: u64) -> Result<(), SegmentError> {
        let read = self.file.read_exact_at(bytes, offset);
        read.map_err(|source| SegmentError::io(&self.path, source))
    }

    /// Reads page `page` of several columns at once, if they stand near each other:
    /// [`read_page`](Self::read_page) and [`read_times`](Self::read_times) of this thread then find
    /// them in memory. Columns that the row group lacks are passed over.
    ///
    /// # Errors
    /// If the page indexes are damaged, or something cannot be read.
    ///
    /// # Panics
    /// As [`read_page`](Self::read_page).
    pub fn read_ahead(
        &self,
        row_group: usize,
        page: usize,
        columns: impl IntoIterator<Item = ColumnId>,
    ) -> Result<(), SegmentError> {
        let mut extent: Option<Range<u64>> = None;
        for column in columns {
            let Some(pages) = self.pages(row_group, column)? else {
                continue;
            };
            let (start, bytes) = (pages[page].offset, u64::from(pages[page].bytes));
            let end = start + bytes;
            let Some(known) = &mut extent else {
                extent = Some(start..end);
                continue;
            };
            let is_near = start <= known.end + GAP_BYTES_MAX && known.start <= end + GAP_BYTES_MAX;
            if !is_near {
                return Ok(());
            }
            *known = known.start.min(start)..known.end.max(end);
        }
        let Some(extent) = extent else { return Ok(()) };
        if extent.end - extent.start > page_buffer::BYTES_MAX {
            return Ok(());
        }
        let start = extent.start;
        page_buffer::put(self.number, extent, |bytes| self.fill(bytes, start))
    }

    /// A page's encoding, compressor and sizes.
    ///
    /// # Errors
    /// As [`read_page`](Self::read_page).
    ///
    /// # Panics
    /// As [`read_page`](Self::read_page).
    pub fn page_info(
        &self,
        row_group: usize,
        column: ColumnId,
        page: usize,
    ) -> Result<PageInfo, SegmentError> {
        let (meta, kind, bytes) = self.page_bytes(row_group, column, page)?;
        page_info(&bytes, kind, meta.rows as usize)
            .map_err(|damage| damage.in_file(&self.path, meta.offset))
    }

    /// How a page's values are encoded and compressed; nothing is decoded for it.
    ///
    /// # Errors
    /// As [`read_page`](Self::read_page).
    ///
    /// # Panics
    /// As [`read_page`](Self::read_page).
    pub fn page_header(
        &self,
        row_group: usize,
        column: ColumnId,
        page: usize,
    ) -> Result<BodyHeader, SegmentError> {
        let (meta, kind, bytes) = self.page_bytes(row_group, column, page)?;
        page_header(&bytes, kind, meta.rows as usize)
            .map_err(|damage| damage.in_file(&self.path, meta.offset))
    }

    /// Memory held by the footer and by what was read of directories and page indexes, bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let footer = self.groups.iter().map(|group| {
            size_of::<RowGroup>() + size_of::<RowGroupBlocks>() + (group.columns.len() + 1) * 56
        });
        let read = self.blocks.iter().map(|blocks| {
            let directory = blocks
                .directory
                .get()
                .map_or(0, |runs| size_of_val(&**runs));
            let indexes = blocks.indexes.iter().filter_map(OnceLock::get);
            let totals = blocks.totals.iter().filter_map(OnceLock::get).count();
            directory
                + indexes.map(|pages| size_of_val(&**pages)).sum::<usize>()
                + totals * size_of::<PageStats>()
        });
        let wholes = self.wholes.iter().map(WholeTable::memory_bytes);
        size_of::<Self>() + footer.sum::<usize>() + read.sum::<usize>() + wholes.sum::<usize>()
    }

    /// The extents of all blocks between header and footer.
    pub(crate) fn block_places(&self) -> impl Iterator<Item = BlockLocation> + '_ {
        let places = self.blocks.iter().map(|blocks| &blocks.places);
        places
            .flat_map(|places| std::iter::once(&places.directory).chain(&places.indexes))
            .copied()
    }

    /// Where pages and blocks end.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }
}
