//! Whole pages: whether the cursor covers all rows of the next page, and how it takes the page
//! without decoding it.

use super::SourceCursor;
use crate::error::Result;
use crate::merge::copy::{CopyRule, WholePage};
use crate::merge::key::RowKey;
use crate::merge::page_plan::{PagePlan, PageSpan};
use crate::merge::scope::MergeScope;
use crate::merge::source::SourceData;
use marigram_manifest::Tombstone;
use marigram_model::SeriesRun;
use marigram_segment::Segment;
use std::sync::Arc;

impl SourceCursor {
    /// If the next page is whole and `rule` allows to copy it: a key that none of its rows is
    /// after.
    pub(in crate::merge) fn whole_page_end(
        &self,
        scope: &MergeScope,
        rule: &CopyRule,
    ) -> Result<Option<RowKey>> {
        let SourceData::Segment(segment, _) = &self.source.data else {
            return Ok(None);
        };
        let (page, spans, rows, end) = match (&self.page, self.pages.front()) {
            (Some(page), _) => {
                let untouched = page.whole && page.at == 0 && page.row == page.spans[0].start;
                let Some(time) = page.times.last().filter(|_| untouched) else {
                    return Ok(None);
                };
                (page.place.page, &page.spans[..], page.times.len(), *time)
            }
            (None, Some(plan)) => {
                let spans = &self.spans[plan.spans.clone()];
                if !are_all(spans, plan.rows as usize) || self.is_cut(plan, spans, scope) {
                    return Ok(None);
                }
                (plan.page, spans, plan.rows as usize, plan.range.max)
            }
            (None, None) => return Ok(None),
        };
        let full = rows >= *rule.rows.start() as usize
            || largest_bytes(segment, self.group, page, scope)? >= rule.bytes_min;
        let suits = full
            && rows <= *rule.rows.end() as usize
            && segment.row_groups()[self.group].columns == scope.columns
            && rule.suits(segment, self.group, page, &scope.columns)?;
        Ok(spans
            .last()
            .filter(|_| suits)
            .map(|last| RowKey::new(last.series, end)))
    }

    /// Whether the requested times or tombstones may exclude rows of a page.
    fn is_cut(&self, plan: &PagePlan, spans: &[PageSpan], scope: &MergeScope) -> bool {
        let touches = |tombstone: &Arc<Tombstone>| {
            let mut series = spans.iter().map(|span| span.series);
            series.any(|series| tombstone.ranges_of(series, plan.range).next().is_some())
        };
        !scope.range.covers(plan.range) || self.source.tombstones.iter().any(touches)
    }

    /// Takes the page that [`whole_page_end`](Self::whole_page_end) reported.
    pub(in crate::merge) fn take_page(&mut self) -> Option<WholePage> {
        let SourceData::Segment(segment, _) = &self.source.data else {
            return None;
        };
        let segment = segment.clone();
        let (page, spans) = match self.page.take() {
            Some(page) => (page.place.page, page.spans),
            None => {
                let plan = self.pages.pop_front()?;
                (plan.page, self.spans[plan.spans].to_vec())
            }
        };
        let mut runs: Vec<SeriesRun> = Vec::with_capacity(spans.len());
        for span in spans {
            let rows = span.end - span.start;
            match runs.last_mut() {
                // A tombstone between two rows of a series splits a span without removing rows.
                Some(run) if run.series == span.series => run.rows += rows,
                _ => runs.push(SeriesRun {
                    series: span.series,
                    rows,
                }),
            }
        }
        Some(WholePage {
            segment,
            group: self.group,
            page,
            runs,
        })
    }
}

/// Encoded bytes of a page in its largest column.
fn largest_bytes(segment: &Segment, group: usize, page: usize, scope: &MergeScope) -> Result<u32> {
    let mut largest = 0;
    for column in &scope.columns {
        let metas = segment.pages(group, column.id)?;
        let meta = metas.as_ref().and_then(|metas| metas.get(page));
        largest = largest.max(meta.map_or(0, |meta| meta.bytes));
    }
    Ok(largest)
}

/// Whether `spans`, which do not overlap, cover this many rows.
pub(super) fn are_all(spans: &[PageSpan], rows: usize) -> bool {
    let counted = spans.iter().map(|span| (span.end - span.start) as usize);
    counted.sum::<usize>() == rows
}
