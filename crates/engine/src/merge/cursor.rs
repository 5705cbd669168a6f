//! A cursor over one source: its rows in order, limited to the requested series and times, and
//! without those that tombstones cover. Row groups, pages and columns are loaded when they are
//! reached.

mod whole;

use super::block::DecodedBlock;
use super::cut::{cut, read_cut, touching};
use super::key::{CursorHead, RowKey};
use super::page_plan::{self, PagePlan, PageSpan, RowGroupPlan, selected_runs};
use super::page_read::{self, PageWindow};
use super::scope::MergeScope;
use super::source::{MergeSource, SourceData};
use crate::error::Result;
use arrow_buffer::ScalarBuffer;
use marigram_manifest::SegmentSpace;
use marigram_model::{SeriesId, SeriesRun};
use marigram_segment::Segment;
use std::collections::VecDeque;
use std::sync::Arc;

/// See the module documentation.
#[derive(Debug)]
pub(super) struct SourceCursor {
    /// Number of the source in the merge.
    number: u32,
    source: MergeSource,
    /// Row groups that are not planned yet, with a bound of their rows.
    groups: VecDeque<(usize, RowKey)>,
    /// Whether rows in memory must still be loaded.
    whole: bool,
    /// The current row group, with its unread pages.
    group: usize,
    pages: VecDeque<PagePlan>,
    spans: Vec<PageSpan>,
    page: Option<LoadedPage>,
}

/// The current page (or chunk), of which at least one row is left.
#[derive(Debug)]
struct LoadedPage {
    /// Times of the rows that were read; `spans` and `row` refer to their numbers.
    times: ScalarBuffer<i64>,
    place: PageWindow,
    block: Option<Arc<DecodedBlock>>,
    spans: Vec<PageSpan>,
    at: usize,
    /// Next row of `spans[at]`.
    row: u32,
    /// Whether `spans` covers all of its rows.
    whole: bool,
}

impl SourceCursor {
    pub(super) fn new(number: u32, source: MergeSource, scope: &MergeScope) -> Self {
        let series_min = scope.series.as_ref().map_or(Some(0), |series| series.min());
        let wanted = |first: SeriesId, last: SeriesId| match &scope.series {
            None => true,
            Some(series) => series.range_cardinality(first.0..=last.0) > 0,
        };
        let groups = source
            .row_groups()
            .filter(|(_, group)| group.range.overlaps(scope.range))
            .filter(|(_, group)| wanted(group.series_min, group.series_max))
            .map(|(at, group)| {
                let series = group.series_min.0.max(series_min.unwrap_or(0));
                (
                    at,
                    RowKey::new(SeriesId(series), group.range.min.max(scope.range.min)),
                )
            })
            .collect();
        let whole = !matches!(source.data, SourceData::Segment(..)) && series_min.is_some();
        let (pages, spans) = (VecDeque::new(), Vec::new());
        Self {
            number,
            source,
            groups,
            whole,
            group: 0,
            pages,
            spans,
            page: None,
        }
    }

    pub(super) fn rank(&self) -> (SegmentSpace, u64) {
        self.source.rank()
    }

    /// The cursor's position; `None` at the end.
    pub(super) fn head(&self) -> Option<CursorHead> {
        if let Some(page) = &self.page {
            let series = page.spans[page.at].series;
            let key = RowKey::new(series, page.times[page.row as usize]);
            return Some(CursorHead { key, exact: true });
        }
        let key = match (self.pages.front(), self.groups.front()) {
            (Some(page), _) => page.bound,
            (None, Some((_, bound))) => *bound,
            (None, None) if self.whole => RowKey::new(SeriesId(0), i64::MIN),
            (None, None) => return None,
        };
        Some(CursorHead { key, exact: false })
    }

    /// Loads what comes next: plans a row group, or decodes a page's times. For a head that is not
    /// exact; the caller repeats it until the head is exact or gone.
    pub(super) fn open(&mut self, scope: &MergeScope) -> Result<()> {
        if std::mem::take(&mut self.whole) {
            self.load_whole(scope);
            return Ok(());
        }
        let SourceData::Segment(segment, _) = &self.source.data else {
            return Ok(());
        };
        let segment = segment.clone();
        if let Some(page) = self.pages.pop_front() {
            return self.load_page(&segment, &page, scope);
        }
        let Some((group, _)) = self.groups.pop_front() else {
            return Ok(());
        };
        let source = (self.number, self.source.space());
        let RowGroupPlan { pages, spans } = page_plan::plan(&segment, group, source, scope)?;
        (self.group, self.pages, self.spans) = (group, pages.into(), spans);
        Ok(())
    }

    fn load_whole(&mut self, scope: &MergeScope) {
        let Some((_, rows)) = self.source.in_memory() else {
            return;
        };
        let spans =
            selected_runs(&rows.runs, scope.series.as_deref()).map(|(run, start)| PageSpan {
                series: run.series,
                start,
                end: start + run.rows,
            });
        let spans = cut(spans, &rows.times, scope.range, &self.source.tombstones);
        let times = rows.times.clone();
        let rows = times.len() as u32;
        let place = PageWindow {
            page: 0,
            offset: 0,
            rows,
            window: 0..rows,
        };
        self.page = LoadedPage::new(times, place, spans);
    }

    fn load_page(&mut self, segment: &Segment, plan: &PagePlan, scope: &MergeScope) -> Result<()> {
        let spans = &self.spans[plan.spans.clone()];
        let tombstones = touching(&self.source.tombstones, plan.range);
        let read = || read_cut(segment, self.group, plan, spans, scope.range, &tombstones);
        let cut = scope.reading(read)?;
        scope.own.add_page(plan.bytes);
        self.page = LoadedPage::new(cut.times, cut.place, cut.spans);
        Ok(())
    }

    /// Releases the values of the current page, which are decoded again on demand.
    pub(super) fn release(&mut self) {
        if let Some(page) = &mut self.page {
            page.block = None;
        }
    }

    /// The current rows with all columns.
    pub(super) fn block(&mut self, scope: &MergeScope) -> Result<Arc<DecodedBlock>> {
        let page = self
            .page
            .as_mut()
            .expect("only an exact head's rows are taken");
        if let Some(block) = &page.block {
            return Ok(block.clone());
        }
        let times = page.times.clone();
        let block = Arc::new(match &self.source.data {
            SourceData::Segment(segment, _) => {
                let read = || page_read::columns(segment, self.group, &page.place, scope);
                let columns = scope.reading(read)?;
                DecodedBlock::decoded(times, columns, scope.memory.as_ref())?
            }
            SourceData::Chunk(_) => {
                DecodedBlock::shared(times, self.source.columns_in_memory(&scope.columns))
            }
            #[cfg(test)]
            SourceData::Rows(_) => {
                DecodedBlock::shared(times, self.source.columns_in_memory(&scope.columns))
            }
        });
        page.block = Some(block.clone());
        Ok(block)
    }

    /// Takes the rows before `bound`, at least one and at most about `rows_max`, that are adjacent.
    /// Returns their block, first row and number; `runs` receives their series.
    pub(super) fn take(
        &mut self,
        bound: RowKey,
        rows_max: usize,
        scope: &MergeScope,
        runs: &mut Vec<SeriesRun>,
    ) -> Result<(Arc<DecodedBlock>, usize, usize)> {
        let block = self.block(scope)?;
        let page = self
            .page
            .as_mut()
            .expect("only an exact head's rows are taken");
        // Allow half more than requested, so that a page that is slightly longer is not cut in two.
        let rows_max = u32::try_from(rows_max + rows_max / 2).unwrap_or(u32::MAX);
        let start = page.row;
        let mut end = start;
        runs.clear();
        while let Some(span) = page.spans.get(page.at) {
            let limit = span.end.min(start.saturating_add(rows_max));
            if page.row != end || end >= limit {
                break;
            }
            let stop = rows_before(span.series, &page.times, page.row, limit, bound);
            if stop > end {
                runs.push(SeriesRun {
                    series: span.series,
                    rows: stop - end,
                });
            }
            end = stop;
            page.row = stop;
            if stop < span.end {
                break;
            }
            page.next_span();
        }
        if page.at == page.spans.len() {
            self.page = None;
        }
        Ok((block, start as usize, (end - start) as usize))
    }

    /// Series, next row, and the times from that row to the end of the series' loaded rows.
    pub(super) fn ahead(&self) -> (SeriesId, usize, &[i64]) {
        let page = self
            .page
            .as_ref()
            .expect("only an exact head's rows are looked at");
        let span = page.spans[page.at];
        (
            span.series,
            page.row as usize,
            &page.times[page.row as usize..span.end as usize],
        )
    }

    /// Whether more rows of the current series may follow those that [`ahead`](Self::ahead)
    /// returns.
    pub(super) fn may_go_on(&self) -> bool {
        let Some(page) = &self.page else { return false };
        let series = page.spans[page.at].series;
        match (
            page.spans.get(page.at + 1),
            self.pages.front(),
            self.groups.front(),
        ) {
            (Some(next), _, _) => next.series == series,
            (None, Some(page), _) => page.bound.series() == Some(series),
            (None, None, Some((_, bound))) => bound.series() == Some(series),
            (None, None, None) => false,
        }
    }

    /// Skips `rows` of the rows that [`ahead`](Self::ahead) returned.
    pub(super) fn skip(&mut self, rows: usize) {
        let Some(page) = &mut self.page else { return };
        page.row += rows as u32;
        if page.row >= page.spans[page.at].end {
            page.next_span();
        }
        if page.at == page.spans.len() {
            self.page = None;
        }
    }
}

impl LoadedPage {
    fn new(times: ScalarBuffer<i64>, place: PageWindow, spans: Vec<PageSpan>) -> Option<Self> {
        let row = spans.first()?.start;
        let whole = whole::are_all(&spans, place.rows as usize);
        Some(Self {
            whole,
            times,
            place,
            block: None,
            spans,
            at: 0,
            row,
        })
    }

    fn next_span(&mut self) {
        self.at += 1;
        if let Some(span) = self.spans.get(self.at) {
            self.row = span.start;
        }
    }
}

/// End of the rows of `series` from `row` to `limit` that are before `bound`.
fn rows_before(series: SeriesId, times: &[i64], row: u32, limit: u32, bound: RowKey) -> u32 {
    match bound.series() {
        Some(other) if other == series => {
            let ahead = &times[row as usize..limit as usize];
            if ahead.last().is_some_and(|last| *last < bound.time()) {
                return limit;
            }
            row + ahead.partition_point(|time| *time < bound.time()) as u32
        }
        Some(other) if other < series => row,
        _ => limit,
    }
}
