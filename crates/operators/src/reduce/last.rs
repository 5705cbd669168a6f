//! The last rows of series, from the last-value cache, for aggregates that need nothing else.

use super::groups::{SeriesGroups, batch_of};
use super::recipe::{AggregateRecipe, CallSource, FoldArgument, RecipeKey};
use super::worker::AggregateWorker;
use crate::scan::external;
use arrow::array::{Array, ArrayRef, TimestampNanosecondArray, UInt32Array};
use arrow::compute::{cast, concat, take};
use arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::execution::memory_pool::MemoryReservation;
use marigram_engine::{PageReducer, PageRows, RowSpan, ScanRequest, TableSnapshot};
use marigram_model::{SortedRows, TimeRange};
use roaring::RoaringBitmap;
use std::sync::Arc;

/// The last row of each of some series of a shard.
#[derive(Debug)]
pub(super) struct LastRows {
    /// The shard.
    pub shard: usize,
    /// The series whose last rows suffice.
    pub series: RoaringBitmap,
    rows: SortedRows,
    spans: Vec<RowSpan>,
}

impl LastRows {
    /// The last rows of the series of `request`. Afterwards, `request` only contains the series
    /// whose last rows do not suffice, because a field is null in them, or because they are after
    /// the requested times.
    ///
    /// The engine's errors.
    pub(super) fn find(
        recipe: &AggregateRecipe,
        snapshot: &TableSnapshot,
        request: &mut ScanRequest,
    ) -> Result<Vec<Self>> {
        let found = snapshot.last_rows(&request.selection, &request.columns);
        let mut left = vec![RoaringBitmap::new(); request.selection.shards.len()];
        let mut all = Vec::new();
        for (shard, rows) in found.map_err(external)? {
            let matters = (0..rows.columns.len()).filter(|column| !recipe.takes_nulls(*column));
            let matters = matters.map(|column| &rows.columns[column]);
            let matters: Vec<&ArrayRef> =
                matters.filter(|column| column.null_count() > 0).collect();
            let mut spans = Vec::with_capacity(rows.runs.len());
            for (row, run) in rows.runs.iter().enumerate() {
                let time = rows.times[row];
                let unknown = matters.iter().any(|column| column.is_null(row));
                if time > request.range.max || (unknown && time >= request.range.min) {
                    if let Some(left) = left.get_mut(shard) {
                        left.insert(run.series.0);
                    }
                } else if time >= request.range.min {
                    spans.push(RowSpan {
                        series: run.series,
                        start: row as u32,
                        end: row as u32 + 1,
                    });
                }
            }
            let asked = request.selection.shards.get(shard);
            let asked = asked.filter(|asked| asked.len() == spans.len() as u64);
            let told = || spans.iter().map(|span: &RowSpan| span.series.0);
            all.push(Self {
                shard,
                series: asked.cloned().unwrap_or_else(|| told().collect()),
                rows,
                spans,
            });
        }
        request.selection.shards = left;
        all.retain(|rows| !rows.spans.is_empty());
        Ok(all)
    }

    /// A column, reduced to the rows that suffice.
    fn column(&self, values: &ArrayRef) -> Result<ArrayRef> {
        if self.spans.len() == values.len() {
            return Ok(Arc::clone(values));
        }
        let places: UInt32Array = self.spans.iter().map(|span| span.start).collect();
        Ok(take(values, &places, None)?)
    }

    fn times(&self) -> ArrayRef {
        let times = self.spans.iter();
        let times = times.map(|span| self.rows.times[span.start as usize]);
        Arc::new(TimestampNanosecondArray::from_iter_values(times))
    }

    /// Passes the rows to a worker.
    ///
    /// # Errors
    /// The worker's errors.
    pub(super) fn show(&self, worker: &mut AggregateWorker) -> Result<()> {
        let times = self.spans.iter();
        let times = times.map(|span| self.rows.times[span.start as usize]);
        let (Some(min), Some(max)) = (times.clone().min(), times.max()) else {
            return Ok(());
        };
        let columns: Vec<Option<ArrayRef>> = self.rows.columns.iter().cloned().map(Some).collect();
        let rows = PageRows {
            spans: &self.spans,
            range: TimeRange { min, max },
            times: &self.rows.times,
            steps: None,
            rows: self.rows.len(),
            columns: &columns,
        };
        worker.rows(rows).map_err(|failed| failed.0)
    }
}

/// The result if each row is a group by itself, so that nothing needs to be aggregated: the columns
/// as the cache returned them. `None` if some rows share a group.
///
/// # Errors
/// `ResourcesExhausted` if `held` cannot be made large enough; Arrow's errors for columns that do
/// not match.
pub(super) fn answer(
    recipe: &AggregateRecipe,
    all: &[LastRows],
    groups: &SeriesGroups,
    held: &mut MemoryReservation,
) -> Result<Option<RecordBatch>> {
    let rows: usize = all.iter().map(|rows| rows.spans.len()).sum();
    if rows == 0 || rows != groups.count || recipe.tags.is_none() {
        return Ok(None);
    }
    let columns = all.iter().flat_map(|rows| &rows.rows.columns);
    let columns = columns.chain(&groups.keys);
    let bytes: usize = columns.map(Array::get_array_memory_size).sum();
    let times = rows * size_of::<i64>();
    // The rows from the cache, the result, and the sorted result.
    held.try_grow(3 * (bytes + times))?;
    let fields = recipe.schema.fields();
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(fields.len());
    for key in &recipe.keys {
        let RecipeKey::Tags(place) = key else {
            return Ok(None);
        };
        // Groups are numbered in the order of their first series.
        columns.push(Arc::clone(&groups.keys[*place]));
    }
    for from in &recipe.answers {
        let column = match from {
            CallSource::Key(key) => Arc::clone(&columns[*key]),
            CallSource::Fold(fold, _) => {
                let parts = all.iter().map(|rows| match &recipe.folds[*fold].args[..] {
                    [FoldArgument::Field(place)] => rows.column(&rows.rows.columns[*place]),
                    _ => Ok(rows.times()),
                });
                let parts = parts.collect::<Result<Vec<_>>>()?;
                let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
                concat(&parts)?
            }
        };
        columns.push(column);
    }
    if let Some(sorted) = groups.ranks.sorted() {
        for column in &mut columns {
            *column = take(column, sorted, None)?;
        }
    }
    for (column, field) in columns.iter_mut().zip(fields) {
        if column.data_type() != field.data_type() {
            *column = cast(column, field.data_type())?;
        }
    }
    Ok(Some(batch_of(&recipe.schema, columns, rows)?))
}
