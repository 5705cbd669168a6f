//! The answer of one part of a query: groups of series, and their points.

use crate::annotations::ShownAnnotations;
use crate::group_in_work::{BatchInWork, GroupInWork, GroupSource, OrderedKeys, ordered_keys};
use crate::metric::{
    MetricColumns, column, filtered, metric_table, tag_conditions, time_conditions,
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
    CheckedQuery, GroupMerge, SERIES_KEY, STORED_FIELD, SeriesHead, SeriesPoint,
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
    /// The annotations that the answer shows.
    pub(crate) annotations: ShownAnnotations,
}

/// Points of a batch of the answer.
const BATCH_POINTS: usize = 4096;

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
        source: GroupSource {
            query: Arc::clone(query),
            keys: Arc::new(keys),
            description: part.description.clone(),
            shows_tsuids: part.shows_tsuids,
            annotations: part.annotations.clone(),
        },
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

/// A group that is complete.
struct MergingGroup {
    merge: GroupMerge,
    schema: Option<SchemaRef>,
    head: SeriesHead,
    held_bytes: usize,
}

struct SeriesGroupReader {
    source: GroupSource,
    rows: SendableRecordBatchStream,
    batch: Option<BatchInWork>,
    merging: Option<MergingGroup>,
    /// The number of the next group.
    number: u64,
    budget: Budget,
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
        let source = self.source.clone();
        let mut group = GroupInWork::new(&source);
        let mut is_complete = false;
        while !is_complete {
            if self.batch.is_none() && !self.next_batch().await? {
                break;
            }
            let Some(batch) = &mut self.batch else {
                break;
            };
            is_complete = group.read(batch, &self.budget)?;
            if batch.row >= batch.rows {
                self.batch = None;
            }
            group.reserve(&self.budget)?;
        }
        let Some(group) = group.finish(&self.budget)? else {
            return Ok(None);
        };
        let head = SeriesHead {
            number: self.number,
            ..group.head
        };
        self.number += 1;
        Ok(Some(MergingGroup {
            merge: GroupMerge::new(&source.query, group.series),
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
            let keys = &self.source.keys;
            self.batch = Some(BatchInWork {
                columns: MetricColumns::new(&batch, &keys.columns, keys.names.len())?,
                row: 0,
                rows: batch.num_rows(),
            });
            return Ok(true);
        }
        Ok(false)
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
