//! `EXISTS (… WHERE EXISTS (…))` whose inner subquery refers to a query further out than the one around it,
//! for which the planner has no plan: the tables of the inner subquery join those of the outer one.
//!
//! `EXISTS (SELECT 1 FROM b WHERE EXISTS (SELECT 1 FROM c WHERE c.x = a.x AND c.y = b.y))` holds if and only if
//! `EXISTS (SELECT 1 FROM b, c WHERE c.x = a.x AND c.y = b.y)` does. The same is true of `x IN (…)` in both
//! places, as a value counts once however often a subquery returns it. This is done where every column has the
//! name of its table, and no two tables have the same name: then no name changes its meaning.

use crate::dialect::ast_walk::walk;
use crate::dialect::rewriting::{binary, nested};
use crate::error::SqlError;
use crate::name_forms::fold_case;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, GroupByExpr, Query, Select, SelectItem, SetExpr, TableFactor,
    TableWithJoins, Value, Visitor, VisitorMut,
};
use marigram_functions::is_aggregate_name;
use std::collections::BTreeSet;
use std::mem;
use std::ops::ControlFlow;

/// Whether a statement, in lower case, may contain such subqueries.
pub(crate) fn may_have_some(folded: &str) -> bool {
    let has_condition = folded.contains("exists") || folded.contains("in");
    has_condition && folded.matches("select").nth(2).is_some()
}

/// See the module documentation.
pub(crate) struct NestedExists;

impl VisitorMut for NestedExists {
    type Break = SqlError;

    // Afterwards, so that inner subqueries are joined before those around them.
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        match expr {
            Expr::Exists { subquery, .. } => join_inner(subquery, true),
            Expr::InSubquery { subquery, .. } => join_inner(subquery, false),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Joins the inner subqueries of a query of which it matters which rows it has, but not how often; `is_exists`
/// if only their existence matters.
fn join_inner(query: &mut Query, is_exists: bool) {
    let Some(select) = plain_select(query) else {
        return;
    };
    let Some(condition) = select.selection.take() else {
        return;
    };
    let mut conditions = Vec::new();
    split(condition, &mut conditions);
    let mut kept = Vec::with_capacity(conditions.len());
    while let Some(condition) = conditions.pop() {
        let others = kept.iter().chain(&conditions);
        match joined(select, &condition, others, is_exists) {
            Some((tables, joined)) => {
                select.from.extend(tables);
                kept.push(joined);
                if is_exists {
                    let one = Expr::value(Value::Number("1".to_owned(), false));
                    select.projection = vec![SelectItem::UnnamedExpr(one)];
                }
            }
            None => kept.push(condition),
        }
    }
    let all = kept.into_iter().rev();
    select.selection = all.reduce(|all, one| binary(all, BinaryOperator::And, one));
}

/// The SELECT of a query that has nothing but tables and conditions, and no aggregates.
fn plain_select(query: &mut Query) -> Option<&mut Select> {
    let is_bare = query.with.is_none() && query.limit_clause.is_none() && query.fetch.is_none();
    let SetExpr::Select(select) = query.body.as_mut() else {
        return None;
    };
    let is_grouped = match &select.group_by {
        GroupByExpr::Expressions(keys, _) => !keys.is_empty(),
        GroupByExpr::All(_) => true,
    };
    let is_plain = is_bare
        && !is_grouped
        && select.distinct.is_none()
        && select.having.is_none()
        && select.qualify.is_none()
        && walk(&select.projection, &mut NestedAggregateFinder).is_continue();
    is_plain.then_some(select.as_mut())
}

/// Takes a condition apart at its ANDs.
fn split(condition: Expr, parts: &mut Vec<Expr>) {
    let mut open = vec![condition];
    while let Some(condition) = open.pop() {
        match condition {
            Expr::BinaryOp {
                left,
                op: BinaryOperator::And,
                right,
            } => open.extend([*right, *left]),
            other => parts.push(other),
        }
    }
}

/// The tables that a condition with a subquery adds to those of the query around it, and the condition that
/// remains; `None` if it stays as it is.
fn joined<'a>(
    around: &Select,
    condition: &Expr,
    others: impl Iterator<Item = &'a Expr>,
    is_exists: bool,
) -> Option<(Vec<TableWithJoins>, Expr)> {
    let (value, mut query) = match condition {
        Expr::Nested(inner) => return joined(around, inner, others, is_exists),
        Expr::Exists {
            subquery,
            negated: false,
        } => (None, subquery.as_ref().clone()),
        Expr::InSubquery {
            expr,
            subquery,
            negated: false,
        } => (Some(expr.as_ref()), subquery.as_ref().clone()),
        _ => return None,
    };
    let select = plain_select(&mut query)?;
    let (own, theirs) = (names(&select.from)?, names(&around.from)?);
    if !own.is_disjoint(&theirs) {
        return None;
    }
    let mut inner = Qualifiers::default();
    let _ = walk(&select.from, &mut inner);
    let _ = walk(&select.selection, &mut inner);
    let compared = match value {
        None => None,
        Some(value) => {
            let (SelectItem::UnnamedExpr(found) | SelectItem::ExprWithAlias { expr: found, .. }) =
                select
                    .projection
                    .first()
                    .filter(|_| select.projection.len() == 1)?
            else {
                return None;
            };
            let _ = walk(found, &mut inner);
            Some((value, found.clone()))
        }
    };
    let mut outer = Qualifiers::default();
    let _ = walk(&around.from, &mut outer);
    if !is_exists {
        let _ = walk(&around.projection, &mut outer);
    }
    for other in others {
        let _ = walk(other, &mut outer);
    }
    if let Some((value, _)) = &compared {
        let _ = walk(*value, &mut outer);
    }
    let is_clear = inner.is_clear && outer.is_clear && outer.names.is_disjoint(&own);
    let is_near = inner
        .names
        .iter()
        .all(|name| own.contains(name) || theirs.contains(name));
    if !is_clear || is_near {
        return None;
    }
    let equal = compared
        .map(|(value, found)| binary(nested(value.clone()), BinaryOperator::Eq, nested(found)));
    let condition = select.selection.take().map(nested);
    let all = [equal, condition].into_iter().flatten();
    let all = all.reduce(|all, one| binary(all, BinaryOperator::And, one))?;
    Some((mem::take(&mut select.from), nested(all)))
}

/// The names of the tables in FROM; `None` if one has none, or is more than a table or a subquery.
fn names(from: &[TableWithJoins]) -> Option<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    let relations = from.iter().flat_map(|tables| {
        let joined = tables.joins.iter().map(|join| &join.relation);
        [&tables.relation].into_iter().chain(joined)
    });
    for relation in relations {
        let name = match relation {
            TableFactor::Table {
                name,
                alias,
                args: None,
                ..
            } => match alias {
                Some(alias) => &alias.name,
                None => name.0.last()?.as_ident()?,
            },
            TableFactor::Derived {
                lateral: false,
                alias: Some(alias),
                ..
            } => &alias.name,
            _ => return None,
        };
        if !names.insert(fold_case(name)) {
            return None;
        }
    }
    Some(names)
}

/// Finds aggregates and window functions.
struct NestedAggregateFinder;

impl Visitor for NestedAggregateFinder {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let is_aggregate = |function: &Function| {
            let name = function.name.to_string().to_lowercase();
            function.over.is_some() || is_aggregate_name(&name) || name == "unnest"
        };
        match expr {
            Expr::Function(function) if is_aggregate(function) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// The names of tables before those of columns.
struct Qualifiers {
    names: BTreeSet<String>,
    /// Whether each column has the name of its table, and there are no subqueries.
    is_clear: bool,
}

impl Default for Qualifiers {
    fn default() -> Self {
        Self {
            names: BTreeSet::new(),
            is_clear: true,
        }
    }
}

impl Visitor for Qualifiers {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.is_clear = false;
        ControlFlow::Break(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [table, _] => {
                    self.names.insert(fold_case(table));
                }
                _ => self.is_clear = false,
            },
            Expr::Identifier(_) => self.is_clear = false,
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::ast_walk::walk_mut;
    use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    fn rewritten(sql: &str) -> String {
        let mut statements = Parser::parse_sql(&PostgreSqlDialect {}, sql).unwrap();
        assert!(walk_mut(&mut statements, &mut NestedExists).is_continue());
        statements[0].to_string()
    }

    #[test]
    fn tables_of_the_inner_subquery_join_those_of_the_outer_one() {
        for (sql, expected) in [
            (
                "SELECT 1 FROM a WHERE EXISTS (SELECT * FROM b WHERE b.z > 1 AND EXISTS (SELECT c.x FROM c WHERE c.x = a.x AND c.y = b.y))",
                "SELECT 1 FROM a WHERE EXISTS (SELECT 1 FROM b, c WHERE b.z > 1 AND ((c.x = a.x AND c.y = b.y)))",
            ),
            (
                "SELECT 1 FROM a WHERE a.n IN (SELECT b.n FROM b WHERE b.m IN (SELECT c.m FROM c WHERE c.x = a.x))",
                "SELECT 1 FROM a WHERE a.n IN (SELECT b.n FROM b, c WHERE ((b.m) = (c.m) AND (c.x = a.x)))",
            ),
        ] {
            assert_eq!(rewritten(sql), expected);
        }
    }

    #[test]
    fn what_the_planner_knows_and_what_is_unclear_stays() {
        for sql in [
            // Refers to the query around it alone.
            "SELECT 1 FROM a WHERE EXISTS (SELECT 1 FROM b WHERE EXISTS (SELECT 1 FROM c WHERE c.y = b.y))",
            "SELECT 1 FROM a WHERE EXISTS (SELECT 1 FROM b WHERE NOT EXISTS (SELECT 1 FROM c WHERE c.x = a.x))",
            "SELECT 1 FROM a WHERE EXISTS (SELECT 1 FROM b WHERE EXISTS (SELECT 1 FROM c WHERE x = a.x))",
            "SELECT 1 FROM a WHERE EXISTS (SELECT 1 FROM b WHERE EXISTS (SELECT count(*) FROM c WHERE c.x = a.x))",
            "SELECT 1 FROM a WHERE EXISTS (SELECT 1 FROM b WHERE EXISTS (SELECT 1 FROM b WHERE b.x = a.x))",
            "SELECT 1 FROM a WHERE EXISTS (SELECT 1 FROM b WHERE EXISTS (SELECT 1 FROM c WHERE c.x = a.x LIMIT 1))",
            "SELECT (SELECT count(*) FROM b WHERE EXISTS (SELECT 1 FROM c WHERE c.x = a.x)) FROM a",
        ] {
            assert_eq!(rewritten(sql), sql);
        }
    }
}
