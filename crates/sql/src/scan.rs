//! The physical scan of a table: one output partition a part of the engine's scan.
//!
//! The engine's scan is synchronous. Each step of it (a few batches) runs on a thread for blocking
//! work, one step ahead of the reader; no thread waits for a slow reader, and a reader that goes
//! away ends the scan after the step under way.

mod ahead;
mod newest;

pub use newest::NewestRows;

use crate::error::SqlError;
use crate::rows::Source;
use ahead::{Feed, Reader, read_ahead};
use arrow::datatypes::SchemaRef;
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
use marigram_engine::{EngineError, ScanMetrics, ScanPartition, ScanRequest, TableSnapshot};
use marigram_model::TimeRange;
use newest::Windows;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A scan of the series and times that a query asks for.
#[derive(Debug)]
pub struct SeriesScan {
    snapshot: Arc<TableSnapshot>,
    request: ScanRequest,
    schema: SchemaRef,
    sources: Arc<[Source]>,
    description: String,
    /// Of each partition, only so many of the newest rows are needed.
    newest: Option<usize>,
    partitions: Mutex<Vec<Option<ScanPartition>>>,
    rows_max: u64,
    range: TimeRange,
    counts: Arc<ScanMetrics>,
    /// Time in which the series were found, ns.
    selecting_ns: u64,
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
            newest: None,
            partitions: Mutex::new(partitions.into_iter().map(Some).collect()),
            rows_max,
            range,
            counts,
            selecting_ns: 0,
            metrics: ExecutionPlanMetricsSet::new(),
            properties: Arc::new(properties),
        })
    }

    /// The same scan, of which finding the series took so long, ns.
    pub fn selected_in(mut self, selecting_ns: u64) -> Self {
        self.selecting_ns = selecting_ns;
        self
    }

    /// The same scan of which only the `rows` newest rows are needed: there may be more, in no order.
    ///
    /// # Errors
    /// The engine's.
    pub fn newest(&self, rows: usize) -> Result<Self> {
        let partitions = self
            .snapshot
            .scan(&self.request, Arc::clone(&self.counts))
            .map_err(external)?;
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&self.schema)),
            self.properties.output_partitioning().clone(),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Self {
            snapshot: Arc::clone(&self.snapshot),
            request: self.request.clone(),
            schema: Arc::clone(&self.schema),
            sources: Arc::clone(&self.sources),
            description: format!("{}, newest={rows}", self.description),
            newest: Some(rows),
            partitions: Mutex::new(partitions.into_iter().map(Some).collect()),
            rows_max: self.rows_max,
            range: self.range,
            counts: Arc::clone(&self.counts),
            selecting_ns: self.selecting_ns,
            metrics: ExecutionPlanMetricsSet::new(),
            properties: Arc::new(properties),
        })
    }

    /// Where the rows of a partition come from.
    fn feed(&self, partition: ScanPartition) -> Feed {
        match self.newest {
            None => Feed::Whole(Box::new(partition)),
            Some(rows) => {
                let partitions = self.properties.partitioning.partition_count() as u64;
                let rows_max = (self.rows_max / partitions).max(1);
                let snapshot = Arc::clone(&self.snapshot);
                let counts = Arc::clone(&self.counts);
                let request = &self.request;
                Feed::Newest(Windows::new(
                    snapshot, counts, request, &partition, self.range, rows, rows_max,
                ))
            }
        }
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

    /// Time in which the series were found, ns.
    pub fn selecting_ns(&self) -> u64 {
        self.selecting_ns
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

/// Where the time went, as EXPLAIN ANALYZE shows it: stages beside those that a scan knows.
pub fn stages(counts: &ScanMetrics, others: &[(&'static str, u64)]) -> MetricsSet {
    let shown = ExecutionPlanMetricsSet::new();
    let load = |stage: &AtomicU64| stage.load(Ordering::Relaxed);
    let known = [
        ("time_planning", load(&counts.planning_ns)),
        ("time_reading", load(&counts.reading_ns)),
        ("time_merging", load(&counts.merging_ns)),
    ];
    for (name, ns) in others.iter().chain(&known) {
        let time = MetricBuilder::new(&shown).subset_time(*name, 0);
        time.add_duration(Duration::from_nanos(*ns));
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
            feed: self.feed(partition),
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
        let stages = stages(&self.counts, &[("time_selecting", self.selecting_ns)]);
        for metric in counters(&self.counts).iter().chain(stages.iter()) {
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
