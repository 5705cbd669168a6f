//! Aliases for columns that are referred to by name: from outside a query, by ORDER BY or by GROUP
//! BY.

use super::name_of_item;
use super::output::{Names, OutputNames};
use crate::dialect::ast_walk::{walk, walk_mut};
use crate::name_forms::{fold_case, marked};
use datafusion::sql::parser::{CopyToSource, Statement};
use datafusion::sql::sqlparser::ast::{
    self, Expr, GroupByExpr, Ident, OrderBy, OrderByKind, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, TableAlias, TableAliasColumnDef, TableFactor, Value,
    Visit, VisitMut, Visitor, VisitorMut, WildcardAdditionalOptions,
};
use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Gives the columns of a statement's queries PostgreSQL's names, and returns the names of its
/// result.
pub(crate) fn name_columns(statement: &mut Statement) -> Names {
    match statement {
        Statement::Statement(statement) => {
            name_inner(statement.as_mut());
            match statement.as_mut() {
                ast::Statement::Query(query) => Some(Arc::new(name_outermost(query))),
                _ => None,
            }
        }
        Statement::Explain(explain) => {
            // The columns of EXPLAIN have other names.
            name_columns(&mut explain.statement);
            None
        }
        Statement::CopyTo(copy) => {
            if let CopyToSource::Query(query) = &mut copy.source {
                name_inner(query.as_mut());
                alias_query(query);
            }
            None
        }
        _ => None,
    }
}

/// Gives the columns of a statement's own query aliases, if its plan is to have these names.
pub(crate) fn alias_outermost(statement: &mut Statement) {
    if let Statement::Statement(statement) = statement
        && let ast::Statement::Query(query) = statement.as_mut()
    {
        alias_query(query);
    }
}

fn name_inner<T: Visit + VisitMut>(tree: &mut T) {
    let names_value = Identifiers::from_tree(tree).contains(SERIES_COLUMN);
    // The visitor never breaks.
    let _ = walk_mut(tree, &mut Inner { names_value });
}

/// The identifiers in a part of a statement.
#[derive(Default)]
struct Identifiers(HashSet<String>);

impl Identifiers {
    fn from_tree(part: &impl Visit) -> HashSet<String> {
        let mut names = Self::default();
        let _ = walk(part, &mut names);
        names.0
    }
}

impl Visitor for Identifiers {
    type Break = Infallible;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Infallible> {
        match expr {
            Expr::Identifier(name) => {
                self.0.insert(fold_case(name));
            }
            Expr::CompoundIdentifier(parts) => self.0.extend(parts.last().map(fold_case)),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// The name that the planner gives a column of a series of numbers or times.
const SERIES_COLUMN: &str = "value";
/// Functions in FROM that have this column.
const SERIES: [&str; 2] = ["generate_series", "range"];

/// Rewrites queries whose columns another query reads, and functions in FROM.
struct Inner {
    /// Whether the statement itself names a column as the planner does for series.
    names_value: bool,
}

impl VisitorMut for Inner {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        let with = query.with.iter_mut();
        for table in with.flat_map(|with| &mut with.cte_tables) {
            if table.alias.columns.is_empty() {
                alias_query(&mut table.query);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Infallible> {
        if let TableFactor::Derived {
            subquery, alias, ..
        } = factor
            && alias.as_ref().is_none_or(|alias| alias.columns.is_empty())
        {
            alias_query(subquery);
        }
        match factor {
            TableFactor::Table {
                name,
                alias,
                args: Some(_),
                with_ordinality: false,
                ..
            } if !self.names_value => {
                let function = name
                    .0
                    .last()
                    .and_then(|part| part.as_ident())
                    .map(fold_case);
                if let Some(function) = function.filter(|name| SERIES.contains(&name.as_str())) {
                    name_function(alias, &function);
                }
            }
            TableFactor::UNNEST {
                alias,
                array_exprs,
                with_offset: false,
                with_ordinality: false,
                ..
            } if array_exprs.len() == 1 => name_function(alias, "unnest"),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Names the only column of a function in FROM after the function's alias.
fn name_function(alias: &mut Option<TableAlias>, function: &str) {
    let alias = alias.get_or_insert_with(|| TableAlias {
        explicit: true,
        name: Ident::with_quote('"', function),
        columns: Vec::new(),
        at: None,
    });
    if alias.columns.is_empty() {
        alias.columns.push(TableAliasColumnDef {
            name: alias.name.clone(),
            data_type: None,
        });
    }
}

/// Names the columns of a statement's own query. Its result is renamed unless it contains a `*`.
fn name_outermost(query: &mut Query) -> OutputNames {
    let names = OutputNames::from_query(query);
    let Query { body, order_by, .. } = query;
    let is_select = matches!(**body, SetExpr::Select(_));
    let Some(select) = naming_select_mut(body) else {
        return names;
    };
    if !select.projection.iter().all(is_one) {
        alias_columns(select, order_by.as_ref().filter(|_| is_select));
        return names;
    }
    sort_by_places(select, order_by.as_mut());
    tell_aliases_apart(&mut select.projection);
    alias_keys(select);
    names
}

/// Gives the columns of a query aliases.
fn alias_query(query: &mut Query) {
    let Query { body, order_by, .. } = query;
    let is_select = matches!(**body, SetExpr::Select(_));
    if let Some(select) = naming_select_mut(body) {
        alias_columns(select, order_by.as_ref().filter(|_| is_select));
    }
}

fn naming_select_mut(mut body: &mut SetExpr) -> Option<&mut Select> {
    loop {
        body = match body {
            SetExpr::Select(select) => return Some(select),
            SetExpr::SetOperation { left, .. } => left,
            SetExpr::Query(query) => &mut query.body,
            _ => return None,
        };
    }
}

/// Whether a selected item is a single column.
fn is_one(item: &SelectItem) -> bool {
    matches!(
        item,
        SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. }
    )
}

/// The column inside casts; it gives the expression its name.
fn column(expr: &Expr) -> Option<&[Ident]> {
    match expr {
        Expr::Cast { expr, .. } | Expr::Nested(expr) => column(expr),
        Expr::Identifier(name) => Some(std::slice::from_ref(name)),
        Expr::CompoundIdentifier(parts) => Some(parts),
        _ => None,
    }
}

fn expr_of(item: &SelectItem) -> Option<&Expr> {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    }
}

fn set_alias(item: &mut SelectItem, name: String) {
    let name = Ident::with_quote('"', name);
    match item {
        SelectItem::ExprWithAlias { alias, .. } => *alias = name,
        SelectItem::UnnamedExpr(expr) => {
            let expr = std::mem::replace(expr, Expr::Identifier(Ident::new("")));
            *item = SelectItem::ExprWithAlias { expr, alias: name };
        }
        _ => {}
    }
}

/// Gives aliases to all columns that the planner would name differently, or whose name several
/// columns have.
fn alias_columns(select: &mut Select, order_by: Option<&OrderBy>) {
    let items = &select.projection;
    let names: Vec<Option<String>> = items.iter().map(name_of_item).collect();
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, name) in names.iter().enumerate() {
        if let Some(name) = name {
            places.entry(name).or_default().push(at);
        }
    }
    let mut captured = None;
    let mut aliases = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let (Some(name), Some(expr)) = (name, expr_of(&items[at])) else {
            continue;
        };
        let is_written = matches!(items[at], SelectItem::ExprWithAlias { .. });
        let same = &places[name.as_str()];
        // It makes no difference which of several equal columns is meant.
        let is_first = same[0] == at && same.iter().all(|at| expr_of(&items[*at]) == Some(expr));
        let alias = if same.len() > 1 && !is_first {
            marked(name, at)
        } else if is_written {
            continue;
        } else if let Some(column) = column(expr) {
            if items.iter().any(|item| stands_for(item, column)) {
                marked(name, at)
            } else if matches!(expr, Expr::Cast { .. }) {
                // The planner also accepts the table's name for it.
                let captured = captured.get_or_insert_with(|| captured_names(select, order_by));
                if captured.contains(name) {
                    continue;
                }
                name.clone()
            } else {
                continue;
            }
        } else {
            let captured = captured.get_or_insert_with(|| captured_names(select, order_by));
            if captured.contains(name) {
                marked(name, at)
            } else {
                name.clone()
            }
        };
        aliases.push((at, alias));
    }
    for (at, alias) in aliases {
        set_alias(&mut select.projection[at], alias);
    }
}

/// Whether a `*` includes a column that is also selected separately.
fn stands_for(item: &SelectItem, column: &[Ident]) -> bool {
    let is_whole = |options: &WildcardAdditionalOptions| {
        options.opt_exclude.is_none() && options.opt_except.is_none()
    };
    match (item, column) {
        (SelectItem::Wildcard(options), _) => is_whole(options),
        (
            SelectItem::QualifiedWildcard(
                SelectItemQualifiedWildcardKind::ObjectName(table),
                options,
            ),
            [.., of, _],
        ) => {
            let table = table.0.last().and_then(|part| part.as_ident());
            is_whole(options) && table.map(fold_case) == Some(fold_case(of))
        }
        _ => false,
    }
}

/// Names in clauses in which PostgreSQL means input columns, but the planner also means aliases.
fn captured_names(select: &Select, order_by: Option<&OrderBy>) -> HashSet<String> {
    let mut names = Identifiers::default();
    let _ = Visit::visit(&select.having, &mut names);
    let _ = Visit::visit(&select.qualify, &mut names);
    if let Some(OrderByKind::Expressions(by)) = order_by.map(|order_by| &order_by.kind) {
        for by in by {
            if !matches!(by.expr, Expr::Identifier(_)) {
                let _ = Visit::visit(&by.expr, &mut names);
            }
        }
    }
    names.0
}

/// Sorts by the position of a column if its name differs from the plan's.
fn sort_by_places(select: &Select, order_by: Option<&mut OrderBy>) {
    let Some(OrderByKind::Expressions(by)) = order_by.map(|order_by| &mut order_by.kind) else {
        return;
    };
    for by in by {
        let Expr::Identifier(name) = &by.expr else {
            continue;
        };
        let name = fold_case(name);
        let named = |item: &SelectItem| name_of_item(item).as_deref() == Some(&name);
        let mut found = select.projection.iter().enumerate();
        let mut found = found.by_ref().filter(|(_, item)| named(item));
        if let (Some((at, SelectItem::UnnamedExpr(expr))), None) = (found.next(), found.next())
            && column(expr).is_none()
        {
            by.expr = Expr::value(Value::Number((at + 1).to_string(), false));
        }
    }
}

/// Marks aliases that are repeated, or that equal the name of another column.
fn tell_aliases_apart(items: &mut [SelectItem]) {
    let mut seen: HashSet<String> = HashSet::new();
    for item in items.iter() {
        if let SelectItem::UnnamedExpr(expr) = item
            && let Some(name) = column(expr).and_then(<[Ident]>::last)
        {
            seen.insert(fold_case(name));
        }
    }
    for (at, item) in items.iter_mut().enumerate() {
        if let SelectItem::ExprWithAlias { alias, .. } = item {
            let name = fold_case(alias);
            if !seen.insert(name.clone()) {
                set_alias(item, marked(&name, at));
            }
        }
    }
}

/// Gives aliases to columns by which the query groups. A column of the table takes precedence.
fn alias_keys(select: &mut Select) {
    let GroupByExpr::Expressions(keys, _) = &select.group_by else {
        return;
    };
    let names = keys.iter().filter_map(|key| match key {
        Expr::Identifier(name) => Some(fold_case(name)),
        _ => None,
    });
    let mut names: HashSet<String> = names.collect();
    if names.is_empty() {
        return;
    }
    let captured = captured_names(select, None);
    names.retain(|name| !captured.contains(name));
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) = item
            && column(expr).is_none()
            && let Some(name) = name_of_item(item)
            && names.remove(&name)
        {
            set_alias(item, name);
        }
    }
}
