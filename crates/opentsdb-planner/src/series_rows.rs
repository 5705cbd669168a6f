//! The answer of one part of a query: groups of series, and their points.

use crate::metric::{
    MetricColumns, PlanNames, column, filtered, metric_table, tag_conditions, time_conditions,
};
use crate::statement::OpenTsdbRun;
use arrow::array::{Float64Array, Int64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::common::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, SortExpr, cast};
use datafusion::physical_plan::execute_stream;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use marigram_influx::{Budget, scan_of};
use marigram_model::TableSchema;
use marigram_opentsdb::{
    Aggregator, CheckedQuery, GroupMerge, GroupTags, SERIES_KEY, STORED_FIELD, SeriesHead,
    SeriesPoint, SeriesReducer, series_uid,
};
use marigram_sql::front_end::StatementRows;
use marigram_sql::{SqlError, SqlResult};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// A part of a query, and what its answer shows beside the points.
pub(crate) struct QueryPart {
    /// The query.
    pub(crate) query: Arc<CheckedQuery>,
    /// The query as the answer repeats it.
    pub(crate) description: Option<Value>,
    /// Whether the answer shows the numbers of series.
    pub(crate) shows_tsuids: bool,
}

/// Points of a batch of the answer.
const BATCH_POINTS: usize = 4096;

/// Bytes that a series of a group holds beside its points.
const SERIES_BYTES: usize = 128;

/// Begins to read the groups of a query.
///
/// # Errors
/// If there is no such metric, or a filter is wrong.
pub(crate) async fn series_rows(
    run: &OpenTsdbRun<'_>,
    part: &QueryPart,
) -> SqlResult<StatementRows> {
    let query = &part.query;
    let table = metric_table(run, &query.metric)?;
    let Some(conditions) = tag_conditions(&table, &query.filters, query.explicit_tags)? else {
        return Ok(rows(stream::empty().boxed()));
    };
    let keys = ordered_keys(&table, query);
    let state = run.context.state(run.database())?;
    let plan = plan(&state, &table, query, conditions, &keys).await?;
    let plan = state.create_physical_plan(&plan).await?;
    let reading = SeriesGroupReader {
        query: Arc::clone(query),
        description: part.description.clone(),
        shows_tsuids: part.shows_tsuids,
        keys,
        rows: execute_stream(plan, state.task_ctx())?,
        batch: None,
        merging: None,
        number: 0,
        budget: run.budget.clone(),
    };
    let batches = stream::try_unfold(reading, |mut reading| async move {
        let batch = reading.next().await?;
        Ok::<_, SqlError>(batch.map(|batch| (batch, reading)))
    });
    Ok(rows(batches.boxed()))
}

fn rows(batches: BoxStream<'static, SqlResult<RecordBatch>>) -> StatementRows {
    StatementRows::Rows {
        schema: schema(None),
        batches,
    }
}

/// The columns of the answer, and the head of the group whose points they are.
fn schema(head: Option<&SeriesHead>) -> SchemaRef {
    let fields = vec![
        Field::new("time_ms", DataType::Int64, false),
        Field::new(STORED_FIELD, DataType::Float64, false),
    ];
    let mut metadata = HashMap::new();
    if let Some(head) = head {
        let text = serde_json::to_string(head).unwrap_or_default();
        metadata.insert(SERIES_KEY.to_owned(), text);
    }
    Arc::new(Schema::new_with_metadata(fields, metadata))
}

/// The tags of a table in the order in which its rows are read.
struct OrderedKeys {
    names: Vec<String>,
    columns: PlanNames,
    /// How many of them tell one group from another.
    grouping: usize,
}

fn ordered_keys(table: &TableSchema, query: &CheckedQuery) -> OrderedKeys {
    let mut names = query.group_keys();
    names.retain(|key| table.tag(key).is_some());
    let mut others: Vec<&str> = table.tags.iter().map(|tag| tag.name.as_str()).collect();
    others.retain(|key| !names.contains(key));
    others.sort_unstable();
    let grouping = match query.aggregator {
        Aggregator::None => names.len() + others.len(),
        _ => names.len(),
    };
    names.extend(others);
    OrderedKeys {
        names: names.into_iter().map(str::to_owned).collect(),
        columns: PlanNames::new(table),
        grouping,
    }
}

async fn plan(
    state: &SessionState,
    table: &TableSchema,
    query: &CheckedQuery,
    conditions: Vec<Expr>,
    keys: &OrderedKeys,
) -> SqlResult<LogicalPlan> {
    let times = time_conditions(table, query.read_range_ms());
    let conditions = times.into_iter().chain(conditions).collect();
    let rows = filtered(scan_of(state, table).await?, conditions)?;
    let names = &keys.columns;
    let mut shown = vec![
        column(&table.time_name).alias(names.time()),
        cast(column(STORED_FIELD), DataType::Float64).alias(names.value()),
    ];
    let mut order = Vec::new();
    for (place, key) in keys.names.iter().enumerate() {
        let sorted_by = names.sorted_tag(place);
        shown.push(column(key).alias(&sorted_by));
        shown.push(cast(column(key), DataType::Utf8).alias(names.tag(place)));
        order.push(SortExpr::new(column(&sorted_by), true, true));
    }
    order.push(SortExpr::new(column(&names.time()), true, true));
    // The order comes last: DataFusion keeps none that a projection stands above.
    Ok(rows.project(shown)?.sort(order)?.build()?)
}

/// A batch of rows, and how far it was read.
struct BatchInWork {
    columns: MetricColumns,
    row: usize,
    rows: usize,
}

/// A group that is complete.
struct MergingGroup {
    merge: GroupMerge,
    schema: Option<SchemaRef>,
    head: SeriesHead,
    held_bytes: usize,
}

struct SeriesGroupReader {
    query: Arc<CheckedQuery>,
    description: Option<Value>,
    shows_tsuids: bool,
    keys: OrderedKeys,
    rows: SendableRecordBatchStream,
    batch: Option<BatchInWork>,
    merging: Option<MergingGroup>,
    /// The number of the next group.
    number: u64,
    budget: Budget,
}

/// A group whose rows are being read.
struct GroupInWork<'a> {
    reducer: SeriesReducer<'a>,
    /// The tags of the series that is being read; none before the first one.
    tags: Option<Vec<Option<String>>>,
    points: Vec<SeriesPoint>,
    series: Vec<Vec<SeriesPoint>>,
    shared: GroupTags,
    tsuids: Option<Vec<String>>,
    /// Bytes of the series that are complete.
    series_bytes: usize,
    /// Bytes that are reserved.
    held_bytes: usize,
}

/// How the next row belongs to what is being read.
#[derive(PartialEq, Eq)]
enum RowStep {
    SameSeries,
    NextSeries,
    NextGroup,
}

impl SeriesGroupReader {
    /// The next points of a group; `None` after the last group.
    async fn next(&mut self) -> SqlResult<Option<RecordBatch>> {
        loop {
            if let Some(merging) = &mut self.merging {
                self.budget.check_interrupt()?;
                let mut points = Vec::new();
                let has_more = merging.merge.next_points(BATCH_POINTS, &mut points);
                let batch = merging.batch(&points)?;
                if !has_more {
                    self.budget.give(merging.held_bytes);
                    self.merging = None;
                }
                if batch.is_some() {
                    return Ok(batch);
                }
                continue;
            }
            match self.read_group().await? {
                Some(group) => self.merging = Some(group),
                None => return Ok(None),
            }
        }
    }

    /// Reads the rows of the next group.
    async fn read_group(&mut self) -> SqlResult<Option<MergingGroup>> {
        let query = Arc::clone(&self.query);
        let mut group = GroupInWork {
            reducer: SeriesReducer::new(&query),
            tags: None,
            points: Vec::new(),
            series: Vec::new(),
            shared: GroupTags::default(),
            tsuids: self.shows_tsuids.then(Vec::new),
            series_bytes: 0,
            held_bytes: 0,
        };
        let mut is_complete = false;
        while !is_complete {
            if self.batch.is_none() && !self.next_batch().await? {
                break;
            }
            let Some(batch) = &mut self.batch else {
                break;
            };
            is_complete = group.read((&query, &self.keys), batch, &self.budget)?;
            if batch.row >= batch.rows {
                self.batch = None;
            }
            group.reserve(&self.budget)?;
        }
        group.end_series((&query, &self.keys));
        group.reserve(&self.budget)?;
        if group.tags.is_none() {
            return Ok(None);
        }
        let (tags, aggregate_tags) = group.shared.into_parts();
        let head = SeriesHead {
            number: self.number,
            metric: query.metric.clone(),
            tags,
            aggregate_tags,
            tsuids: group.tsuids.map(|mut tsuids| {
                tsuids.sort();
                tsuids
            }),
            query: self.description.clone(),
            has_floats: query.has_floats(),
            shows_null: query.shows_null(),
        };
        self.number += 1;
        Ok(Some(MergingGroup {
            merge: GroupMerge::new(&query, group.series),
            schema: None,
            head,
            held_bytes: group.held_bytes,
        }))
    }

    async fn next_batch(&mut self) -> SqlResult<bool> {
        while let Some(batch) = self.rows.next().await {
            let batch = batch?;
            if batch.num_rows() == 0 {
                continue;
            }
            self.budget.check_interrupt()?;
            self.batch = Some(BatchInWork {
                columns: MetricColumns::new(&batch, &self.keys.columns, self.keys.names.len())?,
                row: 0,
                rows: batch.num_rows(),
            });
            return Ok(true);
        }
        Ok(false)
    }
}

impl GroupInWork<'_> {
    /// Reads rows of a batch; returns whether the next one belongs to another group.
    fn read(
        &mut self,
        of: (&CheckedQuery, &OrderedKeys),
        batch: &mut BatchInWork,
        budget: &Budget,
    ) -> SqlResult<bool> {
        let (columns, keys) = (&batch.columns, of.1);
        while batch.row < batch.rows {
            match self.step(keys, columns, batch.row) {
                RowStep::SameSeries => {}
                RowStep::NextGroup => return Ok(true),
                RowStep::NextSeries => {
                    self.end_series(of);
                    // A fill policy may make many points of one row.
                    self.reserve(budget)?;
                    let tags = (0..keys.names.len()).map(|place| columns.tag(place, batch.row));
                    self.tags = Some(tags.map(|tag| tag.map(str::to_owned)).collect());
                }
            }
            let (time_ms, value) = (columns.time_ms(batch.row), columns.value(batch.row));
            self.reducer.push(time_ms, value, &mut self.points);
            batch.row += 1;
        }
        Ok(false)
    }

    fn step(&self, keys: &OrderedKeys, columns: &MetricColumns, row: usize) -> RowStep {
        let Some(tags) = &self.tags else {
            return RowStep::NextSeries;
        };
        let mut places = tags.iter().enumerate();
        match places.find(|(place, tag)| tag.as_deref() != columns.tag(*place, row)) {
            None => RowStep::SameSeries,
            Some((place, _)) if place < keys.grouping => RowStep::NextGroup,
            Some(_) => RowStep::NextSeries,
        }
    }

    /// Ends the series that is being read, if there is one.
    fn end_series(&mut self, (query, keys): (&CheckedQuery, &OrderedKeys)) {
        let Some(tags) = &self.tags else {
            return;
        };
        self.reducer.finish(&mut self.points);
        let pairs = || {
            let pairs = keys.names.iter().zip(tags);
            pairs.filter_map(|(key, value)| Some((key.as_str(), value.as_deref()?)))
        };
        self.shared.add(pairs());
        if let Some(tsuids) = &mut self.tsuids {
            let tsuid = series_uid(&query.metric, pairs());
            self.series_bytes += tsuid.len();
            tsuids.push(tsuid);
        }
        let mut points = std::mem::take(&mut self.points);
        points.shrink_to_fit();
        self.series_bytes += SERIES_BYTES + points.len() * size_of::<SeriesPoint>();
        self.series.push(points);
    }

    /// Reserves the memory that the group holds now.
    fn reserve(&mut self, budget: &Budget) -> SqlResult<()> {
        let current = self.points.capacity() * size_of::<SeriesPoint>();
        let bytes = self.series_bytes + current + self.reducer.held_bytes();
        if bytes > self.held_bytes {
            budget.take(bytes - self.held_bytes);
            self.held_bytes = bytes;
        }
        budget.check()
    }
}

impl MergingGroup {
    /// Points as a batch; `None` if there are none.
    fn batch(&mut self, points: &[SeriesPoint]) -> SqlResult<Option<RecordBatch>> {
        if points.is_empty() {
            return Ok(None);
        }
        let head = &self.head;
        let schema = self.schema.get_or_insert_with(|| schema(Some(head)));
        let times = points.iter().map(|point| point.time_ms);
        let values = points.iter().map(|point| point.value);
        let batch = RecordBatch::try_new(
            Arc::clone(schema),
            vec![
                Arc::new(Int64Array::from_iter_values(times)),
                Arc::new(Float64Array::from_iter_values(values)),
            ],
        );
        Ok(Some(batch.map_err(DataFusionError::from)?))
    }
}
