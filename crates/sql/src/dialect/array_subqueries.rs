//! `ARRAY(SELECT x FROM t ORDER BY y)`, which is `(SELECT array_agg(x ORDER BY y) FROM …)`; an empty array where
//! there is no row.

use crate::dialect::rewriting::call;
use crate::error::SqlError;
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArgumentClause, FunctionArguments, Ident, OrderByExpr, OrderByKind, Query,
    SelectItem, SetExpr, TableAlias, TableAliasColumnDef, TableFactor, TableWithJoins, Value,
    VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;
use marigram_functions::ARRAY_OR_EMPTY;
use std::ops::ControlFlow;

/// The column of the elements, and the start of the names of those that they are sorted by.
const ELEMENT: &str = "element";
const KEY: &str = "key_";

/// See the head of this file.
pub struct ArraySubqueries;

impl VisitorMut for ArraySubqueries {
    type Break = SqlError;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        let Expr::Function(function) = expr else {
            return ControlFlow::Continue(());
        };
        let FunctionArguments::Subquery(query) = &function.args else {
            return ControlFlow::Continue(());
        };
        if !function.name.to_string().eq_ignore_ascii_case("array") {
            return ControlFlow::Continue(());
        }
        if let Some(aggregated) = aggregated(query.as_ref().clone()) {
            *expr = call(ARRAY_OR_EMPTY, vec![Expr::Subquery(Box::new(aggregated))]);
        }
        ControlFlow::Continue(())
    }
}

/// `SELECT array_agg(element ORDER BY key_0, …) FROM (query) AS elements (element, key_0, …)`
fn aggregated(mut query: Query) -> Option<Query> {
    let mut order: Vec<OrderByExpr> = match query.order_by.as_ref().map(|by| &by.kind) {
        Some(OrderByKind::Expressions(order)) => order.clone(),
        Some(OrderByKind::All(_)) => return None,
        None => Vec::new(),
    };
    let mut names = vec![Ident::new(ELEMENT)];
    if !order.is_empty() {
        let SetExpr::Select(select) = query.body.as_mut() else {
            return None;
        };
        let [SelectItem::UnnamedExpr(element) | SelectItem::ExprWithAlias { expr: element, .. }] =
            select.projection.as_slice()
        else {
            return None;
        };
        let element = element.clone();
        for (at, key) in order.iter_mut().enumerate() {
            let is_place =
                matches!(&key.expr, Expr::Value(value) if matches!(value.value, Value::Number(..)));
            let is_element = is_place || key.expr == element;
            if is_element || select.distinct.is_some() {
                key.expr = Expr::Identifier(Ident::new(ELEMENT));
                continue;
            }
            let name = Ident::new(format!("{KEY}{at}"));
            let expr = std::mem::replace(&mut key.expr, Expr::Identifier(name.clone()));
            select.projection.push(SelectItem::ExprWithAlias {
                expr,
                alias: name.clone(),
            });
            names.push(name);
        }
        if query.limit_clause.is_none() && query.fetch.is_none() {
            query.order_by = None;
        }
    }
    let mut template = Parser::parse_sql(
        &crate::dialect::grammar::MarigramDialect,
        "SELECT array_agg(element) FROM t",
    )
    .ok()?;
    let Some(datafusion::sql::sqlparser::ast::Statement::Query(mut outer)) = template.pop() else {
        return None;
    };
    let SetExpr::Select(select) = outer.body.as_mut() else {
        return None;
    };
    if let [SelectItem::UnnamedExpr(Expr::Function(function))] = select.projection.as_mut_slice()
        && let FunctionArguments::List(list) = &mut function.args
        && !order.is_empty()
    {
        list.clauses.push(FunctionArgumentClause::OrderBy(order));
    }
    let columns = names.into_iter().map(|name| TableAliasColumnDef {
        name,
        data_type: None,
    });
    select.from = vec![TableWithJoins {
        relation: TableFactor::Derived {
            lateral: false,
            subquery: Box::new(query),
            alias: Some(TableAlias {
                explicit: true,
                name: Ident::new("elements"),
                columns: columns.collect(),
                at: None,
            }),
            sample: None,
        },
        joins: Vec::new(),
    }];
    Some(*outer)
}
