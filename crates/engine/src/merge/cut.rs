//! Cuts rows to the requested times and removes those that tombstones cover.

use super::page_plan::{PagePlan, PageSpan};
use super::page_read::{self, PageWindow};
use crate::error::Result;
use arrow_buffer::ScalarBuffer;
use marigram_manifest::Tombstone;
use marigram_model::TimeRange;
use marigram_segment::Segment;
use std::sync::Arc;

/// The remaining rows of a page.
pub(super) struct RemainingRows {
    /// The window of rows that were read; columns need only these.
    pub(super) place: PageWindow,
    /// Their times.
    pub(super) times: ScalarBuffer<i64>,
    /// Which of them remain, by number.
    pub(super) spans: Vec<PageSpan>,
}

/// The tombstones that may cover rows of `range`.
pub(super) fn touching(tombstones: &[Arc<Tombstone>], range: TimeRange) -> Vec<Arc<Tombstone>> {
    let touching = tombstones.iter();
    let touching = touching.filter(|tombstone| tombstone.range.overlaps(range));
    touching.cloned().collect()
}

/// Reads the times of a page in row group `group`, of which the rows `spans` are requested.
///
/// # Errors
/// Damage or I/O errors of the page.
pub(super) fn read_cut(
    segment: &Segment,
    group: usize,
    plan: &PagePlan,
    spans: &[PageSpan],
    range: TimeRange,
    tombstones: &[Arc<Tombstone>],
) -> Result<RemainingRows> {
    let (window, times) = page_read::times_within(segment, group, plan, spans, range)?;
    let place = PageWindow::new(plan, window);
    let spans = spans.iter().map(|span| span.within(&place.window));
    if tombstones.is_empty() && range.covers(plan.range) {
        let spans = spans.collect();
        return Ok(RemainingRows {
            place,
            times,
            spans,
        });
    }
    let spans = cut(spans, &times, range, tombstones);
    let left = page_read::window(&spans, place.window.len() as u32);
    Ok(RemainingRows {
        place: place.narrowed(&left),
        times: times.slice(left.start as usize, left.len()),
        spans: spans.iter().map(|span| span.within(&left)).collect(),
    })
}

/// The parts of `spans` inside `range` and outside of all `tombstones`.
pub(super) fn cut(
    spans: impl Iterator<Item = PageSpan>,
    times: &[i64],
    range: TimeRange,
    tombstones: &[Arc<Tombstone>],
) -> Vec<PageSpan> {
    let mut left = Vec::new();
    let mut pieces = Vec::new();
    let mut remaining = Vec::new();
    for span in spans {
        let row = |from: PageSpan, time: i64, included: bool| {
            let ahead = &times[from.start as usize..from.end as usize];
            let rows = ahead.partition_point(|at| *at < time || (included && *at == time));
            from.start + rows as u32
        };
        let start = row(span, range.min, false);
        let within = PageSpan {
            start,
            end: row(span, range.max, true).max(start),
            ..span
        };
        pieces.clear();
        pieces.push(within);
        for tombstone in tombstones {
            remaining.clear();
            for piece in &pieces {
                let mut rest = *piece;
                for deleted in tombstone.ranges_of(span.series, range_of(rest, times)) {
                    let first = row(rest, deleted.min, false);
                    let behind = row(rest, deleted.max, true).max(first);
                    remaining.push(PageSpan { end: first, ..rest });
                    rest.start = behind;
                }
                remaining.push(rest);
            }
            remaining.retain(|piece| piece.start < piece.end);
            std::mem::swap(&mut pieces, &mut remaining);
        }
        left.extend(pieces.iter().filter(|piece| piece.start < piece.end));
    }
    left
}

/// The times of a span's rows, which ascend; empty without rows.
fn range_of(span: PageSpan, times: &[i64]) -> TimeRange {
    match times.get(span.start as usize..span.end as usize) {
        Some([min, .., max]) => TimeRange {
            min: *min,
            max: *max,
        },
        Some([time]) => TimeRange {
            min: *time,
            max: *time,
        },
        _ => TimeRange { min: 0, max: -1 },
    }
}
