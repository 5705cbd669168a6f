//! The operator: requires rows in the order of keys and bucket, and fills gaps as a stream.

use super::fill::{GapFillLayout, GapFiller};
use super::groups::GroupGatherer;
use super::node::{BucketGrid, GapFill};
use crate::plan_methods::always_recomputed;
use arrow::compute::SortOptions;
use arrow::datatypes::{Field, Schema};
use arrow::record_batch::RecordBatch;
use datafusion::catalog::Session;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_datafusion_err, internal_err};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{
    EquivalenceProperties, LexOrdering, OrderingRequirements, PhysicalExpr, PhysicalSortExpr,
};
use datafusion::physical_plan::coop::make_cooperative;
use datafusion::physical_plan::execution_plan::{EmissionType, SchedulingType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, Partitioning, PlanProperties,
    ReplaceChildrenOptions,
};
use datafusion::physical_planner::PhysicalPlanner;
use futures::StreamExt;
use marigram_functions::TimeBuckets;
use std::fmt;
use std::sync::Arc;

/// Creates the operator of a node.
///
/// # Errors
/// If an expression cannot be evaluated.
pub fn plan(
    node: &GapFill,
    inputs: &[Arc<dyn ExecutionPlan>],
    planner: &dyn PhysicalPlanner,
    session: &dyn Session,
    context: &PhysicalPlanningContext,
) -> Result<Arc<dyn ExecutionPlan>> {
    let [input] = inputs else {
        return internal_err!("gaps are filled in one input");
    };
    let known = node.input().schema();
    let physical = |expr: &Expr| planner.create_physical_expr(expr, known, session, context);
    let column = |expr: &Expr| {
        let expr = physical(expr)?;
        let column = expr.downcast_ref::<Column>().map(Column::index);
        column.ok_or_else(|| internal_datafusion_err!("a group key is not a column"))
    };
    let fills = node.fills.iter();
    let fills = fills
        .map(|fill| Ok((fill.name.clone(), physical(&fill.value)?, fill.how.clone())))
        .collect::<Result<Vec<_>>>()?;
    let keys = node.keys.iter().map(column).collect::<Result<Vec<_>>>()?;
    let input_schema = input.schema();
    let mut fields: Vec<Field> = Vec::new();
    for (at, field) in input_schema.fields().iter().enumerate() {
        let nullable = field.is_nullable() || !keys.contains(&at);
        fields.push(field.as_ref().clone().with_nullable(nullable));
    }
    for (name, value, _) in &fills {
        fields.push(Field::new(name, value.data_type(&input_schema)?, true));
    }
    let metadata = input_schema.metadata().clone();
    let shape = GapFillLayout {
        schema: Arc::new(Schema::new_with_metadata(fields, metadata)),
        keys,
        bucket: column(&node.bucket)?,
        fills: fills
            .into_iter()
            .map(|(_, value, how)| (value, how))
            .collect(),
    };
    let exec = GapFillExec::new(Arc::clone(input), Arc::new(shape), node.grid.clone())?;
    Ok(Arc::new(exec))
}

/// Fills gaps between rows that arrive in the order of keys and bucket.
#[derive(Debug)]
struct GapFillExec {
    input: Arc<dyn ExecutionPlan>,
    shape: Arc<GapFillLayout>,
    grid: BucketGrid,
    buckets: TimeBuckets,
    range: Option<(i64, i64)>,
    order: LexOrdering,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl GapFillExec {
    fn new(
        input: Arc<dyn ExecutionPlan>,
        shape: Arc<GapFillLayout>,
        grid: BucketGrid,
    ) -> Result<Self> {
        let (buckets, range) = grid.buckets()?;
        let sorted = shape.keys.iter().chain([&shape.bucket]).map(|at| {
            let column = Column::new(input.schema().field(*at).name(), *at);
            PhysicalSortExpr::new(
                Arc::new(column),
                SortOptions {
                    descending: false,
                    nulls_first: false,
                },
            )
        });
        let order = LexOrdering::new(sorted)
            .ok_or_else(|| internal_datafusion_err!("gaps are filled by a bucket"))?;
        let orders = [order.clone()];
        let properties = PlanProperties::new(
            EquivalenceProperties::new_with_orderings(Arc::clone(&shape.schema), orders),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            input.properties().boundedness,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        Ok(Self {
            input,
            shape,
            grid,
            buckets,
            range,
            order,
            metrics: ExecutionPlanMetricsSet::new(),
            properties: Arc::new(properties),
        })
    }
}

impl DisplayAs for GapFillExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schema = self.input.schema();
        let name = |at: &usize| schema.field(*at).name().clone();
        let keys: Vec<String> = self.shape.keys.iter().map(name).collect();
        let filled = &self.shape.schema.fields()[schema.fields().len()..];
        let filled: Vec<&str> = filled.iter().map(|field| field.name().as_str()).collect();
        write!(
            f,
            "GapFillExec: keys=[{}], bucket={}, fill=[{}]",
            keys.join(", "),
            name(&self.shape.bucket),
            filled.join(", ")
        )
    }
}

/// The state of one execution.
struct GapFillRun {
    input: SendableRecordBatchStream,
    gather: GroupGatherer,
    filling: Option<GapFiller>,
    shape: Arc<GapFillLayout>,
    buckets: TimeBuckets,
    range: Option<(i64, i64)>,
    rows: usize,
    ended: bool,
    baseline: BaselineMetrics,
}

impl GapFillRun {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let compute = self.baseline.elapsed_compute().clone();
            if let Some(filling) = &mut self.filling {
                let _timer = compute.timer();
                if let Some(batch) = filling.next_batch(self.rows)? {
                    self.baseline.record_output(batch.num_rows());
                    return Ok(Some(batch));
                }
                self.filling = None;
            }
            if self.ended {
                return Ok(None);
            }
            let whole = match self.input.next().await {
                Some(batch) => {
                    let _timer = compute.timer();
                    self.gather.push(batch?)?
                }
                None => {
                    self.ended = true;
                    self.gather.finish()?
                }
            };
            if let Some(whole) = whole {
                let (shape, buckets) = (Arc::clone(&self.shape), self.buckets.clone());
                self.filling = Some(GapFiller::new(shape, whole, buckets, self.range)?);
            }
        }
    }
}

impl ExecutionPlan for GapFillExec {
    fn name(&self) -> &'static str {
        "GapFillExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition]
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![Some(OrderingRequirements::from(self.order.clone()))]
    }

    /// An order required of the output does not have to hold for the input.
    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for (value, _) in &self.shape.fills {
            if f(value)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut children = children.into_iter();
        match (children.next(), children.next()) {
            (Some(input), None) => {
                let shape = Arc::clone(&self.shape);
                Ok(Arc::new(Self::new(input, shape, self.grid.clone())?))
            }
            _ => internal_err!("gaps are filled in one input"),
        }
    }

    always_recomputed!();

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let reservation = MemoryConsumer::new("GapFill").register(context.memory_pool());
        let keys = self.shape.keys.clone();
        let run = GapFillRun {
            input: self.input.execute(partition, Arc::clone(&context))?,
            gather: GroupGatherer::new(self.input.schema(), keys, reservation)?,
            filling: None,
            shape: Arc::clone(&self.shape),
            buckets: self.buckets.clone(),
            range: self.range,
            rows: context.session_config().batch_size().max(1),
            ended: false,
            baseline: BaselineMetrics::new(&self.metrics, partition),
        };
        let batches = futures::stream::try_unfold(run, |mut run| async move {
            Ok(run.next().await?.map(|batch| (batch, run)))
        });
        let schema = Arc::clone(&self.shape.schema);
        let stream = RecordBatchStreamAdapter::new(schema, batches);
        Ok(make_cooperative(Box::pin(stream)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}
