//! `EXISTS (SELECT …)` of a subquery that depends on the row, where its value is used: a join marks
//! the rows for which the subquery has a row.

use super::correlated::{is_beyond, outer_as_columns};
use datafusion::common::{Column, DFSchema, JoinType, Result, TableReference};
use datafusion::logical_expr::expr::Exists;
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan, LogicalPlanBuilder, lit};
use marigram_operators::lateral::DecorrelatedSubquery;

/// The name that DataFusion gives the column of a mark join.
const MARK: &str = "mark";

/// The rows of a subquery, to be joined to the outer rows as a mark.
pub(super) struct MarkJoin {
    right: LogicalPlan,
    on: Vec<Expr>,
}

/// The join for an EXISTS, and its value; `None` if the subquery cannot be decorrelated, or refers to a
/// query further out.
///
/// # Errors
/// DataFusion's errors.
pub(super) fn mark_of_exists(
    name: &str,
    asked: &Exists,
    outer: &DFSchema,
) -> Result<Option<(MarkJoin, Expr)>> {
    let refers = asked.subquery.subquery.all_out_ref_exprs();
    if refers.iter().any(|expr| is_beyond(expr, outer)) {
        return Ok(None);
    }
    let relation = TableReference::bare(name);
    let rows = with_duplicates(&asked.subquery.subquery)?;
    let Ok(found) = DecorrelatedSubquery::new(&rows) else {
        return Ok(None);
    };
    let found = found.under(Some(&relation))?;
    // A mark says whether there is a row, not whether there is a second.
    if found
        .rows
        .is_some_and(|rows| rows.skip > 0 || rows.fetch == Some(0))
    {
        return Ok(None);
    }
    let on = found.conditions.into_iter().map(outer_as_columns);
    let join = MarkJoin {
        right: found.plan,
        on: on.collect::<Result<_>>()?,
    };
    let mark = Expr::Column(Column::new(Some(relation), MARK));
    let value = if asked.negated {
        Expr::Not(Box::new(mark))
    } else {
        mark
    };
    Ok(Some((join, value)))
}

/// The rows of a plan without an order, and with those that DISTINCT removes: neither changes whether
/// there are rows.
fn with_duplicates(plan: &LogicalPlan) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Distinct(Distinct::All(input)) => with_duplicates(input),
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => with_duplicates(&sort.input),
        LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_) => {
            let inputs = plan.inputs().into_iter().map(with_duplicates);
            let inputs = inputs.collect::<Result<_>>()?;
            plan.with_new_exprs(plan.expressions(), inputs)
        }
        other => Ok(other.clone()),
    }
}

impl MarkJoin {
    /// Adds the mark to the rows of a plan.
    ///
    /// # Errors
    /// DataFusion's errors.
    pub(super) fn beside(self, outer: LogicalPlanBuilder) -> Result<LogicalPlanBuilder> {
        let on = if self.on.is_empty() {
            vec![lit(true)]
        } else {
            self.on
        };
        outer.join_on(self.right, JoinType::LeftMark, on)
    }
}
