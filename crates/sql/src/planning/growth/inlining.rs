//! Estimates how large an expression becomes when its columns are expanded.
//!
//! Rules push conditions down to the tables, expand computed columns and copy operands, in steps that
//! cannot be interrupted. Types grow in the same way: a structure of two structures, and so on.

use super::expression_parts::for_each_part;
use crate::error::{SqlError, SqlResult};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Column, Result};
use datafusion::logical_expr::{Expr, JoinType, LogicalPlan};

/// The largest number of nodes by which an expression may grow when it is expanded.
const NODES_MAX: u64 = 100_000;

/// Refuses a plan with expressions that become too large when they are moved to the source of their
/// columns.
///
/// # Errors
/// `54001`, and DataFusion's errors for plans that cannot be traversed.
pub(crate) fn check_inlining(plan: &LogicalPlan) -> SqlResult<()> {
    if !may_grow(plan)? {
        return Ok(());
    }
    let mut growth = 0;
    sizes_of(plan, &mut growth)?;
    if growth > NODES_MAX {
        let message = format!(
            "expressions of this statement have {growth} more parts than its text when BETWEEN, CASE \
             and columns that are computed from each other are expanded; at most {NODES_MAX} are \
             planned: write the result of an inner query into a table, and use that"
        );
        return Err(SqlError::invalid("54001", message));
    }
    Ok(())
}

/// Whether that is possible, judging only by the largest expression of each node.
fn may_grow(plan: &LogicalPlan) -> Result<bool> {
    let mut bound: u64 = 1;
    plan.apply_with_subqueries(|node| {
        let mut largest = 1;
        node.apply_expressions(|expr| {
            largest = size_of(expr, &|_| 1).max(largest);
            Ok(TreeNodeRecursion::Continue)
        })?;
        bound = bound.saturating_mul(largest);
        Ok(if bound > NODES_MAX {
            TreeNodeRecursion::Stop
        } else {
            TreeNodeRecursion::Continue
        })
    })?;
    Ok(bound > NODES_MAX)
}

/// For each column of a plan, the number of nodes to which it expands. Raises `growth` to the
/// largest growth of an expression in the plan; nodes in the text itself do not count, since a long
/// list does not grow.
fn sizes_of(plan: &LogicalPlan, growth: &mut u64) -> Result<Vec<u64>> {
    plan.apply_subqueries(|subquery| {
        sizes_of(subquery, growth)?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    let inputs = plan.inputs();
    let mut sizes = Vec::with_capacity(inputs.len());
    for input in &inputs {
        sizes.push(sizes_of(input, growth)?);
    }
    let of_column = |column: &Column| {
        let found = inputs.iter().zip(&sizes).find_map(|(input, sizes)| {
            let at = input.schema().maybe_index_of_column(column)?;
            sizes.get(at).copied()
        });
        found.unwrap_or(1)
    };
    plan.apply_expressions(|expr| {
        let grows_by = size_of(expr, &of_column).saturating_sub(parts_in_text(expr));
        *growth = grows_by.max(*growth);
        Ok(TreeNodeRecursion::Continue)
    })?;
    let of_all = |exprs: &[Expr]| -> Vec<u64> {
        let sizes = exprs.iter().map(|expr| size_of(expr, &of_column));
        sizes.collect()
    };
    let width = plan.schema().fields().len();
    let mut made = match plan {
        LogicalPlan::Projection(projection) => of_all(&projection.expr),
        LogicalPlan::Aggregate(aggregate) => {
            let groups = of_all(&aggregate.group_expr);
            // Grouping sets add columns of their own.
            if groups.len() + aggregate.aggr_expr.len() == width {
                [groups, of_all(&aggregate.aggr_expr)].concat()
            } else {
                vec![groups.into_iter().max().unwrap_or(1); width]
            }
        }
        LogicalPlan::Window(window) => {
            let computed = of_all(&window.window_expr);
            let mut input = sizes.pop().unwrap_or_default();
            input.extend(computed);
            input
        }
        LogicalPlan::Join(join)
            if matches!(join.join_type, JoinType::RightSemi | JoinType::RightAnti) =>
        {
            sizes.pop().unwrap_or_default()
        }
        LogicalPlan::Join(join)
            if matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti) =>
        {
            sizes.swap_remove(0)
        }
        LogicalPlan::Join(_) => sizes.concat(),
        // Nodes that pass rows on, and unions.
        _ => {
            let mut largest = vec![1; width];
            for input in sizes.iter().filter(|input| input.len() == width) {
                for (largest, size) in largest.iter_mut().zip(input) {
                    *largest = (*size).max(*largest);
                }
            }
            largest
        }
    };
    made.resize(width, 1);
    Ok(made)
}

/// The nodes of an expression, including copies, and those to which its columns expand.
fn size_of(expr: &Expr, of_column: &dyn Fn(&Column) -> u64) -> u64 {
    let mut nodes: u64 = 0;
    for_each_part(expr, 1, &mut |part, copies| {
        let size = match part {
            Expr::Column(column) => of_column(column),
            _ => 1,
        };
        nodes = nodes.saturating_add(size.saturating_mul(copies));
    });
    nodes
}

/// The nodes of an expression as it is written.
fn parts_in_text(expr: &Expr) -> u64 {
    let mut nodes = 0;
    for_each_part(expr, 1, &mut |_, _| nodes += 1);
    nodes
}
