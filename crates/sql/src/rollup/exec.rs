//! The operator above a rollup's table and its source: returns the rows of one after those of the
//! other, and shows users which rows came from where.

use super::time_split::RollupTimeSplit;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use chrono::{DateTime, Utc};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning,
    PlanProperties, ReplaceChildrenOptions,
};
use futures::TryStreamExt;
use marigram_model::TimeSet;
use std::fmt;
use std::sync::Arc;

/// See the module documentation.
#[derive(Debug)]
pub(super) struct RollupScan {
    name: String,
    split: RollupTimeSplit,
    inputs: Vec<Arc<dyn ExecutionPlan>>,
    schema: SchemaRef,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl RollupScan {
    /// Returns the rows of all `inputs`, whose columns are those of `schema`, but for the zones of
    /// times: views of earlier versions store the times of a TIMESTAMPTZ without one.
    ///
    /// # Errors
    /// If an input's columns have other types.
    pub(super) fn new(
        name: String,
        split: RollupTimeSplit,
        schema: SchemaRef,
        mut inputs: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Self> {
        if inputs.is_empty() {
            inputs.push(Arc::new(EmptyExec::new(Arc::clone(&schema))));
        }
        for input in &inputs {
            let kinds = |schema: &SchemaRef| -> Vec<_> {
                let fields = schema.fields().iter();
                let kinds = fields.map(|field| match field.data_type() {
                    DataType::Timestamp(unit, _) => DataType::Timestamp(*unit, None),
                    kind => kind.clone(),
                });
                kinds.collect()
            };
            if kinds(&input.schema()) != kinds(&schema) {
                return internal_err!("the parts of {name} are of other types than its columns");
            }
        }
        let partitions = inputs.iter().map(partitions).sum();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Self {
            name,
            split,
            inputs,
            schema,
            metrics: ExecutionPlanMetricsSet::new(),
            properties: Arc::new(properties),
        })
    }
}

fn partitions(input: &Arc<dyn ExecutionPlan>) -> usize {
    input.properties().output_partitioning().partition_count()
}

/// Ranges in readable form: `2024-01-01T00:00:00..=2024-01-01T00:59:59.999999999`.
fn shown(times: &TimeSet) -> String {
    let end = |time: i64| match time {
        i64::MIN | i64::MAX => String::new(),
        time => DateTime::<Utc>::from_timestamp_nanos(time)
            .format("%Y-%m-%dT%H:%M:%S%.f")
            .to_string(),
    };
    let ranges = times.ranges().iter();
    let ranges = ranges.map(|range| format!("{}..={}", end(range.min), end(range.max)));
    ranges.collect::<Vec<_>>().join(" ")
}

impl DisplayAs for RollupScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "RollupScan: {}, kept=[{}], from_source=[{}]",
            self.name,
            shown(&self.split.told),
            shown(&self.split.source)
        )
    }
}

impl ExecutionPlan for RollupScan {
    fn name(&self) -> &'static str {
        "RollupScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.inputs.iter().collect()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false; self.inputs.len()]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false; self.inputs.len()]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self::new(
            self.name.clone(),
            self.split.clone(),
            Arc::clone(&self.schema),
            children,
        )?))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mode = ChildrenPropertiesMode::Recompute;
        self.replace_children(children, ReplaceChildrenOptions::new(mode))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let mut within = partition;
        for input in &self.inputs {
            if within >= partitions(input) {
                within -= partitions(input);
                continue;
            }
            let baseline = BaselineMetrics::new(&self.metrics, partition);
            let schema = Arc::clone(&self.schema);
            let batches = input.execute(within, context)?.and_then(move |batch| {
                baseline.record_output(batch.num_rows());
                let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
                let mut columns = batch.columns().to_vec();
                let batch =
                    marigram_functions::zoned::label(&mut columns, &schema).and_then(|()| {
                        RecordBatch::try_new_with_options(Arc::clone(&schema), columns, &options)
                    });
                futures::future::ready(batch.map_err(Into::into))
            });
            let stream = RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches);
            return Ok(Box::pin(stream));
        }
        internal_err!("{} has no partition {partition}", self.name)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}
