//! A table as one query sees it: one version of every shard.
//!
//! A snapshot holds files and chunks, but no locks. Writers share the series index and the
//! last-value cache, which are only locked while they are read, never while rows stream.

use crate::error::Result;
use crate::filter::{SeriesSelection, TagFilter};
use crate::last_values::LastValues;
use crate::memory::MemoryAccountant;
use crate::scan::{
    self, EdgeRequest, ReducePartition, ScanMetrics, ScanPartition, ScanRequest, ShardScan,
};
use crate::text::BATCH_TEXT_BYTES;
use crate::view::ShardView;
use arrow_array::{ArrayRef, new_empty_array};
use marigram_model::{ColumnId, SeriesId, SortedRows, TableSchema, TimeRange};
use marigram_segment::SegmentColumn;
use marigram_series_index::{RetiredSeriesPin, SeriesIndex};
use parking_lot::{Mutex, RwLock};
use roaring::RoaringBitmap;
use std::collections::HashMap;
use std::sync::Arc;

/// A table as one query sees it: one version of every shard. Cheap to clone; holds files, but no
/// locks.
#[derive(Clone, Debug)]
pub struct TableSnapshot(Arc<ShardSelection>);

#[derive(Debug)]
struct ShardSelection {
    schema: Arc<TableSchema>,
    views: Vec<ShardView>,
    series: Vec<Arc<RwLock<SeriesIndex>>>,
    last: Vec<Arc<Mutex<LastValues>>>,
    memory: Arc<MemoryAccountant>,
    /// Series that are retired from now on stay readable.
    _pins: Vec<RetiredSeriesPin>,
}

impl TableSnapshot {
    /// A snapshot of a table, with views, series indexes and last-value caches by shard.
    pub(crate) fn new(
        schema: Arc<TableSchema>,
        views: Vec<ShardView>,
        series: Vec<Arc<RwLock<SeriesIndex>>>,
        last: Vec<Arc<Mutex<LastValues>>>,
        memory: Arc<MemoryAccountant>,
    ) -> Self {
        let pins = series.iter().map(|index| index.read().pin()).collect();
        Self(Arc::new(ShardSelection {
            _pins: pins,
            schema,
            views,
            series,
            last,
            memory,
        }))
    }

    /// The table's schema.
    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.0.schema
    }

    /// What the snapshot contains of each shard.
    pub fn views(&self) -> &[ShardView] {
        &self.0.views
    }

    /// The series that meet `filter`.
    pub fn select(&self, filter: &TagFilter) -> SeriesSelection {
        let table = self.0.schema.id;
        let shards = self.0.series.iter();
        SeriesSelection {
            shards: shards
                .map(|index| filter.evaluate(table, &index.read()))
                .collect(),
        }
    }

    /// Number of series.
    pub fn series_total(&self) -> u64 {
        let table = self.0.schema.id;
        let shards = self.0.series.iter();
        shards.map(|index| index.read().count(table)).sum()
    }

    /// The series that meet `filter`, except those whose rows were all deleted, and those that the
    /// last-value cache knows to be empty.
    pub fn list(&self, filter: &TagFilter) -> SeriesSelection {
        let mut selection = self.select(filter);
        let caches = self.0.series.iter().zip(&self.0.last);
        for (series, (index, last)) in selection.shards.iter_mut().zip(caches) {
            *series -= index.read().retired();
            let empty = last.lock().empty_among(series);
            *series -= empty;
        }
        selection
    }

    /// Values of a tag for series of a shard, one per entry, in `TagType::data_type`; null for a
    /// series without one. Empty for a tag or shard that does not exist.
    pub fn tag_values(&self, shard: usize, series: &[SeriesId], tag: u16) -> ArrayRef {
        let Some(column) = self.0.schema.tags.get(usize::from(tag)) else {
            return new_empty_array(&marigram_model::TagType::String.data_type());
        };
        match self.0.series.get(shard) {
            Some(index) => index.read().tag_values(series, tag, column.kind),
            None => new_empty_array(&column.kind.data_type()),
        }
    }

    /// The most rows there can be (ignoring overwrites and deletes), and their time range, only
    /// from metadata. For a segment with several tables whose footer cannot be read, all rows and
    /// times count.
    pub fn estimate(&self) -> (u64, TimeRange) {
        let mut rows = 0;
        let mut range = TimeRange { min: 0, max: -1 };
        for view in &self.0.views {
            for open in &view.segments {
                // For a segment with a single table, the manifest has everything needed here.
                let shared = open.meta.tables.len() > 1;
                let Some(segment) = shared.then(|| open.segment().ok()).flatten() else {
                    rows += open.meta.rows;
                    range = range.union(open.meta.range);
                    continue;
                };
                if let Some(whole) = segment.whole(self.0.schema.id) {
                    rows += whole.rows;
                    range = range.union(whole.range);
                }
            }
            for chunk in &view.chunks {
                rows += chunk.rows() as u64;
                range = range.union(chunk.range());
            }
        }
        (rows, range)
    }

    /// The accountant that scans of the snapshot use.
    pub fn memory(&self) -> &Arc<MemoryAccountant> {
        &self.0.memory
    }

    /// Starts a scan.
    ///
    /// # Errors
    /// `Invalid` for a field that the table lacks; damage or I/O errors in what must be read to
    /// plan the scan.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the partitions share the metrics"
    )]
    pub fn scan(
        &self,
        request: &ScanRequest,
        metrics: Arc<ScanMetrics>,
    ) -> Result<Vec<ScanPartition>> {
        let columns = self.columns(&request.columns)?;
        let shards = self.shard_scans(request, &metrics)?;
        scan::partitions(shards, &columns, request, &self.0.memory, &metrics)
    }

    /// Starts a scan for an aggregation; ignores `limit` in the request.
    ///
    /// # Errors
    /// As [`scan`](Self::scan).
    pub fn reduce(
        &self,
        request: &ScanRequest,
        metrics: &Arc<ScanMetrics>,
    ) -> Result<Vec<ReducePartition>> {
        let columns = self.columns(&request.columns)?;
        let shards = self.shard_scans(request, metrics)?;
        scan::reduce_partitions(shards, &columns, request, &self.0.memory, metrics)
    }

    fn shard_scans(&self, request: &ScanRequest, metrics: &ScanMetrics) -> Result<Vec<ShardScan>> {
        let table = self.0.schema.id;
        ScanMetrics::add(&metrics.series_total, self.series_total());
        let views = self.0.views.iter();
        views
            .map(|view| ShardScan::new(view, table, request, metrics))
            .collect()
    }

    /// The newest row of each selected series (time and all fields as of that time), from the
    /// last-value cache. Series that are not in the cache are read once and then cached, as far as
    /// there is memory. Returns rows per shard, sorted by series, in consecutive batches.
    ///
    /// # Errors
    /// `Invalid` for a field that the table lacks; damage or I/O errors if storage is read.
    pub fn last_rows(
        &self,
        selection: &SeriesSelection,
        columns: &[ColumnId],
    ) -> Result<Vec<(usize, SortedRows)>> {
        let columns = self.columns(columns)?;
        let shards = self.0.views.iter().filter_map(|view| {
            let series = selection
                .shards
                .get(view.shard)
                .filter(|series| !series.is_empty())?;
            Some((view, series))
        });
        let mut all = Vec::new();
        for (view, series) in shards {
            let rows = self.last_rows_of(view, series, &columns)?;
            all.extend(rows.into_iter().map(|rows| (view.shard, rows)));
        }
        Ok(all)
    }

    /// The first or last rows of each series that a request selects, by shard, in batches that are each
    /// sorted by series and time. There may be more rows than were asked for. Ends early, with what was
    /// found, once `proceed` is false; it is asked before each batch that is read.
    ///
    /// # Errors
    /// As [`last_rows`](Self::last_rows).
    pub fn edge_rows(
        &self,
        request: &EdgeRequest,
        proceed: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<(usize, SortedRows)>> {
        let columns = self.columns(&request.columns)?;
        let (table, memory) = (self.0.schema.id, &self.0.memory);
        let mut all = Vec::new();
        for view in &self.0.views {
            let rows = scan::edge_rows(view, table, (request, &columns), memory, proceed)?;
            all.extend(rows.into_iter().map(|rows| (view.shard, rows)));
        }
        Ok(all)
    }

    /// Whether [`last_rows`](Self::last_rows) would currently find everything in the cache.
    pub fn knows_last_rows(&self, selection: &SeriesSelection) -> bool {
        let table = self.0.schema.id;
        self.0.views.iter().all(|view| {
            let series = selection.shards.get(view.shard);
            series.is_none_or(|series| {
                let last = self.0.last.get(view.shard);
                last.is_some_and(|last| last.lock().knows(table, view.sequence, series))
            })
        })
    }

    /// The times of the newest rows of series in a shard, as far as they are cached: `None` for a
    /// series without rows. Reads nothing; series that are not known are not in the answer.
    pub(crate) fn cached_times(
        &self,
        shard: usize,
        series: &RoaringBitmap,
    ) -> HashMap<u32, Option<i64>> {
        let view = self.0.views.iter().find(|view| view.shard == shard);
        let (Some(view), Some(last)) = (view, self.0.last.get(shard)) else {
            return HashMap::new();
        };
        let table = self.0.schema.id;
        let known = last.lock().cached_rows(table, view.sequence, series, &[]);
        let without = (series - &known.unknown).into_iter().map(|id| (id, None));
        let mut times: HashMap<u32, Option<i64>> = without.collect();
        for rows in &known.rows {
            let newest = rows.runs.iter().zip(rows.times.iter());
            times.extend(newest.map(|(run, time)| (run.series.0, Some(*time))));
        }
        times
    }

    fn last_rows_of(
        &self,
        view: &ShardView,
        series: &RoaringBitmap,
        columns: &[SegmentColumn],
    ) -> Result<Vec<SortedRows>> {
        let (table, memory) = (self.0.schema.id, &self.0.memory);
        let Some(last) = self.0.last.get(view.shard) else {
            return scan::newest_rows(view, table, series, columns, memory);
        };
        let known = last
            .lock()
            .cached_rows(table, view.sequence, series, columns);
        if known.unknown.is_empty() {
            return Ok(known.rows);
        }
        // All fields are read, so that the whole row can be cached.
        let fields = self.0.schema.fields.iter();
        let all: Vec<SegmentColumn> = fields
            .map(|field| SegmentColumn {
                id: field.id,
                kind: field.kind,
            })
            .collect();
        let mut read = scan::newest_rows(view, table, &known.unknown, &all, memory)?;
        let mut asked = known.unknown;
        for rows in &read {
            let end = rows.runs.last().map_or(u32::MAX, |run| run.series.0);
            let mut beyond = asked.clone();
            beyond.remove_range(..=end);
            asked.remove_range(end.saturating_add(1)..);
            last.lock().learn(table, view.sequence, &asked, rows, &all);
            asked = beyond;
        }
        if !asked.is_empty() {
            let none = SortedRows {
                runs: Vec::new(),
                times: Vec::new().into(),
                columns: all.iter().map(|column| column.kind.nulls(0)).collect(),
            };
            last.lock().learn(table, view.sequence, &asked, &none, &all);
        }
        let place = |column: &SegmentColumn| all.iter().position(|own| own == column);
        for rows in &mut read {
            rows.columns = columns
                .iter()
                .filter_map(place)
                .map(|at| rows.columns[at].clone())
                .collect();
        }
        let mut batches = known.rows;
        batches.extend(read);
        Ok(scan::combine(&batches, BATCH_TEXT_BYTES))
    }

    fn columns(&self, ids: &[ColumnId]) -> Result<Vec<SegmentColumn>> {
        let schema = &self.0.schema;
        ids.iter()
            .map(|id| {
                let field = schema.field_by_id(*id).ok_or_else(|| {
                    let name = &schema.name;
                    let reason = format!("table '{name}' has no field with the number {id}");
                    crate::error::EngineError::Invalid(reason)
                })?;
                Ok(SegmentColumn {
                    id: field.id,
                    kind: field.kind,
                })
            })
            .collect()
    }
}
