//! Estimates how much work the subqueries in expressions make while a statement is planned.
//!
//! DataFusion checks the invariants of a plan by two recursions into each subquery, in steps that
//! cannot be interrupted: the work doubles with each level. Where the value of `x IN (SELECT …)` is
//! used, the subquery is copied as well; a comparison with ANY or ALL becomes three subqueries.

use super::expression_parts::for_each_part;
use crate::error::{SqlError, SqlResult};
use crate::planning::subqueries::compares_rows;
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::{Expr, LogicalPlan};

/// The largest number of nodes by which a plan may grow when its subqueries are checked and copied.
const NODES_MAX: u64 = 100_000;
/// The visits of a subquery for each visit of its expression.
const VISITS: u64 = 2;
/// The same for a subquery that is also copied.
const VISITS_OF_COPIED: u64 = 4;
/// The same for a subquery that is compared by ANY or ALL.
const VISITS_OF_COMPARED: u64 = 6;

/// Refuses a plan whose subqueries are nested so deep that planning takes too long.
///
/// # Errors
/// `54001`, and DataFusion's errors for plans that cannot be traversed.
pub(crate) fn check_nested_subqueries(plan: &LogicalPlan) -> SqlResult<()> {
    let mut growth = 0;
    add_growth(plan, 1, &mut growth)?;
    if growth > NODES_MAX {
        let message = format!(
            "the subqueries in expressions of this statement are nested so deep that planning takes \
             {growth} steps; at most {NODES_MAX} are taken: nest fewer, or join queries in FROM"
        );
        return Err(SqlError::invalid("54001", message));
    }
    Ok(())
}

/// Adds the visits of all nodes beyond the first.
fn add_growth(plan: &LogicalPlan, visits: u64, growth: &mut u64) -> Result<()> {
    *growth = growth.saturating_add(visits - 1);
    plan.apply_expressions(|expr| {
        let mut added = Ok(());
        for_each_part(expr, visits, &mut |part, visits| {
            let (subquery, factor) = match part {
                Expr::ScalarSubquery(subquery) => (subquery, VISITS),
                // A comparison of rows, which is written as EXISTS, becomes two of them.
                Expr::Exists(asked) if compares_rows(asked) => (&asked.subquery, VISITS_OF_COPIED),
                Expr::Exists(asked) => (&asked.subquery, VISITS),
                Expr::InSubquery(asked) => (&asked.subquery, VISITS_OF_COPIED),
                Expr::SetComparison(asked) => (&asked.subquery, VISITS_OF_COMPARED),
                _ => return,
            };
            if added.is_ok() {
                added = add_growth(&subquery.subquery, visits.saturating_mul(factor), growth);
            }
        });
        added.map(|()| TreeNodeRecursion::Continue)
    })?;
    for input in plan.inputs() {
        add_growth(input, visits, growth)?;
    }
    Ok(())
}
