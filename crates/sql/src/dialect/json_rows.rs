//! Functions that return the parts of JSON as rows: `json_array_elements`, `json_each`, `json_object_keys`
//! and the like. As the others that return rows, they become UNNEST of lists.
//!
//! Their columns have names of their own, `value` or `key` and `value`. So the alias of such a function in FROM
//! names a row: `SELECT e FROM json_array_elements('[1]') AS e` selects the values. A column of another table
//! goes before such a row: in `FROM t, json_array_elements(items) AS items`, `items` is that of `t`.

use crate::dialect::ast_walk::{walk, walk_mut};
use crate::dialect::rewriting::call;
use crate::name_forms::fold_case;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, Query, Select, SelectItem, SetExpr, TableFactor, TableWithJoins,
    Visitor, VisitorMut,
};
use marigram_functions::JSON_PARTS;
use std::convert::Infallible;
use std::mem;
use std::ops::ControlFlow;

/// Functions that return one column, and those that return its rows as a list.
pub(super) const LISTS: [(&str, &str); 6] = [
    ("json_array_elements", JSON_PARTS[0][0]),
    ("jsonb_array_elements", JSON_PARTS[0][1]),
    ("json_array_elements_text", JSON_PARTS[1][0]),
    ("jsonb_array_elements_text", JSON_PARTS[1][1]),
    ("json_object_keys", JSON_PARTS[2][0]),
    ("jsonb_object_keys", JSON_PARTS[2][1]),
];
/// Functions that return names and values, and those that return both as lists.
const MEMBERS: [(&str, [&str; 2]); 4] = [
    ("json_each", [JSON_PARTS[2][0], JSON_PARTS[3][0]]),
    ("jsonb_each", [JSON_PARTS[2][1], JSON_PARTS[3][1]]),
    ("json_each_text", [JSON_PARTS[2][0], JSON_PARTS[4][0]]),
    ("jsonb_each_text", [JSON_PARTS[2][1], JSON_PARTS[4][1]]),
];
/// The name of the column of values.
const VALUE: &str = "value";

/// Whether a statement, in lower case, may contain such functions.
pub(super) fn may_have_some(folded: &str) -> bool {
    ["_array_elements", "_object_keys", "json_each", "jsonb_each"]
        .iter()
        .any(|name| folded.contains(name))
}

/// The lists of names and of values that a function returns as rows; `None` for other functions.
pub(super) fn member_lists(name: &ObjectName, args: &[Expr]) -> Option<(&'static str, Vec<Expr>)> {
    let name = function_name(name)?;
    let (known, lists) = MEMBERS.into_iter().find(|(known, _)| *known == name)?;
    let lists = lists.map(|list| call(list, args.to_vec()));
    Some((known, lists.into()))
}

/// The names of the columns of a function; none where its column is called like its table.
pub(super) fn columns_of(function: &str) -> &'static [&'static str] {
    if MEMBERS.iter().any(|(known, _)| *known == function) {
        return &["key", VALUE];
    }
    match function {
        "json_array_elements"
        | "jsonb_array_elements"
        | "json_array_elements_text"
        | "jsonb_array_elements_text" => &[VALUE],
        _ => &[],
    }
}

fn function_name(name: &ObjectName) -> Option<String> {
    match name.0.as_slice() {
        [name] => name.as_ident().map(fold_case),
        _ => None,
    }
}

/// Names the column of each function of one column where a query names the function's alias.
pub(super) fn name_values(query: &mut Query) {
    let SetExpr::Select(select) = query.body.as_mut() else {
        return;
    };
    let aliases = aliases(select);
    if aliases.is_empty() {
        return;
    }
    let mut selected = Vec::new();
    for item in &mut select.projection {
        match item {
            SelectItem::UnnamedExpr(expr) => {
                let Expr::Identifier(name) = &*expr else {
                    continue;
                };
                let alias = name.clone();
                selected.push(fold_case(&alias));
                if let Some(expr) = value_of(&alias, &aliases) {
                    *item = SelectItem::ExprWithAlias { expr, alias };
                }
            }
            SelectItem::ExprWithAlias { alias, .. } => selected.push(fold_case(alias)),
            _ => {}
        }
    }
    // The arguments of functions in FROM name the tables before them.
    let mut from = mem::take(&mut select.from);
    let _ = walk_mut(select.as_mut(), &mut RowValues::for_aliases(&aliases));
    name_values_in_from(&mut from, &aliases);
    select.from = from;
    // ORDER BY finds the selected columns before those of tables.
    let others: Vec<String> = aliases
        .into_iter()
        .filter(|alias| !selected.contains(alias))
        .collect();
    if let Some(order_by) = &mut query.order_by {
        let _ = walk_mut(order_by, &mut RowValues::for_aliases(&others));
    }
}

/// Names the columns in the conditions of joins, and in the arguments of functions that come after those
/// with the aliases.
fn name_values_in_from(from: &mut [TableWithJoins], aliases: &[String]) {
    let mut before: Vec<String> = Vec::new();
    let mut in_arguments = |relation: &mut TableFactor| {
        if let TableFactor::Function { .. } | TableFactor::Table { args: Some(_), .. } = relation
            && !before.is_empty()
        {
            let _ = walk_mut(relation, &mut RowValues::for_aliases(&before));
        }
        before.extend(alias_of(relation).filter(|alias| aliases.contains(alias)));
    };
    for tables in from {
        in_arguments(&mut tables.relation);
        for join in &mut tables.joins {
            in_arguments(&mut join.relation);
            let _ = walk_mut(
                &mut join.join_operator,
                &mut RowValues::for_aliases(aliases),
            );
        }
    }
}

/// The aliases of the functions of one named column in FROM.
fn aliases(select: &Select) -> Vec<String> {
    let relations = select.from.iter().flat_map(|tables| {
        let joined = tables.joins.iter().map(|join| &join.relation);
        [&tables.relation].into_iter().chain(joined)
    });
    relations.filter_map(alias_of).collect()
}

/// The alias of a relation that is a function of one named column. `None` also if the arguments name a column
/// that is called like the alias: elsewhere, that name means the column, too.
fn alias_of(relation: &TableFactor) -> Option<String> {
    let (TableFactor::Table { name, alias, .. } | TableFactor::Function { name, alias, .. }) =
        relation
    else {
        return None;
    };
    let is_function = !matches!(relation, TableFactor::Table { args: None, .. });
    let alias = alias.as_ref().filter(|alias| alias.columns.is_empty())?;
    if !is_function || columns_of(&function_name(name)?).len() != 1 {
        return None;
    }
    let alias = fold_case(&alias.name);
    let is_own_argument = walk(relation, &mut NameSearch(&alias)).is_break();
    (!is_own_argument).then_some(alias)
}

/// Breaks where an expression is a name.
struct NameSearch<'a>(&'a str);

impl Visitor for NameSearch<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(name) if fold_case(name) == self.0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// The column of the function with an alias.
fn value_of(name: &Ident, aliases: &[String]) -> Option<Expr> {
    let folded = fold_case(name);
    let is_alias = aliases.contains(&folded);
    let parts = || vec![Ident::with_quote('"', folded), Ident::new(VALUE)];
    is_alias.then(|| Expr::CompoundIdentifier(parts()))
}

/// Replaces the aliases of functions by their columns. In subqueries, these names may be those of columns.
struct RowValues<'a> {
    aliases: &'a [String],
    /// The subqueries around the current expression.
    queries: usize,
}

impl<'a> RowValues<'a> {
    fn for_aliases(aliases: &'a [String]) -> Self {
        Self {
            aliases,
            queries: 0,
        }
    }
}

impl VisitorMut for RowValues<'_> {
    type Break = Infallible;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if self.queries == 0
            && let Expr::Identifier(name) = &*expr
            && let Some(value) = value_of(name, self.aliases)
        {
            *expr = value;
        }
        ControlFlow::Continue(())
    }
}
