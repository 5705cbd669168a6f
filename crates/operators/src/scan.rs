//! The physical scan of a table: each output partition is a part of the engine's scan.
//!
//! The engine's scan is synchronous. Each step of it (a few batches) runs on a thread for blocking
//! work, one step ahead of the reader. No thread waits for a slow reader; if a reader goes away,
//! the scan ends after the current step.

mod newest;
mod placeholder;
mod read_ahead;

pub use newest::NewestRowsRule;
pub use placeholder::{ScanPlaceholder, fill_scan_placeholders, with_scan_placeholders};

use crate::plan_methods::leaf_methods;
use crate::rows::OutputColumnSource;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, DataFusionError, Result, ScalarValue, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalSortExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet,
};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
};
use marigram_engine::{EngineError, ScanMetrics, ScanPartition, ScanRequest, TableSnapshot};
use marigram_model::TimeRange;
use marigram_service::{InlineDecision, InlinePolicy, ScanSize};
use newest::TimeWindows;
use parking_lot::Mutex;
use read_ahead::{PartitionFeed, PartitionReader, read_ahead};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Scans of fewer rows are not divided into partitions; an extension of the session's
/// configuration.
#[derive(Clone, Copy, Debug)]
pub struct PartitionRows(pub usize);

/// The engine's partitions that are read as one.
type EnginePartitions = VecDeque<ScanPartition>;

/// A scan of the series and times that a query asks for. The engine's own scan only begins when
/// this one is executed, since many plans replace it with another operator.
#[derive(Debug)]
pub struct SeriesScan {
    snapshot: Arc<TableSnapshot>,
    request: ScanRequest,
    schema: SchemaRef,
    sources: Arc<[OutputColumnSource]>,
    description: String,
    /// If set, only this many of the newest rows of each partition are needed.
    newest: Option<usize>,
    /// The partitions that were created and not taken yet; empty before the first execution.
    made: Mutex<Vec<Option<EnginePartitions>>>,
    rows_max: u64,
    /// The approximate number of rows within the requested times.
    rows_about: u64,
    range: TimeRange,
    counts: Arc<ScanMetrics>,
    handed_over: Arc<AtomicBool>,
    /// The time that it took to select the series, ns.
    selecting_ns: u64,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl SeriesScan {
    /// Prepares the scan. `sources` says what the columns of `schema` are; EXPLAIN shows
    /// `description`. The scan is divided into as many partitions as the request says, but each has
    /// at least about `partition_rows` rows.
    ///
    /// # Errors
    /// The engine's errors.
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
            handed_over: Arc::default(),
            selecting_ns: 0,
            metrics: ExecutionPlanMetricsSet::new(),
            properties: properties(&schema, 1, None),
            schema,
        };
        let mut is_ordered = selected <= 1;
        if !is_ordered && partitions == selected {
            // There are so few series that each may be a partition of its own, in order of time.
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

    /// The same scan, with the time that it took to select the series, ns.
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
        // Each shard has at least one part.
        let mut dealt: Vec<EnginePartitions> = Vec::new();
        dealt.resize_with(self.request.partitions, EnginePartitions::new);
        for (at, part) in parts.into_iter().enumerate() {
            dealt[at % self.request.partitions].push_back(part);
        }
        Ok(dealt)
    }

    /// The same scan if only the `rows` newest rows are needed: it may return more, in any order.
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
            handed_over: Arc::clone(&self.handed_over),
            selecting_ns: self.selecting_ns,
            metrics: ExecutionPlanMetricsSet::new(),
            properties: properties(&self.schema, self.request.partitions, None),
        }
    }

    /// The sources of the rows of a partition.
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

    /// Whether the scan runs inline, assuming that its series have as many rows as others.
    ///
    /// # Errors
    /// Why not.
    pub fn runs_inline(&self) -> InlineDecision {
        InlinePolicy::DEFAULT.scan(ScanSize {
            partitions: self.request.partitions as u64,
            series: self.request.selection.len(),
            rows: self.rows_about,
        })
    }

    /// Whether an execution left the thread that polled it.
    pub fn was_handed_over(&self) -> bool {
        self.handed_over.load(Ordering::Relaxed)
    }

    /// The approximate number of rows within the requested times, assuming that its series have as
    /// many as others.
    pub fn rows_about(&self) -> u64 {
        self.rows_about
    }

    /// Whether only the newest rows are needed.
    pub fn is_of_newest(&self) -> bool {
        self.newest.is_some()
    }

    /// The request to the engine.
    pub fn request(&self) -> &ScanRequest {
        &self.request
    }

    /// The sources of the schema's columns.
    pub fn sources(&self) -> &[OutputColumnSource] {
        &self.sources
    }

    /// The snapshot of the table that is read.
    pub fn snapshot(&self) -> &Arc<TableSnapshot> {
        &self.snapshot
    }

    /// The times within which rows may be.
    pub fn range(&self) -> TimeRange {
        self.range
    }

    /// The time that it took to select the series, ns.
    pub fn selecting_ns(&self) -> u64 {
        self.selecting_ns
    }

    /// The description that EXPLAIN shows.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Takes the engine's parts of a partition; they are created again if a plan is executed again.
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

/// The number of `rows` rows within `whole` that lie within `part`, if they are evenly distributed.
pub fn share(rows: u64, part: TimeRange, whole: TimeRange) -> u64 {
    if part.is_empty() || whole.is_empty() {
        return 0;
    }
    let width = |range: TimeRange| (i128::from(range.max) - i128::from(range.min) + 1) as u128;
    let rows = u128::from(rows).saturating_mul(width(part));
    rows.div_ceil(width(whole)) as u64
}

/// `by_time` is the index of the column by which each partition is sorted.
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

/// The counters of a scan, as EXPLAIN ANALYZE shows them.
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

/// The time of each stage, as EXPLAIN ANALYZE shows it: the stages of the scan, and `others`.
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

/// Converts an error of the engine to DataFusion's.
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

    leaf_methods!();

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let reader = PartitionReader {
            feeds: self.feeds(self.take(partition)?),
            schema: Arc::clone(&self.schema),
            sources: Arc::clone(&self.sources),
            snapshot: Arc::clone(&self.snapshot),
            batches_next: 1,
            rows_left: self.request.limit.unwrap_or(usize::MAX),
            rows_inline: InlinePolicy::DEFAULT.first_rows_of(self.request.selection.len()),
            handed_over: Arc::clone(&self.handed_over),
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
