//! Refuses references from a subquery to a query that is not the one around it, but further out.
//!
//! DataFusion plans them, and its rules, which join a subquery to the query around it, then look for the column
//! there: the error would say that a table in plain sight does not exist.

use crate::error::{SqlError, SqlResult};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan, Subquery};

/// Checks the references of all subqueries in expressions.
///
/// # Errors
/// 0A000 with the first column that such a reference names, and DataFusion's errors for plans that cannot be
/// traversed.
pub(crate) fn check_outer_references(plan: &LogicalPlan) -> SqlResult<()> {
    let mut far = None;
    find(plan, &mut Vec::new(), &mut far)?;
    let Some(column) = far else { return Ok(()) };
    let name = column.flat_name();
    let message = format!(
        "column '{name}' belongs to a query that is not directly around this subquery; a subquery can refer to \
         the columns of the query directly around it: write one of the two subqueries as a join"
    );
    Err(SqlError::named("0A000", &name, message))
}

/// Finds a column that a subquery refers to and that is none of the query around it; `around` are the columns
/// of the queries around `plan`, the outermost first.
fn find(plan: &LogicalPlan, around: &mut Vec<DFSchema>, far: &mut Option<Column>) -> Result<()> {
    // The rows before a LATERAL subquery are around it, too.
    if far.is_some() || matches!(plan, LogicalPlan::Subquery(_)) {
        return Ok(());
    }
    plan.apply_expressions(|expr| {
        expr.apply(|part| {
            if let Expr::OuterReferenceColumn(_, column) = part
                && is_far(column, around)
            {
                *far = Some(column.clone());
            }
            if let Some(subquery) = subquery_of(part) {
                around.push(merge_schema(&plan.inputs()));
                find(&subquery.subquery, around, far)?;
                around.pop();
            }
            Ok(if far.is_some() {
                TreeNodeRecursion::Stop
            } else {
                TreeNodeRecursion::Continue
            })
        })
    })?;
    for input in plan.inputs() {
        find(input, around, far)?;
    }
    Ok(())
}

fn subquery_of(expr: &Expr) -> Option<&Subquery> {
    match expr {
        Expr::ScalarSubquery(subquery) => Some(subquery),
        Expr::Exists(asked) => Some(&asked.subquery),
        Expr::InSubquery(asked) => Some(&asked.subquery),
        Expr::SetComparison(asked) => Some(&asked.subquery),
        _ => None,
    }
}

/// Whether a column is one of a query around the one that is directly around.
fn is_far(column: &Column, around: &[DFSchema]) -> bool {
    let Some((nearest, others)) = around.split_last() else {
        return false;
    };
    nearest.maybe_index_of_column(column).is_none()
        && others
            .iter()
            .any(|schema| schema.maybe_index_of_column(column).is_some())
}
