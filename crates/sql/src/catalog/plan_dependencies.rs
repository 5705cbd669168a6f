//! What a plan depends on other than data.

use crate::rollup::RollupTableProvider;
use crate::tables::table::SeriesTable;
use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::DefaultTableSource;
use datafusion::logical_expr::{Expr, LogicalPlan, TableSource, Volatility};
use marigram_engine::Engine;
use marigram_model::TableSchema;
use std::sync::Arc;

/// Longest statement that is cached, bytes.
const STATEMENT_BYTES_MAX: usize = 16 << 10;

/// Whether the tables of a plan are still those for which it was made.
pub(crate) fn are_current(tables: &[Arc<TableSchema>], engine: &Engine) -> bool {
    tables.iter().all(|known| {
        engine
            .table(&known.database, &known.name)
            .is_ok_and(|now| Arc::ptr_eq(&now, known) || *now == **known)
    })
}

/// The engine's tables that a plan reads or writes.
///
/// # Errors
/// DataFusion's errors, for plans that cannot be traversed.
pub(crate) fn tables_of(plan: &LogicalPlan) -> Result<Vec<Arc<TableSchema>>> {
    let mut tables = Vec::new();
    let mut note = |source: &Arc<dyn TableSource>| {
        let Some(source) = source.downcast_ref::<DefaultTableSource>() else {
            return;
        };
        let provider = &source.table_provider;
        if let Some(table) = provider.downcast_ref::<SeriesTable>() {
            tables.push(Arc::clone(table.table_schema()));
        } else if let Some(rollup) = provider.downcast_ref::<RollupTableProvider>() {
            tables.push(Arc::clone(rollup.table_schema()));
        }
    };
    plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::TableScan(scan) => note(&scan.source),
            LogicalPlan::Dml(dml) => note(&dml.target),
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(tables)
}

/// Whether the plan of a statement, not yet optimized, may be cached with its parameters.
///
/// # Errors
/// DataFusion's errors, for plans that cannot be traversed.
pub(crate) fn may_be_kept_prepared(sql: &str, plan: &LogicalPlan) -> Result<bool> {
    depends_on_tables_alone(sql, plan, true)
}

/// Whether the plan of a statement, not yet optimized, may be cached.
///
/// # Errors
/// DataFusion's errors, for plans that cannot be traversed.
pub(crate) fn may_be_kept(sql: &str, plan: &LogicalPlan) -> Result<bool> {
    depends_on_tables_alone(sql, plan, false)
}

/// Whether a plan, not yet optimized, depends only on what the cache checks, and on parameters if
/// `parameters` allows them.
fn depends_on_tables_alone(sql: &str, plan: &LogicalPlan, parameters: bool) -> Result<bool> {
    if sql.len() > STATEMENT_BYTES_MAX {
        return Ok(false);
    }
    let (mut scans, mut kept) = (0, true);
    plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::TableScan(_) => scans += 1,
            LogicalPlan::Explain(_) | LogicalPlan::Analyze(_) => kept = false,
            _ => {}
        }
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                let volatility = match part {
                    Expr::ScalarFunction(call) => call.func.signature().volatility,
                    Expr::Placeholder(_) if !parameters => Volatility::Volatile,
                    _ => Volatility::Immutable,
                };
                kept &= volatility == Volatility::Immutable;
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    // Tables that are not ours do not report changes.
    Ok(kept && tables_of(plan)?.len() == scans)
}
