//! Operators without their scans, and therefore without data.

use super::SeriesScan;
use crate::plan_methods::leaf_methods;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use std::fmt;
use std::sync::Arc;

/// Takes the position of a scan.
#[derive(Debug)]
pub struct ScanPlaceholder(Arc<PlanProperties>);

impl ScanPlaceholder {
    /// Creates a placeholder for an operator.
    pub fn in_place_of(operator: &dyn ExecutionPlan) -> Arc<Self> {
        Arc::new(Self(Arc::clone(operator.properties())))
    }
}

/// `plan` with placeholders instead of its scans.
///
/// # Errors
/// DataFusion's errors, for operators that cannot be traversed.
pub fn with_scan_placeholders(plan: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = Arc::clone(plan).transform_up(|node| {
        Ok(if node.is::<SeriesScan>() {
            Transformed::yes(ScanPlaceholder::in_place_of(node.as_ref()) as _)
        } else {
            Transformed::no(node)
        })
    })?;
    Ok(plan.data)
}

/// `plan` with `scan` instead of placeholders.
///
/// # Errors
/// DataFusion's errors, for operators that cannot be traversed.
pub fn fill_scan_placeholders(
    plan: Arc<dyn ExecutionPlan>,
    scan: &Arc<SeriesScan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(|node| {
        Ok(if node.is::<ScanPlaceholder>() {
            Transformed::yes(Arc::clone(scan) as _)
        } else {
            Transformed::no(node)
        })
    })?;
    Ok(plan.data)
}

impl DisplayAs for ScanPlaceholder {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hole")
    }
}

impl ExecutionPlan for ScanPlaceholder {
    fn name(&self) -> &'static str {
        "Hole"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.0
    }

    leaf_methods!();

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        internal_err!("a cached plan was executed without its scan")
    }
}
