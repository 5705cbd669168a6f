//! Sources: where rows come from, which of two sources is newer, and which deletes apply to them.

use crate::chunk::Chunk;
use crate::error::Result;
use crate::shared_rows::{SharedRows, SharedSeries, SharedSource};
use crate::view::OpenSegment;
use arrow_array::ArrayRef;
use marigram_manifest::{SegmentSpace, Tombstone};
use marigram_model::{SeriesId, SeriesRun, SortedRows, TableId, TimeRange};
use marigram_segment::{RowGroup, Segment, SegmentColumn};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rows of one table in a chunk or a segment, with the tombstones that delete some of them.
#[derive(Clone, Debug)]
pub(crate) struct MergeSource {
    pub(super) data: SourceData,
    space: SegmentSpace,
    sequence_max: u64,
    /// Applicable tombstones: those of the same table that are newer than every row of the source.
    pub(super) tombstones: Vec<Arc<Tombstone>>,
    shared: SharedRowsState,
}

/// Where the rows that a source shares with others are recorded.
#[derive(Clone, Debug)]
enum SharedRowsState {
    Chunk(Arc<Chunk>),
    Segment(Arc<SharedRows>),
    #[cfg(test)]
    Nowhere,
}

/// The location of the rows.
#[derive(Clone, Debug)]
pub(super) enum SourceData {
    /// In memory, as one block.
    Chunk(Arc<Chunk>),
    /// On disk, in pages.
    Segment(Arc<Segment>, TableId),
    /// Plain rows, for tests that need no memtable.
    #[cfg(test)]
    Rows(Arc<(Vec<SegmentColumn>, SortedRows)>),
}

impl MergeSource {
    /// A chunk. It takes the applicable ones of `tombstones`.
    pub(crate) fn chunk(chunk: Arc<Chunk>, tombstones: &[Arc<Tombstone>]) -> Self {
        let space = if chunk.is_late() {
            SegmentSpace::Unsequence
        } else {
            SegmentSpace::Sequence
        };
        let sequence_max = chunk.sequence_max();
        let tombstones = applicable(tombstones, chunk.table(), sequence_max, chunk.range());
        Self {
            data: SourceData::Chunk(Arc::clone(&chunk)),
            space,
            sequence_max,
            tombstones,
            shared: SharedRowsState::Chunk(chunk),
        }
    }

    /// A table's rows in a segment. It takes the applicable ones of `tombstones`.
    ///
    /// # Errors
    /// If the segment cannot be opened.
    pub(crate) fn segment(
        segment: &OpenSegment,
        table: TableId,
        tombstones: &[Arc<Tombstone>],
    ) -> Result<Self> {
        let meta = &segment.meta;
        let (space, sequence_max) = (meta.space, meta.sequence_max);
        let tombstones = applicable(tombstones, table, sequence_max, meta.range);
        let data = SourceData::Segment(segment.segment()?, table);
        Ok(Self {
            data,
            space,
            sequence_max,
            tombstones,
            shared: SharedRowsState::Segment(Arc::clone(&segment.shared)),
        })
    }

    /// Plain rows.
    #[cfg(test)]
    pub(crate) fn rows(
        columns: Vec<SegmentColumn>,
        rows: SortedRows,
        space: SegmentSpace,
        sequence_max: u64,
        tombstones: &[Arc<Tombstone>],
    ) -> Self {
        let table = tombstones
            .first()
            .map_or(TableId(1), |tombstone| tombstone.table);
        let tombstones = applicable(tombstones, table, sequence_max, TimeRange::ALL);
        Self {
            data: SourceData::Rows(Arc::new((columns, rows))),
            space,
            sequence_max,
            tombstones,
            shared: SharedRowsState::Nowhere,
        }
    }

    /// Of two sources with the same (series, time), the one with the higher rank is newer.
    pub(super) fn rank(&self) -> (SegmentSpace, u64) {
        (self.space, self.sequence_max)
    }

    pub(super) fn space(&self) -> SegmentSpace {
        self.space
    }

    /// The table's row groups with their indexes, if the source is a segment.
    pub(crate) fn row_groups(&self) -> impl Iterator<Item = (usize, &RowGroup)> {
        let (groups, range): (&[RowGroup], _) = match &self.data {
            SourceData::Segment(segment, table) => {
                (segment.row_groups(), segment.row_groups_of(*table))
            }
            SourceData::Chunk(_) => (&[], 0..0),
            #[cfg(test)]
            SourceData::Rows(_) => (&[], 0..0),
        };
        range.filter_map(move |at| Some((at, groups.get(at)?)))
    }

    /// The columns and rows of a source in memory.
    pub(super) fn in_memory(&self) -> Option<(&[SegmentColumn], &SortedRows)> {
        match &self.data {
            SourceData::Chunk(chunk) => Some((chunk.columns(), chunk.sorted())),
            SourceData::Segment(..) => None,
            #[cfg(test)]
            SourceData::Rows(rows) => Some((&rows.0, &rows.1)),
        }
    }

    /// The columns of a source in memory; `None` for those that it lacks.
    pub(super) fn columns_in_memory(&self, wanted: &[SegmentColumn]) -> Vec<Option<ArrayRef>> {
        let Some((columns, rows)) = self.in_memory() else {
            return Vec::new();
        };
        let find = |column: &SegmentColumn| {
            let at = columns.iter().position(|own| own == column)?;
            rows.columns.get(at).cloned()
        };
        wanted.iter().map(find).collect()
    }

    /// Whether the source is a segment.
    pub(super) fn is_segment(&self) -> bool {
        matches!(self.data, SourceData::Segment(..))
    }

    /// Rows that a step processes at once: those of a chunk, which has no pages.
    pub(crate) fn rows_at_once(&self) -> usize {
        match &self.data {
            SourceData::Chunk(chunk) => chunk.rows(),
            SourceData::Segment(..) => 0,
            #[cfg(test)]
            SourceData::Rows(rows) => rows.1.len(),
        }
    }

    /// What is known about the rows that this source and `other`, of the same table, share.
    pub(super) fn found_with(&self, other: &Self) -> Arc<Mutex<SharedSeries>> {
        // In both directions, it is stored in the same place.
        let (keeper, other) = if self.rank() < other.rank() {
            (other, self)
        } else {
            (self, other)
        };
        let (thing, table): (SharedSource, TableId) = match &other.data {
            SourceData::Chunk(chunk) => (Arc::clone(chunk) as SharedSource, chunk.table()),
            SourceData::Segment(segment, table) => (Arc::clone(segment) as SharedSource, *table),
            #[cfg(test)]
            SourceData::Rows(_) => return Arc::default(),
        };
        match &keeper.shared {
            SharedRowsState::Chunk(chunk) => chunk.shared.with(&thing, table),
            SharedRowsState::Segment(shared) => shared.with(&thing, table),
            #[cfg(test)]
            SharedRowsState::Nowhere => Arc::default(),
        }
    }

    /// Series and times of the source's parts: its row groups, or the whole source if it is in
    /// memory. Parts in memory are not sorted for this, so their series range is the widest
    /// possible.
    pub(super) fn extents(&self) -> Vec<(SeriesId, SeriesId, TimeRange)> {
        let whole = |range| vec![(SeriesId(0), SeriesId(u32::MAX), range)];
        match &self.data {
            SourceData::Chunk(chunk) => whole(chunk.range()),
            SourceData::Segment(..) => self
                .row_groups()
                .map(|(_, group)| (group.series_min, group.series_max, group.range))
                .collect(),
            #[cfg(test)]
            SourceData::Rows(_) => whole(TimeRange::ALL),
        }
    }
}

/// Rows that count as evenly distributed over their series: first and last series, and number of
/// rows.
pub(crate) type EvenSeries = (u32, u32, u64);

impl MergeSource {
    /// Passes the rows of each of the source's parts to `count`: as the runs of its directory or,
    /// without `directories`, only as their number between two series.
    pub(crate) fn count_rows(
        &self,
        range: TimeRange,
        directories: bool,
        count: &mut dyn FnMut(&[SeriesRun], Option<EvenSeries>),
    ) -> Result<()> {
        if let Some((_, rows)) = self.in_memory() {
            count(&rows.runs, None);
        }
        let SourceData::Segment(segment, _) = &self.data else {
            return Ok(());
        };
        for (at, group) in self
            .row_groups()
            .filter(|(_, group)| group.range.overlaps(range))
        {
            if directories {
                count(&segment.directory(at)?, None);
            } else {
                let even = (
                    group.series_min.0,
                    group.series_max.0,
                    u64::from(group.rows),
                );
                count(&[], Some(even));
            }
        }
        Ok(())
    }
}

/// The union of the sources' columns, ascending by id.
pub(crate) fn columns_of(sources: &[MergeSource]) -> Vec<SegmentColumn> {
    let mut columns = BTreeMap::new();
    for source in sources {
        let in_memory = match &source.data {
            SourceData::Chunk(chunk) => chunk.columns(),
            SourceData::Segment(..) => &[],
            #[cfg(test)]
            SourceData::Rows(rows) => &rows.0,
        };
        let in_groups = source.row_groups().flat_map(|(_, group)| &group.columns);
        for column in in_memory.iter().chain(in_groups) {
            columns.insert(column.id, *column);
        }
    }
    columns.into_values().collect()
}

fn applicable(
    tombstones: &[Arc<Tombstone>],
    table: TableId,
    sequence_max: u64,
    range: TimeRange,
) -> Vec<Arc<Tombstone>> {
    let applies = |tombstone: &&Arc<Tombstone>| {
        tombstone.table == table
            && tombstone.sequence > sequence_max
            && tombstone.range.overlaps(range)
    };
    tombstones.iter().filter(applies).cloned().collect()
}
