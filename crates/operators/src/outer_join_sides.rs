//! Outer joins whose optional side has constants.
//!
//! A column with one value (`WHERE k = 5`, an aggregate without groups) is no constant above an outer join:
//! rows without a match have NULL there. DataFusion takes it for one, and leaves out sorts by it and the
//! partitions of windows. So this rule puts an operator below such a join that passes all rows, but says
//! nothing about constants.

use crate::plan_methods::{always_recomputed, no_expressions};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinType, Result, Statistics, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::{
    ChildStats, ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan,
    PlanProperties, ReplaceChildrenOptions, StatisticsArgs,
};
use std::fmt;
use std::sync::Arc;

/// See the module documentation. The rule runs before sorts are added or left out.
#[derive(Debug)]
pub struct OuterJoinSides;

impl PhysicalOptimizerRule for OuterJoinSides {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let optional = match join_type(&node) {
                Some(JoinType::Left) => [false, true],
                Some(JoinType::Right) => [true, false],
                Some(JoinType::Full) => [true, true],
                _ => return Ok(Transformed::no(node)),
            };
            let mut is_changed = false;
            let sides = node.children().into_iter().zip(optional);
            let sides = sides.map(|(side, is_optional)| -> Arc<dyn ExecutionPlan> {
                let properties = side.properties().equivalence_properties();
                if !is_optional || properties.constants().is_empty() {
                    return Arc::clone(side);
                }
                is_changed = true;
                Arc::new(OptionalSideExec::new(Arc::clone(side)))
            });
            let sides = sides.collect();
            if !is_changed {
                return Ok(Transformed::no(node));
            }
            let mode = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
            Ok(Transformed::yes(node.replace_children(sides, mode)?))
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "OuterJoinSides"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn join_type(node: &Arc<dyn ExecutionPlan>) -> Option<JoinType> {
    if let Some(join) = node.downcast_ref::<HashJoinExec>() {
        Some(*join.join_type())
    } else if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() {
        Some(*join.join_type())
    } else {
        let join = node.downcast_ref::<SortMergeJoinExec>()?;
        Some(join.join_type())
    }
}

/// Passes the rows of its input, about whose constants nothing is known.
#[derive(Debug)]
struct OptionalSideExec {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl OptionalSideExec {
    fn new(input: Arc<dyn ExecutionPlan>) -> Self {
        let known = input.properties().equivalence_properties();
        let orderings = known.oeq_class().iter().cloned();
        let properties = EquivalenceProperties::new_with_orderings(input.schema(), orderings);
        let properties = PlanProperties::clone(input.properties()).with_eq_properties(properties);
        Self {
            input,
            properties: Arc::new(properties),
        }
    }
}

impl DisplayAs for OptionalSideExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OptionalSideExec")
    }
}

impl ExecutionPlan for OptionalSideExec {
    fn name(&self) -> &'static str {
        "OptionalSideExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    no_expressions!();

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match children.pop() {
            Some(input) if children.is_empty() => Ok(Arc::new(Self::new(input))),
            _ => internal_err!("the side of a join has one input"),
        }
    }

    always_recomputed!();

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        match inputs {
            [input] => Ok(Arc::clone(input)),
            _ => internal_err!("the side of a join has one input"),
        }
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }
}
