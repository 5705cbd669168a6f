//! Reads sources that share no rows, for aggregations: page by page, each source separately, in no
//! order of time. The statistics of a page may replace reading it, and of a page that is read, only
//! what is needed is decoded.

use super::MergeOptions;
use super::block::{PageReservation, bytes_of};
use super::bounds::SourceExtents;
use super::cut::{cut, read_cut, touching};
use super::page_plan::{self, PagePlan, PageSpan, RowGroupPlan, selected_runs};
use super::page_read::{self, PageWindow};
use super::scope::MergeScope;
use super::source::{MergeSource, SourceData};
use super::source_totals::TotalsLot;
use crate::error::{EngineError, Result};
use arrow_array::ArrayRef;
use arrow_buffer::ScalarBuffer;
use marigram_model::{ColumnId, SeriesId, TimeRange};
use marigram_segment::{PageMeta, PageStats, PageTimes, RegularIntegers, Segment};
use std::collections::VecDeque;
use std::sync::Arc;

/// Consecutive rows of one series in a page or batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowSpan {
    /// The series.
    pub series: SeriesId,
    /// Number of the first row.
    pub start: u32,
    /// Number after the last row.
    pub end: u32,
}

impl RowSpan {
    /// Number of rows, at least one.
    #[must_use]
    pub fn len(self) -> usize {
        (self.end - self.start) as usize
    }

    /// Always false: there is at least one row.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }
}

/// What is known about a page before it is read.
#[derive(Clone, Copy, Debug)]
pub struct PageOutline<'a> {
    /// Its requested rows, by series.
    pub spans: &'a [RowSpan],
    /// The time range of its rows.
    pub range: TimeRange,
    /// Whether these are all rows of the page, so that its statistics apply to them.
    pub whole: bool,
    /// Statistics of each requested column; `None` if it has no values.
    pub stats: &'a [Option<&'a PageStats>],
}

/// What an aggregation needs of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageNeed {
    /// Nothing more: the outline was enough. Only for an outline of the whole page.
    Nothing,
    /// Values.
    Values,
    /// Values and times; the times may be given as [`PageRows::steps`].
    Steps,
    /// Values and individual times.
    Rows,
}

/// Rows, some of which are requested.
#[derive(Debug)]
pub struct PageRows<'a> {
    /// The requested rows.
    pub spans: &'a [RowSpan],
    /// The time range of these rows.
    pub range: TimeRange,
    /// Times of all rows, ns; empty if only values were needed, or if `steps` has the times.
    pub times: &'a [i64],
    /// Times of all rows, if they are regular and [`PageNeed::Steps`] was requested.
    pub steps: Option<&'a RegularIntegers>,
    /// Length of the arrays.
    pub rows: usize,
    /// Each requested column; `None` if it has no values.
    pub columns: &'a [Option<ArrayRef>],
}

/// What is known about all pages of a row group, or of a segment, together.
#[derive(Clone, Copy, Debug)]
pub struct PageTotals<'a> {
    /// Number of its rows, all of which are requested.
    pub rows: u32,
    /// The time range of the rows.
    pub range: TimeRange,
    /// Statistics of each requested column, without `first` and `last`; `None` if it has no values.
    pub stats: &'a [Option<&'a PageStats>],
}

/// An aggregation over rows.
pub trait PageReducer {
    /// Its error type.
    type Error: From<EngineError>;

    /// Whether it may accept totals of rows with these times; totals that it never accepts need not
    /// be computed.
    fn takes_totals(&mut self, _range: TimeRange) -> Result<bool, Self::Error> {
        Ok(false)
    }

    /// Whether it has accepted a whole row group or segment; if not, it receives the parts.
    fn totals(&mut self, _totals: PageTotals<'_>) -> Result<bool, Self::Error> {
        Ok(false)
    }

    /// Returns what it needs of a page; with [`PageNeed::Nothing`], it has accepted the page.
    fn outline(&mut self, outline: PageOutline<'_>) -> Result<PageNeed, Self::Error>;

    /// Accepts rows.
    fn rows(&mut self, rows: PageRows<'_>) -> Result<(), Self::Error>;
}

impl From<PageSpan> for RowSpan {
    fn from(span: PageSpan) -> Self {
        let PageSpan { series, start, end } = span;
        Self { series, start, end }
    }
}

/// See the module documentation.
#[derive(Debug)]
pub(crate) struct DisjointSources {
    scope: MergeScope,
    /// The sources that are still to be read, the last one first.
    sources: Vec<MergeSource>,
    current: Option<MergeSource>,
    groups: VecDeque<usize>,
    group: usize,
    pages: VecDeque<PagePlan>,
    spans: Vec<PageSpan>,
    /// The pages of each column in the row group.
    indexes: Vec<Option<Arc<[PageMeta]>>>,
    /// Kept for its allocation.
    asked: Vec<RowSpan>,
    /// Memory for the current page.
    room: PageReservation,
    /// Number of pages passed on.
    shown: usize,
}

/// The metrics are updated once for this many pages, but for each of the first ones: these reveal
/// which work is short.
const TOLD_PAGES: usize = 16;

impl DisjointSources {
    /// The rows of `sources`, all of which must belong to one table and have no row in common.
    pub(crate) fn new(mut sources: Vec<MergeSource>, options: MergeOptions) -> Self {
        sources.reverse();
        // No other source has these rows, so every page whose values rule it out may be skipped.
        let scope = MergeScope::new(options, SourceExtents::default());
        Self {
            scope,
            sources,
            current: None,
            groups: VecDeque::new(),
            group: 0,
            pages: VecDeque::new(),
            spans: Vec::new(),
            indexes: Vec::new(),
            asked: Vec::new(),
            room: PageReservation::default(),
            shown: 0,
        }
    }

    /// Passes the next page to `reducer`; `false` at the end.
    ///
    /// # Errors
    /// Damage or I/O errors of a page that must be read, no memory for it, or the reducer's error.
    pub(crate) fn step<R: PageReducer>(&mut self, reducer: &mut R) -> Result<bool, R::Error> {
        loop {
            if let Some(page) = self.pages.pop_front() {
                self.show(&page, reducer)?;
                self.shown += 1;
                if self.shown < TOLD_PAGES || self.shown.is_multiple_of(TOLD_PAGES) {
                    self.scope.tell();
                }
                return Ok(true);
            }
            if let Some(group) = self.groups.pop_front() {
                if self.show_totals(Some(group), reducer)? {
                    return Ok(true);
                }
                self.plan(group)?;
                continue;
            }
            let Some(source) = self.sources.pop() else {
                self.current = None;
                self.scope.tell();
                return Ok(false);
            };
            if source.is_segment() {
                self.enter(source);
                if self.show_totals(None, reducer)? {
                    self.groups.clear();
                    return Ok(true);
                }
            } else {
                self.show_memory(&source, reducer)?;
                return Ok(true);
            }
        }
    }

    fn enter(&mut self, source: MergeSource) {
        let wanted = |first: SeriesId, last: SeriesId| match &self.scope.series {
            None => true,
            Some(series) => series.range_cardinality(first.0..=last.0) > 0,
        };
        self.groups = source
            .row_groups()
            .filter(|(_, group)| group.range.overlaps(self.scope.range))
            .filter(|(_, group)| wanted(group.series_min, group.series_max))
            .map(|(at, _)| at)
            .collect();
        self.current = Some(source);
    }

    fn segment(&self) -> Option<(&Segment, &MergeSource)> {
        let source = self.current.as_ref()?;
        match &source.data {
            SourceData::Segment(segment, _) => Some((segment, source)),
            SourceData::Chunk(_) => None,
            #[cfg(test)]
            SourceData::Rows(_) => None,
        }
    }

    fn plan(&mut self, group: usize) -> Result<()> {
        let Some((segment, source)) = self.segment() else {
            return Ok(());
        };
        let number = (0, source.space());
        let RowGroupPlan { pages, spans } = page_plan::plan(segment, group, number, &self.scope)?;
        let columns = self.scope.columns.iter();
        let index = |id: ColumnId| Ok(segment.pages(group, id)?.cloned());
        let indexes = columns.map(|column| index(column.id));
        self.indexes = indexes.collect::<Result<_>>()?;
        (self.group, self.pages, self.spans) = (group, pages.into(), spans);
        Ok(())
    }

    /// Passes the current segment, or one of its row groups, as a whole, if all its rows are
    /// requested; returns whether that was enough.
    fn show_totals<R: PageReducer>(
        &self,
        group: Option<usize>,
        reducer: &mut R,
    ) -> Result<bool, R::Error> {
        let Some(source) = &self.current else {
            return Ok(false);
        };
        let SourceData::Segment(segment, table) = &source.data else {
            return Ok(false);
        };
        let (scope, part) = (&self.scope, (&**segment, *table));
        let Some(lot) = TotalsLot::asked(scope, part, group, &source.tombstones) else {
            return Ok(false);
        };
        if !reducer.takes_totals(lot.range)? {
            return Ok(false);
        }
        let all = lot.stats(scope)?;
        let stats: Vec<Option<&PageStats>> = all.iter().map(Option::as_deref).collect();
        let taken = reducer.totals(PageTotals {
            rows: lot.rows,
            range: lot.range,
            stats: &stats,
        })?;
        if taken {
            lot.count(scope, &stats)?;
        }
        Ok(taken)
    }

    fn show<R: PageReducer>(&mut self, page: &PagePlan, reducer: &mut R) -> Result<(), R::Error> {
        let mut asked = std::mem::take(&mut self.asked);
        let mut room = std::mem::take(&mut self.room);
        asked.clear();
        self.show_page(page, &mut asked, &mut room, reducer)?;
        (self.asked, self.room) = (asked, room);
        Ok(())
    }

    fn show_page<R: PageReducer>(
        &self,
        page: &PagePlan,
        asked: &mut Vec<RowSpan>,
        room: &mut PageReservation,
        reducer: &mut R,
    ) -> Result<(), R::Error> {
        let Some((segment, source)) = self.segment() else {
            return Ok(());
        };
        let tombstones = touching(&source.tombstones, page.range);
        let spans = &self.spans[page.spans.clone()];
        let range = self.scope.range;
        let uncut = tombstones.is_empty() && range.covers(page.range);
        let mut times = None;
        let mut place = PageWindow::new(page, page_read::window(spans, page.rows));
        if uncut {
            let within = |span: &PageSpan| RowSpan::from(span.within(&place.window));
            asked.extend(spans.iter().map(within));
        } else {
            let read = || read_cut(segment, self.group, page, spans, range, &tombstones);
            let cut = self.scope.reading(read)?;
            self.scope.own.add_page(page.bytes);
            asked.extend(cut.spans.into_iter().map(RowSpan::from));
            (place, times) = (cut.place, Some(cut.times));
        }
        if asked.is_empty() {
            return Ok(());
        }
        let rows = place.window.len();
        let count: usize = asked.iter().map(|span| span.len()).sum();
        let range = page.range.intersect(self.scope.range);
        let stats: Vec<Option<&PageStats>> = self
            .indexes
            .iter()
            .map(|index| Some(&index.as_ref()?.get(page.page)?.stats))
            .collect();
        let need = reducer.outline(PageOutline {
            spans: asked,
            range,
            // A page without statistics of its times may have any times.
            whole: uncut && count == page.rows as usize && page.range != TimeRange::ALL,
            stats: &stats,
        })?;
        if need == PageNeed::Nothing {
            self.scope.own.add_answered(1 + stats.len() as u64);
            return Ok(());
        }
        let read = || self.read(segment, (page, &place), need, times);
        let (times, columns) = self.scope.reading(read)?;
        let (times, steps) = match times {
            PageTimes::Each(each) => (each, None),
            PageTimes::Regular(steps) => (ScalarBuffer::default(), Some(steps)),
        };
        room.reach(bytes_of(&times, &columns), self.scope.memory.as_ref())?;
        reducer.rows(PageRows {
            spans: asked,
            range,
            times: &times,
            steps: steps.as_ref(),
            rows,
            columns: &columns,
        })
    }

    /// Reads the columns of a page, and its times unless they exist already or are not needed. If
    /// they are close together in the file, one call reads them all.
    fn read(
        &self,
        segment: &Segment,
        (page, place): (&PagePlan, &PageWindow),
        need: PageNeed,
        times: Option<ScalarBuffer<i64>>,
    ) -> Result<(PageTimes, Vec<Option<ArrayRef>>)> {
        let reads_times = times.is_none() && matches!(need, PageNeed::Steps | PageNeed::Rows);
        let columns = self.scope.columns.iter().map(|column| column.id);
        let all = reads_times.then_some(ColumnId::TIME);
        let all = all.into_iter().chain(columns);
        if all.clone().nth(1).is_some() {
            segment.read_ahead(self.group, page.page, all)?;
        }
        let times = match times {
            None if need == PageNeed::Steps && place.is_whole() => {
                page_read::any_times(segment, self.group, page)?
            }
            None if reads_times => {
                let times = page_read::times(segment, self.group, page, &place.window)?;
                PageTimes::Each(times)
            }
            times => PageTimes::Each(times.unwrap_or_default()),
        };
        if reads_times {
            self.scope.own.add_page(page.bytes);
        }
        let columns = page_read::columns(segment, self.group, place, &self.scope)?;
        Ok((times, columns))
    }

    fn show_memory<R: PageReducer>(
        &self,
        source: &MergeSource,
        reducer: &mut R,
    ) -> Result<(), R::Error> {
        let Some((_, rows)) = source.in_memory() else {
            return Ok(());
        };
        let series = self.scope.series.as_deref();
        let spans = selected_runs(&rows.runs, series).map(|(run, start)| PageSpan {
            series: run.series,
            start,
            end: start + run.rows,
        });
        let spans = cut(spans, &rows.times, self.scope.range, &source.tombstones);
        let spans: Vec<RowSpan> = spans.into_iter().map(RowSpan::from).collect();
        let first = spans.iter().map(|span| rows.times[span.start as usize]);
        let last = spans.iter().map(|span| rows.times[span.end as usize - 1]);
        let Some((min, max)) = first.min().zip(last.max()) else {
            return Ok(());
        };
        let columns = source.columns_in_memory(&self.scope.columns);
        reducer.rows(PageRows {
            spans: &spans,
            range: TimeRange { min, max },
            times: &rows.times,
            steps: None,
            rows: rows.len(),
            columns: &columns,
        })
    }
}
