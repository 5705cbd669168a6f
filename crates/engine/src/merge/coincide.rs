//! Finds the series that have rows with the same time in several sources.
//!
//! An aggregation needs a merge only for these. For all other series, it can read each source
//! separately, in any order, or use the statistics of pages. Late rows mostly fill gaps, so that a
//! merge is rarely needed although everything overlaps. The times of both sources are compared
//! once: sources never change, and the result is cached with them.

use super::MergeOptions;
use super::bounds::SourceExtents;
use super::metrics::ScanMetrics;
use super::page_plan::{self, PagePlan, PageSpan, RowGroupPlan};
use super::page_read;
use super::scope::MergeScope;
use super::source::{MergeSource, SourceData};
use crate::error::Result;
use arrow_buffer::ScalarBuffer;
use marigram_manifest::SegmentSpace;
use marigram_model::{SeriesId, TimeRange};
use roaring::RoaringBitmap;
use std::collections::VecDeque;
use std::sync::Arc;

/// If one list is this many times longer than the other, it is searched rather than scanned.
const SEARCH_RATIO: usize = 16;

/// The series among `series` of which two `sources` have rows with the same time within `range`,
/// and possibly some that only do so outside of it. All `sources` must belong to one table.
///
/// # Errors
/// Damage or I/O errors of the pages that are read.
pub(crate) fn series_that_share_rows(
    sources: &[MergeSource],
    series: &RoaringBitmap,
    range: TimeRange,
    metrics: &ScanMetrics,
) -> Result<RoaringBitmap> {
    let mut shared = RoaringBitmap::new();
    for (one, other, overlap) in pairs(sources, range) {
        let found = one.found_with(other);
        let mut found = found.lock();
        if found.is_apart(series) {
            continue;
        }
        let candidates = series - &shared;
        if candidates.is_empty() {
            return Ok(shared);
        }
        let unknown = &candidates - &found.known;
        if !unknown.is_empty() {
            let unknown = Arc::new(unknown);
            let mut new = find(one, other, &unknown, overlap, metrics)?;
            found.shared |= &new;
            found.known |= &*unknown;
            found.known.optimize();
            new.optimize();
        }
        shared |= &found.shared & &candidates;
    }
    Ok(shared)
}

/// Whether it is already known, or evident from the extents, that no two `sources` have rows of
/// `series` with the same time within `range`. Does not wait for another thread that is computing
/// it.
pub(crate) fn are_known_apart(
    sources: &[MergeSource],
    series: &RoaringBitmap,
    range: TimeRange,
) -> bool {
    pairs(sources, range).all(|(one, other, _)| {
        let found = one.found_with(other);
        let found = found.try_lock();
        found.is_some_and(|found| found.is_apart(series))
    })
}

/// Pairs of sources that may share rows within `range`, with the times in which they may.
fn pairs(
    sources: &[MergeSource],
    range: TimeRange,
) -> impl Iterator<Item = (&MergeSource, &MergeSource, TimeRange)> {
    let extents: Vec<PartExtents> = sources.iter().map(MergeSource::extents).collect();
    let pairs = (0..sources.len()).flat_map(|at| (0..at).map(move |other| (at, other)));
    pairs.filter_map(move |(at, other)| {
        let both = (&sources[at], &sources[other]);
        if never_share(both.0, both.1) {
            return None;
        }
        let overlap = overlap(&extents[at], &extents[other], range)?;
        Some((both.0, both.1, overlap))
    })
}

/// Two sources of the sequence space never share rows if one is a segment: a series' rows go there
/// only if they are after everything that was flushed.
fn never_share(one: &MergeSource, other: &MergeSource) -> bool {
    (one.space(), other.space()) == (SegmentSpace::Sequence, SegmentSpace::Sequence)
        && (one.is_segment() || other.is_segment())
}

/// Series and times of the parts of a source.
type PartExtents = Vec<(SeriesId, SeriesId, TimeRange)>;

/// The times in which two sources may have rows of the same series; `None` if they cannot share
/// any, or none in `range`.
fn overlap(mine: &PartExtents, others: &PartExtents, range: TimeRange) -> Option<TimeRange> {
    let mut overlap: Option<TimeRange> = None;
    for (first, last, times) in mine {
        for (other_first, other_last, other_times) in others {
            if first <= other_last && other_first <= last && times.overlaps(*other_times) {
                let common = times.intersect(*other_times);
                overlap = Some(overlap.map_or(common, |known| known.union(common)));
            }
        }
    }
    overlap.filter(|overlap| overlap.overlaps(range))
}

/// The series among `series` of which both sources have a row with the same time.
fn find(
    one: &MergeSource,
    other: &MergeSource,
    series: &Arc<RoaringBitmap>,
    range: TimeRange,
    metrics: &ScanMetrics,
) -> Result<RoaringBitmap> {
    let mut shared = RoaringBitmap::new();
    let mut a = StretchWalk::new(one, series, range);
    let mut b = StretchWalk::new(other, series, range);
    loop {
        let (Some(x), Some(y)) = (a.head(metrics)?, b.head(metrics)?) else {
            return Ok(shared);
        };
        if x.series != y.series {
            let behind = if x.series < y.series { &mut a } else { &mut b };
            behind.skip_to(x.series.max(y.series));
            continue;
        }
        if x.range.overlaps(y.range) && have_common(a.times(metrics)?, b.times(metrics)?) {
            shared.insert(x.series.0);
            let Some(next) = x.series.0.checked_add(1) else {
                return Ok(shared);
            };
            a.skip_to(SeriesId(next));
            b.skip_to(SeriesId(next));
        } else if x.range.max <= y.range.max {
            a.next();
        } else {
            b.next();
        }
    }
}

/// Adjacent rows of one series in a source.
#[derive(Clone, Copy, Debug)]
struct SeriesStretch {
    series: SeriesId,
    /// First and last time.
    range: TimeRange,
}

/// A walk through a source, stretch by stretch.
struct StretchWalk<'a> {
    source: &'a MergeSource,
    scope: MergeScope,
    groups: VecDeque<(usize, SeriesId)>,
    group: usize,
    pages: VecDeque<PagePlan>,
    /// The spans of the current row group, or of all rows in memory.
    spans: Vec<PageSpan>,
    /// The next span, and the end of the current page's spans.
    at: usize,
    end: usize,
    times: Option<ScalarBuffer<i64>>,
}

impl<'a> StretchWalk<'a> {
    fn new(source: &'a MergeSource, series: &Arc<RoaringBitmap>, range: TimeRange) -> Self {
        let wanted =
            |first: SeriesId, last: SeriesId| series.range_cardinality(first.0..=last.0) > 0;
        let groups = source.row_groups();
        let groups = groups
            .filter(|(_, group)| {
                group.range.overlaps(range) && wanted(group.series_min, group.series_max)
            })
            .map(|(at, group)| (at, group.series_max));
        let options = MergeOptions {
            range,
            series: Some(Arc::clone(series)),
            ..MergeOptions::all(Vec::new(), 0)
        };
        let mut walk = Self {
            source,
            groups: groups.collect(),
            scope: MergeScope::new(options, SourceExtents::default()),
            group: 0,
            pages: VecDeque::new(),
            spans: Vec::new(),
            at: 0,
            end: 0,
            times: None,
        };
        if let Some((_, rows)) = source.in_memory() {
            let runs = page_plan::selected_runs(&rows.runs, Some(series));
            walk.spans = runs
                .map(|(run, start)| PageSpan {
                    series: run.series,
                    start,
                    end: start + run.rows,
                })
                .collect();
            walk.end = walk.spans.len();
            walk.times = Some(rows.times.clone());
        }
        walk
    }

    /// The next stretch; `None` at the end.
    fn head(&mut self, metrics: &ScanMetrics) -> Result<Option<SeriesStretch>> {
        while self.at == self.end && self.open()? {}
        let Some(span) = self.spans.get(self.at).filter(|_| self.at < self.end) else {
            return Ok(None);
        };
        let span = *span;
        if let Some(page) = self.pages.front().filter(|_| self.times.is_none()) {
            // All rows of the page: the page's times are these rows' times, and need no decoding.
            if span.start == 0 && span.end == page.rows {
                return Ok(Some(SeriesStretch {
                    series: span.series,
                    range: page.range,
                }));
            }
        }
        let times = self.times(metrics)?;
        let (min, max) = (times.first(), times.last());
        Ok(min.zip(max).map(|(min, max)| SeriesStretch {
            series: span.series,
            range: TimeRange {
                min: *min,
                max: *max,
            },
        }))
    }

    /// Opens the next page or row group; `false` if there is none.
    fn open(&mut self) -> Result<bool> {
        let SourceData::Segment(segment, _) = &self.source.data else {
            return Ok(false);
        };
        self.times = None;
        if self.end > 0 {
            self.pages.pop_front();
        }
        if let Some(page) = self.pages.front() {
            (self.at, self.end) = (page.spans.start, page.spans.end);
            return Ok(true);
        }
        (self.at, self.end) = (0, 0);
        let Some((group, _)) = self.groups.pop_front() else {
            return Ok(false);
        };
        let plan = page_plan::plan(segment, group, (0, self.source.space()), &self.scope)?;
        let RowGroupPlan { pages, spans } = plan;
        (self.group, self.pages, self.spans) = (group, pages.into(), spans);
        if let Some(page) = self.pages.front() {
            (self.at, self.end) = (page.spans.start, page.spans.end);
        }
        Ok(true)
    }

    /// The times of the next stretch.
    fn times(&mut self, metrics: &ScanMetrics) -> Result<&[i64]> {
        let span = self.spans[self.at];
        if self.times.is_none()
            && let SourceData::Segment(segment, _) = &self.source.data
            && let Some(page) = self.pages.front()
        {
            self.times = Some(page_read::times(
                segment,
                self.group,
                page,
                &(0..page.rows),
            )?);
            metrics.add_page(page.bytes);
        }
        let times: &[i64] = self.times.as_deref().unwrap_or_default();
        Ok(times
            .get(span.start as usize..span.end as usize)
            .unwrap_or_default())
    }

    fn next(&mut self) {
        self.at += 1;
    }

    /// Skips everything before `series`, within what is loaded.
    fn skip_to(&mut self, series: SeriesId) {
        if self.at == self.end {
            return;
        }
        let ahead = &self.spans[self.at..self.end];
        self.at += ahead.partition_point(|span| span.series < series);
        if self.at == self.end && !self.pages.is_empty() {
            let spans = &self.spans;
            let last = |page: &PagePlan| spans[page.spans.end - 1].series;
            // The current page stays in front: the walk counts from it.
            while self.pages.len() > 1 && last(&self.pages[1]) < series {
                self.pages.remove(1);
            }
            if self.pages.len() == 1 {
                while self.groups.front().is_some_and(|(_, max)| *max < series) {
                    self.groups.pop_front();
                }
            }
        }
    }
}

/// Whether two ascending lists have a common time.
fn have_common(one: &[i64], other: &[i64]) -> bool {
    let (first, last) = (one.first().max(other.first()), one.last().min(other.last()));
    let (Some(first), Some(last)) = (first, last) else {
        return false;
    };
    let within = |times: &[i64]| {
        let start = times.partition_point(|time| time < first);
        start..times.partition_point(|time| time <= last)
    };
    let (short, long) = match (one.get(within(one)), other.get(within(other))) {
        (Some(one), Some(other)) if one.len() <= other.len() => (one, other),
        (Some(one), Some(other)) => (other, one),
        _ => return false,
    };
    if short.len() * SEARCH_RATIO < long.len() {
        let mut rest = long;
        return short.iter().any(|time| {
            let before = rest.partition_point(|other| other < time);
            rest = &rest[before..];
            rest.first() == Some(time)
        });
    }
    let (mut at, mut other_at, mut common) = (0, 0, false);
    // Branch-free: which list advances is unpredictable, and mispredictions are expensive.
    while at < short.len() && other_at < long.len() {
        let (time, other) = (short[at], long[other_at]);
        common |= time == other;
        at += usize::from(time <= other);
        other_at += usize::from(other <= time);
    }
    common
}
