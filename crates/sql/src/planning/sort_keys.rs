//! `ORDER BY x, x`: of equal sort keys, the first decides.
//!
//! DataFusion removes the others when it plans `first_value` and windows, and then panics or fails because
//! it has fewer orders than keys. So they are removed before that. The rule runs last: what other rules
//! write for DISTINCT ON and for LATERAL has sort keys, too.

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{HashSet, Result};
use datafusion::logical_expr::expr::Sort;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// See the module documentation.
#[derive(Debug)]
pub(crate) struct DistinctSortKeys;

impl OptimizerRule for DistinctSortKeys {
    fn name(&self) -> &'static str {
        "distinct_sort_keys"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        match plan {
            LogicalPlan::Sort(mut sort) => {
                let is_changed = without_repeated(&mut sort.expr);
                let sort = LogicalPlan::Sort(sort);
                Ok(Transformed::new_transformed(sort, is_changed))
            }
            LogicalPlan::Aggregate(_) | LogicalPlan::Window(_) | LogicalPlan::Projection(_) => {
                let names = NamePreserver::new(&plan);
                plan.map_expressions(|expr| {
                    let name = names.save(&expr);
                    let made = expr.transform_up(|part| Ok(with_distinct_keys(part)))?;
                    Ok(if made.transformed {
                        made.update_data(|expr| name.restore(expr))
                    } else {
                        made
                    })
                })
            }
            other => Ok(Transformed::no(other)),
        }
    }
}

fn with_distinct_keys(part: Expr) -> Transformed<Expr> {
    match part {
        Expr::AggregateFunction(mut call) => {
            let is_changed = without_repeated(&mut call.params.order_by);
            Transformed::new_transformed(Expr::AggregateFunction(call), is_changed)
        }
        Expr::WindowFunction(mut call) => {
            let is_changed = without_repeated(&mut call.params.order_by);
            Transformed::new_transformed(Expr::WindowFunction(call), is_changed)
        }
        other => Transformed::no(other),
    }
}

/// Removes the keys whose expression occurs before; whether there were any.
fn without_repeated(keys: &mut Vec<Sort>) -> bool {
    if keys.len() < 2 {
        return false;
    }
    let before = keys.len();
    let mut seen = HashSet::with_capacity(before);
    keys.retain(|key| seen.insert(key.expr.clone()));
    keys.len() < before
}
