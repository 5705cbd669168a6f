//! `x IN (1, NULL)` becomes `x IN (1) OR NULL`, and `x NOT IN (1, NULL)` becomes `x NOT IN (1) AND NULL`.
//!
//! DataFusion joins the lists of `x IN (…) OR x IN (…)` and intersects those of `AND`, and forgets on the way
//! that a comparison with NULL is neither true nor false. The rule runs before its rules.

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan, lit};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// See the module documentation.
#[derive(Debug)]
pub(crate) struct NullInLists;

impl OptimizerRule for NullInLists {
    fn name(&self) -> &'static str {
        "null_in_lists"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let names = NamePreserver::new(&plan);
        plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let made = expr.transform_up(|part| Ok(without_nulls(part)))?;
            Ok(if made.transformed {
                made.update_data(|expr| name.restore(expr))
            } else {
                made
            })
        })
    }
}

fn is_null(item: &Expr) -> bool {
    match item {
        Expr::Literal(value, _) => value.is_null(),
        Expr::Cast(cast) => is_null(&cast.expr),
        _ => false,
    }
}

fn without_nulls(part: Expr) -> Transformed<Expr> {
    let Expr::InList(mut list) = part else {
        return Transformed::no(part);
    };
    let count = list.list.len();
    list.list.retain(|item| !is_null(item));
    if list.list.len() == count {
        return Transformed::no(Expr::InList(list));
    }
    let unknown = lit(ScalarValue::Boolean(None));
    if list.list.is_empty() {
        return Transformed::yes(unknown);
    }
    let is_negated = list.negated;
    let rest = Expr::InList(list);
    Transformed::yes(if is_negated {
        rest.and(unknown)
    } else {
        rest.or(unknown)
    })
}
