//! Subqueries in the ON of a join: `… LEFT JOIN u ON t.k = u.k AND t.x NOT IN (SELECT …)`.
//!
//! The value of such a subquery depends on the row of one side, or on none; it is computed there, as a
//! column. A condition of an inner join that depends on both sides becomes a filter above the join.

use super::{BesideColumns, has_values, outer_columns};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, JoinType, Result, not_impl_err};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Join, LogicalPlan, LogicalPlanBuilder};
use std::sync::Arc;

/// The sides of a join on which an expression depends.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Left,
    Right,
    Both,
}

impl BesideColumns {
    /// A join whose condition has subqueries.
    pub(super) fn join(&mut self, join: Join) -> Result<LogicalPlan> {
        let columns = join.schema.columns();
        let (mut conditions, mut above) = (Vec::new(), Vec::new());
        for part in join.filter.into_iter().flat_map(split_conjunction_owned) {
            if join.join_type == JoinType::Inner
                && has_values_of_both(&part, join.left.schema(), join.right.schema())
            {
                above.push(part);
            } else {
                conditions.push(part);
            }
        }
        let (mut of_left, mut of_right) = (Vec::new(), Vec::new());
        let mut taken = Vec::with_capacity(conditions.len());
        for condition in conditions {
            let condition = condition.transform_down(|part| {
                if !is_value(&part) {
                    return Ok(Transformed::no(part));
                }
                let column = match side(&part, join.left.schema(), join.right.schema()) {
                    Side::Left => self.column_of_value(&mut of_left, part),
                    Side::Right => self.column_of_value(&mut of_right, part),
                    Side::Both => {
                        return not_impl_err!(
                            "a subquery in the ON of an outer join may depend on one side only"
                        );
                    }
                };
                Ok(Transformed::new(column, true, TreeNodeRecursion::Jump))
            })?;
            taken.push(condition.data);
        }
        let left = self.with_columns(Arc::unwrap_or_clone(join.left), of_left)?;
        let right = self.with_columns(Arc::unwrap_or_clone(join.right), of_right)?;
        let joined = LogicalPlan::Join(Join::try_new(
            Arc::new(left),
            Arc::new(right),
            join.on,
            conjunction(taken),
            join.join_type,
            join.join_constraint,
            join.null_equality,
            join.null_aware,
        )?);
        let mut rows = LogicalPlanBuilder::from(joined);
        rows = rows.project(columns.into_iter().map(Expr::Column))?;
        let Some(above) = conjunction(above) else {
            return rows.build();
        };
        Ok(self.node(rows.filter(above)?.build()?)?.data)
    }
}

fn is_value(part: &Expr) -> bool {
    matches!(
        part,
        Expr::InSubquery(_) | Expr::Exists(_) | Expr::SetComparison(_) | Expr::ScalarSubquery(_)
    )
}

fn has_values_of_both(condition: &Expr, left: &DFSchema, right: &DFSchema) -> bool {
    let mut found = false;
    // It never fails.
    let _ = condition.apply(|part| {
        found |= is_value(part) && side(part, left, right) == Side::Both;
        Ok(TreeNodeRecursion::Continue)
    });
    found && has_values(condition)
}

/// The side on whose columns an expression depends; the left one if it depends on none.
fn side(part: &Expr, left: &DFSchema, right: &DFSchema) -> Side {
    let (mut needs_left, mut needs_right) = (false, false);
    let columns = part.column_refs().into_iter().cloned();
    for column in columns.chain(outer_columns(part)) {
        needs_left |= left.has_column(&column);
        needs_right |= right.has_column(&column);
    }
    match (needs_left, needs_right) {
        (true, true) => Side::Both,
        (false, true) => Side::Right,
        _ => Side::Left,
    }
}
