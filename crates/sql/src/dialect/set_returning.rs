//! Functions that return rows: `unnest`, `generate_series`, `regexp_matches`, `regexp_split_to_table`,
//! `string_to_table`, and those of [`json_rows`].
//!
//! In the select list, each becomes `unnest` of the array that a scalar function returns; a series of
//! literals without FROM becomes a table, so that its rows stream. In FROM, each becomes an UNNEST with the
//! names of its columns, for `planning::row_functions`; one that refers to tables before it becomes a join,
//! in parentheses, so that it is planned together with them.

use crate::dialect::ast_walk::{walk, walk_mut};
use crate::dialect::grammar::MarigramDialect;
use crate::dialect::json_rows;
use crate::dialect::rewriting::{binary, call, nested, subscripts};
use crate::dialect::series::{is_literal_series, is_number};
use crate::error::SqlError;
use crate::name_forms::fold_case;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr,
    Ident, Join, JoinConstraint, JoinOperator, ObjectName, Query, Select, SelectItem, SetExpr,
    Statement, TableAlias, TableAliasColumnDef, TableFactor, TableWithJoins, Value, Visitor,
    VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;
use marigram_functions::{REGEXP_MATCH_LIST, is_aggregate_name};
use std::mem;
use std::ops::ControlFlow;

/// Functions that return rows, and those that return the rows as an array.
const ARRAYS: [(&str, &str); 5] = [
    ("unnest", ""),
    ("generate_series", "generate_series"),
    ("regexp_matches", REGEXP_MATCH_LIST),
    ("regexp_split_to_table", "regexp_split_to_array"),
    ("string_to_table", "string_to_array"),
];
/// The column of the numbers of rows.
const ORDINALITY: &str = "ordinality";
/// The name of a series that moves from the select list to FROM; no user's table has it.
const MOVED: &str = "\u{1f}series";

/// Whether a statement, in lower case, may contain such functions.
pub(crate) fn may_have_some(folded: &str) -> bool {
    let others = ["generate_subscripts", "pg_sleep"];
    let mut names = ARRAYS.iter().map(|(name, _)| *name).chain(others);
    names.any(|name| folded.contains(name)) || json_rows::may_have_some(folded)
}

/// See the module documentation.
pub(crate) struct SetReturning;

impl VisitorMut for SetReturning {
    type Break = SqlError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        json_rows::name_values(query);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<SqlError> {
        if let Some(replaced) = rows_in_from(factor) {
            *factor = replaced;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<SqlError> {
        if let Some(series) = only_series(select) {
            move_to_from(select, &series);
        }
        for item in &mut select.projection {
            let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item
            else {
                continue;
            };
            let _ = walk_mut(expr, &mut SelectedCalls { queries: 0 });
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<SqlError> {
        join_correlated(&mut select.from);
        ControlFlow::Continue(())
    }
}

/// The function's name, if it returns rows, and the one that returns an array.
fn array_function(name: &ObjectName) -> Option<(&'static str, &'static str)> {
    let [name] = name.0.as_slice() else {
        return None;
    };
    let name = fold_case(name.as_ident()?);
    let mut functions = ARRAYS.into_iter().chain(json_rows::LISTS);
    functions.find(|(rows, _)| *rows == name)
}

/// The function's name, if it returns rows, and the arrays of its columns.
fn arrays_of(name: &ObjectName, args: Vec<Expr>) -> Option<(&'static str, Vec<Expr>)> {
    if let Some(lists) = json_rows::member_lists(name, &args) {
        return Some(lists);
    }
    let (name, array) = array_function(name)?;
    let arrays = match array {
        "" => args,
        array => vec![call(array, args)],
    };
    Some((name, arrays))
}

/// The arguments of a call; `None` if one has a name or is `*`.
fn plain(args: &[FunctionArg]) -> Option<Vec<Expr>> {
    let args = args.iter().map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    });
    args.collect()
}

fn arguments(function: &Function) -> Option<Vec<Expr>> {
    match &function.args {
        FunctionArguments::List(list) => plain(&list.args),
        _ => None,
    }
}

/// Turns the functions of a selected expression into `unnest`; those of subqueries stay.
struct SelectedCalls {
    queries: usize,
}

impl VisitorMut for SelectedCalls {
    type Break = SqlError;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<SqlError> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<SqlError> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        let Expr::Function(function) = &*expr else {
            return ControlFlow::Continue(());
        };
        let (Some((name, array)), Some(args), 0) = (
            array_function(&function.name),
            arguments(function),
            self.queries,
        ) else {
            return ControlFlow::Continue(());
        };
        if name != "unnest" {
            *expr = call("unnest", vec![call(array, args)]);
        } else if let [inner @ Expr::Function(function)] = args.as_slice()
            && array_function(&function.name).is_some_and(|(name, _)| name == "unnest")
        {
            // Whoever writes `unnest(generate_series(…))` means the rows of the series.
            *expr = inner.clone();
        }
        ControlFlow::Continue(())
    }
}

/// The calls of functions that return rows, in an expression without its subqueries.
#[derive(Default)]
struct RowCalls {
    calls: Vec<Expr>,
    /// Whether there are aggregates or windows.
    has_others: bool,
}

impl Visitor for RowCalls {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Subquery(_) | Expr::InSubquery { .. } | Expr::Exists { .. } => {
                self.has_others = true;
            }
            Expr::Function(function) => {
                if array_function(&function.name).is_some() {
                    self.calls.push(expr.clone());
                }
                let name = function.name.to_string().to_lowercase();
                self.has_others |= function.over.is_some()
                    || is_aggregate_name(&name)
                    || matches!(function.args, FunctionArguments::Subquery(_));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// The only function that returns rows of a SELECT without FROM, if it is a series of literals.
fn only_series(select: &Select) -> Option<Expr> {
    let has_groups = match &select.group_by {
        GroupByExpr::Expressions(keys, _) => !keys.is_empty(),
        GroupByExpr::All(_) => true,
    };
    if !select.from.is_empty() || has_groups || select.having.is_some() {
        return None;
    }
    let mut found = RowCalls::default();
    // The visitor never breaks.
    let _ = walk(&select.projection, &mut found);
    let [series] = found.calls.as_slice() else {
        return None;
    };
    let Expr::Function(function) = series else {
        return None;
    };
    let is_series = array_function(&function.name)?.0 == "generate_series";
    let is_plain = is_series && !found.has_others && is_literal_series(&arguments(function)?);
    is_plain.then(|| series.clone())
}

/// Selects from a series instead of calling it.
fn move_to_from(select: &mut Select, series: &Expr) {
    struct SeriesColumn<'a>(&'a Expr);

    impl VisitorMut for SeriesColumn<'_> {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
            if *expr == *self.0 {
                let name = Ident::with_quote('"', MOVED);
                *expr = Expr::CompoundIdentifier(vec![name.clone(), name]);
            }
            ControlFlow::Continue(())
        }
    }

    let Some(table) = table_of(&format!("{series}"), MOVED) else {
        return;
    };
    select.from.push(table);
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            let _ = walk_mut(expr, &mut SeriesColumn(series));
        }
    }
}

/// A function in FROM with a name for its table and its column.
fn table_of(function: &str, name: &str) -> Option<TableWithJoins> {
    let sql = format!("SELECT 1 FROM {function} AS \"{name}\"(\"{name}\")");
    let mut parsed = Parser::parse_sql(&MarigramDialect, &sql).ok()?;
    let Some(Statement::Query(mut query)) = parsed.pop() else {
        return None;
    };
    match query.body.as_mut() {
        SetExpr::Select(select) => select.from.pop(),
        _ => None,
    }
}

/// A function in FROM as UNNEST of arrays, or as a table of a literal series; `None` for others.
fn rows_in_from(factor: &mut TableFactor) -> Option<TableFactor> {
    let (name, arrays, alias, has_numbers) = match factor {
        TableFactor::Table {
            name,
            args: Some(args),
            alias,
            with_ordinality,
            ..
        } => {
            let args = plain(&args.args)?;
            match array_function(name) {
                Some(("generate_series", _)) => {
                    return series_in_from(args, alias, *with_ordinality);
                }
                Some(_) => {}
                None if json_rows::member_lists(name, &args).is_some() => {}
                None => return other_in_from(name, args, alias, *with_ordinality),
            }
            let (name, arrays) = arrays_of(name, args)?;
            (name, arrays, alias.take(), *with_ordinality)
        }
        TableFactor::Function {
            name,
            args,
            alias,
            with_ordinality,
            ..
        } => {
            let (name, arrays) = arrays_of(name, plain(args)?)?;
            (name, arrays, alias.take(), *with_ordinality)
        }
        TableFactor::UNNEST {
            alias,
            array_exprs,
            with_offset: false,
            with_ordinality,
            ..
        } => {
            let arrays = mem::take(array_exprs);
            ("unnest", arrays, alias.take(), *with_ordinality)
        }
        _ => return None,
    };
    Some(unnest(name, arrays, alias, has_numbers))
}

/// `generate_subscripts`, and functions that return one value, which is a row in FROM; `None` for others.
fn other_in_from(
    name: &ObjectName,
    args: Vec<Expr>,
    alias: &mut Option<TableAlias>,
    has_numbers: bool,
) -> Option<TableFactor> {
    let name = fold_case(name.0.first()?.as_ident()?);
    let array = match (name.as_str(), args.as_slice()) {
        ("generate_subscripts", [array, dimension]) if dimension.to_string() == "1" => {
            subscripts(array.clone())
        }
        ("pg_sleep", _) => call("make_array", vec![call(&name, args)]),
        _ => return None,
    };
    Some(unnest(&name, vec![array], alias.take(), has_numbers))
}

/// A series in FROM that the table function of this name does not know; `None` for others.
fn series_in_from(
    args: Vec<Expr>,
    alias: &mut Option<TableAlias>,
    has_numbers: bool,
) -> Option<TableFactor> {
    const NAME: &str = "generate_series";
    if !has_numbers {
        let is_correlated = args.iter().any(is_correlated);
        return is_correlated.then(|| unnest(NAME, vec![call(NAME, args)], alias.take(), false));
    }
    if !args.iter().all(is_number) || args.len() < 2 {
        return Some(unnest(NAME, vec![call(NAME, args)], alias.take(), true));
    }
    // The number of a row follows from its value.
    let alias = complete_alias(NAME, 1, alias.take(), true);
    let table = table_of(&call(NAME, args.clone()).to_string(), MOVED)?;
    let name = Ident::with_quote('"', MOVED);
    let value = Expr::CompoundIdentifier(vec![name.clone(), name]);
    let one = || Expr::value(Value::Number("1".to_owned(), false));
    let step = args.get(2).cloned().unwrap_or_else(one);
    let from_start = binary(
        value.clone(),
        BinaryOperator::Minus,
        nested(args[0].clone()),
    );
    let steps = binary(nested(from_start), BinaryOperator::Divide, nested(step));
    let number = binary(steps, BinaryOperator::Plus, one());
    let mut parsed = Parser::parse_sql(&MarigramDialect, "SELECT 1").ok()?;
    let Some(Statement::Query(mut query)) = parsed.pop() else {
        return None;
    };
    let SetExpr::Select(select) = query.body.as_mut() else {
        return None;
    };
    let selected = |expr, alias: &TableAliasColumnDef| SelectItem::ExprWithAlias {
        expr,
        alias: alias.name.clone(),
    };
    select.projection = vec![
        selected(value, &alias.columns[0]),
        selected(number, &alias.columns[1]),
    ];
    select.from = vec![table];
    Some(TableFactor::Derived {
        lateral: false,
        subquery: query,
        alias: Some(alias),
        sample: None,
    })
}

fn unnest(
    name: &str,
    arrays: Vec<Expr>,
    alias: Option<TableAlias>,
    has_numbers: bool,
) -> TableFactor {
    let alias = complete_alias(name, arrays.len(), alias, has_numbers);
    TableFactor::UNNEST {
        alias: Some(alias),
        array_exprs: arrays,
        with_offset: false,
        with_offset_alias: None,
        with_ordinality: has_numbers,
    }
}

/// The names of a function's table and of all its columns.
fn complete_alias(
    function: &str,
    values: usize,
    alias: Option<TableAlias>,
    has_numbers: bool,
) -> TableAlias {
    let mut alias = alias.unwrap_or_else(|| TableAlias {
        explicit: true,
        name: Ident::new(function),
        columns: Vec::new(),
        at: None,
    });
    let column = |name: Ident| TableAliasColumnDef {
        name,
        data_type: None,
    };
    for at in alias.columns.len()..values {
        // A single column is called like its table.
        let name = match (json_rows::columns_of(function).get(at), at) {
            (Some(own), _) => Ident::new(*own),
            (None, 0) if values == 1 => alias.name.clone(),
            (None, 0) => Ident::new(function),
            (None, at) => Ident::new(format!("{function}_{at}")),
        };
        alias.columns.push(column(name));
    }
    if has_numbers && alias.columns.len() == values {
        alias.columns.push(column(Ident::new(ORDINALITY)));
    }
    alias
}

/// Whether an expression names columns outside of its subqueries.
fn is_correlated(expr: &Expr) -> bool {
    struct ColumnFinder {
        queries: usize,
    }

    impl Visitor for ColumnFinder {
        type Break = ();

        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            self.queries += 1;
            ControlFlow::Continue(())
        }

        fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            self.queries -= 1;
            ControlFlow::Continue(())
        }

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            let is_column = matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
            if is_column && self.queries == 0 {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        }
    }

    walk(expr, &mut ColumnFinder { queries: 0 }).is_break()
}

/// Whether a relation is a function of columns of the tables before it.
pub(crate) fn is_correlated_function(factor: &TableFactor) -> bool {
    match factor {
        TableFactor::UNNEST { array_exprs, .. } => array_exprs.iter().any(is_correlated),
        _ => false,
    }
}

/// Puts each function together with the tables to which it may refer.
fn join_correlated(from: &mut Vec<TableWithJoins>) {
    let is_needed = from.iter().any(|tables| {
        let joined = tables.joins.iter().map(|join| &join.relation);
        let mut relations = [&tables.relation].into_iter().chain(joined);
        relations.any(is_correlated_function)
    });
    if !is_needed {
        return;
    }
    let mut done: Vec<TableWithJoins> = Vec::with_capacity(from.len());
    for tables in mem::take(from) {
        let TableWithJoins { relation, joins } = tables;
        let mut left = if is_correlated_function(&relation) && !done.is_empty() {
            // A comma is a CROSS JOIN.
            let all = done.drain(..).map(parenthesized);
            match all.reduce(|left, right| with_join(left, cross_join(right))) {
                Some(left) => with_join(left, cross_join(relation)),
                None => continue,
            }
        } else {
            relation
        };
        let mut plain: Vec<Join> = Vec::new();
        for join in joins {
            if !is_correlated_function(&join.relation) {
                plain.push(join);
                continue;
            }
            let joins = mem::take(&mut plain);
            left = parenthesized(TableWithJoins {
                relation: left,
                joins,
            });
            left = with_join(left, join);
        }
        done.push(TableWithJoins {
            relation: left,
            joins: plain,
        });
    }
    *from = done;
}

fn cross_join(relation: TableFactor) -> Join {
    Join {
        relation,
        global: false,
        join_operator: JoinOperator::CrossJoin(JoinConstraint::None),
    }
}

fn with_join(relation: TableFactor, join: Join) -> TableFactor {
    TableFactor::NestedJoin {
        table_with_joins: Box::new(TableWithJoins {
            relation,
            joins: vec![join],
        }),
        alias: None,
    }
}

fn parenthesized(tables: TableWithJoins) -> TableFactor {
    if tables.joins.is_empty() {
        return tables.relation;
    }
    TableFactor::NestedJoin {
        table_with_joins: Box::new(tables),
        alias: None,
    }
}
