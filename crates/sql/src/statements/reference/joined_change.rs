//! `UPDATE … FROM` and `DELETE … USING`: DataFusion plans the join as a query, which becomes the input of the
//! change.
//!
//! Invariant: the first table of the join is the one that changes, and the query gives its columns in their order.

use super::execution::provider_of;
use super::row_expressions::parse_expression;
use crate::dialect::reference::changes::assigned_column;
use crate::error::{SqlError, SqlResult};
use datafusion::arrow::datatypes::Field;
use datafusion::logical_expr::{
    DmlStatement, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, TableScan, WriteOp,
};
use datafusion::sql::sqlparser::ast::{
    self, FromTable, Ident, SelectItem, SetExpr, Statement, TableWithJoins, UpdateTableFromKind,
};
use marigram_reference::ReferenceTable;
use marigram_service::ServiceError;
use std::collections::HashMap;
use std::sync::Arc;

/// `SELECT 1`
pub(super) fn empty_query() -> SqlResult<ast::Query> {
    match parse_expression("(SELECT 1)")? {
        ast::Expr::Subquery(query) => Ok(*query),
        _ => Err(SqlError::syntax("a query cannot be read")),
    }
}

/// The tables and conditions of a change that names more tables than the one that changes.
struct JoinedChange {
    tables: Vec<TableWithJoins>,
    condition: Option<ast::Expr>,
    /// The new values by column.
    values: HashMap<String, ast::Expr>,
    op: WriteOp,
}

/// Makes a query of the join of a statement that names other tables than the one that it changes. Returns
/// what the statement does to the rows; `None` if it names no others.
///
/// # Errors
/// 42703 for an assigned column that the table does not have.
pub(super) fn take_join(
    statement: &mut Statement,
    table: &ReferenceTable,
    alias: &str,
) -> SqlResult<Option<WriteOp>> {
    let Some(mut join) = parts_of(statement)? else {
        return Ok(None);
    };
    let items = table.columns.iter().map(|column| {
        let own = || {
            let parts = [alias, column.name.as_str()];
            ast::Expr::CompoundIdentifier(parts.map(|part| Ident::with_quote('"', part)).to_vec())
        };
        SelectItem::ExprWithAlias {
            expr: join.values.remove(&column.name).unwrap_or_else(own),
            alias: Ident::with_quote('"', column.name.as_str()),
        }
    });
    let items = items.collect();
    if let Some(name) = join.values.keys().next() {
        let message = format!(
            "column \"{name}\" of relation \"{}\" does not exist",
            table.name
        );
        return Err(SqlError::named("42703", name, message));
    }
    let mut query = empty_query()?;
    if let SetExpr::Select(select) = &mut *query.body {
        select.projection = items;
        select.from = join.tables;
        select.selection = join.condition;
    }
    *statement = Statement::Query(Box::new(query));
    Ok(Some(join.op))
}

fn parts_of(statement: &mut Statement) -> SqlResult<Option<JoinedChange>> {
    let mut values = HashMap::new();
    let (target, others, condition, op) = match statement {
        Statement::Update(update) => {
            let Some(from) = update.from.take() else {
                return Ok(None);
            };
            let (UpdateTableFromKind::BeforeSet(others) | UpdateTableFromKind::AfterSet(others)) =
                from;
            for assignment in std::mem::take(&mut update.assignments) {
                values.insert(assigned_column(&assignment)?, assignment.value);
            }
            let target = update.table.clone();
            (target, others, update.selection.take(), WriteOp::Update)
        }
        Statement::Delete(delete) => {
            let Some(others) = delete.using.take() else {
                return Ok(None);
            };
            let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) =
                &mut delete.from;
            let Some(target) = from.pop() else {
                return Ok(None);
            };
            (target, others, delete.selection.take(), WriteOp::Delete)
        }
        _ => return Ok(None),
    };
    Ok(Some(JoinedChange {
        tables: std::iter::once(target).chain(others).collect(),
        condition,
        values,
        op,
    }))
}

/// The change that the plan of such a query stands for.
///
/// # Errors
/// If a value does not have the type of its column.
pub(super) fn change_from_join(
    plan: &LogicalPlan,
    table: &ReferenceTable,
    op: &WriteOp,
) -> SqlResult<LogicalPlan> {
    let bug = || SqlError::from(ServiceError::Internal("a join has no columns".to_owned()));
    let LogicalPlan::Projection(projection) = plan else {
        return Err(bug());
    };
    let target = first_scan(&projection.input).ok_or_else(bug)?;
    if provider_of(&target.source).is_none_or(|provider| **provider.table() != *table) {
        return Err(bug());
    }
    let input = if *op == WriteOp::Delete {
        Arc::clone(&projection.input)
    } else {
        let schema = projection.input.schema();
        let columns = table.columns.iter().zip(&projection.expr);
        let values = columns.map(|(column, value)| {
            let mut value = value.clone().unalias();
            let kind = column.kind.data_type();
            if let Expr::Placeholder(placeholder) = &mut value {
                let field = Field::new(&column.name, kind.clone(), true);
                placeholder.field = placeholder.field.take().or_else(|| Some(Arc::new(field)));
            }
            let value = value.cast_to(&kind, schema.as_ref())?;
            Ok(value.alias(&column.name))
        });
        let values = values.collect::<SqlResult<Vec<_>>>()?;
        let rows = LogicalPlanBuilder::from(projection.input.as_ref().clone());
        Arc::new(rows.project(values)?.build()?)
    };
    Ok(LogicalPlan::Dml(DmlStatement::new(
        target.table_name.clone(),
        Arc::clone(&target.source),
        op.clone(),
        input,
    )))
}

/// The first table of a join.
fn first_scan(plan: &LogicalPlan) -> Option<&TableScan> {
    let mut plan = plan;
    loop {
        match plan {
            LogicalPlan::TableScan(scan) => return Some(scan),
            other => plan = other.inputs().into_iter().next()?,
        }
    }
}
