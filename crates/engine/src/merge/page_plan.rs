//! Plans which pages of a row group must be read, and which of their rows.

use super::key::RowKey;
use super::metrics::ScanMetrics;
use super::scope::MergeScope;
use crate::error::Result;
use marigram_manifest::SegmentSpace;
use marigram_model::{ColumnId, FieldValue, SeriesId, SeriesRun, TimeRange};
use marigram_segment::{PageMeta, Segment};
use roaring::RoaringBitmap;
use std::ops::Range;

/// Rows of one series within a page or chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageSpan {
    pub(super) series: SeriesId,
    pub(super) start: u32,
    pub(super) end: u32,
}

impl PageSpan {
    /// The part that is within the rows of `window`, in row numbers relative to it.
    pub(super) fn within(self, window: &Range<u32>) -> Self {
        let row = |row: u32| row.clamp(window.start, window.end) - window.start;
        Self {
            series: self.series,
            start: row(self.start),
            end: row(self.end),
        }
    }
}

/// A page to read.
#[derive(Clone, Debug)]
pub(super) struct PagePlan {
    pub(super) page: usize,
    pub(super) rows: u32,
    /// The page's offset in the file, and its size.
    pub(super) offset: u64,
    pub(super) bytes: u32,
    /// Its requested rows, as indexes in [`RowGroupPlan::spans`].
    pub(super) spans: Range<usize>,
    /// The time range of all its rows.
    pub(super) range: TimeRange,
    /// No row of it is before this.
    pub(super) bound: RowKey,
}

/// The pages of a row group to read.
#[derive(Debug, Default)]
pub(super) struct RowGroupPlan {
    pub(super) pages: Vec<PagePlan>,
    pub(super) spans: Vec<PageSpan>,
}

/// The runs of `series` among `runs`, which ascend, with their first rows.
pub(crate) fn selected_runs<'a>(
    runs: &'a [SeriesRun],
    series: Option<&'a RoaringBitmap>,
) -> impl Iterator<Item = (SeriesRun, u32)> + 'a {
    let whole = match (runs.first(), runs.last(), series) {
        (Some(first), Some(last), Some(series)) => {
            series.contains_range(first.series.0..=last.series.0)
        }
        _ => true,
    };
    let mut runs = runs.iter();
    let mut first_row = 0u32;
    // Both sides ascend, so a few series among many runs need not be searched run by run.
    let mut series = series.map(RoaringBitmap::iter);
    let mut wanted = series.as_mut().and_then(Iterator::next);
    std::iter::from_fn(move || {
        loop {
            let run = runs.next()?;
            let start = first_row;
            first_row = first_row.saturating_add(run.rows);
            if whole {
                return Some((*run, start));
            }
            if wanted? < run.series.0 {
                let series = series.as_mut()?;
                series.advance_to(run.series.0);
                wanted = series.next();
            }
            if wanted? == run.series.0 {
                return Some((*run, start));
            }
        }
    })
}

/// Plans row group `group` of `segment`, which is source number `source` of the merge.
pub(super) fn plan(
    segment: &Segment,
    group: usize,
    source: (u32, SegmentSpace),
    scope: &MergeScope,
) -> Result<RowGroupPlan> {
    scope.planning(|| planned(segment, group, source, scope))
}

fn planned(
    segment: &Segment,
    group: usize,
    source: (u32, SegmentSpace),
    scope: &MergeScope,
) -> Result<RowGroupPlan> {
    let directory = segment.directory(group)?;
    let times = segment.pages(group, ColumnId::TIME)?;
    let times = times.map_or(&[][..], |times| times);
    let mut plan = RowGroupPlan::default();
    plan.assign(&directory, times, scope);
    let planned = plan.pages.len();
    plan.prune_by_values(segment, group, source, scope)?;
    let columns = scope.columns.iter().filter(|column| {
        segment.row_groups()[group]
            .columns
            .iter()
            .any(|own| own.id == column.id)
    });
    let width = 1 + columns.count() as u64;
    let counted = own_pages(&directory, times, scope);
    let read = plan.pages.len() as u64;
    let metrics = &scope.metrics;
    ScanMetrics::add(&metrics.pages_total, counted.max(planned as u64) * width);
    ScanMetrics::add(&metrics.pages_pruned, counted.saturating_sub(read) * width);
    Ok(plan)
}

/// The number of pages that begin with a series that this merge counts.
fn own_pages(directory: &[SeriesRun], times: &[PageMeta], scope: &MergeScope) -> u64 {
    let ends = directory.first().zip(directory.last());
    let own_series = |run: &SeriesRun| scope.territory.contains(&run.series.0);
    if ends.is_some_and(|(first, last)| own_series(first) && own_series(last)) {
        return times.len() as u64;
    }
    let mut row = 0u32;
    let mut page = 0;
    let mut own = 0;
    for run in directory {
        row = row.saturating_add(run.rows);
        while times.get(page).is_some_and(|meta| meta.first_row < row) {
            own += u64::from(own_series(run));
            page += 1;
        }
    }
    own
}

impl RowGroupPlan {
    /// Distributes the requested runs over the pages, and skips those with other times.
    fn assign(&mut self, directory: &[SeriesRun], times: &[PageMeta], scope: &MergeScope) {
        let series = scope.series.as_ref();
        let runs = series.map_or(u64::MAX, |series| series.len());
        let runs = directory
            .len()
            .min(usize::try_from(runs).unwrap_or(usize::MAX));
        self.spans.reserve(runs);
        self.pages.reserve(runs.min(times.len()));
        let mut page = 0;
        for (run, first_row) in selected_runs(directory, scope.series.as_deref()) {
            let end_row = first_row.saturating_add(run.rows);
            let end_of = |meta: &PageMeta| meta.first_row.saturating_add(meta.rows);
            while times
                .get(page)
                .is_some_and(|meta| end_of(meta) <= first_row)
            {
                page += 1;
            }
            let touched = times[page.min(times.len())..].iter().enumerate();
            for (ahead, meta) in touched.take_while(|(_, meta)| meta.first_row < end_row) {
                let range = range_of(meta);
                if !range.overlaps(scope.range) {
                    continue;
                }
                let span = PageSpan {
                    series: run.series,
                    start: first_row.max(meta.first_row) - meta.first_row,
                    end: end_row.min(end_of(meta)) - meta.first_row,
                };
                self.add(page + ahead, meta, range, span, scope);
            }
        }
    }

    fn add(
        &mut self,
        page: usize,
        meta: &PageMeta,
        range: TimeRange,
        span: PageSpan,
        scope: &MergeScope,
    ) {
        self.spans.push(span);
        let end = self.spans.len();
        match self.pages.last_mut() {
            Some(last) if last.page == page => last.spans.end = end,
            _ => self.pages.push(PagePlan {
                page,
                rows: meta.rows,
                offset: meta.offset,
                bytes: meta.bytes,
                spans: end - 1..end,
                range,
                bound: RowKey::new(span.series, range.min.max(scope.range.min)),
            }),
        }
    }

    fn prune_by_values(
        &mut self,
        segment: &Segment,
        group: usize,
        source: (u32, SegmentSpace),
        scope: &MergeScope,
    ) -> Result<()> {
        for bounds in &scope.pruning.bounds {
            let stats = segment.pages(group, bounds.column)?;
            let spans = &self.spans;
            self.pages.retain(|page| {
                let excluded = match stats {
                    // A column that the row group lacks is null, which meets no bounds.
                    None => bounds.min.is_some() || bounds.max.is_some(),
                    Some(metas) => metas
                        .get(page.page)
                        .is_some_and(|meta| bounds.exclude(&meta.stats, meta.rows)),
                };
                let (first, last) = (spans[page.spans.start], spans[page.spans.end - 1]);
                let series = (first.series, last.series);
                !(excluded
                    && scope
                        .pruning
                        .allowed(source.0, source.1, series, page.range))
            });
        }
        Ok(())
    }
}

/// The time range of a time page. One without statistics may have any times.
pub(super) fn range_of(meta: &PageMeta) -> TimeRange {
    let time = |value: &Option<FieldValue>| match value {
        Some(FieldValue::Timestamp(time) | FieldValue::I64(time)) => Some(*time),
        _ => None,
    };
    TimeRange {
        min: time(&meta.stats.min).unwrap_or(i64::MIN),
        max: time(&meta.stats.max).unwrap_or(i64::MAX),
    }
}
