//! The physical scan of a table: one output partition a part of the engine's scan.
//!
//! The engine's scan is synchronous. Each step of it (a few batches) runs on a thread for blocking
//! work, one step ahead of the reader; no thread waits for a slow reader, and a reader that goes
//! away ends the scan after the step under way.

use crate::error::SqlError;
use crate::rows::{Source, to_batch};
use arrow::array::Array;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{ColumnStatistics, DataFusionError, Result, ScalarValue, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet,
};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
    ReplaceChildrenOptions,
};
use futures::Stream;
use marigram_engine::{
    EngineError, Held, Holder, ScanMetrics, ScanPartition, ScanRequest, TableSnapshot,
};
use marigram_model::TimeRange;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::task::JoinHandle;

/// Most batches of one step, and bytes after which it ends before.
const STEP_BATCHES_MAX: usize = 8;
const STEP_BYTES_MAX: usize = 4 << 20;

/// A scan of the series and times that a query asks for.
#[derive(Debug)]
pub struct SeriesScan {
    snapshot: Arc<TableSnapshot>,
    request: ScanRequest,
    schema: SchemaRef,
    sources: Arc<[Source]>,
    /// Whether only the predicates' own rows come, so that the estimate is an upper bound.
    description: String,
    partitions: Mutex<Vec<Option<ScanPartition>>>,
    rows_max: u64,
    range: TimeRange,
    counts: Arc<ScanMetrics>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl SeriesScan {
    /// Prepares the scan. `sources` say what the columns of `schema` are; `description` goes to
    /// EXPLAIN.
    ///
    /// # Errors
    /// The engine's.
    pub fn new(
        snapshot: Arc<TableSnapshot>,
        request: ScanRequest,
        schema: SchemaRef,
        sources: Vec<Source>,
        description: String,
    ) -> Result<Self> {
        let counts = Arc::new(ScanMetrics::default());
        let partitions = snapshot
            .scan(&request, Arc::clone(&counts))
            .map_err(external)?;
        let (rows, range) = snapshot.estimate();
        let total = snapshot
            .select(&marigram_engine::TagFilter::All)
            .len()
            .max(1);
        let selected = request.selection.len().min(total);
        let rows_max = (u128::from(rows) * u128::from(selected) / u128::from(total)) as u64;
        let mut equivalence = EquivalenceProperties::new(Arc::clone(&schema));
        let one_each = partitions
            .iter()
            .all(|partition| partition.series().len() <= 1);
        if let Some(place) = sources.iter().position(|source| *source == Source::Time)
            && one_each
        {
            let time = datafusion::physical_expr::expressions::Column::new(
                schema.field(place).name(),
                place,
            );
            equivalence.add_ordering([PhysicalSortExpr::new_default(Arc::new(time))]);
        }
        let partitioning = Partitioning::UnknownPartitioning(partitions.len().max(1));
        let properties = PlanProperties::new(
            equivalence,
            partitioning,
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let range = range.intersect(request.range);
        Ok(Self {
            snapshot,
            request,
            schema,
            sources: sources.into(),
            description,
            partitions: Mutex::new(partitions.into_iter().map(Some).collect()),
            rows_max,
            range,
            counts,
            metrics: ExecutionPlanMetricsSet::new(),
            properties: Arc::new(properties),
        })
    }

    /// What is read.
    pub fn request(&self) -> &ScanRequest {
        &self.request
    }

    /// What the columns of the schema are.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// The version of the table that is read.
    pub fn snapshot(&self) -> &Arc<TableSnapshot> {
        &self.snapshot
    }

    /// Times between which rows may be.
    pub fn range(&self) -> TimeRange {
        self.range
    }

    /// What EXPLAIN says.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The engine's scan of a partition; made anew where a plan is executed once more.
    fn take(&self, partition: usize) -> Result<Option<ScanPartition>> {
        let mut partitions = self.partitions.lock();
        if partitions.is_empty() {
            return Ok(None);
        }
        let taken = partitions.get_mut(partition).and_then(Option::take);
        if taken.is_some() {
            return Ok(taken);
        }
        drop(partitions);
        let again = self
            .snapshot
            .scan(&self.request, Arc::clone(&self.counts))
            .map_err(external)?;
        Ok(again.into_iter().nth(partition))
    }
}

/// What a scan did, as EXPLAIN ANALYZE shows it.
pub fn counters(counts: &ScanMetrics) -> MetricsSet {
    let shown = ExecutionPlanMetricsSet::new();
    let counts: [(&'static str, &AtomicU64); 11] = [
        ("series_total", &counts.series_total),
        ("series_selected", &counts.series_selected),
        ("segments_total", &counts.segments_total),
        ("segments_pruned", &counts.segments_pruned),
        ("pages_total", &counts.pages_total),
        ("pages_pruned", &counts.pages_pruned),
        ("pages_answered", &counts.pages_answered),
        ("pages_read", &counts.pages_read),
        ("bytes_read", &counts.bytes_read),
        ("rows_merged", &counts.rows_merged),
        ("rows_returned", &counts.rows_returned),
    ];
    for (name, count) in counts {
        let count = usize::try_from(count.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
        MetricBuilder::new(&shown).global_counter(name).add(count);
    }
    shown.clone_inner()
}

/// An error of the engine as DataFusion's.
pub fn external(error: EngineError) -> DataFusionError {
    DataFusionError::External(Box::new(SqlError::Engine(error)))
}

impl DisplayAs for SeriesScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SeriesScan: {}", self.description)
    }
}

impl ExecutionPlan for SeriesScan {
    fn name(&self) -> &'static str {
        "SeriesScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let reader = self.take(partition)?.map(|partition| Reader {
            partition,
            schema: Arc::clone(&self.schema),
            sources: Arc::clone(&self.sources),
            snapshot: Arc::clone(&self.snapshot),
            batches_next: 1,
            rows_left: self.request.limit.unwrap_or(usize::MAX),
            baseline,
        });
        let stream = read_ahead(reader);
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            stream,
        )))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        let mut all = self.metrics.clone_inner();
        for metric in counters(&self.counts).iter() {
            all.push(Arc::clone(metric));
        }
        Some(all)
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.schema);
        if args.partition().is_some() {
            return Ok(Arc::new(statistics));
        }
        let rows = usize::try_from(self.rows_max).unwrap_or(usize::MAX);
        statistics.num_rows = Precision::Inexact(rows);
        let time = self
            .sources
            .iter()
            .position(|source| *source == Source::Time);
        if let Some(place) = time
            && !self.range.is_empty()
        {
            let scalar = |ns| Precision::Inexact(ScalarValue::TimestampNanosecond(Some(ns), None));
            statistics.column_statistics[place] = ColumnStatistics::new_unknown()
                .with_null_count(Precision::Exact(0))
                .with_min_value(scalar(self.range.min))
                .with_max_value(scalar(self.range.max));
        }
        Ok(Arc::new(statistics))
    }
}

/// What reads a partition; goes from step to step.
struct Reader {
    partition: ScanPartition,
    schema: SchemaRef,
    sources: Arc<[Source]>,
    snapshot: Arc<TableSnapshot>,
    batches_next: usize,
    rows_left: usize,
    baseline: BaselineMetrics,
}

/// What a step gives: batches, and the reader where there may be more.
struct Step {
    batches: VecDeque<(Result<RecordBatch>, Held)>,
    reader: Option<Reader>,
}

impl Reader {
    /// Bytes of a batch that waits for its reader, counted: the pages that it may share memory
    /// with are given back already.
    fn held(&self, bytes: usize) -> Held {
        Held::counted(self.snapshot.memory(), Holder::Scan, bytes)
    }

    /// Reads a few batches: one at first, so that the first rows come soon, then more.
    fn step(mut self) -> Step {
        let compute = self.baseline.elapsed_compute().clone();
        let _timer = compute.timer();
        let mut batches = VecDeque::with_capacity(self.batches_next);
        let shard = self.partition.shard();
        let mut bytes = 0;
        while batches.len() < self.batches_next && bytes < STEP_BYTES_MAX && self.rows_left > 0 {
            let rows = match self.partition.next_rows() {
                Ok(Some(rows)) => rows,
                Ok(None) => {
                    return Step {
                        batches,
                        reader: None,
                    };
                }
                Err(error) => {
                    batches.push_back((Err(external(error)), self.held(0)));
                    return Step {
                        batches,
                        reader: None,
                    };
                }
            };
            if rows.is_empty() {
                continue;
            }
            let batch = to_batch(rows, &self.schema, &self.sources, &self.snapshot, shard);
            let batch = batch.map_err(DataFusionError::from).map(|batch| {
                let len = batch.num_rows().min(self.rows_left);
                self.rows_left -= len;
                self.baseline.record_output(len);
                batch.slice(0, len)
            });
            let failed = batch.is_err();
            let batch_bytes = batch.as_ref().map_or(0, bytes_of);
            bytes += batch_bytes;
            batches.push_back((batch, self.held(batch_bytes)));
            if failed {
                return Step {
                    batches,
                    reader: None,
                };
            }
        }
        self.batches_next = (self.batches_next * 2).min(STEP_BATCHES_MAX);
        let reader = (self.rows_left > 0).then_some(self);
        Step { batches, reader }
    }
}

/// Bytes of a batch's own rows: not of the larger buffers that its arrays may be slices of.
fn bytes_of(batch: &RecordBatch) -> usize {
    let columns = batch.columns().iter().map(|values| {
        let sliced = values.to_data().get_slice_memory_size();
        sliced.unwrap_or_else(|_| values.get_array_memory_size())
    });
    columns.sum()
}

struct ReadAhead {
    ready: VecDeque<(Result<RecordBatch>, Held)>,
    running: Option<JoinHandle<Step>>,
    first: Option<Reader>,
}

fn start(reader: Reader) -> JoinHandle<Step> {
    tokio::task::spawn_blocking(move || reader.step())
}

fn read_ahead(reader: Option<Reader>) -> impl Stream<Item = Result<RecordBatch>> + Send {
    let state = ReadAhead {
        ready: VecDeque::new(),
        running: None,
        first: reader,
    };
    futures::stream::unfold(state, |mut state| async move {
        if let Some(reader) = state.first.take() {
            state.running = Some(start(reader));
        }
        loop {
            // From here on the batch is its reader's.
            if let Some((batch, _)) = state.ready.pop_front() {
                return Some((batch, state));
            }
            let step = match state.running.take()?.await {
                Ok(step) => step,
                Err(error) => {
                    let failed = DataFusionError::ExecutionJoin(Box::new(error));
                    return Some((Err(failed), state));
                }
            };
            state.ready = step.batches;
            state.running = step.reader.map(start);
        }
    })
}
