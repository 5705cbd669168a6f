//! The columns and the VALUES lists of an INSERT.
//!
//! The planner gives every VALUES list below an INSERT the types of the table's columns, in order.
//! That is right for the list that is inserted itself, but for no other: in
//! `INSERT INTO t SELECT b, a FROM (VALUES (1.5, 2)) AS q(a, b)` it would truncate 1.5 to the type
//! of the table's first column. Such a list becomes a UNION ALL of its rows, which has types of its
//! own. So does a list with a subquery, which the planner does not accept in a list.

use crate::dialect::ast_walk::{walk, walk_mut};
use crate::dialect::grammar::MarigramDialect;
use crate::error::{SqlError, SqlResult};
use crate::name_forms::fold_case;
use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, Query, Select, SelectItem, SetExpr, SetOperator, SetQuantifier,
    Statement, TableObject, Value, Values, Visitor, VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;
use std::ops::ControlFlow;

/// The largest number of rows in such a list.
const ROWS_MAX: usize = 1000;

/// Rewrites the lists inside the query of an INSERT.
///
/// # Errors
/// If a list is too long.
pub(crate) fn rewrite_inserted_lists(statement: &mut Statement) -> SqlResult<()> {
    let Statement::Insert(insert) = statement else {
        return Ok(());
    };
    let Some(source) = insert.source.as_mut() else {
        return Ok(());
    };
    if let SetExpr::Values(values) = source.body.as_mut() {
        let rows = values.rows.iter_mut();
        let inserted = rows.flat_map(|row| row.content.iter_mut());
        inserted.filter(|expr| is_default(expr)).for_each(|expr| {
            *expr = Expr::value(Value::Null);
        });
    }
    let mut lists = InnerLists { level: 0 };
    match walk_mut(source.as_mut(), &mut lists) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

/// An INSERT without a list of columns, and with fewer values than the table has columns, is for the first
/// columns.
pub(crate) fn name_first_columns(
    statement: &mut ParsedStatement,
    columns_of: impl Fn(&[String]) -> Option<Vec<String>>,
) {
    let insert = match statement {
        ParsedStatement::Explain(explain) => {
            return name_first_columns(&mut explain.statement, columns_of);
        }
        ParsedStatement::Statement(statement) => match statement.as_mut() {
            Statement::Insert(insert) if insert.columns.is_empty() => insert,
            _ => return,
        },
        _ => return,
    };
    let TableObject::TableName(name) = &insert.table else {
        return;
    };
    let parts = name.0.iter().map(|part| part.as_ident().map(fold_case));
    let columns = parts
        .collect::<Option<Vec<_>>>()
        .and_then(|parts| columns_of(&parts));
    let source = insert.source.as_ref();
    let (Some(columns), Some(width)) = (columns, source.and_then(|source| width(&source.body)))
    else {
        return;
    };
    if width < columns.len() {
        let first = columns.into_iter().take(width);
        let first = first.map(|name| ObjectName::from(vec![Ident::with_quote('"', name)]));
        insert.columns = first.collect();
    }
}

/// The number of columns of a query; `None` if its text does not tell.
fn width(body: &SetExpr) -> Option<usize> {
    match body {
        SetExpr::Values(values) => values.rows.iter().map(|row| row.content.len()).max(),
        SetExpr::Query(query) => width(&query.body),
        SetExpr::SetOperation { left, .. } => width(left),
        SetExpr::Select(select) => {
            let is_one = |item: &SelectItem| {
                matches!(
                    item,
                    SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. }
                )
            };
            let all_one = select.projection.iter().all(is_one);
            all_one.then_some(select.projection.len())
        }
        _ => None,
    }
}

struct InnerLists {
    level: usize,
}

impl VisitorMut for InnerLists {
    type Break = SqlError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        self.level += 1;
        // The planner accepts no subquery in the list itself.
        let is_inserted = self.level == 1
            && matches!(&*query.body, SetExpr::Values(values) if !has_subquery(values));
        if !is_inserted && let Err(error) = rewrite_body(&mut query.body) {
            return ControlFlow::Break(error);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<SqlError> {
        self.level -= 1;
        ControlFlow::Continue(())
    }
}

/// Whether an inserted value is the word DEFAULT: the default of every column is NULL.
fn is_default(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(word)
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("default"))
}

/// Whether a list contains a subquery.
fn has_subquery(values: &Values) -> bool {
    struct SubqueryFinder;

    impl Visitor for SubqueryFinder {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            match expr {
                Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => {
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            }
        }
    }

    walk(values, &mut SubqueryFinder).is_break()
}

/// Queries in parentheses are visited separately.
fn rewrite_body(body: &mut SetExpr) -> SqlResult<()> {
    match body {
        SetExpr::SetOperation { left, right, .. } => {
            rewrite_body(left)?;
            rewrite_body(right)
        }
        SetExpr::Values(values) => {
            if values.rows.len() > ROWS_MAX {
                let message = format!(
                    "a list of VALUES inside the query of an INSERT has at most {ROWS_MAX} rows; \
                     insert the list itself"
                );
                return Err(SqlError::invalid("54000", message));
            }
            let template = template()?;
            let rows = std::mem::take(&mut values.rows);
            let rows = rows.into_iter();
            let mut selects: Vec<SetExpr> =
                rows.map(|row| row_select(&template, row.content)).collect();
            if let Some(union) = union_all(&mut selects) {
                *body = union;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// An empty SELECT.
fn template() -> SqlResult<Select> {
    let mut statements = Parser::parse_sql(&MarigramDialect, "SELECT 1")?;
    if let Some(Statement::Query(query)) = statements.pop()
        && let SetExpr::Select(select) = *query.body
    {
        return Ok(*select);
    }
    Err(SqlError::syntax("SELECT 1 is not a query"))
}

fn row_select(template: &Select, row: Vec<Expr>) -> SetExpr {
    let named = row
        .into_iter()
        .enumerate()
        .map(|(at, expr)| SelectItem::ExprWithAlias {
            expr,
            alias: Ident::new(format!("column{}", at + 1)),
        });
    SetExpr::Select(Box::new(Select {
        projection: named.collect(),
        ..template.clone()
    }))
}

/// The UNION ALL of all queries, as a balanced tree; `None` if there are none.
fn union_all(selects: &mut Vec<SetExpr>) -> Option<SetExpr> {
    if selects.len() < 2 {
        return selects.pop();
    }
    let mut right = selects.split_off(selects.len() / 2);
    let (left, right) = (union_all(selects)?, union_all(&mut right)?);
    Some(SetExpr::SetOperation {
        op: SetOperator::Union,
        set_quantifier: SetQuantifier::All,
        left: Box::new(left),
        right: Box::new(right),
    })
}
