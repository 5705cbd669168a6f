//! `EXCEPT ALL` and `INTERSECT ALL`, which count equal rows: of three equal rows on the left side and one
//! on the right side, two remain, or one is in both.
//!
//! DataFusion plans them as joins that only ask whether there is such a row. Here equal rows are numbered
//! on each side, and the numbers are joined as well.

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, JoinConstraint, JoinType, NullEquality, Result};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{
    Distinct, Expr, ExprFunctionExt, Join, LogicalPlan, LogicalPlanBuilder,
};
use marigram_operators::lateral::columns_of;
use std::sync::Arc;

/// The name of the column with the number.
const COPY: &str = "copy";
/// The names of its tables; no user's table has such a name.
const TABLES: [&str; 2] = ["\u{1f}left", "\u{1f}right"];

/// A plan as the planner made it, with set operations that count.
///
/// # Errors
/// DataFusion's errors.
pub(crate) fn with_counted_sets(plan: LogicalPlan) -> Result<LogicalPlan> {
    let done = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Join(join) if is_counted_set(&join) => counted(join).map(Transformed::yes),
        other => Ok(Transformed::no(other)),
    })?;
    Ok(done.data)
}

/// Whether a join is an `EXCEPT ALL` or an `INTERSECT ALL`. Without ALL, its left side is distinct, and
/// need not be counted. No other join has NULLs that are equal before the plan is optimized.
fn is_counted_set(join: &Join) -> bool {
    matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
        && join.null_equality == NullEquality::NullEqualsNull
        && join.join_constraint == JoinConstraint::On
        && join.on.len() == join.left.schema().fields().len()
        && !matches!(*join.left, LogicalPlan::Distinct(Distinct::All(_)))
}

fn counted(join: Join) -> Result<LogicalPlan> {
    let columns = join.left.schema().columns();
    let (left, mine) = numbered(Arc::unwrap_or_clone(join.left), TABLES[0])?;
    let (right, theirs) = numbered(Arc::unwrap_or_clone(join.right), TABLES[1])?;
    let mut on = join.on;
    on.push((mine, theirs));
    let joined = LogicalPlan::Join(Join::try_new(
        Arc::new(left),
        Arc::new(right),
        on,
        None,
        join.join_type,
        join.join_constraint,
        join.null_equality,
        false,
    )?);
    LogicalPlanBuilder::from(joined)
        .project(columns.into_iter().map(Expr::Column))?
        .build()
}

/// The rows with a number among those that are equal, and its column.
fn numbered(rows: LogicalPlan, table: &str) -> Result<(LogicalPlan, Expr)> {
    let columns = columns_of(&rows);
    let number = row_number().partition_by(columns.clone()).build()?;
    let result = Column::new_unqualified(number.schema_name().to_string());
    let mut shown = columns;
    shown.push(Expr::Column(result).alias_qualified(Some(table), COPY));
    let rows = LogicalPlanBuilder::from(rows)
        .window(vec![number])?
        .project(shown)?
        .build()?;
    Ok((rows, Expr::Column(Column::new(Some(table), COPY))))
}
