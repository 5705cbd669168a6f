//! The physical scan of a table: one output partition a part of the engine's scan.
//!
//! The engine's scan is synchronous. Each step of it (a few batches) runs on a thread for blocking
//! work, one step ahead of the reader; no thread waits for a slow reader, and a reader that goes
//! away ends the scan after the step under way.

mod newest;
mod placeholder;
mod read_ahead;

pub use newest::NewestRowsRule;
pub use placeholder::{ScanPlaceholder, fill_scan_placeholders, with_scan_placeholders};

use crate::rows::OutputColumnSource;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{ColumnStatistics, DataFusionError, Result, ScalarValue, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
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
use newest::TimeWindows;
use parking_lot::Mutex;
use read_ahead::{PartitionFeed, PartitionReader, read_ahead};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Of up to so many series, so many rows are read on the thread that polls the plan: in less time
/// than it takes to hand them over.
const INLINE_SERIES_MAX: u64 = 64;
const INLINE_ROWS: usize = 16 << 10;
/// Rows up to which the whole statement is carried out on the thread of who asks.
const SHORT_ROWS_MAX: u64 = 4096;

/// Rows below which a scan is not cut into partitions; an extension of the session's configuration.
#[derive(Clone, Copy, Debug)]
pub struct PartitionRows(pub usize);

/// The engine's partitions that are read as one.
type EnginePartitions = VecDeque<ScanPartition>;

/// A scan of the series and times that a query asks for. The engine's own is begun when it is
/// executed: many plans put another operator into its place.
#[derive(Debug)]
pub struct SeriesScan {
    snapshot: Arc<TableSnapshot>,
    request: ScanRequest,
    schema: SchemaRef,
    sources: Arc<[OutputColumnSource]>,
    description: String,
    /// Of each partition, only so many of the newest rows are needed.
    newest: Option<usize>,
    /// What was made and not taken yet; empty before the first execution.
    made: Mutex<Vec<Option<EnginePartitions>>>,
    rows_max: u64,
    /// About how many of them lie between the times that are asked for.
    rows_about: u64,
    range: TimeRange,
    counts: Arc<ScanMetrics>,
    /// Time in which the series were found, ns.
    selecting_ns: u64,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl SeriesScan {
    /// Prepares the scan. `sources` say what the columns of `schema` are; `description` goes to
    /// EXPLAIN. It is cut into as many partitions as the request says, but into none of fewer than
    /// about `partition_rows` rows.
    ///
    /// # Errors
    /// The engine's.
    pub fn new(
        snapshot: Arc<TableSnapshot>,
        mut request: ScanRequest,
        schema: SchemaRef,
        sources: Vec<OutputColumnSource>,
        description: String,
        partition_rows: usize,
    ) -> Result<Self> {
        let (rows, range) = snapshot.estimate();
        let total = snapshot.series_total().max(1);
        let selected = request.selection.len().min(total);
        let rows_max = (u128::from(rows) * u128::from(selected) / u128::from(total)) as u64;
        let partitions = (rows_max / partition_rows.max(1) as u64)
            .min(request.partitions as u64)
            .min(selected);
        request.partitions = (partitions as usize).max(1);
        let (whole, range) = (range, range.intersect(request.range));
        let rows_about = share(rows_max, range, whole);
        let mut scan = Self {
            snapshot,
            request,
            sources: sources.into(),
            description,
            newest: None,
            made: Mutex::default(),
            rows_max,
            rows_about,
            range,
            counts: Arc::default(),
            selecting_ns: 0,
            metrics: ExecutionPlanMetricsSet::new(),
            properties: properties(&schema, 1, None),
            schema,
        };
        let mut is_ordered = selected <= 1;
        if !is_ordered && partitions == selected {
            // So few series that each may be a partition of its own, and in order of time.
            let made = scan.make()?;
            let series = |parts: &EnginePartitions| {
                parts.iter().map(|part| part.series().len()).sum::<u64>()
            };
            is_ordered = made.iter().all(|parts| series(parts) <= 1);
            *scan.made.get_mut() = made.into_iter().map(Some).collect();
        }
        let by_time = scan
            .sources
            .iter()
            .position(|is| *is == OutputColumnSource::Time);
        let by_time = by_time.filter(|_| is_ordered);
        scan.properties = properties(&scan.schema, scan.request.partitions, by_time);
        Ok(scan)
    }

    /// The same scan, of which finding the series took so long, ns.
    #[must_use]
    pub fn selected_in(mut self, selecting_ns: u64) -> Self {
        self.selecting_ns = selecting_ns;
        self
    }

    /// Begins the engine's scan: its parts by our partitions.
    fn make(&self) -> Result<Vec<EnginePartitions>> {
        let parts = self
            .snapshot
            .scan(&self.request, Arc::clone(&self.counts))
            .map_err(external)?;
        // There is at least one a shard.
        let mut dealt: Vec<EnginePartitions> = Vec::new();
        dealt.resize_with(self.request.partitions, EnginePartitions::new);
        for (at, part) in parts.into_iter().enumerate() {
            dealt[at % self.request.partitions].push_back(part);
        }
        Ok(dealt)
    }

    /// The same scan of which only the `rows` newest rows are needed: there may be more, in no order.
    #[must_use]
    pub fn newest(&self, rows: usize) -> Self {
        Self {
            snapshot: Arc::clone(&self.snapshot),
            request: self.request.clone(),
            schema: Arc::clone(&self.schema),
            sources: Arc::clone(&self.sources),
            description: format!("{}, newest={rows}", self.description),
            newest: Some(rows),
            made: Mutex::default(),
            rows_max: self.rows_max,
            rows_about: self.rows_about,
            range: self.range,
            counts: Arc::clone(&self.counts),
            selecting_ns: self.selecting_ns,
            metrics: ExecutionPlanMetricsSet::new(),
            properties: properties(&self.schema, self.request.partitions, None),
        }
    }

    /// Where the rows of a partition come from.
    fn feeds(&self, parts: EnginePartitions) -> VecDeque<PartitionFeed> {
        let feed = |part: ScanPartition| match self.newest {
            None => PartitionFeed::Whole(Box::new(part)),
            Some(rows) => {
                let partitions = self.request.partitions as u64;
                let rows_max = (self.rows_max / partitions).max(1);
                let snapshot = Arc::clone(&self.snapshot);
                let counts = Arc::clone(&self.counts);
                let request = &self.request;
                PartitionFeed::Newest(TimeWindows::new(
                    snapshot, counts, request, &part, self.range, rows, rows_max,
                ))
            }
        };
        parts.into_iter().map(feed).collect()
    }

    /// Whether it takes little time, as far as its series have as many rows as others.
    pub fn runs_inline(&self) -> bool {
        self.request.partitions == 1
            && self.request.selection.len() <= INLINE_SERIES_MAX
            && self.rows_about <= SHORT_ROWS_MAX
    }

    /// About how many rows lie between the times that are asked for, if its series have as many as
    /// others.
    pub fn rows_about(&self) -> u64 {
        self.rows_about
    }

    /// Whether only the newest rows are needed.
    pub fn is_of_newest(&self) -> bool {
        self.newest.is_some()
    }

    /// What is read.
    pub fn request(&self) -> &ScanRequest {
        &self.request
    }

    /// What the columns of the schema are.
    pub fn sources(&self) -> &[OutputColumnSource] {
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

    /// The engine's parts of a partition; made anew where a plan is executed once more.
    fn take(&self, partition: usize) -> Result<EnginePartitions> {
        let mut made = self.made.lock();
        if made.is_empty() {
            *made = self.make()?.into_iter().map(Some).collect();
        }
        if let Some(parts) = made.get_mut(partition).and_then(Option::take) {
            return Ok(parts);
        }
        drop(made);
        let again = self.make()?.into_iter().nth(partition);
        Ok(again.unwrap_or_default())
    }
}

/// How many of `rows` rows, which lie between the times `whole`, lie between those of `part`, if they
/// are spread evenly.
pub fn share(rows: u64, part: TimeRange, whole: TimeRange) -> u64 {
    if part.is_empty() || whole.is_empty() {
        return 0;
    }
    let width = |range: TimeRange| (i128::from(range.max) - i128::from(range.min) + 1) as u128;
    let rows = u128::from(rows).saturating_mul(width(part));
    rows.div_ceil(width(whole)) as u64
}

/// `by_time` is the place of the column by which each partition is in order.
fn properties(
    schema: &SchemaRef,
    partitions: usize,
    by_time: Option<usize>,
) -> Arc<PlanProperties> {
    let mut equivalence = EquivalenceProperties::new(Arc::clone(schema));
    if let Some(place) = by_time {
        let time = Column::new(schema.field(place).name(), place);
        equivalence.add_ordering([PhysicalSortExpr::new_default(Arc::new(time))]);
    }
    Arc::new(PlanProperties::new(
        equivalence,
        Partitioning::UnknownPartitioning(partitions),
        EmissionType::Incremental,
        Boundedness::Bounded,
    ))
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
    DataFusionError::External(Box::new(error))
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
        let reader = PartitionReader {
            feeds: self.feeds(self.take(partition)?),
            schema: Arc::clone(&self.schema),
            sources: Arc::clone(&self.sources),
            snapshot: Arc::clone(&self.snapshot),
            batches_next: 1,
            rows_left: self.request.limit.unwrap_or(usize::MAX),
            rows_inline: if self.request.selection.len() <= INLINE_SERIES_MAX {
                INLINE_ROWS
            } else {
                0
            },
            baseline,
        };
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
        let rows = usize::try_from(self.rows_about).unwrap_or(usize::MAX);
        statistics.num_rows = Precision::Inexact(rows);
        let time = self
            .sources
            .iter()
            .position(|source| *source == OutputColumnSource::Time);
        if let Some(place) = time
            && !self.range.is_empty()
        {
            let zone = match self.schema.field(place).data_type() {
                DataType::Timestamp(_, zone) => zone.clone(),
                _ => None,
            };
            let scalar =
                |ns| Precision::Inexact(ScalarValue::TimestampNanosecond(Some(ns), zone.clone()));
            statistics.column_statistics[place] = ColumnStatistics::new_unknown()
                .with_null_count(Precision::Exact(0))
                .with_min_value(scalar(self.range.min))
                .with_max_value(scalar(self.range.max));
        }
        Ok(Arc::new(statistics))
    }
}
