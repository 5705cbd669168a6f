//! UPDATE: writes the rows that a query with the statement's condition finds again, with other values
//! in some fields.

use super::delete::{change, key_names, target};
use crate::error::{SqlError, SqlResult};
use crate::tables::changed_rows::ListedRowChange;
use datafusion::common::{Column, TableReference};
use datafusion::logical_expr::{DmlStatement, Expr, LogicalPlan, LogicalPlanBuilder};
use marigram_engine::Engine;
use marigram_model::TableColumn;
use marigram_service::ServiceError;

/// The statement that finds the rows of a planned UPDATE and overwrites them.
///
/// # Errors
/// If its target is not a table of series, or it changes the time or a tag.
pub(crate) fn plan(engine: &Engine, dml: &DmlStatement) -> SqlResult<LogicalPlan> {
    let schema = target(dml).ok_or_else(|| {
        SqlError::unsupported(format!("rows of '{}' cannot be changed", dml.table_name))
    })?;
    // The planner puts a projection of all columns, in the order of the table, on the rows.
    let LogicalPlan::Projection(columns) = &*dml.input else {
        return Err(ServiceError::Internal("an UPDATE has no columns".to_owned()).into());
    };
    let qualifier = first_table(&columns.input);
    let own = |name: &str| Expr::Column(Column::new(qualifier.clone(), name));
    let mut keys: Vec<Expr> = key_names(&schema).map(own).collect();
    let (mut new, mut old, mut changed) = (Vec::new(), Vec::new(), Vec::new());
    for (column, value) in schema.columns().zip(&columns.expr) {
        let name = schema.name_of(column).unwrap_or_default();
        let value = value.clone().unalias();
        if value == own(name) {
            continue;
        }
        let TableColumn::Field(id) = column else {
            let message = format!(
                "UPDATE cannot change '{name}', which is a part of the row's key; INSERT the row with \
                 the other key, and DELETE this one"
            );
            return Err(SqlError::named("0A000", name, message));
        };
        new.push(value.alias(format!("new value {}", id.0)));
        old.push(own(name).alias(format!("old value {}", id.0)));
        changed.push(id);
    }
    keys.append(&mut new);
    keys.append(&mut old);
    let rows = LogicalPlanBuilder::from(columns.input.as_ref().clone());
    let query = rows.project(keys)?.build()?;
    let update = ListedRowChange::Update(changed);
    Ok(change(engine, dml, schema, update, query))
}

/// The name, or alias, of the table to change: it comes before those of FROM.
fn first_table(mut plan: &LogicalPlan) -> Option<TableReference> {
    loop {
        match plan {
            LogicalPlan::TableScan(scan) => return Some(scan.table_name.clone()),
            LogicalPlan::SubqueryAlias(alias) => return Some(alias.alias.clone()),
            _ => plan = *plan.inputs().first()?,
        }
    }
}
