//! The first or last rows of each series of a table, straight from the engine: from its last-value cache
//! where one row of each suffices, otherwise from that end of time, series by series.

use super::measurement::{MeasurementRequest, MeasurementRows, NeededFields, ReadColumn};
use super::tag_filter::tag_filter;
use crate::budget::Budget;
use crate::point::Row;
use arrow::array::{ArrayRef, RecordBatchOptions, TimestampNanosecondArray};
use arrow::compute::{
    SortColumn, SortOptions, cast, concat_batches, lexsort_to_indices, take_record_batch,
};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;
use datafusion::common::DataFusionError;
use datafusion::execution::session_state::SessionState;
use marigram_engine::{EdgeRequest, Engine, SeriesSelection, TableSnapshot, TagFilter};
use marigram_model::{ColumnId, SeriesId, SortedRows, TableSchema, TimeRange};
use marigram_sql::SqlResult;
use std::sync::Arc;

/// Of more rows of each series, windows of the whole table are read.
const SERIES_ROWS_MAX: u64 = 1_000;
/// The most rows that are read like this.
const ROWS_MAX: u64 = 200_000;
/// The most series of which rows are read.
const SERIES_MAX: u64 = 100_000;
/// The same if all are one group, of which few series have the first rows.
const SERIES_OF_ONE_GROUP_MAX: u64 = 1_024;

/// The first `rows_max` rows of each series of a request, in its order of reading, and possibly more of
/// them; `None` if they should be read otherwise.
pub(super) fn edge_rows(
    (engine, state, budget): (&Engine, &Arc<SessionState>, &Budget),
    request: &MeasurementRequest,
    rows_max: u64,
) -> SqlResult<Option<Vec<Row>>> {
    let table = &request.measurement.table;
    let filter = match &request.condition {
        None => Some(TagFilter::All),
        Some(condition) => tag_filter(condition, &request.measurement),
    };
    let Some(filter) = filter.filter(|_| request.filters.is_empty()) else {
        return Ok(None);
    };
    let snapshot = engine.snapshot(&table.database, &table.name)?;
    let selection = snapshot.select(&filter);
    let series_max = if request.keys.is_empty() {
        SERIES_OF_ONE_GROUP_MAX
    } else {
        SERIES_MAX
    };
    let is_few = selection.len() <= series_max
        && rows_max <= SERIES_ROWS_MAX
        && selection.len().saturating_mul(rows_max) <= ROWS_MAX;
    if !is_few {
        return Ok(None);
    }
    let unfiltered = MeasurementRequest {
        condition: None,
        ..request.clone()
    };
    let mut rows = MeasurementRows::new(Arc::clone(state), unfiltered);
    let needed = rows.needed_fields();
    if request.needs != NeededFields::None && needed.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let edge = EdgeColumns::new(table, rows.read_columns(), &needed);
    let found = edge.find((&snapshot, budget), selection, request, rows_max)?;
    let mut batches = Vec::with_capacity(found.len());
    for (shard, part) in found {
        budget.check_interrupt()?;
        if !part.is_empty() {
            let batch = edge.batch((&snapshot, shard), &part, rows.read_columns(), request)?;
            batches.push(batch);
        }
    }
    let Some(first) = batches.first() else {
        return Ok(Some(Vec::new()));
    };
    let all = concat_batches(&first.schema(), &batches).map_err(DataFusionError::from)?;
    let mut rows = rows.rows(&ordered(&all, request)?)?;
    let (min, max) = request.range;
    rows.retain(|row| (min..=max).contains(&row.time));
    Ok(Some(rows))
}

/// The fields that are read of the engine, and how they become columns.
struct EdgeColumns {
    ids: Vec<ColumnId>,
    /// The index in `ids` of each column that is read, if it is a field.
    places: Vec<Option<usize>>,
    present: Vec<usize>,
}

impl EdgeColumns {
    fn new(table: &TableSchema, read: &[ReadColumn], needed: &[usize]) -> Self {
        let (mut ids, mut places): (Vec<ColumnId>, Vec<Option<usize>>) = Default::default();
        for column in read {
            let field = match column {
                ReadColumn::Field { name, .. } => table.field(name),
                ReadColumn::Tag { .. } | ReadColumn::Absent(_) => None,
            };
            places.push(field.map(|field| {
                let known = ids.iter().position(|id| *id == field.id);
                known.unwrap_or_else(|| {
                    ids.push(field.id);
                    ids.len() - 1
                })
            }));
        }
        let needed = needed.iter().filter_map(|place| *places.get(*place)?);
        let present = needed.collect();
        Self {
            ids,
            places,
            present,
        }
    }

    /// The rows, by shard.
    fn find(
        &self,
        (snapshot, budget): (&TableSnapshot, &Budget),
        mut selection: SeriesSelection,
        request: &MeasurementRequest,
        rows_max: u64,
    ) -> SqlResult<Vec<(usize, SortedRows)>> {
        let (min, max) = request.range;
        let newest = !request.ascending;
        let mut found = Vec::new();
        // What is cached is of no use before the newest rows.
        if newest && rows_max == 1 && snapshot.estimate().1.max <= max {
            found = snapshot.last_rows(&selection, &self.ids)?;
            let shards = std::iter::repeat_with(Default::default).take(selection.shards.len());
            let mut left = SeriesSelection {
                shards: shards.collect(),
            };
            for (shard, rows) in &found {
                for (row, run) in rows.runs.iter().enumerate() {
                    let has_value = |column: &usize| rows.columns[*column].is_valid(row);
                    let suffices = self.present.is_empty() || self.present.iter().any(has_value);
                    if !suffices && rows.times[row] >= min {
                        left.shards[*shard].insert(run.series.0);
                    }
                }
            }
            // A series without a row in the answer has none.
            selection = left;
        }
        let edge = EdgeRequest {
            selection,
            range: TimeRange { min, max },
            columns: self.ids.clone(),
            present: self.present.clone(),
            rows: usize::try_from(rows_max).unwrap_or(usize::MAX),
            newest,
        };
        let mut stopped = Ok(());
        let read = snapshot.edge_rows(&edge, &mut || {
            stopped = budget.check_interrupt();
            stopped.is_ok()
        });
        stopped?;
        found.extend(read?);
        Ok(found)
    }

    /// The columns that [`MeasurementRows`] reads, and `g0` onwards for the table's tags.
    fn batch(
        &self,
        (snapshot, shard): (&TableSnapshot, usize),
        rows: &SortedRows,
        read: &[ReadColumn],
        request: &MeasurementRequest,
    ) -> SqlResult<RecordBatch> {
        let table = &request.measurement.table;
        let series = rows.runs.iter();
        let series = series.flat_map(|run| std::iter::repeat_n(run.series, run.rows as usize));
        let series: Vec<SeriesId> = series.collect();
        let mut tags: Vec<ArrayRef> = Vec::with_capacity(table.tags.len());
        for ordinal in 0..table.tags.len() {
            let values = snapshot.tag_values(shard, &series, ordinal as u16);
            tags.push(cast(&values, &DataType::Utf8).map_err(DataFusionError::from)?);
        }
        let times = TimestampNanosecondArray::from(rows.times.to_vec());
        let mut columns: Vec<(String, ArrayRef)> = vec![("t".into(), Arc::new(times))];
        for (ordinal, tag) in tags.iter().enumerate() {
            columns.push((format!("g{ordinal}"), Arc::clone(tag)));
        }
        for (place, key) in request.keys.iter().enumerate() {
            if let Some((ordinal, _)) = table.tag(key) {
                columns.push((format!("k{place}"), Arc::clone(&tags[usize::from(ordinal)])));
            }
        }
        for (place, column) in read.iter().enumerate() {
            let values = match (column, self.places[place]) {
                (_, Some(field)) => Some(Arc::clone(&rows.columns[field])),
                (ReadColumn::Tag { name, .. }, None) => {
                    let tag = table.tag(name);
                    tag.map(|(ordinal, _)| Arc::clone(&tags[usize::from(ordinal)]))
                }
                _ => None,
            };
            columns.extend(values.map(|values| (format!("c{place}"), values)));
        }
        let fields = columns.iter();
        let fields =
            fields.map(|(name, values)| Field::new(name, values.data_type().clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let columns = columns.into_iter().map(|(_, values)| values).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        let batch = RecordBatch::try_new_with_options(schema, columns, &options);
        Ok(batch.map_err(DataFusionError::from)?)
    }
}

/// The rows in the order of reading: by the tags that order the answer, by time, and by all other tags.
fn ordered(batch: &RecordBatch, request: &MeasurementRequest) -> SqlResult<RecordBatch> {
    let table = &request.measurement.table;
    let options = Some(SortOptions {
        descending: !request.ascending,
        nulls_first: request.ascending,
    });
    let place = |key: &Arc<str>| table.tag(key).map(|(ordinal, _)| usize::from(ordinal));
    let before: Vec<usize> = request.order.iter().filter_map(place).collect();
    let after = (0..table.tags.len()).filter(|tag| !before.contains(tag));
    let mut after: Vec<usize> = after.collect();
    after.sort_by_key(|tag| &*table.tags[*tag].name);
    let before = before.into_iter().map(|tag| format!("g{tag}"));
    let after = after.into_iter().map(|tag| format!("g{tag}"));
    let names = before.chain(["t".to_owned()]).chain(after);
    let columns = names.filter_map(|name| batch.column_by_name(&name).cloned());
    let columns = columns.map(|values| SortColumn { values, options });
    let columns: Vec<SortColumn> = columns.collect();
    let order = lexsort_to_indices(&columns, None).map_err(DataFusionError::from)?;
    Ok(take_record_batch(batch, &order).map_err(DataFusionError::from)?)
}
