//! `ARRAY(SELECT x FROM t ORDER BY y)` becomes `(SELECT array_agg(x ORDER BY y) FROM …)`; the array
//! is empty if there are no rows.

use crate::dialect::ast_walk::walk;
use crate::dialect::grammar::MarigramDialect;
use crate::dialect::rewriting::call;
use crate::error::SqlError;
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArgumentClause, FunctionArguments, GroupByExpr, Ident, OrderByExpr, OrderByKind,
    Query, Select, SelectItem, SetExpr, Statement, TableAlias, TableAliasColumnDef, TableFactor,
    TableWithJoins, Value, Visitor, VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;
use marigram_functions::{ARRAY_OR_EMPTY, is_aggregate_name};
use std::ops::ControlFlow;

/// The column of the elements.
const ELEMENT: &str = "element";

/// See the module documentation.
pub(crate) struct ArraySubqueries;

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

/// Aggregates, which produce one row if a query has no GROUP BY, and functions that return rows.
fn is_plain(query: &Query, select: &Select) -> bool {
    struct AggregateFinder;

    impl Visitor for AggregateFinder {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            let Expr::Function(function) = expr else {
                return ControlFlow::Continue(());
            };
            let name = function.name.to_string().to_lowercase();
            if function.over.is_some() || is_aggregate_name(&name) || name == "unnest" {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        }
    }

    let is_grouped = match &select.group_by {
        GroupByExpr::Expressions(keys, _) => !keys.is_empty(),
        GroupByExpr::All(_) => true,
    };
    !is_grouped
        && query.limit_clause.is_none()
        && query.fetch.is_none()
        && select.distinct.is_none()
        && select.having.is_none()
        && walk(&select.projection, &mut AggregateFinder).is_continue()
}

/// `array_agg(element ORDER BY …)`
fn array_agg(element: Expr, order: Vec<OrderByExpr>) -> Expr {
    let mut aggregate = call("array_agg", vec![element]);
    if let Expr::Function(function) = &mut aggregate
        && let FunctionArguments::List(list) = &mut function.args
        && !order.is_empty()
    {
        list.clauses.push(FunctionArgumentClause::OrderBy(order));
    }
    aggregate
}

/// A query that returns one row: the array of the rows of `query`.
fn aggregated(mut query: Query) -> Option<Query> {
    let order: Vec<OrderByExpr> = match query.order_by.as_ref().map(|by| &by.kind) {
        Some(OrderByKind::Expressions(order)) => order.clone(),
        Some(OrderByKind::All(_)) => return None,
        None => Vec::new(),
    };
    let plain = match query.body.as_ref() {
        SetExpr::Select(select) if is_plain(&query, select) => match select.projection.as_slice() {
            [
                SelectItem::UnnamedExpr(element) | SelectItem::ExprWithAlias { expr: element, .. },
            ] => Some(element.clone()),
            _ => return None,
        },
        _ => None,
    };
    if let Some(element) = plain
        && let SetExpr::Select(select) = query.body.as_mut()
    {
        let order = order.into_iter().map(|mut key| {
            // A number is the position of the only column.
            if matches!(&key.expr, Expr::Value(value) if matches!(value.value, Value::Number(..))) {
                key.expr = element.clone();
            }
            key
        });
        let aggregate = array_agg(element.clone(), order.collect());
        select.projection = vec![SelectItem::UnnamedExpr(aggregate)];
        query.order_by = None;
        return Some(query);
    }
    of_derived(query, order)
}

/// `SELECT array_agg(element ORDER BY …) FROM (query) AS elements (element)`; the sort key must be
/// the column.
fn of_derived(query: Query, mut order: Vec<OrderByExpr>) -> Option<Query> {
    for key in &mut order {
        key.expr = Expr::Identifier(Ident::new(ELEMENT));
    }
    let is_sorted_by_element = match query.body.as_ref() {
        SetExpr::Select(select) => match select.projection.as_slice() {
            [
                SelectItem::UnnamedExpr(element) | SelectItem::ExprWithAlias { expr: element, .. },
            ] => {
                let by = query.order_by.as_ref().map(|by| &by.kind);
                match by {
                    Some(OrderByKind::Expressions(keys)) => keys
                        .iter()
                        .all(|key| key.expr == *element || matches!(&key.expr, Expr::Value(_))),
                    _ => true,
                }
            }
            _ => false,
        },
        _ => query.order_by.is_none(),
    };
    if !is_sorted_by_element {
        return None;
    }
    let dialect = MarigramDialect;
    let mut template = Parser::parse_sql(&dialect, "SELECT 1 FROM t").ok()?;
    let Some(Statement::Query(mut outer)) = template.pop() else {
        return None;
    };
    let SetExpr::Select(select) = outer.body.as_mut() else {
        return None;
    };
    let element = Expr::Identifier(Ident::new(ELEMENT));
    select.projection = vec![SelectItem::UnnamedExpr(array_agg(element, order))];
    let column = TableAliasColumnDef {
        name: Ident::new(ELEMENT),
        data_type: None,
    };
    select.from = vec![TableWithJoins {
        relation: TableFactor::Derived {
            lateral: false,
            subquery: Box::new(query),
            alias: Some(TableAlias {
                explicit: true,
                name: Ident::new("elements"),
                columns: vec![column],
                at: None,
            }),
            sample: None,
        },
        joins: Vec::new(),
    }];
    Some(*outer)
}
