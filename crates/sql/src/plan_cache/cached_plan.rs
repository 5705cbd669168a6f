//! A cached optimized plan, with the operators that were made from it.

use crate::dialect::column_names::Names;
use crate::plan_cache::plan_template::{PhysicalPlanTemplate, only_scan};
use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr_rewriter::unnormalize_cols;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::physical_plan::ExecutionPlan;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// An optimized plan, and the operators that were last made from it, if they can be reused.
#[derive(Debug)]
pub(crate) struct CachedPlan {
    pub plan: Arc<LogicalPlan>,
    /// The names of its result's columns.
    pub names: Names,
    /// Whether each row takes little time, whatever its values.
    pub is_light: bool,
    /// The filters of its only scan, if it has only one.
    filters: Vec<Expr>,
    /// Shared with the plans for other values of the parameters.
    template: Arc<Mutex<Option<Arc<PhysicalPlanTemplate>>>>,
    /// Counts how often operators of any plan were reused.
    uses: Arc<AtomicU64>,
}

impl CachedPlan {
    /// Creates an entry that has no operators yet. `uses` counts how often operators are reused.
    ///
    /// # Errors
    /// DataFusion's errors, for plans that cannot be traversed.
    pub(crate) fn new(plan: Arc<LogicalPlan>, names: Names, uses: Arc<AtomicU64>) -> Result<Self> {
        let template = Arc::default();
        let filters = filters_of(&plan)?;
        let is_light = is_light(&plan)?;
        Ok(Self {
            plan,
            names,
            is_light,
            filters,
            template,
            uses,
        })
    }

    /// The same with another plan, which only differs in values in the conditions of its only scan:
    /// they share operators.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub(crate) fn with_plan(&self, plan: Arc<LogicalPlan>) -> Result<Self> {
        let filters = filters_of(&plan)?;
        Ok(Self {
            plan,
            names: self.names.clone(),
            is_light: self.is_light,
            filters,
            template: Arc::clone(&self.template),
            uses: Arc::clone(&self.uses),
        })
    }

    /// The operators for an execution; made from those of another execution if possible.
    ///
    /// # Errors
    /// DataFusion's errors.
    pub(crate) async fn physical_plan(
        &self,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let template = self.template.lock().clone();
        if let Some(template) = template
            && let Some(operators) = template.plan(session, &self.filters)?
        {
            self.uses.fetch_add(1, Ordering::Relaxed);
            return Ok(operators);
        }
        let planner = session.query_planner();
        let operators = planner.create_physical_plan(&self.plan, session).await?;
        if let Some(scan) = only_scan(&self.plan)? {
            *self.template.lock() =
                PhysicalPlanTemplate::from_operators(scan, &operators)?.map(Arc::new);
        }
        Ok(operators)
    }
}

/// Functions that take long for a row, or return much for it, as prefixes of their names.
const HEAVY_FUNCTIONS: [&str; 13] = [
    "pg_sleep",
    "repeat",
    "lpad",
    "rpad",
    "array",
    "list",
    "range",
    "generate_series",
    "regexp",
    "levenshtein",
    "replace",
    "translate",
    "string_to",
];

/// Whether no function of a plan takes long for a row: the number of rows alone decides which
/// statements run inline.
///
/// # Errors
/// DataFusion's errors, for plans that cannot be traversed.
pub(crate) fn is_light(plan: &LogicalPlan) -> Result<bool> {
    let mut is_light = true;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                if let Expr::ScalarFunction(call) = part {
                    let name = call.name();
                    is_light &= !HEAVY_FUNCTIONS.iter().any(|heavy| name.starts_with(heavy));
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(is_light)
}

/// The conditions of a plan's only scan, in the form that the scan takes.
fn filters_of(plan: &LogicalPlan) -> Result<Vec<Expr>> {
    let filters = only_scan(plan)?.map(|scan| unnormalize_cols(scan.filters.iter().cloned()));
    Ok(filters.unwrap_or_default())
}
