//! Functions that make JSON: the aggregates `json_agg` and `json_object_agg` become functions of
//! `array_agg`, rows get the names of their values, and JSON in JSON is marked, so that it is not quoted.
//! Casts to JSON are those of [`json_casts`](super::json_casts).

use crate::dialect::array_literals::elements_of;
use crate::dialect::json_casts::read_json;
use crate::dialect::rewriting::call;
use crate::error::SqlError;
use crate::name_forms::fold_case;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Select, SelectItem,
    SetExpr, TableFactor, Value, VisitorMut,
};
use marigram_functions::{JSON_FIELD, JSON_LISTS, JSON_OBJECT_LISTS, JSON_READERS, TEXT_OBJECTS};
use std::collections::HashMap;
use std::mem;
use std::ops::ControlFlow;

/// The functions whose arguments become JSON.
const MAKERS: [&str; 8] = [
    "to_json",
    "to_jsonb",
    "row_to_json",
    "array_to_json",
    "json_build_object",
    "jsonb_build_object",
    "json_build_array",
    "jsonb_build_array",
];
/// The aggregates, and the functions that replace them.
const AGGREGATES: [(&str, &str); 4] = [
    ("json_agg", JSON_LISTS[0]),
    ("jsonb_agg", JSON_LISTS[1]),
    ("json_object_agg", JSON_OBJECT_LISTS[0]),
    ("jsonb_object_agg", JSON_OBJECT_LISTS[1]),
];

/// Whether a statement, in lower case, may contain such functions or casts.
pub(crate) fn may_have_some(folded: &str) -> bool {
    folded.contains("json") || folded.contains("uuid")
}

/// See the module documentation.
#[derive(Default)]
pub(crate) struct JsonCalls {
    /// The columns of subqueries in FROM, by the names of the subqueries: one map for each SELECT.
    rows: Vec<HashMap<String, Vec<Ident>>>,
}

impl VisitorMut for JsonCalls {
    type Break = SqlError;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<SqlError> {
        let joined = select.from.iter().flat_map(|tables| {
            let joined = tables.joins.iter().map(|join| &join.relation);
            [&tables.relation].into_iter().chain(joined)
        });
        self.rows.push(joined.filter_map(named_columns).collect());
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &mut Select) -> ControlFlow<SqlError> {
        self.rows.pop();
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        if let Some(read) = read_json(expr) {
            *expr = read;
            return ControlFlow::Continue(());
        }
        let Expr::Function(function) = expr else {
            return ControlFlow::Continue(());
        };
        let Some(name) = name_of(function) else {
            return ControlFlow::Continue(());
        };
        if TEXT_OBJECTS.contains(&name.as_str()) {
            return match read_arrays(function) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => ControlFlow::Break(error),
            };
        }
        let list = AGGREGATES.iter().find(|(aggregate, _)| *aggregate == name);
        if list.is_none() && !MAKERS.contains(&name.as_str()) {
            return ControlFlow::Continue(());
        }
        let FunctionArguments::List(arguments) = &mut function.args else {
            return ControlFlow::Continue(());
        };
        for argument in &mut arguments.args {
            if let FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) = argument {
                self.mark(value);
            }
        }
        if let Some((aggregate, list)) = list {
            let count = if aggregate.ends_with("object_agg") {
                2
            } else {
                1
            };
            if arguments.args.len() != count {
                let message = format!("{aggregate} takes {count} arguments");
                return ControlFlow::Break(SqlError::named("42883", aggregate, message));
            }
            if count == 2 {
                let args = mem::take(&mut arguments.args);
                let pair = args.into_iter().zip(["name", "value"]);
                let pair = pair.flat_map(|(value, name)| [text_argument(name), value]);
                let mut named = call("named_struct", Vec::new());
                if let Expr::Function(named) = &mut named
                    && let FunctionArguments::List(list) = &mut named.args
                {
                    list.args = pair.collect();
                }
                arguments.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(named))];
            }
            if let Expr::Function(array_agg) = call("array_agg", Vec::new()) {
                function.name = array_agg.name;
            }
            let values = Expr::Function(function.clone());
            *expr = call(list, vec![values]);
        }
        ControlFlow::Continue(())
    }
}

fn name_of(function: &Function) -> Option<String> {
    match function.name.0.as_slice() {
        [name] => name.as_ident().map(fold_case),
        _ => None,
    }
}

/// Reads the literal texts among the arguments of a call as arrays.
fn read_arrays(function: &mut Function) -> Result<(), SqlError> {
    let FunctionArguments::List(arguments) = &mut function.args else {
        return Ok(());
    };
    for argument in &mut arguments.args {
        if let FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) = argument
            && let Some(array) = elements_of(value)?
        {
            *value = array;
        }
    }
    Ok(())
}

fn text_argument(text: &str) -> FunctionArg {
    let text = Expr::value(Value::SingleQuotedString(text.to_owned()));
    FunctionArg::Unnamed(FunctionArgExpr::Expr(text))
}

fn named_struct(values: impl Iterator<Item = (String, Expr)>) -> Expr {
    let parts = values.flat_map(|(name, value)| {
        let name = Expr::value(Value::SingleQuotedString(name));
        [name, value]
    });
    call("named_struct", parts.collect())
}

/// The columns of a subquery in FROM, if its text names all of them.
fn named_columns(factor: &TableFactor) -> Option<(String, Vec<Ident>)> {
    let TableFactor::Derived {
        subquery,
        alias: Some(alias),
        ..
    } = factor
    else {
        return None;
    };
    let table = fold_case(&alias.name);
    if !alias.columns.is_empty() {
        let columns = alias.columns.iter().map(|column| column.name.clone());
        return Some((table, columns.collect()));
    }
    let mut body = subquery.body.as_ref();
    while let SetExpr::SetOperation { left, .. } = body {
        body = left.as_ref();
    }
    let SetExpr::Select(select) = body else {
        return None;
    };
    let columns = select.projection.iter().map(|item| match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias.clone()),
        SelectItem::UnnamedExpr(Expr::Identifier(name)) => Some(name.clone()),
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => parts.last().cloned(),
        _ => None,
    });
    Some((table, columns.collect::<Option<_>>()?))
}

impl JsonCalls {
    /// Names the values of a row, and marks JSON.
    fn mark(&self, value: &mut Expr) {
        if is_json(value) {
            let mut json = mem::replace(value, Expr::value(Value::Null));
            while let Expr::Nested(inner) = json {
                json = *inner;
            }
            *value = named_struct([(JSON_FIELD.to_owned(), json)].into_iter());
            return;
        }
        match value {
            Expr::Tuple(values) => {
                let values = mem::take(values).into_iter();
                let named = values
                    .enumerate()
                    .map(|(at, value)| (format!("f{}", at + 1), value));
                *value = named_struct(named);
            }
            Expr::Function(function) if name_of(function).as_deref() == Some("row") => {
                let FunctionArguments::List(list) = &function.args else {
                    return;
                };
                let values = list.args.iter().map(|arg| match arg {
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value.clone()),
                    _ => None,
                });
                let Some(values) = values.collect::<Option<Vec<_>>>() else {
                    return;
                };
                let named = values.into_iter().enumerate();
                *value = named_struct(named.map(|(at, value)| (format!("f{}", at + 1), value)));
            }
            Expr::Identifier(table) => {
                let Some(rows) = self.rows.last() else { return };
                let name = fold_case(table);
                // A column goes before a subquery of its name.
                let is_column = rows.values().flatten().any(|it| fold_case(it) == name);
                let Some(columns) = rows.get(&name).filter(|_| !is_column) else {
                    return;
                };
                let named = columns.iter().map(|column| {
                    let value = Expr::CompoundIdentifier(vec![table.clone(), column.clone()]);
                    (fold_case(column), value)
                });
                *value = named_struct(named);
            }
            _ => {}
        }
    }
}

/// Whether the text of an expression says that it is JSON.
fn is_json(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(expr) => is_json(expr),
        Expr::Subquery(query) => match query.body.as_ref() {
            SetExpr::Select(select) => match select.projection.as_slice() {
                [SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }] => {
                    is_json(expr)
                }
                _ => false,
            },
            _ => false,
        },
        Expr::Function(function) => name_of(function).is_some_and(|name| {
            let name = name.as_str();
            MAKERS.contains(&name)
                || JSON_READERS.contains(&name)
                || TEXT_OBJECTS.contains(&name)
                || JSON_LISTS.contains(&name)
                || JSON_OBJECT_LISTS.contains(&name)
        }),
        _ => false,
    }
}
