//! All row groups of a table in a segment as one, for queries that need all of them.

use crate::layout::RowGroup;
use crate::stats::PageStats;
use marigram_model::{ColumnId, SeriesId, TableId, TimeRange};
use std::sync::{Arc, OnceLock};

/// See the head of this file.
#[derive(Debug)]
pub struct WholeTable {
    /// The table.
    pub table: TableId,
    /// Rows.
    pub rows: u64,
    /// Lowest series.
    pub series_min: SeriesId,
    /// Highest series.
    pub series_max: SeriesId,
    /// First and last time.
    pub range: TimeRange,
    /// Pages of times.
    pub(crate) pages: OnceLock<u64>,
    /// Statistics of each column that a row group has.
    totals: Vec<(ColumnId, OnceLock<Arc<PageStats>>)>,
}

impl WholeTable {
    /// Of a segment's row groups, by table.
    pub(crate) fn all(groups: &[RowGroup]) -> Vec<Self> {
        let of_tables = groups.chunk_by(|one, other| one.table == other.table);
        of_tables.filter_map(Self::from_groups).collect()
    }

    /// Of all row groups of a table; `None` where there are none.
    fn from_groups(groups: &[RowGroup]) -> Option<Self> {
        let first = groups.first()?;
        let mut columns: Vec<ColumnId> = groups
            .iter()
            .flat_map(|group| group.columns.iter().map(|column| column.id))
            .collect();
        columns.sort_unstable();
        columns.dedup();
        let union = |range: TimeRange, group: &RowGroup| range.union(group.range);
        let series_min = groups.iter().map(|group| group.series_min).min()?;
        let series_max = groups.iter().map(|group| group.series_max).max()?;
        Some(Self {
            table: first.table,
            rows: groups.iter().map(|group| u64::from(group.rows)).sum(),
            series_min,
            series_max,
            range: groups.iter().fold(first.range, union),
            pages: OnceLock::new(),
            totals: columns
                .into_iter()
                .map(|column| (column, OnceLock::new()))
                .collect(),
        })
    }

    /// Where the statistics of a column are kept; `None` where no row group has it.
    pub(crate) fn totals(&self, column: ColumnId) -> Option<&OnceLock<Arc<PageStats>>> {
        let at = self.totals.binary_search_by_key(&column, |(id, _)| *id);
        Some(&self.totals.get(at.ok()?)?.1)
    }

    /// Memory in use, bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let known = self
            .totals
            .iter()
            .filter(|(_, known)| known.get().is_some());
        size_of::<Self>() + size_of_val(&*self.totals) + known.count() * size_of::<PageStats>()
    }
}
