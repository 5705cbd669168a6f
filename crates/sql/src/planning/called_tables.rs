//! Calls of functions that return rows, each as a table of its own.
//!
//! DataFusion compares two scans by the name of their table and not by the rows that it provides. Calls of one
//! function are tables of one name: of two subqueries that call it with different arguments, DataFusion would
//! evaluate only one.

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{Result, TableReference};
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, TableScan};
use std::sync::Arc;

/// A plan as the planner made it, with calls that DataFusion can tell apart.
///
/// # Errors
/// DataFusion's errors.
pub(crate) fn with_distinct_calls(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut calls = 0;
    plan.apply_with_subqueries(|node| {
        calls += usize::from(matches!(node, LogicalPlan::TableScan(scan) if is_call(scan)));
        Ok(TreeNodeRecursion::Continue)
    })?;
    if calls < 2 {
        return Ok(plan);
    }
    let mut number = 0;
    let renamed = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::TableScan(scan) if is_call(&scan) => {
            number += 1;
            numbered(scan, number).map(Transformed::yes)
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(renamed.data)
}

/// Whether a scan reads the rows of a function: DataFusion names it after the call.
fn is_call(scan: &TableScan) -> bool {
    matches!(&scan.table_name, TableReference::Bare { table } if table.ends_with("()"))
}

/// The scan under another name, with columns that keep theirs.
fn numbered(scan: TableScan, number: usize) -> Result<LogicalPlan> {
    let name = TableReference::bare(format!("{}\u{1f}{number}", scan.table_name.table()));
    LogicalPlanBuilder::scan(name, Arc::clone(&scan.source), scan.projection)?
        .alias(scan.table_name)?
        .build()
}
