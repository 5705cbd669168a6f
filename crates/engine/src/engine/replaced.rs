//! Counts the rows of a batch that take the place of stored ones.
//!
//! Rows that are newer than everything stored cost a look at the time ranges of segments and chunks,
//! and rows that are newer than the cached last row of their series cost a look into that cache. For
//! the others, the times of their series in their range of time are read, up to a bound.

use super::Engine;
use crate::error::Result;
use crate::filter::SeriesSelection;
use crate::scan::{ScanMetrics, ScanRequest};
use crate::snapshot::TableSnapshot;
use marigram_model::{BatchTag, TableSchema, TagKey, TimeRange, WriteBatch};
use marigram_series_index::SeriesIndex;
use roaring::RoaringBitmap;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Rows of a batch that take the place of stored ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplacedCount {
    /// Rows of the batch, ascending, with the time and the tags of a stored row.
    pub rows: Vec<u32>,
    /// Whether more stored rows would have had to be read than allowed, so that there may be more.
    pub is_partial: bool,
    /// Stored rows that were read.
    pub scanned: u64,
}

/// Rows of a scan's batch.
const BATCH_ROWS: usize = 8192;

impl Engine {
    /// The rows of `batch`, which is not written yet, that will take the place of stored ones. At
    /// most about `scanned_max` stored rows are read.
    ///
    /// # Errors
    /// If there is no such table, or what must be read is damaged.
    pub fn replaced_by(
        &self,
        database: &str,
        batch: &WriteBatch,
        scanned_max: u64,
    ) -> Result<ReplacedCount> {
        let snapshot = self.snapshot(database, &batch.table)?;
        let sources = stored_ranges(&snapshot);
        let meets = |time: i64| {
            let next = sources.partition_point(|range| range.max < time);
            sources.get(next).is_some_and(|range| range.min <= time)
        };
        let rows = batch.times.iter().enumerate();
        let candidates: Vec<usize> = rows
            .filter(|(_, time)| meets(**time))
            .map(|(row, _)| row)
            .collect();
        if candidates.is_empty() {
            return Ok(ReplacedCount::default());
        }
        let indexes: Vec<_> = self.inner().indexes.clone();
        let slots = slot_series(snapshot.schema(), batch, &indexes);
        let mut asked = vec![RoaringBitmap::new(); indexes.len()];
        for (shard, series) in slots.iter().flatten() {
            asked[*shard].insert(*series);
        }
        let newest: Vec<_> = asked
            .iter()
            .enumerate()
            .map(|(shard, series)| snapshot.cached_times(shard, series))
            .collect();
        let mut wanted: HashMap<(usize, u32), HashMap<i64, Vec<u32>>> = HashMap::new();
        let mut selection = SeriesSelection {
            shards: vec![RoaringBitmap::new(); indexes.len()],
        };
        let mut range: Option<TimeRange> = None;
        for row in candidates {
            let Some((shard, series)) = slots[batch.slots[row] as usize] else {
                continue;
            };
            let time = batch.times[row];
            let known = newest[shard].get(&series);
            if known.is_some_and(|newest| newest.is_none_or(|newest| newest < time)) {
                continue;
            }
            selection.shards[shard].insert(series);
            let one = TimeRange {
                min: time,
                max: time,
            };
            range = Some(range.map_or(one, |range| range.union(one)));
            let times = wanted.entry((shard, series)).or_default();
            times.entry(time).or_default().push(row as u32);
        }
        match range {
            // Starting a scan has a cost as well.
            Some(_) if scanned_max == 0 => Ok(ReplacedCount {
                is_partial: true,
                ..ReplacedCount::default()
            }),
            Some(range) => stored_rows(&snapshot, selection, range, &wanted, scanned_max),
            None => Ok(ReplacedCount::default()),
        }
    }
}

/// The times between which rows of the table are stored: disjoint ranges, ascending.
fn stored_ranges(snapshot: &TableSnapshot) -> Vec<TimeRange> {
    let views = snapshot.views().iter();
    let mut ranges: Vec<TimeRange> = views
        .flat_map(|view| {
            let segments = view.segments.iter().map(|segment| segment.meta.range);
            let chunks = view.chunks.iter().map(|chunk| chunk.range());
            segments.chain(chunks).collect::<Vec<_>>()
        })
        .collect();
    ranges.sort_unstable_by_key(|range| range.min);
    let mut disjoint: Vec<TimeRange> = Vec::new();
    for range in ranges {
        match disjoint.last_mut() {
            Some(last) if range.min <= last.max => *last = last.union(range),
            _ => disjoint.push(range),
        }
    }
    disjoint
}

/// The shard and number of the series of each slot, if it exists.
fn slot_series(
    schema: &TableSchema,
    batch: &WriteBatch,
    indexes: &[Arc<parking_lot::RwLock<SeriesIndex>>],
) -> Vec<Option<(usize, u32)>> {
    let mut tags: Vec<(u16, &BatchTag)> = batch
        .tags
        .iter()
        .filter_map(|tag| Some((schema.tag(&tag.name)?.0, tag)))
        .collect();
    tags.sort_by_key(|(ordinal, _)| *ordinal);
    let mut key = TagKey::default();
    (0..batch.slot_count)
        .map(|slot| {
            key.clear();
            for (ordinal, tag) in &tags {
                if let Some(value) = tag.value(slot) {
                    key.push(*ordinal, value);
                }
            }
            let hash = SeriesIndex::hash(schema.id, key.as_bytes());
            let shard = crate::route::shard_of(hash, indexes.len());
            let series = indexes[shard].read().get(schema.id, key.as_bytes(), hash)?;
            Some((shard, series.0))
        })
        .collect()
}

/// Which of the wanted rows are stored.
fn stored_rows(
    snapshot: &TableSnapshot,
    selection: SeriesSelection,
    range: TimeRange,
    wanted: &HashMap<(usize, u32), HashMap<i64, Vec<u32>>>,
    scanned_max: u64,
) -> Result<ReplacedCount> {
    let request = ScanRequest {
        selection,
        range,
        columns: Vec::new(),
        bounds: Vec::new(),
        batch_rows: BATCH_ROWS,
        partitions: 1,
        limit: None,
    };
    let (mut found, mut scanned, mut is_partial) = (HashSet::new(), 0_u64, false);
    'all: for mut partition in snapshot.scan(&request, Arc::new(ScanMetrics::default()))? {
        while let Some(rows) = partition.next_rows()? {
            if scanned >= scanned_max {
                is_partial = true;
                break 'all;
            }
            scanned += rows.len() as u64;
            let mut row = 0;
            for run in &rows.runs {
                let end = row + run.rows as usize;
                if let Some(times) = wanted.get(&(partition.shard(), run.series.0)) {
                    let met = rows.times[row..end]
                        .iter()
                        .filter_map(|time| times.get(time));
                    found.extend(met.flatten().copied());
                }
                row = end;
            }
        }
    }
    let mut rows: Vec<u32> = found.into_iter().collect();
    rows.sort_unstable();
    Ok(ReplacedCount {
        rows,
        is_partial,
        scanned,
    })
}
