//! VALUES lists inside the query of an INSERT.
//!
//! The planner gives every VALUES list below an INSERT the types of the table's columns, in order.
//! That is right for the list that is inserted itself, but for no other: in
//! `INSERT INTO t SELECT b, a FROM (VALUES (1.5, 2)) AS q(a, b)` it would truncate 1.5 to the type
//! of the table's first column. Such a list becomes a UNION ALL of its rows, which has types of its
//! own. So does a list with a subquery, which the planner does not accept in a list.
//!
//! The word DEFAULT in a row stands for NULL in tables of series, and for the column's default in reference
//! tables. So it stays until the table is known.

use crate::dialect::ast_walk::{walk, walk_mut};
use crate::dialect::grammar::MarigramDialect;
use crate::error::{SqlError, SqlResult};
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Insert, Query, Select, SelectItem, SetExpr, SetOperator, SetQuantifier, Statement,
    Values, Visitor, VisitorMut,
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
    let mut lists = InnerLists { level: 0 };
    match walk_mut(source.as_mut(), &mut lists) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
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

/// Whether an inserted value is the word DEFAULT.
pub(crate) fn is_default(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(word)
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("default"))
}

/// Replaces the word DEFAULT in the rows of an INSERT by the value for its column, of which the position in
/// the row is known. Rows may have become queries, as [`rewrite_inserted_lists`] makes them.
pub(crate) fn fill_inserted(insert: &mut Insert, value: &mut dyn FnMut(usize) -> Expr) {
    let Some(source) = insert.source.as_mut() else {
        return;
    };
    // Without recursion: a chain of UNIONs may be long.
    let mut rest = vec![source.body.as_mut()];
    while let Some(body) = rest.pop() {
        match body {
            SetExpr::Values(values) => {
                for row in &mut values.rows {
                    let exprs = row.content.iter_mut().enumerate();
                    for (at, expr) in exprs.filter(|(_, expr)| is_default(expr)) {
                        *expr = value(at);
                    }
                }
            }
            SetExpr::Select(select) => {
                for (at, item) in select.projection.iter_mut().enumerate() {
                    if let SelectItem::ExprWithAlias { expr, alias } = item
                        && is_default(expr)
                        && alias.value == column_name(at)
                    {
                        *expr = value(at);
                    }
                }
            }
            SetExpr::SetOperation { left, right, .. } => rest.extend([&mut **left, &mut **right]),
            _ => {}
        }
    }
}

/// The name of a value in a row that became a query.
fn column_name(at: usize) -> String {
    format!("column{}", at + 1)
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
            alias: Ident::new(column_name(at)),
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
