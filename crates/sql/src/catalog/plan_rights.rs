//! Whether a client may run a plan: it needs READ where the plan reads, and WRITE where it writes.

use crate::access::{check_administrator, check_database};
use crate::rollup::RollupTableProvider;
use crate::tables::reference::ReferenceTableProvider;
use crate::tables::series::SeriesList;
use crate::tables::table::SeriesTable;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::DefaultTableSource;
use datafusion::logical_expr::{Expr, LogicalPlan, TableSource, WriteOp};
use marigram_access::{AccessRights, DatabasePrivileges};
use marigram_model::TableSchema;
use marigram_service::ServiceError;
use std::sync::Arc;

/// Refuses a plan that a client with these rights may not run. Views must be inlined.
///
/// # Errors
/// [`ServiceError::Forbidden`], and DataFusion's errors for plans that cannot be traversed.
pub(crate) fn check_plan(rights: &AccessRights, plan: &LogicalPlan) -> Result<()> {
    if rights.is_administrator {
        return Ok(());
    }
    let needs = |database: &str, privileges| {
        check_database(rights, database, privileges).map_err(forbidden)
    };
    // To delete rows by their keys, WRITE is enough, although the plan reads the table to count them.
    let mut deleted_from = None;
    plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::TableScan(scan) => {
                if let Some(database) = reference_database(&scan.source) {
                    needs(database, DatabasePrivileges::READ)?;
                }
                if let Some(table) = schema_of(&scan.source)
                    && deleted_from != Some(table.id)
                {
                    needs(&table.database, DatabasePrivileges::READ)?;
                }
            }
            LogicalPlan::Dml(dml) => {
                if let Some(database) = reference_database(&dml.target) {
                    needs(database, DatabasePrivileges::WRITE)?;
                }
                if let Some(table) = schema_of(&dml.target) {
                    needs(&table.database, DatabasePrivileges::WRITE)?;
                    if dml.op == WriteOp::Delete && is_by_key(&dml.input, table) {
                        deleted_from = Some(table.id);
                    }
                }
            }
            LogicalPlan::Copy(_) => {
                let what = "COPY with a file of the server";
                check_administrator(rights, what).map_err(forbidden)?;
            }
            LogicalPlan::Ddl(ddl) => {
                check_administrator(rights, ddl.name()).map_err(forbidden)?;
            }
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// Whether a DELETE finds its rows by conditions on times and tags alone.
fn is_by_key(input: &LogicalPlan, table: &TableSchema) -> bool {
    let is_key = |name: &str| name == table.time_name || table.tag(name).is_some();
    match input {
        LogicalPlan::TableScan(_) => true,
        LogicalPlan::Filter(filter) => {
            let columns = filter.predicate.column_refs();
            matches!(*filter.input, LogicalPlan::TableScan(_))
                && columns.iter().all(|column| is_key(&column.name))
                && !filter
                    .predicate
                    .exists(|part| Ok(is_subquery(part)))
                    .unwrap_or(true)
        }
        _ => false,
    }
}

/// Whether an expression holds a query.
pub(crate) fn is_subquery(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Exists(_) | Expr::InSubquery(_) | Expr::ScalarSubquery(_) | Expr::SetComparison(_)
    )
}

/// The engine's table behind a source; `None` for catalogs and functions.
fn schema_of(source: &Arc<dyn TableSource>) -> Option<&Arc<TableSchema>> {
    let source = source.downcast_ref::<DefaultTableSource>()?;
    let provider = &source.table_provider;
    if let Some(table) = provider.downcast_ref::<SeriesTable>() {
        Some(table.table_schema())
    } else if let Some(rollup) = provider.downcast_ref::<RollupTableProvider>() {
        Some(rollup.table_schema())
    } else {
        let list = provider.downcast_ref::<SeriesList>()?;
        Some(list.table_schema())
    }
}

/// The database of a reference table.
fn reference_database(source: &Arc<dyn TableSource>) -> Option<&str> {
    let source = source.downcast_ref::<DefaultTableSource>()?;
    let provider = source
        .table_provider
        .downcast_ref::<ReferenceTableProvider>()?;
    Some(&provider.table().database)
}

/// A refusal among DataFusion's errors.
pub(crate) fn forbidden(error: ServiceError) -> DataFusionError {
    DataFusionError::External(Box::new(crate::error::SqlError::Service(error)))
}
