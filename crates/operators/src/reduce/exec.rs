//! The operator: processes partitions in parallel, then produces one result.

use super::group_cache::GroupAssignment;
use super::groups::{GroupMembers, GroupSlots, SeriesGroups};
use super::inline::{begins_inline, estimated_rows};
use super::last::{self, LastRows};
use super::recipe::{AggregateRecipe, CallSource, RecipeKey};
use super::threads::{blocking, joined, timed};
use super::worker::{AggregateWorker, WorkerOutput};
use crate::plan_methods::leaf_methods;
use crate::scan::{SeriesScan, counters, external, fill_scan_placeholders, stages};
use arrow::array::{Array, ArrayRef, TimestampNanosecondArray, UInt32Array};
use arrow::compute::{cast, take};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::stats::Precision;
use datafusion::common::{DataFusionError, Result, Statistics, exec_datafusion_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet,
};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, execute_stream,
};
use futures::{StreamExt, TryStreamExt};
use marigram_engine::{ReducePartition, ScanMetrics};
use marigram_service::InlinePolicy;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Up to its limits, the thread that polls the plan does the work. The rest runs on threads for
/// blocking work, so that no other query waits for it.
const POLICY: InlinePolicy = InlinePolicy::DEFAULT;

/// An aggregate over a table's series.
#[derive(Debug)]
pub struct SeriesAggregate {
    pub(super) recipe: Arc<AggregateRecipe>,
    pub(super) scan: Arc<SeriesScan>,
    /// The same aggregate by DataFusion's operators, which can spill; over `scan`, or over a
    /// placeholder for it.
    pub(super) fallback: Arc<dyn ExecutionPlan>,
    counts: Arc<ScanMetrics>,
    spent: Arc<ReduceTimings>,
    /// Whether an execution left the thread that polled it.
    pub(super) handed_over: Arc<AtomicBool>,
    metrics: ExecutionPlanMetricsSet,
    pub(super) properties: Arc<PlanProperties>,
}

/// The bytes of a slot while the result is sorted, and of each of its values.
const FINISHED_SLOT_BYTES: usize = 24;
const ANSWER_VALUE_BYTES: usize = 8;

/// The time spent in stages that the engine does not measure, ns, over all threads.
#[derive(Debug, Default)]
struct ReduceTimings {
    /// Until partitions could be read.
    beginning: AtomicU64,
    /// In partitions, including the engine's time.
    partitions: AtomicU64,
    /// Until the result was ready.
    finishing: AtomicU64,
}

impl SeriesAggregate {
    /// Creates the operator from its parts.
    pub(super) fn with(
        recipe: Arc<AggregateRecipe>,
        scan: Arc<SeriesScan>,
        fallback: Arc<dyn ExecutionPlan>,
        properties: Arc<PlanProperties>,
    ) -> Self {
        Self {
            recipe,
            scan,
            fallback,
            counts: Arc::default(),
            spent: Arc::default(),
            handed_over: Arc::default(),
            metrics: ExecutionPlanMetricsSet::new(),
            properties,
        }
    }
}

impl ReduceTimings {
    /// The time of the stages outside the engine, ns.
    fn stages(&self, counts: &ScanMetrics, scan: &SeriesScan) -> [(&'static str, u64); 2] {
        let load = |stage: &AtomicU64| stage.load(Ordering::Relaxed);
        let engine = [&counts.planning_ns, &counts.reading_ns, &counts.merging_ns];
        let engine: u64 = engine.into_iter().map(load).sum();
        let reducing = load(&self.partitions).saturating_sub(engine) + load(&self.finishing);
        let selecting = scan.selecting_ns() + load(&self.beginning);
        [("time_selecting", selecting), ("time_reducing", reducing)]
    }
}

impl DisplayAs for SeriesAggregate {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |range: std::ops::Range<usize>| {
            let fields = &self.recipe.schema.fields()[range];
            let names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
            names.join(", ")
        };
        let keys = self.recipe.keys.len();
        let all = self.recipe.schema.fields().len();
        write!(f, "SeriesAggregate: ")?;
        if keys > 0 {
            write!(f, "by=[{}], ", names(0..keys))?;
        }
        write!(f, "aggr=[{}], ", names(keys..all))?;
        if !self.recipe.sorted_by.is_empty() {
            write!(f, "ordered, ")?;
        }
        if let Some(predicate) = &self.recipe.predicate {
            write!(f, "where={predicate}, ")?;
        }
        write!(f, "scan={}", self.scan.description())
    }
}

/// Tells workers to stop when nobody waits for them any more.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A partition and the worker that consumes its rows.
type PartitionWorker = (ReducePartition, AggregateWorker);

/// The state that an execution shares.
#[derive(Clone)]
struct AggregateRun {
    recipe: Arc<AggregateRecipe>,
    scan: Arc<SeriesScan>,
    counts: Arc<ScanMetrics>,
    spent: Arc<ReduceTimings>,
    context: Arc<TaskContext>,
    stop: Arc<AtomicBool>,
    handed_over: Arc<AtomicBool>,
    baseline: BaselineMetrics,
}

impl AggregateRun {
    /// Determines the groups, the values known already, and the partitions with their workers.
    /// Blocks.
    fn begin(&self) -> Result<BegunAggregate> {
        let compute = self.baseline.elapsed_compute().clone();
        let _timer = compute.timer();
        let snapshot = self.scan.snapshot();
        let mut request = self.scan.request().clone();
        let last = if self.recipe.needs_last_rows_only() {
            LastRows::find(&self.recipe, snapshot, &mut request)?
        } else {
            Vec::new()
        };
        let partitions = if request.selection.is_empty() {
            Vec::new()
        } else {
            let partitions = snapshot.reduce(&request, &self.counts);
            partitions.map_err(external)?
        };
        let of_last = last.iter().map(|rows| (rows.shard, &rows.series));
        let of_partitions = partitions.iter().map(|part| (part.shard(), part.series()));
        let parts: Vec<_> = of_last.chain(of_partitions).collect();
        let GroupAssignment { groups, members } =
            GroupAssignment::find_or_compute(&self.recipe, snapshot, &parts, &self.context)?;
        if partitions.is_empty() {
            let mut held = self.reservation();
            if let Some(answer) = last::answer(&self.recipe, &last, &groups, &mut held)? {
                return Ok(BegunAggregate::Answered(answer, held));
            }
        }
        let buckets = self.recipe.buckets.as_ref();
        let slots = GroupSlots::new(groups.count, buckets, self.scan.range());
        let mut members = members.into_iter();
        let mut worker = |shard| {
            let members = members.next().unwrap_or(GroupMembers::One);
            let (recipe, snapshot) = (Arc::clone(&self.recipe), Arc::clone(snapshot));
            let taken = self.taken(slots.clone())?;
            Ok::<_, DataFusionError>(AggregateWorker::new(
                recipe, snapshot, shard, members, taken,
            ))
        };
        let mut known: Option<WorkerOutput> = None;
        for rows in &last {
            let mut worker = worker(rows.shard)?;
            rows.show(&mut worker)?;
            known = Some(joined_taken(known, worker.finish())?);
        }
        let workers = partitions.into_iter().map(|partition| {
            let worker = worker(partition.shard())?;
            Ok((partition, worker))
        });
        Ok(BegunAggregate::Reading {
            partitions: workers.collect::<Result<_>>()?,
            groups,
            known,
        })
    }

    fn taken(&self, slots: GroupSlots) -> Result<WorkerOutput> {
        WorkerOutput::new(&self.recipe, slots, self.reservation())
    }

    fn reservation(&self) -> MemoryReservation {
        let consumer = MemoryConsumer::new("SeriesAggregate");
        consumer.register(self.context.memory_pool())
    }

    /// Reads a partition. Blocks.
    fn read(
        &self,
        mut partition: ReducePartition,
        mut worker: AggregateWorker,
    ) -> Result<WorkerOutput> {
        let compute = self.baseline.elapsed_compute().clone();
        let _timer = compute.timer();
        while partition.step(&mut worker).map_err(|failed| failed.0)? {
            if self.stop.load(Ordering::Relaxed) {
                return Err(exec_datafusion_err!("the query was stopped"));
            }
        }
        Ok(worker.finish())
    }

    /// Reads short partitions on this thread; returns their output and the unfinished partitions.
    /// Most small results are complete here, without waiting for other threads.
    fn read_short(
        &self,
        partitions: Vec<PartitionWorker>,
        mut taken: Option<WorkerOutput>,
    ) -> Result<(Option<WorkerOutput>, Vec<PartitionWorker>)> {
        let (mut rest, mut steps) = (Vec::new(), POLICY.steps_max);
        let pages_max = POLICY.pages(self.scan.rows_about());
        for (mut partition, mut worker) in partitions {
            let mut done = false;
            if partition.has_short_steps(POLICY.sources_max, POLICY.chunk_rows_max) {
                let compute = self.baseline.elapsed_compute().clone();
                let _timer = compute.timer();
                while !done && steps > 0 && self.pages_read() < pages_max {
                    done = !partition.step(&mut worker).map_err(|failed| failed.0)?;
                    steps -= 1;
                }
            }
            if done {
                taken = Some(joined_taken(taken, worker.finish())?);
            } else {
                rest.push((partition, worker));
            }
        }
        Ok((taken, rest))
    }

    fn pages_read(&self) -> u64 {
        self.counts.pages_read.load(Ordering::Relaxed)
    }

    async fn all(self) -> Result<AggregateAnswer> {
        let _stop = StopOnDrop(Arc::clone(&self.stop));
        let run = self.clone();
        let begin = move || timed(&run.spent.beginning, || run.begin());
        let begun = if begins_inline(&self.recipe, &self.scan) {
            begin()?
        } else {
            blocking(begin).await?
        };
        let (groups, known, partitions) = match begun {
            BegunAggregate::Answered(answer, held) => return Ok(self.cut(&answer, held)),
            BegunAggregate::Reading {
                groups,
                known,
                partitions,
            } => (groups, known, partitions),
        };
        let short = || self.read_short(partitions, known);
        let (mut taken, mut partitions) = timed(&self.spent.partitions, short)?;
        if !partitions.is_empty() {
            self.handed_over.store(true, Ordering::Relaxed);
        }
        let last = partitions.pop();
        let started: Vec<SpawnedTask<Result<WorkerOutput>>> = partitions
            .into_iter()
            .map(|(partition, worker)| {
                let run = self.clone();
                SpawnedTask::spawn_blocking(move || {
                    timed(&run.spent.partitions, || run.read(partition, worker))
                })
            })
            .collect();
        let run = self.clone();
        if let Some((partition, worker)) = last {
            let read = move || timed(&run.spent.partitions, || run.read(partition, worker));
            taken = Some(joined_taken(taken, blocking(read).await?)?);
        }
        for task in started {
            let other = task.join().await.map_err(joined)??;
            taken = Some(joined_taken(taken, other)?);
        }
        let taken = match taken {
            Some(taken) => taken,
            None => self.taken(GroupSlots::Groups { count: 1 })?,
        };
        if taken.present.len() <= POLICY.slots_max {
            return timed(&self.spent.finishing, || self.finish(&groups, taken));
        }
        self.handed_over.store(true, Ordering::Relaxed);
        let run = self.clone();
        blocking(move || timed(&run.spent.finishing, || run.finish(&groups, taken))).await
    }

    /// Produces the result.
    fn finish(&self, groups: &SeriesGroups, mut taken: WorkerOutput) -> Result<AggregateAnswer> {
        let compute = self.baseline.elapsed_compute().clone();
        let _timer = compute.timer();
        let recipe = &self.recipe;
        let columns_bytes = ANSWER_VALUE_BYTES * recipe.schema.fields().len();
        let held = self.reservation();
        held.try_grow(taken.present.len() * (FINISHED_SLOT_BYTES + columns_bytes))?;
        // Without GROUP BY there is always one row.
        let always = recipe.keys.is_empty();
        let mut slots: Vec<u32> = (0..taken.present.len() as u32)
            .filter(|slot| always || taken.present[*slot as usize])
            .collect();
        let order = recipe.order();
        order.arrange(&groups.ranks, &mut slots, |slot| taken.slots.key(slot));
        let keys: Vec<(u32, i64)> = slots.iter().map(|slot| taken.slots.key(*slot)).collect();
        let fields = recipe.schema.fields();
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(fields.len());
        let of_group: UInt32Array = keys.iter().map(|(group, _)| *group).collect();
        for (key, field) in recipe.keys.iter().zip(fields) {
            let column = match key {
                RecipeKey::Tags(place) => match groups.keys.get(*place) {
                    Some(values) => take(values, &of_group, None)?,
                    None => arrow::array::new_empty_array(field.data_type()),
                },
                RecipeKey::Bucket => {
                    let starts = keys.iter().map(|(_, start)| *start);
                    Arc::new(TimestampNanosecondArray::from_iter_values(starts))
                }
            };
            columns.push(column);
        }
        for from in &recipe.answers {
            columns.push(match from {
                CallSource::Fold(fold, answer) => taken.folds[*fold].finish(*answer, &slots)?,
                CallSource::Key(key) => Arc::clone(&columns[*key]),
            });
        }
        for (column, field) in columns.iter_mut().zip(fields) {
            if column.data_type() != field.data_type() {
                *column = cast(column, field.data_type())?;
            }
        }
        let options = RecordBatchOptions::new().with_row_count(Some(slots.len()));
        let schema = Arc::clone(&recipe.schema);
        let whole = RecordBatch::try_new_with_options(schema, columns, &options)?;
        Ok(self.cut(&whole, held))
    }

    /// Splits the result into batches.
    fn cut(&self, whole: &RecordBatch, held: MemoryReservation) -> AggregateAnswer {
        self.baseline.record_output(whole.num_rows());
        let rows = self.context.session_config().batch_size().max(1);
        let starts = (0..whole.num_rows()).step_by(rows);
        let batches = starts
            .map(|start| whole.slice(start, rows.min(whole.num_rows() - start)))
            .collect();
        if held.size() > 0 {
            held.resize(whole.get_array_memory_size());
        }
        AggregateAnswer { batches, held }
    }
}

/// The whole result, and its memory until it is read.
struct AggregateAnswer {
    batches: Vec<RecordBatch>,
    held: MemoryReservation,
}

/// Merges the output of two partitions.
fn joined_taken(taken: Option<WorkerOutput>, other: WorkerOutput) -> Result<WorkerOutput> {
    match taken {
        Some(mut taken) => {
            taken.merge(other)?;
            Ok(taken)
        }
        None => Ok(other),
    }
}

/// An execution that has begun.
enum BegunAggregate {
    /// It is finished already.
    Answered(RecordBatch, MemoryReservation),
    Reading {
        groups: Arc<SeriesGroups>,
        /// The values that were known without reading.
        known: Option<WorkerOutput>,
        partitions: Vec<PartitionWorker>,
    },
}

impl ExecutionPlan for SeriesAggregate {
    fn name(&self) -> &'static str {
        "SeriesAggregate"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    leaf_methods!();

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let run = AggregateRun {
            recipe: Arc::clone(&self.recipe),
            scan: Arc::clone(&self.scan),
            counts: Arc::clone(&self.counts),
            spent: Arc::clone(&self.spent),
            context: Arc::clone(&context),
            stop: Arc::default(),
            handed_over: Arc::clone(&self.handed_over),
            baseline: BaselineMetrics::new(&self.metrics, partition),
        };
        let (fallback, scan) = (Arc::clone(&self.fallback), Arc::clone(&self.scan));
        let handed_over = MetricBuilder::new(&self.metrics).counter("handed_over", partition);
        let stream = futures::stream::once(async move {
            match run.all().await {
                Ok(AggregateAnswer { batches, held }) => {
                    let batches = batches.into_iter().map(move |batch| {
                        let _held = &held;
                        Ok(batch)
                    });
                    Ok(futures::stream::iter(batches).boxed())
                }
                // Nothing was returned yet: start again with operators that can spill.
                Err(error)
                    if matches!(error.find_root(), DataFusionError::ResourcesExhausted(_)) =>
                {
                    handed_over.add(1);
                    tracing::debug!(%error, "groups do not fit into memory; operators that spill take over");
                    let fallback = fill_scan_placeholders(fallback, &scan)?;
                    Ok(spilling(fallback, context)?.boxed())
                }
                Err(error) => Err(error),
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.recipe.schema),
            stream.try_flatten(),
        )))
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.recipe.schema);
        statistics.num_rows = Precision::Inexact(estimated_rows(&self.recipe, &self.scan));
        Ok(Arc::new(statistics))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        let mut all = self.metrics.clone_inner();
        let stages = stages(&self.counts, &self.spent.stages(&self.counts, &self.scan));
        for metric in counters(&self.counts).iter().chain(stages.iter()) {
            all.push(Arc::clone(metric));
        }
        Some(all)
    }
}

/// Prepares a plan that only our rule has processed, and starts it.
fn spilling(
    mut plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
) -> Result<SendableRecordBatchStream> {
    let options = context.session_config().options();
    for rule in PhysicalOptimizer::new().rules {
        plan = rule.optimize(plan, options)?;
    }
    execute_stream(plan, context)
}
