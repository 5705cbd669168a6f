//! `/api/query/exp`: reads the metrics of a request, computes its expressions, and writes the outputs.

use crate::annotations::ShownAnnotations;
use crate::json_rows::{json_batch, json_schema};
use crate::series_rows::{QueryPart, series_rows};
use crate::statement::{OpenTsdbRun, invalid};
use arrow::array::AsArray;
use arrow::datatypes::{Float64Type, Int64Type};
use arrow::record_batch::RecordBatch;
use futures::StreamExt;
use futures::stream;
use marigram_influx::Budget;
use marigram_opentsdb::{
    CheckedExpressions, ExpressionHead, ExpressionJoin, ExpressionMetric, ExpressionOutput,
    JoinVariables, JoinedSeries, OutputWriter, SERIES_KEY, SeriesHead, SeriesPoint, SeriesSet,
};
use marigram_service::ServiceError;
use marigram_sql::front_end::StatementRows;
use marigram_sql::{SqlError, SqlResult};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::task::Poll;

/// Bytes of a piece of the answer.
const PIECE_BYTES: usize = 64 << 10;

/// Answers the request: the pieces of a text, the outputs with commas between them.
///
/// # Errors
/// If there is no such metric, a filter is wrong, a join leaves no series, or there is no memory.
pub(crate) async fn expressions(
    run: &OpenTsdbRun<'_>,
    query: &CheckedExpressions,
) -> SqlResult<StatementRows> {
    let mut variables = JoinVariables::default();
    let (mut metrics, mut tables) = (HashMap::new(), HashMap::new());
    for metric in &query.metrics {
        let series = Arc::new(read_metric(run, metric).await?);
        variables.add_metric(&metric.id, Arc::clone(&series), metric.fill);
        metrics.insert(metric.id.clone(), series);
    }
    for step in &query.steps {
        let (join, table) = ExpressionJoin::new(step, &variables).map_err(invalid)?;
        let table = Arc::new(computed(&run.budget, join, table).await?);
        variables.add_expression(&step.id, Arc::clone(&table), step.fill);
        tables.insert(step.id.clone(), table);
    }
    let writing = OutputsInWork {
        outputs: query.outputs.iter().cloned().collect(),
        metrics,
        tables,
        writer: None,
        has_output: false,
        budget: run.budget.clone(),
    };
    let batches = stream::try_unfold(writing, |mut writing| async move {
        let batch = writing.next().await?;
        Ok::<_, SqlError>(batch.map(|batch| (batch, writing)))
    });
    Ok(StatementRows::Rows {
        schema: json_schema(),
        batches: batches.boxed(),
    })
}

/// The outputs that are not written yet.
struct OutputsInWork {
    outputs: VecDeque<ExpressionOutput>,
    metrics: HashMap<String, Arc<SeriesSet>>,
    tables: HashMap<String, Arc<JoinedSeries>>,
    writer: Option<OutputWriter>,
    has_output: bool,
    budget: Budget,
}

impl OutputsInWork {
    /// The next piece of the answer.
    async fn next(&mut self) -> SqlResult<Option<RecordBatch>> {
        let mut text = String::new();
        while text.len() < PIECE_BYTES {
            if let Some(writer) = &mut self.writer {
                if !writer.write(PIECE_BYTES, &mut text) {
                    self.writer = None;
                }
                continue;
            }
            let Some(output) = self.outputs.pop_front() else {
                break;
            };
            let table = self.table(&output.id).await?;
            if std::mem::replace(&mut self.has_output, true) {
                text.push(',');
            }
            self.writer = Some(OutputWriter::new(output, table));
        }
        self.budget.check_interrupt()?;
        if text.is_empty() {
            return Ok(None);
        }
        Ok(Some(json_batch(vec![text])?))
    }

    /// The values of an output.
    async fn table(&mut self, id: &str) -> SqlResult<Arc<JoinedSeries>> {
        if let Some(table) = self.tables.get(id) {
            return Ok(Arc::clone(table));
        }
        let series = self.metrics.get(id).map(Arc::clone).unwrap_or_default();
        let (join, table) = ExpressionJoin::of_metric(series);
        let table = Arc::new(computed(&self.budget, join, table).await?);
        self.tables.insert(id.to_owned(), Arc::clone(&table));
        Ok(table)
    }
}

/// Computes all values of a table.
async fn computed(
    budget: &Budget,
    mut join: ExpressionJoin,
    mut table: JoinedSeries,
) -> SqlResult<JoinedSeries> {
    let heads: usize = table.heads.iter().map(ExpressionHead::held_bytes).sum();
    budget.keep(heads + join.held_bytes())?;
    let mut held = 0;
    loop {
        let has_more = join.next_rows(&mut table);
        let bytes = table.held_bytes();
        budget.keep(bytes.saturating_sub(held))?;
        held = bytes.max(held);
        budget.check_interrupt()?;
        if !has_more {
            budget.give(join.held_bytes());
            return Ok(table);
        }
        pause().await;
    }
}

/// Lets other work go on, and this one be stopped.
async fn pause() {
    let mut has_paused = false;
    futures::future::poll_fn(|context| {
        if std::mem::replace(&mut has_paused, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Reads the series of a metric.
async fn read_metric(run: &OpenTsdbRun<'_>, metric: &ExpressionMetric) -> SqlResult<SeriesSet> {
    let query = &metric.query;
    let part = QueryPart {
        query: Arc::new(query.clone()),
        description: None,
        shows_tsuids: false,
        annotations: ShownAnnotations::default(),
    };
    let filters = query.filters.iter();
    let mut set = SeriesSet {
        series: Vec::new(),
        query_keys: filters.map(|filter| filter.key.clone()).collect(),
    };
    let StatementRows::Rows { mut batches, .. } = series_rows(run, &part).await? else {
        return Ok(set);
    };
    let mut open = String::new();
    while let Some(batch) = batches.next().await {
        let batch = batch?;
        let schema = batch.schema();
        let text = schema.metadata().get(SERIES_KEY);
        let text = text.ok_or_else(|| wrong("an answer has no series"))?;
        if *text != open || set.series.is_empty() {
            open.clone_from(text);
            let head: SeriesHead =
                serde_json::from_str(text).map_err(|_| wrong("an answer has no series"))?;
            let head = ExpressionHead {
                metrics: BTreeSet::from([head.metric]),
                tags: head.tags,
                aggregate_tags: head.aggregate_tags.into_iter().collect(),
            };
            run.budget.keep(head.held_bytes())?;
            set.series.push((head, Vec::new()));
        }
        if let Some((_, points)) = set.series.last_mut() {
            let before = points.capacity();
            add_points(&batch, points)?;
            let grown = points.capacity() - before;
            run.budget.keep(grown * size_of::<SeriesPoint>())?;
        }
    }
    Ok(set)
}

fn wrong(what: &str) -> SqlError {
    ServiceError::Internal(what.to_owned()).into()
}

/// Adds the points of a batch.
fn add_points(batch: &RecordBatch, points: &mut Vec<SeriesPoint>) -> SqlResult<()> {
    let columns = match batch.columns() {
        [times, values] => times
            .as_primitive_opt::<Int64Type>()
            .zip(values.as_primitive_opt::<Float64Type>()),
        _ => None,
    };
    let (times, values) = columns.ok_or_else(|| wrong("an answer has no times and values"))?;
    let pairs = times.values().iter().zip(values.values());
    points.extend(pairs.map(|(time_ms, value)| SeriesPoint {
        time_ms: *time_ms,
        value: *value,
    }));
    Ok(())
}
