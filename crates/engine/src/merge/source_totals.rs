//! Row groups, and a table's part of a segment, all of whose rows are requested, so that their
//! totals can be used.

use super::metrics::ScanMetrics;
use super::scope::MergeScope;
use crate::error::Result;
use marigram_manifest::Tombstone;
use marigram_model::{ColumnId, SeriesId, TableId, TimeRange};
use marigram_segment::{PageStats, Segment};
use std::sync::Arc;

/// See the module documentation.
pub(super) struct TotalsLot<'a> {
    pub(super) rows: u32,
    pub(super) range: TimeRange,
    segment: &'a Segment,
    table: TableId,
    /// A single row group of it.
    group: Option<usize>,
}

impl<'a> TotalsLot<'a> {
    /// A row group, or the table's part of the segment; `None` if not all its rows are requested,
    /// or some may be deleted.
    pub(super) fn asked(
        scope: &MergeScope,
        (segment, table): (&'a Segment, TableId),
        group: Option<usize>,
        tombstones: &[Arc<Tombstone>],
    ) -> Option<Self> {
        let (rows, series, range) = match group {
            Some(group) => {
                let meta = segment.row_groups().get(group)?;
                (meta.rows, (meta.series_min, meta.series_max), meta.range)
            }
            None => {
                let whole = segment.whole(table)?;
                // Statistics count nulls in 32 bits.
                let rows = u32::try_from(whole.rows).ok()?;
                (rows, (whole.series_min, whole.series_max), whole.range)
            }
        };
        let is_deleted = |tombstone: &Arc<Tombstone>| tombstone.range.overlaps(range);
        let is_whole = scope.range.covers(range)
            && scope.pruning.bounds.is_empty()
            && has_all(scope, series)
            && !tombstones.iter().any(is_deleted);
        is_whole.then_some(Self {
            rows,
            range,
            segment,
            table,
            group,
        })
    }

    /// Statistics of the requested columns.
    ///
    /// # Errors
    /// Damage or I/O errors of the indexes.
    pub(super) fn stats(&self, scope: &MergeScope) -> Result<Vec<Option<Arc<PageStats>>>> {
        let of = |column: ColumnId| match self.group {
            Some(group) => self.segment.totals(group, column),
            None => self.segment.whole_totals(self.table, column),
        };
        let find = || scope.columns.iter().map(|column| of(column.id)).collect();
        let found: Result<_, _> = scope.planning(find);
        Ok(found?)
    }

    /// Counts the pages as answered by `stats`.
    ///
    /// # Errors
    /// As [`stats`](Self::stats).
    pub(super) fn count(&self, scope: &MergeScope, stats: &[Option<&PageStats>]) -> Result<()> {
        let pages = match self.group {
            Some(group) => {
                let pages = self.segment.pages(group, ColumnId::TIME)?;
                pages.map_or(0, |pages| pages.len()) as u64
            }
            None => self.segment.whole_pages(self.table)?,
        };
        let width = 1 + stats.iter().flatten().count() as u64;
        ScanMetrics::add(&scope.metrics.pages_total, pages * width);
        scope.own.add_answered(pages * (1 + stats.len() as u64));
        Ok(())
    }
}

/// Whether all series from `first` to `last` are requested.
fn has_all(scope: &MergeScope, (first, last): (SeriesId, SeriesId)) -> bool {
    let series = scope.series.as_ref();
    series.is_none_or(|series| series.contains_range(first.0..=last.0))
}
