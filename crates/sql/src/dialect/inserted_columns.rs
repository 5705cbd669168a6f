//! `INSERT INTO t` without names of columns, and with fewer values than the table has columns: as in
//! PostgreSQL, they are those of the first columns, and the others stay NULL.

use crate::dialect::inserted_lists::fill_inserted;
use crate::error::{SqlError, SqlResult};
use crate::name_forms::fold_case;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, Expr, Ident, Insert, ObjectName, Query, SelectItem, SetExpr, TableObject, Value,
};

/// The columns of a table in their order, by the parts of its name; `None` if there is no such table.
pub(crate) type ColumnsOf<'a> = &'a dyn Fn(&[String]) -> Option<Vec<String>>;

/// Names the columns of an INSERT that gives fewer values than the table has columns, and replaces the word
/// DEFAULT: the default of every column is NULL.
///
/// # Errors
/// 42601 if it gives more.
pub(crate) fn name_columns(statement: &mut Statement, columns_of: ColumnsOf<'_>) -> SqlResult<()> {
    match statement {
        Statement::Explain(explain) => name_columns(&mut explain.statement, columns_of),
        Statement::Statement(statement) => match &mut **statement {
            ast::Statement::Insert(insert) => {
                // Those of reference tables were filled in before.
                fill_inserted(insert, &mut |_| Expr::value(Value::Null));
                name(insert, columns_of)
            }
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

fn name(insert: &mut Insert, columns_of: ColumnsOf<'_>) -> SqlResult<()> {
    let (true, Some(source)) = (insert.columns.is_empty(), &insert.source) else {
        return Ok(());
    };
    let (Some(given), TableObject::TableName(table)) = (width(source), &insert.table) else {
        return Ok(());
    };
    let parts: Option<Vec<String>> = table
        .0
        .iter()
        .map(|part| part.as_ident().map(fold_case))
        .collect();
    let Some(columns) = parts.and_then(|parts| columns_of(&parts)) else {
        return Ok(());
    };
    if given > columns.len() {
        return Err(SqlError::syntax(format!(
            "INSERT gives {given} values, and the table has {} columns",
            columns.len()
        )));
    }
    if given < columns.len() {
        let first = columns.into_iter().take(given);
        let names = first.map(|name| ObjectName::from(vec![Ident::with_quote('"', name)]));
        insert.columns = names.collect();
    }
    Ok(())
}

/// The number of columns of a query; `None` if the query does not show it.
fn width(query: &Query) -> Option<usize> {
    let mut body = &*query.body;
    loop {
        body = match body {
            SetExpr::Values(values) => return values.rows.first().map(|row| row.content.len()),
            SetExpr::Query(query) => &query.body,
            SetExpr::SetOperation { left, .. } => left,
            SetExpr::Select(select) => {
                let is_one = |item: &SelectItem| {
                    matches!(
                        item,
                        SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. }
                    )
                };
                let items = &select.projection;
                return items.iter().all(is_one).then_some(items.len());
            }
            _ => return None,
        };
    }
}
