//! The operator: requires both sides in order, and merges them as a stream.

use super::merge::{AsOfKeys, AsOfMatch, AsOfMerge, AsOfSide};
use super::node::{AsOfCondition, AsOfJoin};
use crate::plan_methods::always_recomputed;
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DFSchema, Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
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
use std::fmt;
use std::sync::Arc;

/// Creates the operator of a node.
///
/// # Errors
/// If an expression cannot be evaluated.
pub fn plan(
    node: &AsOfJoin,
    inputs: &[Arc<dyn ExecutionPlan>],
    planner: &dyn PhysicalPlanner,
    session: &dyn Session,
    context: &PhysicalPlanningContext,
) -> Result<Arc<dyn ExecutionPlan>> {
    let [left, right] = inputs else {
        return internal_err!("two plans are joined");
    };
    let physical = |expr: &Expr, schema: &DFSchema| {
        planner.create_physical_expr(expr, schema, session, context)
    };
    let (of_left, of_right) = (node.left.schema(), node.right.schema());
    let keys = |side: fn(&(Expr, Expr)) -> &Expr, schema: &DFSchema| {
        let keys = node.on.iter().map(|pair| physical(side(pair), schema));
        keys.collect::<Result<Vec<_>>>()
    };
    let by = (
        AsOfKeys {
            keys: keys(|pair| &pair.0, of_left)?,
            time: physical(&node.times.0, of_left)?,
        },
        AsOfKeys {
            keys: keys(|pair| &pair.1, of_right)?,
            time: physical(&node.times.1, of_right)?,
        },
    );
    let (left, right) = (Arc::clone(left), Arc::clone(right));
    Ok(Arc::new(AsOfJoinExec::new(left, right, by, node.matching)?))
}

/// Joins by keys and time.
#[derive(Debug)]
struct AsOfJoinExec {
    left: Arc<dyn ExecutionPlan>,
    right: Arc<dyn ExecutionPlan>,
    by: (AsOfKeys, AsOfKeys),
    matching: AsOfCondition,
    orders: (LexOrdering, LexOrdering),
    schema: SchemaRef,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl AsOfJoinExec {
    fn new(
        left: Arc<dyn ExecutionPlan>,
        right: Arc<dyn ExecutionPlan>,
        by: (AsOfKeys, AsOfKeys),
        matching: AsOfCondition,
    ) -> Result<Self> {
        let (of_left, of_right) = (left.schema(), right.schema());
        let fields = of_left.fields().iter().cloned();
        let found = of_right.fields().iter();
        // A left row may have no match.
        let found = found.map(|field| Arc::new(Field::clone(field).with_nullable(true)));
        let fields: Vec<_> = fields.chain(found).collect();
        let schema = Arc::new(Schema::new(fields));
        let orders = (order(&by.0, matching)?, order(&by.1, matching)?);
        let properties = PlanProperties::new(
            // The left side's columns keep their positions.
            EquivalenceProperties::new_with_orderings(Arc::clone(&schema), [orders.0.clone()]),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            left.properties().boundedness,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        Ok(Self {
            left,
            right,
            by,
            matching,
            orders,
            schema,
            metrics: ExecutionPlanMetricsSet::new(),
            properties: Arc::new(properties),
        })
    }
}

fn order(by: &AsOfKeys, matching: AsOfCondition) -> Result<LexOrdering> {
    let sorted = |expr: &Arc<dyn PhysicalExpr>, descending| {
        let options = SortOptions {
            descending,
            nulls_first: false,
        };
        PhysicalSortExpr::new(Arc::clone(expr), options)
    };
    let keys = by.keys.iter().map(|key| sorted(key, false));
    let order = keys.chain([sorted(&by.time, matching.forward)]);
    match LexOrdering::new(order) {
        Some(order) => Ok(order),
        None => internal_err!("a join by time has an order"),
    }
}

impl DisplayAs for AsOfJoinExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.by.0.keys.iter().zip(&self.by.1.keys);
        let keys: Vec<String> = keys
            .map(|(left, right)| format!("{left} = {right}"))
            .collect();
        let sign = match (self.matching.forward, self.matching.strict) {
            (false, false) => ">=",
            (false, true) => ">",
            (true, false) => "<=",
            (true, true) => "<",
        };
        let (left, right) = (&self.by.0.time, &self.by.1.time);
        write!(
            f,
            "AsOfJoinExec: on=[{}], match={left} {sign} {right}",
            keys.join(", ")
        )?;
        match self.matching.most {
            Some(most) => write!(f, ", most={most}"),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for AsOfJoinExec {
    fn name(&self) -> &'static str {
        "AsOfJoinExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition, Distribution::SinglePartition]
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        let (left, right) = &self.orders;
        vec![Some(left.clone().into()), Some(right.clone().into())]
    }

    /// An order required of the output does not have to hold for the input.
    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false, false]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false, false]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.left, &self.right]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for by in [&self.by.0, &self.by.1] {
            for expr in by.keys.iter().chain([&by.time]) {
                if f(expr)? == TreeNodeRecursion::Stop {
                    return Ok(TreeNodeRecursion::Stop);
                }
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Ok([left, right]) = <[_; 2]>::try_from(children) else {
            return internal_err!("two plans are joined");
        };
        Ok(Arc::new(Self::new(
            left,
            right,
            self.by.clone(),
            self.matching,
        )?))
    }

    always_recomputed!();

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let of_left = self.left.schema();
        let kinds = self.by.0.keys.iter().map(|key| key.data_type(&of_left));
        let kinds = kinds.collect::<Result<Vec<DataType>>>()?;
        let forward = self.matching.forward;
        let left = self.left.execute(partition, Arc::clone(&context))?;
        let right = self.right.execute(partition, context)?;
        let merge = AsOfMerge {
            left: AsOfSide::new(left, self.by.0.clone(), &kinds, forward)?,
            right: AsOfSide::new(right, self.by.1.clone(), &kinds, forward)?,
            matching: self.matching,
            schema: Arc::clone(&self.schema),
            right_schema: self.right.schema(),
            found: AsOfMatch::default(),
        };
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let begun = (merge, baseline);
        let batches = futures::stream::try_unfold(begun, |(mut merge, baseline)| async move {
            Ok(merge.next().await?.map(|batch| {
                baseline.record_output(batch.num_rows());
                (batch, (merge, baseline))
            }))
        });
        let schema = Arc::clone(&self.schema);
        let stream = RecordBatchStreamAdapter::new(schema, batches);
        Ok(make_cooperative(Box::pin(stream)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}
